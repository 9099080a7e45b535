/// The sockets of a control plane, which does not wait for others when it ends.
#ifndef TROUPE_NET_CONTROL_SOCKETS_H_
#define TROUPE_NET_CONTROL_SOCKETS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// Connects, and knows what is connected. Thread-safe.
class ControlSockets {
 public:
  ControlSockets();
  ~ControlSockets();
  ControlSockets(const ControlSockets&) = delete;
  ControlSockets& operator=(const ControlSockets&) = delete;

  /// A connected socket, not blocking, that the caller owns; -1: nobody answered within `patience`,
  /// looking the name up included, or `StopConnecting` was called, which ends this at once.
  int Connect(const std::string& host, uint16_t port, std::chrono::milliseconds patience);
  void StopConnecting();

  /// `socket` is in use until `Closing`, which comes before it is closed.
  void Opened(int socket);
  void Closing(int socket);
  /// Its peer has said something.
  void Spoke(int socket);
  /// Ends those connections whose peers have not said anything within `patience`: neither strangers
  /// nor who stands still keep them for ever.
  void EndSilent(std::chrono::milliseconds patience);
  /// Ends all connections, those that begin later as well: whoever reads or writes sees the end at
  /// once. What the kernel has taken over is sent nevertheless.
  void Sever();

 private:
  using Clock = std::chrono::steady_clock;
  struct Names;

  /// Numeric addresses; none if there are none in time.
  std::vector<std::string> LookUp(const std::string& host, Clock::time_point deadline);

  const std::shared_ptr<Names> names_;
  int stop_;  ///< Can be read as soon as connecting is to end.
  std::mutex mutex_;
  bool severed_ = false;
  /// Since when they are silent; the far future: they are not.
  std::map<int, Clock::time_point> sockets_;
};

}  // namespace troupe

#endif  // TROUPE_NET_CONTROL_SOCKETS_H_
