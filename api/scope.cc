#include "api/scope.h"

#include <unordered_map>

#include "api/internal/flow_context.h"
#include "api/internal/literal.h"
#include "api/variable_scope.h"
#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {

struct Scope::Shared {
  std::shared_ptr<Graph> graph;
  absl::Status status;
  /// Where nodes inside branches and loops belong.
  std::unordered_map<const Node*, std::shared_ptr<FlowContext>> contexts;
  VariableStore variables;
};

struct Scope::Local {
  std::string prefix;
  std::string op_name;
  std::vector<Node*> control_inputs;
  std::string device;              ///< Wins over what the function says.
  DeviceFunction device_function;  ///< Of the scopes around.
  std::vector<std::string> colocation;
  std::string container;
  std::shared_ptr<FlowContext> context;
  std::shared_ptr<const VariableSettings> variables;
};

namespace {

/// Parts that `inner` gives win.
absl::StatusOr<std::string> MergeDevices(std::string_view outer, std::string_view inner) {
  TROUPE_ASSIGN_OR_RETURN(const DeviceName out, DeviceName::Parse(outer));
  TROUPE_ASSIGN_OR_RETURN(const DeviceName in, DeviceName::Parse(inner));
  return DeviceName::Override(out, in).ToString();
}

/// The device that the first resource among the inputs asks for.
std::string DeviceOfResource(absl::Span<const Output> inputs) {
  for (const Output& input : inputs) {
    if (!input.valid() || input.type() != ElementType::kResource) continue;
    // Into branches and loops it comes by nodes that ask for nothing.
    const Node* node = input.node;
    while (node->requested_device().empty() && node->num_inputs() > 0 &&
           node->in_data_edge(0) != nullptr && node->input_type(0) == ElementType::kResource) {
      node = node->in_data_edge(0)->src;
    }
    return node->requested_device();
  }
  return "";
}

}  // namespace

Output Input::ToOutput(const Scope& scope, ElementType type) const {
  if (!value_.valid()) return output_;
  // The scope's op name is the op's, not its constant's.
  const Scope named = scope.WithOpName("Const");
  if (!is_literal_ || type == value_.type()) return Const(named, value_);
  absl::StatusOr<Tensor> converted = ConvertLiteral(value_, type);
  if (converted.ok()) return Const(named, *std::move(converted));
  scope.UpdateStatus(converted.status());
  return Output();
}

ElementType TypeOfOthers(std::initializer_list<const Input*> inputs,
                         std::initializer_list<const InputList*> lists) {
  const auto type_of = [](const Input& input) {
    if (input.is_literal()) return ElementType::kInvalid;
    if (input.is_value()) return input.value().type();
    return input.output().valid() ? input.output().type() : ElementType::kInvalid;
  };
  for (const Input* input : inputs) {
    if (const ElementType type = type_of(*input); type != ElementType::kInvalid) return type;
  }
  for (const InputList* list : lists) {
    for (size_t i = 0; i < list->size(); ++i) {
      if (const ElementType type = type_of((*list)[i]); type != ElementType::kInvalid) return type;
    }
  }
  return ElementType::kInvalid;
}

std::vector<Output> InputList::ToOutputs(const Scope& scope, ElementType type) const {
  std::vector<Output> outputs;
  outputs.reserve(inputs_.size());
  for (const Input& input : inputs_) outputs.push_back(input.ToOutput(scope, type));
  return outputs;
}

Output& OutputList::PastTheEnd() {
  thread_local Output none;
  return none = Output();
}

ScopedSpec& ScopedSpec::Input(Output tensor) {
  inputs_.push_back(scope_.Bring(tensor));
  spec_.Input(inputs_.back());
  return *this;
}

ScopedSpec& ScopedSpec::Input(absl::Span<const Output> list) {
  std::vector<Output> brought;
  brought.reserve(list.size());
  for (const Output& tensor : list) brought.push_back(scope_.Bring(tensor));
  inputs_.insert(inputs_.end(), brought.begin(), brought.end());
  spec_.Input(brought);
  return *this;
}

