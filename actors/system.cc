#include "actors/system.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "actors/caf_logger.h"
#include "actors/caf_types.h"
#include "actors/shells.h"

namespace troupe {

namespace {

struct Config : caf::actor_system_config {
  explicit Config(int threads) {
    add_message_types<caf::id_block::troupe_actors>();
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", static_cast<size_t>(threads));
  }
};

/// Set while a user's function runs on one of the system's own threads, which cannot be joined from
/// there.
thread_local bool in_callback = false;

/// Counts the requests that still use a session.
class InFlight {
 public:
  void Begin() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
  }
  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void WaitForNone() {
    std::unique_lock<std::mutex> lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

/// Answers come to this actor, which calls the function that belongs to the request.
caf::behavior Client(caf::event_based_actor* self, SessionActor session,
                     std::shared_ptr<InFlight> in_flight) {
  return {[=](RunRequest& request, RunDone& done) {
    auto answer = [done, in_flight](RunReply reply) {
      in_flight->End();
      in_callback = true;
      done(std::move(reply));
      in_callback = false;
    };
    self->request(session, caf::infinite, std::move(request))
        .then([answer](RunReply& reply) { answer(std::move(reply)); },
              [answer](const caf::error& error) {
                answer(RunReply{
                    absl::AbortedError("the session's actor has ended: " + caf::to_string(error)),
                    {}});
              });
  }};
}

}  // namespace

struct ActorSystem::Impl {
  explicit Impl(int threads) : config(threads), system(config) {}
  Config config;
  caf::actor_system system;
};

ActorSystem::ActorSystem(int threads) {
  LetGoOfLogger let_go;
  impl_ = std::make_unique<Impl>(threads);
}

ActorSystem::~ActorSystem() {
  if (in_callback) std::thread([impl = std::move(impl_)]() mutable { impl.reset(); }).detach();
}

caf::actor_system& ActorSystem::caf() { return impl_->system; }

struct SessionShell::Impl {
  SessionActor session;
  caf::actor client;
  std::shared_ptr<InFlight> in_flight = std::make_shared<InFlight>();
};

SessionShell::SessionShell(ActorSystem* system, SessionRole* role)
    : impl_(std::make_unique<Impl>()) {
  LetGoOfLogger let_go;
  impl_->session = SpawnSession(system->caf(), role);
  impl_->client = system->caf().spawn(Client, impl_->session, impl_->in_flight);
}

SessionShell::~SessionShell() { impl_->in_flight->WaitForNone(); }

void SessionShell::Run(RunRequest request, std::function<void(RunReply)> done) {
  impl_->in_flight->Begin();
  caf::anon_send(impl_->client, std::move(request), RunDone(std::move(done)));
}

}  // namespace troupe
