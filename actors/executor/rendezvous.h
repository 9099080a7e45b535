/// How values get from one partition of a step to another.
#ifndef TROUPE_ACTORS_EXECUTOR_RENDEZVOUS_H_
#define TROUPE_ACTORS_EXECUTOR_RENDEZVOUS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

/// An edge of the graph that crosses devices: one Send, one Recv. Known when the plan is built.
struct RendezvousEdge {
  uint64_t key = 0;         ///< Of `name`, the same on both ends.
  std::string name;         ///< Unique in the partitioned graph.
  std::string send_device;  ///< Complete device names.
  std::string recv_device;
  bool remote = false;  ///< The other end is in another process.
};

/// The key of an edge's name.
uint64_t RendezvousKey(std::string_view name);

/// Told when a value that was asked for has come.
class ReceiveDone {
 public:
  virtual ~ReceiveDone() = default;
  /// Once, on any thread. Not OK: no value will come.
  virtual void Received(absl::Status status, Tensor value, bool dead, Player player) noexcept = 0;
};

/// The meeting place of one step in one process: a value and the one who waits for it, whoever is
/// first. Values are told apart by edge and tag (which iteration of which loops; 0 outside loops).
/// Thread-safe; nothing here waits.
class Rendezvous {
 public:
  Rendezvous() = default;
  virtual ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// From an executor: a value for the other end of `edge`. Local edges are delivered here.
  void Send(const RendezvousEdge& edge, uint64_t tag, Tensor value, bool dead) {
    if (edge.remote) {
      SendRemote(edge, tag, std::move(value), dead);
    } else {
      Deliver(edge.key, tag, std::move(value), dead, Player::kPlays);
    }
  }
  /// From an executor: `done` is told the value, at once if it is there. Throws if there is no
  /// memory to wait for it; then `done` is told nothing.
  void Receive(const RendezvousEdge& edge, uint64_t tag, ReceiveDone* done);
  /// A value has come, from a local Send or from another process. Ignored after `Abort`. `player`:
  /// of the step.
  void Deliver(uint64_t key, uint64_t tag, Tensor value, bool dead, Player player);
  /// Fails everyone who waits, and whoever asks later; drops the values. The first status counts.
  /// This thread plays nobody.
  void Abort(const absl::Status& status) noexcept;

 protected:
  /// For edges whose other end is in another process; never blocks.
  virtual void SendRemote(const RendezvousEdge& edge, uint64_t tag, Tensor value, bool dead);

 private:
  struct Entry {
    ReceiveDone* waiting = nullptr;
    bool has_value = false;
    bool dead = false;
    Tensor value;
  };
  struct Place {
    uint64_t key, tag;
    bool operator==(const Place&) const = default;
  };
  struct HashPlace {
    size_t operator()(const Place& place) const {
      return place.key ^ (place.tag * 0x9e3779b97f4a7c15u);
    }
  };

  std::mutex mutex_;
  std::unordered_map<Place, Entry, HashPlace> entries_;
  absl::Status aborted_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_EXECUTOR_RENDEZVOUS_H_
