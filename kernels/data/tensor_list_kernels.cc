// Tensor lists: making them, and reading and changing single elements.
#include <utility>

#include "graph/shape_inference.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/data/join.h"
#include "kernels/data/tensor_list.h"

namespace troupe {
namespace {

/// The value of a scalar int32 input.
absl::StatusOr<int32_t> ScalarInput(const Tensor& tensor, const char* what) {
  if (tensor.rank() != 0) {
    return InvalidArgument(what, " must be a scalar, got shape ", tensor.shape().ToString());
  }
  return tensor.unchecked_scalar<int32_t>();
}

/// EmptyTensorList, TensorListReserve.
template <bool kReserve>
absl::Status MakeList(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, InferenceContext::TensorAsShape(ctx.input(0), true));
  TROUPE_ASSIGN_OR_RETURN(
      const int32_t number,
      ScalarInput(ctx.input(1), kReserve ? "num_elements" : "max_num_elements"));
  if (kReserve && number < 0) {
    return InvalidArgument("The num_elements to reserve must be a non negative number, but got ",
                           number);
  }
  auto list = MakeRef<TensorList>(type, std::move(shape), kReserve ? -1 : number);
  if (kReserve) list->Resize(number);
  return PutList(ctx, 0, std::move(list));
}

absl::Status PushBack(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->Check(ctx.input(1), "append"));
  if (list->max_size() >= 0 && list->size() >= list->max_size()) {
    return InvalidArgument("Tried to push item into a full list; list size: ", list->size(),
                           ", max_num_elements: ", list->max_size());
  }
  TROUPE_ASSIGN_OR_RETURN(TensorList * output, TakeList(ctx, 0, 0));
  return output->Push(ctx.TakeInput(1));
}

absl::Status PopBack(KernelContext& ctx, ElementMemory& memory, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->CheckType(type));
  if (list->size() == 0) return InvalidArgument("Trying to pop from an empty list.");
  Tensor zeros;
  if (!list->at(list->size() - 1).valid()) {
    TROUPE_ASSIGN_OR_RETURN(zeros, list->Read(list->size() - 1, ctx.input(1), memory));
  }
  TROUPE_ASSIGN_OR_RETURN(TensorList * output, TakeList(ctx, 0, 0));
  Tensor last = output->Pop();
  if (last.valid()) {
    TROUPE_ASSIGN_OR_RETURN(last, memory.Fetch(std::move(last)));
  } else {
    last = std::move(zeros);
  }
  ctx.set_output(1, std::move(last));
  return absl::OkStatus();
}

absl::Status GetItem(KernelContext& ctx, ElementMemory& memory, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->CheckType(type));
  // TensorFlow takes one index of any rank here, and only here.
  if (ctx.input(1).num_elements() != 1) {
    return InvalidArgument("index must be a scalar, got shape ", ctx.input(1).shape().ToString());
  }
  const int32_t index = ctx.input(1).unchecked_data<int32_t>()[0];
  if (index < 0 || index >= list->size()) {
    return InvalidArgument("Trying to access element ", index, " in a list with ", list->size(),
                           " elements.");
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor element, list->Read(index, ctx.input(2), memory));
  ctx.set_output(0, std::move(element));
  return absl::OkStatus();
}

absl::Status SetItem(KernelContext& ctx, bool resize) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  TROUPE_RETURN_IF_ERROR(list->Check(ctx.input(2), "set"));
  TROUPE_ASSIGN_OR_RETURN(const int32_t index, ScalarInput(ctx.input(1), "index"));
  if (index < 0 || (index >= list->size() && !resize)) {
    return InvalidArgument("Trying to modify element ", index, " in a list with ", list->size(),
                           " elements.");
  }
  TROUPE_ASSIGN_OR_RETURN(TensorList * output, TakeList(ctx, 0, 0));
  if (index >= output->size()) output->Resize(int64_t{index} + 1);
  return output->Set(index, ctx.TakeInput(2));
}

absl::Status Length(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  return PutHostScalar(ctx, 0, static_cast<int32_t>(list->size()));
}

absl::Status ElementShape(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(0)));
  const PartialShape& shape = list->element_shape();
  if (!shape.unknown_rank()) return PutIntegers(ctx, 0, type, shape.dims());
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 0, type, {-1}));
  ctx.output(0).set_shape(Shape());
  return absl::OkStatus();
}

absl::Status Resize(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const int32_t size, ScalarInput(ctx.input(1), "size"));
  if (size < 0) {
    return InvalidArgument("TensorListResize expects size to be non-negative. Got: ", size);
  }
  TROUPE_ASSIGN_OR_RETURN(TensorList * output, TakeList(ctx, 0, 0));
  output->Resize(size);
  return absl::OkStatus();
}

