#include "net/data_plane.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {
// The type of messages of the control plane, a serialized `cluster::Message`: this, and above it
// the number of parts that travel beside it, as tensors of the message's id and this step.
constexpr uint64_t kControlMessage = 1;
constexpr uint64_t kBehindMessage = 2;
constexpr size_t kMostBehind = 64;  // Of a peer; they are asked for again.
constexpr uint64_t kPartsUnit = 256;
constexpr uint64_t kPartsStep = ~uint64_t{0};

Tensor AsTensor(std::string bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  auto* owner = new std::string(std::move(bytes));
  RefPtr<Buffer> buffer = Buffer::Wrap(
      owner->data(), owner->size(),
      [](void*, void* context) { delete static_cast<std::string*>(context); }, owner);
  return Tensor(ElementType::kUint8, Shape({size}), std::move(buffer), owner->data());
}
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
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = peers_.find(id);
    if (known != peers_.end() && known->second->info().incarnation == incarnation) return;
    if (!dialing_.insert({id, incarnation}).second) return;
  }
  ConnectOptions options;
  options.expected_task = task;
  options.expected_incarnation = incarnation;
  // If this fails, everything goes over the control plane.
  transport_->Connect(address, options,
                      [this, id, incarnation](const absl::StatusOr<std::shared_ptr<Peer>>&) {
                        std::lock_guard<std::mutex> lock(mutex_);
                        dialing_.erase({id, incarnation});
                      });
}

void DataPlane::Heard(PeerId id, uint64_t incarnation) {
  std::shared_ptr<Peer> earlier;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = peers_.find(id);
    if (it == peers_.end() || it->second->info().incarnation == incarnation) return;
    earlier = std::move(it->second);
    peers_.erase(it);
  }
  earlier->Close("the task has been restarted", std::chrono::milliseconds(0));
}

void DataPlane::Drop(PeerId id) {
  std::shared_ptr<Peer> lost;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = peers_.find(id);
    if (it == peers_.end()) return;
    lost = std::move(it->second);
    peers_.erase(it);
  }
  lost->Close("the peer was not heard any more", std::chrono::milliseconds(0));
}

absl::Status DataPlane::Send(PeerId to, SendItem item) {
  const std::shared_ptr<Peer> peer = Find(to);
  if (peer == nullptr) return absl::NotFoundError("there is no connection");
  return peer->Send(std::move(item));
}

bool DataPlane::Reaches(PeerId to, uint64_t incarnation) {
  const std::shared_ptr<Peer> peer = Find(to);
  return peer != nullptr && peer->info().incarnation == incarnation;
}

bool DataPlane::SendMessage(PeerId to, uint64_t incarnation, std::string body,
                            std::vector<std::string>* parts, bool behind) {
  if (body.size() > Transport::kMaxMessageBytes || parts->size() > kMaxParts) return false;
  const std::shared_ptr<Peer> peer = Find(to);
  if (peer == nullptr || peer->info().incarnation != incarnation) return false;
  if (parts->empty()) {
    return peer->SendMessage(behind ? kBehindMessage : kControlMessage, 0, std::move(body)).ok();
  }
  const uint64_t number = next_parcel_.fetch_add(1, std::memory_order_relaxed);
  if (!peer->SendMessage(kControlMessage + kPartsUnit * parts->size(), number, std::move(body))
           .ok()) {
    return false;
  }
  std::vector<SendItem> items;
  for (size_t i = 0; i < parts->size(); ++i) {
    items.push_back({kPartsStep, number, i, false, AsTensor(std::move((*parts)[i]))});
  }
  // If the connection breaks from here on, both sides hear of it.
  peer->Send(absl::MakeSpan(items)).IgnoreError();
  return true;
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
  std::shared_ptr<Peer> earlier;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = peers_.find(*id); it != peers_.end()) {
      earlier = std::move(it->second);
      peers_.erase(it);
    }
  }
  if (earlier != nullptr) {
    // The other side has given it up, with what was on its way there.
    earlier->Close("the peer has connected again", std::chrono::milliseconds(0));
    events_.lost(*id, earlier->info().incarnation);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!stopped_) peers_[*id] = peer;
}

absl::Status DataPlane::Admit(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  if (info.step == kPartsStep) {
    if (info.tag < kMaxParts && info.type == ElementType::kUint8 &&
        info.bytes <= kMaxPartBytes - std::min(kMaxPartBytes, parcel_bytes_)) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError("too much is on its way beside messages");
  }
  const auto known = ids_.find(peer.get());
  if (known != ids_.end() && known->second < kFirstClient) return absl::OkStatus();
  return absl::PermissionDeniedError("only tasks of the cluster may send tensors");
}