ScopedSpec& ScopedSpec::ControlInput(Node* node) {
  controls_.push_back(node);
  return *this;
}

ScopedSpec& ScopedSpec::Device(std::string device) {
  device_ = std::move(device);
  return *this;
}

Scope Scope::NewRoot() { return Scope(std::make_shared<Graph>()); }

Scope::Scope(std::shared_ptr<Graph> graph) : shared_(std::make_shared<Shared>()) {
  auto local = std::make_shared<Local>();
  shared_->graph = std::move(graph);
  local->variables = std::make_shared<VariableSettings>();
  local_ = std::move(local);
}

const std::shared_ptr<Graph>& Scope::graph() const { return shared_->graph; }
absl::Status Scope::status() const { return shared_->status; }
void Scope::UpdateStatus(absl::Status status) const { shared_->status.Update(std::move(status)); }
std::string Scope::prefix() const { return local_->prefix; }
const std::string& Scope::container() const { return local_->container; }
const std::string& Scope::op_name() const { return local_->op_name; }
const std::shared_ptr<FlowContext>& Scope::flow_context() const { return local_->context; }

const std::shared_ptr<const VariableSettings>& Scope::variables() const {
  return local_->variables;
}

VariableStore& Scope::variable_store() const { return shared_->variables; }

Scope Scope::WithVariables(std::shared_ptr<const VariableSettings> variables) const {
  return Derive([&](Local& local) { local.variables = std::move(variables); });
}

std::shared_ptr<FlowContext> Scope::FlowContextOf(const Node* node) const {
  auto found = shared_->contexts.find(node);
  return found == shared_->contexts.end() ? nullptr : found->second;
}

void Scope::SetFlowContextOf(const Node* node, std::shared_ptr<FlowContext> context) const {
  shared_->contexts[node] = std::move(context);
}

Scope Scope::WithFlowContext(std::shared_ptr<FlowContext> context) const {
  return Derive([&](Local& local) {
    local.op_name.clear();
    local.control_inputs.clear();
    local.colocation.clear();
    local.context = std::move(context);
  });
}

template <typename Change>
Scope Scope::Derive(Change change) const {
  auto local = std::make_shared<Local>(*local_);
  change(*local);
  return Scope(shared_, std::move(local));
}

Scope Scope::NewSubScope(std::string_view name) const {
  if (name.ends_with('/')) return WithPrefix(std::string(name));
  const std::string prefix = graph()->UniqueName(StrCat(local_->prefix, name)) + "/";
  return Derive([&](Local& local) {
    local.prefix = prefix;
    local.op_name.clear();
  });
}

Scope Scope::WithPrefix(std::string prefix) const {
  return Derive([&](Local& local) {
    local.prefix = std::move(prefix);
    local.op_name.clear();
  });
}

Scope Scope::WithOpName(std::string_view name) const {
  return Derive([&](Local& local) { local.op_name = name; });
}

Scope Scope::WithControlDependencies(absl::Span<Node* const> nodes) const {
  return Derive([&](Local& local) {
    local.control_inputs.insert(local.control_inputs.end(), nodes.begin(), nodes.end());
  });
}

Scope Scope::WithControlDependencies(std::initializer_list<Output> outputs) const {
  std::vector<Node*> nodes;
  for (const Output& output : outputs) {
    if (output.node != nullptr) nodes.push_back(output.node);
  }
  return WithControlDependencies(absl::MakeConstSpan(nodes));
}

Scope Scope::WithNoControlDependencies() const {
  return Derive([](Local& local) { local.control_inputs.clear(); });
}

Scope Scope::WithDevice(std::string_view device) const {
  if (device.empty()) {
    return Derive([](Local& local) {
      local.device.clear();
      local.device_function = nullptr;
    });
  }
  absl::StatusOr<std::string> merged = MergeDevices(local_->device, device);
  if (!merged.ok()) UpdateStatus(merged.status());
  return Derive([&](Local& local) { local.device = merged.ok() ? *merged : ""; });
}

