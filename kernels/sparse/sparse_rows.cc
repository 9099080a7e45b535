// SparseFillEmptyRows and its gradient.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/sparse/sparse_shapes.h"

namespace troupe {
namespace {

absl::Status SparseFillEmptyRows(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparseRows(ctx));
  const Tensor& default_value = ctx.input(3);
  const int rank = input.rank();
  const int64_t rows = input.shape.dim(0);
  int64_t starts = 0, previous = -1;  // Of rows, if they are in order.
  bool in_order = true;
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t row = input.indices[i][0];
    if (row < 0 || row >= rows) return SparseRowOutOfRange(i, row, rows);
    starts += row != previous ? 1 : 0;
    in_order = in_order && row >= previous;
    previous = row;
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * empty, ctx.AllocateOutput(2, ElementType::kBool, Shape({rows})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * map,
                          ctx.AllocateOutput(3, ElementType::kInt64, Shape({input.size()})));
  if (in_order && starts == rows) {  // Nothing is to be added or moved.
    std::fill_n(empty->mutable_data<bool>(), rows, false);
    std::iota(map->mutable_data<int64_t>(), map->mutable_data<int64_t>() + input.size(), 0);
    ctx.PassThrough(0, 0);
    ctx.PassThrough(1, 1);
    return absl::OkStatus();
  }
  // Where the next element of each row goes.
  TROUPE_ASSIGN_OR_RETURN(Tensor ends_tensor, ctx.AllocateTemp(ElementType::kInt64, Shape({rows})));
  int64_t* ends = ends_tensor.mutable_data<int64_t>();
  std::fill_n(ends, rows, 0);
  for (int64_t i = 0; i < input.size(); ++i) ++ends[input.indices[i][0]];
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    empty->mutable_data<bool>()[row] = ends[row] == 0;
    const int64_t more = std::max<int64_t>(1, ends[row]);
    ends[row] = count;
    count += more;
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, rank})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values,
                          ctx.AllocateOutput(1, input.values.type(), Shape({count})));
  int64_t *out = indices->mutable_data<int64_t>(), *places = map->mutable_data<int64_t>();
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t* index = input.indices[i];
    places[i] = ends[index[0]]++;
    CopyIndex(index, rank, out + places[i] * rank);
  }
  const bool* is_empty = empty->mutable_data<bool>();
  for (int64_t row = 0; row < rows; ++row) {
    if (!is_empty[row]) continue;
    out[ends[row] * rank] = row;
    std::fill_n(out + ends[row] * rank + 1, rank - 1, 0);
  }
  return SwitchBySize(input.values.type(), [&]<typename T>() {
    const T* from = static_cast<const T*>(input.values.raw_data());
    const T* filling = static_cast<const T*>(default_value.raw_data());
    T* to = static_cast<T*>(values->mutable_raw_data());
    for (int64_t i = 0; i < input.size(); ++i) to[places[i]] = from[i];
    for (int64_t row = 0; row < rows; ++row) {
      if (is_empty[row]) to[ends[row]] = *filling;
    }
    return absl::OkStatus();
  });
}

absl::Status SparseFillEmptyRowsGrad(KernelContext& ctx) {
  const Tensor &map = ctx.input(0), &grad = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckSparseFillEmptyRowsGrad(ctx));
  const int64_t size = grad.dim(0);
  const auto places = map.unchecked_values<int64_t>();
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] >= size) {
      return SparsePlaceOutOfRange(static_cast<int64_t>(i), places[i], size);
    }
  }
  TROUPE_RETURN_IF_ERROR(PutValues(ctx, 0, grad, places));
  TROUPE_ASSIGN_OR_RETURN(Tensor * rest, ctx.AllocateOutput(1, grad.type(), Shape()));
  std::vector<bool> taken(size);
  for (const int64_t place : places) taken[place] = true;
  return SwitchNumber(grad.type(), [&]<typename T>() {
    using Wide = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float,
                                    std::conditional_t<std::is_integral_v<T>, uint64_t, T>>;
    const T* in = grad.unchecked_data<T>();
    Wide sum(0);
    for (int64_t i = 0; i < size; ++i) {
      if (!taken[i]) sum += static_cast<Wide>(in[i]);
    }
    *rest->mutable_data<T>() = static_cast<T>(sum);
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("SparseFillEmptyRows"), MakeKernel<SparseFillEmptyRows>);
REGISTER_KERNEL(KernelSpec("SparseFillEmptyRowsGrad").Types("T", NumberTypes()),
                MakeKernel<SparseFillEmptyRowsGrad>);

}  // namespace
}  // namespace troupe
