/// Resources at which calls wait for one another: queues, accumulators, locks, staging areas.
#ifndef TROUPE_KERNELS_QUEUES_WAITING_RESOURCE_H_
#define TROUPE_KERNELS_QUEUES_WAITING_RESOURCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "devices/resource_handle.h"
#include "kernels/cancellation.h"
#include "kernels/kernel.h"
#include "kernels/message.h"
#include "kernels/variable.h"

namespace troupe {

/// Tensors that belong together: an element of a queue, a gradient.
using Tuple = std::vector<Tensor>;

/// A resource that takes calls, each at the end of a line, and replies when it can: no thread waits
/// with a call. A call ends when it has been served, when it is cancelled, or when the resource is
/// abandoned by its container. Thread-safe.
///
/// Here is the state machine; a `ResourceProvider` puts a mailbox before it. The caller's own
/// thread serves a call of an idle resource; a call of a busy one waits in the mailbox for whoever
/// plays.
class WaitingResource : public Resource {
 public:
  /// What somebody asks for; a message. A kernel makes a `KernelCall` of it, whoever else asks a
  /// `CallbackCall`.
  class Call : public Message {
   public:
    /// The line of calls that stand in none: `Serve` ends them as soon as they come.
    static constexpr int kNoLine = -1;

    Call(WaitingResource* resource, int line) : resource_(resource), line_(line) {}
    virtual ~Call() = default;
    /// The call keeps its resource alive; else somebody else does until it is gone.
    void KeepResource() { kept_ = RefPtr<WaitingResource>::Share(resource_); }

    /// Ends the wait, with its status; outlives the call. May be nullptr.
    CancellationToken* cancellation = nullptr;
    absl::Status status;  ///< Of the call once it is over.

   protected:
    enum class Progress : uint8_t { kNone, kSome, kOver };

    WaitingResource* resource() const { return resource_; }
    /// Called before the call is sent. An error ends it, and so does `*trivial`.
    virtual absl::Status Check(bool* trivial) const;

    // For whoever plays the resource. What throws std::bad_alloc has that status.

    /// The call comes to its line.
    virtual void Arrive() noexcept {}
    /// The call, at the head of its line or in a line without order, goes on as far as it can. An
    /// error ends it.
    virtual absl::StatusOr<Progress> Serve() = 0;
    /// An error has ended the call: what it has taken goes back. If this throws, it is lost.
    virtual void Withdraw() {}

    /// What is left to do of a call that was served well: fills the outputs. Not done by whoever
    /// serves it if the call is a kernel's: that may be a timer, and take long.
    virtual absl::Status Conclude(KernelContext&) { return absl::OkStatus(); }
    /// Does that for a call that is over and no kernel's; the outputs.
    absl::StatusOr<Tuple> Result(int num_outputs) noexcept;
    /// The call is over. Called once, without any lock held, by whoever has served it.
    virtual void Over(std::unique_ptr<Call> self) noexcept = 0;

   private:
    friend class WaitingResource;
    WaitingResource* const resource_;
    RefPtr<WaitingResource> kept_;
    const int line_;
    bool over_ = false, registered_ = false;
    uint64_t callback_ = 0;
  };

  /// Gets what a call gives: nothing if it is one that puts something in. Called once, in any case:
  /// before the function that is given it returns, or later and on another thread, never with a
  /// lock held. Must not throw or block. A function that throws std::bad_alloc does not call it.
  using Done = std::function<void(absl::StatusOr<Tuple>)>;

  const std::string& name() const { return name_; }
  /// Gives the call to its resource, which replies whatever happens.
  static void Submit(std::unique_ptr<Call> call) noexcept;
  /// The container let go of the resource: calls that wait, and those to come, are Cancelled.
  void Abandon() noexcept;
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

 protected:
  /// Calls in the order in which they came, linked by themselves.
  class Line {
   public:
    Call* front() const { return static_cast<Call*>(first_); }
    void Push(Call* call) {
      call->next = nullptr;
      (first_ == nullptr ? first_ : last_->next) = call;
      last_ = call;
    }
    /// nullptr: there is none.
    Call* Pop() {
      Call* call = front();
      if (call != nullptr) first_ = call->next;
      return call;
    }

   private:
    Message *first_ = nullptr, *last_ = nullptr;
  };

  /// How calls of a line are served: one after another, or each as soon as what it asks for is
  /// there, whoever came before it.
  enum class Order : uint8_t { kInOrder, kAny };

  explicit WaitingResource(std::string name, Order first = Order::kInOrder,
                           Order second = Order::kInOrder)
      : name_(std::move(name)), orders_{first, second} {}

