// LRN, local response normalization, and its gradient (Krizhevsky, Sutskever, Hinton, "ImageNet
// Classification with Deep Convolutional Neural Networks", 2012, section 3.3).
#include <algorithm>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/math/cast.h"
#include "kernels/nn/lrn_shape.h"
#include "kernels/simd/lrn.h"

namespace troupe {
namespace {

class LrnKernel : public Kernel {
 public:
  LrnKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attributes_.Read(construction);
  }

 protected:
  // Makes output 0 from the inputs, all of one shape, a block of pixels at a time: body(form,
  // inputs, pixels, scratch memory, output), all of them float.
  template <int kInputs, typename Body>
  absl::Status ForBlocks(KernelContext& ctx, Body body) const {
    const ElementType type = ctx.input(0).type();
    const Shape& shape = ctx.input(0).shape();
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const int64_t depth = shape.dim(3), pixels = shape.num_elements() / depth;
    const int64_t block = std::max<int64_t>(1, kBlockElements / depth), size = ElementSize(type);
    const simd::UnaryFn widen = type == ElementType::kFloat ? nullptr : FindCast(type, kFloat);
    const simd::UnaryFn narrow = type == ElementType::kFloat ? nullptr : FindCast(kFloat, type);
    const LrnForm form = attributes_.FormFor(depth);
    const double ns =
        static_cast<double>(block * depth) * (1.0 + 0.1 * static_cast<double>(form.radius));
    ctx.ParallelFor(
        (pixels + block - 1) / block, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
          std::vector<float> wide(widen == nullptr ? 0 : (kInputs + 1) * block * depth);
          std::vector<float> scratch(form.scratch(block));
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i * block * depth;
            const int64_t count = std::min(block, pixels - i * block) * depth;
            const float* in[kInputs];
            char* to = static_cast<char*>(out->mutable_raw_data()) + first * size;
            for (int k = 0; k < kInputs; ++k) {
              const char* from = static_cast<const char*>(ctx.input(k).raw_data()) + first * size;
              if (widen == nullptr) {
                in[k] = reinterpret_cast<const float*>(from);
              } else {
                float* space = &wide[k * block * depth];
                widen(from, space, count);
                in[k] = space;
              }
            }
            if (narrow == nullptr) {
              body(form, in, count / depth, scratch.data(), reinterpret_cast<float*>(to));
            } else {
              float* space = &wide[kInputs * block * depth];
              body(form, in, count / depth, scratch.data(), space);
              narrow(space, to, count);
            }
          }
        });
    return absl::OkStatus();
  }

  static constexpr ElementType kFloat = ElementType::kFloat;
  static constexpr int64_t kBlockElements =
      1024;  // several such arrays stay in the first-level cache

  LrnAttributes attributes_;
};

class LrnForwardKernel final : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(CheckLrnShape(ctx.input(0).shape()));
    return ForBlocks<1>(
        ctx, [](const LrnForm& form, const float* const(&in)[1], int64_t pixels, float* scratch,
                float* out) { Lrn().forward(form, in[0], pixels, scratch, out); });
  }
};

// Inputs: the output's gradient, the input, the output.
class LrnGradKernel final : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(
        CheckLrnGradShapes(ctx.input(0).shape(), ctx.input(1).shape(), ctx.input(2).shape()));
    return ForBlocks<3>(
        ctx, [](const LrnForm& form, const float* const(&in)[3], int64_t pixels, float* scratch,
                float* dx) { Lrn().gradient(form, in[0], in[1], in[2], pixels, scratch, dx); });
  }
};

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types("T",
                              {ElementType::kHalf, ElementType::kBfloat16, ElementType::kFloat});
}
REGISTER_KERNEL(Spec("LRN"), MakeKernel<LrnForwardKernel>);
REGISTER_KERNEL(Spec("LRNGrad"), MakeKernel<LrnGradKernel>);

}  // namespace
}  // namespace troupe
