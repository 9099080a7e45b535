// Tensor arrays and whole tensors: gathering and concatenating elements, scattering and splitting
// tensors into elements.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/data/join.h"
#include "kernels/data/tensor_array.h"

namespace troupe {
namespace {

std::vector<Part> PartsOf(const std::vector<Tensor>& values) {
  std::vector<Part> parts;
  parts.reserve(values.size());
  for (const Tensor& value : values) parts.push_back({&value, value.num_elements()});
  return parts;
}

/// InvalidArgument unless the input called `what` is a vector.
absl::Status CheckVector(const Tensor& tensor, const char* what) {
  if (tensor.rank() == 1) return absl::OkStatus();
  return InvalidArgument("Expected ", what,
                         " to be a vector, but received shape: ", tensor.shape().ToString());
}

/// Stacks the elements at `indices`.
absl::Status GatherElements(ElementMemory& memory, TensorArrayResource* array,
                            absl::Span<const int32_t> indices, const PartialShape& element_shape) {
  TROUPE_RETURN_IF_ERROR(array->MergeElementShape(element_shape));
  Shape element;
  std::vector<Tensor> values;
  if (indices.empty()) {
    TROUPE_RETURN_IF_ERROR(array->Size().status());
    const PartialShape shape = array->element_shape();
    if (!shape.fully_known()) {
      return absl::UnimplementedError(
          StrCat("TensorArray ", array->array_name(),
                 ": no elements are gathered, but element "
                 "shape ",
                 shape.ToString(),
                 " is not fully defined. Currently only static "
                 "shapes are supported when packing zero-size TensorArrays."));
    }
    TROUPE_ASSIGN_OR_RETURN(element, shape.ToShape());
  } else {
    TROUPE_RETURN_IF_ERROR(array->ReadMany(indices, memory, &values));
    element = values[0].shape();
    if (!element_shape.IsCompatibleWith(element)) {
      return InvalidArgument("TensorArray was passed element_shape ", element_shape.ToString(),
                             " which does not match the Tensor at index 0: ", element.ToString());
    }
  }
  for (size_t i = 1; i < values.size(); ++i) {
    if (!(values[i].shape() == element)) {
      return InvalidArgument("TensorArray ", array->array_name(),
                             " has inconsistent shapes.  Index 0 has shape: ", element.ToString(),
                             " but index ", i, " has shape: ", values[i].shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                          ShapeOfRows(static_cast<int64_t>(indices.size()), element));
  return memory.PutJoined(0, array->type(), shape, PartsOf(values));
}

/// 0, 1, ... count - 1. InvalidArgument if those are no indices of an array.
absl::StatusOr<std::vector<int32_t>> AllIndices(int64_t count) {
  if (count > TensorArrayResource::kMaxStored) {
    return InvalidArgument("An array has no ", count, " elements");
  }
  std::vector<int32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

absl::Status Gather(KernelContext& ctx, ElementMemory& memory, ElementType type,
                    const PartialShape& element_shape) {
  const Tensor& indices = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckVector(indices, "indices"));
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx, type));
  return GatherElements(memory, array.get(), indices.unchecked_values<int32_t>(), element_shape);
}

absl::Status PackAll(KernelContext& ctx, ElementMemory& memory, ElementType type,
                     const PartialShape& element_shape) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx, type));
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int32_t> indices, AllIndices(size));
  return GatherElements(memory, array.get(), indices, element_shape);
}

absl::Status Concat(KernelContext& ctx, ElementMemory& memory, ElementType type,
                    const PartialShape& except0) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx, type));
  std::vector<Tensor> values;
  TROUPE_RETURN_IF_ERROR(array->ReadAll(memory, &values));
  Shape row;
  if (values.empty()) {
    if (!except0.fully_known()) {
      return absl::UnimplementedError(
          StrCat("TensorArray ", array->array_name(),
                 " has size zero, but "
                 "element_shape_except0 ",
                 except0.ToString(),
                 " is not fully defined. "
                 "Currently only static shapes are supported when concatenating zero-size "
                 "TensorArrays."));
    }
    TROUPE_ASSIGN_OR_RETURN(row, except0.ToShape());
  }
  TROUPE_ASSIGN_OR_RETURN(
      Tensor * lengths,
      ctx.AllocateHostOutput(1, ElementType::kInt64, Shape({static_cast<int64_t>(values.size())})));
  int64_t rows = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Shape& shape = values[i].shape();
    if (shape.rank() == 0) {
      return InvalidArgument("TensorArray ", array->array_name(),
                             ": Concat saw a scalar shape "
                             "at index ",
                             i,
                             " but requires at least vectors.  Did you mean to "
                             "call pack?");
    }
    const Shape own = WithoutFirst(shape);
    if (i == 0) {
      if (!except0.IsCompatibleWith(own)) {
        return InvalidArgument("TensorArray was passed element_shape_except0 ", except0.ToString(),
                               " but index 0 has (excluding dimension 0) shape: ", own.ToString(),
                               " which does not match.");
      }
      row = own;
    } else if (!(own == row)) {
      return InvalidArgument("TensorArray ", array->array_name(),
                             " has inconsistent shapes.  "
                             "Index 0 has (excluding dimension 0) shape: ",
                             row.ToString(), " but index ", i,
                             " has (excluding dimension 0) shape: ", own.ToString());
    }
    lengths->mutable_data<int64_t>()[i] = shape.dim(0);
    rows += shape.dim(0);
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(rows, row));
  return memory.PutJoined(0, type, shape, PartsOf(values));
}

