#include "net/links.h"

#include <algorithm>
#include <optional>

#include "devices/status_macros.h"
#include "net/tensor_codec.h"

namespace troupe {

namespace {
// Types of messages: one of these, and above it the number of parts that travel beside it, as
// tensors of the message's id and of this step.
constexpr uint64_t kMessage = 1;
constexpr uint64_t kMessageInPart = 2;  // The first part is the message's body.
constexpr uint64_t kPartsUnit = 256;
constexpr uint64_t kPartsStep = ~uint64_t{0};
// For a peer that is being connected to.
constexpr size_t kMostWaiting = 65536;
// How often, tick by tick, a peer may say that it is connecting to us before it is not believed.
constexpr int kMostRefusals = 500;
// For how many ticks the connection of a peer that has said hello is waited for, and the peer has
// time to hear of ours.
constexpr int kPatience = 50;
// For how many ticks a peer may send nothing in the midst of a message.
constexpr int kMostIdle = 250;
}  // namespace

absl::StatusOr<std::unique_ptr<Links>> Links::Create(const TransportOptions& options,
                                                     std::chrono::milliseconds dial_timeout,
                                                     Events events) {
  auto links = std::make_unique<Links>(options.task, dial_timeout, std::move(events), nullptr);
  TROUPE_ASSIGN_OR_RETURN(links->transport_, Transport::Create(options, links.get()));
  return links;
}

void Links::SetTask(PeerId id, const std::string& name, const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  tasks_[id] = {name, address};
  if (!name.empty()) by_name_[name] = id;
}

absl::StatusOr<Links::Task> Links::FindTask(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    return absl::NotFoundError(StrCat("there is no task ", name, " in this cluster"));
  }
  return Task{found->second, tasks_[found->second].second};
}

// ---- Sending ----

void Links::Send(PeerId to, std::string body, std::vector<std::string> parts) {
  SendItemTo(to, Outgoing{std::move(body), std::move(parts)});
}

void Links::Send(PeerId to, SendItem item) { SendItemTo(to, std::move(item)); }

void Links::SendItemTo(PeerId to, Item item) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto known = links_.find(to);
  if (stopped_ || (known == links_.end() && tasks_.count(to) == 0)) return;
  Link& link = known != links_.end() ? known->second : links_[to];
  if (const std::shared_ptr<Peer> peer = link.peer) {
    lock.unlock();
    return Write(peer.get(), std::move(item));
  }
  std::vector<Item> too_many;
  link.waiting.push_back(std::move(item));
  if (link.waiting.size() > kMostWaiting) too_many.swap(link.waiting);
  const bool dial = link.expecting == 0 && !std::exchange(link.dialing, true);
  lock.unlock();
  if (!too_many.empty()) {
    Fail(to, std::move(too_many),
         absl::ResourceExhaustedError("too much waits for a connection to be made"));
  }
  if (dial) Dial(to);
}

void Links::Write(Peer* peer, Item item) {
  // If the connection is over, `lost` is still to come, and is what the sender hears.
  if (auto* tensor = std::get_if<SendItem>(&item)) {
    const uint64_t step = tensor->step;
    const absl::Status sent = peer->Send(std::move(*tensor));
    if (!sent.ok() && !absl::IsUnavailable(sent)) events_.undelivered(step, sent);
    return;
  }
  auto& [body, parts] = std::get<Outgoing>(item);
  uint64_t type = kMessage;
  if (body.size() > Transport::kMaxMessageBytes) {
    type = kMessageInPart;
    parts.emplace(parts.begin())->swap(body);
  }
  if (parts.empty()) {
    peer->SendMessage(type, 0, std::move(body)).IgnoreError();
    return;
  }
  const uint64_t number = next_number_.fetch_add(1, std::memory_order_relaxed);
  std::vector<SendItem> items;
  for (size_t i = 0; i < parts.size(); ++i) {
    items.push_back({kPartsStep, number, i, false, AsTensor(std::move(parts[i]))});
  }
  if (peer->SendMessage(type + kPartsUnit * items.size(), number, std::move(body)).ok()) {
    peer->Send(absl::MakeSpan(items)).IgnoreError();
  }
}

void Links::Dial(PeerId to) {
  ConnectOptions options;
  options.timeout = dial_timeout_;
  std::string address;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::tie(options.expected_task, address) = tasks_[to];
  }
  const auto done = [this, to](const absl::StatusOr<std::shared_ptr<Peer>>& peer) {
    OnDialled(to, peer.status());
  };
  transport_ != nullptr ? transport_->Connect(address, options, done)
                        : connect_(address, options, done);
}

