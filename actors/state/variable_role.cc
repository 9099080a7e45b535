#include "actors/state/variable_role.h"

#include <memory>
#include <utility>

namespace troupe {

VariableRole::~VariableRole() {
  // A lease holds a reference, so nobody visits; what waits was sent by nobody who is still there.
  for (Message* m = waiting_; m != nullptr;) {
    Message* next = m->next;
    delete static_cast<Visit*>(m);
    m = next;
  }
}

Variable::Lease VariableRole::TryLend() {
  if (!mailbox_.TryAcquire()) return Lease();
  return MakeLease();
}

void VariableRole::Lend(std::function<void(Lease)> visit) {
  if (mailbox_.TryAcquire()) {
    visit(MakeLease());
    return;
  }
  auto* message = new Visit;  // Nothing is done before this, which may throw.
  message->visit = std::move(visit);
  if (mailbox_.Send(message)) {  // It has become idle in between.
    message->next = nullptr;
    waiting_ = message;
    Serve();
  }
}

void VariableRole::GiveBack() {
  // Given back from inside a visit that `Serve` is making: its loop goes on, so that a long queue
  // does not become a deep stack.
  Visiting state = Visiting::kCalled;
  if (visiting_.compare_exchange_strong(state, Visiting::kGivenBack, std::memory_order_acq_rel)) {
    return;
  }
  visiting_.store(Visiting::kNo, std::memory_order_relaxed);
  if (waiting_ == nullptr && mailbox_.TryRelease()) return;
  Serve();
}

void VariableRole::Serve() {
  RefPtr<Variable> self = RefPtr<Variable>::Share(this);
  while (true) {
    if (waiting_ == nullptr) {
      waiting_ = mailbox_.TakeAll();
      if (waiting_ == nullptr) {
        if (mailbox_.TryRelease()) return;
        continue;
      }
    }
    std::unique_ptr<Visit> visit(static_cast<Visit*>(waiting_));
    waiting_ = visit->next;
    visiting_.store(Visiting::kCalled, std::memory_order_relaxed);
    {
      const ScopedAllocationPurpose of_visitor(visit->purpose);
      visit->visit(MakeLease());
    }
    // The visitor has given the lease back, or keeps it for longer: then whoever gives it back
    // serves.
    Visiting state = Visiting::kCalled;
    if (visiting_.compare_exchange_strong(state, Visiting::kKept, std::memory_order_acq_rel)) {
      return;
    }
    visiting_.store(Visiting::kNo, std::memory_order_relaxed);
  }
}

}  // namespace troupe
