// Sum, Mean, EuclideanNorm, Prod, Max, Min, All, Any, L2Loss, BiasAddGrad, TileGrad, ArgMax and
// ArgMin of GPUs.
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/reduce_tensor.h"
#include "kernels/math/bias_format.h"
#include "kernels/reduce/reduce_dims.h"

namespace troupe::cuda {
namespace {

std::vector<ReduceDim> Listed(const ReduceDims& dims) {
  std::vector<ReduceDim> list;
  for (const ReduceDims::Dim& dim : dims.dims()) list.push_back({dim.size, dim.reduced});
  return list;
}

/// Plans for elements at `in`.
ReducePlan PlanFor(const void* in, std::vector<ReduceDim> dims, int64_t size, int64_t acc_size) {
  const bool aligned = reinterpret_cast<uintptr_t>(in) % 16 == 0;
  return PlanReduce(std::move(dims), aligned ? ReducePack(size, acc_size) : 1);
}

absl::StatusOr<Tensor> Scratch(KernelContext& ctx, const ReducePlan& plan, int64_t acc_size) {
  return ctx.AllocateTemp(ElementType::kUint8, Shape({plan.scratch * acc_size}));
}

}  // namespace

absl::Status EnqueueReduce(KernelContext& ctx, ReduceOp op, const Tensor& input,
                           std::vector<ReduceDim> dims, int64_t divisor, Tensor* output) {
  if (output->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(Number type, NumberOf(input.type()));
  int64_t size = ElementSize(input.type());
  if (op == ReduceOp::kSum && (type == Number::kComplex64 || type == Number::kComplex128)) {
    type = type == Number::kComplex64 ? Number::kFloat : Number::kDouble;
    size /= 2;
    dims.push_back({2, false});
    if (divisor == 0) divisor = 1;  // The mean of nothing is 0, as in TensorFlow.
  }
  const int64_t acc_size = AccSize(type, size);
  const ReducePlan plan = PlanFor(input.raw_data(), std::move(dims), size, acc_size);
  TROUPE_ASSIGN_OR_RETURN(Tensor scratch, Scratch(ctx, plan, acc_size));
  const ReduceCall call{type, input.raw_data(), output->mutable_raw_data(),
                        scratch.mutable_raw_data(), divisor};
  return CudaStatus(LaunchReduce(op, call, plan, StreamOf(ctx)), "a reduction");
}

namespace {

template <ReduceOp kOp, bool kMean = false>
class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(KernelConstruction& construction, absl::Status*)
      : keep_dims_(construction.Attr<bool>("keep_dims")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ReducedShape reduced,
                            ReduceAlong(input.shape(), ctx.input(1), keep_dims_));
    if (reduced.dims.num_reduced() == 1 &&
        kOp != ReduceOp::kNorm) {  // Every result is an element as it is.
      ctx.PassThrough(0, 0);
      ctx.output(0).set_shape(reduced.output);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), reduced.output));
    return EnqueueReduce(ctx, kOp, input, Listed(reduced.dims),
                         kMean ? reduced.dims.num_reduced() : 1, output);
  }

 private:
  const bool keep_dims_;
};

absl::Status L2Loss(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), Shape()));
  return EnqueueReduce(ctx, ReduceOp::kSumOfSquares, input, {{input.num_elements(), true}}, 2,
                       output);
}

class BiasAddGradKernel final : public Kernel {
 public:
  BiasAddGradKernel(KernelConstruction& construction, absl::Status* status) {
    *status = ReadBiasFormat(construction, &channels_first_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(0);
    if (gradient.rank() < 2) {
      return InvalidArgument("the gradient must have at least 2 dimensions, got ",
                             gradient.shape().ToString());
    }
    const int channel = ChannelDim(gradient.shape(), channels_first_);
    std::vector<ReduceDim> dims;
    for (int d = 0; d < gradient.rank(); ++d) dims.push_back({gradient.dim(d), d != channel});
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, gradient.type(), Shape({gradient.dim(channel)})));
    return EnqueueReduce(ctx, ReduceOp::kSum, gradient, std::move(dims), 1, output);
  }

 private:
  bool channels_first_ = false;
};

