/// Queue runners at work in a session.
#ifndef TROUPE_API_INTERNAL_RUNNING_QUEUE_RUNNER_H_
#define TROUPE_API_INTERNAL_RUNNING_QUEUE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe {

/// One of them. Thread-safe.
class RunningQueueRunner {
 public:
  virtual ~RunningQueueRunner() = default;
  /// The queue's node.
  virtual const std::string& queue() const = 0;
  /// Begins no further step until `Release`; those that are under way go on.
  virtual void Hold() = 0;
  virtual void Release() = 0;
  /// Steps that are under way.
  virtual int64_t num_steps() const = 0;
};

/// Those of a session that have not ended. Thread-safe.
class RunningQueueRunners {
 public:
  void Add(const std::shared_ptr<RunningQueueRunner>& runner) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(runners_, [](const auto& known) { return known.expired(); });
    runners_.push_back(runner);
  }
  std::vector<std::shared_ptr<RunningQueueRunner>> All() const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<RunningQueueRunner>> all;
    for (const auto& known : runners_) {
      if (auto runner = known.lock()) all.push_back(std::move(runner));
    }
    return all;
  }

  /// A runner ends with an error, and its queue will be closed, although its input has not ended.
  void Fail(const absl::Status& why) {
    std::lock_guard<std::mutex> lock(mutex_);
    failure_.Update(why);
  }
  /// The first such error.
  absl::Status failure() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  absl::Status failure_;
  std::vector<std::weak_ptr<RunningQueueRunner>> runners_;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_RUNNING_QUEUE_RUNNER_H_
