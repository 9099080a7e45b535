// Element-wise ops of GPUs.
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"

namespace troupe::cuda {
namespace {

template <UnaryOp kOp>
class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    return CudaStatus(LaunchUnary(kOp, type_, x.raw_data(), y->mutable_raw_data(),
                                  y->num_elements(), StreamOf(ctx)),
                      "an element-wise kernel");
  }

 private:
  Number type_ = Number::kFloat;
};

template <BinaryOp kOp>
class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }
  absl::Status Compute(KernelContext& ctx) override {
    // What the inputs are, before one of them becomes the output.
    const Shape a = ctx.input(0).shape(), b = ctx.input(1).shape();
    const void *a_data = ctx.input(0).raw_data(), *b_data = ctx.input(1).raw_data();
    const ElementType type = ctx.input(0).type();
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(a, b));
    TROUPE_ASSIGN_OR_RETURN(const Broadcast broadcast, Walk(shape, a, b));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardEitherOrAllocate(0, 1, 0, type, shape));
    return CudaStatus(LaunchBinary(kOp, type_, a_data, b_data, out->mutable_raw_data(),
                                   out->num_elements(), broadcast, StreamOf(ctx)),
                      "an element-wise kernel");
  }

 private:
  static absl::StatusOr<Broadcast> Walk(const Shape& out, const Shape& a, const Shape& b) {
    const BroadcastWalk walk(out, {&a, &b});
    Broadcast broadcast;
    if (walk.outer().size() >= Broadcast::kMaxRank) {
      return absl::UnimplementedError(StrCat("broadcasting ", a.ToString(), " and ", b.ToString(),
                                             " has more than ", Broadcast::kMaxRank,
                                             " dimensions that differ"));
    }
    const auto add = [&broadcast](int64_t size, int64_t a_stride, int64_t b_stride) {
      broadcast.sizes[broadcast.rank] = size;
      broadcast.strides[0][broadcast.rank] = a_stride;
      broadcast.strides[1][broadcast.rank++] = b_stride;
    };
    for (const BroadcastWalk::Dim& dim : walk.outer()) {
      add(dim.size, dim.strides[0], dim.strides[1]);
    }
    add(walk.run_length(), walk.run_step(0), walk.run_step(1));
    return broadcast;
  }

  Number type_ = Number::kFloat;
};

std::vector<ElementType> Reals() { return FloatTypes(); }
std::vector<ElementType> RealsAndInt64() {
  std::vector<ElementType> types = FloatTypes();
  types.push_back(ElementType::kInt64);
  return types;
}

}  // namespace

void RegisterElementwise(Extension& extension) {
  const auto add = [&extension](const char* op, std::vector<ElementType> types,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)), factory);
  };
  add("Abs", RealsAndInt64(), MakeKernel<UnaryKernel<UnaryOp::kAbs>>);
  add("Neg", RealsAndInt64(), MakeKernel<UnaryKernel<UnaryOp::kNeg>>);
  add("Relu", RealsAndInt64(), MakeKernel<UnaryKernel<UnaryOp::kRelu>>);
  add("Sign", RealsAndInt64(), MakeKernel<UnaryKernel<UnaryOp::kSign>>);
  add("Square", RealsAndInt64(), MakeKernel<UnaryKernel<UnaryOp::kSquare>>);
  add("Ceil", Reals(), MakeKernel<UnaryKernel<UnaryOp::kCeil>>);
  add("Cos", Reals(), MakeKernel<UnaryKernel<UnaryOp::kCos>>);
  add("Erf", Reals(), MakeKernel<UnaryKernel<UnaryOp::kErf>>);
  add("Exp", Reals(), MakeKernel<UnaryKernel<UnaryOp::kExp>>);
  add("Expm1", Reals(), MakeKernel<UnaryKernel<UnaryOp::kExpm1>>);
  add("Floor", Reals(), MakeKernel<UnaryKernel<UnaryOp::kFloor>>);
  add("Inv", Reals(), MakeKernel<UnaryKernel<UnaryOp::kInv>>);
  add("Reciprocal", Reals(), MakeKernel<UnaryKernel<UnaryOp::kInv>>);
  add("Log", Reals(), MakeKernel<UnaryKernel<UnaryOp::kLog>>);
  add("Log1p", Reals(), MakeKernel<UnaryKernel<UnaryOp::kLog1p>>);
  add("Rsqrt", Reals(), MakeKernel<UnaryKernel<UnaryOp::kRsqrt>>);
  add("Sigmoid", Reals(), MakeKernel<UnaryKernel<UnaryOp::kSigmoid>>);
  add("Sin", Reals(), MakeKernel<UnaryKernel<UnaryOp::kSin>>);
  add("Softplus", Reals(), MakeKernel<UnaryKernel<UnaryOp::kSoftplus>>);
  add("Sqrt", Reals(), MakeKernel<UnaryKernel<UnaryOp::kSqrt>>);
  add("Tanh", Reals(), MakeKernel<UnaryKernel<UnaryOp::kTanh>>);
  add("Add", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kAdd>>);
  add("AddV2", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kAdd>>);
  add("Sub", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kSub>>);
  add("Mul", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kMul>>);
  add("Maximum", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kMaximum>>);
  add("Minimum", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kMinimum>>);
  add("SquaredDifference", RealsAndInt64(), MakeKernel<BinaryKernel<BinaryOp::kSquaredDifference>>);
  add("Div", Reals(), MakeKernel<BinaryKernel<BinaryOp::kDiv>>);
  add("RealDiv", Reals(), MakeKernel<BinaryKernel<BinaryOp::kDiv>>);
  add("Pow", Reals(), MakeKernel<BinaryKernel<BinaryOp::kPow>>);
  add("ReluGrad", Reals(), MakeKernel<BinaryKernel<BinaryOp::kReluGrad>>);
  add("RsqrtGrad", Reals(), MakeKernel<BinaryKernel<BinaryOp::kRsqrtGrad>>);
  add("SigmoidGrad", Reals(), MakeKernel<BinaryKernel<BinaryOp::kSigmoidGrad>>);
  add("SqrtGrad", Reals(), MakeKernel<BinaryKernel<BinaryOp::kSqrtGrad>>);
  add("TanhGrad", Reals(), MakeKernel<BinaryKernel<BinaryOp::kTanhGrad>>);
}

}  // namespace troupe::cuda
