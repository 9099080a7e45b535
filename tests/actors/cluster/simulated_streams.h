/// The data plane of simulated tasks: handshakes, queues, credits and readers are the real roles;
/// what is simulated are the streams of bytes between them.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_STREAMS_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

class StreamEnd;

/// Keeps a connection to every task that is up, as `DataPlane` does. A connection is two streams,
/// on which bytes arrive late, in pieces, and not at all once it is broken.
class SimulatedDataPlane {
 public:
  struct Options {
    int task = 0;  ///< Its number.
    std::string name;
    uint64_t incarnation = 0;
    uint64_t windows[2] = {0, 0};  ///< Credits of the two lanes.
  };
  /// What it is connected to.
  struct Events {
    /// Runs an event of this task at a time, later if the task stands still then, never once it is
    /// dead.
    std::function<void(ClusterTime, Schedule::Event)> later;
    std::function<void(ReceivedTensor)> tensor;
    std::function<void(int task, std::string)> message;
    std::function<void(int task, uint64_t incarnation)> lost;
  };
  struct Network {
    Schedule* schedule = nullptr;
    /// The data plane of a task's present life; nullptr while it is dead.
    std::function<SimulatedDataPlane*(int task)> find;
    /// How long bytes that are sent now take.
    std::function<ClusterTime(int from, int to)> latency;
  };

  SimulatedDataPlane(Options options, Events events, Network* network);
  ~SimulatedDataPlane();

  /// A task has said that it is up; `dial`: this side connects.
  void TaskUp(int task, const std::string& name, uint64_t incarnation, bool dial);
  /// A task has been heard in this life.
  void Heard(int task, uint64_t incarnation);
  /// A task is lost, and so is the connection to it.
  void Drop(int task);
  /// NotFound while there is no connection.
  absl::Status Send(int task, SendItem item);
  /// False while there is no connection to that life of the task.
  bool SendMessage(int task, uint64_t incarnation, std::string body);
  /// The task dies; `silently`: nobody breaks its connections.
  void Die(bool silently);
  /// The connections to a task break, in the midst of whatever they carry.
  void Break(int task);
  /// A task that had died without a word is back: what is sent to its old life is answered by a
  /// reset.
  void Reset(int task);

  /// After all steps have ended and all bytes have arrived.
  void CheckNothingLeft();
  size_t num_connected() const { return peers_.size(); }

 private:
  friend class StreamEnd;

  std::shared_ptr<StreamEnd> AddEnd(int peer);
  void Connected(const std::shared_ptr<StreamEnd>& end);
  void Lost(StreamEnd* end);
  void Tick();

  const Options options_;
  const Events events_;
  Network* const network_;
  std::vector<std::shared_ptr<StreamEnd>> ends_;  ///< Those that have not failed.
  std::map<int, std::shared_ptr<StreamEnd>> peers_;
  uint64_t next_connection_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_STREAMS_H_
