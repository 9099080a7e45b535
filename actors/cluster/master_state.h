/// What the parts of a master share. For their sources only.
#ifndef TROUPE_ACTORS_CLUSTER_MASTER_STATE_H_
#define TROUPE_ACTORS_CLUSTER_MASTER_STATE_H_

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/cluster/calls.h"
#include "actors/cluster/engine.h"
#include "actors/cluster/master_tasks.h"
#include "devices/status_macros.h"

namespace troupe {

struct MasterOptions {
  PeerId self = 0;  ///< Its own task, whose devices come first.
  /// How long the creation of a session waits for tasks that are missing.
  ClusterTime wait_for_workers = 10 * kSecond;
  /// How long a failed step waits for its tasks to stop.
  ClusterTime grace = 2 * kSecond;
  ClusterTime register_timeout = 60 * kSecond;
  /// A session keeps so many signatures besides those that are in use, each for so long.
  size_t max_signatures = 1000;
  ClusterTime signature_lifetime = 1800 * kSecond;
  /// Makes step ids of several masters differ.
  uint64_t seed = 0;
};

struct MasterSignature {
  /// On a task.
  struct Registration {
    uint64_t incarnation = 0;
    bool ready = false;
    std::string handle;
  };
  cluster::Signature names;
  bool building = true;
  std::optional<BuiltStep> built;
  std::vector<PeerId> tasks;  ///< Per part.
  std::map<PeerId, Registration> registrations;
  std::vector<uint64_t> waiting;  ///< Steps, until it has been built and registered.
  std::vector<Responder> makers;  ///< Of callables, until it has been built.
  size_t num_steps = 0;           ///< That have not ended.
  ClusterTime last_used = 0;

  bool Uses(PeerId task) const { return std::count(tasks.begin(), tasks.end(), task) > 0; }
  /// It can be given up. A graph that is being registered cannot be taken back yet: that could come
  /// first.
  bool Idle() const {
    return !building && num_steps == 0 &&
           std::all_of(registrations.begin(), registrations.end(),
                       [](const auto& entry) { return entry.second.ready; });
  }
};

struct MasterSession {
  PeerId client = 0;
  std::map<std::string, std::shared_ptr<MasterSignature>> signatures;  ///< By what is asked for.
  std::map<std::string, std::shared_ptr<MasterSignature>> callables;   ///< Some may be given up.
  std::map<PeerId, uint64_t> opened;   ///< The life in which the task has the session.
  std::map<PeerId, uint64_t> opening;  ///< The same, asked for.
  cluster::SessionConfig config;
  KernelStates restored;                                ///< As the client has given them.
  bool keeps_states = false;                            ///< It has asked for them, or given some.
  std::set<PeerId> with_states;                         ///< Tasks that had some, or resources.
  std::set<PeerId> lost;                                ///< Had been opened, and are not again.
  std::set<PeerId> touched;                             ///< Tasks that may know of the session.
  std::map<std::string, uint64_t> partial_runs;         ///< Their steps.
  std::map<std::string, absl::Status> failed_partials;  ///< Those of which nobody was told.
};

/// What is more to a step that is fed and fetched in pieces, one piece at a time.
struct PartialRun {
  struct Piece {
    Responder client;
    cluster::PartialRunRequest request;
    std::vector<TensorProto> values;
    int calls = 0;  ///< FEED_GRAPHs without an answer.
    ClusterTime deadline = 0;
    absl::Status refusal;
  };
  std::string handle;
  std::map<std::string, int> feeds, fetches;  ///< What is still to come.
  std::vector<bool> fed;
  std::deque<Piece> pieces;  ///< The first one is at work, or has been done, if `at_work`.
  bool at_work = false;
};

struct MasterStep {
  Responder client;
  std::shared_ptr<PartialRun> partial;
  std::string session;
  std::shared_ptr<MasterSignature> signature;
  std::vector<TensorProto> feeds, fetches;
  bool trace = false;
  std::string metadata;  ///< RunMetadatas one after the other: that merges them.
  ClusterTime deadline = 0;
  bool running = false;
  std::map<PeerId, uint64_t> calls;  ///< RUN_GRAPHs without an answer.
  absl::Status status;
  bool derived = false;
  ClusterTime give_up = 0;  ///< When a failed step stops waiting for its tasks.

  /// Its time is up, or that of a piece of it.
  bool Late(ClusterTime now) const;
};

struct MasterState {
  MasterState(MasterOptions o, std::vector<MasterTasks::Task> t, Calls* c, MasterEngine* e)
      : options(o), calls(c), engine(e), tasks(std::move(t), o.self, o.wait_for_workers) {}

  /// nullptr, and `from` has been answered: the client has no such session.
  MasterSession* FindSession(Responder from, const std::string& name) {
    auto it = sessions.find(name);
    if (it != sessions.end() && it->second->client == from.from) return it->second.get();
    calls->Reply(
        from, absl::AbortedError(StrCat(
                  "there is no session ", name, " of this client on ", tasks.Describe(options.self),
                  "; the task may have been restarted: create a new session")));
    return nullptr;
  }
  std::string NewName(std::string_view prefix) { return StrCat(prefix, next_name++); }
  const std::string& own_name() const { return tasks.at(options.self).task.name; }

  const MasterOptions options;
  Calls* const calls;
  MasterEngine* const engine;
  MasterTasks tasks;
  std::map<std::string, std::shared_ptr<MasterSession>> sessions;
  ClusterTime now = 0;  ///< Of the event that is being handled.
  uint64_t next_name = 1;
};

/// What a task is told of states that have been restored: see SaveStatesReply.
inline KernelStates StatesFor(const std::string& task, const KernelStates& restored) {
  const std::string own = "@" + task + "\n";
  KernelStates states;
  for (const auto& [node, state] : restored) {
    if (!node.starts_with('@')) {
      states[node] = state;
    } else if (node.starts_with(own)) {
      states[node.substr(own.size())] = state;
    }
  }
  return states;
}

inline absl::Status SessionClosedError() {
  return absl::CancelledError("the session has been closed");
}

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_MASTER_STATE_H_
