/// The session: signatures compiled once, steps run many times.
#ifndef TROUPE_ACTORS_SESSION_SESSION_ROLE_H_
#define TROUPE_ACTORS_SESSION_SESSION_ROLE_H_

#include <atomic>
#include <functional>
#include <list>
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
#include "actors/session/executable.h"
#include "actors/session/functions.h"
#include "kernels/cancellation.h"

namespace troupe {

class PartialStep;
class RunMetadata;

struct StepOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  bool trace = false;
};

/// A step that nobody waits for.
struct AsyncRun {
  absl::StatusOr<StepSignature> signature;  ///< An error goes to `done`.
  std::vector<Tensor> feeds;
  StepOptions options;
  RunMetadata* metadata = nullptr;  ///< Lives until `done` is called.
  std::function<void(absl::StatusOr<std::vector<Tensor>>)> done;
};

/// A local session. Any number of threads may run steps at once; each step is played by the thread
/// that calls `Run`, or by the pool's workers. Thread-safe. Asynchronous steps keep it alive.
class SessionRole : public std::enable_shared_from_this<SessionRole> {
 public:
  struct Options {
    CompileOptions compile;
    absl::Duration close_timeout = absl::Seconds(10);
    /// More compiled signatures than these, and those that have not been used for so long, are
    /// given up, the oldest use first, unless somebody holds them. What is stateful keeps its
    /// state.
    size_t max_signatures = 1024;
    absl::Duration signature_age = absl::Hours(1);
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

  /// Runs one step. `metadata` may be nullptr. `caller`: how the calling thread waits.
  absl::Status Run(Executable* executable, absl::Span<const Tensor> feeds,
                   absl::Span<Tensor> fetches, const StepOptions& options, RunMetadata* metadata,
                   ThreadParker* caller = ThreadParker::OfThisThread());
  /// Has one step run, and its `done` called, by the pool's workers. No thread waits with the step.
  /// If its deadline passes before a worker has begun it, the runtime's spare thread calls `done`.
  void RunAsync(AsyncRun run);

  // Partial run: a step that is fed and fetched in pieces. A timeout ends the whole step.
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets,
                                              absl::Duration timeout);
  absl::Status PartialRun(const std::string& handle,
                          absl::Span<const std::pair<std::string, Tensor>> feeds,
                          absl::Span<const std::string> fetches, std::vector<Tensor>* values,
                          absl::Duration timeout);

  /// Signatures that are prepared from now on are placed anew.
  void PlaceAgain() { placement_round_.fetch_add(1, std::memory_order_relaxed); }

  /// Of kernels that steps have run, functions' included. Positions of random generators may be
  /// those before or after a step that runs.
  KernelStates SaveKernelStates();
  /// Also for kernels that are made later. No step runs; what does not fit is logged.
  void RestoreKernelStates(const KernelStates& states);
  /// See kept_resources.h.
  const StatefulKernels& stateful_kernels() const { return stateful_kernels_; }

  /// Cancels what runs, and waits for it, and for the callbacks of asynchronous steps, within
  /// bounds. DeadlineExceeded if something did not stop. Such a callback does not wait. Later calls
  /// of any kind give Cancelled.
  absl::Status Close();
  /// Empties containers on all devices; none named: the default container.
  absl::Status Reset(absl::Span<const std::string> containers);

  /// Compiled signatures that are kept.
  size_t num_signatures();

 private:
  struct AsyncStep;
  class AsyncSteps;
  struct Signature {
    std::shared_ptr<Executable> executable;
    std::list<const std::string*>::iterator place;  ///< In `by_use_`.
    uint64_t used_ns = 0;                           ///< When it was last the newest.
  };

  /// nullptr if it has not been compiled.
  std::shared_ptr<Executable> FindSignature(const std::string& key);
  /// Makes a signature the newest. With the lock held.
  void Touch(Signature* signature);
  /// With the lock held; gives what is to be destroyed without it.
  std::vector<std::shared_ptr<Executable>> GiveUpSignatures();
  absl::StatusOr<std::shared_ptr<Executable>> CompileAndCache(
      std::string key, const absl::StatusOr<StepSignature>& signature);
  uint64_t NowNs() const { return runtime_->clock()->NowNs(); }
  absl::Duration Since(uint64_t ns) const { return absl::Nanoseconds(NowNs() - ns); }
  StepContext MakeStepContext(CancellationToken* cancellation, Containers* resources);
  absl::Status ClosedError() const;

  const std::shared_ptr<Graph> graph_;
  const std::shared_ptr<Runtime> runtime_;
  const Options options_;
  StatefulKernels stateful_kernels_;
  SessionFunctions functions_;
  const std::shared_ptr<AsyncSteps> async_steps_;
  std::atomic<int64_t> next_step_id_{1};
  std::atomic<bool> closed_{false};
  std::atomic<int64_t> placement_round_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, Signature> signatures_;
  std::list<const std::string*> by_use_;  ///< Keys, the newest use first.
  std::unordered_map<std::string, std::shared_ptr<PartialStep>> partial_steps_;
  std::atomic<int64_t> next_partial_{1};
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_SESSION_ROLE_H_
