// Sum, Prod, Max, Min, Mean, All, Any, L2Loss.
#include <memory>
#include <vector>

#include "kernels/kernel_registry.h"
#include "kernels/reduce/reduce.h"

namespace troupe {
namespace {

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(KernelConstruction& c, absl::Status* status, Reduction op)
      : loops_(FindReduce(op, RemoveRef(c.input_type(0)))), keep_dims_(c.Attr<bool>("keep_dims")) {
    if (loops_.rows == nullptr) {
      *status = absl::UnimplementedError(
          absl::StrCat(c.op(), " is not defined for ", ElementTypeName(c.input_type(0))));
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ReducedShape reduced,
                            ReduceAlong(input.shape(), ctx.input(1), keep_dims_));
    const auto& [dims, shape] = reduced;
    if (dims.num_reduced() == 1) {  // Every result is an element as it is.
      ctx.PassThrough(0, 0);
      ctx.output(0).set_shape(shape);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), shape));
    return Reduce(ctx, loops_, input.type(), input.raw_data(), dims, output->mutable_raw_data());
  }

 private:
  ReduceLoops loops_;
  bool keep_dims_;
};

template <Reduction kOp>
absl::StatusOr<std::unique_ptr<Kernel>> Make(KernelConstruction& c) {
  absl::Status status;
  auto kernel = std::make_unique<ReduceKernel>(c, &status, kOp);
  if (!status.ok()) return status;
  return std::unique_ptr<Kernel>(std::move(kernel));
}

// Half the sum of squares.
class L2LossKernel final : public Kernel {
 public:
  L2LossKernel(KernelConstruction& c, absl::Status*)
      : loops_(FindReduce(Reduction::kSumOfSquares, RemoveRef(c.input_type(0)))) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ReduceDims dims;
    dims.Add(input.num_elements(), true);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), Shape()));
    // The accumulator is halved before it is rounded to a narrow type.
    if (loops_.acc_type == ElementType::kDouble) {
      double sum = 0;
      TROUPE_RETURN_IF_ERROR(
          ReduceAccumulators(ctx, loops_, input.type(), input.raw_data(), dims, &sum));
      *output->mutable_data<double>() = sum / 2;
      return absl::OkStatus();
    }
    float sum = 0;
    TROUPE_RETURN_IF_ERROR(
        ReduceAccumulators(ctx, loops_, input.type(), input.raw_data(), dims, &sum));
    sum /= 2;
    if (loops_.finish == nullptr) {
      *output->mutable_data<float>() = sum;
    } else {
      loops_.finish(&sum, output->mutable_raw_data(), 1, 1);
    }
    return absl::OkStatus();
  }

 private:
  ReduceLoops loops_;
};

KernelSpec BoolSpec(const char* op) { return KernelSpec(op).Types("Tidx", IndexTypes()); }
KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return BoolSpec(op).Types("T", std::move(types));
}

REGISTER_KERNEL(Spec("Sum", NumberTypes()), Make<Reduction::kSum>);
REGISTER_KERNEL(Spec("Prod", NumberTypes()), Make<Reduction::kProd>);
REGISTER_KERNEL(Spec("Mean", NumberTypes()), Make<Reduction::kMean>);
REGISTER_KERNEL(Spec("Max", RealNumberTypes()), Make<Reduction::kMax>);
REGISTER_KERNEL(Spec("Min", RealNumberTypes()), Make<Reduction::kMin>);
REGISTER_KERNEL(BoolSpec("All"), Make<Reduction::kAll>);
REGISTER_KERNEL(BoolSpec("Any"), Make<Reduction::kAny>);
REGISTER_KERNEL(KernelSpec("L2Loss").Types("T", FloatTypes()), MakeKernel<L2LossKernel>);

}  // namespace
}  // namespace troupe
