#include "graph/passes/inline_functions.h"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

// Recursion without end is found by the depth, hostile doubling by the number of nodes.
constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 1000000;

using AttrMap = google::protobuf::Map<std::string, AttrValue>;
using Functions = std::unordered_map<std::string, const FunctionDef*>;

Functions FunctionsOf(const GraphDef& def) {
  Functions functions;
  for (const FunctionDef& function : def.library().function()) {
    functions.emplace(function.signature().name(), &function);
  }
  return functions;
}

const AttrValue* FindAttr(const AttrMap& attrs, const std::string& name) {
  auto found = attrs.find(name);
  return found == attrs.end() ? nullptr : &found->second;
}

/// The element types of an argument, one per tensor. InvalidArgument if an attribute is missing.
absl::StatusOr<std::vector<DataType>> ArgTypes(const OpDef::ArgDef& arg, const AttrMap& attrs) {
  std::vector<DataType> types;
  if (!arg.type_list_attr().empty()) {
    const AttrValue* list = FindAttr(attrs, arg.type_list_attr());
    if (list == nullptr) return InvalidArgument("attribute ", arg.type_list_attr(), " is missing");
    for (int type : list->list().type()) types.push_back(static_cast<DataType>(type));
    return types;
  }
  DataType type = arg.type();
  if (!arg.type_attr().empty()) {
    const AttrValue* value = FindAttr(attrs, arg.type_attr());
    if (value == nullptr) return InvalidArgument("attribute ", arg.type_attr(), " is missing");
    type = value->type();
  }
  int64_t n = 1;
  if (!arg.number_attr().empty()) {
    const AttrValue* value = FindAttr(attrs, arg.number_attr());
    if (value == nullptr) return InvalidArgument("attribute ", arg.number_attr(), " is missing");
    n = value->i();
    if (n < 0 || n > kMaxNodes) return InvalidArgument("attribute ", arg.number_attr(), " is ", n);
  }
  types.assign(static_cast<size_t>(n), type);
  return types;
}

/// Attributes of a call or body node with the defaults of its signature.
AttrMap WithDefaults(AttrMap attrs, const OpDef& signature) {
  for (const OpDef::AttrDef& attr : signature.attr()) {
    if (attr.has_default_value()) attrs.insert({attr.name(), attr.default_value()});
  }
  return attrs;
}

/// Replaces attributes that stand for the function's own (`placeholder`) by what the call says.
absl::Status Substitute(const AttrMap& call_attrs, AttrMap* attrs) {
  for (auto& [name, value] : *attrs) {
    if (value.value_case() != AttrValue::kPlaceholder) continue;
    const AttrValue* actual = FindAttr(call_attrs, value.placeholder());
    if (actual == nullptr) {
      return InvalidArgument("attribute ", value.placeholder(), " is missing in the call");
    }
    const AttrValue copy = *actual;
    value = copy;
  }
  return absl::OkStatus();
}

class Inliner {
 public:
  Inliner(const GraphDef& def, const OpRegistry& ops)
      : def_(def), ops_(ops), functions_(FunctionsOf(def)) {}

  absl::StatusOr<GraphDef> Run() {
    *out_.mutable_versions() = def_.versions();
    *out_.mutable_library() = def_.library();
    for (const NodeDef& node : def_.node()) TROUPE_RETURN_IF_ERROR(Add(node, 0));
    return std::move(out_);
  }

 private:
  /// A body's inputs by the names that its nodes use.
  struct Names {
    std::map<std::string, std::vector<std::string>, std::less<>> tensors;  // "arg" or "node:output"
    std::map<std::string, std::string, std::less<>> nodes;                 // body name to full name
  };

  absl::Status Add(const NodeDef& node, int depth) {
    auto function = functions_.find(node.op());
    if (function != functions_.end()) {
      absl::Status status = Inline(node, *function->second, depth);
      if (status.ok() || depth > 0) return status;
      return absl::Status(status.code(), StrCat("node '", node.name(), "' calls function '",
                                                node.op(), "': ", std::string(status.message())));
    }
    if (out_.node_size() >= kMaxNodes) {
      return InvalidArgument("the bodies of the functions have more than ", kMaxNodes, " nodes");
    }
    *out_.add_node() = node;
    return absl::OkStatus();
  }

