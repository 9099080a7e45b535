/// What `Session` forwards to: a session of this process, or the client's end of one of a cluster.
#ifndef TROUPE_API_INTERNAL_SESSION_INTERFACE_H_
#define TROUPE_API_INTERNAL_SESSION_INTERFACE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/state/resource_state.h"
#include "api/internal/running_queue_runner.h"
#include "api/session.h"
#include "graph/step_signature.h"
#include "kernels/kernel_state.h"

namespace troupe {

/// What a callable calls. Keeps what it needs of its session. Thread-safe.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  virtual absl::Status Run(absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                           const RunOptions& options, RunMetadata* metadata) = 0;
  virtual int num_nodes() const = 0;
};

/// The members do what `Session`'s of the same name say. Thread-safe.
class SessionInterface {
 public:
  virtual ~SessionInterface() = default;
  virtual absl::StatusOr<std::vector<Tensor>> Run(const NamedTensors& feeds,
                                                  const std::vector<std::string>& fetches,
                                                  const std::vector<std::string>& targets,
                                                  const RunOptions& options,
                                                  RunMetadata* metadata) = 0;
  virtual absl::StatusOr<std::vector<Tensor>> Run(const StepSignature& signature,
                                                  absl::Span<const Tensor> feeds,
                                                  const RunOptions& options,
                                                  RunMetadata* metadata) = 0;
  /// `signature` may be an error, which goes to `done`.
  virtual void RunAsync(const RunOptions& options, absl::StatusOr<StepSignature> signature,
                        std::vector<Tensor> feeds, RunDone done, RunMetadata* metadata) = 0;
  virtual absl::StatusOr<std::shared_ptr<PreparedCall>> Prepare(const StepSignature& signature) = 0;
  virtual absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                                      const std::vector<std::string>& fetches,
                                                      const std::vector<std::string>& targets,
                                                      const RunOptions& options) = 0;
  virtual absl::Status PartialRun(const std::string& handle, const NamedTensors& feeds,
                                  const std::vector<std::string>& fetches,
                                  std::vector<Tensor>* values, const RunOptions& options) = 0;
  /// The graph has grown.
  virtual absl::Status Extend() = 0;
  virtual absl::StatusOr<std::vector<DeviceAttributes>> ListDevices() = 0;
  virtual absl::Status Reset(const std::vector<std::string>& containers) = 0;
  virtual void PlaceAgain() = 0;
  virtual absl::StatusOr<KernelStates> SaveKernelStates() = 0;
  virtual absl::Status RestoreKernelStates(const KernelStates& states) = 0;
  /// What of these nodes' resources there is, each once, with its device; and what it holds.
  /// Unimplemented: that cannot be saved; Unavailable: a task that the session has used is lost.
  virtual absl::StatusOr<std::vector<KeptResource>> SaveResources(
      const std::vector<ResourcePlace>& wanted) = 0;
  virtual absl::StatusOr<std::vector<ResourcePlace>> FindResources(
      const std::vector<ResourcePlace>& wanted) = 0;
  /// See kept_resources.h; Unavailable: the device's task is lost.
  virtual absl::Status RestoreResource(KeptResource resource) = 0;
  virtual absl::Status Close() = 0;

  RunningQueueRunners* queue_runners() { return &queue_runners_; }

  /// The device of what was restored and has not been used yet, by node; empty: not known.
  std::string RestoredOn(const std::string& node) const {
    std::lock_guard<std::mutex> lock(restored_mutex_);
    const auto found = restored_on_.find(node);
    return found == restored_on_.end() ? "" : found->second;
  }
  void SetRestoredOn(const std::string& node, const std::string& device) {
    std::lock_guard<std::mutex> lock(restored_mutex_);
    restored_on_[node] = device;
  }

 private:
  RunningQueueRunners queue_runners_;
  mutable std::mutex restored_mutex_;
  std::map<std::string, std::string> restored_on_;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_SESSION_INTERFACE_H_
