#include "api/scope.h"

#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {

struct Scope::Shared {
  std::shared_ptr<Graph> graph;
  absl::Status status;
};

struct Scope::Local {
  std::string prefix;
  std::string op_name;
  std::vector<Node*> control_inputs;
  std::string device;
  std::function<std::string(std::string_view, std::string_view)> device_function;
  std::vector<std::string> colocation;
  std::string container;
};

Output Input::ToOutput(const Scope& scope) const {
  // The scope's op name is the op's, not its constant's.
  return value_.valid() ? Const(scope.WithOpName("Const"), value_) : output_;
}

Scope Scope::NewRoot() { return Scope(std::make_shared<Graph>()); }

Scope::Scope(std::shared_ptr<Graph> graph)
    : shared_(std::make_shared<Shared>()), local_(std::make_shared<Local>()) {
  shared_->graph = std::move(graph);
}

const std::shared_ptr<Graph>& Scope::graph() const { return shared_->graph; }
absl::Status Scope::status() const { return shared_->status; }
void Scope::UpdateStatus(absl::Status status) const { shared_->status.Update(std::move(status)); }
std::string Scope::prefix() const { return local_->prefix; }
const std::string& Scope::container() const { return local_->container; }

template <typename Change>
Scope Scope::Derive(Change change) const {
  auto local = std::make_shared<Local>(*local_);
  change(*local);
  return Scope(shared_, std::move(local));
}

Scope Scope::NewSubScope(std::string_view name) const {
  const std::string prefix = graph()->UniqueName(StrCat(local_->prefix, name)) + "/";
  return Derive([&](Local& local) {
    local.prefix = prefix;
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
  absl::StatusOr<DeviceName> outer = DeviceName::Parse(local_->device);
  absl::StatusOr<DeviceName> inner = DeviceName::Parse(device);
  if (!inner.ok()) UpdateStatus(inner.status());
  std::string merged;
  if (!device.empty() && outer.ok() && inner.ok()) {
    merged = DeviceName::Override(*outer, *inner).ToString();
  }
  return Derive([&](Local& local) { local.device = merged; });
}

Scope Scope::WithDeviceFunction(
    std::function<std::string(std::string_view, std::string_view)> device) const {
  return Derive([&](Local& local) { local.device_function = std::move(device); });
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

Node* Scope::AddNode(std::string_view op, const std::function<void(NodeSpec&)>& fill) const {
  if (!ok()) return nullptr;
  NodeSpec spec(std::string(op), UniqueName(local_->op_name.empty() ? op : local_->op_name));
  if (!local_->device.empty()) spec.Device(local_->device);
  if (local_->device_function) {
    const std::string device = local_->device_function(op, local_->op_name);
    if (!device.empty()) spec.Device(device);
  }
  for (Node* node : local_->control_inputs) spec.ControlInput(node);
  if (!local_->colocation.empty()) {
    spec.Attr("_class", absl::MakeConstSpan(local_->colocation));
  }
  fill(spec);
  absl::StatusOr<Node*> node = graph()->AddNode(spec);
  if (!node.ok()) {
    UpdateStatus(node.status());
    return nullptr;
  }
  return *node;
}

Output Const(const Scope& scope, Tensor value) {
  Node* node = scope.AddNode("Const", [&](NodeSpec& spec) {
    spec.Attr("dtype", value.type());
    spec.Attr("value", value);
  });
  return node == nullptr ? Output() : Output(node);
}

}  // namespace troupe
