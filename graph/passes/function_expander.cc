#include "graph/passes/function_expander.h"

#include <algorithm>

#include "devices/element_type.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/inline_functions.h"
#include "graph/passes/lower_functions.h"

namespace troupe {
namespace {

// Bounds hostile doubling: f0 calls f1 twice, which calls f2 twice, and so on.
constexpr int kMaxNodes = 1000000;

std::string TypeNames(const std::vector<DataType>& types) {
  std::string names;
  for (DataType type : types) {
    if (!names.empty()) names += ", ";
    names += ElementTypeName(static_cast<ElementType>(type));
  }
  return "[" + names + "]";
}

}  // namespace

FunctionExpander::FunctionExpander(const GraphDef& def, const OpRegistry& ops,
                                   absl::FunctionRef<bool(const NodeDef&)> wanted)
    : def_(def), library_(def.library(), ops), wanted_(wanted) {}

absl::StatusOr<GraphDef> FunctionExpander::Run() {
  *out_.mutable_versions() = def_.versions();
  *out_.mutable_library() = def_.library();
  for (const NodeDef& node : def_.node()) {
    names_.insert(node.name());
    has_primitive_flow_ |= node.op() == "Switch" || node.op() == "RefSwitch" ||
                           node.op() == "Enter" || node.op() == "RefEnter";
    Note(node);
  }
  for (const NodeDef& node : def_.node()) TROUPE_RETURN_IF_ERROR(Add(node, false));
  return std::move(out_);
}

bool FunctionExpander::InlinesCallsOf(const std::string& name) const {
  const FunctionDef* function = library_.Find(name);
  if (function == nullptr || !library_.GradientOf(name).empty() ||
      std::find(stack_.begin(), stack_.end(), name) != stack_.end()) {
    return false;
  }
  // Which tensors an op gives must be known to put it somewhere else.
  return std::all_of(function->node_def().begin(), function->node_def().end(),
                     [this](const NodeDef& node) {
                       return !absl::IsNotFound(library_.Signature(node.op()).status());
                     });
}

void FunctionExpander::Note(const NodeDef& node) {
  auto value = node.attr().find("value");
  if (node.op() != "Const" || value == node.attr().end()) return;
  const TensorProto& tensor = value->second.tensor();
  if (tensor.dtype() == DT_STRING && tensor.string_val_size() == 1 &&
      tensor.tensor_shape().dim_size() == 0) {
    strings_[node.name()] = tensor.string_val(0);
  }
}

const std::string* FunctionExpander::Target(const NodeDef& node) const {
  if (node.input_size() == 0) return nullptr;
  auto found = strings_.find(node.input(0).substr(0, node.input(0).rfind(':')));
  return found == strings_.end() ? nullptr : &found->second;
}

absl::Status FunctionExpander::Add(const NodeDef& node, bool takes_ungated) {
  const bool lowers = IsFunctionalOp(node.op()) && wanted_(node) &&
                      (node.op() != "RemoteCall" || Target(node) != nullptr);
  if (stack_.size() < kMaxBodyNesting && (InlinesCallsOf(node.op()) || lowers)) {
    absl::Status status = Replace(node, takes_ungated);
    if (status.ok() || !stack_.empty()) return status;
    return WithContext(StrCat("node '", node.name(), "' (", node.op(), ") "), status);
  }
  TROUPE_RETURN_IF_ERROR(CheckRoom());
  *out_.add_node() = node;
  return absl::OkStatus();
}

absl::Status FunctionExpander::Replace(const NodeDef& node, bool takes_ungated) {
  Strings inputs, controls;
  for (const std::string& input : node.input()) {
    (input.compare(0, 1, "^") == 0 ? controls : inputs).push_back(input);
  }
  const bool direct = library_.Find(node.op()) != nullptr;
  if (!gate_.empty()) {
    // Constants of a body that is called must be in the branch or iteration of the call.
    const bool call = direct || node.attr().count("f") > 0;
    if ((call || takes_ungated) &&
        std::find(controls.begin(), controls.end(), gate_) == controls.end()) {
      controls.push_back(gate_);
    }
  } else if (stack_.empty() && has_primitive_flow_ && !inputs.empty()) {
    TROUPE_RETURN_IF_ERROR(AddStart(node, &inputs, &controls));
  }
  if (direct) {
    return InlineCall(node, node.op(), node.attr(), node.device(), std::move(inputs),
                      std::move(controls), nullptr);
  }
  return Lower(node, std::move(inputs), std::move(controls));
}

absl::Status FunctionExpander::AddStart(const NodeDef& node, Strings* inputs, Strings* controls) {
  // The node may be in a loop or branch of the graph: what its bodies need is to be there when all
  // inputs are, and not otherwise.
  TROUPE_ASSIGN_OR_RETURN(const OpDef* op, library_.Signature(node.op()));
  const AttrMap attrs = WithDefaults(node.attr(), *op);
  Types types;
  for (const OpDef::ArgDef& arg : op->input_arg()) {
    TROUPE_ASSIGN_OR_RETURN(Types of_arg, ArgumentTypes(arg, attrs));
    types.insert(types.end(), of_arg.begin(), of_arg.end());
  }
  if (types.size() != inputs->size()) {
    return InvalidArgument("has ", inputs->size(), " inputs, expected ", types.size());
  }
  Strings all = *inputs;
  all.insert(all.end(), controls->begin(), controls->end());
  TROUPE_ASSIGN_OR_RETURN(std::string start,
                          AddNode(node.name() + "/start", "IdentityN", node.device(), all));
  AttrValue& list = (*Last()->mutable_attr())["T"];
  for (size_t i = 0; i < types.size(); ++i) {
    list.mutable_list()->add_type(types[i]);
    (*inputs)[i] = StrCat(start, ":", i);
  }
  *controls = {"^" + start};
  return absl::OkStatus();
}

absl::Status FunctionExpander::InlineCall(const NodeDef& node, const std::string& function,
                                          const AttrMap& attrs, const std::string& device,
                                          Strings inputs, Strings controls, const Types* types) {
  BindOptions options;
  for (std::string& input : inputs) options.arguments.push_back({std::move(input), false});
  options.controls = controls;
  options.device = device;
  TROUPE_ASSIGN_OR_RETURN(Expanded body, AddBody(function, attrs, node.name(), options,
                                                 /*lowered=*/false, nullptr, types));
  body.done.insert(body.done.end(), controls.begin(), controls.end());
  return AddResult(node, body.results, body.types, body.done);
}

absl::StatusOr<FunctionExpander::Expanded> FunctionExpander::AddBody(
    const std::string& name, const AttrMap& attrs, const std::string& prefix,
    const BindOptions& options, bool lowered, const Types* arg_types, const Types* result_types) {
  TROUPE_ASSIGN_OR_RETURN(const FunctionDef* function, library_.Get(name));
  if (std::find(stack_.begin(), stack_.end(), name) != stack_.end()) {
    std::string path;
    for (const std::string& caller : stack_) path += caller + " -> ";
    return InvalidArgument("function '", name, "' calls itself (", path, name,
                           "): its calls cannot be replaced by its body");
  }
  BindOptions binding = options;
  binding.rename = [&](const std::string& node) { return Unique(StrCat(prefix, "/", node)); };
  const std::string where = StrCat("calls function '", name, "': ");
  absl::StatusOr<BoundFunction> body = BindFunction(library_, *function, attrs, binding);
  if (!body.ok()) return WithContext(where, body.status());
  if (arg_types != nullptr && body->arg_types != *arg_types) {
    return InvalidArgument(where, "its arguments are ", TypeNames(body->arg_types), ", given are ",
                           TypeNames(*arg_types));
  }
  if (result_types != nullptr && body->result_types != *result_types) {
    return InvalidArgument(where, "its results are ", TypeNames(body->result_types),
                           ", expected are ", TypeNames(*result_types));
  }
  for (NodeDef& node : body->nodes) {
    // Each call has loops of its own.
    if (std::string* const frame = FrameName(&node)) *frame = StrCat(prefix, "/", *frame);
    Note(node);
  }
  stack_.push_back(name);
  const std::string outer_gate = gate_;
  if (lowered) gate_ = options.controls.front();
  for (size_t i = 0; i < body->nodes.size(); ++i) {
    absl::Status status = Add(body->nodes[i], body->takes_ungated[i]);
    if (status.ok()) continue;
    stack_.pop_back();
    return WithContext(where, status);
  }
  gate_ = outer_gate;
  stack_.pop_back();
  Expanded expanded;
  for (const std::string& effect : body->effects) expanded.done.push_back("^" + effect);
  if (body->effects_may_be_dead && !expanded.done.empty()) {
    // It comes whether they were dead or not.
    TROUPE_ASSIGN_OR_RETURN(
        std::string trigger,
        AddNode(StrCat(prefix, "/effects"), "ControlTrigger", options.device, expanded.done));
    expanded.done = {"^" + trigger};
  }
  expanded.results = std::move(body->results);
  expanded.types = std::move(body->result_types);
  return expanded;
}

absl::Status FunctionExpander::AddResult(const NodeDef& node, const Strings& results,
                                         const Types& types, const Strings& controls) {
  NodeDef result;
  result.set_name(node.name());
  result.set_device(node.device());
  result.set_op(types.empty() ? "NoOp" : "IdentityN");
  for (const std::string& tensor : results) result.add_input(tensor);
  for (const std::string& control : controls) result.add_input(control);
  if (!types.empty()) {
    AttrValue& list = (*result.mutable_attr())["T"];
    for (DataType type : types) list.mutable_list()->add_type(type);
  }
  // What is known of the results' shapes helps those that use them.
  auto shapes = node.attr().find("_output_shapes");
  if (shapes == node.attr().end()) shapes = node.attr().find("output_shapes");
  if (shapes != node.attr().end() &&
      shapes->second.list().shape_size() == static_cast<int>(types.size()) && !types.empty()) {
    (*result.mutable_attr())["_output_shapes"] = shapes->second;
  }
  TROUPE_RETURN_IF_ERROR(CheckRoom());
  *out_.add_node() = std::move(result);
  return absl::OkStatus();
}

absl::StatusOr<std::string> FunctionExpander::AddNode(const std::string& name,
                                                      const std::string& op,
                                                      const std::string& device,
                                                      const Strings& inputs, DataType type,
                                                      const char* type_attr) {
  TROUPE_RETURN_IF_ERROR(CheckRoom());
  NodeDef* node = out_.add_node();
  node->set_name(Unique(name));
  node->set_op(op);
  node->set_device(device);
  for (const std::string& input : inputs) node->add_input(input);
  if (type != DT_INVALID) (*node->mutable_attr())[type_attr].set_type(type);
  return node->name();
}

absl::Status FunctionExpander::CheckRoom() const {
  if (out_.node_size() < kMaxNodes) return absl::OkStatus();
  return InvalidArgument("the bodies of the functions have more than ", kMaxNodes, " nodes");
}

std::string FunctionExpander::Unique(const std::string& name) {
  std::string unique = name;
  for (int i = 1; !names_.insert(unique).second; ++i) unique = StrCat(name, "_", i);
  return unique;
}

// --- inlining ----------------------------------------------------------------------------------

bool CallsFunctions(const GraphDef& def) {
  if (def.library().function_size() == 0) return false;
  std::unordered_set<std::string_view> functions;
  for (const FunctionDef& function : def.library().function()) {
    functions.insert(function.signature().name());
  }
  for (const NodeDef& node : def.node()) {
    if (functions.count(node.op()) > 0) return true;
  }
  return false;
}

absl::StatusOr<GraphDef> InlineFunctionCalls(const GraphDef& def, const OpRegistry& ops) {
  return FunctionExpander(def, ops, [](const NodeDef&) { return false; }).Run();
}

absl::StatusOr<GraphDef> LowerFunctionalOps(const GraphDef& def, const OpRegistry& ops,
                                            absl::FunctionRef<bool(const NodeDef&)> wanted) {
  return FunctionExpander(def, ops, wanted).Run();
}

}  // namespace troupe
