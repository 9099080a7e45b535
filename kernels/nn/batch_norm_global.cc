// BatchNormWithGlobalNormalization and its gradients: normalization by a mean and a variance that
// are given.
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/widen.h"
#include "kernels/kernel.h"
#include "kernels/nn/batch_norm_shape.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// Runs `body` on all inputs as T and floats or doubles as outputs, of which the first is shaped
// like input 0 and the others are vectors of the channels.
template <typename Body>
absl::Status RunWide(KernelContext& ctx, Body body) {
  const ElementType type = ctx.input(0).type();
  const Shape& shape = ctx.input(0).shape();
  const bool is_narrow = type != ElementType::kFloat && type != ElementType::kDouble;
  const ElementType wide_type = is_narrow ? ElementType::kFloat : type;
  std::vector<Tensor> in(ctx.num_inputs()), out(ctx.num_outputs());
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    in[i] = ctx.input(i);
    if (is_narrow) {
      TROUPE_ASSIGN_OR_RETURN(in[i], Widened(ctx, ctx.input(i)));
    }
  }
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(out[i],
                            ctx.AllocateTemp(wide_type, i == 0 ? shape : Shape({shape.dim(3)})));
  }
  const auto run = [&]<typename T>() {
    std::vector<const T*> from;
    std::vector<T*> to;
    for (const Tensor& t : in) from.push_back(t.unchecked_data<T>());
    for (Tensor& t : out) to.push_back(t.mutable_data<T>());
    body(from, to);
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR((SwitchType<float, double>(wide_type, run)));
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (!is_narrow) {
      ctx.set_output(i, std::move(out[i]));
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * narrow, ctx.AllocateOutput(i, type, out[i].shape()));
    NarrowTo(ctx, out[i], narrow);
  }
  return absl::OkStatus();
}

// Calls visit(element, channel) for all elements, from several threads.
template <typename Visit>
void ForRows(KernelContext& ctx, const Shape& shape, Visit visit) {
  const int64_t channels = shape.dim(3);
  const int64_t rows = shape.dim(0) * shape.dim(1) * shape.dim(2);
  ctx.ParallelFor(rows, KernelContext::GrainFor(static_cast<double>(channels)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      for (int64_t c = 0; c < channels; ++c) visit(row * channels + c, c);
                    }
                  });
}

absl::Status GlobalNorm(KernelContext& ctx, float epsilon, bool scale) {
  TROUPE_RETURN_IF_ERROR(CheckGlobalNorm(ctx));
  const Shape& shape = ctx.input(0).shape();
  return RunWide(ctx, [&]<typename T>(const std::vector<const T*>& in, const std::vector<T*>& out) {
    std::vector<T> factor(shape.dim(3));
    for (size_t c = 0; c < factor.size(); ++c) {
      factor[c] = (scale ? in[4][c] : T(1)) / std::sqrt(in[2][c] + static_cast<T>(epsilon));
    }
    ForRows(ctx, shape, [&](int64_t i, int64_t c) {
      out[0][i] = (in[0][i] - in[1][c]) * factor[c] + in[3][c];
    });
  });
}

// Inputs t, m, v, gamma, backprop.
absl::Status GlobalNormGrad(KernelContext& ctx, float epsilon, bool scale) {
  TROUPE_RETURN_IF_ERROR(CheckGlobalNormGrad(ctx));
  const Shape& shape = ctx.input(0).shape();
  return RunWide(ctx, [&]<typename T>(const std::vector<const T*>& in, const std::vector<T*>& out) {
    const int64_t channels = shape.dim(3);
    std::vector<double> sums(channels), products(channels);
    for (int64_t i = 0, n = shape.num_elements(); i < n; i += channels) {
      for (int64_t c = 0; c < channels; ++c) {
        const T dy = in[4][i + c];
        sums[c] += dy;
        products[c] += dy * (in[0][i + c] - in[1][c]);
      }
    }
    std::vector<T> factor(channels);
    for (int64_t c = 0; c < channels; ++c) {
      const double inverse = 1 / std::sqrt(static_cast<double>(in[2][c]) + epsilon);
      const double gamma = scale ? static_cast<double>(in[3][c]) : 1.0;
      factor[c] = static_cast<T>(inverse * gamma);
      out[1][c] = static_cast<T>(-sums[c] * inverse * gamma);
      out[2][c] = static_cast<T>(-0.5 * products[c] * inverse * inverse * inverse * gamma);
      out[3][c] = static_cast<T>(sums[c]);
      out[4][c] = scale ? static_cast<T>(products[c] * inverse) : T(0);
    }
    ForRows(ctx, shape, [&](int64_t i, int64_t c) { out[0][i] = in[4][i] * factor[c]; });
  });
}

const std::vector<ElementType>& Types() {
  static const auto* types =
      new std::vector<ElementType>{ElementType::kHalf, ElementType::kFloat, ElementType::kDouble};
  return *types;
}

REGISTER_KERNEL(KernelSpec("BatchNormWithGlobalNormalization").Types("T", Types()),
                (MakeAttrKernel<GlobalNorm, "variance_epsilon", "scale_after_normalization">));
REGISTER_KERNEL(KernelSpec("BatchNormWithGlobalNormalizationGrad").Types("T", Types()),
                (MakeAttrKernel<GlobalNormGrad, "variance_epsilon", "scale_after_normalization">));

}  // namespace
}  // namespace troupe
