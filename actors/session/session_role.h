/// The session: signatures compiled once, steps run many times.
#ifndef TROUPE_ACTORS_SESSION_SESSION_ROLE_H_
#define TROUPE_ACTORS_SESSION_SESSION_ROLE_H_

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "actors/executor/executor_role.h"
#include "actors/runtime.h"
#include "actors/session/compile.h"
#include "actors/session/functions.h"
#include "kernels/cancellation.h"

namespace troupe {

class RunMetadata;

/// A compiled signature with the executors of its steps, which are reused. Thread-safe.
class Executable {
 public:
  /// One running or resting step.
  struct Step {
    explicit Step(const CompiledStep& compiled);
    std::unique_ptr<ExecutorRole> executor;        ///< One plan, or
    std::unique_ptr<PartitionedStep> partitioned;  ///< several partitions.
    CancellationToken cancellation;
    Containers resources;  ///< The step's own.
    bool running = false;
  };

  explicit Executable(CompiledStep compiled) : compiled_(std::move(compiled)) {}

  const CompiledStep& compiled() const { return compiled_; }
  /// A step of its own for the caller; Cancelled if closed.
  absl::StatusOr<Step*> Acquire();
  void Release(Step* step) noexcept;
  /// Cancels all running steps; later `Acquire`s fail.
  void Close(const absl::Status& reason);
  /// Waits until no step runs; false at the deadline.
  bool WaitIdle(std::chrono::steady_clock::time_point deadline);
  /// Type and shape of each feed. InvalidArgument names the tensor, what was expected and what was
  /// got.
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;
  absl::Status CheckFeed(int feed, const Tensor& value) const;

 private:
  const CompiledStep compiled_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<Step*> free_;
  absl::Status closed_;
};

struct StepOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  bool trace = false;
};

/// A local session. Any number of threads may run steps at once; each step is played by the thread
/// that calls. Thread-safe.
class SessionRole {
 public:
  struct Options {
    CompileOptions compile;
    absl::Duration close_timeout = absl::Seconds(10);
  };

  SessionRole(std::shared_ptr<Graph> graph, std::shared_ptr<Runtime> runtime, Options options);
  ~SessionRole();

  Graph* graph() const { return graph_.get(); }
  Runtime* runtime() const { return runtime_.get(); }

  /// The executable of a signature, compiled the first time it is asked for. By name:
  absl::StatusOr<std::shared_ptr<Executable>> Prepare(
      absl::Span<const std::pair<std::string, Tensor>> feeds, absl::Span<const std::string> fetches,
      absl::Span<const std::string> targets);
  /// By tensors:
  absl::StatusOr<std::shared_ptr<Executable>> Prepare(const StepSignature& signature);

  /// Runs one step. `metadata` may be nullptr.
  absl::Status Run(Executable* executable, absl::Span<const Tensor> feeds,
                   absl::Span<Tensor> fetches, const StepOptions& options, RunMetadata* metadata);

  // Partial run: a step that is fed and fetched in pieces.
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets);
  absl::Status PartialRun(const std::string& handle,
                          absl::Span<const std::pair<std::string, Tensor>> feeds,
                          absl::Span<const std::string> fetches, std::vector<Tensor>* values);

  /// Signatures that are prepared from now on are placed anew.
  void PlaceAgain() { placement_round_.fetch_add(1, std::memory_order_relaxed); }

  /// Cancels what runs, and waits for it within bounds. DeadlineExceeded if something did not stop.
  /// Later calls of any kind give Cancelled.
  absl::Status Close();
  /// Empties containers on all devices; none named: the default container.
  absl::Status Reset(absl::Span<const std::string> containers);

 private:
  struct PartialStep;

  absl::StatusOr<std::shared_ptr<Executable>> CompileAndCache(
      const std::string& key, const absl::StatusOr<StepSignature>& signature);
  /// The step's own part of `Run`.
  absl::Status Play(const CompiledStep& compiled, Executable::Step* step,
                    absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                    RunMetadata* metadata);
  StepContext MakeStepContext(const CompiledStep& compiled, Executable::Step* step);
  absl::Status ClosedError() const;

  const std::shared_ptr<Graph> graph_;
  const std::shared_ptr<Runtime> runtime_;
  const Options options_;
  StatefulKernels stateful_kernels_;
  SessionFunctions functions_;
  std::atomic<int64_t> next_step_id_{1};
  std::atomic<bool> closed_{false};
  std::atomic<int64_t> placement_round_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Executable>> executables_;
  std::unordered_map<std::string, std::shared_ptr<PartialStep>> partial_steps_;
  int64_t next_partial_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_SESSION_ROLE_H_
