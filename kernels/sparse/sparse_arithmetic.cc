// SparseAdd, SparseAddGrad, SparseSparseMaximum, SparseSparseMinimum, SparseSliceGrad: two lists of
// indices, both in row-major order, are gone through together.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/sparse/sparse_shapes.h"

namespace troupe {
namespace {

/// An element of the union of two sparse tensors; -1: one of them does not have it.
struct Pair {
  int64_t a, b;
};

std::vector<Pair> Union(const SparseTensor& a, const SparseTensor& b) {
  std::vector<Pair> pairs;
  pairs.reserve(a.size() + b.size());
  for (int64_t i = 0, k = 0; i < a.size() || k < b.size();) {
    const int order = i == a.size()   ? 1
                      : k == b.size() ? -1
                                      : CompareIndices(a.indices[i], b.indices[k], a.rank());
    pairs.push_back({order <= 0 ? i : -1, order >= 0 ? k : -1});
    i += order <= 0 ? 1 : 0;
    k += order >= 0 ? 1 : 0;
  }
  return pairs;
}

/// Two sparse tensors of one shape, inputs 0 to 2 and 3 to 5.
struct Operands {
  SparseTensor a, b;

  static absl::StatusOr<Operands> Read(KernelContext& ctx) {
    TROUPE_ASSIGN_OR_RETURN(SparseTensor a, ReadSparse(ctx, 0, "a"));
    TROUPE_ASSIGN_OR_RETURN(SparseTensor b, ReadSparse(ctx, 3, "b"));
    if (a.shape != b.shape) {
      return InvalidArgument("the operands must have one shape, got ", a.shape.ToString(), " and ",
                             b.shape.ToString());
    }
    TROUPE_RETURN_IF_ERROR(a.CheckBounds("a"));
    TROUPE_RETURN_IF_ERROR(b.CheckBounds("b"));
    return Operands{std::move(a), std::move(b)};
  }

  absl::Status PutIndices(KernelContext& ctx, absl::Span<const Pair> pairs) const {
    const auto count = static_cast<int64_t>(pairs.size());
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, a.rank()})));
    int64_t* index = output->mutable_data<int64_t>();
    for (const Pair& pair : pairs) {
      index = CopyIndex(pair.a >= 0 ? a.indices[pair.a] : b.indices[pair.b], a.rank(), index);
    }
    return absl::OkStatus();
  }
};

/// The sum, which wraps around.
template <typename T>
T Sum(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

/// Whether the magnitude is at least the threshold; it is not for NaN.
template <typename T, typename Threshold>
bool Reaches(const T& value, Threshold threshold) {
  if constexpr (std::is_integral_v<T>) {
    // The magnitude of the lowest number does not fit its type: it stays negative there, as
    // TensorFlow has it.
    return value == std::numeric_limits<T>::lowest()
               ? threshold <= value
               : threshold <= static_cast<T>(value < 0 ? -value : value);
  } else {
    return threshold <= std::abs(value);
  }
}

template <typename T, typename Threshold>
absl::Status Add(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const Operands operands, Operands::Read(ctx));
  if (ctx.input(6).rank() != 0) {
    return InvalidArgument("thresh must be a scalar, got shape ", ctx.input(6).shape().ToString());
  }
  const Threshold threshold = ctx.input(6).unchecked_scalar<Threshold>();
  const T* a = operands.a.values.unchecked_data<T>();
  const T* b = operands.b.values.unchecked_data<T>();
  std::vector<Pair> pairs = Union(operands.a, operands.b);
  const auto value = [&](const Pair& pair) {
    return pair.a < 0 ? b[pair.b] : pair.b < 0 ? a[pair.a] : Sum(a[pair.a], b[pair.b]);
  };
  // As in TensorFlow the threshold is for elements that both have.
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [&](const Pair& pair) {
                               return pair.a >= 0 && pair.b >= 0 &&
                                      !Reaches(value(pair), threshold);
                             }),
              pairs.end());
  TROUPE_RETURN_IF_ERROR(operands.PutIndices(ctx, pairs));
  TROUPE_ASSIGN_OR_RETURN(
      Tensor * output,
      ctx.AllocateOutput(1, kElementType<T>, Shape({static_cast<int64_t>(pairs.size())})));
  std::transform(pairs.begin(), pairs.end(), output->mutable_data<T>(), value);
  ctx.set_output(2, ctx.input(2));
  return absl::OkStatus();
}

template <bool kMaximum>
absl::Status Extreme(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const Operands operands, Operands::Read(ctx));
  const std::vector<Pair> pairs = Union(operands.a, operands.b);
  TROUPE_RETURN_IF_ERROR(operands.PutIndices(ctx, pairs));
  const ElementType type = operands.a.values.type();
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(1, type, Shape({static_cast<int64_t>(pairs.size())})));
  return SwitchReal(type, [&]<typename T>() {
    const T* a = operands.a.values.unchecked_data<T>();
    const T* b = operands.b.values.unchecked_data<T>();
    std::transform(pairs.begin(), pairs.end(), output->mutable_data<T>(), [&](const Pair& pair) {
      const T x = pair.a < 0 ? static_cast<T>(0.0f) : a[pair.a];
      const T y = pair.b < 0 ? static_cast<T>(0.0f) : b[pair.b];
      return kMaximum ? (x < y ? y : x) : (y < x ? y : x);
    });
    return absl::OkStatus();
  });
}

