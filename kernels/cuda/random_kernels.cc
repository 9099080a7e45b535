// RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt, Multinomial and
// StatelessMultinomial of GPUs.
#include "kernels/random/random_kernels.h"

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/random_start.h"
#include "kernels/random/stateless.h"

namespace troupe::cuda {
namespace {

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "random numbers"); }

template <decltype(&LaunchUniform) kLaunch>
class FillKernel final : public RandomFillKernel {
 public:
  FillKernel(KernelConstruction& construction, absl::Status*) : RandomFillKernel(construction) {}

 private:
  absl::Status Fill(KernelContext& ctx, const Philox& position, Tensor* out) override {
    TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(type_));
    return Enqueued(kLaunch(type, StartAt(position), out->mutable_raw_data(), out->num_elements(),
                            StreamOf(ctx)));
  }
};

class UniformIntKernel final : public RandomUniformIntKernel {
 public:
  UniformIntKernel(KernelConstruction& construction, absl::Status*)
      : RandomUniformIntKernel(construction) {}

 private:
  absl::Status Fill(KernelContext& ctx, const Philox& position, int64_t low, uint64_t range,
                    Tensor* out) override {
    TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(type_));
    return Enqueued(LaunchUniformInt(type, StartAt(position), low, range, out->mutable_raw_data(),
                                     out->num_elements(), StreamOf(ctx)));
  }
};

/// Of the logits of input 0, as many classes for each row as `out` has columns. None is empty.
absl::Status DrawClasses(KernelContext& ctx, const Philox& position, Tensor* out) {
  const Tensor& logits = ctx.input(0);
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(logits.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(ElementType::kDouble, logits.shape()));
  TROUPE_ASSIGN_OR_RETURN(
      Tensor scratch,
      ctx.AllocateTemp(ElementType::kDouble, Shape({MultinomialScratch(rows, classes)})));
  const MultinomialCall call{type,
                             logits.raw_data(),
                             rows,
                             classes,
                             out->dim(1),
                             StartAt(position),
                             sums.mutable_data<double>(),
                             scratch.mutable_data<double>(),
                             out->type() == ElementType::kInt64,
                             out->mutable_raw_data()};
  return Enqueued(LaunchMultinomial(call, StreamOf(ctx)));
}

class Multinomial final : public MultinomialKernel {
 public:
  Multinomial(KernelConstruction& construction, absl::Status*) : MultinomialKernel(construction) {}

 private:
  absl::Status Draw(KernelContext& ctx, const Philox& position, Tensor* out) override {
    return DrawClasses(ctx, position, out);
  }
};

absl::Status StatelessMultinomial(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const Philox position, PositionOfSeed(ctx.input(2)));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateClasses(ctx, type));
  return out->num_elements() == 0 ? absl::OkStatus() : DrawClasses(ctx, position, out);
}

}  // namespace

void RegisterRandom(Extension& extension) {
  const auto fill = [&extension](const char* op, KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("dtype", FloatTypes()).HostMemory("shape"),
                     factory);
  };
  fill("RandomUniform", MakeKernel<FillKernel<&LaunchUniform>>);
  fill("RandomStandardNormal", MakeKernel<FillKernel<&LaunchNormal>>);
  fill("TruncatedNormal", MakeKernel<FillKernel<&LaunchTruncatedNormal>>);
  extension.Kernel(KernelSpec("RandomUniformInt")
                       .Device("GPU")
                       .Types("Tout", IndexTypes())
                       .HostMemory("shape")
                       .HostMemory("minval")
                       .HostMemory("maxval"),
                   MakeKernel<UniformIntKernel>);
  extension.Kernel(KernelSpec("Multinomial")
                       .Device("GPU")
                       .Types("T", FloatTypes())
                       .Types("output_dtype", IndexTypes())
                       .HostMemory("num_samples"),
                   MakeKernel<Multinomial>);
  extension.Kernel(KernelSpec("StatelessMultinomial")
                       .Device("GPU")
                       .Types("T", FloatTypes())
                       .Types("output_dtype", IndexTypes())
                       .HostMemory("num_samples")
                       .HostMemory("seed"),
                   MakeAttrKernel<StatelessMultinomial, "output_dtype">);
}

}  // namespace troupe::cuda
