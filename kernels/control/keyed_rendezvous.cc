// _Send, _Recv, _HostSend, _HostRecv: a meeting point that lives as long as the step.
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/cancellation.h"
#include "kernels/common/registration.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

/// Where tensors wait for who wants them, and the other way round; those of one key in order.
/// Thread-safe.
class KeyedRendezvous : public Resource {
 public:
  std::string DebugString() const override { return "KeyedRendezvous"; }

  void Send(const std::string& key, Tensor value) {
    const ElementType type = value.type();
    Waiter waiter;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Meeting& meeting = meetings_[key];
      if (meeting.waiters.empty()) {
        meeting.values.push_back(std::move(value));
        return;
      }
      waiter = meeting.waiters.front();
      meeting.waiters.pop_front();
      if (meeting.waiters.empty()) meetings_.erase(key);
    }
    // Outside the lock: a cancellation that is running just now waits for it.
    waiter.ctx->cancellation()->Deregister(waiter.callback);
    waiter.done(
        CatchExceptions([&] { return Take(type, waiter.type, std::move(value), waiter.ctx); }),
        Player::kPlays);
  }

  void Receive(const std::string& key, ElementType type, KernelContext& ctx, KernelDone done) {
    CancellationToken* token = ctx.cancellation();
    std::unique_lock<std::mutex> lock(mutex_);
    Meeting& meeting = meetings_[key];
    if (!meeting.values.empty()) {
      Tensor value = std::move(meeting.values.front());
      meeting.values.pop_front();
      if (meeting.values.empty()) meetings_.erase(key);
      lock.unlock();
      const ElementType sent = value.type();
      return done(Take(sent, type, std::move(value), &ctx));
    }
    const uint64_t id = next_id_++;
    meeting.waiters.push_back({id, 0, type, &ctx, done});
    lock.unlock();
    uint64_t callback = 0;
    RefPtr<KeyedRendezvous> self = RefPtr<KeyedRendezvous>::Share(this);
    try {
      if (!token->Register([self, key, id] { self->Abandon(key, id); }, &callback)) {
        return Abandon(key, id, token->status());
      }
    } catch (...) {
      return Abandon(key, id, StatusOfException());
    }
    lock.lock();
    // A value that came meanwhile has taken the waiter, and does not know the callback.
    if (Waiter* waiter = Find(key, id)) {
      waiter->callback = callback;
      return;
    }
    lock.unlock();
    token->Deregister(callback);
  }

 private:
  struct Waiter {
    uint64_t id = 0;
    uint64_t callback = 0;
    ElementType type = ElementType::kInvalid;
    KernelContext* ctx = nullptr;
    KernelDone done{};
  };
  struct Meeting {
    std::deque<Tensor> values;
    std::deque<Waiter> waiters;
  };

  static absl::Status Take(ElementType sent, ElementType wanted, Tensor value, KernelContext* ctx) {
    if (sent != wanted) {
      return InvalidArgument("what was sent is of type ", ElementTypeName(sent),
                             ", but what is received should be ", ElementTypeName(wanted));
    }
    ctx->set_output(0, std::move(value));
    return absl::OkStatus();
  }

  Waiter* Find(const std::string& key, uint64_t id) {
    auto meeting = meetings_.find(key);
    if (meeting == meetings_.end()) return nullptr;
    for (Waiter& waiter : meeting->second.waiters) {
      if (waiter.id == id) return &waiter;
    }
    return nullptr;
  }

  void Abandon(const std::string& key, uint64_t id, const absl::Status& status = {}) noexcept {
    Waiter waiter;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Waiter* found = Find(key, id);
      if (found == nullptr) return;
      waiter = *found;
      std::deque<Waiter>& waiters = meetings_[key].waiters;
      waiters.erase(waiters.begin() + (found - &waiters.front()));
    }
    waiter.done(status.ok() ? waiter.ctx->cancellation()->status() : status);
  }

  std::mutex mutex_;
  std::map<std::string, Meeting> meetings_;
  uint64_t next_id_ = 1;
};

absl::StatusOr<RefPtr<Resource>> RendezvousOf(const KernelContext& ctx) {
  ResourceProvider* resources = ctx.step().step_resources;
  if (resources == nullptr) {
    return absl::FailedPreconditionError("there is no step in which a transfer could meet");
  }
  return resources->FindOrCreate("", "_rendezvous", []() -> absl::StatusOr<RefPtr<Resource>> {
    return RefPtr<Resource>(RefPtr<KeyedRendezvous>::Adopt(new KeyedRendezvous));
  });
}

std::string KeyOf(const KernelConstruction& c) {
  return StrCat(c.Attr<std::string>("send_device"), ";", c.Attr<int64_t>("send_device_incarnation"),
                ";", c.Attr<std::string>("recv_device"), ";", c.Attr<std::string>("tensor_name"));
}

class Send : public Kernel {
 public:
  Send(KernelConstruction& c, absl::Status*) : key_(KeyOf(c)) {}
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(RefPtr<Resource> rendezvous, RendezvousOf(ctx));
    static_cast<KeyedRendezvous*>(rendezvous.get())->Send(key_, ctx.TakeInput(0));
    return absl::OkStatus();
  }

 private:
  const std::string key_;
};

class Recv : public AsyncKernel {
 public:
  Recv(KernelConstruction& c, absl::Status*) : key_(KeyOf(c)), type_(c.output_type(0)) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<RefPtr<Resource>> rendezvous = RendezvousOf(ctx);
    if (!rendezvous.ok()) return done(rendezvous.status());
    static_cast<KeyedRendezvous*>(rendezvous->get())->Receive(key_, type_, ctx, done);
  }

 private:
  const std::string key_;
  const ElementType type_;
};

REGISTER_KERNELS(Cheap("_Send"), MakeKernel<Send>, "_HostSend");
REGISTER_KERNELS(Cheap("_Recv"), MakeKernel<Recv>, "_HostRecv");

}  // namespace
}  // namespace troupe
