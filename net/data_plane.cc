#include "net/data_plane.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {
// The type of messages of the control plane: a serialized `cluster::Message`.
constexpr uint64_t kControlMessage = 1;
}  // namespace

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

std::shared_ptr<Peer> DataPlane::Find(PeerId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = peers_.find(id);
  return it == peers_.end() ? nullptr : it->second;
}

void DataPlane::Dial(PeerId id, const std::string& task, uint64_t incarnation,
                     const std::string& address) {
  if (const auto known = Find(id); known != nullptr && known->info().incarnation == incarnation) {
    return;
  }
  ConnectOptions options;
  options.expected_task = task;
  options.expected_incarnation = incarnation;
  // If this fails, everything goes over the control plane.
  transport_->Connect(address, options, [](const absl::StatusOr<std::shared_ptr<Peer>>&) {});
}

absl::Status DataPlane::Send(PeerId to, SendItem item) {
  const std::shared_ptr<Peer> peer = Find(to);
  if (peer == nullptr) return absl::NotFoundError("there is no connection");
  return peer->Send(std::move(item));
}

bool DataPlane::SendMessage(PeerId to, uint64_t incarnation, std::string body) {
  if (body.size() > Transport::kMaxMessageBytes) return false;
  const std::shared_ptr<Peer> peer = Find(to);
  return peer != nullptr && peer->info().incarnation == incarnation &&
         peer->SendMessage(kControlMessage, 0, std::move(body)).ok();
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

absl::Status DataPlane::OnHello(const PeerInfo& peer) {
  if (events_.number(peer).has_value()) return absl::OkStatus();
  return absl::NotFoundError(StrCat("there is no task ", peer.task, " in this cluster"));
}

void DataPlane::OnPeerConnected(const std::shared_ptr<Peer>& peer) {
  const std::optional<PeerId> id = events_.number(peer->info());
  if (!id.has_value()) return;
  ids_[peer.get()] = *id;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!stopped_) peers_[*id] = peer;
}

absl::Status DataPlane::Admit(const std::shared_ptr<Peer>& peer, const TensorInfo&) {
  const auto known = ids_.find(peer.get());
  if (known != ids_.end() && known->second < kFirstClient) return absl::OkStatus();
  return absl::PermissionDeniedError("only tasks of the cluster may send tensors");
}

void DataPlane::OnTensor(const std::shared_ptr<Peer>&, ReceivedTensor received) {
  events_.tensor(std::move(received));
}

void DataPlane::OnRejected(const std::shared_ptr<Peer>&, uint64_t step, uint64_t, uint64_t,
                           const absl::Status& why) {
  events_.rejected(step, why);
}

void DataPlane::OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t,
                          std::string body) {
  const auto known = ids_.find(peer.get());
  if (type == kControlMessage && known != ids_.end()) {
    events_.message(known->second, std::move(body));
  }
}

void DataPlane::OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status&) {
  const auto known = ids_.find(peer.get());
  if (known == ids_.end()) return;
  const PeerId id = known->second;
  ids_.erase(known);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = peers_.find(id);
    if (stopped_ || it == peers_.end() || it->second != peer) return;
    peers_.erase(it);
  }
  events_.lost(id, peer->info().incarnation);
}

}  // namespace troupe
