/// What applications have in the processes of a simulated cluster, besides the cluster's own.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_APPLICATION_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_APPLICATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "net/links.h"

namespace troupe {

class ClusterSimulator;
class SimulatedNode;

/// In one life of a process. It ends with that.
class SimulatedApplication {
 public:
  virtual ~SimulatedApplication() = default;
  virtual FrameSink* frame_sink() = 0;
  /// Has something of the process happen.
  virtual void Play(absl::FunctionRef<void()> event) = 0;
  /// At the end, when nothing has happened for some time.
  virtual void CheckNothingLeft() = 0;
};

/// In all of them.
class SimulatedApplications {
 public:
  virtual ~SimulatedApplications() = default;
  /// Before anything else.
  virtual void Init(ClusterSimulator* simulator) = 0;
  virtual std::unique_ptr<SimulatedApplication> Boot(SimulatedNode* node) = 0;
  /// Processes that are no tasks, and troubles of their own.
  virtual void Start() = 0;
  /// No more troubles.
  virtual void Heal() = 0;
  /// What does not work since, if anything.
  virtual std::string Missing() = 0;
  /// Nothing new is begun; then, after some time, nothing may be left.
  virtual void Stop() = 0;
  virtual void CheckNothingLeft() = 0;

  // Steps that ask and tell actors: the numbers that they are fed, and what they fetch.
  virtual int64_t BeginAsk() = 0;
  virtual void EndAsk(int64_t number, const absl::StatusOr<absl::Span<const int64_t>>& answer) = 0;
  virtual int64_t BeginTell() = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_APPLICATION_H_
