// Resources at which calls wait, as actors: queues, accumulators, tables, mutexes, barriers.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime.h"
#include "api/internal/role_actor.h"
#include "devices/device.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/argument_spaces.h"
#include "kernels/data/element_memory.h"
#include "kernels/queues/accumulator.h"
#include "kernels/queues/queue.h"
#include "kernels/sync/barrier.h"
#include "kernels/sync/mutex.h"
#include "kernels/tables/lookup_table.h"

namespace troupe {

namespace {

/// Calls that wait, by who has made them: they end with it.
class Waiting {
 public:
  using Token = std::shared_ptr<CancellationToken>;
  using Who = std::pair<caf::node_id, caf::actor_id>;

  /// What cancels all calls of `who` at once: a resource that is told of each by itself looks
  /// through all that wait for each.
  static Token Add(const std::shared_ptr<Waiting>& self, const caf::strong_actor_ptr& who) {
    const Who key(who->nid, who->aid);
    Token token;
    {
      std::lock_guard<std::mutex> lock(self->mutex_);
      size_t& of_process = self->of_process_[who->nid];
      const auto known = self->calls_.find(key);
      if (known != self->calls_.end()) {
        ++known->second.count;
        ++of_process;
        return known->second.token;
      }
      token = std::make_shared<CancellationToken>();
      self->calls_.emplace(key, Calls{token, 1});
      ++of_process;
    }
    who->get()->attach_functor([weak = std::weak_ptr(self), key] {
      if (const auto waiting = weak.lock()) waiting->End(key);
    });
    return token;
  }
  /// One of the calls with this token is over.
  void Remove(const caf::strong_actor_ptr& who, const Token& token) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = calls_.find({who->nid, who->aid});
    if (it == calls_.end() || it->second.token != token) return;  // It has ended.
    --it->second.count;
    Left(who->nid, 1);
  }
  /// `who` has ended; may be called more than once. None of its calls is served after this.
  void End(const Who& who) {
    Token token;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = calls_.find(who);
      if (it == calls_.end()) return;
      token = it->second.token;
    }
    token->Cancel(absl::CancelledError("nobody waits any more"));
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = calls_.find(who);
    if (it == calls_.end() || it->second.token != token) return;
    Left(who.first, it->second.count);
    calls_.erase(it);
  }
  /// Those of a process.
  size_t Of(const caf::node_id& process) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = of_process_.find(process);
    return it == of_process_.end() ? 0 : it->second;
  }

 private:
  struct Calls {
    Token token;
    size_t count;  ///< That wait.
  };

  /// The lock is held.
  void Left(const caf::node_id& process, size_t calls) {
    const auto it = of_process_.find(process);
    if (calls > 0 && (it->second -= calls) == 0) of_process_.erase(it);
  }

  std::mutex mutex_;
  std::map<Who, Calls> calls_;                 ///< Of all who have waited and live.
  std::map<caf::node_id, size_t> of_process_;  ///< How many calls wait.
};

/// A batch is stacked, and a gradient divided, by the pool if it has so many bytes or more: that
/// takes 25 us, as long as waking a worker, and whoever serves the call may be a reader of the
/// transport, or play a step.
constexpr size_t kMinBytesHandedOn = size_t{1} << 20;

/// A call of a handle.
template <typename Base>
class HandleCall final : public Base, public PoolTask {
 public:
  template <typename Resource>
  HandleCall(Resource* resource, std::weak_ptr<Runtime> runtime, int num_outputs)
      : Base(resource), runtime_(std::move(runtime)), num_outputs_(num_outputs) {
    this->KeepResource();
  }

  size_t bytes = 0;  ///< That are to be worked on once the call has been served.
  WaitingResource::Done done;

  void Run() noexcept override {
    const std::unique_ptr<HandleCall> self(this);
    done(this->Result(num_outputs_));
  }

 private:
  void Over(std::unique_ptr<WaitingResource::Call> self) noexcept override {
    (void)self.release();
    const auto runtime = runtime_.lock();
    if (bytes >= kMinBytesHandedOn && this->status.ok() && runtime != nullptr) {
      try {
        return runtime->pool()->SubmitLong(this);
      } catch (...) {  // No thread could be made: this one does it.
      }
    }
    Run();
  }

  /// A call that waits is its resource's, which is the runtime's: it must not keep that.
  const std::weak_ptr<Runtime> runtime_;
  const int num_outputs_;
};

/// What a tensor of this type and shape takes; without a complete shape: much.
size_t BytesOf(ElementType type, const PartialShape& shape) {
  const absl::StatusOr<Shape> full = shape.ToShape();
  return full.ok() ? full->num_elements() * ElementSize(type) : kMinBytesHandedOn;
}

