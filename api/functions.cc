#include "api/functions.h"

#include "api/ops.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/function_body.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

AttrValue FunctionAttr(std::string_view name) {
  AttrValue value;
  value.mutable_func()->set_name(std::string(name));
  return value;
}

std::vector<ElementType> TypesOf(const std::vector<FunctionArg>& args) {
  std::vector<ElementType> types;
  for (const FunctionArg& arg : args) types.push_back(arg.type);
  return types;
}

std::string List(const std::vector<ElementType>& types) {
  std::string text;
  for (ElementType type : types) text += StrCat(text.empty() ? "" : ", ", ElementTypeName(type));
  return StrCat("(", text, ")");
}

/// Checks arguments against a function; `*relies` becomes true if the body's shapes hold for them.
absl::Status CheckArgs(const Function& function, const std::vector<Output>& args, bool* relies) {
  if (function.name.empty()) {
    return InvalidArgument("the function to be called has not been defined");
  }
  if (args.size() != function.args.size()) {
    return InvalidArgument("function '", function.name, "' takes ", function.args.size(),
                           " arguments but is given ", args.size());
  }
  *relies = true;
  for (size_t i = 0; i < args.size(); ++i) {
    const FunctionArg& arg = function.args[i];
    if (!args[i].valid()) {
      return InvalidArgument("argument ", i, " of function '", function.name, "' is no tensor");
    }
    if (args[i].type() != arg.type) {
      return InvalidArgument("argument ", i, " of function '", function.name, "' is ",
                             ElementTypeName(arg.type), ", but '", args[i].name(), "' is ",
                             ElementTypeName(args[i].type()));
    }
    absl::StatusOr<PartialShape> merged = args[i].shape().MergeWith(arg.shape);
    if (!merged.ok()) {
      return InvalidArgument("argument ", i, " of function '", function.name, "' has the shape ",
                             arg.shape.ToString(), ", but '", args[i].name(), "' has ",
                             args[i].shape().ToString());
    }
    *relies = *relies && *merged == args[i].shape();
  }
  return absl::OkStatus();
}

/// A node's outputs; `n` invalid ones if there is no node.
OutputList OutputsOf(Node* node, size_t n) {
  if (node == nullptr) return OutputList(n);
  OutputList outputs;
  for (int i = 0; i < node->num_outputs(); ++i) outputs.emplace_back(node, i);
  return outputs;
}

void Refine(const Scope& scope, const std::vector<Output>& outputs,
            const std::vector<PartialShape>& shapes) {
  for (size_t i = 0; i < outputs.size() && i < shapes.size(); ++i) {
    scope.UpdateStatus(scope.graph()->RefineShape(outputs[i], shapes[i]));
  }
}

absl::StatusOr<Function> Define(const Scope& scope, std::string_view name,
                                const std::vector<FunctionArg>& args, const FunctionBuilder& body) {
  Graph& graph = *scope.graph();
  auto inner = std::make_shared<Graph>(graph.ops());
  if (body == nullptr) return InvalidArgument("it has no body");
  TROUPE_RETURN_IF_ERROR(inner->AddLibrary(graph.library()));
  const int num_functions = inner->library().function_size();
  const int num_gradients = inner->library().gradient_size();
  const Scope inside{inner};
  Function function;
  function.name = name;
  function.args = args;
  std::vector<Output> inputs;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string arg = args[i].name.empty() ? StrCat("arg", i) : args[i].name;
    inputs.push_back(
        ops::Placeholder(inside.WithOpName(arg), args[i].type, {.shape = args[i].shape}));
  }
  TROUPE_RETURN_IF_ERROR(inside.status());
  const std::vector<Output> results = body(inside, inputs);
  TROUPE_RETURN_IF_ERROR(inside.status());

  FunctionDefOptions options;
  for (Node* node : inner->nodes()) {
    if (node->id() < 2 || !node->stateful()) continue;
    options.control_outputs.push_back(node);
    function.stateful = true;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].valid() || results[i].node->num_outputs() == 0) {
      return InvalidArgument("result ", i, " is no tensor");
    }
    options.output_names.push_back(StrCat("result", i));
    function.result_types.push_back(results[i].type());
    function.result_shapes.push_back(results[i].shape());
  }
  // What the body has brought, and itself: each of the others would be compared.
  FunctionDefLibrary library;
  const FunctionDefLibrary& all = inner->library();
  for (int i = num_functions; i < all.function_size(); ++i) {
    *library.add_function() = all.function(i);
  }
  for (int i = num_gradients; i < all.gradient_size(); ++i) {
    *library.add_gradient() = all.gradient(i);
  }
  TROUPE_ASSIGN_OR_RETURN(*library.add_function(),
                          GraphToFunctionDef(*inner, name, inputs, results, options));
  TROUPE_RETURN_IF_ERROR(graph.AddLibrary(library));
  return function;
}

}  // namespace