absl::Status CheckType(const TensorArrayResource& array, ElementType type) {
  if (array.type() == type) return absl::OkStatus();
  return InvalidArgument("TensorArray ", array.array_name(), " has dtype ",
                         ElementTypeName(array.type()), " but the value has dtype ",
                         ElementTypeName(type), ".");
}

absl::Status Scatter(KernelContext& ctx, ElementMemory& memory) {
  const Tensor &indices = ctx.input(1), &value = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  TROUPE_RETURN_IF_ERROR(CheckType(*array, value.type()));
  TROUPE_RETURN_IF_ERROR(CheckVector(indices, "indices"));
  if (value.rank() == 0) {
    return InvalidArgument(
        "Input value for unpack must be at least a vector but received shape: []");
  }
  if (value.dim(0) != indices.dim(0)) {
    return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", indices.dim(0),
                           " vs. ", value.dim(0));
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  if (indices.num_elements() > 0 && !array->dynamic_size()) {
    const absl::Span<const int32_t> at = indices.unchecked_values<int32_t>();
    const int32_t highest = *std::max_element(at.begin(), at.end());
    if (highest >= size) {
      return InvalidArgument("TensorArray ", array->array_name(),
                             ": Max scatter index must be < array size (", highest, " vs. ", size,
                             ")");
    }
  }
  const Shape row = WithoutFirst(value.shape());
  std::vector<Tensor> rows;
  rows.reserve(value.dim(0));
  for (int64_t i = 0; i < value.dim(0); ++i) rows.push_back(RowOf(value, row, i));
  TROUPE_RETURN_IF_ERROR(
      array->WriteMany(indices.unchecked_values<int32_t>(), std::move(rows), memory));
  ctx.PassThrough(3, 0);
  return absl::OkStatus();
}

absl::Status Split(KernelContext& ctx, ElementMemory& memory) {
  const Tensor &value = ctx.input(1), &lengths = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  TROUPE_RETURN_IF_ERROR(CheckType(*array, value.type()));
  TROUPE_RETURN_IF_ERROR(CheckVector(lengths, "lengths"));
  if (value.rank() == 0) {
    return InvalidArgument("Expected value to be at least a vector, but received shape: []");
  }
  const int64_t count = lengths.num_elements();
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  if (count > INT32_MAX || count < size || (count > size && !array->dynamic_size())) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                           " vs. ", count,
                           "), and the TensorArray is not marked as dynamically resizeable");
  }
  std::vector<Tensor> pieces;
  pieces.reserve(count);
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = lengths.unchecked_data<int64_t>()[i];
    if (length < 0 || length > value.dim(0) - begin) {
      return InvalidArgument("Expected lengths that add up to values.shape[0], ", value.dim(0),
                             ", got length ", length, " at index ", i, " after ", begin,
                             " rows; value's shape is: ", value.shape().ToString());
    }
    pieces.push_back(value.Slice(begin, begin + length));
    begin += length;
  }
  if (begin != value.dim(0)) {
    return InvalidArgument(
        "Expected sum of lengths to be equal to values.shape[0], but sum of "
        "lengths is ",
        begin, " and value's shape is: ", value.shape().ToString());
  }
  std::vector<int32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  TROUPE_RETURN_IF_ERROR(array->WriteMany(indices, std::move(pieces), memory));
  ctx.PassThrough(3, 0);
  return absl::OkStatus();
}

absl::Status UnpackAll(KernelContext& ctx, ElementMemory& memory) {
  const Tensor& value = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  TROUPE_RETURN_IF_ERROR(CheckType(*array, value.type()));
  if (value.rank() == 0) {
    return InvalidArgument(
        "Input value for unpack must be at least a vector but received shape: []");
  }
  const int64_t count = value.dim(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  if (count < size || (count > size && !array->dynamic_size())) {
    return InvalidArgument("Input value must have first dimension equal to the array size (", count,
                           " vs. ", size, ")");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int32_t> indices, AllIndices(count));
  std::vector<Tensor> rows;
  rows.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(value.Slice(i, i + 1));
    rows.back().set_shape(WithoutFirst(value.shape()));
  }
  TROUPE_RETURN_IF_ERROR(array->WriteMany(indices, std::move(rows), memory));
  ctx.PassThrough(2, 0);
  return absl::OkStatus();
}

KernelSpec OfType(const char* op, const char* attr) {
  KernelSpec spec = KernelSpec(op).Device("DEFAULT").Types(attr, AllTypes());
  for (const char* on_host : {"indices", "lengths"}) {
    spec.HostMemory(on_host);
  }
  return spec;
}

REGISTER_KERNELS(OfType("TensorArrayGatherV2", "dtype"),
                 (MakeElementKernel<Gather, "dtype", "element_shape">), "TensorArrayGatherV3",
                 "TensorArrayGather");
REGISTER_KERNEL(OfType("TensorArrayPack", "dtype"),
                (MakeElementKernel<PackAll, "dtype", "element_shape">));
REGISTER_KERNELS(OfType("TensorArrayConcatV2", "dtype"),
                 (MakeElementKernel<Concat, "dtype", "element_shape_except0">),
                 "TensorArrayConcatV3", "TensorArrayConcat");
REGISTER_KERNELS(OfType("TensorArrayScatterV2", "T"), MakeElementKernel<Scatter>,
                 "TensorArrayScatterV3", "TensorArrayScatter");
REGISTER_KERNEL(OfType("TensorArrayUnpack", "T"), MakeElementKernel<UnpackAll>);
REGISTER_KERNELS(OfType("TensorArraySplitV2", "T"), MakeElementKernel<Split>, "TensorArraySplitV3",
                 "TensorArraySplit");

}  // namespace
}  // namespace troupe