/// An actor of a resource at which calls wait.
template <typename Kind>
class WaitingRoleActor : public RoleActor {
 public:
  WaitingRoleActor(caf::actor_config& config, std::weak_ptr<Runtime> runtime, Device* device,
                   RefPtr<Kind> resource)
      : RoleActor(config),
        runtime_(std::move(runtime)),
        device_(device),
        resource_(std::move(resource)) {}

 protected:
  bool over() const override { return resource_->abandoned(); }
  template <typename Call>
  std::unique_ptr<HandleCall<Call>> NewCall(int num_outputs) const {
    return std::make_unique<HandleCall<Call>>(resource_.get(), runtime_, num_outputs);
  }
  /// Makes the call, which waits for as long as the sender lives; its answer has a value if
  /// `value`.
  template <typename Call>
  absl::Status Submit(std::unique_ptr<HandleCall<Call>> call, const Reply& reply, bool value) {
    return Submit(std::move(call), reply, [value](const Reply& to, const Tuple& tuple) {
      value ? to.Send(tuple) : to.Send();
    });
  }
  /// The same; `answer(reply, outputs)` answers a call that went well.
  template <typename Call, typename Answer>
  absl::Status Submit(std::unique_ptr<HandleCall<Call>> call, const Reply& reply, Answer answer) {
    const auto token = reply.to != nullptr ? Waiting::Add(waiting_, reply.to) : nullptr;
    call->cancellation = token.get();
    call->done = [reply, token, waiting = waiting_,
                  answer = std::move(answer)](const absl::StatusOr<Tuple>& tuple) {
      KeepGoing([&] {
        if (reply.to != nullptr) waiting->Remove(reply.to, token);
        tuple.ok() ? answer(reply, *tuple) : reply.SendStatus(tuple.status());
      });
    };
    WaitingResource::Submit(std::move(call));
    return absl::OkStatus();
  }

  /// Calls of a process that wait here.
  size_t NumWaiting(const caf::node_id& process) { return waiting_->Of(process); }

  const std::weak_ptr<Runtime> runtime_;
  Device* const device_;  ///< Of the runtime, where the resource is.
  const RefPtr<Kind> resource_;
  const std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
};

class QueueRoleActor final : public WaitingRoleActor<Queue> {
 public:
  using WaitingRoleActor::WaitingRoleActor;
  const char* name() const override { return "troupe.queue"; }

 private:
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (content.match_elements<size_atom>()) {
      reply.Send(resource_->Size());
      return absl::OkStatus();
    }
    if (content.match_elements<caf::close_atom, bool>()) {
      auto call = NewCall<Queue::PutCall>(0);
      using Close = Queue::PutCall::Close;
      call->close = content.get_as<bool>(1) ? Close::kNow : Close::kAfterPending;
      return Submit(std::move(call), reply, /*value=*/false);
    }
    if (content.match_elements<caf::put_atom, Tuple>()) {
      auto call = NewCall<Queue::PutCall>(0);
      call->components = content.get_as<Tuple>(1);
      return Submit(std::move(call), reply, /*value=*/false);
    }
    const QueueOptions& options = resource_->options();
    auto call = NewCall<Queue::TakeCall>(static_cast<int>(options.types.size()));
    if (content.match_elements<caf::get_atom, int64_t>()) {
      call->many = true;
      call->n = content.get_as<int64_t>(1);
      for (size_t i = 0; i < options.shapes.size(); ++i) {
        call->bytes += std::max<int64_t>(0, call->n) * BytesOf(options.types[i], options.shapes[i]);
      }
    } else if (!content.match_elements<caf::get_atom>()) {
      return NotHandled(content);
    }
    return Submit(std::move(call), reply,
                  [runtime = runtime_, device = device_](const Reply& to, const Tuple& tuple) {
                    SendFromDevice(runtime.lock(), device, tuple, to);
                  });
  }

  /// Elements that are in the device's memory are copied first.
  static void SendFromDevice(std::shared_ptr<Runtime> runtime, Device* device, const Tuple& tuple,
                             const Reply& to) {
    if (runtime == nullptr) return to.SendStatus(absl::CancelledError("the devices have gone"));
    if (device->memory_space() != MemorySpace::kDevice) return to.Send(tuple);
    to.SendLater(
        [&] { DownloadTuple(device, tuple, DeviceAnswer<Tuple>::Make(std::move(runtime), to)); });
  }
};

class AccumulatorRoleActor final : public WaitingRoleActor<Accumulator> {
 public:
  using WaitingRoleActor::WaitingRoleActor;
  const char* name() const override { return "troupe.accumulator"; }

