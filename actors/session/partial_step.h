/// Steps of a local session that are fed and fetched in pieces.
#ifndef TROUPE_ACTORS_SESSION_PARTIAL_STEP_H_
#define TROUPE_ACTORS_SESSION_PARTIAL_STEP_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "actors/runtime.h"
#include "actors/session/compile.h"
#include "actors/session/partial_fetches.h"
#include "actors/session/partitioned_step.h"
#include "kernels/cancellation.h"

namespace troupe {

/// A step under way on the devices of this process, whose feeds are edges from the client and whose
/// fetches are edges to it, as in clusters. It begins with `Start` and runs whenever it is fed.
/// Thread-safe.
class PartialStep : public std::enable_shared_from_this<PartialStep> {
 public:
  /// `handle` is what errors call it. `graph` outlives it.
  static absl::StatusOr<std::shared_ptr<PartialStep>> Create(std::string handle, const Graph* graph,
                                                             const StepSignature& signature,
                                                             const CompileOptions& options,
                                                             std::shared_ptr<Runtime> runtime,
                                                             StatefulKernels* stateful);

  /// `context` is completed here; `session` owns what it names, and is held while nodes run. The
  /// step fails if it is not over when `timeout` has passed.
  void Start(StepContext context, absl::Duration timeout, std::shared_ptr<void> session);
  /// One piece at a time; the step fails when `timeout` has passed within it. InvalidArgument, and
  /// the step goes on: an unknown or repeated name, a wrong value, a fetch that depends on feeds
  /// that have not been given (what was fed, is). `over`: there will be no other piece.
  absl::Status Run(absl::Span<const std::pair<std::string, Tensor>> feeds,
                   absl::Span<const std::string> fetches, std::vector<Tensor>* values,
                   absl::Duration timeout, bool* over);
  void Cancel(const absl::Status& reason) noexcept;
  /// Waits until nothing runs; false if that lasts longer than `patience`.
  bool WaitOver(absl::Duration patience);

 private:
  class Exit;
  struct Feed {
    ElementType type;
    PartialShape shape;
    std::vector<uint64_t> edges;  ///< One to each device that takes it.
    bool given = false;
  };

  PartialStep(std::string handle, const Graph* graph, const StepSignature& signature,
              std::shared_ptr<Runtime> runtime);
  absl::Status Compile(const StepSignature& signature, const CompileOptions& options,
                       StatefulKernels* stateful);
  /// Looks the names of a piece up.
  absl::Status Find(absl::Span<const std::pair<std::string, Tensor>> feeds,
                    absl::Span<const std::string> fetches, std::vector<int>* fed,
                    std::vector<int>* wanted) const;
  void SetDeadline(ScopedDeadline* deadline, const char* what, absl::Duration timeout);
  /// Asks for fetches and waits for them.
  absl::Status Fetch(const std::vector<int>& fetches, std::vector<Tensor>* values);
  void Ran(const absl::Status& status) noexcept;

  const std::string handle_;
  const Graph* const graph_;
  const std::shared_ptr<Runtime> runtime_;
  std::vector<std::string> feed_names_, fetch_names_;
  std::vector<Feed> feeds_;
  std::vector<bool> fetched_;
  std::vector<std::vector<int>> needs_;  ///< Per fetch: feeds.
  std::unordered_map<uint64_t, int> fetch_edges_;
  PartialFetches fetches_;
  std::shared_ptr<Exit> rendezvous_;
  std::unique_ptr<PartitionedStep> step_;
  CancellationToken cancellation_;
  Containers resources_;
  ScopedDeadline deadline_;

  std::mutex piece_;  ///< One at a time.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  absl::Status status_;  ///< The first error.
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_PARTIAL_STEP_H_
