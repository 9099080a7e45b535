// The kernels of the mutex ops.
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {
namespace {

class MakeMutex final : public ResourceMaker {
 public:
  MakeMutex(KernelConstruction& c, absl::Status* status) : ResourceMaker(c, "Mutex", status) {}

 private:
  absl::StatusOr<RefPtr<Resource>> Make(KernelContext&, const std::string& name) override {
    return MakeSynchronizer(name, {MutexOptions{}});
  }
  absl::Status Check(const WaitingResource& resource) override {
    if (dynamic_cast<const Mutex*>(&resource) != nullptr) return absl::OkStatus();
    return InvalidArgument("the resource is ", resource.DebugString(), ", not a mutex");
  }
};

class Lock final : public WaitingKernel<Mutex, Mutex::LockCall> {
 public:
  Lock(KernelConstruction&, absl::Status*) {}

 private:
  absl::Status Ask(const Mutex&, KernelContext&, Mutex::LockCall*) override {
    return absl::OkStatus();
  }
};

/// Gives the mutex back: the lock must be nobody else's.
absl::Status Consume(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 0) {
    return InvalidArgument("mutex_lock must be a scalar, got shape ", input.shape().ToString());
  }
  const auto* lock = input.unchecked_scalar<Variant>().get<MutexLockValue>();
  if (lock == nullptr) return InvalidArgument("mutex_lock is a variant, but not a mutex's lock");
  // Of the tensor, or of the value, if it has been copied.
  const Tensor taken = ctx.TakeInput(0);
  if (!taken.unique() || lock->use_count() != 1) {
    return InvalidArgument("the lock of mutex '", (*lock)->name(),
                           "' cannot be given back: it has other users");
  }
  return absl::OkStatus();
}

REGISTER_KERNEL(Cheap("MutexV2").Device("DEFAULT"), MakeKernel<MakeMutex>);
REGISTER_KERNEL(KernelSpec("MutexLock").Device("DEFAULT").HostMemory("mutex_lock"),
                MakeKernel<Lock>);
REGISTER_KERNEL(KernelSpec("ConsumeMutexLock").Device("DEFAULT").HostMemory("mutex_lock"),
                MakeKernel<Consume>);

}  // namespace
}  // namespace troupe
