// ParameterizedTruncatedNormal, StatelessParameterizedTruncatedNormal. Numbers that are rejected
// move the following ones: outputs are drawn one after the other.
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "kernels/common/broadcast.h"
#include "kernels/common/registration.h"
#include "kernels/random/bounded_normal.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/sample_loops.h"
#include "kernels/random/stateless.h"

namespace troupe {
namespace {

template <typename F>
absl::Status WithBoundedNormal(ElementType type, const F& f) {
  return SwitchType<float, double, half>(type, [&]<typename T>() -> absl::Status {
    if constexpr (std::is_same_v<T, half>) {
      return f.template operator()<T, BoundedNormal<T, RoundedHalf>>();
    } else {
      return f.template operator()<T, BoundedNormal<T, T>>();
    }
  });
}

class ParameterizedTruncatedNormal final : public RandomKernel {
 public:
  ParameterizedTruncatedNormal(KernelConstruction& construction, absl::Status*)
      : RandomKernel(construction) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
    if (shape.rank() == 0) return InvalidArgument("the shape must not be empty");
    const int64_t n = shape.num_elements(), rows = shape.dim(0);
    bool one_for_all = true;
    for (int i = kMean; i <= kHigh; ++i) {
      const Tensor& parameter = ctx.input(i);
      if (parameter.rank() > 1) {
        return InvalidArgument("parameters must be scalars or vectors, got shape ",
                               parameter.shape().ToString());
      }
      const bool one = i < kLow && parameter.num_elements() == 1;
      one_for_all = one_for_all && (one || parameter.rank() == 0);
    }
    for (int i = kMean; i <= kHigh && !one_for_all; ++i) {
      const Tensor& parameter = ctx.input(i);
      if (parameter.num_elements() != 1 && parameter.num_elements() != rows) {
        return InvalidArgument("parameters must have length 1 or shape[0] = ", rows, ", got shape ",
                               parameter.shape().ToString());
      }
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    if (n == 0) return absl::OkStatus();
    // The rejections in a row are counted anew for each batch.
    const int64_t batch = one_for_all ? kBatch : n / rows;
    const int64_t batches = (n + batch - 1) / batch;
    const uint64_t blocks =
        static_cast<uint64_t>(batches) * 2 * 1000 * (static_cast<uint64_t>(batch) + 3) / 4;
    Philox position = stream_.Reserve(blocks);
    return WithBoundedNormal(type_, [&]<typename T, typename Normal>() -> absl::Status {
      T* to = out->mutable_data<T>();
      for (int64_t b = 0; b < batches; ++b) {
        std::array<T, 4> p;
        for (int i = kMean; i <= kHigh; ++i) {
          const Tensor& parameter = ctx.input(i);
          p[i - kMean] = parameter.unchecked_data<T>()[parameter.num_elements() == 1 ? 0 : b];
        }
        TROUPE_RETURN_IF_ERROR(Normal::Check(p[0], p[1], p[2], p[3]));
        TROUPE_RETURN_IF_ERROR(
            Normal(p[0], p[1], p[2], p[3])
                .Draw(position, std::min(batch, n - b * batch), [&](T number) { *to++ = number; }));
      }
      return absl::OkStatus();
    });
  }

 private:
  enum { kMean = 1, kLow = 3, kHigh = 4 };
  static constexpr int64_t kBatch = 100;
};

/// The elements of four parameters that are broadcast to `shape`, set by set.
template <typename T>
std::vector<std::array<T, 4>> ParameterSets(const KernelContext& ctx, const Shape& shape) {
  std::vector<std::array<T, 4>> sets(shape.num_elements());
  for (int i = 0; i < 4; ++i) {
    const Tensor& parameter = ctx.input(SeedInputs::kRest + i);
    const BroadcastWalk walk(shape, {&parameter.shape()});
    const T* from = parameter.unchecked_data<T>();
    walk.ForEach(0, walk.num_runs(), [&](int64_t at, const BroadcastWalk::Offsets& offsets) {
      for (int64_t j = 0; j < walk.run_length(); ++j) {
        sets[at + j][i] = from[offsets[0] + j * walk.run_step(0)];
      }
    });
  }
  return sets;
}

absl::Status StatelessParameterizedTruncatedNormal(KernelContext& ctx, ElementType type) {
  TROUPE_RETURN_IF_ERROR(SeedInputs::Check(ctx));
  Shape sets_shape = ctx.input(SeedInputs::kRest).shape();
  for (int i = 1; i < 4; ++i) {
    TROUPE_ASSIGN_OR_RETURN(sets_shape,
                            BroadcastShapes(sets_shape, ctx.input(SeedInputs::kRest + i).shape()));
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
  TROUPE_RETURN_IF_ERROR(CheckEndsWith(shape, sets_shape));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type, shape));
  TROUPE_ASSIGN_OR_RETURN(Philox position, SeedInputs::Position(ctx));
  const int64_t n = out->num_elements();
  if (n == 0) return absl::OkStatus();
  return WithBoundedNormal(type, [&]<typename T, typename Normal>() -> absl::Status {
    const auto sets = ParameterSets<T>(ctx, sets_shape);
    const int64_t num_sets = static_cast<int64_t>(sets.size());
    for (int64_t s = 0; s < num_sets; ++s) {
      const std::array<T, 4>& p = sets[s];
      TROUPE_RETURN_IF_ERROR(Normal::Check(p[0], p[1], p[2], p[3]));
      T* to = out->mutable_data<T>() + s;
      int64_t at = 0;
      TROUPE_RETURN_IF_ERROR(
          Normal(p[0], p[1], p[2], p[3]).Draw(position, n / num_sets, [&](T number) {
            to[at] = number;
            at += num_sets;
          }));
    }
    return absl::OkStatus();
  });
}

std::vector<ElementType> BoundedTypes() {
  return {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf};
}

REGISTER_KERNEL(KernelSpec("ParameterizedTruncatedNormal").Types("dtype", BoundedTypes()),
                MakeKernel<ParameterizedTruncatedNormal>);
REGISTER_KERNEL(KernelSpec("StatelessParameterizedTruncatedNormal").Types("dtype", BoundedTypes()),
                (MakeAttrKernel<StatelessParameterizedTruncatedNormal, "dtype">));

}  // namespace
}  // namespace troupe
