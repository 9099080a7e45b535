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
#include "kernels/data/element_memory.h"

namespace troupe {

std::shared_ptr<void> TensorLender::Borrow(const std::shared_ptr<TensorLender>& lender) {
  {
    std::lock_guard<std::mutex> lock(lender->mutex_);
    ++lender->readers_;
  }
  return {static_cast<void*>(lender.get()), [lender](void*) {
            std::lock_guard<std::mutex> lock(lender->mutex_);
            if (--lender->readers_ == 0) lender->gone_.notify_all();
          }};
}

void TensorLender::WaitForReaders() {
  std::unique_lock<std::mutex> lock(mutex_);
  gone_.wait(lock, [this] { return readers_ == 0; });
}

SessionTensors* SessionTensors::Global() {
  static auto* const tensors = new SessionTensors;
  return tensors;
}

std::string SessionTensors::Keep(std::string_view node, std::string_view device,
                                 const Tensor& value, std::shared_ptr<TensorLender> lender) {
  std::lock_guard<std::mutex> lock(mutex_);
  static auto* const random =
      new std::mt19937_64(uint64_t{std::random_device()()} << 32 | std::random_device()());
  while (true) {
    std::string handle = StrCat(node, ";", (*random)(), ";", device);
    if (tensors_.emplace(handle, Entry{value, lender}).second) return handle;
  }
}

absl::StatusOr<SessionTensors::Kept> SessionTensors::Find(const std::string& handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tensors_.find(handle);
  if (found != tensors_.end()) {
    const auto& [value, lender] = found->second;
    Kept kept{value, lender->device(), nullptr};
    if (kept.device != nullptr) kept.borrowed = TensorLender::Borrow(lender);
    return kept;
  }
  return InvalidArgument("The tensor with handle '", handle, "' is not in the session store.");
}

absl::Status SessionTensors::Forget(const std::string& handle) {
  Entry forgotten;  // Its memory is given back without the lock.
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

Device* WithOwnMemory(Device* device) {
  return device->memory_space() == MemorySpace::kDevice ? device : nullptr;
}

/// Keeps tensors as long as its session keeps this kernel.
class KeepTensor final : public Kernel {
 public:
  KeepTensor(KernelConstruction& c, absl::Status*)
      : node_(c.node_name()),
        device_(c.device()->name()),
        as_resource_(c.output_type(0) == ElementType::kResource),
        lender_(std::make_shared<TensorLender>(WithOwnMemory(c.device()))) {}
  ~KeepTensor() override {
    for (const std::string& handle : handles_) store_->Forget(handle).IgnoreError();
    lender_->WaitForReaders();
  }

  absl::Status Compute(KernelContext& ctx) override {
    std::string handle = store_->Keep(node_, device_, ctx.input(0), lender_);
    Remember(handle);
    if (!as_resource_) return PutHostScalar(ctx, 0, std::move(handle));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateHostOutput(0, ElementType::kResource, Shape()));
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
  const std::shared_ptr<TensorLender> lender_;
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

/// A tensor that another device keeps comes by way of the host.
class GetTensor final : public AsyncKernel {
 public:
  GetTensor(KernelConstruction& c, absl::Status* status) { *status = c.GetAttr("dtype", &type_); }

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<SessionTensors::Kept> kept = Find(ctx);
    if (!kept.ok()) return done(kept.status());
    if (kept->device == nullptr || kept->device == ctx.step().device) {
      return done(PutElements(ctx, 0, {std::move(kept->value)}));
    }
    // Where the copy is told of, nothing must be thrown.
    const auto rest = std::make_shared<std::unique_ptr<Rest>>(std::make_unique<Rest>());
    (*rest)->ctx = &ctx;
    DownloadValue(kept->device, kept->value,
                  [done, rest, borrowed = kept->borrowed](absl::StatusOr<Tensor> here) mutable {
                    borrowed.reset();  // The step may end here, and the lender with it.
                    const absl::Status status = here.status();
                    if (here.ok()) (*rest)->value = *std::move(here);
                    done(status, Player::kHandsOn, std::move(*rest));
                  });
  }

 private:
  struct Rest final : KernelRest {
    absl::Status Finish() override { return PutElements(*ctx, 0, {std::move(value)}); }
    KernelContext* ctx = nullptr;
    Tensor value;
  };

  absl::StatusOr<SessionTensors::Kept> Find(KernelContext& ctx) const {
    TROUPE_ASSIGN_OR_RETURN(const std::string handle, HandleOf(ctx));
    TROUPE_ASSIGN_OR_RETURN(SessionTensors::Kept kept, SessionTensors::Global()->Find(handle));
    if (kept.value.type() == type_) return kept;
    return InvalidArgument("the tensor with handle '", handle, "' has type ",
                           ElementTypeName(kept.value.type()), ", not ", ElementTypeName(type_));
  }

  ElementType type_ = ElementType::kInvalid;
};

absl::Status DeleteTensor(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string handle, HandleOf(ctx));
  return SessionTensors::Global()->Forget(handle);
}

// Tensors are held and not looked at.
KernelSpec Spec(const char* op) { return Cheap(op).Device("DEFAULT"); }

REGISTER_KERNELS(Spec("GetSessionHandle").Types("T", AllTypes()), MakeKernel<KeepTensor>,
                 "GetSessionHandleV2");
REGISTER_KERNEL(Spec("GetSessionTensor").Types("dtype", AllTypes()), MakeKernel<GetTensor>);
REGISTER_KERNEL(Spec("DeleteSessionTensor"), MakeKernel<DeleteTensor>);

}  // namespace
}  // namespace troupe