class TileGradKernel final : public Kernel {
 public:
  TileGradKernel(KernelConstruction&, absl::Status*) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ReducedShape reduced, ReduceTiles(input.shape(), ctx.input(1)));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), reduced.output));
    return EnqueueReduce(ctx, ReduceOp::kSum, input, Listed(reduced.dims), 1, output);
  }
};

template <bool kLargest>
class ArgKernel final : public OneTypeKernel {
 public:
  ArgKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status), output_type_(construction.output_type(0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const int64_t dimension, ReadIntegerScalar(ctx.input(1), "dimension"));
    TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dimension, input.rank(), "dimension"));
    if (input.dim(axis) == 0) {
      return InvalidArgument("reduction axis ", axis, " is empty in shape ",
                             input.shape().ToString());
    }
    Shape shape = input.shape();
    shape.RemoveDim(axis);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, output_type_, shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    std::vector<ReduceDim> dims;
    for (int d = 0; d < input.rank(); ++d) dims.push_back({input.dim(d), d == axis});
    const ReducePlan plan =
        PlanFor(input.raw_data(), std::move(dims), ElementSize(input.type()), kArgAccSize);
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch, Scratch(ctx, plan, kArgAccSize));
    const ReduceCall call{type_, input.raw_data(), output->mutable_raw_data(),
                          scratch.mutable_raw_data()};
    return CudaStatus(
        LaunchArg(kLargest, output_type_ == ElementType::kInt64, call, plan, StreamOf(ctx)),
        "a reduction");
  }

 private:
  const ElementType output_type_;
};

}  // namespace

void RegisterReduce(Extension& extension) {
  const auto with = [](std::vector<ElementType> types, std::initializer_list<ElementType> more) {
    types.insert(types.end(), more);
    return types;
  };
  const auto reduce = [&extension](const char* op, std::vector<ElementType> types,
                                   KernelFactory factory) {
    KernelSpec spec = KernelSpec(op).Device("GPU").HostMemory("reduction_indices");
    if (!types.empty()) spec.Types("T", std::move(types));
    extension.Kernel(spec, factory);
  };
  const std::vector<ElementType> ordered = with(FloatTypes(), {ElementType::kInt64});
  reduce("Sum", with(FloatAndComplexTypes(), {ElementType::kInt64}),
         MakeKernel<ReduceKernel<ReduceOp::kSum>>);
  reduce("Mean", FloatAndComplexTypes(), MakeKernel<ReduceKernel<ReduceOp::kSum, true>>);
  reduce("EuclideanNorm", FloatAndComplexTypes(), MakeKernel<ReduceKernel<ReduceOp::kNorm>>);
  reduce("Prod", with(FloatAndComplexTypes(), {ElementType::kInt64}),
         MakeKernel<ReduceKernel<ReduceOp::kProd>>);
  reduce("Max", ordered, MakeKernel<ReduceKernel<ReduceOp::kMax>>);
  reduce("Min", ordered, MakeKernel<ReduceKernel<ReduceOp::kMin>>);
  reduce("All", {}, MakeKernel<ReduceKernel<ReduceOp::kAll>>);
  reduce("Any", {}, MakeKernel<ReduceKernel<ReduceOp::kAny>>);
  extension.Kernel(KernelSpec("L2Loss").Device("GPU").Types("T", FloatTypes()), MakeKernel<L2Loss>);
  extension.Kernel(KernelSpec("BiasAddGrad").Device("GPU").Types("T", FloatTypes()),
                   MakeKernel<BiasAddGradKernel>);
  extension.Kernel(KernelSpec("TileGrad")
                       .Device("GPU")
                       .Types("T", with(FloatAndComplexTypes(), {ElementType::kInt64}))
                       .HostMemory("multiples"),
                   MakeKernel<TileGradKernel>);
  const auto arg = [&](const char* op, KernelFactory factory) {
    extension.Kernel(KernelSpec(op)
                         .Device("GPU")
                         .Types("T", with(FloatTypes(), {ElementType::kBool}))
                         .Types("output_type", IndexTypes())
                         .HostMemory("dimension"),
                     factory);
  };
  arg("ArgMax", MakeKernel<ArgKernel<true>>);
  arg("ArgMin", MakeKernel<ArgKernel<false>>);
}

}  // namespace troupe::cuda
