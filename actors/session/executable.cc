#include "actors/session/executable.h"

#include <algorithm>

#include "devices/status_macros.h"
#include "graph/step_signature.h"

namespace troupe {

namespace {
// Enough executors to go on with at once are kept; a burst of concurrent steps leaves no more.
constexpr size_t kKept = 16;
}  // namespace

absl::StatusOr<Executable::Step*> Executable::Acquire() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (free_.empty()) {
    free_.reserve(kKept);  // `Release` needs no memory.
    steps_.push_back(std::make_shared<Step>(compiled_));
    free_.push_back(steps_.back().get());
  }
  Step* step = free_.back();
  free_.pop_back();
  step->running = true;
  return step;
}

void Executable::Release(Step* step) noexcept {
  std::shared_ptr<Step> surplus;
  if (step->resources.used()) step->resources.ResetAll();
  std::lock_guard<std::mutex> lock(mutex_);
  step->running = false;
  if (!closed_.ok()) return idle_.notify_all();
  step->cancellation.Reset();
  if (free_.size() < kKept) {
    free_.push_back(step);
  } else {
    for (auto& owned : steps_) {
      if (owned.get() != step) continue;
      surplus = std::move(owned);
      owned = std::move(steps_.back());
      steps_.pop_back();
      break;
    }
  }
}

void Executable::Close(const absl::Status& reason) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  closed_ = reason;
  // From now on no step comes or goes. One that ends meanwhile is not used again.
  for (const auto& step : steps_) {
    if (!step->running) continue;
    lock.unlock();
    step->cancellation.Cancel(reason);
    lock.lock();
  }
}

bool Executable::WaitIdle(DeadlineTimer* timer, absl::Duration patience) {
  return WaitWithin(timer, patience, &mutex_, &idle_, [this] {
    return std::none_of(steps_.begin(), steps_.end(),
                        [](const auto& step) { return step->running; });
  });
}

size_t Executable::num_resting() {
  std::lock_guard<std::mutex> lock(mutex_);
  return free_.size();
}

absl::Status Executable::CheckFeeds(absl::Span<const Tensor> feeds) const {
  if (feeds.size() != compiled_.feed_types.size()) {
    return InvalidArgument("expected ", compiled_.feed_types.size(), " feeds, got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const auto& [type, shape] = compiled_.feed_types[i];
    TROUPE_RETURN_IF_ERROR(CheckFedValue(compiled_.feed_names[i], type, shape, feeds[i]));
  }
  return absl::OkStatus();
}

}  // namespace troupe
