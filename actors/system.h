/// CAF's actor system, and the shells of our roles in it.
#ifndef TROUPE_ACTORS_SYSTEM_H_
#define TROUPE_ACTORS_SYSTEM_H_

#include <functional>
#include <memory>
#include <utility>

#include "actors/messages.h"

namespace caf {
class actor_system;
}

namespace troupe {

class SessionRole;

/// Runs actors on a scheduler of `threads` threads (policy `sharing`: the default one sleeps in a
/// way that a message does not interrupt). Thread-safe.
class ActorSystem {
 public:
  explicit ActorSystem(int threads);
  /// Waits for the actors, which end when their last handle goes; in the background if called by a
  /// function that an actor of this system calls.
  ~ActorSystem();

  caf::actor_system& caf();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The shell of a session: steps that nobody's thread waits for. `role` must outlive it.
/// Thread-safe.
class SessionShell {
 public:
  SessionShell(ActorSystem* system, SessionRole* role);
  /// Waits for the steps under way: close the session first.
  ~SessionShell();

  /// `done` is called on a thread of the actor system.
  void Run(RunRequest request, std::function<void(RunReply)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SYSTEM_H_
