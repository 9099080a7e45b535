/// Resources at which calls wait for one another: queues, accumulators.
#ifndef TROUPE_KERNELS_QUEUES_WAITING_RESOURCE_H_
#define TROUPE_KERNELS_QUEUES_WAITING_RESOURCE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "devices/resource_handle.h"
#include "kernels/cancellation.h"
#include "kernels/kernel.h"

namespace troupe {

/// A resource that takes calls, each at the end of a line, and replies when it can: no thread waits
/// with a call. A call ends when it has been served, when its step is cancelled, or when the
/// resource is abandoned by its container. Thread-safe.
class WaitingResource : public Resource {
 public:
  /// What a kernel asks for. `done` is called once, without any lock held, by whoever serves the
  /// call; `Finish` fills the outputs of one that was served well, by the player of its step.
  struct Call : KernelRest {
    Call(KernelContext& context, KernelDone when_done) : ctx(&context), done(when_done) {}

    KernelContext* ctx;
    KernelDone done;
    absl::Status status;  ///< Of the call once it is served.

   private:
    friend class WaitingResource;
    uint64_t id = 0, callback = 0;
    bool registered = false;
    RefPtr<WaitingResource> resource;  ///< While `Finish` is still to come.
  };

  const std::string& name() const { return name_; }
  /// The container let go of the resource: calls that wait, and those to come, are Cancelled.
  void Abandon() noexcept;
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

 protected:
  using Line = std::list<std::unique_ptr<Call>>;

  WaitingResource(std::string name, int num_lines) : lines_(num_lines), name_(std::move(name)) {}

  /// Puts the call at the end of line `number` and serves whom it can. `call` gives way to the
  /// reply, so that nothing of the kernel may be touched afterwards.
  void Submit(int number, std::unique_ptr<Call> call);

  // With the lock held:

  /// Serves calls at the heads of the lines, by `Complete`, as long as there is something to do. If
  /// it throws, the call at the head of `serving_` fails.
  virtual void Serve() = 0;
  /// The call will not be served: what it has taken goes back. If that throws, it is lost.
  virtual void Withdraw(Call*) {}
  /// The call at the head of a line has been served: `status` is its result.
  void Complete(Line* line, absl::Status status) noexcept;
  /// All calls of a line are given up.
  void FailAll(Line* line, const absl::Status& status) noexcept;

  /// Runs `change`, which may throw before it changes anything, with the lock held, then serves,
  /// and replies without it.
  template <typename F>
  void Change(F&& change) {
    Line served;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      change();
      ServeAll();
      served.swap(served_);
    }
    Reply(&served);
  }

  mutable std::mutex mutex_;
  std::vector<Line> lines_;
  Line* serving_ = nullptr;  ///< The line of the call that `Serve` is at.

 private:
  absl::Status Destroyed() const noexcept;
  void ServeAll() noexcept;
  void GiveUp(Call* call) noexcept;
  void Cancelled(uint64_t id) noexcept;
  void Unregister(Call* call) noexcept;
  void Reply(Line* served) noexcept;

  Line served_;  ///< Calls that the holder of the lock replies to once it has let go of it.
  uint64_t next_id_ = 1;
  std::atomic<bool> abandoned_{false};
  std::string name_;
};

/// What a container holds in place of the resource, which waiting calls keep alive: the container's
/// letting go abandons it.
class ResourceKeeper final : public Resource {
 public:
  explicit ResourceKeeper(RefPtr<WaitingResource> resource) : resource_(std::move(resource)) {}
  ~ResourceKeeper() override { resource_->Abandon(); }
  std::string DebugString() const override { return resource_->DebugString(); }
  const RefPtr<WaitingResource>& resource() const { return resource_; }

 private:
  RefPtr<WaitingResource> resource_;
};

/// The resource that input 0 refers to: a resource handle, or a reference to a string variable that
/// `ResourceMaker` made. NotFound if it is gone, InvalidArgument if it is of another kind. `what`
/// names the kind for messages.
absl::StatusOr<RefPtr<WaitingResource>> FindWaitingResource(KernelContext& ctx, const char* what);

/// The same for a kind of resource: T::kKind names it.
template <typename T>
absl::StatusOr<RefPtr<T>> FindWaiting(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<WaitingResource> resource, FindWaitingResource(ctx, T::kKind));
  auto* found = dynamic_cast<T*>(resource.get());
  if (found == nullptr) {
    return InvalidArgument("the handle refers to ", resource->DebugString(), ", not to a ",
                           T::kKind);
  }
  return RefPtr<T>::Share(found);
}

/// Kernel that puts out a handle (or a reference, by the type of its output) to a resource of its
/// node's container, named by `shared_name` or like the node; made by the first who asks.
class ResourceMaker : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override;

 protected:
  ResourceMaker(KernelConstruction& construction, std::string type_name, absl::Status* status);

  virtual RefPtr<WaitingResource> Make(const std::string& name) = 0;
  /// InvalidArgument if the resource that exists is not what this node would make.
  virtual absl::Status Check(const WaitingResource& resource) = 0;

 private:
  absl::Status Find(KernelContext& ctx);
  absl::Status PutName(KernelContext& ctx);

  bool by_name_;
  std::string container_, name_, type_name_;
  std::mutex mutex_;
  RefPtr<WaitingResource> resource_;  ///< As found last.
  Tensor handle_;
  RefPtr<Resource> reference_;  ///< The variable that is called like the resource.
  ResourceProvider* resources_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_WAITING_RESOURCE_H_
