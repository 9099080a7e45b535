/// The master's part of partial runs: steps whose feeds come, and whose fetches go, while they run.
#ifndef TROUPE_ACTORS_CLUSTER_PARTIAL_RUNS_H_
#define TROUPE_ACTORS_CLUSTER_PARTIAL_RUNS_H_

#include <cstdint>
#include <vector>

#include "actors/cluster/master_signatures.h"

namespace troupe {

class MasterSteps;

/// The pieces of partial runs, which are steps of the master. Pure: a part of a master.
class PartialRuns {
 public:
  PartialRuns(MasterState* master, MasterSignatures* signatures, MasterSteps* steps)
      : master_(master), signatures_(signatures), steps_(steps) {}

  void Setup(Responder from, cluster::PartialRunSetupRequest request);
  void AddPiece(Responder from, cluster::PartialRunRequest request);

  // Told by the master's steps.

  /// The step runs on all of its tasks.
  void OnBegun(MasterStep* step);
  /// A part of the step, or of a piece, is done: goes on to the next piece, or finishes the step.
  void FinishPiece(uint64_t step_id);
  void OnEnd(MasterStep* step);

 private:
  void NextPiece(uint64_t step_id);
  bool TakeNames(PartialRun* run, PartialRun::Piece* piece, std::vector<int>* fetches);
  void SendPiece(uint64_t step_id, MasterStep* step, const std::vector<int>& fetches);
  void OnPieceDone(uint64_t step_id, const absl::Status& status, cluster::Message reply,
                   const std::vector<int>& places);
  void Answer(PartialRun::Piece* piece, const absl::Status& status);

  MasterState* const master_;
  MasterSignatures* const signatures_;
  MasterSteps* const steps_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_PARTIAL_RUNS_H_