 private:
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (content.match_elements<size_atom>()) {
      reply.Send(resource_->NumAccumulated());
      return absl::OkStatus();
    }
    if (content.match_elements<caf::update_atom, int64_t>()) {
      resource_->SetGlobalStep(content.get_as<int64_t>(1));
      reply.Send();
      return absl::OkStatus();
    }
    if (content.match_elements<caf::put_atom, int64_t, Tuple>()) {
      auto call = NewCall<Accumulator::ApplyCall>(0);
      call->local_step = content.get_as<int64_t>(1);
      call->owned = content.get_as<Tuple>(2);
      for (const Tensor& part : call->owned) {
        call->gradient.push_back(&part);
        call->bytes += part.bytes();
      }
      if (call->bytes < Accumulator::kMinBytesHandedOn) call->bytes = 0;  // Nothing is left to do.
      return Submit(std::move(call), reply, /*value=*/false);
    }
    if (!content.match_elements<caf::get_atom, int64_t>()) return NotHandled(content);
    const AccumulatorOptions& options = resource_->options();
    auto call = NewCall<Accumulator::TakeCall>(options.sparse ? 3 : 1);
    call->required = content.get_as<int64_t>(1);
    call->bytes = BytesOf(options.type, options.shape);
    return Submit(std::move(call), reply, /*value=*/true);
  }
};

class TableRoleActor final : public WaitingRoleActor<LookupTable> {
 public:
  using WaitingRoleActor::WaitingRoleActor;
  const char* name() const override { return "troupe.table"; }

 private:
  using TableCall = LookupTable::TableCall;
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (content.match_elements<size_atom>()) {
      reply.Send(resource_->Size());
      return absl::OkStatus();
    }
    if (content.match_elements<caf::get_atom>()) {
      auto call = NewCall<TableCall>(2);
      call->bytes = kMinBytesHandedOn;
      call->what = TableCall::What::kExport;
      return Submit(std::move(call), reply, /*value=*/true);
    }
    if (content.match_elements<caf::delete_atom, Tensor>()) {
      return SubmitKeys(TableCall::What::kRemove, {content.get_as<Tensor>(1)}, reply);
    }
    const bool finds = content.match_elements<caf::get_atom, Tensor, Tensor>();
    if (!finds && !content.match_elements<caf::put_atom, Tensor, Tensor>()) {
      return NotHandled(content);
    }
    return SubmitKeys(finds ? TableCall::What::kFind : TableCall::What::kInsert,
                      {content.get_as<Tensor>(1), content.get_as<Tensor>(2)}, reply);
  }

  absl::Status SubmitKeys(TableCall::What what, Tuple tensors, const Reply& reply) {
    const bool finds = what == TableCall::What::kFind;
    auto call = NewCall<TableCall>(finds ? 1 : 0);
    call->what = what;
    call->owned = std::move(tensors);
    for (const Tensor& tensor : call->owned) {
      if (!tensor.valid())
        return InvalidArgument(resource_->DebugString(), ": a tensor is missing");
      call->bytes += tensor.bytes();
    }
    call->keys = &call->owned[0];
    if (call->owned.size() > 1) call->values = &call->owned[1];
    if (!finds) return Submit(std::move(call), reply, /*value=*/false);
    return Submit(std::move(call), reply,
                  [](const Reply& to, const Tuple& found) { to.Send(found[0]); });
  }
};

class MutexRoleActor final : public WaitingRoleActor<Mutex> {
 public:
  using WaitingRoleActor::WaitingRoleActor;
  const char* name() const override { return "troupe.mutex"; }

 private:
  using Who = Waiting::Who;
  /// Who has held the mutex and lives; a hold of nothing: does not hold it now.
  struct Holders {
    std::mutex mutex;
    std::map<Who, MutexLockValue> holds;

