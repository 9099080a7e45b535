// SparseReorder, SparseReshape, SparseConcat, SparseSplit, SparseSlice: elements change their
// places.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status PutShape(KernelContext& ctx, int i, const Shape& shape) {
  return PutIntegers(ctx, i, ElementType::kInt64, shape.dims());
}

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

/// `sizes` with its -1, if there is one, replaced by what makes `num_elements` of all.
absl::StatusOr<Shape> CompleteShape(DimVector sizes, const Shape& from) {
  int unknown = -1;
  int64_t known = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) {
      if (sizes[i] < 0) return InvalidArgument("new_shape[", i, "] must not be ", sizes[i]);
      known = MultiplyWithoutOverflow(known, sizes[i]);
      if (known < 0) return InvalidArgument("new_shape has too many elements");
    } else if (unknown >= 0) {
      return InvalidArgument("only one size of new_shape may be -1, got those of the dimensions ",
                             unknown, " and ", i);
    } else {
      unknown = static_cast<int>(i);
    }
  }
  if (unknown >= 0) {
    if (known == 0 || from.num_elements() % known != 0) {
      return InvalidArgument("the shape ", from.ToString(), " with ", from.num_elements(),
                             " elements cannot be reshaped to sizes with the product ", known,
                             " and one more");
    }
    sizes[unknown] = from.num_elements() / known;
  }
  TROUPE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(sizes));
  if (shape.num_elements() != from.num_elements()) {
    return InvalidArgument("the shape ", from.ToString(), " cannot be reshaped to ",
                           shape.ToString(), ": they have ", from.num_elements(), " and ",
                           shape.num_elements(), " elements");
  }
  return shape;
}

absl::Status SparseReshape(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const Shape from, ReadShapeVector(ctx.input(1), "input_shape"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadIntegerVector(ctx.input(2), "new_shape"));
  TROUPE_ASSIGN_OR_RETURN(const Shape to, CompleteShape(sizes, from));
  if (indices.rank() != 2 || indices.dim(1) != from.rank()) {
    return InvalidArgument("input_indices of shape ", indices.shape().ToString(),
                           " are not for the shape ", from.ToString());
  }
  if (from.rank() == 0 && indices.dim(0) > 1) {
    return InvalidArgument("a scalar has one element at most, got ", indices.dim(0));
  }
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
  for (int64_t i = 0; i < input.size() && to.rank() > 0; ++i, index += to.rank()) {
    int64_t place = input.Linear(i);
    for (int d = to.rank() - 1; d >= 0; --d) {
      index[d] = place % to.dim(d);
      place /= to.dim(d);
    }
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
  DimVector sizes(inputs[0].shape.dims().begin(), inputs[0].shape.dims().end());
  std::vector<int64_t> joined(count * rank);
  int64_t* to = joined.data();
  for (int i = 0; i < n; ++i) {
    const SparseTensor& input = inputs[i];
    for (int d = 0; d < rank || input.rank() != rank; ++d) {
      if (input.rank() != rank || (d != axis && input.shape.dim(d) != sizes[d])) {
        return InvalidArgument("inputs of the shapes ", inputs[0].shape.ToString(), " and ",
                               input.shape.ToString(), " (input ", i,
                               ") cannot be joined along dimension ", axis);
      }
    }
    const int64_t offset = i == 0 ? 0 : sizes[axis];
    if (i > 0 && __builtin_add_overflow(sizes[axis], input.shape.dim(axis), &sizes[axis])) {
      return InvalidArgument("the sizes of dimension ", axis, " have too large a sum");
    }
    for (int64_t k = 0; k < input.size(); ++k, to += rank) {
      std::copy_n(input.indices[k], rank, to);
      to[axis] += offset;
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
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
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(ctx.input(0), "split_dim"));
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, input.rank(), "split_dim"));
  const int64_t size = input.shape.dim(axis);
  if (num_split > size) {
    return InvalidArgument("dimension ", axis, " of the shape ", input.shape.ToString(),
                           " cannot be split into ", num_split);
  }
  // The first `larger` parts have one more.
  const int64_t part = size / num_split, larger = size % num_split;
  const int64_t in_larger = (part + 1) * larger;
  std::vector<std::vector<int64_t>> places(num_split), indices(num_split);
  const auto begin_of = [&](int64_t k) { return part * k + std::min(k, larger); };
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t* index = input.indices[i];
    const int64_t k = index[axis] < in_larger ? index[axis] / (part + 1)
                                              : larger + (index[axis] - in_larger) / part;
    places[k].push_back(i);
    indices[k].insert(indices[k].end(), index, index + input.rank());
    *(indices[k].end() - input.rank() + axis) -= begin_of(k);
  }
  const int n = static_cast<int>(num_split);
  for (int k = 0; k < n; ++k) {
    TROUPE_RETURN_IF_ERROR(
        PutIndices(ctx, k, indices[k], static_cast<int64_t>(places[k].size()), input.rank()));
    TROUPE_RETURN_IF_ERROR(PutValues(ctx, n + k, input.values, places[k]));
    Shape shape = input.shape;
    shape.set_dim(axis, begin_of(k + 1) - begin_of(k));
    TROUPE_RETURN_IF_ERROR(PutShape(ctx, 2 * n + k, shape));
  }
  return absl::OkStatus();
}

absl::Status SparseSlice(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector start, ReadIntegerVector(ctx.input(3), "start"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(ctx.input(4), "size"));
  const int rank = input.rank();
  if (static_cast<int>(start.size()) != rank || static_cast<int>(size.size()) != rank) {
    return InvalidArgument("start and size must have ", rank,
                           " elements for a tensor of the shape ", input.shape.ToString(), ", got ",
                           start.size(), " and ", size.size());
  }
  DimVector sizes(rank);
  for (int d = 0; d < rank; ++d) {
    const int64_t dim = input.shape.dim(d);
    if (size[d] < 0) return InvalidArgument("size[", d, "] must not be negative, got ", size[d]);
    // A start before the tensor is TensorFlow's: there is nothing there.
    sizes[d] = start[d] >= dim ? 0 : start[d] < dim - size[d] ? size[d] : dim - start[d];
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
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
