/// The variable actor.
#ifndef TROUPE_ACTORS_STATE_VARIABLE_ROLE_H_
#define TROUPE_ACTORS_STATE_VARIABLE_ROLE_H_

#include <atomic>
#include <functional>
#include <string>

#include "actors/mailbox.h"
#include "devices/memory_use.h"
#include "kernels/variable.h"

namespace troupe {

/// A variable behind a mailbox: its token is the lease. An idle variable is visited by the sender's
/// own thread at the cost of an uncontended compare-and-swap; visits to a busy one wait in the
/// mailbox and are made, in order, by whoever gives it back. Thread-safe.
class VariableRole final : public Variable {
 public:
  VariableRole(std::string name, ElementType type, PartialShape shape)
      : Variable(std::move(name), type, std::move(shape)) {}
  ~VariableRole() override;

  Lease TryLend() override;
  void Lend(std::function<void(Lease)> visit) override;

 private:
  struct Visit : Message {
    std::function<void(Lease)> visit;
    /// The visitor's, not that of whoever gives the variable back.
    AllocationPurpose purpose = AllocationPurpose::OfThisThread();
  };

  void GiveBack() override;
  /// Makes the visits that wait, one after the other; called with the token.
  void Serve();
  Lease MakeLease() { return Lease(RefPtr<Variable>::Share(this)); }

  Mailbox mailbox_;
  Message* waiting_ = nullptr;  ///< Taken from the mailbox, not yet visited; the token holder's.
  /// While `Serve` calls a visitor: has it given the lease back, and who goes on serving?
  enum class Visiting : uint8_t { kNo, kCalled, kGivenBack, kKept };
  std::atomic<Visiting> visiting_{Visiting::kNo};
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_STATE_VARIABLE_ROLE_H_