    MutexLockValue Take(const Who& who, bool ended) {
      std::lock_guard<std::mutex> lock(mutex);
      const auto it = holds.find(who);
      if (it == holds.end()) return nullptr;
      MutexLockValue hold = std::move(it->second);
      it->second = nullptr;
      if (ended) holds.erase(it);
      return hold;
    }
  };

  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (reply.to == nullptr) return absl::OkStatus();  // There is nobody to hold it.
    const Who who(reply.to->nid, reply.to->aid);
    if (content.match_elements<unlock_atom>()) {
      // Whoever waits next gets it at the end of this scope.
      const MutexLockValue hold = holders_->Take(who, /*ended=*/false);
      if (hold == nullptr) {
        return absl::FailedPreconditionError(
            StrCat(resource_->DebugString(), " is not held by who gives it back"));
      }
      reply.Send();
      return absl::OkStatus();
    }
    if (!content.match_elements<lock_atom>()) return NotHandled(content);
    // Who holds it may be of the same process, and what gives it back must find room.
    if (reply.to->nid != ctrl()->nid && NumWaiting(reply.to->nid) >= kMostWaiting) {
      return absl::ResourceExhaustedError(
          StrCat(kMostWaiting, " calls of one process wait for ", resource_->DebugString()));
    }
    return Submit(
        NewCall<Mutex::LockCall>(1), reply,
        [who, holders = holders_, waiting = waiting_](const Reply& to, const Tuple& locked) {
          const auto* hold = locked[0].unchecked_scalar<Variant>().get<MutexLockValue>();
          bool first = false;
          {
            std::lock_guard<std::mutex> lock(holders->mutex);
            const auto [it, added] = holders->holds.try_emplace(who);
            it->second = *hold;
            first = added;
          }
          // Called at once if it has ended meanwhile.
          if (first) {
            to.to->get()->attach_functor(
                [weak = std::weak_ptr(holders), calls = std::weak_ptr(waiting), who] {
                  const auto holders = weak.lock();
                  if (holders == nullptr) return;
                  // Its other calls first: they would get the mutex, and give it back, one within
                  // another.
                  if (const auto waiting = calls.lock()) waiting->End(who);
                  const MutexLockValue over = holders->Take(who, /*ended=*/true);
                });
          }
          to.Send();
        });
  }

  static constexpr size_t kMostWaiting = ActorHost::kMostMessages / 2;

  const std::shared_ptr<Holders> holders_ = std::make_shared<Holders>();
};

class BarrierRoleActor final : public WaitingRoleActor<TupleBarrier> {
 public:
  using WaitingRoleActor::WaitingRoleActor;
  const char* name() const override { return "troupe.barrier"; }

 private:
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (content.match_elements<size_atom>()) {
      reply.Send(resource_->ReadySize());
      return absl::OkStatus();
    }
    if (content.match_elements<caf::close_atom, bool>()) {
      auto call = NewCall<TupleBarrier::CloseCall>(0);
      call->cancel_pending = content.get_as<bool>(1);
      return Submit(std::move(call), reply, /*value=*/false);
    }
    if (content.match_elements<caf::put_atom, int64_t, Tensor, Tensor>()) {
      auto call = NewCall<TupleBarrier::InsertCall>(0);
      call->component = content.get_as<int64_t>(1);
      call->keys = content.get_as<Tensor>(2);
      call->values = content.get_as<Tensor>(3);
      if (!call->keys.valid() || !call->values.valid()) {
        return InvalidArgument(resource_->DebugString(), ": a tensor is missing");
      }
      return Submit(std::move(call), reply, /*value=*/false);
    }
    if (!content.match_elements<caf::get_atom, int64_t>()) return NotHandled(content);
    const BarrierOptions& options = resource_->options();
    auto call = NewCall<TupleBarrier::TakeCall>(static_cast<int>(2 + options.types.size()));
    call->n = content.get_as<int64_t>(1);
    for (size_t i = 0; i < options.shapes.size(); ++i) {
      call->bytes += std::max<int64_t>(0, call->n) *
                     BytesOf(options.types[i], PartialShape(options.shapes[i]));
    }
    return Submit(std::move(call), reply, /*value=*/true);
  }
};

template <typename Role, typename Kind>
absl::StatusOr<caf::strong_actor_ptr> MakeWaitingActor(caf::actor_system& system,
                                                       const std::shared_ptr<Runtime>& runtime,
                                                       const std::string& name) {
  Device* of = nullptr;
  const auto find = [&of](DeviceRole& device, const auto&... where) {
    of = device.device.get();
    return FindWaiting<Kind>(&device.containers, where...);
  };
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Kind> found, FindOnAnyDevice(*runtime, name, find));
  return MakeRole<Role>(system, runtime, of, std::move(found));
}

}  // namespace

absl::StatusOr<caf::strong_actor_ptr> MakeWaitingRole(caf::actor_system& system,
                                                      const std::shared_ptr<Runtime>& runtime,
                                                      ActorKind kind, const std::string& name) {
  switch (kind) {
    case ActorKind::kQueue:
      return MakeWaitingActor<QueueRoleActor, Queue>(system, runtime, name);
    case ActorKind::kAccumulator:
      return MakeWaitingActor<AccumulatorRoleActor, Accumulator>(system, runtime, name);
    case ActorKind::kTable:
      return MakeWaitingActor<TableRoleActor, LookupTable>(system, runtime, name);
    case ActorKind::kMutex:
      return MakeWaitingActor<MutexRoleActor, Mutex>(system, runtime, name);
    case ActorKind::kBarrier:
      return MakeWaitingActor<BarrierRoleActor, TupleBarrier>(system, runtime, name);
    default:
      return InvalidArgument("there are no such actors");
  }
}

}  // namespace troupe
