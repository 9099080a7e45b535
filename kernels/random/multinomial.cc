// Multinomial: classes drawn with probabilities given by logits. The numbers are TensorFlow's for
// the same seeds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/philox.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/loops.h"
#include "kernels/random/draws.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class Multinomial : public Kernel {
 public:
  Multinomial(KernelConstruction& construction, absl::Status*)
      : stream_(construction.Attr<int64_t>("seed"), construction.Attr<int64_t>("seed2")),
        output_type_(construction.output_type(0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() != 2) {
      return InvalidArgument("logits must be a matrix, got shape ", logits.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const int64_t samples, ReadIntegerScalar(ctx.input(1), "num_samples"));
    if (samples < 0) return InvalidArgument("num_samples must not be negative, got ", samples);
    const int64_t rows = logits.dim(0), classes = logits.dim(1);
    if (classes == 0) {
      return InvalidArgument("there must be at least one class, logits has the shape ",
                             logits.shape().ToString());
    }
    if (output_type_ == ElementType::kInt32 && classes > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument(classes, " classes are too many for output_dtype int32");
    }
    const int64_t dims[] = {rows, samples};
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, output_type_, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const uint64_t rounded = (static_cast<uint64_t>(samples) + 3) / 4 * 4;
    const Philox start = stream_.Reserve(static_cast<uint64_t>(rows) * rounded * 2 * 256);
    return SwitchType<float, double, half, bfloat16>(logits.type(), [&]<typename T>() {
      return output_type_ == ElementType::kInt64
                 ? Draw<T>(ctx, logits, start, out->mutable_data<int64_t>(), samples)
                 : Draw<T>(ctx, logits, start, out->mutable_data<int32_t>(), samples);
    });
  }

 private:
  template <typename T, typename Index>
  static absl::Status Draw(KernelContext& ctx, const Tensor& logits, const Philox& start,
                           Index* out, int64_t samples) {
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
          out[r * samples + i] =
              static_cast<Index>(std::upper_bound(sums.begin(), sums.end(), at) - sums.begin());
        }
      }
    });
    return absl::OkStatus();
  }

  PhiloxStream stream_;
  ElementType output_type_;
};

REGISTER_KERNEL(
    KernelSpec("Multinomial").Types("T", FloatTypes()).Types("output_dtype", IndexTypes()),
    MakeKernel<Multinomial>);

}  // namespace
}  // namespace troupe
