/// The data plane of a task: its transport, and who is at the other ends.
#ifndef TROUPE_NET_DATA_PLANE_H_
#define TROUPE_NET_DATA_PLANE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "net/transport.h"

namespace troupe {

/// Keeps a connection to every task that is up. Thread-safe.
class DataPlane final : public TensorSink {
 public:
  struct Events {
    /// A tensor has come; on the I/O thread.
    std::function<void(ReceivedTensor)> tensor;
    /// A step's value did not arrive.
    std::function<void(uint64_t step, const absl::Status&)> rejected;
    /// The connection to a task broke.
    std::function<void(const std::string& task)> lost;
  };

  static absl::StatusOr<std::unique_ptr<DataPlane>> Create(const TransportOptions& options,
                                                           Events events);
  ~DataPlane() override;

  absl::StatusOr<int> Listen(const std::string& host, int port);
  /// `dial`: this side makes the connection, unless there is one to this life of the task.
  void TaskUp(const std::string& task, uint64_t incarnation, const std::string& address, bool dial);
  /// NotFound while there is no connection; else what `Peer::Send` says.
  absl::Status Send(const std::string& task, SendItem item);
  void Stop(std::chrono::milliseconds drain);

  void OnPeerConnected(const std::shared_ptr<Peer>& peer) override;
  void OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) override;
  void OnRejected(const std::shared_ptr<Peer>& peer, uint64_t step, uint64_t key, uint64_t tag,
                  const absl::Status& why) override;
  void OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status& why) override;

 private:
  explicit DataPlane(Events events) : events_(std::move(events)) {}

  const Events events_;
  std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Peer>> peers_;
  bool stopped_ = false;
};

}  // namespace troupe

#endif  // TROUPE_NET_DATA_PLANE_H_