  /// Has whoever plays call `visit`, once; nobody waits for it. Then calls `done`, as calls do.
  /// With an error if `visit` throws std::bad_alloc, or the resource has been abandoned.
  void AtOnce(std::function<absl::Status()> visit, std::function<void(absl::Status)> done);
  /// Has whoever plays see what has changed elsewhere: what was lent is back.
  void LookAgain() noexcept;
  /// All calls of a line are given up. For whoever plays.
  void FailAll(Line* line, const absl::Status& status) noexcept;
  /// Called by whoever plays when nobody else can be served.
  virtual void Served() noexcept {}

  // For the role, which has the mailbox:

  /// Has the message handled: now, if nobody plays.
  virtual void Send(Message* message) noexcept = 0;
  /// Handles messages, the oldest first; the calls that are over, for `Reply`.
  Line Handle(Message* messages) noexcept;
  static void Reply(Line replies) noexcept;

 private:
  void HandleOne(Message* message) noexcept;
  absl::Status Destroyed() const noexcept;
  void ServeAll() noexcept;
  /// Serves a call that is in no line; true if it is over.
  bool ServeOne(Call* call) noexcept;
  /// True if a call has gone on.
  bool ServeInOrder(Line* line) noexcept;
  bool ServeAnyOf(Line* line) noexcept;
  /// Ends a call, which is in no line any more.
  void End(Call* call, absl::Status status) noexcept;
  void DropCancelled(Line* line) noexcept;
  void RegisterCancellation(Call* call) noexcept;

  const std::string name_;
  const Order orders_[2];
  std::atomic<bool> abandoned_{false};

 protected:
  // What every call writes lies together, apart from what all threads read.
  alignas(64) Line lines_[2];  ///< The first one is served first.

 private:
  Line replies_;
  Message look_again_;
  std::atomic<bool> looks_again_{false};  ///< `look_again_` is under way.
  std::atomic<bool> cancelled_{false};    ///< Calls have been cancelled since it was handled last.
};

/// A call that a kernel makes: its step cancels it, and the step's player concludes it.
template <typename Base>
class KernelCall final : public Base, public KernelRest {
 public:
  template <typename T>
  KernelCall(T* resource, KernelContext& ctx, KernelDone done)
      : Base(resource), ctx_(ctx), done_(done) {
    this->cancellation = ctx.cancellation();
  }

 private:
  absl::Status Finish() override { return this->Conclude(ctx_); }
  void Over(std::unique_ptr<WaitingResource::Call> self) noexcept override {
    const KernelDone done = done_;
    absl::Status status = std::move(this->status);
    (void)self.release();
    // Most calls are other steps' than the one that this thread plays or cancels.
    done(std::move(status), Player::kHandsOn, std::unique_ptr<KernelRest>(this));
  }

  KernelContext& ctx_;
  const KernelDone done_;
};

/// A call of somebody else, which has so many outputs.
template <typename Base>
class CallbackCall final : public Base {
 public:
  template <typename T>
  CallbackCall(T* resource, CancellationToken* token, int num_outputs, WaitingResource::Done done)
      : Base(resource), num_outputs_(num_outputs), done_(std::move(done)) {
    this->KeepResource();
    this->cancellation = token;
  }

 private:
  void Over(std::unique_ptr<WaitingResource::Call>) noexcept override {
    done_(this->Result(num_outputs_));
  }

  const int num_outputs_;
  const WaitingResource::Done done_;
};

/// What a resource holds, told at once, and replaced: for `Save` and `Restore`.
template <typename State>
using SaveDone = std::function<void(absl::StatusOr<State>)>;
using RestoreDone = std::function<void(absl::Status)>;

/// The resource of that name: NotFound if there is none. `what` names the kind for messages.
absl::StatusOr<RefPtr<Resource>> FindResource(ResourceProvider* resources,
                                              std::string_view container, std::string_view name,
                                              const char* what);
/// The one whose name an input has: a resource handle, or a reference to a string variable that
/// `ResourceMaker` made.
absl::StatusOr<RefPtr<Resource>> FindResource(KernelContext& ctx, int input, const char* what);
inline absl::StatusOr<RefPtr<Resource>> FindResource(KernelContext& ctx, const char* what) {
  return FindResource(ctx, 0, what);
}

/// The same for a kind of resource, which T::kKind names; InvalidArgument if it is of another kind.
///
///     FindWaiting<Queue>(&device_role.containers, /*container=*/"", "my_queue")
template <typename T, typename... Where>
absl::StatusOr<RefPtr<T>> FindWaiting(Where&&... where) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Resource> resource,
                          FindResource(std::forward<Where>(where)..., T::kKind));
  if (auto* found = dynamic_cast<T*>(resource.get())) return RefPtr<T>::Share(found);
  return InvalidArgument("the handle refers to ", resource->DebugString(), ", not to a ", T::kKind);
}