void Links::OnDialled(PeerId to, const absl::Status& status) {
  std::vector<Item> items;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Link& link = links_[to];
    link.dialing = false;
    if (stopped_ || status.ok() || link.peer != nullptr) return;
    // Either its connection comes, or the next tick tries again.
    if (absl::IsAborted(status) && ++link.refusals < kMostRefusals) return;
    link.refusals = 0;
    items.swap(link.waiting);
  }
  Fail(to, std::move(items), status);
}

void Links::Fail(PeerId to, std::vector<Item> items, const absl::Status& why) {
  std::vector<uint64_t> steps;
  for (const Item& item : items) {
    if (const auto* tensor = std::get_if<SendItem>(&item)) steps.push_back(tensor->step);
  }
  events_.unreachable(to, steps, why);
}

void Links::Drop(PeerId id) {
  std::shared_ptr<Peer> lost;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = links_.find(id);
    if (it == links_.end()) return;
    lost = std::exchange(it->second.peer, nullptr);
  }
  if (lost != nullptr) {
    lost->Close("the peer was not heard any more", std::chrono::milliseconds(0));
  }
}

void Links::Lose(PeerId id, const absl::Status& why) {
  std::shared_ptr<Peer> peer;
  std::vector<Item> items;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = links_.find(id);
    if (stopped_ || (it == links_.end() && tasks_.count(id) == 0)) return;
    if (it != links_.end()) {
      peer = it->second.peer;
      items.swap(it->second.waiting);
    }
  }
  if (peer != nullptr) {
    peer->Close(std::string(why.message()), std::chrono::milliseconds(0));
  } else {
    Fail(id, std::move(items), why);
  }
}

void Links::Stop(std::chrono::milliseconds drain) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    links_.clear();
  }
  if (transport_ != nullptr) transport_->Stop(drain).IgnoreError();
}

bool Links::connected(PeerId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = links_.find(id);
  return it != links_.end() && it->second.peer != nullptr;
}

// ---- Connections ----

absl::Status Links::OnHello(const PeerInfo& info) {
  TROUPE_ASSIGN_OR_RETURN(const PeerId id, events_.number(info));
  std::lock_guard<std::mutex> lock(mutex_);
  if (tasks_.count(id) == 0) return absl::OkStatus();
  Link& link = links_[id];
  // Also if the peer has not heard yet that this has been done.
  if (task_ < info.task && (link.peer == nullptr ? link.dialing : link.fresh > 0)) {
    return absl::AbortedError(StrCat(task_, " is connecting to ", info.task, " itself"));
  }
  // Not anew: who says hello all the time does not keep us from connecting.
  if (link.expecting == 0) link.expecting = kPatience;
  return absl::OkStatus();
}

void Links::OnPeerConnected(const std::shared_ptr<Peer>& peer) {
  const absl::StatusOr<PeerId> number = events_.number(peer->info());
  if (!number.ok()) return;  // It was OK at its hello.
  const PeerId id = *number;
  ids_[peer.get()] = id;
  std::shared_ptr<Peer> earlier;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = links_.find(id); it != links_.end()) earlier = it->second.peer;
  }
  if (earlier != nullptr) {
    // The other side has given it up, with what was on its way there.
    earlier->Close("the peer has connected again", std::chrono::milliseconds(0));
    events_.lost(id, earlier->info().incarnation);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    Link& link = links_[id];
    link.peer = peer;
    link.refusals = link.expecting = 0;
    link.fresh = peer->info().answered ? 0 : kPatience;
    // Within the lock, so that nothing overtakes it.
    try {
      for (Item& item : std::exchange(link.waiting, {})) Write(peer.get(), std::move(item));
    } catch (...) {  // What was not sent is lost, and so is the connection.
      peer->Close("memory has run out", std::chrono::milliseconds(0));
    }
  }
  events_.up(id, peer->info().incarnation);
}

void Links::OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status&) {
  const auto known = ids_.find(peer.get());
  if (known == ids_.end()) return;
  const PeerId id = known->second;
  ids_.erase(known);
  for (auto it = incomplete_.lower_bound({peer.get(), 0});
       it != incomplete_.end() && it->first.first == peer.get();) {
    incomplete_bytes_ -= it->second.bytes;
    it = incomplete_.erase(it);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = links_.find(id);
    if (it == links_.end() || it->second.peer != peer) return;
    if (tasks_.count(id) == 0) {
      links_.erase(it);
    } else {
      it->second.peer = nullptr;
    }
  }
  events_.lost(id, peer->info().incarnation);
}

void Links::OnTick() {
  std::vector<PeerId> again;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    for (auto& [id, link] : links_) {
      if (link.expecting > 0) --link.expecting;
      if (link.fresh > 0) --link.fresh;
      if (link.peer != nullptr || link.dialing || link.expecting > 0 || link.waiting.empty()) {
        continue;
      }
      link.dialing = true;
      again.push_back(id);
    }
  }
  for (PeerId id : again) Dial(id);
  EndStalled();
  events_.tick();
}

