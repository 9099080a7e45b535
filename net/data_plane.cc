#include "net/data_plane.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<DataPlane>> DataPlane::Create(const TransportOptions& options,
                                                             Events events) {
  std::unique_ptr<DataPlane> plane(new DataPlane(std::move(events)));
  TROUPE_ASSIGN_OR_RETURN(plane->transport_, Transport::Create(options, plane.get()));
  return plane;
}

DataPlane::~DataPlane() { Stop(std::chrono::milliseconds(0)); }

absl::StatusOr<int> DataPlane::Listen(const std::string& host, int port) {
  return transport_->Listen(host, port);
}

void DataPlane::TaskUp(const std::string& task, uint64_t incarnation, const std::string& address,
                       bool dial) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = peers_.find(task);
    if (!dial || stopped_ ||
        (it != peers_.end() && it->second->info().incarnation == incarnation)) {
      return;
    }
  }
  ConnectOptions options;
  options.expected_task = task;
  options.expected_incarnation = incarnation;
  // If this fails, values go over the control plane.
  transport_->Connect(address, options, [](const absl::StatusOr<std::shared_ptr<Peer>>&) {});
}

absl::Status DataPlane::Send(const std::string& task, SendItem item) {
  std::shared_ptr<Peer> peer;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = peers_.find(task); it != peers_.end()) peer = it->second;
  }
  if (peer == nullptr) return absl::NotFoundError(StrCat("there is no connection to ", task));
  return peer->Send(std::move(item));
}

void DataPlane::Stop(std::chrono::milliseconds drain) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  transport_->Stop(drain).IgnoreError();
  std::lock_guard<std::mutex> lock(mutex_);
  peers_.clear();
}

void DataPlane::OnPeerConnected(const std::shared_ptr<Peer>& peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!stopped_) peers_[peer->info().task] = peer;
}

void DataPlane::OnTensor(const std::shared_ptr<Peer>&, ReceivedTensor received) {
  events_.tensor(std::move(received));
}

void DataPlane::OnRejected(const std::shared_ptr<Peer>&, uint64_t step, uint64_t, uint64_t,
                           const absl::Status& why) {
  events_.rejected(step, why);
}

void DataPlane::OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status&) {
  const std::string task = peer->info().task;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = peers_.find(task);
    if (stopped_ || it == peers_.end() || it->second != peer) return;
    peers_.erase(it);
  }
  events_.lost(task);
}

}  // namespace troupe
