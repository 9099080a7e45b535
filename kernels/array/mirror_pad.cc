// MirrorPad and its gradient.
#include <complex>
#include <string>
#include <type_traits>

#include "kernels/array/piecewise_copy.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/quantized_types.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"

namespace troupe {
namespace {

/// What is added to one dimension of `inside` elements.
struct Mirror {
  int64_t before, inside, after;
};

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
  CopyPieces(ctx, input, pieces, out);
  return absl::OkStatus();
}

absl::Status MirrorPadGradOp(KernelContext& ctx, int64_t skipped) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto mirrors, ReadMirrors(input, ctx.input(1), true, skipped));
  const int rank = input.rank();
  DimVector dims;
  for (const Mirror& mirror : mirrors) dims.push_back(mirror.inside);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  if (out->num_elements() == 0) return absl::OkStatus();
  // For each place of each dimension where its element is added.
  const DimVector strides = RowMajorStrides(dims);
  absl::InlinedVector<std::vector<int64_t>, 8> offset_of(rank);
  for (int d = 0; d < rank; ++d) {
    const auto& [before, inside, after] = mirrors[d];
    for (int64_t i = -before; i < inside + after; ++i) {
      const int64_t shown = i < 0        ? -i - 1 + skipped
                            : i < inside ? i
                                         : 2 * inside - i - 1 - skipped;
      offset_of[d].push_back(shown * strides[d]);
    }
  }
  return SwitchNumber(input.type(), [&]<typename T>() {
    const T* in = input.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    DimVector at(rank, 0);
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      int64_t offset = 0;
      for (int d = 0; d < rank; ++d) offset += offset_of[d][at[d]];
      if constexpr (std::is_integral_v<T>) {  // Wraps around.
        to[offset] =
            static_cast<T>(static_cast<uint64_t>(to[offset]) + static_cast<uint64_t>(in[i]));
      } else {
        to[offset] = T(to[offset] + in[i]);
      }
      for (int d = rank - 1; d >= 0 && ++at[d] == input.dim(d); --d) at[d] = 0;
    }
    return absl::OkStatus();
  });
}

absl::Status MirrorPad(KernelContext& ctx, const std::string& mode) {
  return MirrorPadOp(ctx, mode == "REFLECT" ? 1 : 0);
}
absl::Status MirrorPadGrad(KernelContext& ctx, const std::string& mode) {
  return MirrorPadGradOp(ctx, mode == "REFLECT" ? 1 : 0);
}

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Types("Tpaddings", IndexTypes());
}

REGISTER_KERNEL(Spec("MirrorPad", WithQuantized(WithString(PlainTypes()))),
                (MakeAttrKernel<MirrorPad, "mode">));
REGISTER_KERNEL(Spec("MirrorPadGrad", NumberTypes()), (MakeAttrKernel<MirrorPadGrad, "mode">));

}  // namespace
}  // namespace troupe
