// MirrorPad and its gradient.
#include <string>

#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/array/piecewise_copy.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {
namespace {

/// `padded`: the tensor is the padded one.
absl::StatusOr<absl::InlinedVector<Mirror, 8>> ReadMirrors(const Tensor& tensor,
                                                           const Tensor& paddings, bool padded,
                                                           int64_t skipped) {
  if (paddings.rank() != 2 || paddings.dim(0) != tensor.rank() || paddings.dim(1) != 2) {
    return InvalidArgument("paddings must have the shape [", tensor.rank(),
                           ",2] for an input of shape ", tensor.shape().ToString(), ", got ",
                           paddings.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector pads, ReadIntegers(paddings, "paddings"));
  absl::InlinedVector<Mirror, 8> mirrors;
  for (int d = 0; d < tensor.rank(); ++d) {
    const int64_t before = pads[2 * d], after = pads[2 * d + 1], size = tensor.dim(d);
    bool fits = before >= 0 && after >= 0;
    // Neither is more than the size: the sum does not overflow.
    fits = fits && before <= size && after <= size && (!padded || before + after <= size);
    const int64_t inside = fits && padded ? size - before - after : size;
    fits = fits && before <= inside - skipped && after <= inside - skipped;
    // Nothing may be added to nothing; the gradient of that TensorFlow refuses.
    if (!fits && (padded || before != 0 || after != 0)) {
      return InvalidArgument("paddings ", before, " and ", after, " of dimension ", d,
                             " must not be negative nor more than there is to be mirrored: the ",
                             padded ? "padded " : "", "size is ", size);
    }
    mirrors.push_back({before, inside, after});
  }
  return mirrors;
}

/// `skipped`: elements at either end that are not repeated, 1 for REFLECT.
absl::Status MirrorPadOp(KernelContext& ctx, int64_t skipped) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto mirrors, ReadMirrors(input, ctx.input(1), false, skipped));
  DimVector dims;
  absl::InlinedVector<DimPieces, 8> pieces;
  for (const auto& [before, inside, after] : mirrors) {
    dims.push_back(before + inside + after);
    DimPieces& of_dim = pieces.emplace_back();
    if (before > 0) of_dim.push_back({0, before - 1 + skipped, before, -1});
    if (inside > 0) of_dim.push_back({before, 0, inside, 1});
    if (after > 0) of_dim.push_back({before + inside, inside - 1 - skipped, after, -1});
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  return CopyPieces(ctx, input, pieces, out);
}

absl::Status MirrorPadGradOp(KernelContext& ctx, int64_t skipped) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto mirrors, ReadMirrors(input, ctx.input(1), true, skipped));
  DimVector dims;
  for (const Mirror& mirror : mirrors) dims.push_back(mirror.inside);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  return AddMirrored(ctx, mirrors, skipped, input, out);
}

}  // namespace

absl::Status MirrorPad(KernelContext& ctx, const std::string& mode) {
  return MirrorPadOp(ctx, mode == "REFLECT" ? 1 : 0);
}
absl::Status MirrorPadGrad(KernelContext& ctx, const std::string& mode) {
  return MirrorPadGradOp(ctx, mode == "REFLECT" ? 1 : 0);
}

}  // namespace troupe::layout
