// Pad, PadV2: a border of constant elements.
#include <algorithm>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

/// Writes the border of a row-major block of shape `dims` (and leaves the inside alone): what lies
/// before, between and after the rows of the inside.
class Border {
 public:
  Border(KernelContext& ctx, const Tensor& value, Tensor* out, const DimVector& before,
         const DimVector& inside)
      : ctx_(ctx), value_(value), out_(out), before_(before), inside_(inside) {}

  void Fill() { FillDim(0, 0, out_->num_elements()); }

 private:
  /// The block of dimensions `d` and after that begins at element `offset` and has `count`
  /// elements.
  void FillDim(int d, int64_t offset, int64_t count) {
    if (d == out_->rank() || count == 0) return;
    const int64_t run = count / out_->dim(d);
    const int64_t begin = offset + before_[d] * run, end = begin + inside_[d] * run;
    Write(offset, begin - offset);
    Write(end, offset + count - end);
    if (!Padded(d + 1)) return;
    for (int64_t at = begin; at < end; at += run) FillDim(d + 1, at, run);
  }
  bool Padded(int from) const {
    for (int d = from; d < out_->rank(); ++d) {
      if (inside_[d] != out_->dim(d)) return true;
    }
    return false;
  }
  void Write(int64_t offset, int64_t count) {
    if (count == 0) return;
    void* to = ElementAt(out_->type(), out_->mutable_raw_data(), offset);
    if (value_.valid()) {
      FillElements(ctx_, out_->type(), to, count, value_.raw_data());
    } else {
      ZeroElements(ctx_, out_->type(), to, count);
    }
  }

  KernelContext& ctx_;
  const Tensor& value_;
  Tensor* out_;
  const DimVector &before_, &inside_;
};

absl::Status Pad(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  const Tensor& paddings = ctx.input(1);
  if (paddings.rank() != 2 || paddings.dim(0) != rank || paddings.dim(1) != 2) {
    return InvalidArgument("paddings must have the shape [", rank, ",2] for an input of shape ",
                           input.shape().ToString(), ", got ", paddings.shape().ToString());
  }
  Tensor value;
  if (ctx.num_inputs() > 2) {
    value = ctx.input(2);
    if (value.rank() != 0) {
      return InvalidArgument("constant_values must be a scalar, got shape ",
                             value.shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector pads, ReadIntegers(paddings, "paddings"));
  DimVector before(rank), inside(input.shape().dims().begin(), input.shape().dims().end());
  DimVector dims(rank);
  bool padded = false;
  for (int d = 0; d < rank; ++d) {
    before[d] = pads[2 * d];
    const int64_t after = pads[2 * d + 1];
    constexpr int64_t kMost = int64_t{1} << 61;
    if (before[d] < 0 || after < 0 || before[d] > kMost || after > kMost) {
      return InvalidArgument("paddings must not be negative (or huge), got ", before[d], " and ",
                             after, " for dimension ", d);
    }
    dims[d] = std::min(inside[d], kMost) + before[d] + after;
    padded = padded || dims[d] != inside[d];
  }
  if (!padded) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  Border(ctx, value, out, before, inside).Fill();
  const DimVector strides = RowMajorStrides(dims);
  int64_t offset = 0;
  for (int d = 0; d < rank; ++d) offset += before[d] * strides[d];
  StridedCopy(ctx, input.type(), inside, ElementAt(input.type(), out->mutable_raw_data(), offset),
              strides, input.raw_data(), RowMajorStrides(inside));
  return absl::OkStatus();
}

REGISTER_KERNELS(KernelSpec("Pad").Types("T", AllTypes()).Types("Tpaddings", IndexTypes()),
                 MakeKernel<Pad>, "PadV2");

}  // namespace
}  // namespace troupe
