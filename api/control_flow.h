/// Conditionals and loops, built of the primitive ops (Switch, Merge, Enter, Exit, NextIteration,
/// LoopCond), so that untaken branches cost nothing and several iterations run at once.
///
///     Output y = Cond(s, ops::Less(s, x, 0.0f),
///                     [&](const Scope& s) { return ops::Neg(s, x); },
///                     [&](const Scope& s) { return ops::Sqrt(s, x); });
///
///     OutputList sum = WhileLoop(
///         s, {0, 0.0f},
///         [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], n); },
///         [&](const Scope& s, absl::Span<const Output> v) {
///           return std::vector<Output>{ops::Add(s, v[0], 1), ops::Add(s, v[1], x)};
///         });
///
/// What is inside must be added through the scope that the branch or the body is given: a node that
/// is added through another scope is outside, and runs whether the branch is taken or not. It may
/// use any tensor from outside. Branches and loops nest, and are differentiable. Errors go to the
/// scope's status; after an error, nothing is called and the results are invalid (see
/// `OutputList`). The branches of `Cond`, `Case` and `SwitchCase` say how many results there are:
/// after an error as many as the first branch has given, none if none has been called.
#ifndef TROUPE_API_CONTROL_FLOW_H_
#define TROUPE_API_CONTROL_FLOW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Adds the nodes of a branch and gives its results. A branch that is run for its effect returns a
/// node without outputs, which becomes a scalar bool (the predicate), there when the node has run.
using BranchFunction = std::function<std::vector<Output>(const Scope& scope)>;
using SingleBranchFunction = std::function<Output(const Scope& scope)>;

/// The results of `if_true` or `if_false`, as the scalar bool `predicate` says when the graph runs;
/// only the branch that is taken runs. Both must give as many results, of equal types
/// (InvalidArgument); a result's static shape is what both have in common. Name: "cond".
OutputList Cond(const Scope& scope, const Input& predicate, const BranchFunction& if_true,
                const BranchFunction& if_false);
Output Cond(const Scope& scope, const Input& predicate, const SingleBranchFunction& if_true,
            const SingleBranchFunction& if_false);

/// The first pair whose predicate is true, else `otherwise`: Conds within Conds. Predicates are
/// evaluated whatever the ones before say. Name: "case".
OutputList Case(const Scope& scope, const std::vector<std::pair<Input, BranchFunction>>& cases,
                const BranchFunction& otherwise);
/// The branch that the scalar int32 `index` names; the last one if there is no such branch. Found
/// by halving. Name: "switch_case".
OutputList SwitchCase(const Scope& scope, const Input& index,
                      const std::vector<BranchFunction>& branches);

/// Of the loop's variables at the beginning of an iteration: whether it is run (a scalar bool).
using LoopCondition = std::function<Output(const Scope& scope, absl::Span<const Output> variables)>;
/// Of the loop's variables: their values for the next iteration, as many, of the same types.
using LoopBody =
    std::function<std::vector<Output>(const Scope& scope, absl::Span<const Output> variables)>;

struct WhileOptions {
  /// One shape per variable that all its values have, with unknown sizes where they change; empty:
  /// the shapes of the initial values.
  std::vector<PartialShape> shape_invariants;
  /// Iterations that may run at the same time, at least 1; none waits for another but by data.
  int64_t parallel_iterations = 10;
  /// A scalar int32: the loop ends after so many iterations whatever the condition says.
  std::optional<Input> maximum_iterations;
};

/// Runs `body` as long as `condition` holds; gives the variables' last values. Each of the two is
/// called once, while the graph is built. The scope's control inputs precede the whole loop.
/// InvalidArgument names the variable, both types or shapes and the remedy if the body returns
/// another number of values, another type, or a shape that the invariant does not allow. Name:
/// "while".
OutputList WhileLoop(const Scope& scope, const InputList& variables, const LoopCondition& condition,
                     const LoopBody& body, const WhileOptions& options = {});

/// Tensors that are written one by one, each once, and read or stacked; the state of loops. A value
/// that refers to nodes of the graph: a write gives a TensorArray that has the element in it, so
/// that reads come after the writes that they depend on. In a loop, `flow` is what the loop's
/// variable is:
///
///     TensorArray array(s, n, ElementType::kFloat);
///     OutputList end = WhileLoop(
///         s, {0, array.flow()}, condition,
///         [&](const Scope& s, absl::Span<const Output> v) {
///           TensorArray written = array.WithFlow(v[1]).Write(s, v[0], value);
///           return std::vector<Output>{ops::Add(s, v[0], 1), written.flow()};
///         });
///     Output all = array.WithFlow(end[1]).Stack(s);
///
/// The elements live as long as the step. Errors at run time: an index out of range, an element
/// read before it is written or written twice, shapes that differ (InvalidArgument).
class TensorArray {
 public:
  struct Options {
    bool dynamic_size = false;  ///< Writes past the end make it larger.
    bool clear_after_read = true;
    bool identical_element_shapes = true;
    PartialShape element_shape;
    std::string name;
  };

