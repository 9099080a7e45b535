// Gradients through Switch and Merge: what comes from one branch is merged with zeros from the
// others, what goes into one is switched there.
#include <algorithm>
#include <limits>

#include "devices/status_macros.h"
#include "graph/gradients/differentiation.h"
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

PartialShape KnownShape(Output like) {
  if (like.type() != ElementType::kResource) return like.shape();
  const HandleShapes& handle = like.node->output_handle(like.index);
  return handle.empty() ? PartialShape() : handle[0].second;
}

/// Merge of tensors of which one is alive.
Output MergeAlive(GradientBuilder& g, const std::vector<Output>& tensors,
                  const PartialShape& shape) {
  const Output merge = OfLists(g, "Merge", {tensors});
  if (merge.valid()) g.Fail(g.graph()->RefineShape(merge, shape));
  return merge;
}

}  // namespace

absl::StatusOr<Output> Differentiation::ShapeFor(Output like, const Path& path, BackFrame* back) {
  GradientBuilder g(graph_, prefix_, back->place());
  const PartialShape known = KnownShape(like);
  Output shape;
  if (known.fully_known()) {
    std::vector<int32_t> sizes;
    for (const int64_t size : known.dims()) {
      sizes.push_back(
          static_cast<int32_t>(std::min<int64_t>(size, std::numeric_limits<int32_t>::max())));
    }
    shape = g.IntVector(sizes);
  } else if (like.type() == ElementType::kResource) {
    TROUPE_ASSIGN_OR_RETURN(Output handle, back->Gate(g.Value(like), path));
    shape = g.Op("VariableShape", {handle});
    TROUPE_RETURN_IF_ERROR(g.status());
    return shape;
  } else {
    shape = g.Value(g.Shape(like));
  }
  TROUPE_RETURN_IF_ERROR(g.status());
  return back->Gate(shape, path);
}

absl::StatusOr<Output> Differentiation::ZerosFor(Output like, ElementType type, const Path& path,
                                                 BackFrame* back) {
  GradientBuilder g(graph_, prefix_, back->place());
  if (type == ElementType::kVariant) {
    Output value = g.Value(like);
    TROUPE_RETURN_IF_ERROR(g.status());
    TROUPE_ASSIGN_OR_RETURN(value, back->Gate(value, path));
    const Output zeros = g.Op("ZerosLike", {value});
    TROUPE_RETURN_IF_ERROR(g.status());
    return zeros;
  }
  const PartialShape known = KnownShape(like);
  const Output zero = g.ScalarOfType(type, 0);
  TROUPE_RETURN_IF_ERROR(g.status());
  if (known.fully_known() && known.rank() == 0) return back->Gate(zero, path);
  // The shape is switched, not the zeros: they are made only where they are used.
  TROUPE_ASSIGN_OR_RETURN(const Output shape, ShapeFor(like, path, back));
  const Output zeros = g.Op("Fill", {shape, zero});
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_RETURN_IF_ERROR(graph_->RefineShape(zeros, known));
  return zeros;
}

absl::StatusOr<Gradient> Differentiation::MergeBranches(Output to, std::vector<Gradient> branches,
                                                        const Path& outer, Output pred,
                                                        BackFrame* back) {
  const PartialShape known = KnownShape(to);
  GradientBuilder g(graph_, StrCat(prefix_, "/", to.node->name(), "_grad"), back->place());
  bool sparse = !known.unknown_rank() && known.rank() > 0;
  for (int d = 1; sparse && d < known.rank(); ++d) sparse = known.dim(d) >= 0;
  ElementType type = ElementType::kFloat, index_type = ElementType::kInt32;
  for (const Gradient& branch : branches) {
    if (!branch.valid()) continue;
    sparse &= branch.sparse();
    type = branch.values.type();
    if (branch.sparse() && branch.indices.type() == ElementType::kInt64) {
      index_type = ElementType::kInt64;
    }
  }
  std::vector<Output> values, indices;
  for (size_t i = 0; i < branches.size(); ++i) {
    // A predicate that is dead outside `outer` makes what it switches so.
    Path path = Difference(outer, state_->PathOf(pred));
    path.push_back(Branch{pred, static_cast<int>(i), static_cast<int>(branches.size())});
    Gradient& branch = branches[i];
    if (sparse && branch.valid()) {
      values.push_back(branch.values);
      indices.push_back(Cast(g, branch.indices, index_type));
    } else if (sparse) {
      Shape rows({0});
      for (int d = 1; d < known.rank(); ++d) rows.AddDim(known.dim(d));
      const Tensor nothing = Tensor::Uninitialized(type, rows);
      TROUPE_ASSIGN_OR_RETURN(Output no_rows, back->Gate(g.Const(nothing), path));
      const Tensor none = Tensor::Uninitialized(index_type, Shape({0}));
      TROUPE_ASSIGN_OR_RETURN(Output no_indices, back->Gate(g.Const(none), path));
      values.push_back(no_rows);
      indices.push_back(no_indices);
    } else if (branch.valid()) {
      values.push_back(g.Dense(branch));
    } else {
      TROUPE_ASSIGN_OR_RETURN(Output zeros, ZerosFor(to, type, path, back));
      values.push_back(zeros);
    }
  }
  TROUPE_RETURN_IF_ERROR(g.status());
  if (!sparse) {
    const Output merged =
        MergeAlive(g, values, type == ElementType::kVariant ? PartialShape() : known);
    TROUPE_RETURN_IF_ERROR(g.status());
    return Gradient(merged);
  }
  std::vector<int64_t> dims(known.dims().begin(), known.dims().end());
  dims[0] = -1;
  TROUPE_ASSIGN_OR_RETURN(const Output shape, ShapeFor(to, {}, back));
  Gradient merged(MergeAlive(g, values, PartialShape(dims)),
                  MergeAlive(g, indices, PartialShape({-1})), shape);
  TROUPE_RETURN_IF_ERROR(g.status());
  return merged;
}

