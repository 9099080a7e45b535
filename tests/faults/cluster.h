/// A cluster of three processes and its clients, to which something happens at a moment.
#ifndef TROUPE_TESTS_FAULTS_CLUSTER_H_
#define TROUPE_TESTS_FAULTS_CLUSTER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/network.h"
#include "tests/faults/process.h"

namespace troupe::faults {

enum class Fault { kKill, kRestart, kStop, kCut, kCutBetween, kSlow, kReset };
enum class Victim { kPs, kWorker, kMaster, kClient, kActor };
enum class Moment { kRest, kStep, kWaiting, kTransfer, kCreation, kClose, kTraining };

/// What happens, to whom, when. `kActor`: to a process whose actors graphs ask. `kCutBetween`: from
/// the victim to the parameter server, or to the worker if that is the victim; the master sees
/// both. `kTraining`: the client trains, saves, and goes on by itself. `kReset`: its connections
/// are reset, as a firewall does that forgets them.
struct Row {
  Fault fault;
  Victim victim;
  Moment moment;
};

std::string FaultName(Fault fault);
std::string VictimName(Victim victim);
std::string MomentName(Moment moment);
/// "kill/ps/step".
std::string RowName(const Row& row);
/// Whether the row's processes live in network namespaces.
inline bool NeedsNetwork(Fault fault) { return fault >= Fault::kCut; }

/// What was seen.
struct Outcome {
  std::string code;  ///< Of the client's result; empty: it had none.
  std::string message;
  double seconds = 0;   ///< From the fault, or from the call if that came later, to the result.
  std::string session;  ///< "same" or "new": which one works afterwards.
  double recovery = 0;  ///< From the end of the fault to the first step that succeeds again.
  double ended = -1;    ///< A client's loss: from the fault to the last sign of life of its step.
  double longest = 0;   ///< The longest step of the client that is not concerned.
  bool missed = false;  ///< All was over before the fault had come: the machine is busy elsewhere.
  std::vector<std::string> problems;  ///< What should not have been.
};

struct Settings {
  double timeout = 2;        ///< For heartbeats, in seconds.
  std::string folder;        ///< For files.
  std::string certificates;  ///< For the rows with a network: a folder.
  std::string accelerator;   ///< A library of devices SIM, on which all is computed; empty: none.
};

/// Plays a row, again if the fault came too late, and checks what is promised for all of them.
Outcome Play(const Row& row, const Settings& settings);

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_CLUSTER_H_
