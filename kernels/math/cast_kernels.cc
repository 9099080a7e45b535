// Cast.
#include <algorithm>
#include <memory>

#include "devices/quantized.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/cast.h"

namespace troupe {
namespace {

class CastKernel final : public Kernel {
 public:
  CastKernel(simd::UnaryFn cast, simd::UnaryFn truncate, ElementType from, ElementType to)
      : cast_(cast), truncate_(truncate), from_(from), to_(to) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (cast_ == nullptr) {  // Of a type to itself.
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    const char* in = static_cast<const char*>(input.raw_data());
    const int64_t n = input.num_elements();
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0, to_, input.shape()));
    char* out = static_cast<char*>(output->mutable_raw_data());
    if (n == 1 && truncate_ == nullptr) {
      cast_(in, out, 1);
      return absl::OkStatus();
    }
    const int64_t in_size = ElementSize(from_), out_size = ElementSize(to_);
    ctx.ParallelFor(n, KernelContext::GrainFor(0.5), [&](int64_t begin, int64_t end) {
      if (truncate_ == nullptr) {
        cast_(in + begin * in_size, out + begin * out_size, end - begin);
        return;
      }
      constexpr int64_t kBlock = 128;
      alignas(16) char block[kBlock * 16];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t m = std::min(kBlock, end - i);
        truncate_(in + i * in_size, block, m);
        cast_(block, out + i * out_size, m);
      }
    });
    return absl::OkStatus();
  }

 private:
  simd::UnaryFn cast_, truncate_;
  ElementType from_, to_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(KernelConstruction& c) {
  const ElementType from = RemoveRef(c.input_type(0)), to = c.output_type(0);
  if (from == to) return std::make_unique<CastKernel>(nullptr, nullptr, from, to);
  // Quantized numbers are cast as the integers that they are stored as.
  const ElementType stored_from = StorageType(from), stored_to = StorageType(to);
  const simd::UnaryFn cast = FindCast(stored_from, stored_to);
  if (cast == nullptr) {
    return absl::UnimplementedError(absl::StrCat("Cast ", ElementTypeName(from), " to ",
                                                 ElementTypeName(to), " is not supported"));
  }
  const simd::UnaryFn truncate =
      c.Attr<bool>("Truncate") ? FindTruncation(stored_from, stored_to) : nullptr;
  return std::make_unique<CastKernel>(cast, truncate, from, to);
}

REGISTER_KERNEL(KernelSpec("Cast"), MakeCast);

}  // namespace
}  // namespace troupe