/// The elements of one list, then those of the other, for every pair of lists.
absl::Status ConcatLists(KernelContext& ctx, ElementType type) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (!(a.shape() == b.shape())) {
    return InvalidArgument("input_a and input_b must have the same shape, got ",
                           a.shape().ToString(), " and ", b.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kVariant, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const TensorList* first, ListIn(a.unchecked_data<Variant>()[i]));
    TROUPE_ASSIGN_OR_RETURN(const TensorList* second, ListIn(b.unchecked_data<Variant>()[i]));
    TROUPE_RETURN_IF_ERROR(first->CheckType(type));
    TROUPE_RETURN_IF_ERROR(second->CheckType(type));
    absl::StatusOr<PartialShape> shape = first->element_shape().MergeWith(second->element_shape());
    if (!shape.ok()) {
      return InvalidArgument("the lists of pair ", i, " have incompatible element shapes: ",
                             first->element_shape().ToString(), " and ",
                             second->element_shape().ToString());
    }
    if (first->size() + second->size() > TensorList::kMaxSize) {
      return absl::ResourceExhaustedError("the lists together are too long");
    }
    auto joined = MakeRef<TensorList>(type, *std::move(shape), first->max_size());
    joined->Resize(first->size() + second->size());
    for (int64_t k = 0; k < static_cast<int64_t>(first->stored().size()); ++k) {
      TROUPE_RETURN_IF_ERROR(joined->Set(k, first->at(k)));
    }
    for (int64_t k = 0; k < static_cast<int64_t>(second->stored().size()); ++k) {
      TROUPE_RETURN_IF_ERROR(joined->Set(first->size() + k, second->at(k)));
    }
    output->mutable_data<Variant>()[i] = Variant(RefPtr<VariantValue>(std::move(joined)));
  }
  return absl::OkStatus();
}

/// Appends a row of a tensor to each list of a batch.
absl::Status PushBackBatch(KernelContext& ctx) {
  const Tensor &lists = ctx.input(0), &tensor = ctx.input(1);
  const int prefix = lists.rank();
  bool fits = tensor.rank() >= prefix;
  for (int d = 0; fits && d < prefix; ++d) fits = tensor.dim(d) == lists.dim(d);
  if (!fits) {
    return InvalidArgument("the shape of tensor, ", tensor.shape().ToString(),
                           ", must begin with that of input_handles, ", lists.shape().ToString());
  }
  const Shape row(tensor.shape().dims().subspan(prefix));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kVariant, lists.shape()));
  for (int64_t i = 0; i < lists.num_elements(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(lists.unchecked_data<Variant>()[i]));
    Tensor element = RowOf(tensor, row, i);
    TROUPE_RETURN_IF_ERROR(list->Check(element, "append"));
    // Whether the list may become as long is not checked, as in TensorFlow.
    auto longer = MakeRef<TensorList>(*list);
    TROUPE_RETURN_IF_ERROR(longer->Push(std::move(element)));
    output->mutable_data<Variant>()[i] = Variant(RefPtr<VariantValue>(std::move(longer)));
  }
  return absl::OkStatus();
}

// Lists hold tensors and look at none. Elements are where kernels of the device want them; what
// says how many there are, which, and of what shape is on the host.
KernelSpec Spec(const char* op) {
  KernelSpec spec = Cheap(op).Device("DEFAULT");
  for (const char* on_host :
       {"element_shape", "num_elements", "max_num_elements", "index", "size", "length"}) {
    spec.HostMemory(on_host);
  }
  return spec;
}
KernelSpec OfElements(const char* op) { return Spec(op).Types("element_dtype", AllTypes()); }

REGISTER_KERNEL(Spec("EmptyTensorList"), (MakeAttrKernel<MakeList<false>, "element_dtype">));
REGISTER_KERNEL(Spec("TensorListReserve"), (MakeAttrKernel<MakeList<true>, "element_dtype">));
REGISTER_KERNEL(Spec("TensorListPushBack"), MakeKernel<PushBack>);
REGISTER_KERNEL(OfElements("TensorListPopBack"), (MakeElementKernel<PopBack, "element_dtype">));
REGISTER_KERNEL(OfElements("TensorListGetItem"), (MakeElementKernel<GetItem, "element_dtype">));
REGISTER_KERNEL(Spec("TensorListSetItem"),
                (MakeAttrKernel<SetItem, "resize_if_index_out_of_bounds">));
REGISTER_KERNEL(Spec("TensorListLength"), MakeKernel<Length>);
REGISTER_KERNEL(Spec("TensorListElementShape"), (MakeAttrKernel<ElementShape, "shape_type">));
REGISTER_KERNEL(Spec("TensorListResize"), MakeKernel<Resize>);
REGISTER_KERNEL(Spec("TensorListConcatLists"), (MakeAttrKernel<ConcatLists, "element_dtype">));
REGISTER_KERNEL(OfElements("TensorListPushBackBatch"), MakeKernel<PushBackBatch>);

}  // namespace
}  // namespace troupe
