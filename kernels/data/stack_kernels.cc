// Stacks of tensors, which live as long as a step.
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/resource_handle.h"
#include "kernels/common/registration.h"
#include "kernels/data/release.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

/// Container of the stacks in the step's resources; that of their names.
constexpr char kContainer[] = "_stacks";
constexpr char kNameContainer[] = "_stack_names";

/// A stack of tensors of one element type. Errors are InvalidArgument. Thread-safe.
class Stack final : public Resource {
 public:
  /// Its tensors are where `device` has them; only kernels of that device use it.
  Stack(std::string name, ElementType type, int64_t max_size, const Device* device)
      : name_(std::move(name)), type_(type), max_size_(max_size), device_(device) {}
  ~Stack() override {
    if (!IsPlain(type_)) Release(std::move(tensors_));
  }

  const std::string& stack_name() const { return name_; }
  const Device* device() const { return device_; }
  std::string DebugString() const override {
    return StrCat("Stack '", name_, "' of ", ElementTypeName(type_));
  }

  absl::Status Push(const Tensor& tensor) {
    std::lock_guard<std::mutex> lock(mutex_);
    TROUPE_RETURN_IF_ERROR(Check(tensor.type()));
    if (max_size_ >= 0 && static_cast<int64_t>(tensors_.size()) >= max_size_) {
      return InvalidArgument("Stack[", name_, "] overflowed its max_size (", max_size_, ")");
    }
    tensors_.push_back(tensor);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Pop(ElementType type) {
    std::lock_guard<std::mutex> lock(mutex_);
    TROUPE_RETURN_IF_ERROR(Check(type));
    if (tensors_.empty()) {
      return InvalidArgument("Stack[", name_, "] is empty when calling Pop().");
    }
    Tensor top = std::move(tensors_.back());
    tensors_.pop_back();
    return top;
  }
  void Close() {
    std::vector<Tensor> tensors;
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    tensors.swap(tensors_);
  }

 private:
  absl::Status Check(ElementType type) const {
    if (closed_) return InvalidArgument("Stack[", name_, "] has already been closed.");
    if (type != type_) {
      return InvalidArgument("Must have matching element types: Stack[", name_, "] holds ",
                             ElementTypeName(type_), ", got ", ElementTypeName(type));
    }
    return absl::OkStatus();
  }

  std::mutex mutex_;
  std::string name_;
  ElementType type_;
  int64_t max_size_;
  const Device* device_;
  bool closed_ = false;
  std::vector<Tensor> tensors_;
};

absl::StatusOr<ResourceProvider*> StepResources(KernelContext& ctx) {
  ResourceProvider* resources = ctx.step().step_resources;
  if (resources != nullptr) return resources;
  return absl::FailedPreconditionError("stacks with a reference as handle need a step to live in");
}

bool HasMemory(const Device* device) {
  return device != nullptr && device->memory_space() == MemorySpace::kDevice;
}

/// The stack that input 0 is a handle to.
absl::StatusOr<RefPtr<Stack>> FindStack(KernelContext& ctx) {
  RefPtr<Resource> resource;
  if (const Variable* name = ctx.input_ref(0)) {
    TROUPE_ASSIGN_OR_RETURN(ResourceProvider * resources, StepResources(ctx));
    TROUPE_ASSIGN_OR_RETURN(resource, resources->FindOrCreate(kContainer, name->name(), nullptr));
  } else {
    const Tensor& handle = ctx.input(0);
    if (handle.type() != ElementType::kResource || handle.num_elements() != 1) {
      return InvalidArgument("the handle of a stack must be a scalar, got shape ",
                             handle.shape().ToString());
    }
    resource = handle.unchecked_data<ResourceHandle>()->resource;
  }
  auto* stack = dynamic_cast<Stack*>(resource.get());
  if (stack == nullptr) {
    return InvalidArgument("the handle does not refer to a stack of this process");
  }
  const Device *const made_by = stack->device(), *const device = ctx.step().device;
  if (made_by != device && (HasMemory(made_by) || HasMemory(device))) {
    return InvalidArgument("Stack[", stack->stack_name(), "] was made on ", made_by->name(),
                           ", and this node runs on ", device->name());
  }
  return RefPtr<Stack>::Share(stack);
}

/// Stack, StackV2.
class MakeStack final : public Kernel {
 public:
  MakeStack(KernelConstruction& c, absl::Status* status)
      : by_name_(IsRefType(c.output_type(0))), name_(c.Attr<std::string>("stack_name")) {
    if (name_.empty()) name_ = c.node_name();
    *status = c.GetAttr("elem_type", &type_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    int64_t max_size = -1;
    if (ctx.num_inputs() > 0) {
      if (ctx.input(0).rank() != 0) {
        return InvalidArgument("Stack size must be a scalar, but had shape: ",
                               ctx.input(0).shape().ToString());
      }
      max_size = ctx.input(0).unchecked_scalar<int32_t>();
    }
    static std::atomic<uint64_t> count{0};
    auto stack = MakeRef<Stack>(StrCat(name_, "_", count.fetch_add(1, std::memory_order_relaxed)),
                                type_, max_size, ctx.step().device);
    if (by_name_) return PutName(ctx, std::move(stack));
    TROUPE_ASSIGN_OR_RETURN(Tensor * handle,
                            ctx.AllocateOutput(0, ElementType::kResource, Shape()));
    ResourceHandle& resource = *handle->mutable_data<ResourceHandle>();
    resource.container = kContainer;
    resource.name = stack->stack_name();
    resource.type_name = "Stack";
    resource.resource = std::move(stack);
    return absl::OkStatus();
  }

 private:
  /// A reference to a string variable that is called like the stack.
  absl::Status PutName(KernelContext& ctx, RefPtr<Stack> stack) {
    TROUPE_ASSIGN_OR_RETURN(ResourceProvider * resources, StepResources(ctx));
    const std::string name = stack->stack_name();
    TROUPE_RETURN_IF_ERROR(
        resources
            ->FindOrCreate(kContainer, name,
                           [&]() -> absl::StatusOr<RefPtr<Resource>> { return {stack}; })
            .status());
    TROUPE_ASSIGN_OR_RETURN(
        RefPtr<Variable> variable,
        resources->FindOrCreateVariable(kNameContainer, name, ElementType::kString, Shape({2})));
    if (Variable::Lease lease = variable->TryLend()) {
      lease.set_value(Tensor::Vector<std::string>({kContainer, name}));
    }
    ctx.set_output_ref(0, variable.get());
    return absl::OkStatus();
  }

  bool by_name_;
  std::string name_;
  ElementType type_ = ElementType::kInvalid;
};

absl::Status Push(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Stack> stack, FindStack(ctx));
  TROUPE_RETURN_IF_ERROR(stack->Push(ctx.input(1)));
  ctx.PassThrough(1, 0);
  return absl::OkStatus();
}

absl::Status Pop(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Stack> stack, FindStack(ctx));
  TROUPE_ASSIGN_OR_RETURN(Tensor top, stack->Pop(type));
  ctx.set_output(0, std::move(top));
  return absl::OkStatus();
}

absl::Status Close(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Stack> stack, FindStack(ctx));
  stack->Close();
  return absl::OkStatus();
}

// A stack holds tensors and looks at none.
KernelSpec Spec(const char* op) { return Cheap(op).Device("DEFAULT"); }

REGISTER_KERNELS(Spec("Stack"), MakeKernel<MakeStack>, "StackV2");
REGISTER_KERNELS(Spec("StackPush").Types("T", AllTypes()), MakeKernel<Push>, "StackPushV2");
REGISTER_KERNELS(Spec("StackPop").Types("elem_type", AllTypes()),
                 (MakeAttrKernel<Pop, "elem_type">), "StackPopV2");
REGISTER_KERNELS(Spec("StackClose"), MakeKernel<Close>, "StackCloseV2");

}  // namespace
}  // namespace troupe