// ---- Receiving ----

absl::Status Links::Admit(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  if (info.step == kPartsStep) {
    if (info.tag < kMaxParts && info.type == ElementType::kUint8 &&
        info.bytes <= kMaxPartBytes - std::min(kMaxPartBytes, incomplete_bytes_)) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError("too much is on its way beside messages");
  }
  const auto known = ids_.find(peer.get());
  if (known != ids_.end() && known->second < kFirstClient) return absl::OkStatus();
  return absl::PermissionDeniedError("only tasks of the cluster may send tensors");
}

void Links::OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) {
  if (received.step != kPartsStep) {
    events_.tensor(std::move(received));
    return;
  }
  IncompleteMessage& message = *FindIncomplete(peer, received.key);
  if (!message.refused) {
    if (message.parts.size() <= received.tag) {
      Charge(&message, (received.tag + 1 - message.parts.size()) * sizeof(Tensor));
      message.parts.resize(received.tag + 1);
    }
    Tensor& part = message.parts[received.tag];
    if (part.valid()) return;
    part = std::move(received.tensor);
    Charge(&message, part.bytes());
  }
  --message.missing;
  Complete(peer, received.key);
}

void Links::OnDropped(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  if (info.step != kPartsStep) return;
  IncompleteMessage& message = *FindIncomplete(peer, info.key);
  Refuse(&message);
  --message.missing;
  Complete(peer, info.key);
}

Links::IncompleteMessage* Links::FindIncomplete(const std::shared_ptr<Peer>& peer,
                                                uint64_t number) {
  IncompleteMessage& message = incomplete_[{peer.get(), number}];
  message.peer = peer;
  return &message;
}

void Links::EndStalled() {
  for (auto& [key, message] : incomplete_) {
    const uint64_t received = message.peer->stats().bytes_received;
    message.idle = std::exchange(message.received, received) == received ? message.idle + 1 : 0;
    if (message.idle == kMostIdle) {
      message.peer->Close("the rest of a message does not come", std::chrono::milliseconds(0));
    }
  }
}

void Links::Refuse(IncompleteMessage* message) {
  incomplete_bytes_ -= std::exchange(message->bytes, 0);
  message->refused = true;
  message->parts.clear();
  Charge(message, message->body.size());
}

void Links::Charge(IncompleteMessage* message, uint64_t bytes) {
  message->bytes += bytes;
  incomplete_bytes_ += bytes;
}

void Links::Complete(const std::shared_ptr<Peer>& peer, uint64_t number) {
  auto it = incomplete_.find({peer.get(), number});
  if (!it->second.has_body || it->second.missing != 0) return;
  IncompleteMessage message = std::move(it->second);
  incomplete_.erase(it);
  incomplete_bytes_ -= message.bytes;
  const auto known = ids_.find(peer.get());
  if (known == ids_.end()) return;
  absl::Status whole;
  if (message.refused) {
    whole =
        absl::ResourceExhaustedError(StrCat(task_, " has no memory for what came with a message"));
    if (message.body_is_part) {
      // Nobody knows what was lost, so that everything is.
      peer->Close(std::string(whole.message()), std::chrono::milliseconds(0));
      return;
    }
  } else {
    // Perhaps they were not numbered as they should be.
    for (const Tensor& part : message.parts) {
      if (!part.valid()) return;
    }
    if (message.body_is_part) {
      const Tensor& body = message.parts.front();
      message.body.assign(static_cast<const char*>(body.raw_data()), body.bytes());
      message.parts.erase(message.parts.begin());
    }
  }
  events_.message(known->second, std::move(message.body), std::move(message.parts), whole);
}

void Links::OnRejected(const std::shared_ptr<Peer>&, uint64_t step, uint64_t, uint64_t,
                       const absl::Status& why) {
  if (step != kPartsStep) events_.undelivered(step, why);
}

void Links::OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                      std::string body) {
  const auto known = ids_.find(peer.get());
  const uint64_t kind = type % kPartsUnit, parts = type / kPartsUnit;
  if ((kind != kMessage && kind != kMessageInPart) || (kind == kMessageInPart && parts == 0) ||
      known == ids_.end() || parts > kMaxParts) {
    return;
  }
  if (parts == 0) {
    events_.message(known->second, std::move(body), {}, absl::OkStatus());
    return;
  }
  IncompleteMessage& message = *FindIncomplete(peer, id);
  if (message.has_body) return;
  message.has_body = true;
  message.body_is_part = kind == kMessageInPart;
  message.missing += parts;
  Charge(&message, body.size() + sizeof(IncompleteMessage));
  message.body = std::move(body);
  if (incomplete_bytes_ > kMaxPartBytes) Refuse(&message);
  Complete(peer, id);
}

}  // namespace troupe
