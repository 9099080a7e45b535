// Softmax, LogSoftmax, the cross entropies, BiasAdd and BiasAddV1 of GPUs.
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/softmax.h"
#include "kernels/math/bias_format.h"
#include "kernels/math/cross_entropy_shape.h"

namespace troupe::cuda {
namespace {

template <bool kLog>
class SoftmaxKernel final : public OneTypeKernel {
 public:
  SoftmaxKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() < 1) {
      return InvalidArgument("the logits must have at least 1 dimension, got a scalar");
    }
    const void* in = logits.raw_data();
    const int64_t n = logits.num_elements(), cols = logits.dim(logits.rank() - 1);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    if (n == 0) return absl::OkStatus();
    return CudaStatus(
        LaunchSoftmax(kLog, type_, in, output->mutable_raw_data(), n / cols, cols, StreamOf(ctx)),
        "a softmax");
  }
};

/// How an operand that is broadcast to the matrix is read.
RowsOf BroadcastRows(const Tensor& t, const Shape& matrix) {
  const int64_t cols = t.rank() > 0 ? t.dim(t.rank() - 1) : 1;
  const int64_t rows = t.rank() > 1 ? t.dim(0) : 1;
  return {t.raw_data(), rows == 1 && matrix.dim(0) != 1 ? 0 : cols,
          cols == 1 && matrix.dim(1) != 1 ? 0 : 1};
}

class CrossEntropyKernel final : public OneTypeKernel {
 public:
  CrossEntropyKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    const Tensor& labels = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(logits.shape(), labels.shape()));
    if (shape.rank() != 2) {
      return InvalidArgument("logits and labels must have 2 dimensions, or be broadcast to 2; got ",
                             logits.shape().ToString(), " and ", labels.shape().ToString());
    }
    const int64_t rows = shape.dim(0), cols = shape.dim(1);
    const RowsOf x = BroadcastRows(logits, shape), y = BroadcastRows(labels, shape);
    TROUPE_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, logits.type(), Shape({rows})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * backprop, ctx.ForwardOrAllocate(0, 1, logits.type(), shape));
    if (rows == 0) return absl::OkStatus();
    if (cols == 0) {
      return CudaStatus(cudaMemsetAsync(loss->mutable_raw_data(), 0, loss->bytes(), StreamOf(ctx)),
                        "cudaMemsetAsync");
    }
    return CudaStatus(LaunchCrossEntropy(type_, x, y, loss->mutable_raw_data(),
                                         backprop->mutable_raw_data(), rows, cols, StreamOf(ctx)),
                      "a cross entropy");
  }
};

absl::Status BadLabel(const int64_t* values) {
  return InvalidArgument("label ", values[0], " is ", values[1], ", outside the valid range [0, ",
                         values[2], ")");
}

class SparseCrossEntropyKernel final : public OneTypeKernel {
 public:
  SparseCrossEntropyKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    const Tensor& labels = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSparseCrossEntropy(logits.shape(), labels.shape()));
    const int64_t rows = logits.dim(0), cols = logits.dim(1);
    const void* in = logits.raw_data();
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadLabel));
    TROUPE_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, logits.type(), Shape({rows})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * backprop, ctx.ForwardOrAllocate(0, 1));
    if (rows == 0) return absl::OkStatus();
    return CudaStatus(
        LaunchSparseCrossEntropy(type_, labels.type() == ElementType::kInt64, in, labels.raw_data(),
                                 loss->mutable_raw_data(), backprop->mutable_raw_data(), rows, cols,
                                 check, StreamOf(ctx)),
        "a cross entropy");
  }
};

class BiasAddKernel final : public OneTypeKernel, public FusiblePart {
 public:
  BiasAddKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {
    if (status->ok()) *status = ReadBiasFormat(construction, &channels_first_);
    // What is broadcast as operands of sums are.
    if (!channels_first_) Offer(ToFused(BinaryOp::kAdd), type_, type_);
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    TROUPE_RETURN_IF_ERROR(CheckBias(*operands[0], *operands[1], channels_first_));
    return *operands[0];
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckBias(value.shape(), bias.shape(), channels_first_));
    int64_t inner = 1;
    for (int d = ChannelDim(value.shape(), channels_first_) + 1; d < value.rank(); ++d) {
      inner *= value.dim(d);
    }
    const void* in = value.raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    return CudaStatus(
        LaunchBiasAdd(type_, in, bias.raw_data(), output->mutable_raw_data(),
                      output->num_elements(), inner, bias.num_elements(), StreamOf(ctx)),
        "an addition of biases");
  }

 private:
  bool channels_first_ = false;
};

}  // namespace

void RegisterSoftmax(Extension& extension) {
  const auto add = [&extension](const char* op, KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", FloatTypes()), factory);
  };
  add("Softmax", MakeKernel<SoftmaxKernel<false>>);
  add("LogSoftmax", MakeKernel<SoftmaxKernel<true>>);
  add("SoftmaxCrossEntropyWithLogits", MakeKernel<CrossEntropyKernel>);
  extension.Kernel(KernelSpec("SparseSoftmaxCrossEntropyWithLogits")
                       .Device("GPU")
                       .Types("T", FloatTypes())
                       .Types("Tlabels", IndexTypes()),
                   MakeKernel<SparseCrossEntropyKernel>);
  for (const char* op : {"BiasAdd", "BiasAddV1"}) {
    std::vector<ElementType> types = FloatTypes();
    types.push_back(ElementType::kInt32);
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)),
                     MakeKernel<BiasAddKernel>);
  }
}

}  // namespace troupe::cuda
