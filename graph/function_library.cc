#include "graph/function_library.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "devices/device_name.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr int64_t kMaxTensors = 1000000;

const AttrValue* FindAttr(const AttrMap& attrs, const std::string& name) {
  auto found = attrs.find(name);
  return found == attrs.end() ? nullptr : &found->second;
}

absl::StatusOr<DataType> TypeAttr(const std::string& name, const AttrMap& attrs) {
  const AttrValue* value = FindAttr(attrs, name);
  if (value == nullptr) return InvalidArgument("attribute ", name, " is missing");
  if (value->value_case() != AttrValue::kType) {
    return InvalidArgument("attribute ", name, " is no type");
  }
  return value->type();
}

/// Replaces attributes that stand for the function's own (`placeholder`) by what the call says.
absl::Status Substitute(const AttrMap& call, AttrValue* value) {
  if (value->value_case() == AttrValue::kPlaceholder) {
    const AttrValue* actual = FindAttr(call, value->placeholder());
    if (actual == nullptr) {
      return InvalidArgument("attribute ", value->placeholder(), " is missing in the call");
    }
    const AttrValue copy = *actual;
    *value = copy;
  } else if (value->value_case() == AttrValue::kFunc) {
    for (auto& [name, bound] : *value->mutable_func()->mutable_attr()) {
      TROUPE_RETURN_IF_ERROR(Substitute(call, &bound));
    }
  } else if (value->value_case() == AttrValue::kList && value->list().func_size() > 0) {
    for (NameAttrList& function : *value->mutable_list()->mutable_func()) {
      for (auto& [name, bound] : *function.mutable_attr()) {
        TROUPE_RETURN_IF_ERROR(Substitute(call, &bound));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InBody(const NodeDef& node, const absl::Status& status) {
  return WithContext(StrCat("node '", node.name(), "' of the body: "), status);
}

bool IsOneOf(const std::string& op, std::string_view plain, std::string_view ref) {
  return op == plain || op == ref;
}

}  // namespace

// --- the library -------------------------------------------------------------------------------

FunctionLibrary::FunctionLibrary(const FunctionDefLibrary& library, const OpRegistry& ops)
    : ops_(ops) {
  for (const FunctionDef& function : library.function()) {
    functions_.emplace(function.signature().name(), &function);
  }
  for (const GradientDef& gradient : library.gradient()) {
    gradients_.emplace(gradient.function_name(), gradient.gradient_func());
  }
}

const FunctionDef* FunctionLibrary::Find(const std::string& name) const {
  auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

absl::StatusOr<const FunctionDef*> FunctionLibrary::Get(const std::string& name) const {
  if (const FunctionDef* function = Find(name)) return function;
  return absl::NotFoundError(StrCat("function '", name,
                                    "' is not in the library of the graph, which has ",
                                    functions_.size(), " functions"));
}

const std::string& FunctionLibrary::GradientOf(const std::string& name) const {
  static const std::string* const none = new std::string;
  auto found = gradients_.find(name);
  return found == gradients_.end() ? *none : found->second;
}

absl::StatusOr<const OpDef*> FunctionLibrary::Signature(const std::string& op) const {
  if (const FunctionDef* function = Find(op)) return &function->signature();
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration, ops_.LookUp(op));
  return registration->def.get();
}

std::vector<std::string> FunctionLibrary::CalledBy(const NodeDef& node) const {
  std::vector<std::string> called;
  if (functions_.count(node.op()) > 0) called.push_back(node.op());
  for (const auto& [name, value] : node.attr()) {
    if (value.value_case() == AttrValue::kFunc) called.push_back(value.func().name());
    if (value.value_case() == AttrValue::kList) {
      for (const NameAttrList& function : value.list().func()) called.push_back(function.name());
    }
  }
  return called;
}

std::vector<const FunctionDef*> FunctionLibrary::Callees(const FunctionDef& function) const {
  std::vector<const FunctionDef*> callees;
  auto add = [&](const std::string& name) {
    if (const FunctionDef* callee = Find(name)) callees.push_back(callee);
  };
  for (const NodeDef& node : function.node_def()) {
    for (const std::string& called : CalledBy(node)) add(called);
  }
  add(GradientOf(function.signature().name()));
  return callees;
}

FunctionDefLibrary FunctionLibrary::Reachable(const Nodes& nodes, Follow follow, int depth) const {
  std::vector<const FunctionDef*> reached;
  std::unordered_set<const FunctionDef*> seen;
  auto add = [&](const std::string& name) {
    const FunctionDef* function = Find(name);
    if (function != nullptr && seen.insert(function).second) reached.push_back(function);
  };
  auto add_called = [&](const Nodes& callers) {
    for (const NodeDef& node : callers) {
      if (Find(node.op()) == nullptr && !follow(node)) continue;
      for (const std::string& called : CalledBy(node)) add(called);
    }
  };
  add_called(nodes);
  size_t next = 0;  // The first that is not expanded.
  for (; next < reached.size() && depth > 0; --depth) {
    for (const size_t end = reached.size(); next < end; ++next) {
      add_called(reached[next]->node_def());
      add(GradientOf(reached[next]->signature().name()));
    }
  }
  FunctionDefLibrary library;
  for (size_t i = 0; i < reached.size(); ++i) {
    FunctionDef* copy = library.add_function();
    if (i < next) {
      *copy = *reached[i];
    } else {
      *copy->mutable_signature() = reached[i]->signature();
    }
    const std::string& name = copy->signature().name();
    if (const std::string& gradient = GradientOf(name); !gradient.empty()) {
      GradientDef* def = library.add_gradient();
      def->set_function_name(name);
      def->set_gradient_func(gradient);
    }
  }
  return library;
}

FunctionLibrary::Calls FunctionLibrary::CallsOf(const std::string& name) const {
  std::call_once(calls_followed_, [this] { FollowCalls(); });
  auto found = calls_.find(Find(name));
  return found == calls_.end() ? Calls() : found->second;
}

/// By strongly connected components (Tarjan, "Depth-first search and linear graph algorithms",
/// 1972): chains of calls may be long.
void FunctionLibrary::FollowCalls() const {
  struct Visit {
    const FunctionDef* function;
    std::vector<const FunctionDef*> callees;
    size_t number, lowest;  // `lowest`: of what is open and can be reached.
    size_t next = 0;
  };
  std::vector<Visit> path;
  std::vector<const FunctionDef*> open;                    // Seen, but not their whole component.
  std::unordered_map<const FunctionDef*, size_t> numbers;  // Of those seen; of closed ones 0.
  auto enter = [&](const FunctionDef* function) {
    const size_t number = numbers.size() + 1;
    numbers[function] = number;
    path.push_back({function, Callees(*function), number, number});
    open.push_back(function);
    Calls& calls = calls_[function];
    for (const NodeDef& node : function->node_def()) {
      calls.ask_for_devices |= !node.device().empty() || node.op() == "RemoteCall";
    }
  };
  auto leave = [&] {
    const Visit& visit = path.back();
    Calls calls = calls_[visit.function];
    if (visit.lowest == visit.number) {
      const auto begin = std::find(open.rbegin(), open.rend(), visit.function).base() - 1;
      calls.itself |= open.end() - begin > 1;
      for (auto member = begin; member != open.end(); ++member) {
        calls.ask_for_devices |= calls_[*member].ask_for_devices;
      }
      for (auto member = begin; member != open.end(); ++member) {
        calls_[*member] = calls;
        numbers[*member] = 0;
      }
      open.erase(begin, open.end());
    }
    const size_t lowest = visit.lowest;
    path.pop_back();
    if (path.empty()) return;
    path.back().lowest = std::min(path.back().lowest, lowest);
    calls_[path.back().function].ask_for_devices |= calls.ask_for_devices;
  };
  for (const auto& [name, root] : functions_) {
    if (numbers.count(root) == 0) enter(root);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == visit.callees.size()) {
        leave();
        continue;
      }
      const FunctionDef* callee = visit.callees[visit.next++];
      calls_[visit.function].itself |= callee == visit.function;
      auto seen = numbers.find(callee);
      if (seen == numbers.end()) {
        enter(callee);
      } else if (seen->second > 0) {
        visit.lowest = std::min(visit.lowest, seen->second);
      } else {
        calls_[visit.function].ask_for_devices |= calls_[callee].ask_for_devices;
      }
    }
  }
}

// --- types -------------------------------------------------------------------------------------

AttrMap WithDefaults(AttrMap attrs, const OpDef& signature) {
  for (const OpDef::AttrDef& attr : signature.attr()) {
    if (attr.has_default_value()) attrs.insert({attr.name(), attr.default_value()});
  }
  return attrs;
}

absl::StatusOr<std::vector<DataType>> ArgumentTypes(const OpDef::ArgDef& arg,
                                                    const AttrMap& attrs) {
  std::vector<DataType> types;
  if (!arg.type_list_attr().empty()) {
    const AttrValue* list = FindAttr(attrs, arg.type_list_attr());
    if (list == nullptr) return InvalidArgument("attribute ", arg.type_list_attr(), " is missing");
    for (int type : list->list().type()) types.push_back(static_cast<DataType>(type));
    return types;
  }
  DataType type = arg.type();
  if (!arg.type_attr().empty()) {
    TROUPE_ASSIGN_OR_RETURN(type, TypeAttr(arg.type_attr(), attrs));
  }
  int64_t n = 1;
  if (!arg.number_attr().empty()) {
    const AttrValue* value = FindAttr(attrs, arg.number_attr());
    if (value == nullptr) return InvalidArgument("attribute ", arg.number_attr(), " is missing");
    n = value->i();
    if (n < 0 || n > kMaxTensors)
      return InvalidArgument("attribute ", arg.number_attr(), " is ", n);
  }
  types.assign(static_cast<size_t>(n), type);
  return types;
}

// --- bodies ------------------------------------------------------------------------------------

std::string DeviceWithin(const std::string& call, const std::string& node) {
  if (call.empty() || node.empty()) return node.empty() ? call : node;
  const absl::StatusOr<DeviceName> outer = DeviceName::Parse(call);
  const absl::StatusOr<DeviceName> inner = DeviceName::Parse(node);
  // What cannot be read is refused with the whole graph.
  return outer.ok() && inner.ok() ? DeviceName::Override(*outer, *inner).ToString() : node;
}

namespace {

/// One filling in of a body.
class Binder {
 public:
  Binder(const FunctionLibrary& library, const FunctionDef& function, const AttrMap& attrs,
         const BindOptions& options)
      : library_(library),
        function_(function),
        attrs_(WithDefaults(attrs, function.signature())),
        options_(options) {}

  absl::StatusOr<BoundFunction> Run() {
    TROUPE_RETURN_IF_ERROR(BindArguments());
    TROUPE_RETURN_IF_ERROR(NameNodes());
    for (int i = 0; i < function_.node_def_size(); ++i) {
      TROUPE_RETURN_IF_ERROR(FillInputs(function_.node_def(i), &bound_.nodes[i]));
    }
    TROUPE_RETURN_IF_ERROR(BindResults());
    TROUPE_RETURN_IF_ERROR(FindEffects());
    return std::move(bound_);
  }

 private:
  struct Tensors {
    std::vector<std::string> names;
    bool argument = false;
    bool gated = false;
  };

  absl::Status BindArguments() {
    size_t next = 0;
    for (const OpDef::ArgDef& arg : function_.signature().input_arg()) {
      TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> types, ArgumentTypes(arg, attrs_));
      Tensors& tensors = tensors_[arg.name()];
      tensors.argument = true;
      tensors.gated = !types.empty();
      for (DataType type : types) {
        if (next >= options_.arguments.size()) {
          return InvalidArgument("there is no input for argument '", arg.name(), "': there are ",
                                 options_.arguments.size(), " inputs");
        }
        const BoundArgument& given = options_.arguments[next++];
        tensors.names.push_back(given.tensor);
        tensors.gated = tensors.gated && given.gated;
        bound_.arg_types.push_back(type);
      }
    }
    if (next != options_.arguments.size()) {
      return InvalidArgument("there are ", options_.arguments.size(),
                             " inputs, but the function takes ", next);
    }
    return absl::OkStatus();
  }

  /// Names first: nodes of a body stand in any order.
  absl::Status NameNodes() {
    for (const NodeDef& node : function_.node_def()) {
      TROUPE_RETURN_IF_ERROR(InBody(node, NameNode(node)));
    }
    for (NodeDef& node : bound_.nodes) RenameColocation(&node);
    return absl::OkStatus();
  }

  absl::Status NameNode(const NodeDef& node) {
    NodeDef copy = node;
    copy.clear_input();
    for (auto& [name, value] : *copy.mutable_attr()) {
      TROUPE_RETURN_IF_ERROR(Substitute(attrs_, &value));
    }
    copy.set_name(options_.rename(node.name()));
    copy.set_device(DeviceWithin(options_.device, copy.device()));
    TROUPE_ASSIGN_OR_RETURN(const OpDef* op, library_.Signature(node.op()));
    if (!nodes_.emplace(node.name(), copy.name()).second) {
      return InvalidArgument("the body has two nodes of that name");
    }
    const AttrMap attrs = WithDefaults(copy.attr(), *op);
    int port = 0;
    for (const OpDef::ArgDef& output : op->output_arg()) {
      TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> types, ArgumentTypes(output, attrs));
      Tensors& tensors = tensors_[StrCat(node.name(), ":", output.name())];
      for (size_t k = 0; k < types.size(); ++k) {
        tensors.names.push_back(StrCat(copy.name(), ":", port++));
      }
    }
    bound_.nodes.push_back(std::move(copy));
    return absl::OkStatus();
  }

  /// Colocation with a node outside the body means nothing any more.
  void RenameColocation(NodeDef* node) {
    auto found = node->mutable_attr()->find("_class");
    if (found == node->mutable_attr()->end()) return;
    AttrValue renamed;
    for (const std::string& group : found->second.list().s()) {
      if (group.compare(0, 5, "loc:@") != 0) {
        renamed.mutable_list()->add_s(group);
      } else if (auto other = nodes_.find(group.substr(5)); other != nodes_.end()) {
        renamed.mutable_list()->add_s("loc:@" + other->second);
      }
    }
    if (renamed.list().s_size() > 0) {
      found->second = renamed;
    } else {
      node->mutable_attr()->erase("_class");
    }
  }

  absl::Status FillInputs(const NodeDef& from, NodeDef* to) {
    std::vector<std::string> inputs, controls;
    bool held = false;   // The node cannot run unless the body does.
    bool loose = false;  // It takes something that may be there although the body does not run.
    for (const std::string& input : from.input()) {
      const bool control = !input.empty() && input[0] == '^';
      TROUPE_RETURN_IF_ERROR(
          InBody(from, Resolve(input, control ? &controls : &inputs, &held, &loose)));
    }
    if (!held) controls.insert(controls.end(), options_.controls.begin(), options_.controls.end());
    bound_.takes_ungated.push_back(loose);
    to->mutable_input()->Assign(inputs.begin(), inputs.end());
    for (const std::string& control : controls) to->add_input(control);
    return absl::OkStatus();
  }

  /// Appends the tensors that a body's input ("arg", "arg:1", "node:output:0", "^node") stands for.
  absl::Status Resolve(const std::string& input, std::vector<std::string>* result, bool* held,
                       bool* loose) {
    auto use = [&](const Tensors& tensors) {
      (!tensors.argument || tensors.gated ? *held : *loose) = true;
    };
    if (!input.empty() && input[0] == '^') {
      if (auto node = nodes_.find(input.substr(1)); node != nodes_.end()) {
        result->push_back("^" + node->second);
        *held = true;
        return absl::OkStatus();
      }
      auto arg = tensors_.find(input.substr(1));
      if (arg == tensors_.end()) {
        return InvalidArgument("the body has no node '", input.substr(1), "'");
      }
      // Waiting for an argument is waiting for the node that gives it; a branch's argument is there
      // in the other branch as well, so that this alone does not hold the node.
      for (const std::string& tensor : arg->second.names) {
        result->push_back("^" + tensor.substr(0, tensor.rfind(':')));
      }
      return absl::OkStatus();
    }
    if (auto all = tensors_.find(input); all != tensors_.end()) {
      use(all->second);
      result->insert(result->end(), all->second.names.begin(), all->second.names.end());
      return absl::OkStatus();
    }
    const size_t colon = input.rfind(':');
    if (colon != std::string::npos &&
        input.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
        input.size() - colon - 1 > 0 && input.size() - colon - 1 < 8) {
      auto list = tensors_.find(input.substr(0, colon));
      const size_t index = static_cast<size_t>(std::stoul(input.substr(colon + 1)));
      if (list != tensors_.end() && index < list->second.names.size()) {
        use(list->second);
        result->push_back(list->second.names[index]);
        return absl::OkStatus();
      }
    }
    return InvalidArgument("the body has no tensor '", input, "'");
  }

  absl::Status BindResults() {
    bool held, loose;
    for (const OpDef::ArgDef& output : function_.signature().output_arg()) {
      TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> types, ArgumentTypes(output, attrs_));
      auto source = function_.ret().find(output.name());
      if (source == function_.ret().end()) {
        return InvalidArgument("result '", output.name(), "' comes from nowhere");
      }
      std::vector<std::string> tensors;
      const bool control = source->second.compare(0, 1, "^") == 0;
      TROUPE_RETURN_IF_ERROR(WithContext(StrCat("result '", output.name(), "': "),
                                         control
                                             ? InvalidArgument("a control input")
                                             : Resolve(source->second, &tensors, &held, &loose)));
      if (tensors.size() != types.size()) {
        return InvalidArgument("result '", output.name(), "' has ", types.size(),
                               " tensors, but the body gives ", tensors.size());
      }
      bound_.results.insert(bound_.results.end(), tensors.begin(), tensors.end());
      bound_.result_types.insert(bound_.result_types.end(), types.begin(), types.end());
    }
    return absl::OkStatus();
  }

  absl::Status FindEffects() {
    const std::vector<int> depths = LoopDepths();
    std::unordered_set<std::string> wanted;
    for (const auto& [name, node] : function_.control_ret()) {
      if (nodes_.count(node) == 0) {
        return InvalidArgument("control result '", name, "' is node '", node,
                               "', which the body does not have");
      }
      wanted.insert(node);
    }
    for (int i = 0; i < function_.node_def_size(); ++i) {
      const NodeDef& node = function_.node_def(i);
      bound_.effects_may_be_dead |= IsOneOf(node.op(), "Switch", "RefSwitch");
      TROUPE_ASSIGN_OR_RETURN(const OpDef* op, library_.Signature(node.op()));
      if (depths[i] > 0) continue;
      // What a loop does is done when the loop has been left.
      const bool leaves = IsOneOf(node.op(), "Exit", "RefExit");
      if (op->is_stateful() || leaves || wanted.count(node.name()) > 0) {
        bound_.effects.push_back(bound_.nodes[i].name());
      }
    }
    return absl::OkStatus();
  }

  /// How many loops are around the outputs of each node.
  std::vector<int> LoopDepths() const {
    constexpr int kMaxDepth = 64;  // A malformed body may have an Enter in a cycle.
    std::vector<int> depths(static_cast<size_t>(function_.node_def_size()), 0);
    std::vector<int> stack;
    for (int i = 0; i < function_.node_def_size(); ++i) {
      if (!IsOneOf(function_.node_def(i).op(), "Enter", "RefEnter")) continue;
      depths[i] = 1;
      stack.push_back(i);
    }
    if (stack.empty()) return depths;
    std::unordered_map<std::string, std::vector<int>> consumers;
    for (int i = 0; i < function_.node_def_size(); ++i) {
      for (const std::string& input : function_.node_def(i).input()) {
        const size_t begin = input.compare(0, 1, "^") == 0 ? 1 : 0;
        consumers[input.substr(begin, input.find(':') - begin)].push_back(i);
      }
    }
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      auto found = consumers.find(function_.node_def(i).name());
      if (found == consumers.end()) continue;
      for (int next : found->second) {
        const std::string& op = function_.node_def(next).op();
        int depth = depths[i];
        if (IsOneOf(op, "Enter", "RefEnter")) ++depth;
        if (IsOneOf(op, "Exit", "RefExit")) --depth;
        if (depth <= depths[next] || depth > kMaxDepth) continue;
        depths[next] = depth;
        stack.push_back(next);
      }
    }
    return depths;
  }

  const FunctionLibrary& library_;
  const FunctionDef& function_;
  const AttrMap attrs_;
  const BindOptions& options_;
  std::unordered_map<std::string, Tensors> tensors_;    // "arg" or "node:output"
  std::unordered_map<std::string, std::string> nodes_;  // body name to full name
  BoundFunction bound_;
};

}  // namespace

absl::StatusOr<BoundFunction> BindFunction(const FunctionLibrary& library,
                                           const FunctionDef& function, const AttrMap& attrs,
                                           const BindOptions& options) {
  return Binder(library, function, attrs, options).Run();
}

}  // namespace troupe
