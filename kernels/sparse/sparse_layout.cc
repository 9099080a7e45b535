// SparseReorder, SparseReshape, SparseConcat, SparseSplit, SparseSlice: elements change their
// places.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/sparse/sparse_shapes.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status SparseReorder(KernelContext& ctx) {
  // As in TensorFlow indices out of bounds are brought into order, too.
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  const std::vector<int64_t> places = SortedPlaces(input.indices);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kInt64, ctx.input(0).shape()));
  int64_t* to = output->mutable_data<int64_t>();
  for (const int64_t place : places) to = std::copy_n(input.indices[place], input.rank(), to);
  return PutValues(ctx, 1, input.values, places);
}

absl::Status SparseReshape(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto shapes, SparseReshapeShapes::Read(ctx));
  const auto& [from, to] = shapes;
  TROUPE_RETURN_IF_ERROR(PutShape(ctx, 1, to));
  if (from == to) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  // The indices stand for values, too: only bounds are looked at.
  const SparseTensor input(indices, indices, from);
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input_indices"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kInt64,
                                                              Shape({input.size(), to.rank()})));
  int64_t* index = output->mutable_data<int64_t>();
  const DimVector old_dims(from.dims().begin(), from.dims().end());
  const DimVector new_dims(to.dims().begin(), to.dims().end());
  const int old_rank = from.rank(), new_rank = to.rank();
  for (int64_t i = 0; i < input.size() && new_rank > 0; ++i, index += new_rank) {
    int64_t place = 0;
    for (int d = 0; d < old_rank; ++d) place = place * old_dims[d] + input.indices[i][d];
    for (int d = new_rank - 1; d > 0; --d) {
      const int64_t rest = place / new_dims[d];
      index[d] = place - rest * new_dims[d];
      place = rest;
    }
    index[0] = place;
  }
  return absl::OkStatus();
}

absl::Status SparseConcat(KernelContext& ctx, int64_t concat_dim) {
  const int n = ctx.num_inputs() / 3;
  std::vector<SparseTensor> inputs;
  int64_t count = 0;
  for (int i = 0; i < n; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        SparseTensor input,
        ReadSparse(ctx.input(i), ctx.input(n + i), ctx.input(2 * n + i), StrCat("input ", i)));
    TROUPE_RETURN_IF_ERROR(input.CheckBounds(StrCat("input ", i)));
    count += input.size();
    inputs.push_back(std::move(input));
  }
  const int rank = inputs[0].rank();
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(concat_dim, rank, "concat_dim"));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, SparseJoinedShape(inputs, axis));
  std::vector<int64_t> joined(count * rank);
  int64_t *to = joined.data(), offset = 0;
  for (const SparseTensor& input : inputs) {
    for (int64_t k = 0; k < input.size(); ++k, to += rank) {
      std::copy_n(input.indices[k], rank, to);
      to[axis] += offset;
    }
    offset += input.shape.dim(axis);
  }
  TROUPE_RETURN_IF_ERROR(PutShape(ctx, 2, shape));
  TROUPE_ASSIGN_OR_RETURN(const Tensor indices,
                          Tensor::FromValues<int64_t>(joined, Shape({count, rank})));
  const std::vector<int64_t> places = SortedPlaces(SparseIndices(indices));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out_indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, indices.shape()));
  int64_t* index = out_indices->mutable_data<int64_t>();
  for (const int64_t place : places) index = std::copy_n(&joined[place * rank], rank, index);
  const ElementType type = ctx.input(n).type();
  TROUPE_ASSIGN_OR_RETURN(Tensor all, ctx.AllocateTemp(type, Shape({count})));
  TROUPE_RETURN_IF_ERROR(SwitchBySize(type, [&]<typename T>() {
    T* value = static_cast<T*>(all.mutable_raw_data());
    for (const SparseTensor& input : inputs) {
      value = std::copy_n(static_cast<const T*>(input.values.raw_data()), input.size(), value);
    }
    return absl::OkStatus();
  }));
  return PutValues(ctx, 1, all, places);
}

absl::Status SparseSplit(KernelContext& ctx, int64_t num_split) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 1, "input"));
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input"));
  TROUPE_ASSIGN_OR_RETURN(const SparseParts parts,
                          SparseParts::Of(input.shape, ctx.input(0), num_split));
  std::vector<std::vector<int64_t>> places(num_split), indices(num_split);
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t* index = input.indices[i];
    const int64_t k = parts.PartOf(index[parts.axis]);
    places[k].push_back(i);
    indices[k].insert(indices[k].end(), index, index + input.rank());
    *(indices[k].end() - input.rank() + parts.axis) -= parts.begin(k);
  }
  const int n = static_cast<int>(num_split);
  for (int k = 0; k < n; ++k) {
    TROUPE_RETURN_IF_ERROR(
        PutIndices(ctx, k, indices[k], static_cast<int64_t>(places[k].size()), input.rank()));
    TROUPE_RETURN_IF_ERROR(PutValues(ctx, n + k, input.values, places[k]));
    Shape shape = input.shape;
    shape.set_dim(parts.axis, parts.begin(k + 1) - parts.begin(k));
    TROUPE_RETURN_IF_ERROR(PutShape(ctx, 2 * n + k, shape));
  }
  return absl::OkStatus();
}

absl::Status SparseSlice(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input"));
  TROUPE_ASSIGN_OR_RETURN(const auto bounds,
                          SparseSliceBounds::Of(input.shape, ctx.input(3), ctx.input(4)));
  const auto& [start, shape] = bounds;
  const int rank = input.rank();
  std::vector<int64_t> places, indices;
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t* index = input.indices[i];
    bool inside = true;
    for (int d = 0; d < rank && inside; ++d) {
      // The difference of the smaller and the larger one fits 64 bits without a sign.
      inside = index[d] >= start[d] &&
               static_cast<uint64_t>(index[d]) - static_cast<uint64_t>(start[d]) <
                   static_cast<uint64_t>(shape.dim(d));
    }
    if (!inside) continue;
    places.push_back(i);
    for (int d = 0; d < rank; ++d) indices.push_back(index[d] - start[d]);
  }
  TROUPE_RETURN_IF_ERROR(PutIndices(ctx, 0, indices, static_cast<int64_t>(places.size()), rank));
  TROUPE_RETURN_IF_ERROR(PutValues(ctx, 1, input.values, places));
  return PutShape(ctx, 2, shape);
}

REGISTER_KERNEL(KernelSpec("SparseReorder"), MakeKernel<SparseReorder>);
REGISTER_KERNEL(KernelSpec("SparseReshape"), MakeKernel<SparseReshape>);
REGISTER_KERNEL(KernelSpec("SparseConcat"), (MakeAttrKernel<SparseConcat, "concat_dim">));
REGISTER_KERNEL(KernelSpec("SparseSplit"), (MakeAttrKernel<SparseSplit, "num_split">));
REGISTER_KERNEL(KernelSpec("SparseSlice"), MakeKernel<SparseSlice>);

}  // namespace
}  // namespace troupe
