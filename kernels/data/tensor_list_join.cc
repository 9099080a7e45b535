// Tensor lists and whole tensors: stacking, gathering and concatenating the elements of a list;
// making a list of the rows or slices of a tensor.
#include <algorithm>
#include <utility>
#include <vector>

#include "graph/shape_inference.h"
#include "kernels/common/registration.h"
#include "kernels/data/join.h"
#include "kernels/data/tensor_list.h"

namespace troupe {
namespace {

/// `tensor`, or as many zeros if it is not initialised.
void AddPart(const Tensor& tensor, int64_t elements, std::vector<Part>* parts) {
  if (tensor.valid()) {
    parts->push_back({&tensor, elements});
  } else if (!parts->empty() && parts->back().from == nullptr) {
    parts->back().count += elements;  // Long lists may consist of little else.
  } else {
    parts->push_back({nullptr, elements});
  }
}

/// Stacks `count` elements of the list along a new dimension; number k is `element(k)` for k <
/// `stored`, from there on they are not initialised: there may be very many.
template <typename ElementAt>
absl::Status Stack(const ElementMemory& memory, const TensorList& list, const Tensor& shape_input,
                   int64_t count, int64_t stored, ElementAt element) {
  absl::StatusOr<PartialShape> merged = list.MergedShape(shape_input);
  if (!merged.ok()) return merged.status();
  PartialShape shape = *std::move(merged);
  if (count == 0 && !shape.fully_known()) {
    return InvalidArgument(
        "Tried to stack or gather no elements from a list with non-fully-defined element_shape: ",
        shape.ToString());
  }
  Shape known;
  bool is_known = false;
  if (shape.fully_known()) {
    TROUPE_ASSIGN_OR_RETURN(known, shape.ToShape());
    is_known = true;
  }
  // TensorListSplit makes lists whose elements need not be of the list's shape.
  for (int64_t k = 0; k < stored; ++k) {
    const Tensor& tensor = element(k);
    if (!tensor.valid()) continue;
    if (is_known ? !(known == tensor.shape()) : !shape.IsCompatibleWith(tensor.shape())) {
      return InvalidArgument(
          "Tried to stack or gather elements of a list whose shapes differ: element ", k,
          " has shape ", tensor.shape().ToString(), ", expected ", shape.ToString());
    }
    if (!is_known) {
      known = tensor.shape();
      shape = known;
      is_known = true;
    }
  }
  if (!is_known) {
    return InvalidArgument(
        "Tried to stack or gather a list which only contains uninitialized "
        "tensors and has a non-fully-defined element_shape: ",
        shape.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape output_shape, ShapeOfRows(count, known));
  std::vector<Part> parts;
  if (const int64_t elements = known.num_elements(); elements > 0) {
    for (int64_t k = 0; k < stored; ++k) AddPart(element(k), elements, &parts);
    if (count > stored) AddPart(Tensor(), (count - stored) * elements, &parts);
  }
  return memory.PutJoined(0, list.type(), output_shape, parts);
}

absl::Status StackList(KernelContext& ctx, ElementMemory& memory, ElementType type,
                       int64_t num_elements) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->CheckType(type));
  const int64_t size = list->size();
  if (num_elements != -1 && size != num_elements) {
    return InvalidArgument("Operation expected a list with ", num_elements,
                           " elements but got a list with ", size, " elements.");
  }
  return Stack(memory, *list, ctx.input(1), size, static_cast<int64_t>(list->stored().size()),
               [list](int64_t k) -> const Tensor& { return list->at(k); });
}

absl::Status GatherList(KernelContext& ctx, ElementMemory& memory, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->CheckType(type));
  const Tensor& indices = ctx.input(1);
  for (int32_t index : indices.unchecked_values<int32_t>()) {
    if (index < 0 || index >= list->size()) {
      return InvalidArgument("Trying to gather element ", index, " in a list with ", list->size(),
                             " elements.");
    }
  }
  const int32_t* at = indices.unchecked_data<int32_t>();
  const int64_t count = indices.num_elements();
  return Stack(memory, *list, ctx.input(2), count, count,
               [list, at](int64_t k) -> const Tensor& { return list->at(at[k]); });
}

