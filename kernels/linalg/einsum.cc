// Einsum: an operand is a view of its tensor with a stride for each label; repeated labels
// have added strides. Two views are multiplied as batches of matrices: in place where their
// strides allow it, else after a copy. Labels of one operand alone are summed over first.
#include "kernels/linalg/einsum.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/einsum_equation.h"
#include "kernels/common/strided_copy.h"
#include "kernels/kernel_registry.h"

namespace troupe::einsum {
namespace {

struct LabeledAxis {
  int label;
  int64_t size, stride;
};
using AxisList = absl::InlinedVector<LabeledAxis, 8>;

/// Elements of a buffer, with one axis for each label.
struct LabeledView {
  const LabeledAxis* Find(int label) const {
    for (const LabeledAxis& axis : axes) {
      if (axis.label == label) return &axis;
    }
    return nullptr;
  }
  int64_t SizeOf(int label) const {
    const LabeledAxis* axis = Find(label);
    return axis == nullptr ? 1 : axis->size;
  }
  /// 0 where the label is not there.
  int64_t StrideOf(int label) const {
    const LabeledAxis* axis = Find(label);
    return axis == nullptr ? 0 : axis->stride;
  }
  AxisList axes;
};

using Labels = absl::InlinedVector<int, 8>;

int64_t Count(const Labels& labels, const LabeledView& view) {
  int64_t count = 1;
  for (const int label : labels) count *= view.SizeOf(label);
  return count;
}

bool Contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The view of a whole tensor. InvalidArgument if a repeated label has two sizes.
absl::StatusOr<LabeledView> ViewOf(const Shape& shape, absl::Span<const int> labels) {
  LabeledView view;
  const DimVector strides = RowMajorStrides(shape.dims());
  for (int d = 0; d < shape.rank(); ++d) {
    auto axis = std::find_if(view.axes.begin(), view.axes.end(),
                             [&](const LabeledAxis& other) { return other.label == labels[d]; });
    if (axis == view.axes.end()) {
      view.axes.push_back({labels[d], shape.dim(d), strides[d]});
      continue;
    }
    if (axis->size != shape.dim(d)) {
      return InvalidArgument("Einsum: dimension ", d, " of the operand of shape ", shape.ToString(),
                             " must be of size ", axis->size, ", as the other one with its label");
    }
    axis->stride += strides[d];
  }
  return view;
}

/// A contiguous view with these labels, which must be in `like`.
LabeledView Contiguous(const Labels& labels, const LabeledView& like) {
  LabeledView view;
  int64_t stride = 1;
  for (auto it = labels.rbegin(); it != labels.rend(); ++it) {
    view.axes.insert(view.axes.begin(), {*it, like.SizeOf(*it), stride});
    stride *= like.SizeOf(*it);
  }
  return view;
}

/// Copies the elements of `labels` from one view to the other.
void CopyView(KernelContext& ctx, ElementType type, const Labels& labels, const LabeledView& to,
              void* dst, const LabeledView& from, const void* src) {
  DimVector dims, dst_strides, src_strides;
  for (const int label : labels) {
    dims.push_back(to.SizeOf(label));
    dst_strides.push_back(to.StrideOf(label));
    src_strides.push_back(from.StrideOf(label));
  }
  StridedCopy(ctx, type, dims, dst, dst_strides, src, src_strides);
}

/// The stride by which all elements of `labels`, in this order, follow one another, if there is
/// one; nullopt if not. 1 for no more than one element.
std::optional<int64_t> CommonStride(const Labels& labels, const LabeledView& view) {
  int64_t stride = 1, next = -1;
  for (auto it = labels.rbegin(); it != labels.rend(); ++it) {
    const LabeledAxis* axis = view.Find(*it);
    const int64_t size = axis == nullptr ? 1 : axis->size;
    if (size == 1) continue;
    if (next == -1) {
      stride = axis->stride;
    } else if (axis->stride != next) {
      return std::nullopt;
    }
    next = axis->stride * size;
  }
  return stride;
}

/// Whether there is one element for each combination of `labels`, one after the other.
bool IsContiguous(const Labels& labels, const LabeledView& view) {
  return CommonStride(labels, view) == 1;
}

/// An operand with its elements, which may be in a buffer of its own.
struct Operand {
  LabeledView view;
  Tensor tensor;
};

/// Makes the operand contiguous, in the order of `labels`, unless it is already.
absl::Status Arrange(KernelContext& ctx, const Labels& labels, Operand* operand) {
  const LabeledView arranged = Contiguous(labels, operand->view);
  const ElementType type = operand->tensor.type();
  TROUPE_ASSIGN_OR_RETURN(Tensor copy,
                          ctx.AllocateTemp(type, Shape({Count(labels, operand->view)})));
  CopyView(ctx, type, labels, arranged, copy.mutable_raw_data(), operand->view,
           operand->tensor.raw_data());
  operand->view = arranged;
  operand->tensor = std::move(copy);
  return absl::OkStatus();
}

/// Sums over the labels of the operand that are not among `kept`.
absl::Status SumOver(KernelContext& ctx, const Labels& kept, Operand* operand) {
  Labels stay, gone;
  for (const LabeledAxis& axis : operand->view.axes) {
    (Contains(kept, axis.label) ? stay : gone).push_back(axis.label);
  }
  if (gone.empty()) return absl::OkStatus();
  Labels all = stay;
  all.insert(all.end(), gone.begin(), gone.end());
  const int64_t rows = Count(stay, operand->view), terms = Count(gone, operand->view);
  if (!IsContiguous(all, operand->view)) {
    TROUPE_RETURN_IF_ERROR(Arrange(ctx, all, operand));
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(operand->tensor.type(), Shape({rows})));
  TROUPE_RETURN_IF_ERROR(SumRows(ctx, rows, terms, operand->tensor, &sums));
  operand->view = Contiguous(stay, operand->view);
  operand->tensor = std::move(sums);
  return absl::OkStatus();
}

/// How the labels of two operands go together.
struct Contraction {
  Labels batch;          ///< In both and in the result; a size of 1 in one of them is repeated.
  Labels rows, columns;  ///< In one operand and in the result, in its order.
  Labels sums;           ///< In both, not in the result.
};

Contraction Classify(const LabeledView& a, const LabeledView& b, const LabeledView& result) {
  Contraction c;
  for (const LabeledAxis& axis : result.axes) {
    const int64_t in_a = a.SizeOf(axis.label), in_b = b.SizeOf(axis.label);
    // What is repeated in one operand only is a row, or a column, of the other.
    const bool has_a = a.Find(axis.label) != nullptr && (in_a > 1 || axis.size == 1);
    const bool has_b = b.Find(axis.label) != nullptr && (in_b > 1 || axis.size == 1);
    (has_a && has_b ? c.batch : has_b ? c.columns : c.rows).push_back(axis.label);
  }
  for (const LabeledAxis& axis : a.axes) {
    if (result.Find(axis.label) == nullptr) c.sums.push_back(axis.label);
  }
  return c;
}

/// How the matrices of `labels` lie in the operands and the result; what an operand has one of is
/// repeated.
absl::InlinedVector<BatchDim, 8> BatchOf(const Labels& labels, const LabeledView& sizes,
                                         const LabeledView& a, const LabeledView& b,
                                         const LabeledView& c) {
  absl::InlinedVector<BatchDim, 8> batch;
  for (const int label : labels) {
    const auto step = [label](const LabeledView& view) {
      return view.SizeOf(label) == 1 ? 0 : view.StrideOf(label);
    };
    batch.push_back({sizes.SizeOf(label), step(a), step(b), step(c)});
  }
  return batch;
}

/// Whether a matrix of these rows and columns can be multiplied where it is: one of its strides is
/// 1. Sets both.
bool IsMatrix(const Labels& rows, const Labels& columns, const LabeledView& view, int64_t* row,
              int64_t* column) {
  const std::optional<int64_t> r = CommonStride(rows, view), c = CommonStride(columns, view);
  if (!r.has_value() || !c.has_value()) return false;
  *row = *r;
  *column = *c;
  // The stride of a single row or column is free.
  if (*row != 1 && *column != 1 && Count(rows, view) == 1) *row = 1;
  if (*row != 1 && *column != 1 && Count(columns, view) == 1) *column = 1;
  return (*row == 1 || *column == 1) && *row > 0 && *column > 0;
}

/// Brings an operand into a form in which it is matrices of `rows` and `columns`.
absl::Status MakeMatrices(KernelContext& ctx, const Contraction& c, const Labels& rows,
                          const Labels& columns, Operand* operand, int64_t* row, int64_t* column) {
  if (IsMatrix(rows, columns, operand->view, row, column)) return absl::OkStatus();
  Labels all;
  for (const Labels* labels : {&c.batch, &rows, &columns}) {
    for (const int label : *labels) {
      if (operand->view.Find(label) != nullptr) all.push_back(label);
    }
  }
  TROUPE_RETURN_IF_ERROR(Arrange(ctx, all, operand));
  IsMatrix(rows, columns, operand->view, row, column);
  return absl::OkStatus();
}

/// The sums ordered as they are in the operand's memory: so it is less often copied.
void OrderAs(const LabeledView& view, Labels* labels) {
  std::stable_sort(labels->begin(), labels->end(),
                   [&](int x, int y) { return view.StrideOf(x) > view.StrideOf(y); });
}

/// The product element by element of operands that have the labels of the result, with its sizes.
absl::Status MultiplyViews(KernelContext& ctx, const Labels& labels, Operand a, Operand b,
                           const LabeledView& result, Tensor* out) {
  for (Operand* operand : {&a, &b}) {
    if (!IsContiguous(labels, operand->view)) {
      TROUPE_RETURN_IF_ERROR(Arrange(ctx, labels, operand));
    }
  }
  const int64_t count = Count(labels, result);
  if (IsContiguous(labels, result)) {
    return MultiplyElements(ctx, count, a.tensor, b.tensor, out);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor product, ctx.AllocateTemp(out->type(), Shape({count})));
  TROUPE_RETURN_IF_ERROR(MultiplyElements(ctx, count, a.tensor, b.tensor, &product));
  CopyView(ctx, out->type(), labels, result, out->mutable_raw_data(), Contiguous(labels, result),
           product.raw_data());
  return absl::OkStatus();
}

/// The product of two operands, written to `out`. A label that is in one of them alone must be in
/// the result.
absl::Status Contract(KernelContext& ctx, Operand a, Operand b, const LabeledView& result,
                      Tensor* out) {
  Contraction c = Classify(a.view, b.view, result);
  if (Count(c.rows, result) * Count(c.columns, result) * Count(c.sums, a.view) == 1) {
    return MultiplyViews(ctx, c.batch, std::move(a), std::move(b), result, out);
  }
  // The larger operand keeps its order.
  const bool a_is_larger = a.tensor.num_elements() >= b.tensor.num_elements();
  OrderAs(a_is_larger ? a.view : b.view, &c.sums);
  // The result's rows should not be what is contiguous there.
  if (!c.rows.empty() && !c.columns.empty() &&
      result.StrideOf(c.rows.back()) < result.StrideOf(c.columns.back())) {
    std::swap(a, b);
    std::swap(c.rows, c.columns);
  }
  Products form;
  form.m = Count(c.rows, result);
  form.n = Count(c.columns, result);
  form.k = Count(c.sums, a.view);
  TROUPE_RETURN_IF_ERROR(MakeMatrices(ctx, c, c.rows, c.sums, &a, &form.a_row, &form.a_column));
  TROUPE_RETURN_IF_ERROR(MakeMatrices(ctx, c, c.sums, c.columns, &b, &form.b_row, &form.b_column));

  const std::optional<int64_t> row = CommonStride(c.rows, result);
  const std::optional<int64_t> column = CommonStride(c.columns, result);
  if (row.has_value() && column == 1) {
    form.c_row = *row;
    form.batch = BatchOf(c.batch, result, a.view, b.view, result);
    return Multiply(ctx, form, a.tensor, b.tensor, out);
  }
  Labels all = c.batch;
  for (const Labels* labels : {&c.rows, &c.columns}) {
    all.insert(all.end(), labels->begin(), labels->end());
  }
  const LabeledView arranged = Contiguous(all, result);
  form.c_row = form.n;
  form.batch = BatchOf(c.batch, result, a.view, b.view, arranged);
  TROUPE_ASSIGN_OR_RETURN(Tensor product,
                          ctx.AllocateTemp(out->type(), Shape({Count(all, result)})));
  TROUPE_RETURN_IF_ERROR(Multiply(ctx, form, a.tensor, b.tensor, &product));
  CopyView(ctx, out->type(), all, result, out->mutable_raw_data(), arranged, product.raw_data());
  return absl::OkStatus();
}

class EinsumKernel : public Kernel {
 public:
  EinsumKernel(KernelConstruction& construction, absl::Status* status) {
    *status = Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const Plan plan, PlanFor(ctx));
    const Tensor& first = ctx.input(0);
    if (plan.is_identity) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, first.type(), plan.shape));
    return out->num_elements() == 0 ? absl::OkStatus() : Fill(ctx, plan, out);
  }

 private:
  struct Plan {
    absl::InlinedVector<LabeledView, 2> inputs;
    LabeledView result;
    Shape shape;
    bool is_identity = false;
    bool has_gaps = false;  ///< Repeated labels: most elements of the result are zero.
    bool is_empty_sum = false;
  };

  absl::Status Init(KernelConstruction& construction) {
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("equation", &text_));
    TROUPE_ASSIGN_OR_RETURN(equation_, EinsumEquation::Parse(text_));
    if (static_cast<int>(equation_.inputs.size()) == construction.num_inputs()) {
      return absl::OkStatus();
    }
    return InvalidArgument("Einsum: '", text_, "' is about ", equation_.inputs.size(),
                           " operands, there are ", construction.num_inputs());
  }

  /// Labels of the two operands must have one size; those of an ellipsis may be 1 in one.
  absl::Status CheckSizes(KernelContext& ctx, const Plan& plan) const {
    if (plan.inputs.size() < 2) return absl::OkStatus();
    for (const LabeledAxis& axis : plan.inputs[0].axes) {
      const LabeledAxis* other = plan.inputs[1].Find(axis.label);
      if (other == nullptr || other->size == axis.size) continue;
      if (axis.label < 0 && (axis.size == 1 || other->size == 1)) continue;
      return InvalidArgument("Einsum: the sizes ", axis.size, " and ", other->size,
                             " of one label of '", text_, "' differ, for operands of shapes ",
                             ctx.input(0).shape().ToString(), " and ",
                             ctx.input(1).shape().ToString());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Plan> PlanFor(KernelContext& ctx) const {
    Plan plan;
    int ellipsis_rank = 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& shape = ctx.input(i).shape();
      const EinsumTerm& term = equation_.inputs[i];
      TROUPE_ASSIGN_OR_RETURN(const std::vector<int> labels, term.LabelsOf(shape.rank()));
      ellipsis_rank = std::max(ellipsis_rank, shape.rank() - static_cast<int>(term.before.size()) -
                                                  static_cast<int>(term.after.size()));
      TROUPE_ASSIGN_OR_RETURN(LabeledView view, ViewOf(shape, labels));
      plan.inputs.push_back(std::move(view));
    }
    TROUPE_RETURN_IF_ERROR(CheckSizes(ctx, plan));
    const EinsumTerm& output = equation_.output;
    if (ellipsis_rank > 0 && !output.ellipsis) {
      return InvalidArgument("Einsum: the result of '", text_, "' must have an ellipsis for the ",
                             ellipsis_rank, " dimensions that are broadcast");
    }
    const int rank = static_cast<int>(output.before.size() + output.after.size()) + ellipsis_rank;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> labels, output.LabelsOf(rank));
    DimVector dims;
    for (const int label : labels) {
      int64_t size = 1;  // A size of 1 is repeated, even for 0 elements.
      for (const LabeledView& input : plan.inputs) {
        if (input.SizeOf(label) != 1) size = input.SizeOf(label);
      }
      dims.push_back(size);
    }
    TROUPE_ASSIGN_OR_RETURN(plan.shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(plan.result, ViewOf(plan.shape, labels));
    plan.has_gaps = plan.result.axes.size() < labels.size();
    for (const LabeledView& input : plan.inputs) {
      for (const LabeledAxis& axis : input.axes) {
        if (axis.size == 0 && plan.result.Find(axis.label) == nullptr) plan.is_empty_sum = true;
      }
    }
    plan.is_identity =
        ctx.num_inputs() == 1 && !plan.has_gaps && ctx.input(0).shape() == plan.shape &&
        equation_.inputs[0].text == output.text && plan.inputs[0].axes.size() == labels.size();
    return plan;
  }

  /// Computes the result in `out`, of the type of the inputs.
  absl::Status Fill(KernelContext& ctx, const Plan& plan, Tensor* out) const {
    if (plan.has_gaps || plan.is_empty_sum) {
      ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    }
    if (plan.is_empty_sum) return absl::OkStatus();
    absl::InlinedVector<Operand, 2> operands(plan.inputs.size());
    Labels kept;
    for (const LabeledAxis& axis : plan.result.axes) kept.push_back(axis.label);
    for (size_t i = 0; i < operands.size(); ++i) {
      operands[i].view = plan.inputs[i];
      operands[i].tensor = ctx.input(static_cast<int>(i));
      Labels needed = kept;
      if (operands.size() == 2) {
        for (const LabeledAxis& axis : plan.inputs[1 - i].axes) needed.push_back(axis.label);
      }
      TROUPE_RETURN_IF_ERROR(SumOver(ctx, needed, &operands[i]));
    }
    if (operands.size() == 1) {
      CopyView(ctx, out->type(), kept, plan.result, out->mutable_raw_data(), operands[0].view,
               operands[0].tensor.raw_data());
      return absl::OkStatus();
    }
    return Contract(ctx, std::move(operands[0]), std::move(operands[1]), plan.result, out);
  }

  std::string text_;
  EinsumEquation equation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Make(KernelConstruction& construction) {
  return MakeKernel<EinsumKernel>(construction);
}

}  // namespace troupe::einsum