Scope Scope::WithDeviceFunction(DeviceFunction device) const {
  return Derive([&](Local& local) {
    if (local.device.empty() && !local.device_function) {
      local.device_function = std::move(device);
      return;
    }
    // What is around gives the parts that the function leaves open.
    const Scope around = *this;
    local.device_function = [around, inner = std::move(device)](const NodeToPlace& node) {
      const std::string outer = around.ChooseDevice(node), wish = inner(node);
      absl::StatusOr<std::string> merged = MergeDevices(outer, wish);
      if (!merged.ok()) around.UpdateStatus(merged.status());
      return merged.ok() ? *merged : std::string();
    };
    local.device.clear();
  });
}

Scope Scope::WithDevicesOf(const Scope& other) const {
  return Derive([&](Local& local) {
    local.device = other.local_->device;
    local.device_function = other.local_->device_function;
  });
}

std::string Scope::DeviceOf(std::string_view op) const {
  return ChooseDevice({.op = op, .name = "", .shape = {}, .device = ""});
}

std::string Scope::ChooseDevice(NodeToPlace node) const {
  if (!local_->device_function) return local_->device;
  node.device = local_->device;
  const std::string wish = local_->device_function(node);
  absl::StatusOr<std::string> merged = MergeDevices(wish, local_->device);
  if (!merged.ok()) UpdateStatus(merged.status());
  return merged.ok() ? *merged : std::string();
}

Scope Scope::ColocateWith(Node* node) const {
  return Derive([&](Local& local) {
    if (node != nullptr) local.colocation.push_back("loc:@" + node->name());
  });
}

Scope Scope::ClearColocation() const {
  return Derive([](Local& local) { local.colocation.clear(); });
}

Scope Scope::WithContainer(std::string_view container) const {
  return Derive([&](Local& local) { local.container = container; });
}

std::string Scope::UniqueName(std::string_view base) const {
  return graph()->UniqueName(StrCat(local_->prefix, base));
}

Output Scope::Bring(Output tensor) const {
  const bool there =
      tensor.valid() && tensor.index >= 0 && tensor.index < tensor.node->num_outputs();
  if (!there || !ok()) return tensor;  // The graph refuses what is not there.
  return FlowContext::Bring(*this, local_->context, tensor);
}

Node* Scope::AddNode(std::string_view op, const std::function<void(ScopedSpec&)>& fill) const {
  if (!ok()) return nullptr;
  const std::string& wish = local_->op_name;
  const std::string name =
      wish.ends_with('/') ? wish.substr(0, wish.size() - 1) : UniqueName(wish.empty() ? op : wish);
  ScopedSpec spec(*this, NodeSpec(std::string(op), name));
  spec.controls_ = local_->control_inputs;
  if (!local_->colocation.empty()) {
    spec.Attr("_class", absl::MakeConstSpan(local_->colocation));
  }
  fill(spec);
  std::string device = std::move(spec.device_);
  if (device.empty()) device = DeviceOfResource(spec.inputs_);
  if (device.empty()) {
    device = ChooseDevice(
        {.op = op, .name = name, .type = spec.type_, .shape = spec.shape_, .device = ""});
  }
  if (!device.empty()) spec.spec_.Device(std::move(device));
  if (local_->context != nullptr || !shared_->contexts.empty()) {
    FlowContext::BringControls(*this, spec.inputs_, &spec.controls_);
  }
  if (!ok()) return nullptr;
  for (Node* node : spec.controls_) spec.spec_.ControlInput(node);
  absl::StatusOr<Node*> node = graph()->AddNode(spec.spec_);
  if (!node.ok()) {
    UpdateStatus(node.status());
    return nullptr;
  }
  if (local_->context != nullptr) shared_->contexts.emplace(*node, local_->context);
  return *node;
}

Output Const(const Scope& scope, Tensor value) {
  Node* node = scope.AddNode("Const", [&](ScopedSpec& spec) {
    spec.Attr("dtype", value.type());
    spec.Attr("value", value);
  });
  return node == nullptr ? Output() : Output(node);
}

}  // namespace troupe
