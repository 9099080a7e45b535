/// What the actors' mailboxes hold.
#ifndef TROUPE_KERNELS_MESSAGE_H_
#define TROUPE_KERNELS_MESSAGE_H_

namespace troupe {

/// A link of a mailbox's queue; messages derive from it. The sender owns nothing once it has been
/// sent.
struct Message {
  Message* next = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_MESSAGE_H_
