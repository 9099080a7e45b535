#include "api/actors.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "api/internal/actor_host.h"
#include "devices/cpu/deadline_timer.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/actors/tensor_actor.h"

namespace troupe {

namespace {

using Tensors = std::vector<Tensor>;

/// Of errors that `ToCafError` makes.
constexpr auto kStatusCategory = caf::atom("troupe");
/// What an actor may have been told without having handled it.
constexpr size_t kMostTold = 10000;

/// Real time.
class RealTimer final : public ActorTimer {
 public:
  uint64_t Add(absl::Duration after, std::function<void()> over) override {
    return timer_.Add(after, std::move(over));
  }
  void Remove(uint64_t id) override { timer_.Remove(id); }

 private:
  DeadlineTimer timer_;
};

ActorTimer* Timer() {
  static auto* real = new RealTimer;
  ActorTimer* const timer = TensorActors::Global()->timer();
  return timer != nullptr ? timer : real;
}

absl::Status StatusOf(const std::string& who, const caf::error& error) {
  if (error.category() == kStatusCategory) {
    std::string text;
    if (error.context().match_elements<std::string>())
      text = error.context().get_as<std::string>(0);
    return absl::Status(static_cast<absl::StatusCode>(error.code()), text);
  }
  if (error == caf::sec::unexpected_message) {
    return absl::UnimplementedError(StrCat(who, " does not handle such a message"));
  }
  const bool ended =
      error == caf::sec::request_receiver_down || error.category() == caf::atom("exit");
  return ended ? absl::UnavailableError(StrCat(who, " has ended"))
               : absl::UnknownError(StrCat(who, ": ", caf::to_string(error)));
}

/// Who asks an actor for the kernels: an actor itself, played by whoever answers. Thread-safe.
class Asker final : public caf::monitorable_actor {
 public:
  Asker(caf::actor_config& config, std::string name)
      : caf::monitorable_actor(config), actor_(std::move(name)) {}

  const char* name() const override { return "troupe.asker"; }

  /// `answer` null: told, not asked.
  absl::StatusOr<uint64_t> Add(absl::Duration timeout, TensorActor::Answer answer) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_.ok()) return ended_;
    if (answer == nullptr && told_ >= kMostTold) {
      return absl::ResourceExhaustedError(StrCat("actor ", actor_, " has not handled the last ",
                                                 kMostTold, " things that it was told"));
    }
    const uint64_t id = next_id_++;
    Request& request = requests_[id];
    told_ += answer == nullptr ? 1 : 0;
    request.answer = std::move(answer);
    if (timeout < absl::InfiniteDuration()) {
      request.timer = timer_->Add(timeout, [self = caf::strong_actor_ptr(ctrl()), this, id,
                                            timeout] {
        KeepGoing([&] {
          Finish(id, absl::DeadlineExceededError(StrCat("actor ", actor_, " did not answer within ",
                                                        absl::FormatDuration(timeout))));
        });
      });
    }
    return id;
  }

  void Finish(uint64_t id, absl::StatusOr<Tensors> result) {
    Request request;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto it = requests_.find(id);
      if (it == requests_.end()) return;
      request = std::move(it->second);
      requests_.erase(it);
      told_ -= request.answer == nullptr ? 1 : 0;
    }
    if (request.timer != 0) timer_->Remove(request.timer);
    if (request.answer != nullptr) request.answer(std::move(result));
  }

  /// The actor has ended, or its process is lost.
  void FailAll(const caf::error& reason) {
    const bool lost = reason == caf::exit_reason::remote_link_unreachable;
    const absl::Status why = absl::UnavailableError(
        StrCat("actor ", actor_, lost ? " was lost with its process" : " has ended"));
    std::vector<uint64_t> ids;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended_ = why;
      for (const auto& [id, request] : requests_) ids.push_back(id);
    }
    for (uint64_t id : ids) Finish(id, why);
  }

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    if (!what->mid.is_response()) return;
    KeepGoing([&] {
      const uint64_t id = what->mid.request_id().integer_value();
      auto& content = what->content();
      if (content.match_elements<Tensors>()) {
        Finish(id, content.get_mutable_as<Tensors>(0));
      } else if (content.match_elements<caf::error>()) {
        Finish(id, StatusOf(StrCat("actor ", actor_), content.get_as<caf::error>(0)));
      } else {
        Finish(id, InvalidArgument("actor ", actor_, " did not answer tensors"));
      }
    });
  }

 private:
  struct Request {
    TensorActor::Answer answer;
    uint64_t timer = 0;
  };

  const std::string actor_;
  ActorTimer* const timer_ = Timer();
  std::mutex mutex_;
  std::map<uint64_t, Request> requests_;
  uint64_t next_id_ = 1;
  size_t told_ = 0;
  absl::Status ended_;
};

/// Runs the actor that is sent something here and at once; others are the scheduler's.
class ThisThread final : public caf::execution_unit {
 public:
  explicit ThisThread(caf::actor_system* system) : caf::execution_unit(system) {}

  void exec_later(caf::resumable* actor) override {
    if (first_ == nullptr && !running_) {
      first_ = actor;
    } else {
      system().scheduler().enqueue(actor);
    }
  }
  /// Handles one message, unless another thread runs the actor already.
  void Run() {
    running_ = true;
    if (first_ == nullptr) return;
    if (first_->resume(this, 1) == caf::resumable::resume_later) {
      system().scheduler().enqueue(first_);
    } else {
      caf::intrusive_ptr_release(first_);
    }
  }

