/// Queues and accumulators as actors.
#ifndef TROUPE_ACTORS_STATE_WAITING_ROLE_H_
#define TROUPE_ACTORS_STATE_WAITING_ROLE_H_

#include "actors/mailbox.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

/// A `Machine`, which is a kind of `WaitingResource`, behind a mailbox. Who sends to an idle one
/// plays it until no message waits; replies go out after every batch of messages, and without the
/// token if no more have come. Knows no clock, thread or socket. Thread-safe.
template <typename Machine>
class WaitingRole final : public Machine {
 public:
  using Machine::Machine;

 private:
  void Send(Message* message) noexcept override {
    if (!mailbox_.Send(message)) return;
    message->next = nullptr;
    RefPtr<WaitingRole> self;
    while (true) {
      const auto replies = this->Handle(message);
      if (mailbox_.TryRelease()) return this->Reply(replies);
      // The replies may let go of the last reference.
      if (!self) self = RefPtr<WaitingRole>::Share(this);
      this->Reply(replies);
      message = mailbox_.TakeAll();
    }
  }

  Mailbox mailbox_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_STATE_WAITING_ROLE_H_
