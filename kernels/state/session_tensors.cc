// GetSessionHandle, GetSessionHandleV2, GetSessionTensor, DeleteSessionTensor.
#include "kernels/state/session_tensors.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"
#include "kernels/common/registration.h"

namespace troupe {

SessionTensors* SessionTensors::Global() {
  static auto* const tensors = new SessionTensors;
  return tensors;
}

std::string SessionTensors::Keep(std::string_view node, std::string_view device,
                                 const Tensor& value) {
  std::lock_guard<std::mutex> lock(mutex_);
  static auto* const random =
      new std::mt19937_64(uint64_t{std::random_device()()} << 32 | std::random_device()());
  while (true) {
    std::string handle = StrCat(node, ";", (*random)(), ";", device);
    if (tensors_.emplace(handle, value).second) return handle;
  }
}

absl::StatusOr<Tensor> SessionTensors::Find(const std::string& handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tensors_.find(handle);
  if (found != tensors_.end()) return found->second;
  return InvalidArgument("The tensor with handle '", handle, "' is not in the session store.");
}

absl::Status SessionTensors::Forget(const std::string& handle) {
  Tensor forgotten;  // Its memory is given back without the lock.
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tensors_.find(handle);
  if (found == tensors_.end()) {
    return InvalidArgument("Failed to delete a tensor with handle '", handle,
                           "' in the session store.");
  }
  forgotten = std::move(found->second);
  tensors_.erase(found);
  return absl::OkStatus();
}

bool SessionTensors::Has(const std::string& handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return tensors_.contains(handle);
}

size_t SessionTensors::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return tensors_.size();
}

namespace {

/// Keeps tensors as long as its session keeps this kernel.
class KeepTensor final : public Kernel {
 public:
  KeepTensor(KernelConstruction& c, absl::Status*)
      : node_(c.node_name()),
        device_(c.device()->name()),
        as_resource_(c.output_type(0) == ElementType::kResource) {}
  ~KeepTensor() override {
    for (const std::string& handle : handles_) store_->Forget(handle).IgnoreError();
  }

  absl::Status Compute(KernelContext& ctx) override {
    std::string handle = store_->Keep(node_, device_, ctx.input(0));
    Remember(handle);
    if (!as_resource_) return ctx.SetScalar(0, std::move(handle));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, ElementType::kResource, Shape()));
    ResourceHandle& resource = *output->mutable_data<ResourceHandle>();
    resource.device = device_;
    resource.name = std::move(handle);
    resource.type_name = "TensorHandle";
    return absl::OkStatus();
  }

 private:
  /// Those that were deleted are dropped now and then, so that the list grows with what is kept.
  void Remember(const std::string& handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    handles_.push_back(handle);
    if (handles_.size() < sweep_at_) return;
    handles_.erase(std::remove_if(handles_.begin(), handles_.end(),
                                  [this](const std::string& old) { return !store_->Has(old); }),
                   handles_.end());
    sweep_at_ = std::max<size_t>(64, 2 * handles_.size());
  }

  SessionTensors* const store_ = SessionTensors::Global();
  const std::string node_, device_;
  const bool as_resource_;
  std::mutex mutex_;
  std::vector<std::string> handles_;
  size_t sweep_at_ = 64;
};

absl::StatusOr<std::string> HandleOf(KernelContext& ctx) {
  if (ctx.input(0).rank() != 0) {
    return InvalidArgument("a session tensor's handle must be a scalar, but has shape ",
                           ctx.input(0).shape().ToString());
  }
  return ctx.input(0).unchecked_scalar<std::string>();
}

absl::Status GetTensor(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const std::string handle, HandleOf(ctx));
  TROUPE_ASSIGN_OR_RETURN(Tensor value, SessionTensors::Global()->Find(handle));
  if (value.type() != type) {
    return InvalidArgument("the tensor with handle '", handle, "' has type ",
                           ElementTypeName(value.type()), ", not ", ElementTypeName(type));
  }
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status DeleteTensor(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string handle, HandleOf(ctx));
  return SessionTensors::Global()->Forget(handle);
}

// On the host: another device may ask for the tensor.
REGISTER_KERNELS(Cheap("GetSessionHandle").Types("T", AllTypes()), MakeKernel<KeepTensor>,
                 "GetSessionHandleV2");
REGISTER_KERNEL(Cheap("GetSessionTensor").Types("dtype", AllTypes()),
                (MakeAttrKernel<GetTensor, "dtype">));
REGISTER_KERNEL(Cheap("DeleteSessionTensor"), MakeKernel<DeleteTensor>);

}  // namespace
}  // namespace troupe
