/// One mailbox, one token: how messages reach a role.
#ifndef TROUPE_ACTORS_MAILBOX_H_
#define TROUPE_ACTORS_MAILBOX_H_

#include <atomic>

#include "kernels/message.h"

namespace troupe {

/// The queue of a role together with its token. The holder of the token plays the role: it alone
/// touches its state, takes messages, and lets go of the token only when none are left. A message
/// to a role whose token is free makes the sender its player; otherwise it is queued for the one
/// who plays. One atomic word holds both, so that sending to an idle role is one uncontended
/// compare-and-swap, and no message can be left behind without a player.
///
/// Thread-safe: any thread may send; only the holder of the token may take and release.
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Takes the token if it is free, with no message.
  bool TryAcquire() {
    Message* expected = nullptr;
    return head_.compare_exchange_strong(expected, Held(), std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  /// Queues `message`, or takes the token if it is free. True: the caller is now the player, and
  /// the message is not in the queue but its to handle. False: another thread will handle it, and
  /// neither the message nor the role may be touched any more.
  bool Send(Message* message) {
    Message* head = head_.load(std::memory_order_relaxed);
    while (true) {
      if (head == nullptr) {
        if (head_.compare_exchange_weak(head, Held(), std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
          return true;
        }
      } else {
        message->next = head == Held() ? nullptr : head;
        if (head_.compare_exchange_weak(head, message, std::memory_order_release,
                                        std::memory_order_relaxed)) {
          return false;
        }
      }
    }
  }

  /// True if messages wait. For the holder of the token.
  bool HasMessages() const { return head_.load(std::memory_order_relaxed) != Held(); }

  /// All waiting messages, oldest first; nullptr if none. For the holder, who keeps the token.
  Message* TakeAll() {
    if (!HasMessages()) return nullptr;
    Message* newest_first = head_.exchange(Held(), std::memory_order_acquire);
    Message* oldest_first = nullptr;
    while (newest_first != nullptr) {
      Message* next = newest_first->next;
      newest_first->next = oldest_first;
      oldest_first = newest_first;
      newest_first = next;
    }
    return oldest_first;
  }

  /// Lets go of the token if no message waits; false: there are some, and the caller still plays.
  bool TryRelease() {
    Message* expected = Held();
    return head_.compare_exchange_strong(expected, nullptr, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

 private:
  /// The token is held and no message waits.
  Message* Held() const { return const_cast<Message*>(&held_); }

  Message held_;
  std::atomic<Message*> head_{nullptr};
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_MAILBOX_H_