absl::StatusOr<Gradient> Differentiation::Lift(Output to, Gradient grad, const Path& extra,
                                               BackFrame* back) {
  for (size_t i = extra.size(); i-- > 0;) {
    std::vector<Gradient> branches(extra[i].count);
    branches[extra[i].index] = grad;
    Path outer = state_->PathOf(to);
    outer.insert(outer.end(), extra.begin(), extra.begin() + static_cast<std::ptrdiff_t>(i));
    TROUPE_ASSIGN_OR_RETURN(grad,
                            MergeBranches(to, std::move(branches), outer, extra[i].pred, back));
  }
  return grad;
}

absl::Status Differentiation::SwitchGradient(Visit& visit, BackFrame* back) {
  Node* node = visit.node;
  if (state_->flow.frame(state_->flow.FrameOf(node)).loop_cond == InputOf(node, 1).node &&
      back != base_.get()) {
    return absl::UnimplementedError(
        StrCat("cannot differentiate through node '", node->name(), "' (op ", node->op(),
               "): what it passes on to the body of loop '",
               state_->flow.frame(state_->flow.FrameOf(node)).name,
               "' is computed from a loop variable by the part that decides whether to go on"));
  }
  const Output data = InputOf(node, 0);
  const Path path = state_->PathOfNode(node);
  const Output pred = state_->flow.Origin(node->input(1));
  for (const Branch& branch : path) {
    // Within a branch of the same predicate only one output is ever alive.
    if (branch.pred != pred) continue;
    const Gradient& grad = visit.grads[branch.index];
    return grad.valid() ? Send(data, grad, path, back) : absl::OkStatus();
  }
  const std::vector<Gradient> branches(visit.grads.begin(), visit.grads.end());
  TROUPE_ASSIGN_OR_RETURN(const Gradient merged, MergeBranches(data, branches, path, pred, back));
  return Send(data, merged, path, back);
}

absl::Status Differentiation::MergeGradient(Visit& visit, BackFrame* back) {
  Node* node = visit.node;
  const Gradient& grad = visit.grads[0];
  if (!grad.valid()) return absl::OkStatus();
  const Path path = state_->PathOfNode(node);
  GradientBuilder g(graph_, ScopeOf(node), back->place());
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output input = InputOf(node, i);
    if (Source(node, i) == nullptr) continue;
    Path inner = state_->PathOf(input);
    Path extra = Difference(inner, path);
    if (extra.empty()) {
      // Which branch this input comes from cannot be seen: ask the Merge.
      const Output is = g.Op("Equal", {Output(node, 1), g.Scalar<int32_t>(i)});
      TROUPE_RETURN_IF_ERROR(g.status());
      extra = inner = {Branch{is, 1, 2}};
    }
    Gradient gated = grad;
    TROUPE_ASSIGN_OR_RETURN(gated.values, back->Gate(grad.values, extra));
    if (grad.sparse()) {
      TROUPE_ASSIGN_OR_RETURN(gated.indices, back->Gate(grad.indices, extra));
      TROUPE_ASSIGN_OR_RETURN(gated.dense_shape, ShapeFor(input, {}, back));
    }
    TROUPE_RETURN_IF_ERROR(AboutNode(node, Send(input, gated, inner, back)));
  }
  return absl::OkStatus();
}

}  // namespace troupe::gradients
