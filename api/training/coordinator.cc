#include "api/training/coordinator.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

struct Coordinator::State {
  explicit State(CoordinatorOptions given) : options(std::move(given)) {}

  bool IsClean(const absl::Status& status) const {
    return status.ok() ||
           std::count(options.clean_stop.begin(), options.clean_stop.end(), status.code()) > 0;
  }
  /// Waits for `condition`; false: the time has passed before.
  template <typename Condition>
  bool WaitFor(std::unique_lock<std::mutex>* lock, absl::Duration timeout, Condition condition) {
    if (timeout >= absl::Hours(24 * 365)) {  // More than a clock may hold.
      changed.wait(*lock, condition);
      return true;
    }
    return changed.wait_for(*lock, absl::ToChronoNanoseconds(timeout), condition);
  }

  void RequestStop(absl::Status why) {
    std::vector<std::function<void()>> stopping;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (stop.exchange(true)) return;
      if (!IsClean(why)) error = std::move(why);
      stopping.swap(on_stop);
      changed.notify_all();
    }
    for (const auto& tell : stopping) tell();
  }

  const CoordinatorOptions options;
  std::atomic<bool> stop{false};  ///< Written with the lock.
  std::mutex mutex;
  std::condition_variable changed;
  absl::Status error;
  std::multiset<std::string> members;
  std::vector<std::function<void()>> on_stop;
  std::vector<std::thread> threads;
};

/// A member's place in the list.
struct Coordinator::Registration {
  Registration(std::shared_ptr<State> coordinator, std::string name)
      : state(std::move(coordinator)) {
    std::lock_guard<std::mutex> lock(state->mutex);
    at = state->members.insert(std::move(name));
  }
  ~Registration() {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->members.erase(at);
    state->changed.notify_all();
  }

  const std::shared_ptr<State> state;
  std::multiset<std::string>::iterator at;
};

bool Coordinator::Member::should_stop() const {
  return registration_ == nullptr || registration_->state->stop.load(std::memory_order_acquire);
}

void Coordinator::Member::RequestStop(absl::Status why) const {
  if (registration_ != nullptr) registration_->state->RequestStop(std::move(why));
}

Coordinator::Coordinator(CoordinatorOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}

Coordinator::~Coordinator() {
  RequestStop();
  std::unique_lock<std::mutex> lock(state_->mutex);
  while (!state_->threads.empty()) {  // One may start another.
    std::thread thread = std::move(state_->threads.back());
    state_->threads.pop_back();
    lock.unlock();
    thread.join();
    lock.lock();
  }
}

bool Coordinator::should_stop() const { return state_->stop.load(std::memory_order_acquire); }

void Coordinator::RequestStop(absl::Status why) { state_->RequestStop(std::move(why)); }

void Coordinator::ClearStop() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->stop.store(false);
  state_->error = absl::OkStatus();
}

bool Coordinator::WaitForStop(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  return state_->WaitFor(&lock, timeout, [this] { return state_->stop.load(); });
}

void Coordinator::OnStop(std::function<void()> stopping) {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->stop.load()) {
      state_->on_stop.push_back(std::move(stopping));
      return;
    }
  }
  stopping();
}

Coordinator::Member Coordinator::Register(std::string name) {
  Member member;
  member.registration_ = std::make_shared<Registration>(state_, std::move(name));
  return member;
}

void Coordinator::StartThread(std::string name, std::function<absl::Status()> body) {
  Member member = Register(name);
  const ScopedBlockSignals blocked;
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->threads.emplace_back(
      [this, name = std::move(name), body = std::move(body), member = std::move(member)]() mutable {
        const absl::Status status = CatchExceptions(body);
        if (!status.ok()) RequestStop(WithContext(StrCat(name, ": "), status));
        body = nullptr;
        member = Member();
      });
}

void Coordinator::StartLoop(std::string name, absl::Duration interval,
                            std::function<absl::Status()> body) {
  StartThread(std::move(name), [this, interval, body = std::move(body)]() -> absl::Status {
    do {
      TROUPE_RETURN_IF_ERROR(body());
    } while (!WaitForStop(interval));
    return absl::OkStatus();
  });
}

absl::Status Coordinator::Join(absl::Duration grace_period, bool ignore_stragglers) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->stop.load() || state_->members.empty(); });
  const bool ended =
      state_->WaitFor(&lock, grace_period, [this] { return state_->members.empty(); });
  if (!state_->error.ok() || ended || ignore_stragglers) return state_->error;
  return absl::DeadlineExceededError(
      StrCat("still running ", absl::FormatDuration(grace_period),
             " after they were asked to stop: ", absl::StrJoin(state_->members, ", ")));
}

std::vector<std::string> Coordinator::members() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return {state_->members.begin(), state_->members.end()};
}

}  // namespace troupe
