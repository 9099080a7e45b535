// Cast of GPUs from and to floats of 8 bits and integers of 4.
#include "kernels/cuda/narrow_cast.h"

#include <optional>
#include <vector>

#include "devices/narrow_types.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/kernel_registry.h"

namespace troupe::cuda {
namespace {

std::optional<Narrow> NarrowOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E5m2:
      return Narrow::kFloat8E5m2;
    case ElementType::kFloat8E4m3fn:
      return Narrow::kFloat8E4m3fn;
    case ElementType::kInt4:
      return Narrow::kInt4;
    case ElementType::kUint4:
      return Narrow::kUint4;
    default:
      return std::nullopt;
  }
}

/// The conversion goes by way of the float or the integer that a narrow number is, as on the CPU:
/// in one launch where the other type is one of these or, of floats, a floating-point one.
class NarrowCast final : public Kernel {
 public:
  NarrowCast(KernelConstruction& construction, absl::Status*)
      : from_(construction.input_type(0)),
        to_(construction.output_type(0)),
        truncate_(construction.Attr<bool>("Truncate")) {}

  absl::Status Compute(KernelContext& ctx) override {
    if (from_ == to_) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, to_, x.shape()));
    if (x.num_elements() == 0) return absl::OkStatus();
    const std::optional<Narrow> from = NarrowOf(from_), to = NarrowOf(to_);
    if (from && to) {
      return Launched(LaunchNarrowToNarrow(*from, *to, truncate_, x.raw_data(),
                                           y->mutable_raw_data(), x.num_elements(), StreamOf(ctx)));
    }
    return from ? FromNarrow(ctx, *from, x, y) : ToNarrow(ctx, *to, x, y);
  }

 private:
  static absl::Status Launched(cudaError_t error) { return CudaStatus(error, "a conversion"); }

  absl::Status FromNarrow(KernelContext& ctx, Narrow from, const Tensor& x, Tensor* y) const {
    const ElementType via = !IsFloat8(from)   ? ElementType::kInt32
                            : IsFloating(to_) ? to_
                                              : ElementType::kFloat;
    Tensor wide = *y;
    if (via != to_) {
      TROUPE_ASSIGN_OR_RETURN(wide, ctx.AllocateTemp(via, x.shape()));
    }
    TROUPE_ASSIGN_OR_RETURN(const Number number, NumberOf(via));
    TROUPE_RETURN_IF_ERROR(Launched(LaunchWiden(from, number, x.raw_data(), wide.mutable_raw_data(),
                                                x.num_elements(), StreamOf(ctx))));
    return via == to_ ? absl::OkStatus() : Convert(ctx, wide, y);
  }

  absl::Status ToNarrow(KernelContext& ctx, Narrow to, const Tensor& x, Tensor* y) const {
    const ElementType via = !IsFloat8(to)                       ? ElementType::kInt32
                            : IsFloating(from_)                 ? from_
                            : from_ == ElementType::kComplex128 ? ElementType::kDouble
                                                                : ElementType::kFloat;
    Tensor wide = x;
    if (via != from_) {
      TROUPE_ASSIGN_OR_RETURN(wide, ctx.AllocateTemp(via, x.shape()));
      TROUPE_RETURN_IF_ERROR(Convert(ctx, x, &wide));
    }
    TROUPE_ASSIGN_OR_RETURN(const Number number, NumberOf(via));
    // Only floating-point numbers are cut off.
    return Launched(LaunchNarrow(number, to, truncate_ && via == from_, wide.raw_data(),
                                 y->mutable_raw_data(), x.num_elements(), StreamOf(ctx)));
  }

  static absl::Status Convert(KernelContext& ctx, const Tensor& x, Tensor* y) {
    TROUPE_ASSIGN_OR_RETURN(const Number from, NumberOf(x.type()));
    TROUPE_ASSIGN_OR_RETURN(const Number to, NumberOf(y->type()));
    return Launched(LaunchCast(from, to, /*truncate=*/false, x.raw_data(), y->mutable_raw_data(),
                               x.num_elements(), StreamOf(ctx)));
  }

  const ElementType from_, to_;
  const bool truncate_;
};

}  // namespace

void RegisterNarrowCast(Extension& extension) {
  const std::vector<ElementType> narrow(std::begin(kNarrowTypes), std::end(kNarrowTypes));
  std::vector<ElementType> all = PlainTypes();
  all.insert(all.end(), narrow.begin(), narrow.end());
  const auto add = [&](const std::vector<ElementType>& from, const std::vector<ElementType>& to) {
    extension.Kernel(KernelSpec("Cast").Device("GPU").Types("SrcT", from).Types("DstT", to),
                     MakeKernel<NarrowCast>);
  };
  add(narrow, all);
  add(PlainTypes(), narrow);
}

}  // namespace troupe::cuda
