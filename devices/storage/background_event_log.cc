#include "devices/storage/background_event_log.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/event_log.h"
#include "graph/protos/summary.pb.h"

namespace troupe {

/// Events are counted from the first on: `added` of them have been handed over, `written` have
/// reached the file, and `flushed` a reader.
struct BackgroundEventLog::State {
  State(std::unique_ptr<EventLog> event_log, const BackgroundEventLogOptions& log_options)
      : log(std::move(event_log)), options(log_options) {}

  void Run() noexcept;
  absl::Status WriteBatch(const std::vector<Event>& batch, bool flush);
  bool FlushIsDue() const {
    return flush_wanted > flushed || closing ||
           (written > flushed && absl::Now() - oldest_unflushed >= options.flush_interval);
  }
  absl::Status Told(absl::Status result) {
    told |= !result.ok();
    return result;
  }
  absl::Status Closed() const {
    return absl::FailedPreconditionError(StrCat(log->path(), " has been closed"));
  }
  /// Waits until `done`, or for `patience`.
  template <typename Done>
  absl::Status Await(std::unique_lock<std::mutex>* lock, const char* what, Done done) {
    const auto patience = absl::ToChronoMilliseconds(options.patience);
    if (changed.wait_for(*lock, patience, done)) return Told(status);
    return absl::DeadlineExceededError(StrCat(log->path(), ": ", what, " takes longer than ",
                                              absl::FormatDuration(options.patience)));
  }

  const std::unique_ptr<EventLog> log;  ///< The thread's.
  const BackgroundEventLogOptions options;

  std::mutex mutex;
  std::condition_variable changed;  ///< For all who wait.
  std::vector<Event> queue;
  int64_t added = 0, written = 0, flushed = 0, flush_wanted = 0;
  absl::Time oldest_unflushed;
  bool closing = false, ended = false;
  absl::Status status;  ///< The file's first error.
  bool told = false;    ///< Somebody has been given it.
};

absl::Status BackgroundEventLog::State::WriteBatch(const std::vector<Event>& batch, bool flush) {
  return CatchExceptions([&]() -> absl::Status {
    for (const Event& event : batch) TROUPE_RETURN_IF_ERROR(log->Write(event));
    return flush ? log->Flush() : absl::OkStatus();
  });
}

void BackgroundEventLog::State::Run() noexcept {
  std::unique_lock<std::mutex> lock(mutex);
  while (status.ok()) {
    const auto due = [this] { return !queue.empty() || FlushIsDue(); };
    if (!due()) {
      const absl::Duration wait = written > flushed
                                      ? oldest_unflushed + options.flush_interval - absl::Now()
                                      : absl::Hours(1);
      changed.wait_for(lock, absl::ToChronoMilliseconds(wait) + std::chrono::milliseconds(1));
      continue;
    }
    std::vector<Event> batch;
    batch.swap(queue);
    const bool flush = FlushIsDue();
    const bool last = closing;
    changed.notify_all();  // There is room.
    lock.unlock();
    absl::Status done = WriteBatch(batch, flush);
    if (last && done.ok()) done = CatchExceptions([this] { return log->Close(); });
    lock.lock();
    if (written == flushed && !batch.empty()) oldest_unflushed = absl::Now();
    written += static_cast<int64_t>(batch.size());
    if (flush) flushed = written;
    status = std::move(done);
    if (last) break;
    changed.notify_all();
  }
  queue.clear();
  ended = true;
  changed.notify_all();
}

absl::StatusOr<std::unique_ptr<BackgroundEventLog>> BackgroundEventLog::Create(
    const std::string& directory, const BackgroundEventLogOptions& options) {
  if (options.max_queue < 1) {
    return InvalidArgument("a queue of events must have room for 1, not ", options.max_queue);
  }
  EventLogOptions inner{.max_pending = std::numeric_limits<int64_t>::max(),
                        .flush_interval = absl::InfiniteDuration(),
                        .suffix = options.suffix};
  TROUPE_ASSIGN_OR_RETURN(auto log, EventLog::Create(directory, inner));
  return CatchExceptions([&]() -> absl::StatusOr<std::unique_ptr<BackgroundEventLog>> {
    auto state = std::make_shared<State>(std::move(log), options);
    const ScopedBlockSignals blocked;
    std::thread([state] { state->Run(); }).detach();  // A disk that hangs holds up nobody.
    return std::unique_ptr<BackgroundEventLog>(new BackgroundEventLog(std::move(state)));
  });
}

BackgroundEventLog::~BackgroundEventLog() {
  bool told;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    told = state_->told;
  }
  const absl::Status status = Close();
  if (!status.ok() && !told) {
    WriteLog(LogLevel::kError, "", {"summaries lost"}, std::string(status.message()));
  }
}

absl::Status BackgroundEventLog::Add(Event event) {
  State& state = *state_;
  std::unique_lock<std::mutex> lock(state.mutex);
  if (state.closing) return state.Closed();
  TROUPE_RETURN_IF_ERROR(state.Await(&lock, "an event", [&] {
    return !state.status.ok() || static_cast<int64_t>(state.queue.size()) < state.options.max_queue;
  }));
  if (state.closing) return state.Closed();  // While it waited.
  state.queue.push_back(std::move(event));
  ++state.added;
  state.changed.notify_all();
  return absl::OkStatus();
}

absl::Status BackgroundEventLog::Flush() {
  State& state = *state_;
  std::unique_lock<std::mutex> lock(state.mutex);
  if (state.closing) return state.Told(state.status);
  const int64_t wanted = state.added;
  state.flush_wanted = std::max(state.flush_wanted, wanted);
  state.changed.notify_all();
  return state.Await(&lock, "a flush",
                     [&] { return !state.status.ok() || state.flushed >= wanted; });
}

absl::Status BackgroundEventLog::Close() {
  State& state = *state_;
  std::unique_lock<std::mutex> lock(state.mutex);
  state.closing = true;
  state.changed.notify_all();
  return state.Await(&lock, "closing it", [&] { return state.ended; });
}

absl::Status BackgroundEventLog::status() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->status;
}

const std::string& BackgroundEventLog::path() const { return state_->log->path(); }

}  // namespace troupe
