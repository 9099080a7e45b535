/// Sessions whose master is a task of a cluster.
#ifndef TROUPE_API_INTERNAL_REMOTE_SESSION_H_
#define TROUPE_API_INTERNAL_REMOTE_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "api/internal/session_interface.h"
#include "graph/step_signature.h"

namespace troupe {

/// The client's end of a session. The graph stays here; the master has a copy, which is extended by
/// what is new before each run. All functions return in bounded time when the master is gone:
/// Unavailable, naming it. Thread-safe.
class RemoteSession final : public SessionInterface,
                            public std::enable_shared_from_this<RemoteSession> {
 public:
  /// `options.target` is "troupe://host:port". Waits for the master (`MasterLink::Create`), and the
  /// master for its workers for one and a half of its heartbeat timeout, both for
  /// `options.creation_timeout` at most; errors name who is missing.
  static absl::StatusOr<std::shared_ptr<RemoteSession>> Create(std::shared_ptr<Graph> graph,
                                                               const SessionOptions& options);
  ~RemoteSession() override;

  absl::StatusOr<std::vector<Tensor>> Run(const NamedTensors& feeds,
                                          const std::vector<std::string>& fetches,
                                          const std::vector<std::string>& targets,
                                          const RunOptions& options,
                                          RunMetadata* metadata) override;
  /// With `options.trace` the times and partitions of all tasks are added to `metadata`, on the
  /// axis of the time of day.
  absl::StatusOr<std::vector<Tensor>> Run(const StepSignature& signature,
                                          absl::Span<const Tensor> feeds, const RunOptions& options,
                                          RunMetadata* metadata) override;
  void RunAsync(const RunOptions& options, absl::StatusOr<StepSignature> signature,
                std::vector<Tensor> feeds, RunDone done, RunMetadata* metadata) override;
  absl::StatusOr<std::shared_ptr<PreparedCall>> Prepare(const StepSignature& signature) override;
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets,
                                              const RunOptions& options) override;
  absl::Status PartialRun(const std::string& handle, const NamedTensors& feeds,
                          const std::vector<std::string>& fetches, std::vector<Tensor>* values,
                          const RunOptions& options) override;
  /// Sends what is new in the graph.
  absl::Status Extend() override;
  absl::StatusOr<std::vector<DeviceAttributes>> ListDevices() override;
  absl::Status Reset(const std::vector<std::string>& containers) override;
  void PlaceAgain() override;
  absl::StatusOr<KernelStates> SaveKernelStates() override;
  absl::Status RestoreKernelStates(const KernelStates& states) override;
  absl::StatusOr<std::vector<KeptResource>> SaveResources(
      const std::vector<ResourcePlace>& wanted) override;
  absl::StatusOr<std::vector<ResourcePlace>> FindResources(
      const std::vector<ResourcePlace>& wanted) override;
  absl::Status RestoreResource(KeptResource resource) override;
  absl::Status Close() override;

 private:
  class Call;
  struct Impl;
  explicit RemoteSession(std::unique_ptr<Impl> impl);
  /// `callable` empty: what is to be run is looked up by name.
  absl::Status Run(const StepSignature& signature, const std::string& callable,
                   absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_REMOTE_SESSION_H_
