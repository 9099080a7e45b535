// A queue's handle for the ops of the first version.
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/queues/queue.h"

namespace troupe {
namespace {

class FakeQueue final : public Kernel {
 public:
  FakeQueue(KernelConstruction&, absl::Status*) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(FindWaiting<Queue>(ctx).status());
    const ResourceHandle& handle = *ctx.input(0).unchecked_data<ResourceHandle>();
    std::lock_guard<std::mutex> lock(mutex_);
    if (handle.container != container_ || handle.name != name_) variable_.reset();
    container_ = handle.container;
    name_ = handle.name;
    return PutReference(ctx, container_, name_, &variable_);
  }

 private:
  std::mutex mutex_;
  std::string container_, name_;
  RefPtr<Resource> variable_;
};

REGISTER_KERNEL(Cheap("FakeQueue"), MakeKernel<FakeQueue>);

}  // namespace
}  // namespace troupe
