// Variables themselves: Variable, VariableV2, VarHandleOp, DestroyResourceOp.
#include <atomic>
#include <mutex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "devices/device.h"
#include "kernels/common/registration.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

/// The shared_name of handles that nobody else can find by name.
constexpr char kAnonymousName[] = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// Puts out a reference to a variable of the node's container.
class VariableOp : public Kernel {
 public:
  VariableOp(KernelConstruction& construction, absl::Status* status)
      : type_(RemoveRef(construction.output_type(0))),
        container_(construction.Attr<std::string>("container")),
        name_(construction.Attr<std::string>("shared_name")) {
    *status = construction.GetAttr("shape", &shape_);
    if (status->ok()) *status = CheckContainer(container_);
    if (status->ok() && absl::StartsWith(name_, "_")) {
      *status = InvalidArgument("shared_name must not start with '_': '", name_, "'");
    }
    if (name_.empty()) name_ = construction.node_name();
    // TensorFlow has it that a variable of unknown rank starts as a scalar: its first value comes
    // by an Assign that does not validate the shape.
    if (shape_.unknown_rank()) shape_ = Shape();
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (!shape_.fully_known()) {
      return InvalidArgument("the variable '", name_, "' has shape ", shape_.ToString(),
                             ", which is not fully defined: give all dimensions, or none of them");
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (!variable_ || variable_->destroyed() || resources_ != ctx.resources()) {
      TROUPE_ASSIGN_OR_RETURN(
          variable_, ctx.resources()->FindOrCreateVariable(container_, name_, type_, shape_));
      resources_ = ctx.resources();
    }
    ctx.set_output_ref(0, variable_.get());
    return absl::OkStatus();
  }

 private:
  ElementType type_;
  std::string container_, name_;
  PartialShape shape_;
  std::mutex mutex_;
  RefPtr<Variable> variable_;  ///< As found last.
  ResourceProvider* resources_ = nullptr;
};

/// Puts out a handle. The variable itself is made by the first assignment.
class VarHandle : public Kernel {
 public:
  VarHandle(KernelConstruction& construction, absl::Status* status)
      : type_(construction.Attr<ElementType>("dtype")),
        container_(construction.Attr<std::string>("container")),
        name_(construction.Attr<std::string>("shared_name")),
        node_name_(construction.node_name()),
        anonymous_(name_ == kAnonymousName) {
    *status = construction.GetAttr("shape", &shape_);
    if (status->ok()) *status = CheckContainer(container_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (anonymous_) {
      static std::atomic<uint64_t> count{0};
      ctx.set_output(
          0, MakeHandle(ctx, absl::StrCat(kAnonymousName, "/", node_name_, "/", ++count), nullptr));
      return absl::OkStatus();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (!handle_.valid() || resources_ != ctx.resources() || Stale()) {
      absl::StatusOr<RefPtr<Resource>> found =
          ctx.resources()->FindOrCreate(container_, name_, nullptr);
      if (!found.ok() && found.status().code() != absl::StatusCode::kNotFound) {
        return found.status();
      }
      handle_ = MakeHandle(ctx, name_, found.ok() ? *std::move(found) : nullptr);
      resources_ = ctx.resources();
    }
    ctx.output(0) = handle_;
    return absl::OkStatus();
  }

 private:
  /// True if the handle should be made anew: its variable is gone, or did not exist and may exist
  /// now.
  bool Stale() const {
    const RefPtr<Resource>& resource = handle_.unchecked_scalar<ResourceHandle>().resource;
    if (!resource) return true;
    const auto* variable = dynamic_cast<const Variable*>(resource.get());
    return variable != nullptr && variable->destroyed();
  }
  Tensor MakeHandle(KernelContext& ctx, std::string name, RefPtr<Resource> resource) const {
    ResourceHandle handle;
    if (ctx.step().device != nullptr) handle.device = ctx.step().device->name();
    handle.container = container_;
    handle.name = std::move(name);
    handle.type_name = std::string(kVariableTypeName);
    handle.types_and_shapes.emplace_back(type_, shape_);
    handle.resource = std::move(resource);
    return Tensor::Scalar(std::move(handle));
  }

  ElementType type_;
  std::string container_, name_, node_name_;
  bool anonymous_;
  PartialShape shape_;
  std::mutex mutex_;
  Tensor handle_;  ///< As made last.
  ResourceProvider* resources_ = nullptr;
};

absl::Status DestroyResource(KernelContext& ctx, bool ignore_missing) {
  const Tensor& input = ctx.input(0);
  if (input.num_elements() != 1) {
    return InvalidArgument("the input must be one resource handle, got shape ",
                           input.shape().ToString());
  }
  const ResourceHandle& handle = input.unchecked_scalar<ResourceHandle>();
  absl::Status status = ctx.resources()->Destroy(handle.container, handle.name);
  if (ignore_missing && status.code() == absl::StatusCode::kNotFound) return absl::OkStatus();
  return status;
}

REGISTER_KERNELS(Cheap("Variable").Device("DEFAULT"), MakeKernel<VariableOp>, "VariableV2");
REGISTER_KERNEL(Cheap("VarHandleOp").Device("DEFAULT"), MakeKernel<VarHandle>);
REGISTER_KERNEL(Cheap("DestroyResourceOp").Device("DEFAULT"),
                (MakeAttrKernel<DestroyResource, "ignore_lookup_error">));

}  // namespace
}  // namespace troupe
