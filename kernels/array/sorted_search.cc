// Bucketize, LowerBound, UpperBound, NthElement: places in sorted numbers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/array/sorted_search.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/partition_point.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"

namespace troupe {
namespace {

class BucketizeKernel final : public Kernel {
 public:
  BucketizeKernel(KernelConstruction& construction, absl::Status* status) {
    absl::StatusOr<std::vector<float>> boundaries = ReadBoundaries(construction);
    *status = boundaries.status();
    if (boundaries.ok()) boundaries_ = *std::move(boundaries);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kInt32, input.shape()));
    return SwitchType<int32_t, int64_t, float, double>(input.type(), [&]<typename T>() {
      const T* in = input.unchecked_data<T>();
      int32_t* to = out->mutable_data<int32_t>();
      ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(10),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) to[i] = Bucket(in[i]);
                      });
      return absl::OkStatus();
    });
  }

 private:
  /// Integers are compared as float, as TensorFlow does.
  template <typename T>
  int32_t Bucket(T value) const {
    using Key = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return static_cast<int32_t>(PartitionPoint(
        boundaries_.data(), static_cast<int64_t>(boundaries_.size()),
        [key = static_cast<Key>(value)](float boundary) { return !(key < boundary); }));
  }

  std::vector<float> boundaries_;
};

/// `kUpper`: after all equal ones.
template <bool kUpper>
absl::Status Bound(KernelContext& ctx, ElementType out_type) {
  const Tensor &sorted = ctx.input(0), &values = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckBound(sorted, values, out_type));
  const int64_t length = sorted.dim(1), columns = values.dim(1);
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, out_type, values.shape()));
  return SwitchReal(sorted.type(), [&]<typename T>() {
    const T *row = sorted.unchecked_data<T>(), *value = values.unchecked_data<T>();
    void* to = out->mutable_raw_data();
    ctx.ParallelFor(
        values.num_elements(), KernelContext::GrainFor(30), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T x = value[i];
            const int64_t place =
                PartitionPoint(row + i / columns * length, length,
                               [x](T element) { return kUpper ? !(x < element) : element < x; });
            StoreIntegers(&place, 1, out_type, to, i);
          }
        });
    return absl::OkStatus();
  });
}

/// Element n of `row` in order, which is NaN after everything else.
template <typename T>
T NthOf(std::vector<T>& row, int64_t n) {
  auto end = row.end();
  if constexpr (!std::is_integral_v<T>) {
    end = std::partition(row.begin(), end, [](T x) { return !std::isnan(static_cast<double>(x)); });
  }
  const auto nth = row.begin() + n;
  if (nth < end) std::nth_element(row.begin(), nth, end, std::less<T>());
  return *nth;
}

absl::Status NthElement(KernelContext& ctx, bool reverse) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(int64_t n, ReadIntegerScalar(ctx.input(1), "n"));
  if (n < 0) return InvalidArgument("n must not be negative, got ", n);
  if (input.rank() < 1) return InvalidArgument("the input must have at least one dimension");
  const int64_t length = input.dim(input.rank() - 1);
  if (n >= length) {
    return InvalidArgument("there is no element ", n, " in rows of ", length, " elements");
  }
  if (reverse) n = length - 1 - n;
  const Shape shape(input.shape().dims().subspan(0, input.rank() - 1));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  return SwitchReal(input.type(), [&]<typename T>() {
    const T* in = input.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    ctx.ParallelFor(out->num_elements(), KernelContext::GrainFor(5.0 * static_cast<double>(length)),
                    [&](int64_t begin, int64_t end) {
                      std::vector<T> row;
                      for (int64_t r = begin; r < end; ++r) {
                        row.assign(in + r * length, in + (r + 1) * length);
                        to[r] = NthOf(row, n);
                      }
                    });
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("Bucketize"), MakeKernel<BucketizeKernel>);
REGISTER_KERNEL(KernelSpec("LowerBound").Types("T", RealNumberTypes()),
                (MakeAttrKernel<Bound<false>, "out_type">));
REGISTER_KERNEL(KernelSpec("UpperBound").Types("T", RealNumberTypes()),
                (MakeAttrKernel<Bound<true>, "out_type">));
REGISTER_KERNEL(KernelSpec("NthElement").Types("T", RealNumberTypes()),
                (MakeAttrKernel<NthElement, "reverse">));

}  // namespace
}  // namespace troupe
