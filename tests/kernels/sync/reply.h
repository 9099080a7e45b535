/// What calls at mutexes, barriers, staging areas and tables give.
#ifndef TROUPE_TESTS_KERNELS_SYNC_REPLY_H_
#define TROUPE_TESTS_KERNELS_SYNC_REPLY_H_

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "kernels/sync/synchronizer_options.h"

namespace troupe::testing {

/// What a call was told, once; lives until then. Thread-safe.
class Reply {
 public:
  WaitingResource::Done done() {
    return [this](absl::StatusOr<Tuple> result) {
      std::lock_guard<std::mutex> lock(mutex_);
      EXPECT_FALSE(result_.has_value()) << "done twice";
      result_ = std::move(result);
    };
  }
  bool over() {
    std::lock_guard<std::mutex> lock(mutex_);
    return result_.has_value();
  }
  absl::Status status() {
    std::lock_guard<std::mutex> lock(mutex_);
    return result_.has_value() ? result_->status() : absl::UnknownError("not over");
  }
  absl::StatusCode code() { return status().code(); }
  /// The status once the call is over: another thread may be serving it.
  absl::Status Wait() {
    while (!over()) std::this_thread::yield();
    return status();
  }
  Tuple& tuple() { return result_->value(); }
  /// Lets go of what was given.
  void Drop() { result_ = Tuple(); }

 private:
  std::mutex mutex_;
  std::optional<absl::StatusOr<Tuple>> result_;
};

/// A machine behind a mailbox, in no container.
template <typename Machine, typename Options>
RefPtr<Machine> MakeMachine(Options options) {
  absl::StatusOr<RefPtr<Resource>> made = MakeSynchronizer("it", {std::move(options)});
  EXPECT_TRUE(made.ok()) << made.status();
  return RefPtr<Machine>::Share(static_cast<Machine*>(made->get()));
}

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_SYNC_REPLY_H_
