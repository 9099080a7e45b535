// What orders CAF's actors, for the thread sanitizer: libcaf_core is built without it, and passes
// messages and actors on by atomics. Part of libtroupe.so in that build only; these definitions
// take the place of those of CAF 0.17.6.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <caf/actor_control_block.hpp>
#include <caf/ref_counted.hpp>

namespace caf {

// As in CAF: compiled here, the counting is visible.

void ref_counted::deref() const noexcept {
  if (unique()) {
    request_deletion(false);
  } else if (rc_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    request_deletion(true);
  }
}

void intrusive_ptr_release_weak(actor_control_block* x) {
  if (x->weak_refs == 1 || x->weak_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    x->block_dtor(x);
  }
}

void intrusive_ptr_release(actor_control_block* x) {
  if (x->strong_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    x->data_dtor(x->get());
    intrusive_ptr_release_weak(x);
  }
}

}  // namespace caf

// For the rest CAF's own definitions are called, which have these names. Sending to an actor
// happens before what the actor does with messages from then on; one message of an actor happens
// before the next one. `self` is the actor.
#define SCHEDULED_ACTOR "_ZN3caf15scheduled_actor"
#define BLOCKING_ACTOR "_ZN3caf14blocking_actor"
#define ENQUEUE                                                      \
  "7enqueueESt10unique_ptrINS_15mailbox_elementENS_6detail8disposer" \
  "EEPNS_14execution_unitE"
#define LAUNCH "6launchEPNS_14execution_unitEbb"
#define RESUME "_ZThn160_N3caf15scheduled_actor6resumeEPNS_14execution_unitEm"
#define RESUMABLE_AT 160
#define AWAIT_DATA "10await_dataEv"
#define CLEANUP "7cleanupEONS_5errorEPNS_14execution_unitE"
#define REACTIVATE "10reactivateERNS_15mailbox_elementE"

namespace {

template <typename Function>
Function* CafOwn(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// A std::unique_ptr is passed by its address.
void Enqueue(void* self, void* message, void* unit) asm(SCHEDULED_ACTOR ENQUEUE);
void Enqueue(void* self, void* message, void* unit) {
  static const auto own = CafOwn<void(void*, void*, void*)>(SCHEDULED_ACTOR ENQUEUE);
  __tsan_release(self);
  own(self, message, unit);
}

// An actor is made by one thread and begins on another.
void Launch(void* self, void* unit, bool lazy, bool hide) asm(SCHEDULED_ACTOR LAUNCH);
void Launch(void* self, void* unit, bool lazy, bool hide) {
  static const auto own = CafOwn<void(void*, void*, bool, bool)>(SCHEDULED_ACTOR LAUNCH);
  __tsan_release(self);
  own(self, unit, lazy, hide);
}

// Called as a `resumable`, which lies within the actor.
int Resume(void* self, void* unit, size_t most) asm(RESUME);
int Resume(void* self, void* unit, size_t most) {
  static const auto own = CafOwn<int(void*, void*, size_t)>(RESUME);
  void* const actor = static_cast<char*>(self) - RESUMABLE_AT;
  __tsan_acquire(actor);
  const int result = own(self, unit, most);
  __tsan_release(actor);
  return result;
}

void EnqueueBlocking(void* self, void* message, void* unit) asm(BLOCKING_ACTOR ENQUEUE);
void EnqueueBlocking(void* self, void* message, void* unit) {
  static const auto own = CafOwn<void(void*, void*, void*)>(BLOCKING_ACTOR ENQUEUE);
  __tsan_release(self);
  own(self, message, unit);
}

void AwaitData(void* self) asm(BLOCKING_ACTOR AWAIT_DATA);
void AwaitData(void* self) {
  static const auto own = CafOwn<void(void*)>(BLOCKING_ACTOR AWAIT_DATA);
  own(self);
  __tsan_acquire(self);
}

int Reactivate(void* self, void* message) asm(SCHEDULED_ACTOR REACTIVATE);
int Reactivate(void* self, void* message) {
  static const auto own = CafOwn<int(void*, void*)>(SCHEDULED_ACTOR REACTIVATE);
  __tsan_acquire(self);
  const int result = own(self, message);
  __tsan_release(self);
  return result;
}

// Drops what is in the mailbox.
bool Cleanup(void* self, void* reason, void* unit) asm(SCHEDULED_ACTOR CLEANUP);
bool Cleanup(void* self, void* reason, void* unit) {
  static const auto own = CafOwn<bool(void*, void*, void*)>(SCHEDULED_ACTOR CLEANUP);
  __tsan_acquire(self);
  return own(self, reason, unit);
}