  TensorArray() = default;
  /// `size`: a scalar int32.
  TensorArray(const Scope& scope, const Input& size, ElementType type, const Options& options);
  TensorArray(const Scope& scope, const Input& size, ElementType type)
      : TensorArray(scope, size, type, Options()) {}

  /// Element `index` (a scalar int32).
  Output Read(const Scope& scope, const Input& index) const;
  TensorArray Write(const Scope& scope, const Input& index, const Input& value) const;
  /// The elements at `indices` (a vector of int32) as rows of one tensor.
  Output Gather(const Scope& scope, const Input& indices) const;
  /// The rows of `value` become the elements at `indices`.
  TensorArray Scatter(const Scope& scope, const Input& indices, const Input& value) const;
  /// All elements as rows of one tensor, and the reverse.
  Output Stack(const Scope& scope) const;
  TensorArray Unstack(const Scope& scope, const Input& value) const;
  /// All elements one after the other along dimension 0, and the reverse: `lengths` (int64) are the
  /// elements' sizes in that dimension.
  Output Concat(const Scope& scope) const;
  TensorArray Split(const Scope& scope, const Input& value, const Input& lengths) const;
  Output Size(const Scope& scope) const;
  /// The elements' memory is given back when this has run.
  Node* Close(const Scope& scope) const;
  /// The array of the elements' gradients; `source` tells calls of gradients apart.
  TensorArray Grad(const Scope& scope, const std::string& source) const;

  /// The same array after what `flow` depends on.
  TensorArray WithFlow(Output flow) const;
  const Output& handle() const { return handle_; }
  const Output& flow() const { return flow_; }
  ElementType type() const { return type_; }
  /// What is known of the elements' shapes: given, or inferred from what has been written.
  PartialShape element_shape() const { return shape_ == nullptr ? PartialShape() : shape_->shape; }

 private:
  struct ElementShape {
    bool same = true;   ///< All elements have one shape.
    bool seen = false;  ///< `shape` says something.
    PartialShape shape;
  };
  TensorArray Written(const Scope& scope, Output flow, const PartialShape& shape) const;

  Output handle_, flow_;
  ElementType type_ = ElementType::kInvalid;
  std::shared_ptr<ElementShape> shape_;  // of all copies
};

struct MapOptions {
  int64_t parallel_iterations = 10;
  /// All results of one position have one shape.
  bool same_shapes = true;
};

/// Of one row of every tensor: the results for it.
using MapFunction =
    std::function<std::vector<Output>(const Scope& scope, absl::Span<const Output> rows)>;
using SingleMapFunction = std::function<Output(const Scope& scope, Output row)>;

/// Applies `function` to the rows (along dimension 0) of `elements`, which have equally many, and
/// stacks the results. `types` are the results' types; empty: those of `elements`. Name: "map".
OutputList MapFn(const Scope& scope, const MapFunction& function, const InputList& elements,
                 const std::vector<ElementType>& types = {}, const MapOptions& options = {});
Output MapFn(const Scope& scope, const SingleMapFunction& function, const Input& elements,
             ElementType type = ElementType::kInvalid, const MapOptions& options = {});

struct ScanOptions {
  int64_t parallel_iterations = 10;
  bool reverse = false;  ///< From the last row to the first. (FoldR does so by itself.)
  bool same_shapes = true;
};

/// Of what has been accumulated and one row of every tensor: the next accumulated values, of the
/// same number, types and shapes.
using FoldFunction = std::function<std::vector<Output>(
    const Scope& scope, absl::Span<const Output> accumulated, absl::Span<const Output> rows)>;
using SingleFoldFunction =
    std::function<Output(const Scope& scope, Output accumulated, Output row)>;

/// function(...function(function(initial, row 0), row 1)..., last row). `initial` empty: the first
/// rows are, and at least one row is needed when the graph runs. Name: "foldl".
OutputList FoldL(const Scope& scope, const FoldFunction& function, const InputList& elements,
                 const InputList& initial = {}, const ScanOptions& options = {});
Output FoldL(const Scope& scope, const SingleFoldFunction& function, const Input& elements,
             const std::optional<Input>& initial = std::nullopt, const ScanOptions& options = {});
/// The same from the last row to the first. Name: "foldr".
OutputList FoldR(const Scope& scope, const FoldFunction& function, const InputList& elements,
                 const InputList& initial = {}, const ScanOptions& options = {});
Output FoldR(const Scope& scope, const SingleFoldFunction& function, const Input& elements,
             const std::optional<Input>& initial = std::nullopt, const ScanOptions& options = {});
/// All accumulated values of FoldL, or with `reverse` of FoldR, stacked: row i is the one after row
/// i of `elements`. Name: "scan".
OutputList Scan(const Scope& scope, const FoldFunction& function, const InputList& elements,
                const InputList& initial = {}, const ScanOptions& options = {});
Output Scan(const Scope& scope, const SingleFoldFunction& function, const Input& elements,
            const std::optional<Input>& initial = std::nullopt, const ScanOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_CONTROL_FLOW_H_
