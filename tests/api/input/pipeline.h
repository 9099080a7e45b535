// A graph with an input pipeline, and a session in which it runs.
#ifndef TROUPE_TESTS_API_INPUT_PIPELINE_H_
#define TROUPE_TESTS_API_INPUT_PIPELINE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/troupe.h"

namespace troupe {

/// The graph has been built in `s` when this is made. The runners run.
class Pipeline {
 public:
  explicit Pipeline(const Scope& s, int threads = 2) {
    Node* const init = LocalVariablesInitializer(s);
    EXPECT_TRUE(s.ok()) << s.status();
    if (!s.ok()) return;
    auto made = Session::Create(s.graph(), {.threads = threads});
    EXPECT_TRUE(made.ok()) << made.status();
    session_ = *std::move(made);
    EXPECT_TRUE(session_->RunTargets({init}).ok());
    EXPECT_TRUE(StartQueueRunners(*session_, coordinator_).ok());
  }
  ~Pipeline() {
    coordinator_.RequestStop();
    coordinator_.Join(absl::Seconds(60)).IgnoreError();
  }

  absl::StatusOr<std::vector<Tensor>> Take(absl::Span<const Output> outputs) {
    if (session_ == nullptr) return absl::OutOfRangeError("there is no graph");
    return session_->Run({}, outputs, {}, {.timeout = absl::Seconds(60)});
  }
  /// Elements of all batches until the end of the input.
  template <typename T>
  std::vector<T> Drain(const Output& output) {
    std::vector<T> all;
    while (true) {
      const auto values = Take({output});
      if (!values.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(values.status())) << values.status();
        return all;
      }
      const auto batch = (*values)[0].template unchecked_values<T>();
      all.insert(all.end(), batch.begin(), batch.end());
    }
  }
  Session& session() { return *session_; }
  Coordinator& coordinator() { return coordinator_; }

 private:
  std::unique_ptr<Session> session_;
  Coordinator coordinator_;
};

inline Tensor Strings(const std::vector<std::string>& strings) {
  return Tensor::Vector<std::string>(absl::MakeConstSpan(strings));
}

}  // namespace troupe

#endif  // TROUPE_TESTS_API_INPUT_PIPELINE_H_
