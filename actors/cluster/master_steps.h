/// A master's steps over all tasks that take part.
#ifndef TROUPE_ACTORS_CLUSTER_MASTER_STEPS_H_
#define TROUPE_ACTORS_CLUSTER_MASTER_STEPS_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "actors/cluster/master_signatures.h"
#include "actors/cluster/master_state.h"
#include "actors/cluster/partial_runs.h"

namespace troupe {

/// A step waits until its signature has been built and registered, and then sends each of its tasks
/// one RunGraph. The first error that does not follow from another one is the step's. Pure: a part
/// of a master.
class MasterSteps {
 public:
  MasterSteps(MasterState* master, MasterSignatures* signatures)
      : master_(master), signatures_(signatures), partial_runs_(master, signatures, this) {}

  void Run(Responder from, cluster::RunStepRequest request);
  PartialRuns* partial_runs() { return &partial_runs_; }
  /// A task is lost.
  void OnTaskLost(PeerId task, const absl::Status& status);
  void FailIf(absl::FunctionRef<bool(const MasterStep&)> fails, const absl::Status& status);
  /// Steps have waited for their signature. OK: they look again.
  void Wake(const std::vector<uint64_t>& steps, const absl::Status& status);
  void Tick();
  size_t size() const { return steps_.size(); }
  /// The steps in which a task took part and that have failed lately.
  std::vector<uint64_t> FailedWith(PeerId task) const;

  // For partial runs.

  uint64_t Add(Responder from, const std::string& session,
               const std::shared_ptr<MasterSignature>& signature);
  /// Has the step wait if its signature is being built.
  void Begin(uint64_t id);
  /// nullptr: it is over.
  MasterStep* Find(uint64_t id);
  void Fail(uint64_t id, const absl::Status& status, bool derived = false);
  void Finish(uint64_t id);

 private:
  struct FailedStep {
    uint64_t id = 0;
    ClusterTime when = 0;
    std::vector<PeerId> tasks;
  };

  /// Runs the step when nothing is missing any more.
  void Advance(uint64_t id);
  absl::Status TryAdvance(uint64_t id);
  void SendRuns(uint64_t id, MasterStep* step);
  /// Has a task end its part of a step that has failed.
  void CleanUp(PeerId task, uint64_t step, const absl::Status& why);
  void OnRunDone(uint64_t id, PeerId task, size_t part, const absl::Status& status,
                 cluster::Message reply);

  MasterState* const master_;
  MasterSignatures* const signatures_;
  PartialRuns partial_runs_;
  std::map<uint64_t, MasterStep> steps_;
  std::deque<FailedStep> failed_steps_;  ///< The last ones.
  uint64_t next_step_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_MASTER_STEPS_H_