  absl::StatusOr<const OpDef*> SignatureOf(const std::string& op) const {
    auto function = functions_.find(op);
    if (function != functions_.end()) return &function->second->signature();
    TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration, ops_.LookUp(op));
    return registration->def.get();
  }

  absl::Status Inline(const NodeDef& call, const FunctionDef& function, int depth) {
    if (depth >= kMaxDepth) {
      return InvalidArgument("calls are nested more than ", kMaxDepth,
                             " deep: does a function call itself?");
    }
    const OpDef& signature = function.signature();
    const AttrMap call_attrs = WithDefaults(call.attr(), signature);
    Names names;
    std::vector<std::string> controls;
    TROUPE_RETURN_IF_ERROR(BindArguments(call, signature, call_attrs, &names, &controls));

    // Names first: nodes of a body stand in any order.
    std::vector<NodeDef> body;
    std::vector<std::string> effects;
    for (const NodeDef& node : function.node_def()) {
      NodeDef copy = node;
      TROUPE_RETURN_IF_ERROR(Substitute(call_attrs, copy.mutable_attr()));
      copy.set_name(StrCat(call.name(), "/", node.name()));
      if (copy.device().empty()) copy.set_device(call.device());
      TROUPE_ASSIGN_OR_RETURN(const OpDef* op, SignatureOf(node.op()));
      if (op->is_stateful()) effects.push_back("^" + copy.name());
      const AttrMap attrs = WithDefaults(copy.attr(), *op);
      names.nodes[node.name()] = copy.name();
      int port = 0;
      for (const OpDef::ArgDef& output : op->output_arg()) {
        TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> types, ArgTypes(output, attrs));
        std::vector<std::string>& tensors = names.tensors[StrCat(node.name(), ":", output.name())];
        for (size_t k = 0; k < types.size(); ++k) {
          tensors.push_back(StrCat(copy.name(), ":", port++));
        }
      }
      body.push_back(std::move(copy));
    }
    for (NodeDef& node : body) {
      std::vector<std::string> inputs;
      for (const std::string& input : node.input()) {
        TROUPE_RETURN_IF_ERROR(Resolve(input, names, &inputs));
      }
      inputs.insert(inputs.end(), controls.begin(), controls.end());
      node.mutable_input()->Assign(inputs.begin(), inputs.end());
      TROUPE_RETURN_IF_ERROR(Add(node, depth + 1));
    }
    return AddResults(call, function, call_attrs, names, std::move(controls), effects);
  }

  absl::Status BindArguments(const NodeDef& call, const OpDef& signature, const AttrMap& attrs,
                             Names* names, std::vector<std::string>* controls) {
    int next = 0, data_inputs = 0;
    for (const std::string& input : call.input()) {
      if (!input.empty() && input[0] == '^') {
        controls->push_back(input);
      } else {
        ++data_inputs;
      }
    }
    for (const OpDef::ArgDef& arg : signature.input_arg()) {
      TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> types, ArgTypes(arg, attrs));
      std::vector<std::string>& tensors = names->tensors[arg.name()];
      for (size_t k = 0; k < types.size(); ++k) {
        if (next >= data_inputs) {
          return InvalidArgument("there is no input for argument '", arg.name(), "'");
        }
        tensors.push_back(call.input(next++));
      }
    }
    if (next != data_inputs) {
      return InvalidArgument("there are ", data_inputs, " inputs, but the function takes ", next);
    }
    return absl::OkStatus();
  }

  /// Appends the tensors that a body's input ("arg", "arg:1", "node:output:0", "^node") stands for.
  static absl::Status Resolve(const std::string& input, const Names& names,
                              std::vector<std::string>* result) {
    if (!input.empty() && input[0] == '^') {
      auto node = names.nodes.find(std::string_view(input).substr(1));
      if (node == names.nodes.end()) {
        if (names.tensors.count(input.substr(1)) > 0) return absl::OkStatus();  // an argument
        return InvalidArgument("the body has no node '", input.substr(1), "'");
      }
      result->push_back("^" + node->second);
      return absl::OkStatus();
    }
    if (auto all = names.tensors.find(input); all != names.tensors.end()) {
      result->insert(result->end(), all->second.begin(), all->second.end());
      return absl::OkStatus();
    }
    const size_t colon = input.rfind(':');
    if (colon != std::string::npos &&
        input.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
        input.size() - colon - 1 > 0 && input.size() - colon - 1 < 8) {
      auto list = names.tensors.find(std::string_view(input).substr(0, colon));
      const size_t index = static_cast<size_t>(std::stoul(input.substr(colon + 1)));
      if (list != names.tensors.end() && index < list->second.size()) {
        result->push_back(list->second[index]);
        return absl::OkStatus();
      }
    }
    return InvalidArgument("the body has no tensor '", input, "'");
  }

  absl::Status AddResults(const NodeDef& call, const FunctionDef& function, const AttrMap& attrs,
                          const Names& names, std::vector<std::string> controls,
                          const std::vector<std::string>& effects) {
    NodeDef result;
    result.set_name(call.name());
    result.set_device(call.device());
    AttrValue types;
    for (const OpDef::ArgDef& output : function.signature().output_arg()) {
      TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> output_types, ArgTypes(output, attrs));
      auto source = function.ret().find(output.name());
      if (source == function.ret().end()) {
        return InvalidArgument("result '", output.name(), "' comes from nowhere");
      }
      std::vector<std::string> tensors;
      TROUPE_RETURN_IF_ERROR(Resolve(source->second, names, &tensors));
      if (tensors.size() != output_types.size()) {
        return InvalidArgument("result '", output.name(), "' has ", output_types.size(),
                               " tensors, but the body gives ", tensors.size());
      }
      for (const std::string& tensor : tensors) result.add_input(tensor);
      for (DataType type : output_types) types.mutable_list()->add_type(type);
    }
    result.set_op(types.list().type_size() > 0 ? "IdentityN" : "NoOp");
    if (types.list().type_size() > 0) (*result.mutable_attr())["T"] = types;
    for (const auto& [name, node] : function.control_ret()) {
      TROUPE_RETURN_IF_ERROR(Resolve("^" + node, names, &controls));
    }
    controls.insert(controls.end(), effects.begin(), effects.end());
    for (const std::string& control : controls) result.add_input(control);
    if (auto shapes = call.attr().find("_output_shapes"); shapes != call.attr().end()) {
      (*result.mutable_attr())["_output_shapes"] = shapes->second;
    }
    return Add(result, 0);
  }

  const GraphDef& def_;
  const OpRegistry& ops_;
  const Functions functions_;
  GraphDef out_;
};

}  // namespace

bool CallsFunctions(const GraphDef& def) {
  if (def.library().function_size() == 0) return false;
  const Functions functions = FunctionsOf(def);
  for (const NodeDef& node : def.node()) {
    if (functions.count(node.op()) > 0) return true;
  }
  return false;
}

absl::StatusOr<GraphDef> InlineFunctionCalls(const GraphDef& def, const OpRegistry& ops) {
  return Inliner(def, ops).Run();
}

}  // namespace troupe