/// TensorListConcat, TensorListConcatV2.
class ConcatList final : public Kernel {
 public:
  ConcatList(KernelConstruction& c, absl::Status* status)
      : type_(c.output_type(0)), shape_is_input_(c.num_inputs() > 1) {
    if (!shape_is_input_) *status = c.GetAttr("element_shape", &element_shape_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
    TROUPE_RETURN_IF_ERROR(list->CheckType(type_));
    absl::StatusOr<PartialShape> merged = shape_is_input_
                                              ? list->MergedShape(ctx.input(1))
                                              : element_shape_.MergeWith(list->element_shape());
    if (!merged.ok()) return merged.status();
    PartialShape shape = *std::move(merged);
    if (!shape.unknown_rank() && shape.rank() < 1) {
      return InvalidArgument(
          "Concat requires elements to be at least vectors, found scalars "
          "instead.");
    }
    PartialShape row = WithoutFirst(shape);
    // Without an input that gives it, the size of uninitialised elements is that of the others, if
    // the list does not say what shape its elements have.
    const bool infer = shape_is_input_ || !list->element_shape().fully_known();
    int64_t first = shape_is_input_ && !shape.unknown_rank() ? shape.dim(0) : -1;
    const int64_t size = list->size();
    if (size == 0 && !row.fully_known()) {
      return InvalidArgument(
          "All except the first dimension must be fully defined when concating "
          "an empty tensor list. element_shape: ",
          shape.ToString());
    }
    TROUPE_RETURN_IF_ERROR(CheckElements(*list, infer, &row, &first));
    if (!row.fully_known()) {
      return InvalidArgument(
          "Trying to concat list with only uninitialized tensors but "
          "element_shape is not fully defined but for its first dimension: ",
          shape.ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape row_shape, row.ToShape());
    const int64_t row_elements = row_shape.num_elements();
    TROUPE_ASSIGN_OR_RETURN(Tensor * lengths,
                            ctx.AllocateHostOutput(1, ElementType::kInt64, Shape({size})));
    int64_t* length = lengths->mutable_data<int64_t>();
    std::vector<Part> parts;
    int64_t rows = 0;
    for (int64_t i = 0; i < size; ++i) {
      const Tensor& tensor = list->at(i);
      if (tensor.valid()) {
        length[i] = tensor.dim(0);
      } else {
        TROUPE_ASSIGN_OR_RETURN(length[i], LengthOfUninitialized(ctx, i, first));
      }
      const int64_t elements = MultiplyWithoutOverflow(length[i], row_elements);
      if (elements < 0 || rows + length[i] < rows) {
        return InvalidArgument("the concatenated list would be too large: element ", i, " has ",
                               length[i], " rows of shape ", row_shape.ToString());
      }
      rows += length[i];
      AddPart(tensor, elements, &parts);
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape output_shape, ShapeOfRows(rows, row_shape));
    return ElementMemory(&ctx, &kernels_).PutJoined(0, type_, output_shape, parts);
  }

 private:
  /// Rows must be of one shape; if the leading size is not given and to be inferred, it is that of
  /// all elements if they agree.
  absl::Status CheckElements(const TensorList& list, bool infer, PartialShape* row,
                             int64_t* first) {
    const bool given = *first >= 0;
    bool agree = infer && !given;
    for (int64_t i = 0; i < static_cast<int64_t>(list.stored().size()); ++i) {
      const Tensor& tensor = list.at(i);
      if (!tensor.valid()) continue;
      if (tensor.rank() < 1) {
        return InvalidArgument("Concat saw a scalar shape at index ", i,
                               " but requires at least vectors.");
      }
      const Shape tensor_row = WithoutFirst(tensor.shape());
      if (!row->IsCompatibleWith(tensor_row)) {
        return InvalidArgument("Tried to concat tensors with unequal shapes: element ", i, " has ",
                               tensor.shape().ToString(),
                               ", expected, but for the first dimension, ", row->ToString());
      }
      if (!row->fully_known()) *row = tensor_row;
      // TensorFlow does not look if the list says what shape its elements have, true or not.
      if (given && *first != tensor.dim(0) && !list.element_shape().fully_known()) {
        return InvalidArgument(
            "First entry of element_shape input does not match the first dim of "
            "list element at index: ",
            i, ". Expected: ", *first, " Actual: ", tensor.dim(0));
      }
      if (agree && *first < 0) *first = tensor.dim(0);
      if (agree && *first != tensor.dim(0)) {
        agree = false;
        *first = -1;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> LengthOfUninitialized(KernelContext& ctx, int64_t i, int64_t first) {
    if (shape_is_input_) {
      const Tensor& leading = ctx.input(2);
      if (i < leading.num_elements()) {
        const int64_t length = leading.unchecked_data<int64_t>()[i];
        if (length < 0) {
          return InvalidArgument("leading_dims[", i, "] is ", length, ", must not be negative");
        }
        return length;
      }
      if (first < 0) {
        return InvalidArgument("List contains uninitialized tensor at index ", i,
                               " but leading_dims has only ", leading.num_elements(), " elements.");
      }
    }
    if (first < 0) {
      return InvalidArgument(
          "Concating a list with uninitialized tensors requires their leading "
          "dimension: element ",
          i, " is not initialized");
    }
    return first;
  }

  ElementType type_;
  bool shape_is_input_;
  PartialShape element_shape_;
  ElementKernels kernels_;
};

absl::Status AtLeastVector(const Tensor& tensor) {
  if (tensor.rank() > 0) return absl::OkStatus();
  return InvalidArgument("Tensor must be at least a vector, but saw shape: ",
                         tensor.shape().ToString());
}

absl::Status FromTensor(KernelContext& ctx) {
  const Tensor& tensor = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, InferenceContext::TensorAsShape(ctx.input(1), true));
  TROUPE_RETURN_IF_ERROR(AtLeastVector(tensor));
  const Shape row = WithoutFirst(tensor.shape());
  if (!shape.IsCompatibleWith(row)) {
    return InvalidArgument("Specified a list with shape ", shape.ToString(),
                           " from a tensor with shape ", row.ToString());
  }
  if (tensor.dim(0) > TensorList::kMaxSize) {
    return InvalidArgument("the tensor has too many rows for a list: ", tensor.dim(0));
  }
  auto list = MakeRef<TensorList>(tensor.type(), std::move(shape));
  list->Resize(tensor.dim(0));
  for (int64_t i = tensor.dim(0) - 1; i >= 0; --i) {
    TROUPE_RETURN_IF_ERROR(list->Set(i, RowOf(tensor, row, i)));
  }
  return PutList(ctx, 0, std::move(list));
}

absl::Status SplitToList(KernelContext& ctx) {
  const Tensor &tensor = ctx.input(0), &lengths = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, InferenceContext::TensorAsShape(ctx.input(1), true));
  if (!shape.unknown_rank() && shape.rank() < 1) {
    return InvalidArgument(
        "TensorListSplit requires element_shape to be at least of rank 1, but "
        "saw: ",
        shape.ToString());
  }
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape().ToString());
  }
  TROUPE_RETURN_IF_ERROR(AtLeastVector(tensor));
  if (!WithoutFirst(shape).IsCompatibleWith(WithoutFirst(tensor.shape()))) {
    return InvalidArgument("tensor shape ", tensor.shape().ToString(),
                           " is not compatible with element_shape ", shape.ToString());
  }
  auto list = MakeRef<TensorList>(tensor.type(), std::move(shape));
  int64_t begin = 0;
  for (int64_t length : lengths.unchecked_values<int64_t>()) {
    if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
    if (length > tensor.dim(0) - begin) {
      return InvalidArgument("Attempting to slice ", length, " rows from row ", begin,
                             " on of a tensor with length ", tensor.dim(0));
    }
    TROUPE_RETURN_IF_ERROR(list->Push(tensor.Slice(begin, begin + length)));
    begin += length;
  }
  if (begin != tensor.dim(0)) {
    return InvalidArgument("Unused values in tensor. Length of tensor: ", tensor.dim(0),
                           " Values used: ", begin);
  }
  return PutList(ctx, 0, std::move(list));
}

/// The vector `indices` of the rows of `tensor`; the highest one, -1 if there are none.
absl::StatusOr<int64_t> CheckIndices(const Tensor& tensor, const Tensor& indices) {
  TROUPE_RETURN_IF_ERROR(AtLeastVector(tensor));
  if (indices.rank() != 1 || indices.dim(0) != tensor.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected a vector of ",
                           tensor.dim(0), " indices, received shape ", indices.shape().ToString());
  }
  int64_t highest = -1;
  for (int32_t index : indices.unchecked_values<int32_t>()) {
    if (index < 0) {
      return InvalidArgument("Indices in TensorListScatter must all be non-negative, got ", index);
    }
    highest = std::max<int64_t>(highest, index);
  }
  return highest;
}

