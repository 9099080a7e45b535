// Multinomial, StatelessMultinomial: classes drawn with probabilities given by logits. The numbers
// are TensorFlow's for the same seeds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/partition_point.h"
#include "kernels/common/registration.h"
#include "kernels/math/loops.h"
#include "kernels/random/draws.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/stateless.h"

namespace troupe {
namespace {

template <typename T, typename Index>
void DrawRows(KernelContext& ctx, const Tensor& logits, const Philox& start, Index* out,
              int64_t samples) {
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  const double row_ns =
      8.0 * static_cast<double>(classes) +
      (10 + 3 * std::log2(static_cast<double>(classes))) * static_cast<double>(samples);
  const simd::UnaryFn exp = FindUnary(simd::kExp, ElementType::kDouble);
  ctx.ParallelFor(rows, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
    // A double takes two words, half a block.
    const uint64_t halves = static_cast<uint64_t>(begin) * static_cast<uint64_t>(samples);
    Philox position = start;
    position.Skip(halves / 2);
    PhiloxWords words(position);
    if (halves % 2 != 0) UniformDouble(words);
    std::vector<double> sums(classes);
    for (int64_t r = begin; r < end; ++r) {
      const T* row = logits.unchecked_data<T>() + r * classes;
      // Infinities and NaNs have no share. The largest is subtracted for numerical stability.
      double largest = static_cast<double>(std::numeric_limits<float>::lowest());
      if constexpr (std::is_same_v<T, double>) largest = std::numeric_limits<double>::lowest();
      for (int64_t j = 0; j < classes; ++j) {
        const double x = static_cast<double>(row[j]);
        if (std::isfinite(x)) largest = std::max(largest, x);
      }
      for (int64_t j = 0; j < classes; ++j) sums[j] = static_cast<double>(row[j]) - largest;
      exp(sums.data(), sums.data(), classes);
      double sum = 0;
      for (int64_t j = 0; j < classes; ++j) {
        if (std::isfinite(static_cast<double>(row[j]))) sum += sums[j];
        sums[j] = sum;
      }
      for (int64_t i = 0; i < samples; ++i) {
        const double at = UniformDouble(words) * sum;
        out[r * samples + i] = static_cast<Index>(
            PartitionPoint(sums.data(), classes, [at](double share) { return !(at < share); }));
      }
    }
  });
}

absl::Status DrawClasses(KernelContext& ctx, const Philox& position, Tensor* out) {
  const Tensor& logits = ctx.input(0);
  const int64_t samples = out->dim(1);
  return SwitchType<float, double, half, bfloat16>(logits.type(), [&]<typename T>() {
    if (out->type() == ElementType::kInt64) {
      DrawRows<T>(ctx, logits, position, out->mutable_data<int64_t>(), samples);
    } else {
      DrawRows<T>(ctx, logits, position, out->mutable_data<int32_t>(), samples);
    }
    return absl::OkStatus();
  });
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
  if (out->num_elements() == 0) return absl::OkStatus();
  return DrawClasses(ctx, position, out);
}

KernelSpec ClassesSpec(const char* op) {
  return KernelSpec(op).Types("T", FloatTypes()).Types("output_dtype", IndexTypes());
}

REGISTER_KERNEL(ClassesSpec("Multinomial"), MakeKernel<Multinomial>);
REGISTER_KERNEL(ClassesSpec("StatelessMultinomial"),
                (MakeAttrKernel<StatelessMultinomial, "output_dtype">));

}  // namespace
}  // namespace troupe
