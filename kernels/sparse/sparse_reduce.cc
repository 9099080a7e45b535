// SparseReduceSum, SparseReduceMax and their forms with sparse results; SparseSoftmax.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/sparse/sparse_tensor.h"

namespace troupe {
namespace {

/// The elements of a sparse tensor by the element of the result that they are reduced to.
struct Groups {
  Shape shape;                    ///< Of the result without the reduced dimensions.
  Shape kept_shape;               ///< Of the result.
  std::vector<int64_t> elements;  ///< By groups, in each of them in the order of the input.
  std::vector<int64_t> begins;    ///< Of each group that is not empty; the end of the last one.
  std::vector<int64_t> places;    ///< In the result, of the groups, in ascending order.
};

absl::StatusOr<Groups> MakeGroups(const SparseTensor& input, const Tensor& axes, bool keep_dims) {
  if (axes.rank() > 1) {
    return InvalidArgument("reduction_axes must be a vector or a scalar, got shape ",
                           axes.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(axes, "reduction_axes"));
  std::vector<bool> reduced(input.rank());
  for (const int64_t value : values) {
    TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(value, input.rank(), "reduction_axes"));
    reduced[axis] = true;
  }
  DimVector sizes, kept_sizes;
  std::vector<int> kept;
  for (int d = 0; d < input.rank(); ++d) {
    if (!reduced[d]) {
      kept.push_back(d);
      sizes.push_back(input.shape.dim(d));
      kept_sizes.push_back(input.shape.dim(d));
    } else if (keep_dims) {
      kept_sizes.push_back(1);
    }
  }
  Groups groups;
  // A reduced size of 0 leaves others whose product is not bounded.
  TROUPE_ASSIGN_OR_RETURN(groups.shape, Shape::Create(sizes));
  TROUPE_ASSIGN_OR_RETURN(groups.kept_shape, Shape::Create(kept_sizes));
  std::vector<int64_t> place(input.size());
  for (int64_t i = 0; i < input.size(); ++i) {
    for (const int d : kept) place[i] = place[i] * input.shape.dim(d) + input.indices[i][d];
  }
  groups.elements.resize(input.size());
  std::iota(groups.elements.begin(), groups.elements.end(), 0);
  std::stable_sort(groups.elements.begin(), groups.elements.end(),
                   [&](int64_t a, int64_t b) { return place[a] < place[b]; });
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t at = place[groups.elements[i]];
    if (!groups.places.empty() && groups.places.back() == at) continue;
    groups.places.push_back(at);
    groups.begins.push_back(i);
  }
  groups.begins.push_back(input.size());
  return groups;
}

enum class Reduction { kSum, kMax };

template <Reduction kReduction, typename T>
T Reduce(const T* values, absl::Span<const int64_t> elements) {
  if constexpr (kReduction == Reduction::kMax) {
    T largest = values[elements[0]];
    for (const int64_t i : elements) largest = largest < values[i] ? values[i] : largest;
    return largest;
  } else if constexpr (std::is_integral_v<T>) {
    uint64_t sum = 0;  // Wraps around.
    for (const int64_t i : elements) sum += static_cast<uint64_t>(values[i]);
    return static_cast<T>(sum);
  } else {
    using Wide =
        std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;
    Wide sum(0);
    for (const int64_t i : elements) sum += static_cast<Wide>(values[i]);
    return static_cast<T>(sum);
  }
}

/// Writes the reduced group g to `to(g)`.
template <Reduction kReduction, typename To>
absl::Status ReduceGroups(const Tensor& values, const Groups& groups, Tensor* output, To to) {
  const auto reduce = [&]<typename T>() {
    const T* in = values.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    for (size_t g = 0; g < groups.places.size(); ++g) {
      const int64_t begin = groups.begins[g];
      out[to(g)] = Reduce<kReduction>(
          in, absl::MakeConstSpan(groups.elements).subspan(begin, groups.begins[g + 1] - begin));
    }
    return absl::OkStatus();
  };
  if constexpr (kReduction == Reduction::kMax) {
    return SwitchReal(values.type(), reduce);
  } else {
    return SwitchNumber(values.type(), reduce);
  }
}

template <Reduction kReduction>
absl::Status SparseReduce(KernelContext& ctx, bool keep_dims) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input"));
  TROUPE_ASSIGN_OR_RETURN(const Groups groups, MakeGroups(input, ctx.input(3), keep_dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, input.values.type(), groups.kept_shape));
  // The zero of every type of numbers has zero bytes.
  std::fill_n(static_cast<char*>(output->mutable_raw_data()), output->bytes(), 0);
  return ReduceGroups<kReduction>(input.values, groups, output,
                                  [&](size_t g) { return groups.places[g]; });
}

template <Reduction kReduction>
absl::Status SparseReduceSparse(KernelContext& ctx, bool keep_dims) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input"));
  TROUPE_ASSIGN_OR_RETURN(const Groups groups, MakeGroups(input, ctx.input(3), keep_dims));
  const auto count = static_cast<int64_t>(groups.places.size());
  const int rank = groups.kept_shape.rank();
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, rank})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values,
                          ctx.AllocateOutput(1, input.values.type(), Shape({count})));
  int64_t* index = indices->mutable_data<int64_t>();
  for (int64_t place : groups.places) {
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = place % groups.kept_shape.dim(d);
      place /= groups.kept_shape.dim(d);
    }
    index += rank;
  }
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 2, ElementType::kInt64, groups.kept_shape.dims()));
  return ReduceGroups<kReduction>(input.values, groups, values, [](size_t g) { return g; });
}

absl::Status SparseSoftmax(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "sp"));
  if (input.rank() < 2) {
    return InvalidArgument("the rank must be 2 at least, got the shape ", input.shape.ToString());
  }
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("sp"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, input.values.type(), input.values.shape()));
  return SwitchType<half, float, double>(input.values.type(), [&]<typename T>() {
    using Wide = std::conditional_t<std::is_same_v<T, half>, float, T>;
    const T* in = input.values.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    std::vector<Wide> powers;
    for (int64_t begin = 0, end = 0; begin < input.size(); begin = end) {
      auto largest = static_cast<Wide>(in[begin]);
      for (end = begin + 1;
           end < input.size() &&
           CompareIndices(input.indices[begin], input.indices[end], input.rank() - 1) == 0;
           ++end) {
        largest = std::max(largest, static_cast<Wide>(in[end]));
      }
      powers.clear();
      Wide sum = 0;
      for (int64_t i = begin; i < end; ++i) {
        powers.push_back(std::exp(static_cast<Wide>(in[i]) - largest));
        sum += powers.back();
      }
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(powers[i - begin] / sum);
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("SparseReduceSum").Types("T", NumberTypes()),
                (MakeAttrKernel<SparseReduce<Reduction::kSum>, "keep_dims">));
REGISTER_KERNEL(KernelSpec("SparseReduceSumSparse").Types("T", NumberTypes()),
                (MakeAttrKernel<SparseReduceSparse<Reduction::kSum>, "keep_dims">));
REGISTER_KERNEL(KernelSpec("SparseReduceMax").Types("T", RealNumberTypes()),
                (MakeAttrKernel<SparseReduce<Reduction::kMax>, "keep_dims">));
REGISTER_KERNEL(KernelSpec("SparseReduceMaxSparse").Types("T", RealNumberTypes()),
                (MakeAttrKernel<SparseReduceSparse<Reduction::kMax>, "keep_dims">));
REGISTER_KERNEL(KernelSpec("SparseSoftmax"), MakeKernel<SparseSoftmax>);

}  // namespace
}  // namespace troupe