/// Makes the rows of `tensor` elements of the list, which is long enough.
absl::Status ScatterRows(const Tensor& tensor, const Tensor& indices, TensorList* list) {
  const Shape row = WithoutFirst(tensor.shape());
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    TROUPE_RETURN_IF_ERROR(list->Set(indices.unchecked_data<int32_t>()[i], RowOf(tensor, row, i)));
  }
  return absl::OkStatus();
}

/// TensorListScatter, TensorListScatterV2.
absl::Status ScatterToList(KernelContext& ctx) {
  const Tensor &tensor = ctx.input(0), &indices = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, InferenceContext::TensorAsShape(ctx.input(2), true));
  TROUPE_ASSIGN_OR_RETURN(const int64_t highest, CheckIndices(tensor, indices));
  const Shape row = WithoutFirst(tensor.shape());
  if (!shape.IsCompatibleWith(row)) {
    return InvalidArgument("Specified a list with shape ", shape.ToString(),
                           " from a tensor with shape ", row.ToString());
  }
  int64_t size = -1;
  if (ctx.num_inputs() > 3) {
    if (ctx.input(3).rank() != 0) {
      return InvalidArgument("num_elements must be a scalar, got shape ",
                             ctx.input(3).shape().ToString());
    }
    size = ctx.input(3).unchecked_scalar<int32_t>();
    if (size < -1) {
      return InvalidArgument("TensorListScatter expects num_elements >= -1, found: ", size);
    }
  }
  if (size >= 0 && highest >= size) {
    return InvalidArgument("TensorListScatter: Trying to scatter at index ", highest,
                           " in list with size ", size);
  }
  auto list = MakeRef<TensorList>(tensor.type(), std::move(shape));
  list->Resize(size >= 0 ? size : highest + 1);
  TROUPE_RETURN_IF_ERROR(ScatterRows(tensor, indices, list.get()));
  return PutList(ctx, 0, std::move(list));
}