/// Makes output `i` a vector with, for every one of `to`, the value of the equal one of `from`, 0
/// if there is none. `offset` is subtracted from `to`. The result is how many of `from` were met.
absl::StatusOr<int64_t> PutMatching(KernelContext& ctx, int i, const SparseIndices& from,
                                    const Tensor& values, const SparseIndices& to,
                                    absl::Span<const int64_t> offset) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(i, values.type(), Shape({to.size()})));
  int64_t met = 0;
  const absl::Status status = SwitchNumber(values.type(), [&]<typename T>() {
    const T* in = values.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    DimVector index(to.rank());
    int64_t at = 0;
    for (int64_t k = 0; k < to.size(); ++k) {
      for (int d = 0; d < to.rank(); ++d) {
        index[d] = static_cast<int64_t>(static_cast<uint64_t>(to[k][d]) -
                                        (offset.empty() ? 0 : static_cast<uint64_t>(offset[d])));
      }
      int order = 1;
      while (at < from.size() && (order = CompareIndices(from[at], index.data(), to.rank())) < 0) {
        ++at;
      }
      const bool equal = at < from.size() && order == 0;
      out[k] = equal ? in[at] : static_cast<T>(0.0f);
      met += equal ? 1 : 0;
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return met;
}

absl::Status SparseAddGrad(KernelContext& ctx) {
  const Tensor &grad = ctx.input(0), &sum = ctx.input(3);
  TROUPE_RETURN_IF_ERROR(CheckIndicesAndValues(sum, grad, "sum"));
  TROUPE_RETURN_IF_ERROR(CheckRowsOf(ctx.input(1), sum.dim(1), "a_indices"));
  TROUPE_RETURN_IF_ERROR(CheckRowsOf(ctx.input(2), sum.dim(1), "b_indices"));
  for (int i = 0; i < 2; ++i) {
    TROUPE_RETURN_IF_ERROR(
        PutMatching(ctx, i, SparseIndices(sum), grad, SparseIndices(ctx.input(i + 1)), {})
            .status());
  }
  return absl::OkStatus();
}

absl::Status SparseSliceGrad(KernelContext& ctx) {
  const Tensor &grad = ctx.input(0), &output = ctx.input(3);
  TROUPE_ASSIGN_OR_RETURN(const DimVector start, ReadSparseSliceGrad(ctx));
  TROUPE_ASSIGN_OR_RETURN(const int64_t met, PutMatching(ctx, 0, SparseIndices(output), grad,
                                                         SparseIndices(ctx.input(1)), start));
  if (met == grad.num_elements()) return absl::OkStatus();
  return SparseSliceGradNotMet(grad.num_elements(), met);
}

template <typename T>
void RegisterAdd(ElementType threshold) {
  const KernelSpec spec =
      KernelSpec("SparseAdd").Types("T", {kElementType<T>}).Types("Treal", {threshold});
  if constexpr (IsComplex(kElementType<T>)) {
    KernelRegistry::Global()->Register(spec, MakeKernel<Add<T, typename T::value_type>>);
  } else {
    KernelRegistry::Global()->Register(spec, MakeKernel<Add<T, T>>);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  RegisterAdd<float>(ElementType::kFloat);
  RegisterAdd<double>(ElementType::kDouble);
  RegisterAdd<int8_t>(ElementType::kInt8);
  RegisterAdd<int16_t>(ElementType::kInt16);
  RegisterAdd<int32_t>(ElementType::kInt32);
  RegisterAdd<int64_t>(ElementType::kInt64);
  RegisterAdd<complex64>(ElementType::kFloat);
  RegisterAdd<complex128>(ElementType::kDouble);
  return true;
}();
REGISTER_KERNEL(KernelSpec("SparseSparseMaximum").Types("T", RealNumberTypes()),
                MakeKernel<Extreme<true>>);
REGISTER_KERNEL(KernelSpec("SparseSparseMinimum").Types("T", RealNumberTypes()),
                MakeKernel<Extreme<false>>);
REGISTER_KERNEL(KernelSpec("SparseAddGrad")
                    .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kInt8,
                                 ElementType::kInt16, ElementType::kInt32, ElementType::kInt64,
                                 ElementType::kComplex64, ElementType::kComplex128}),
                MakeKernel<SparseAddGrad>);
REGISTER_KERNEL(KernelSpec("SparseSliceGrad").Types("T", NumberTypes()),
                MakeKernel<SparseSliceGrad>);

}  // namespace
}  // namespace troupe
