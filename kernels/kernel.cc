#include "kernels/kernel.h"

#include <algorithm>

#include "devices/cpu/compute_pool.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

inline absl::StatusOr<Tensor*> AllocateIn(Allocator* allocator, ElementType type,
                                          const Shape& shape, Tensor* out) {
  RefPtr<Buffer> buffer = Buffer::Allocate(allocator, type, shape.num_elements());
  if (!buffer) [[unlikely]] {
    // Tries once more, for the message.
    absl::StatusOr<Tensor> tensor = Tensor::Allocate(type, shape, allocator);
    if (!tensor.ok()) return tensor.status();
    *out = *std::move(tensor);
    return out;
  }
  void* data = buffer->data();
  *out = Tensor(type, shape, std::move(buffer), data);
  return out;
}

}  // namespace

absl::StatusOr<Tensor*> KernelContext::AllocateOutput(int i, ElementType type, const Shape& shape) {
  return AllocateIn(step_->allocator, type, shape, &outputs_[i].tensor);
}

absl::StatusOr<Tensor*> KernelContext::AllocateHostOutput(int i, ElementType type,
                                                          const Shape& shape) {
  return AllocateIn(HostAllocator(), type, shape, &outputs_[i].tensor);
}

absl::StatusOr<Tensor*> KernelContext::ForwardOrAllocate(int in, int out, ElementType type,
                                                         const Shape& shape) {
  if (CanForward(in)) {
    Tensor& source = slots_[input_slots_[in]].tensor;
    if (source.num_elements() == shape.num_elements() &&
        (source.type() == type || (IsPlain(type) && IsPlain(source.type()) &&
                                   ElementSize(source.type()) == ElementSize(type)))) {
      // The input stays readable: kernels fetch its address and shape after this call, too.
      Tensor* result = &outputs_[out].tensor;
      void* data = source.mutable_raw_data();
      *result = Tensor(type, shape, source.ReleaseBuffer(), data);
      return result;
    }
  }
  return AllocateOutput(out, type, shape);
}

absl::StatusOr<Tensor*> KernelContext::ForwardEitherOrAllocate(int in_a, int in_b, int out,
                                                               ElementType type,
                                                               const Shape& shape) {
  const Tensor& a = input(in_a);
  const bool take_a = CanForward(in_a) && a.num_elements() == shape.num_elements() &&
                      ElementSize(a.type()) == ElementSize(type);
  return ForwardOrAllocate(take_a ? in_a : in_b, out, type, shape);
}

void KernelContext::ParallelFor(int64_t total, int64_t grain,
                                absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (total <= grain) {
    body(0, total);
  } else if (step_->pool != nullptr) {
    step_->pool->ParallelFor(total, grain, body);
  } else {
    for (int64_t begin = 0; begin < total; begin += grain) {
      body(begin, begin + std::min(grain, total - begin));
    }
  }
}

int64_t KernelContext::GrainFor(double nanoseconds) {
  constexpr double kPiece = 20000;
  return std::max<int64_t>(1, static_cast<int64_t>(kPiece / std::max(nanoseconds, 1e-3)));
}

const std::string& KernelConstruction::node_name() const { return attrs_.def().name(); }
const std::string& KernelConstruction::op() const { return attrs_.def().op(); }

}  // namespace troupe