Function DefineFunction(const Scope& scope, std::string_view name,
                        const std::vector<FunctionArg>& args, const FunctionBuilder& body) {
  if (!scope.ok()) return {};
  absl::StatusOr<Function> function = Define(scope, name, args, body);
  if (function.ok()) return *std::move(function);
  scope.UpdateStatus(WithContext(StrCat("function '", name, "': "), function.status()));
  return {};
}

OutputList Call(const Scope& scope, std::string_view function, const InputList& args,
                const std::vector<ElementType>& result_types, bool stateful) {
  const std::vector<Output> inputs = args.ToOutputs(scope.WithOpName(""));
  const Scope named = scope.op_name().empty() ? scope.WithOpName(function) : scope;
  Node* node = named.AddNode(stateful ? "StatefulPartitionedCall" : "PartitionedCall",
                             [&](ScopedSpec& spec) {
                               spec.Input(absl::MakeConstSpan(inputs));
                               spec.Attr("Tout", absl::MakeConstSpan(result_types));
                               spec.Attr("f", FunctionAttr(function));
                             });
  return OutputsOf(node, result_types.size());
}

OutputList Call(const Scope& scope, const Function& function, const InputList& args) {
  const std::vector<Output> inputs = args.ToOutputs(scope.WithOpName(""));
  bool relies = false;
  if (scope.ok()) scope.UpdateStatus(CheckArgs(function, inputs, &relies));
  if (!scope.ok()) return OutputList(function.result_types.size());
  OutputList results = Call(scope, function.name, inputs, function.result_types, function.stateful);
  if (relies && scope.ok()) Refine(scope, results, function.result_shapes);
  return results;
}

OutputList FunctionalIf(const Scope& scope, const Input& condition, const InputList& args,
                        const Function& if_true, const Function& if_false) {
  const Output pred = condition.ToOutput(scope);
  const std::vector<Output> inputs = args.ToOutputs(scope.WithOpName(""));
  bool relies = false;
  for (const Function* branch : {&if_true, &if_false}) {
    if (scope.ok()) scope.UpdateStatus(CheckArgs(*branch, inputs, &relies));
  }
  if (scope.ok() && if_true.result_types != if_false.result_types) {
    scope.UpdateStatus(InvalidArgument(
        "FunctionalIf: function '", if_true.name, "' gives ", List(if_true.result_types), " but '",
        if_false.name, "' gives ", List(if_false.result_types), "; both must give the same types"));
  }
  const bool stateful = if_true.stateful || if_false.stateful;
  Node* node = scope.AddNode(stateful ? "If" : "StatelessIf", [&](ScopedSpec& spec) {
    spec.Input(pred);
    spec.Input(absl::MakeConstSpan(inputs));
    spec.Attr("Tout", absl::MakeConstSpan(if_true.result_types));
    spec.Attr("then_branch", FunctionAttr(if_true.name));
    spec.Attr("else_branch", FunctionAttr(if_false.name));
  });
  return OutputsOf(node, if_true.result_types.size());
}

OutputList FunctionalWhile(const Scope& scope, const InputList& variables,
                           const Function& condition, const Function& body) {
  const std::vector<Output> inputs = variables.ToOutputs(scope.WithOpName(""));
  bool relies = false;
  for (const Function* part : {&condition, &body}) {
    if (scope.ok()) scope.UpdateStatus(CheckArgs(*part, inputs, &relies));
  }
  if (scope.ok() && condition.result_types != std::vector<ElementType>{ElementType::kBool}) {
    scope.UpdateStatus(InvalidArgument("FunctionalWhile: the condition '", condition.name,
                                       "' must give one bool, but gives ",
                                       List(condition.result_types)));
  }
  if (scope.ok() && body.result_types != TypesOf(body.args)) {
    scope.UpdateStatus(InvalidArgument("FunctionalWhile: the body '", body.name, "' takes ",
                                       List(TypesOf(body.args)), " but gives ",
                                       List(body.result_types), "; variables keep their types"));
  }
  // A variable's shape is that of its values in all iterations: what the body takes.
  std::vector<PartialShape> shapes;
  for (const FunctionArg& arg : body.args) shapes.push_back(arg.shape);
  const bool stateful = condition.stateful || body.stateful;
  Node* node = scope.AddNode(stateful ? "While" : "StatelessWhile", [&](ScopedSpec& spec) {
    spec.Input(absl::MakeConstSpan(inputs));
    spec.Attr("cond", FunctionAttr(condition.name));
    spec.Attr("body", FunctionAttr(body.name));
    spec.Attr("output_shapes", absl::MakeConstSpan(shapes));
  });
  return OutputsOf(node, variables.size());
}

}  // namespace troupe
