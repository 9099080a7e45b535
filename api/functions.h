/// Functions: sub-graphs with arguments and results, kept in the graph's library and called from
/// several places, or from themselves.
///
///     Function square = DefineFunction(
///         s, "Square2", {ElementType::kFloat},
///         [](const Scope& s, absl::Span<const Output> args) {
///           return std::vector<Output>{ops::Mul(s, args[0], args[0])};
///         });
///     Output y = Call(s, square, {x})[0];
///
/// Errors go to the scope's status.
#ifndef TROUPE_API_FUNCTIONS_H_
#define TROUPE_API_FUNCTIONS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// An argument of a function. A value; an element type alone is one of any shape.
struct FunctionArg {
  FunctionArg(ElementType t, PartialShape s = PartialShape(), std::string n = "")  // NOLINT
      : type(t), shape(std::move(s)), name(std::move(n)) {}
  ElementType type;
  PartialShape shape;  ///< What the body may rely on; calls are checked as far as they can be.
  std::string name;    ///< "": "arg" and its number.
};

/// A function of a graph's library: what is needed to call it. A value.
struct Function {
  std::string name;  ///< "": its definition has failed.
  std::vector<FunctionArg> args;
  std::vector<ElementType> result_types;
  std::vector<PartialShape> result_shapes;
  bool stateful = false;  ///< It has effects: calls are neither merged nor left out.
};

using FunctionBuilder =
    std::function<std::vector<Output>(const Scope& scope, absl::Span<const Output> args)>;

/// Adds a function called `name` to the library of the scope's graph. `body` is called once, with a
/// scope of a graph of its own: it may call the library's functions, itself included (by name), and
/// uses no tensors but its arguments and what it makes. All its stateful nodes run in every call.
/// InvalidArgument: a name that is taken or malformed; the body's errors, with the function's name.
Function DefineFunction(const Scope& scope, std::string_view name,
                        const std::vector<FunctionArg>& args, const FunctionBuilder& body);

/// The results of a call. InvalidArgument: arguments whose number, types or shapes do not fit.
OutputList Call(const Scope& scope, const Function& function, const InputList& args);
/// A call by name, of a function that is imported, or not yet complete: a recursion. Runs fail with
/// ResourceExhausted when calls are nested too deep.
OutputList Call(const Scope& scope, std::string_view function, const InputList& args,
                const std::vector<ElementType>& result_types, bool stateful = false);

/// Results of one of two functions of the same arguments and results: the op If, or StatelessIf if
/// neither is stateful.
OutputList FunctionalIf(const Scope& scope, const Input& condition, const InputList& args,
                        const Function& if_true, const Function& if_false);
/// The op While (or StatelessWhile): `condition` of the variables gives a scalar bool, `body` their
/// next values.
OutputList FunctionalWhile(const Scope& scope, const InputList& variables,
                           const Function& condition, const Function& body);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_FUNCTIONS_H_
