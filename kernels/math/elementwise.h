/// Kernels that apply one function to every element.
#ifndef TROUPE_KERNELS_MATH_ELEMENTWISE_H_
#define TROUPE_KERNELS_MATH_ELEMENTWISE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "kernels/simd/table.h"

namespace troupe {

/// out[i] = fn(in[i]). The output may take the input's buffer over.
class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(simd::UnaryFn fn, ElementType output_type, double cost)
      : fn_(fn), output_type_(output_type), grain_(KernelContext::GrainFor(cost)) {}
  absl::Status Compute(KernelContext& ctx) override;

 private:
  simd::UnaryFn fn_;
  ElementType output_type_;
  int64_t grain_;
};

/// out[i] = fn(a[i], b[i]) of two inputs of as many elements (gradients of element-wise functions);
/// the output has the first one's shape. `same_shape`: the shapes must be equal, too.
class SameSizeKernel final : public Kernel {
 public:
  SameSizeKernel(simd::BinaryFn fn, bool same_shape, double cost)
      : fn_(fn), grain_(KernelContext::GrainFor(cost)), same_shape_(same_shape) {}
  absl::Status Compute(KernelContext& ctx) override;

 private:
  simd::BinaryFn fn_;
  int64_t grain_;
  bool same_shape_;
};

/// What a binary kernel says of an element that has no result.
enum class BinaryError : uint8_t {
  kNone,
  kDivisionByZero,
  kTruncatedDivisionByZero,
  kNegativePower
};

/// Status for `error` if `failed` is not 0.
absl::Status BinaryStatus(BinaryError error, uint32_t failed);

/// Applies a binary function to two inputs broadcast against each other.
class BinaryKernel final : public Kernel {
 public:
  /// `unequal_shapes` < 0: shapes that do not fit are an error; otherwise the output is then a
  /// scalar bool of that value.
  BinaryKernel(simd::BinaryFns fns, ElementType input_type, ElementType output_type, double cost,
               BinaryError error, int unequal_shapes)
      : fns_(fns),
        grain_(KernelContext::GrainFor(cost)),
        input_type_(input_type),
        output_type_(output_type),
        error_(error),
        unequal_shapes_(static_cast<int8_t>(unequal_shapes)) {}
  absl::Status Compute(KernelContext& ctx) override;

 private:
  absl::Status Broadcast(KernelContext& ctx);

  simd::BinaryFns fns_;
  int64_t grain_;
  ElementType input_type_, output_type_;
  BinaryError error_;
  int8_t unequal_shapes_;
};

/// out = fn(a, b) with a and b of shapes that broadcast to `out`'s; all plain or string elements of
/// `type`. Returns what the function returned. `out` may be the operand that has its shape.
uint32_t BroadcastBinary(KernelContext& ctx, const simd::BinaryFns& fns, int64_t grain,
                         const Tensor& a, const Shape& a_shape, const Tensor& b,
                         const Shape& b_shape, const Shape& out_shape, Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_ELEMENTWISE_H_