 private:
  caf::resumable* first_ = nullptr;
  bool running_ = false;
};

class CafActor final : public TensorActor {
 public:
  /// `name` is for errors.
  CafActor(const std::string& name, caf::actor actor, const PublishOptions& options)
      : actor_(std::move(actor)), quick_(options.quick) {
    caf::actor_system& system = actor_.home_system();
    caf::actor_config config;
    asker_ = caf::make_actor<Asker, caf::strong_actor_ptr>(system.next_actor_id(), system.node(),
                                                           &system, config, name);
    actor_->attach_functor([asker = asker_](const caf::error& reason) {
      KeepGoing([&] { Self(asker)->FailAll(reason); });
    });
  }

  ~CafActor() override {
    Self(asker_)->cleanup(caf::make_error(caf::exit_reason::user_shutdown), nullptr);
  }

  bool Is(const caf::strong_actor_ptr& actor) const {
    return actor_.id() == actor->id() && actor_.node() == actor->node();
  }
  uint64_t Ask(Tensors inputs, absl::Duration timeout, Answer answer) override {
    absl::StatusOr<uint64_t> id = Self(asker_)->Add(timeout, answer);
    if (!id.ok()) {
      answer(id.status());
      return 0;
    }
    Enqueue(*id, ask_atom_v, std::move(inputs));
    return *id;
  }
  void Forget(uint64_t request) override {
    Self(asker_)->Finish(request, absl::CancelledError("nobody waits any more"));
  }
  absl::Status Tell(Tensors inputs) override {
    TROUPE_ASSIGN_OR_RETURN(const uint64_t id,
                            Self(asker_)->Add(absl::InfiniteDuration(), nullptr));
    Enqueue(id, tell_atom_v, std::move(inputs));
    return absl::OkStatus();
  }

 private:
  static Asker* Self(const caf::strong_actor_ptr& asker) {
    return static_cast<Asker*>(asker->get());
  }
  /// A tell is a request as well, so that it is known when it has been handled.
  template <typename Atom>
  void Enqueue(uint64_t id, Atom atom, Tensors inputs) {
    try {
      auto message = caf::make_mailbox_element(asker_, caf::message_id(id).with_normal_priority(),
                                               {}, atom, std::move(inputs));
      if (!quick_) return actor_->enqueue(std::move(message), nullptr);
      EnqueueQuick(actor_->ctrl(), std::move(message));
    } catch (...) {
      Self(asker_)->Finish(id, StatusOfException());
    }
  }

  const caf::actor actor_;
  const bool quick_;
  caf::strong_actor_ptr asker_;
};

class Function final : public TensorActor {
 public:
  explicit Function(std::function<absl::StatusOr<Tensors>(Tensors)> function)
      : function_(std::move(function)) {}
  uint64_t Ask(Tensors inputs, absl::Duration, Answer answer) override {
    answer(CatchExceptions([&] { return function_(std::move(inputs)); }));
    return 0;
  }
  void Forget(uint64_t) override {}
  absl::Status Tell(Tensors inputs) override {
    return CatchExceptions([&] { return function_(std::move(inputs)); }).status();
  }

 private:
  const std::function<absl::StatusOr<Tensors>(Tensors)> function_;
};

absl::StatusOr<PublishedActor> AddActor(const std::string& name,
                                        std::shared_ptr<TensorActor> actor) {
  TensorActors* const actors = TensorActors::Global();
  TROUPE_RETURN_IF_ERROR(actors->Add(name, std::move(actor)));
  return PublishedActor([actors, name] { actors->Remove(name); });
}

}  // namespace

void EnqueueQuick(caf::actor_control_block* actor, caf::mailbox_element_ptr message) {
  ThisThread unit(actor->home_system);
  actor->enqueue(std::move(message), &unit);
  unit.Run();
}

bool IsPublishedAs(const std::string& name, const caf::strong_actor_ptr& actor) {
  const auto found = TensorActors::Global()->Find(name);
  const auto* published = found.ok() ? dynamic_cast<const CafActor*>(found->get()) : nullptr;
  return published != nullptr && published->Is(actor);
}

absl::StatusOr<PublishedActor> PublishActor(const std::string& name, const caf::actor& actor,
                                            const PublishOptions& options) {
  if (actor == nullptr) return InvalidArgument("there is no actor to publish as \"", name, "\"");
  return AddActor(name, std::make_shared<CafActor>(name, actor, options));
}

absl::StatusOr<PublishedActor> PublishActorOf(const std::string& process, const std::string& name,
                                              const caf::actor& actor) {
  const std::string who = process.empty() ? name : StrCat(name, " of ", process);
  return AddActor(name, std::make_shared<CafActor>(who, actor, PublishOptions()));
}

absl::StatusOr<PublishedActor> FunctionActor(
    const std::string& name, std::function<absl::StatusOr<Tensors>(Tensors)> function) {
  if (function == nullptr)
    return InvalidArgument("there is no function to publish as \"", name, "\"");
  return AddActor(name, std::make_shared<Function>(std::move(function)));
}

absl::Status ToStatus(const caf::error& error) { return StatusOf("the actor", error); }

caf::error ToCafError(const absl::Status& status) {
  return caf::error(static_cast<uint8_t>(status.code()), kStatusCategory,
                    caf::make_message(std::string(status.message())));
}

}  // namespace troupe