/// The one that input 0 of a kernel, a handle, holds; nullptr: it must be found by its name.
template <typename T>
T* HeldByInput(KernelContext& ctx) {
  const Tensor& handle = ctx.input(0);
  if (handle.type() != ElementType::kResource || handle.num_elements() != 1) return nullptr;
  auto* held = dynamic_cast<T*>(handle.unchecked_data<ResourceHandle>()->resource.get());
  return held == nullptr || held->abandoned() ? nullptr : held;
}

/// A kernel that makes calls at a kind of resource.
template <typename T, typename Call>
class WaitingKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone done) final {
    // The input lasts until the call is gone: that spares threads a reference count to fight for.
    T* resource = HeldByInput<T>(ctx);
    RefPtr<T> found;
    if (resource == nullptr) {
      absl::StatusOr<RefPtr<T>> named = FindWaiting<T>(ctx);
      if (!named.ok()) return done(named.status());
      found = *std::move(named);
      resource = found.get();
    }
    auto call = std::make_unique<KernelCall<Call>>(resource, ctx, done);
    if (found) call->KeepResource();
    if (absl::Status status = Ask(*resource, ctx, call.get()); !status.ok()) {
      return done(std::move(status));
    }
    T::Submit(std::move(call));
  }

 private:
  /// Says in `call` what is asked for.
  virtual absl::Status Ask(const T& resource, KernelContext& ctx, Call* call) = 0;
};

/// A resource of a node's container, named by `shared_name` or like the node; made by the first who
/// asks. Found once, and again when the container has let go of it. Thread-safe.
class NamedResource {
 public:
  /// What a node is that has neither `shared_name` nor its name for one: nobody else's.
  enum class Unnamed : uint8_t { kLikeTheNode, kPrivate };

  NamedResource(KernelConstruction& construction, std::string type_name, Unnamed unnamed,
                absl::Status* status);
  /// What is private goes with the kernel.
  ~NamedResource();

  using Make = absl::FunctionRef<absl::StatusOr<RefPtr<Resource>>(const std::string& name)>;
  using Check = absl::FunctionRef<absl::Status(const WaitingResource&)>;

  /// InvalidArgument if what is there is no `WaitingResource`, or what `check` says. `*again`: it
  /// is not the one of the last call.
  absl::StatusOr<WaitingResource*> Find(KernelContext& ctx, Make make, Check check, bool* again);

  const std::string& container() const { return container_; }
  const std::string& name() const { return name_; }
  const std::string& type_name() const { return type_name_; }

 private:
  std::string container_, name_;
  const std::string type_name_;
  bool private_ = false;
  RefPtr<WaitingResource> resource_;  ///< As found last.
  ResourceProvider* resources_ = nullptr;
};

/// Kernel that puts out a handle (or a reference, by the type of its output) to a resource of its
/// node's container.
class ResourceMaker : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override;

 protected:
  using Unnamed = NamedResource::Unnamed;

  ResourceMaker(KernelConstruction& construction, std::string type_name, absl::Status* status,
                Unnamed unnamed = Unnamed::kLikeTheNode);

  virtual absl::StatusOr<RefPtr<Resource>> Make(KernelContext& ctx, const std::string& name) = 0;
  /// InvalidArgument if the resource that exists is not what this node would make.
  virtual absl::Status Check(const WaitingResource& resource) = 0;

 private:
  absl::Status PutName(KernelContext& ctx);

  const bool by_name_;
  std::mutex mutex_;
  NamedResource resource_;
  Tensor handle_;
  RefPtr<Resource> reference_;  ///< The variable that is called like the resource.
};

/// A `NamedResource` of kind `T`, for kernels without handles. Thread-safe.
template <typename T>
class NamedKind {
 public:
  NamedKind(KernelConstruction& construction, absl::Status* status)
      : named_(construction, T::kKind, NamedResource::Unnamed::kLikeTheNode, status) {}

  absl::StatusOr<RefPtr<T>> Find(KernelContext& ctx, NamedResource::Make make) {
    std::lock_guard<std::mutex> lock(mutex_);
    bool again = false;
    TROUPE_ASSIGN_OR_RETURN(WaitingResource * found, named_.Find(ctx, make, Check, &again));
    return RefPtr<T>::Share(static_cast<T*>(found));
  }

 private:
  static absl::Status Check(const WaitingResource& resource) {
    if (dynamic_cast<const T*>(&resource) != nullptr) return absl::OkStatus();
    return InvalidArgument("the resource is ", resource.DebugString(), ", not a ", T::kKind);
  }

  std::mutex mutex_;
  NamedResource named_;
};

/// Makes output 0 a reference to a string variable that names a resource: the handle of the older
/// ops. `*variable` keeps it from one step to the next.
absl::Status PutReference(KernelContext& ctx, const std::string& container, const std::string& name,
                          RefPtr<Resource>* variable);

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_WAITING_RESOURCE_H_
