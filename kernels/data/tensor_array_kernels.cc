// Tensor arrays: making them and their gradients' arrays, and reading and writing single elements.
#include <atomic>
#include <utility>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/data/tensor_array.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

/// Container of the variables that references to strings refer to, in the step's resources.
constexpr char kNameContainer[] = "_tensor_array_names";

/// Makes output 0 the two strings, or a reference to a variable that has them and is called like
/// the array. The array is among the step's resources.
absl::Status PutStringHandle(KernelContext& ctx, bool reference, const std::string& name) {
  Tensor handle = Tensor::Vector<std::string>({kTensorArrayContainer, name});
  if (!reference) {
    ctx.set_output(0, std::move(handle));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Variable> variable,
                          ctx.step().step_resources->FindOrCreateVariable(
                              kNameContainer, name, ElementType::kString, Shape({2})));
  if (Variable::Lease lease = variable->TryLend()) lease.set_value(std::move(handle));
  ctx.set_output_ref(0, variable.get());
  return absl::OkStatus();
}

absl::Status PutResourceHandle(KernelContext& ctx, RefPtr<TensorArrayResource> array) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * handle, ctx.AllocateOutput(0, ElementType::kResource, Shape()));
  ResourceHandle& resource = *handle->mutable_data<ResourceHandle>();
  resource.container = kTensorArrayContainer;
  resource.name = array->array_name();
  resource.type_name = kTensorArrayTypeName;
  resource.resource = std::move(array);
  return absl::OkStatus();
}

/// Puts an array under its name among the step's resources, where it stays until the step ends.
absl::Status PutInStep(KernelContext& ctx, const RefPtr<TensorArrayResource>& array) {
  if (ctx.step().step_resources == nullptr) {
    return absl::FailedPreconditionError("tensor arrays need a step to live in");
  }
  return ctx.step()
      .step_resources
      ->FindOrCreate(kTensorArrayContainer, array->array_name(),
                     [&]() -> absl::StatusOr<RefPtr<Resource>> { return {array}; })
      .status();
}

/// TensorArray, TensorArrayV2, TensorArrayV3.
class MakeArray final : public Kernel {
 public:
  MakeArray(KernelConstruction& c, absl::Status* status)
      : by_name_(RemoveRef(c.output_type(0)) == ElementType::kString),
        reference_(IsRefType(c.output_type(0))),
        no_flow_(Tensor::Scalar(0.0f)) {
    options_.type = c.Attr<ElementType>("dtype");
    options_.dynamic_size = c.Attr<bool>("dynamic_size");
    options_.clear_after_read = c.Attr<bool>("clear_after_read");
    options_.identical_element_shapes = c.Attr<bool>("identical_element_shapes");
    options_.name = c.Attr<std::string>("tensor_array_name");
    if (options_.name.empty()) options_.name = c.node_name();
    *status = c.GetAttr("element_shape", &options_.element_shape);
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0) {
      return InvalidArgument("TensorArray size must be scalar, but had shape: ",
                             ctx.input(0).shape().ToString());
    }
    const int32_t size = ctx.input(0).unchecked_scalar<int32_t>();
    if (size < 0) return InvalidArgument("Size should be >= 0, got ", size);
    TensorArrayResource::Options options = options_;
    options.device = ctx.step().device;
    static std::atomic<uint64_t> count{0};
    absl::StrAppend(&options.name, "_", count.fetch_add(1, std::memory_order_relaxed));
    auto array = MakeRef<TensorArrayResource>(std::move(options), size);
    if (by_name_) {
      TROUPE_RETURN_IF_ERROR(PutInStep(ctx, array));
      return PutStringHandle(ctx, reference_, array->array_name());
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor flow, ElementMemory(&ctx, &kernels_).Fetch(no_flow_));
    ctx.set_output(1, std::move(flow));
    return PutResourceHandle(ctx, std::move(array));
  }

 private:
  bool by_name_, reference_;
  Tensor no_flow_;
  TensorArrayResource::Options options_;
  ElementKernels kernels_;
};

/// TensorArrayGrad (of references), TensorArrayGradV2, TensorArrayGradV3, TensorArrayGradWithShape.
template <bool kReference>
absl::Status GradientArray(KernelContext& ctx, const std::string& source) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  DimVector prepend;
  if (ctx.num_inputs() > 2) {
    TROUPE_ASSIGN_OR_RETURN(prepend, ReadIntegerVector(ctx.input(2), "shape_to_prepend"));
    TROUPE_RETURN_IF_ERROR(Shape::Create(prepend).status());
  }
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> gradient, array->Gradient(source, prepend));
  if (ctx.num_outputs() == 1) {
    TROUPE_RETURN_IF_ERROR(PutInStep(ctx, gradient));
    return PutStringHandle(ctx, kReference, gradient->array_name());
  }
  ctx.PassThrough(1, 1);
  return PutResourceHandle(ctx, std::move(gradient));
}

absl::StatusOr<int32_t> Index(KernelContext& ctx) {
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("TensorArray index must be scalar, but had shape: ",
                           ctx.input(1).shape().ToString());
  }
  return ctx.input(1).unchecked_scalar<int32_t>();
}

absl::Status Write(KernelContext& ctx, ElementMemory& memory) {
  TROUPE_ASSIGN_OR_RETURN(const int32_t index, Index(ctx));
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  TROUPE_RETURN_IF_ERROR(array->Write(index, ctx.TakeInput(2), memory));
  ctx.PassThrough(3, 0);
  return absl::OkStatus();
}

absl::Status Read(KernelContext& ctx, ElementMemory& memory, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const int32_t index, Index(ctx));
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx, type));
  TROUPE_ASSIGN_OR_RETURN(Tensor value, array->Read(index, memory));
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status Size(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  return PutHostScalar(ctx, 0, static_cast<int32_t>(size));
}

absl::Status Close(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  array->Close();
  return absl::OkStatus();
}

// Elements are where kernels of the device want them, and so are flows, which nobody looks at.
KernelSpec Spec(const char* op) {
  return Cheap(op).Device("DEFAULT").HostMemory("shape_to_prepend");
}

REGISTER_KERNELS(Spec("TensorArrayV2").Types("dtype", AllTypes()), MakeKernel<MakeArray>,
                 "TensorArrayV3", "TensorArray");
REGISTER_KERNEL(Spec("TensorArrayGrad"), (MakeAttrKernel<GradientArray<true>, "source">));
REGISTER_KERNELS(Spec("TensorArrayGradV2"), (MakeAttrKernel<GradientArray<false>, "source">),
                 "TensorArrayGradV3", "TensorArrayGradWithShape");
REGISTER_KERNELS(Spec("TensorArrayWriteV2").Types("T", AllTypes()), MakeElementKernel<Write>,
                 "TensorArrayWriteV3", "TensorArrayWrite");
REGISTER_KERNELS(Spec("TensorArrayReadV2").Types("dtype", AllTypes()),
                 (MakeElementKernel<Read, "dtype">), "TensorArrayReadV3", "TensorArrayRead");
REGISTER_KERNELS(Spec("TensorArraySizeV2"), MakeKernel<Size>, "TensorArraySizeV3",
                 "TensorArraySize");
REGISTER_KERNELS(Spec("TensorArrayCloseV2"), MakeKernel<Close>, "TensorArrayCloseV3",
                 "TensorArrayClose");

}  // namespace
}  // namespace troupe
