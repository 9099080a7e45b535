#include "devices/cpu/deadline_timer.h"

#include <algorithm>
#include <utility>

#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"

namespace troupe {

DeadlineTimer::~DeadlineTimer() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

uint64_t DeadlineTimer::Add(absl::Duration timeout, std::function<void()> expired) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);  // The clock has an end, too.
  const auto when = Clock::now() + absl::ToChronoNanoseconds(std::min(timeout, kLongest));
  std::lock_guard<std::mutex> lock(mutex_);
  if (!thread_.joinable()) {
    const ScopedBlockSignals blocked;
    thread_ = std::thread([this] { Loop(); });
  }
  const uint64_t id = next_id_++;
  // Whatever cannot be entered twice is not entered at all: its caller may be gone by then.
  by_id_.emplace(id, when);
  try {
    auto it = deadlines_.emplace(std::make_pair(when, id), std::move(expired)).first;
    if (it == deadlines_.begin()) changed_.notify_all();
  } catch (...) {
    by_id_.erase(id);
    throw;
  }
  return id;
}

void DeadlineTimer::Remove(uint64_t id) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (auto it = by_id_.find(id); it != by_id_.end()) {
    deadlines_.erase({it->second, id});
    by_id_.erase(it);
    return;
  }
  if (std::this_thread::get_id() == thread_.get_id()) return;  // It is `expired` that calls.
  changed_.wait(lock, [&] { return running_ != id; });
}

void DeadlineTimer::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (deadlines_.empty()) {
      changed_.wait(lock);
      continue;
    }
    auto first = deadlines_.begin();
    // A copy: the entry may be removed meanwhile, and the wait looks at its deadline afterwards.
    const Clock::time_point deadline = first->first.first;
    if (deadline > Clock::now()) {
      changed_.wait_until(lock, deadline);
      continue;
    }
    running_ = first->first.second;
    std::function<void()> expired = std::move(first->second);
    by_id_.erase(running_);
    deadlines_.erase(first);
    lock.unlock();
    expired();
    lock.lock();
    running_ = 0;
    changed_.notify_all();
  }
}

void ScopedDeadline::Set(DeadlineTimer* timer, absl::Duration timeout,
                         std::function<void()> expired) {
  Clear();
  if (timeout == absl::InfiniteDuration()) return;
  if (timeout <= absl::ZeroDuration()) return expired();
  id_ = timer->Add(timeout, std::move(expired));
  timer_ = timer;  // Not if `Add` has thrown: then there is nothing to clear.
}

void ScopedDeadline::Clear() {
  if (timer_ != nullptr) timer_->Remove(id_);
  timer_ = nullptr;
}

bool WaitWithin(DeadlineTimer* timer, absl::Duration patience, std::mutex* mutex,
                std::condition_variable* changed, absl::FunctionRef<bool()> over) {
  {
    std::lock_guard<std::mutex> lock(*mutex);
    if (over()) return true;
  }
  bool late = false;
  ScopedDeadline deadline;  // Is cleared without the lock, which `expired` takes.
  KeepGoing([&] {
    deadline.Set(timer, patience, [&] {
      std::lock_guard<std::mutex> lock(*mutex);
      late = true;
      changed->notify_all();
    });
  });
  std::unique_lock<std::mutex> lock(*mutex);
  changed->wait(lock, [&] { return late || over(); });
  return over();
}

}  // namespace troupe
