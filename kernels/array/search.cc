// Where, ListDiff, CheckNumerics (and V2): looking for elements.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

absl::Status Where(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (input.rank() == 0) return InvalidArgument("the input must have at least one dimension");
  std::vector<int64_t> found;  // And one more.
  TROUPE_RETURN_IF_ERROR(SwitchNumber<bool>(input.type(), [&]<typename T>() {
    const auto is_set = [](const T& value) {
      if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
        return static_cast<float>(value) != 0;
      } else {
        return value != T(0);
      }
    };
    // Without branches, which no processor would foresee.
    const absl::Span<const T> values = input.unchecked_values<T>();
    size_t count = 0;
    for (const T& value : values) count += is_set(value) ? 1 : 0;
    found.resize(count + 1);
    size_t next = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      found[next] = static_cast<int64_t>(i);
      next += is_set(values[i]) ? 1 : 0;
    }
    return absl::OkStatus();
  }));
  found.pop_back();
  const int rank = input.rank();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                          ctx.AllocateOutput(0, ElementType::kInt64,
                                             Shape({static_cast<int64_t>(found.size()), rank})));
  int64_t* row = out->mutable_data<int64_t>();
  const int64_t columns = input.dim(rank - 1);
  DimVector place(static_cast<size_t>(rank - 1), 0);  // Of the row that begins at `begin`.
  int64_t begin = 0;
  for (const int64_t at : found) {
    for (; at - begin >= columns; begin += columns) {
      for (int d = rank - 2; d >= 0 && ++place[static_cast<size_t>(d)] == input.dim(d); --d) {
        place[static_cast<size_t>(d)] = 0;
      }
    }
    row = std::copy(place.begin(), place.end(), row);
    *row++ = at - begin;
  }
  return absl::OkStatus();
}

/// What elements are compared by: half-precision ones by value, others as they are.
template <typename T>
auto Key(const T& value) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

absl::Status ListDiff(KernelContext& ctx, ElementType index_type) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1);
  if (x.rank() != 1 || y.rank() != 1) {
    return InvalidArgument("x and y must be vectors, got shapes ", x.shape().ToString(), " and ",
                           y.shape().ToString());
  }
  std::vector<int64_t> kept;
  TROUPE_RETURN_IF_ERROR(SwitchReal<std::string>(x.type(), [&]<typename T>() {
    absl::flat_hash_set<decltype(Key(std::declval<T>()))> excluded;
    for (const T& value : y.unchecked_values<T>()) excluded.insert(Key(value));
    const absl::Span<const T> values = x.unchecked_values<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (!excluded.contains(Key(values[i]))) kept.push_back(static_cast<int64_t>(i));
    }
    return absl::OkStatus();
  }));
  const Shape shape({static_cast<int64_t>(kept.size())});
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.type(), shape));
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 1, index_type, kept));
  return SwitchBySize(x.type(), [&]<typename T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out->mutable_raw_data());
    for (const int64_t at : kept) *to++ = from[at];
    return absl::OkStatus();
  });
}

/// `kSigns`: the message says which infinities there are.
template <bool kSigns>
absl::Status CheckNumerics(KernelContext& ctx, const std::string& message) {
  bool nan = false, minus_inf = false, plus_inf = false;
  TROUPE_RETURN_IF_ERROR(
      (SwitchType<float, double, half, bfloat16>(ctx.input(0).type(), [&]<typename T>() {
        for (const T& value : ctx.input(0).unchecked_values<T>()) {
          const auto x = Key(value);
          // One subtraction finds both kinds.
          if (x - x == 0) continue;
          nan = nan || std::isnan(x);
          minus_inf = minus_inf || (std::isinf(x) && x < 0);
          plus_inf = plus_inf || (std::isinf(x) && x > 0);
        }
        return absl::OkStatus();
      })));
  std::vector<const char*> found;
  if (kSigns && minus_inf) found.push_back("-Inf");
  if (kSigns && plus_inf) found.push_back("+Inf");
  if (!kSigns && (minus_inf || plus_inf)) found.push_back("Inf");
  if (nan) found.push_back("NaN");
  if (!found.empty()) {
    return InvalidArgument(message, " : Tensor had ", absl::StrJoin(found, " and "), " values");
  }
  ctx.PassThrough(0, 0);
  return absl::OkStatus();
}

REGISTER_KERNEL(KernelSpec("Where").Types("T", PlainTypes()), MakeKernel<Where>);
REGISTER_KERNEL(
    KernelSpec("ListDiff").Types("T", WithString(RealNumberTypes())).Types("out_idx", IndexTypes()),
    (MakeAttrKernel<ListDiff, "out_idx">));
REGISTER_KERNEL(KernelSpec("CheckNumerics").Types("T", FloatTypes()),
                (MakeAttrKernel<CheckNumerics<false>, "message">));
REGISTER_KERNEL(KernelSpec("CheckNumericsV2").Types("T", FloatTypes()),
                (MakeAttrKernel<CheckNumerics<true>, "message">));

}  // namespace
}  // namespace troupe
