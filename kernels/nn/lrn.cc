// LRN, local response normalization, and its gradient (Krizhevsky, Sutskever, Hinton, "ImageNet
// Classification with Deep Convolutional Neural Networks", 2012, section 3.3).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/widen.h"
#include "kernels/kernel.h"

namespace troupe {
namespace {

class LrnKernel : public Kernel {
 public:
  LrnKernel(KernelConstruction& construction, absl::Status* status)
      : radius_(construction.Attr<int64_t>("depth_radius")),
        bias_(construction.Attr<float>("bias")),
        alpha_(construction.Attr<float>("alpha")),
        beta_(construction.Attr<float>("beta")) {
    if (radius_ < 0 || radius_ > std::numeric_limits<int32_t>::max()) {
      *status = InvalidArgument("depth_radius must be in [0, 2^31), got ", radius_);
    }
  }

 protected:
  // Makes output 0 from pixels of `shape`: body(first element of a pixel, depth, float output).
  template <typename Body>
  absl::Status ForPixels(KernelContext& ctx, const Shape& shape, Body body) const {
    const ElementType type = ctx.input(0).type();
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type, shape));
    Tensor wide;
    if (type != ElementType::kFloat) {
      TROUPE_ASSIGN_OR_RETURN(wide, ctx.AllocateTemp(ElementType::kFloat, shape));
    }
    if (out->num_elements() == 0) return absl::OkStatus();
    float* to = wide.valid() ? wide.mutable_data<float>() : out->mutable_data<float>();
    const int64_t depth = shape.dim(3), pixels = shape.num_elements() / depth;
    const double ns =
        static_cast<double>(depth) * (20.0 + static_cast<double>(std::min(depth, 2 * radius_ + 1)));
    ctx.ParallelFor(pixels, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
      std::vector<float> norms(depth);
      for (int64_t i = begin; i < end; ++i) body(i * depth, depth, norms.data(), to + i * depth);
    });
    if (wide.valid()) NarrowTo(ctx, wide, out);
    return absl::OkStatus();
  }

  // bias + alpha * the sum of squares of the neighbors of each channel.
  void Norms(const float* x, int64_t depth, float* norms) const {
    for (int64_t c = 0; c < depth; ++c) {
      float sum = 0;
      for (int64_t k = First(c); k < End(c, depth); ++k) sum += x[k] * x[k];
      norms[c] = bias_ + alpha_ * sum;
    }
  }
  int64_t First(int64_t c) const { return std::max<int64_t>(0, c - radius_); }
  int64_t End(int64_t c, int64_t depth) const { return std::min(depth, c + radius_ + 1); }

  const int64_t radius_;
  const float bias_, alpha_, beta_;
};

class LrnForwardKernel final : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 4) {
      return InvalidArgument("the input must be of rank 4, got shape ", input.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor wide, Widened(ctx, input));
    const float* in = wide.unchecked_data<float>();
    return ForPixels(ctx, input.shape(), [&](int64_t at, int64_t depth, float* norms, float* out) {
      const float* x = in + at;
      Norms(x, depth, norms);
      if (beta_ == 0.5f) {
        for (int64_t c = 0; c < depth; ++c) out[c] = x[c] / std::sqrt(norms[c]);
      } else {
        for (int64_t c = 0; c < depth; ++c) out[c] = x[c] * std::pow(norms[c], -beta_);
      }
    });
  }
};

// Inputs: the output's gradient, the input, the output.
class LrnGradKernel final : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(1).shape();
    if (shape.rank() != 4 || !(ctx.input(0).shape() == shape) || !(ctx.input(2).shape() == shape)) {
      return InvalidArgument(
          "input_grads, input_image and output_image must be of rank 4 and of "
          "one shape, got ",
          ctx.input(0).shape().ToString(), ", ", shape.ToString(), " and ",
          ctx.input(2).shape().ToString());
    }
    Tensor wide[3];
    const float* from[3];
    for (int i = 0; i < 3; ++i) {
      TROUPE_ASSIGN_OR_RETURN(wide[i], Widened(ctx, ctx.input(i)));
      from[i] = wide[i].unchecked_data<float>();
    }
    return ForPixels(ctx, shape, [&](int64_t at, int64_t depth, float* norms, float* dx) {
      const float *dy = from[0] + at, *x = from[1] + at, *y = from[2] + at;
      Norms(x, depth, norms);
      std::fill_n(dx, depth, 0.0f);
      for (int64_t c = 0; c < depth; ++c) {
        // y depends on its own x by the power, and on all neighbors by the norm.
        dx[c] += dy[c] * std::pow(norms[c], -beta_);
        const float factor = -2 * alpha_ * beta_ * dy[c] * y[c] / norms[c];
        for (int64_t k = First(c); k < End(c, depth); ++k) dx[k] += factor * x[k];
      }
    });
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
