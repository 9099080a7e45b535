/// The client of a cluster in which something goes wrong, as a process of its own.
#ifndef TROUPE_TESTS_FAULTS_CLIENT_H_
#define TROUPE_TESTS_FAULTS_CLIENT_H_

#include <string>

namespace troupe::faults {

/// The cluster has a `ps`, a `worker` and a `chief`, one task each; the chief is the master.
struct ClientOptions {
  std::string target;
  std::string moment;            ///< See `MomentName`; "bystander"; "actor".
  bool accelerators = false;     ///< Each task has a device SIM, which computes.
  bool asks = false;             ///< What it runs asks the actors of another process.
  std::string address;           ///< Of that process.
  std::string checkpoints;       ///< The folder of a training's.
  std::string queue_job = "ps";  ///< Where the queue of "waiting" lies.
  std::string jobs[2];           ///< Whose devices a bystander uses.
  double timeout = 2;            ///< For heartbeats, in seconds.
  std::string certificates;      ///< A folder; empty: no TLS.

  /// Of a job's task.
  std::string Device(const std::string& job) const {
    return "/job:" + job + "/task:0" + (accelerators ? "/device:SIM:0" : "");
  }
};

/// Says "in" when the moment has come. Told "go", it goes on, and says
/// "result CODE BEGAN ENDED MESSAGE", once; on "stop", it looks whether what is under way goes on,
/// which is the result OK; on "feed", it also moves 64 MiB there and back. On "recover" it runs
/// steps until one succeeds, and says "recovered same|new ENDED". A bystander runs steps all the
/// time; on "stop" it says "bystander STEPS LONGEST LAST_CHANGE ERROR". An actor's process
/// publishes "echo", which answers at once, and "later", which answers when it is told something.
/// All end on "quit". The result is the exit status.
int RunClient(const ClientOptions& options);

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_CLIENT_H_