void DataPlane::OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) {
  if (received.step != kPartsStep) {
    events_.tensor(std::move(received));
    return;
  }
  Parcel& parcel = parcels_[{peer.get(), received.key}];
  if (!parcel.refused) {
    if (parcel.parts.size() <= received.tag) {
      Charge(&parcel, (received.tag + 1 - parcel.parts.size()) * sizeof(Tensor));
      parcel.parts.resize(received.tag + 1);
    }
    Tensor& part = parcel.parts[received.tag];
    if (part.valid()) return;
    part = std::move(received.tensor);
    Charge(&parcel, part.bytes());
  }
  --parcel.missing;
  Complete(peer.get(), received.key);
}

void DataPlane::OnDropped(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  if (info.step != kPartsStep) return;
  Parcel& parcel = parcels_[{peer.get(), info.key}];
  Refuse(&parcel);
  --parcel.missing;
  Complete(peer.get(), info.key);
}

void DataPlane::Refuse(Parcel* parcel) {
  parcel_bytes_ -= std::exchange(parcel->bytes, 0);
  parcel->refused = true;
  parcel->body.clear();
  parcel->parts.clear();
}

void DataPlane::Charge(Parcel* parcel, uint64_t bytes) {
  parcel->bytes += bytes;
  parcel_bytes_ += bytes;
}

void DataPlane::Complete(const Peer* peer, uint64_t number) {
  auto it = parcels_.find({peer, number});
  if (!it->second.has_body || it->second.missing != 0) return;
  Parcel parcel = std::move(it->second);
  parcels_.erase(it);
  parcel_bytes_ -= parcel.bytes;
  const auto known = ids_.find(peer);
  if (known == ids_.end()) return;
  // Perhaps they were not numbered as they should be.
  const bool whole = std::all_of(parcel.parts.begin(), parcel.parts.end(),
                                 [](const Tensor& part) { return part.valid(); });
  if (whole && !parcel.refused) {
    events_.message(known->second, std::move(parcel.body), std::move(parcel.parts));
  }
  auto behind = behind_.find(peer);
  if (behind == behind_.end()) return;
  auto& waiting = behind->second;
  while (!waiting.empty() && !AnyIncompleteUpTo(peer, waiting.front().first)) {
    events_.message(known->second, std::move(waiting.front().second), {});
    waiting.pop_front();
  }
  if (waiting.empty()) behind_.erase(behind);
}

uint64_t DataPlane::NewestIncomplete(const Peer* peer) const {
  uint64_t newest = 0;
  for (auto it = parcels_.lower_bound({peer, 0}); it != parcels_.end() && it->first.first == peer;
       ++it) {
    if (it->second.has_body) newest = it->first.second;
  }
  return newest;
}

bool DataPlane::AnyIncompleteUpTo(const Peer* peer, uint64_t number) const {
  for (auto it = parcels_.lower_bound({peer, 0});
       it != parcels_.end() && it->first <= std::make_pair(peer, number); ++it) {
    if (it->second.has_body) return true;
  }
  return false;
}

void DataPlane::OnRejected(const std::shared_ptr<Peer>&, uint64_t step, uint64_t, uint64_t,
                           const absl::Status& why) {
  events_.rejected(step, why);
}

void DataPlane::OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                          std::string body) {
  const auto known = ids_.find(peer.get());
  if (type == kBehindMessage && known != ids_.end()) {
    const uint64_t before = NewestIncomplete(peer.get());
    if (before == 0) {
      events_.message(known->second, std::move(body), {});
    } else if (auto& waiting = behind_[peer.get()]; waiting.size() < kMostBehind) {
      waiting.emplace_back(before, std::move(body));
    }
    return;
  }
  const uint64_t parts = type / kPartsUnit;
  if (type % kPartsUnit != kControlMessage || known == ids_.end() || parts > kMaxParts) return;
  if (parts == 0) {
    events_.message(known->second, std::move(body), {});
    return;
  }
  Parcel& parcel = parcels_[{peer.get(), id}];
  if (parcel.has_body) return;
  parcel.has_body = true;
  parcel.missing += parts;
  if (parcel_bytes_ > kMaxPartBytes) Refuse(&parcel);
  if (!parcel.refused) {
    Charge(&parcel, body.size() + sizeof(Parcel));
    parcel.body = std::move(body);
  }
  Complete(peer.get(), id);
}

void DataPlane::OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status&) {
  const auto known = ids_.find(peer.get());
  if (known == ids_.end()) return;
  const PeerId id = known->second;
  ids_.erase(known);
  behind_.erase(peer.get());
  for (auto it = parcels_.lower_bound({peer.get(), 0});
       it != parcels_.end() && it->first.first == peer.get();) {
    parcel_bytes_ -= it->second.bytes;
    it = parcels_.erase(it);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = peers_.find(id);
    if (stopped_ || it == peers_.end() || it->second != peer) return;
    peers_.erase(it);
  }
  events_.lost(id, peer->info().incarnation);
}

}  // namespace troupe
