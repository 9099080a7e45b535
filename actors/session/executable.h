/// Compiled signatures and their steps.
#ifndef TROUPE_ACTORS_SESSION_EXECUTABLE_H_
#define TROUPE_ACTORS_SESSION_EXECUTABLE_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "actors/session/compile.h"
#include "actors/session/partitioned_step.h"
#include "actors/state/containers.h"
#include "devices/cpu/deadline_timer.h"
#include "kernels/cancellation.h"

namespace troupe {

/// A compiled signature with the executors of its steps, which are reused. Thread-safe.
class Executable {
 public:
  /// One running or resting step.
  struct Step {
    explicit Step(const CompiledStep& compiled)
        : executors(compiled.partitions, compiled.feed_types.size()) {}
    bool running = false;
    CancellationToken cancellation;
    Containers resources;  ///< The step's own.
    PartitionedStep executors;
  };

  explicit Executable(CompiledStep compiled) : compiled_(std::move(compiled)) {}

  const CompiledStep& compiled() const { return compiled_; }
  /// A step of its own for the caller; Cancelled if closed.
  absl::StatusOr<Step*> Acquire();
  void Release(Step* step) noexcept;
  /// Cancels all running steps; later `Acquire`s fail. Needs no memory.
  void Close(const absl::Status& reason) noexcept;
  /// Waits until no step runs; false if that lasts longer than `patience` by `timer`.
  bool WaitIdle(DeadlineTimer* timer, absl::Duration patience);
  /// Steps that are kept for later.
  size_t num_resting();
  /// Type and shape of each feed. InvalidArgument names the tensor, what was expected and what was
  /// got.
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;

 private:
  const CompiledStep compiled_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<std::shared_ptr<Step>> steps_;
  std::vector<Step*> free_;
  absl::Status closed_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_EXECUTABLE_H_
