/// The transport of simulated processes: handshakes, queues, credits and readers are the real
/// roles; what is simulated are the streams of bytes between them.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_STREAMS_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_STREAMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

class StreamEnd;

/// What `Transport` is in a process: makes connections, and tells its sink what comes. A connection
/// is two streams, on which bytes arrive late, in pieces, and not at all once it is broken.
class SimulatedTransport {
 public:
  struct Options {
    int process = 0;  ///< Its number, which is its address as well.
    std::string name;
    uint64_t incarnation = 0;
    bool serves = false;           ///< Others may connect to it although it is no task.
    uint64_t windows[2] = {0, 0};  ///< Credits of the two lanes.
  };
  struct Network {
    Schedule* schedule = nullptr;
    /// The transport of a process's present life; nullptr while it is dead.
    std::function<SimulatedTransport*(int process)> find;
    /// How long bytes that are sent now take.
    std::function<ClusterTime(int from, int to)> latency;
  };
  /// Runs an event of this process at a time, later if it stands still then, never once it is dead.
  using Later = std::function<void(ClusterTime, Schedule::Event)>;

  SimulatedTransport(Options options, Later later, Network* network);
  ~SimulatedTransport();

  /// Before anything else.
  void set_sink(TensorSink* sink) { sink_ = sink; }
  void Connect(const std::string& address, const ConnectOptions& options,
               Transport::Connected done);
  /// The process dies; `silently`: nobody breaks its connections.
  void Die(bool silently);
  /// The connections to a process break, in the midst of whatever they carry.
  void Break(int process);
  /// A process that had died without a word is back: what is sent to its old life is answered by a
  /// reset.
  void Reset(int process);

  /// After all steps have ended and all bytes have arrived.
  void CheckNothingLeft();

 private:
  friend class StreamEnd;

  void Knock(int process, const ConnectOptions& options, ClusterTime deadline,
             Transport::Connected done);
  std::shared_ptr<StreamEnd> AddEnd(int peer);
  void Tick();

  const Options options_;
  const Later later_;
  Network* const network_;
  TensorSink* sink_ = nullptr;
  std::vector<std::shared_ptr<StreamEnd>> ends_;  ///< Those that have not failed.
  uint64_t next_connection_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_STREAMS_H_
