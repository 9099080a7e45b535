/// Sessions whose master is a task of a cluster. Not public: `Session` with a target uses it.
#ifndef TROUPE_API_INTERNAL_REMOTE_SESSION_H_
#define TROUPE_API_INTERNAL_REMOTE_SESSION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/session/step_signature.h"
#include "api/session.h"

namespace troupe {

/// The client's end of a session. The graph stays here; the master has a copy, which is extended by
/// what is new before each run. All functions return in bounded time when the master is gone:
/// Unavailable, naming it. Thread-safe.
class RemoteSession {
 public:
  /// `options.target` is "troupe://host:port". Waits for the master for the heartbeat timeout, and
  /// the master for its workers for one and a half of its own; errors name who is missing.
  static absl::StatusOr<std::unique_ptr<RemoteSession>> Create(std::shared_ptr<Graph> graph,
                                                               const SessionOptions& options);
  ~RemoteSession();

  /// `callable` empty: what is to be run is looked up by name. With `options.trace` the times and
  /// partitions of all tasks are added to `metadata`, on the axis of the time of day.
  absl::Status Run(const StepSignature& signature, const std::string& callable,
                   absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata = nullptr);
  /// `done` is called on a thread of the actor system.
  void RunAsync(const StepSignature& signature, absl::Span<const Tensor> feeds,
                std::function<void(absl::StatusOr<std::vector<Tensor>>)> done);
  /// Gives the handle of a callable, and how many nodes it executes.
  absl::Status MakeCallable(const StepSignature& signature, std::string* handle, int* num_nodes);
  /// The master forgets a callable.
  void ReleaseCallable(const std::string& handle);
  absl::StatusOr<std::vector<DeviceAttributes>> ListDevices();
  absl::Status Reset(const std::vector<std::string>& containers);
  /// Signatures that are made from now on are placed anew.
  void PlaceAgain();
  /// As `Session`'s.
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets);
  absl::Status PartialRun(const std::string& handle, const NamedTensors& feeds,
                          const std::vector<std::string>& fetches, std::vector<Tensor>* values);
  /// Sends what is new in the graph.
  absl::Status Extend();
  absl::Status Close();

 private:
  struct Impl;
  explicit RemoteSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_REMOTE_SESSION_H_
