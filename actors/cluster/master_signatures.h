/// A master's signatures: built once, registered with their tasks, given up when nobody uses them.
#ifndef TROUPE_ACTORS_CLUSTER_MASTER_SIGNATURES_H_
#define TROUPE_ACTORS_CLUSTER_MASTER_SIGNATURES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/cluster/leftovers.h"
#include "actors/cluster/master_state.h"

namespace troupe {

/// A signature is built once, and registered on each of its tasks once per life of the task. One
/// that is not used for long is given up, and built anew when it is wanted again. Pure: a part of a
/// master.
class MasterSignatures {
 public:
  /// Told of steps that have waited for a signature. OK: they are to look again.
  using Wake = std::function<void(const std::vector<uint64_t>& steps, const absl::Status& status)>;

  MasterSignatures(MasterState* master, Leftovers* leftovers, Wake wake)
      : master_(master), leftovers_(leftovers), wake_(std::move(wake)) {}

  std::shared_ptr<MasterSignature> FindOrBuild(const std::string& session_name,
                                               MasterSession* session,
                                               const cluster::Signature& names);
  void MakeCallable(Responder from, const cluster::MakeCallableRequest& request);
  /// nullptr if there is none. What has been given up is built anew.
  std::shared_ptr<MasterSignature> FindCallable(const std::string& session_name,
                                                MasterSession* session,
                                                const std::string& callable);
  /// Has what is missing registered with the tasks of a signature that is built. True: nothing is;
  /// false: the step is to wait with the signature. Unavailable: a task is not there.
  absl::StatusOr<bool> Register(const std::string& session_name, MasterSession* session,
                                const std::shared_ptr<MasterSignature>& signature);
  /// Calls `then` when the task, which is there, has the session, or says why it has not.
  void Open(const std::string& session_name, MasterSession* session, PeerId task,
            std::function<void(const absl::Status&)> then);
  /// A task is lost, and with it what was registered there.
  void OnTaskLost(PeerId task);
  /// A task does not know of the session, or of a graph, any more.
  absl::Status Forgotten(const std::string& session_name, PeerId task);
  /// Gives up what has not been used for long.
  void Tick();
  size_t size() const;

 private:
  using Signature = std::shared_ptr<MasterSignature>;

  void OnBuilt(const std::string& session_name, const Signature& signature,
               absl::StatusOr<BuiltStep> built);
  void AnswerMakers(MasterSession* session, const Signature& signature);
  /// True if the task has the session; else it is asked to open it.
  bool EnsureOpen(const std::string& session_name, MasterSession* session, PeerId task);
  void OnOpened(const std::string& session_name, PeerId task, uint64_t life,
                const absl::Status& status);
  void RegisterPart(const std::string& session_name, const Signature& signature, size_t part);
  void OnRegistered(MasterSignature* signature, PeerId task, const Leftovers::Leftover& graph,
                    const absl::Status& status, bool forgotten);
  void WakeAll(MasterSignature* signature, const absl::Status& status);
  void DropRegistrations(const std::string& session_name, MasterSession* session, PeerId task);
  void GiveUp(const std::string& session_name, MasterSession* session, const std::string& key);
  /// Gives up the signature used least recently as long as there are too many.
  void Trim(const std::string& session_name, MasterSession* session);

  MasterState* const master_;
  Leftovers* const leftovers_;
  const Wake wake_;
  ClusterTime next_old_ = 0;
  /// Who waits until a task has a session, or has refused it.
  struct Opening {
    std::string session;
    PeerId task = 0;
    uint64_t life = 0;
    std::function<void(const absl::Status&)> then;
  };
  std::vector<Opening> openings_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_MASTER_SIGNATURES_H_
