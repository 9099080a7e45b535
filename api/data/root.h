/// What a `DatasetIterator` is: the last actor, which answers those who ask for elements.
#ifndef TROUPE_API_DATA_ROOT_H_
#define TROUPE_API_DATA_ROOT_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/data/stage.h"
#include "api/dataset.h"

namespace troupe::data {

struct OwnFlow {
  Flow flow_of_root;
};

/// Requests wait in a line. Who asks plays it if nobody does; later it is played by a thread that
/// waits for an element, or else by one of the flow's. Thread-safe.
class Root final : private OwnFlow, public Activity {
 public:
  static absl::StatusOr<std::shared_ptr<Root>> Make(const Plan& plan,
                                                    const DatasetIteratorOptions& options);
  /// Stops it, and destroys it as soon as nobody plays.
  static void End(std::shared_ptr<Root> root);

  absl::StatusOr<bool> Next(Tensors* element);
  /// The result identifies the request.
  uint64_t NextAsync(DatasetIterator::Done done);
  /// True: `done` is not called any more, and no element is lost.
  bool Forget(uint64_t request);
  void Cancel();
  /// `Cancel`, and waits for those who play; then the stages go. Not for who plays.
  void Finish();
  absl::StatusOr<std::string> Save();
  absl::Status Restore(std::string_view position);

  std::vector<StageStats> Stats();
  std::string StatsText();
  void AddStatsTo(RunMetadata* metadata);

 private:
  struct Request {
    uint64_t id = 0;
    DatasetIterator::Done done;  ///< Null: somebody waits.
    absl::StatusOr<bool> more = false;
    Element element;
    bool over = false;
  };

  explicit Root(const DatasetIteratorOptions& options);

  void Play() noexcept override;
  void Schedule() override;
  absl::StatusOr<Progress> PullOne(Block* out);
  /// Answers the first request; `lock` is held, and not held while a callback runs.
  void Answer(std::unique_lock<std::mutex>* lock, absl::StatusOr<bool> more, Element element);
  void LogSometimes();
  bool PlaysHere() const;

  const DatasetIteratorOptions options_;
  const uint64_t begin_ns_;
  const uint64_t log_every_ns_;
  uint64_t next_log_ns_;

  std::unique_ptr<Stage> stage_;  ///< Of who plays, or has paused the flow; null: finished.
  bool started_ = false;
  std::mutex positions_;  ///< One is saved or restored at a time.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Request>> line_;
  Block kept_;         ///< What was pulled for a request that was forgotten.
  absl::Status over_;  ///< Why there is nothing more: cancelled, or its position is no good.
  uint64_t last_id_ = 0;
  int waiting_ = 0;           ///< Threads in `Next`.
  bool play_wanted_ = false;  ///< One of them shall play.
};

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_ROOT_H_
