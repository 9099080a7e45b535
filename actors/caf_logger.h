/// A trap of CAF 0.17. For sources that include CAF only.
#ifndef TROUPE_ACTORS_CAF_LOGGER_H_
#define TROUPE_ACTORS_CAF_LOGGER_H_

#include <caf/logger.hpp>

namespace troupe {

/// A thread that makes an actor system, spawns an actor or publishes one keeps the system's logger
/// from then on, and the end of the system waits for that to be let go: for ever, if another thread
/// ends it. This lets go at its end. Every function that does such a thing begins with one.
class LetGoOfLogger {
 public:
  LetGoOfLogger() : before_(caf::logger::current_logger()) {}
  ~LetGoOfLogger() {
    // CAF's own threads keep their system's until they end, but no other's.
    if (caf::logger::current_logger() != before_) caf::logger::set_current_actor_system(nullptr);
  }
  LetGoOfLogger(const LetGoOfLogger&) = delete;
  LetGoOfLogger& operator=(const LetGoOfLogger&) = delete;

 private:
  const caf::logger* const before_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CAF_LOGGER_H_
