/// Steps on the devices of one process.
#ifndef TROUPE_ACTORS_SESSION_PARTITIONED_STEP_H_
#define TROUPE_ACTORS_SESSION_PARTITIONED_STEP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/executor/executor_role.h"
#include "actors/executor/plan.h"
#include "actors/executor/rendezvous.h"
#include "actors/runtime.h"
#include "devices/pollable.h"

namespace troupe {

/// What one device of this process does in a step.
struct LocalPartition {
  std::shared_ptr<const Plan> plan;
  DeviceRole* device = nullptr;  ///< nullptr: the one that a step's context names.
  std::vector<int> feeds;        ///< Per feed of the plan: which feed of the step it is.
  std::vector<int> fetches;      ///< Per fetch of the plan: which fetch of the step it is.
};

/// Has a step's kernels run on a device.
inline void SetDevice(DeviceRole* role, StepContext* step) {
  step->device = role->device.get();
  step->stream = step->device->stream();
  step->resources = &role->containers;
}

/// The executors of one step's partitions, which exchange values while they run; a partition that
/// has nobody to exchange any with runs without that. One step at a time; reused from step to step.
class PartitionedStep final : StepCompletion {
 public:
  /// `num_feeds`: of the step.
  PartitionedStep(std::vector<LocalPartition> partitions, size_t num_feeds);
  ~PartitionedStep() override;

  /// Runs all partitions: this thread plays them in turn, and helps the pool while others do;
  /// `caller` is how it waits. `step` names what is common (device, stream and resources are each
  /// partition's own). The first error, whose partition cancels the step's token, is the result.
  /// With `traces` every node's times are recorded, per partition.
  absl::Status Run(StepContext step, absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                   std::vector<std::vector<NodeTrace>>* traces = nullptr,
                   ThreadParker* caller = ThreadParker::OfThisThread()) {
    if (alone_ == nullptr) return RunTogether(step, feeds, fetches, traces, caller);
    if (device_ != nullptr) SetDevice(device_, &step);
    return alone_->Run(step, feeds, fetches, OnlyTrace(traces), caller);
  }
  /// The same without waiting: `done` is called once, from any thread, after which the object may
  /// be used again; it must not throw. `fetches` and `traces` live until then. Feeds may be moved
  /// from. `rendezvous`, if there is one, is new and outlives the step. If this throws, nothing has
  /// begun.
  void RunAsync(StepContext step, absl::Span<Tensor> feeds, absl::Span<Tensor> fetches,
                std::function<void(absl::Status)> done,
                std::vector<std::vector<NodeTrace>>* traces = nullptr,
                std::shared_ptr<Rendezvous> rendezvous = nullptr);

 private:
  class Partition;

  static std::vector<NodeTrace>* OnlyTrace(std::vector<std::vector<NodeTrace>>* traces) {
    return traces == nullptr ? nullptr : &traces->emplace_back();
  }
  absl::Status RunTogether(const StepContext& step, absl::Span<const Tensor> feeds,
                           absl::Span<Tensor> fetches, std::vector<std::vector<NodeTrace>>* traces,
                           ThreadParker* caller);
  /// The partition that is alone is over.
  void Over() noexcept override;
  void Start(const StepContext& step, std::shared_ptr<Rendezvous> rendezvous,
             absl::Span<const Tensor> feeds, std::vector<std::vector<NodeTrace>>* traces);
  /// One partition less to wait for; the last one ends the step.
  void Leave() noexcept;
  absl::Status Finish();
  /// Has the thread that waits in Run play; false: none does.
  bool HandToCaller(PoolTask* task) noexcept;
  /// On that thread: false if there was nothing to play.
  bool PlayHanded();

  // The partition that is alone, whose feeds and fetches are the step's,
  std::unique_ptr<ExecutorRole> alone_;
  DeviceRole* device_ = nullptr;
  // or all of them.
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::vector<Pollable*> polled_;  ///< Those of their devices that can be polled.
  std::atomic<int> running_{0};
  CancellationToken* cancellation_ = nullptr;
  uint64_t callback_ = 0;
  bool registered_ = false;
  absl::Span<Tensor> fetches_;
  ThreadParker* caller_ = nullptr;  ///< Who waits in Run.
  std::mutex mutex_;
  std::vector<PoolTask*> handed_;  ///< What that thread is to play.
  std::atomic<size_t> num_handed_{0};
  std::function<void(absl::Status)> done_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_PARTITIONED_STEP_H_