absl::Status ScatterIntoList(KernelContext& ctx) {
  const Tensor &tensor = ctx.input(1), &indices = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->CheckType(tensor.type()));
  TROUPE_ASSIGN_OR_RETURN(const int64_t highest, CheckIndices(tensor, indices));
  if (!list->element_shape().IsCompatibleWith(WithoutFirst(tensor.shape()))) {
    return InvalidArgument("Tried to scatter rows of a tensor of shape ", tensor.shape().ToString(),
                           " into a list with element shape ", list->element_shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(TensorList * output, TakeList(ctx, 0, 0));
  if (highest >= output->size()) output->Resize(highest + 1);
  return ScatterRows(tensor, indices, output);
}

KernelSpec OfElements(const char* op) {
  KernelSpec spec = KernelSpec(op).Device("DEFAULT").Types("element_dtype", AllTypes());
  for (const char* on_host :
       {"element_shape", "num_elements", "indices", "lengths", "leading_dims"}) {
    spec.HostMemory(on_host);
  }
  return spec;
}

REGISTER_KERNEL(OfElements("TensorListStack"),
                (MakeElementKernel<StackList, "element_dtype", "num_elements">));
REGISTER_KERNEL(OfElements("TensorListGather"), (MakeElementKernel<GatherList, "element_dtype">));
REGISTER_KERNELS(OfElements("TensorListConcat"), MakeKernel<ConcatList>, "TensorListConcatV2");
REGISTER_KERNEL(OfElements("TensorListFromTensor"), MakeKernel<FromTensor>);
REGISTER_KERNEL(OfElements("TensorListSplit"), MakeKernel<SplitToList>);
REGISTER_KERNELS(OfElements("TensorListScatter"), MakeKernel<ScatterToList>, "TensorListScatterV2");
REGISTER_KERNEL(OfElements("TensorListScatterIntoExistingList"), MakeKernel<ScatterIntoList>);

}  // namespace
}  // namespace troupe
