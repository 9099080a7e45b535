/// Element-wise kernels of GPUs that can be fused.
#ifndef TROUPE_KERNELS_CUDA_FUSED_KERNELS_H_
#define TROUPE_KERNELS_CUDA_FUSED_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/shape.h"
#include "kernels/cuda/fused.h"
#include "kernels/fusible.h"

namespace troupe::cuda {

/// What such a kernel is, besides. It does not offer itself unless it is told to.
class FusiblePart : public FusibleKernel {
 public:
  const void* family() const final;
  std::shared_ptr<Kernel> Fuse(const FusedCalls& calls) const final;

  /// The output's shape, to which all operands can be broadcast; the kernel's own error.
  virtual absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const = 0;
  FusedOp op() const { return op_; }
  Number from() const { return from_; }
  Number to() const { return to_; }
  bool swapped() const { return swapped_; }
  /// Of an operand: a kSelect's first one is a bool.
  Number TypeOfOperand(int k) const {
    return op_ == FusedOp::kSelect && k == 0 ? Number::kBool : from_;
  }

 protected:
  /// Of one or two operands, three of a kSelect, or a kAdd of any number, which is rounded once.
  /// `swapped`: the function takes the second one first.
  void Offer(FusedOp op, Number from, Number to, bool swapped = false) {
    op_ = op;
    from_ = from;
    to_ = to;
    swapped_ = swapped;
    offered_ = true;
  }

 private:
  bool offered_ = false, swapped_ = false;
  FusedOp op_ = FusedOp::kRound;
  Number from_ = Number::kFloat, to_ = Number::kFloat;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FUSED_KERNELS_H_
