#include "net/links.h"

#include <algorithm>
#include <optional>

#include "devices/log.h"
#include "devices/status_macros.h"
#include "net/tensor_codec.h"

namespace troupe {

namespace {
// Types of messages: one of these, and above it the number of parts that travel beside it, as
// tensors of the message's id and of this step.
constexpr uint64_t kMessage = 1;
constexpr uint64_t kMessageInPart = 2;  // The first part is the message's body.
constexpr uint64_t kFrame = 3;
constexpr uint64_t kFrameInPart = 4;
constexpr uint64_t kPartsUnit = 256;
constexpr uint64_t kPartsStep = ~uint64_t{0};
// In the number of a message: it is a frame, of this number on its connection.
constexpr uint64_t kFrameNumber = uint64_t{1} << 63;
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
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_[id] = {name, address};
    if (!name.empty()) by_name_[name] = id;
  }
  if (FrameSink* sink = frame_sink_) sink->OnTasksChanged();
}

std::shared_ptr<Peer> Links::FindPeer(PeerId id, bool take) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = links_.find(id);
  if (it == links_.end()) return nullptr;
  return take ? std::exchange(it->second.peer, nullptr) : it->second.peer;
}

void Links::RemoveTask(PeerId id) {
  const std::shared_ptr<Peer> peer = FindPeer(id, /*take=*/true);
  Forget(id);
  if (peer != nullptr) peer->Close("the task has left the cluster");
  if (FrameSink* sink = frame_sink_) sink->OnTasksChanged();
}

absl::StatusOr<Links::Task> Links::FindTask(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    return absl::NotFoundError(StrCat("there is no task ", name, " in this cluster"));
  }
  return Task{found->second, tasks_[found->second].second};
}

std::vector<std::pair<std::string, PeerId>> Links::Tasks() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::pair<std::string, PeerId>> tasks(by_name_.begin(), by_name_.end());
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

// ---- Sending ----

void Links::Send(PeerId to, std::string body, std::vector<std::string> parts) {
  Outgoing outgoing{std::move(body), {}, false};
  for (std::string& part : parts) outgoing.parts.push_back(AsTensor(std::move(part)));
  SendItemTo(to, std::move(outgoing));
}

void Links::SendFrame(PeerId to, std::string body, std::vector<Tensor> tensors) {
  SendItemTo(to, Outgoing{std::move(body), std::move(tensors), true});
}

void Links::Send(PeerId to, SendItem item) { SendItemTo(to, std::move(item)); }

void Links::SendItemTo(PeerId to, Item item) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto known = links_.find(to);
  if (stopped_ || (known == links_.end() && tasks_.count(to) == 0)) return;
  Link& link = known != links_.end() ? known->second : links_[to];
  if (const std::shared_ptr<Peer> peer = link.peer) {
    const uint64_t frame = IsFrame(item) ? link.next_frame++ : 0;
    lock.unlock();
    return Write(peer.get(), std::move(item), frame);
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

bool Links::IsFrame(const Item& item) {
  const auto* outgoing = std::get_if<Outgoing>(&item);
  return outgoing != nullptr && outgoing->frame;
}

void Links::Write(Peer* peer, Item item, uint64_t frame) {
  // If the connection is over, `lost` is still to come, and is what the sender hears.
  if (auto* tensor = std::get_if<SendItem>(&item)) {
    const uint64_t step = tensor->step;
    const absl::Status sent = peer->Send(std::move(*tensor));
    if (!sent.ok() && !absl::IsUnavailable(sent)) events_.undelivered(step, sent);
    return;
  }
  auto& [body, parts, in_order] = std::get<Outgoing>(item);
  uint64_t type = in_order ? kFrame : kMessage;
  if (body.size() > Transport::kMaxMessageBytes) {
    type = in_order ? kFrameInPart : kMessageInPart;
    parts.insert(parts.begin(), AsTensor(std::move(body)));
    body.clear();
  }
  uint64_t number = in_order ? frame | kFrameNumber : 0;
  if (parts.empty()) {
    peer->SendMessage(type, number, std::move(body)).IgnoreError();
    return;
  }
  if (!in_order) number = next_number_.fetch_add(1, std::memory_order_relaxed);
  std::vector<SendItem> items;
  for (size_t i = 0; i < parts.size(); ++i) {
    items.push_back({kPartsStep, number, i, false, std::move(parts[i])});
  }
  if (!peer->SendMessage(type + kPartsUnit * items.size(), number, std::move(body)).ok()) return;
  const absl::Status sent = peer->Send(absl::MakeSpan(items));
  // The peer has been told of tensors that do not come.
  if (!sent.ok()) peer->Close(std::string(sent.message()), std::chrono::milliseconds(0));
}

void Links::Dial(PeerId to, uint64_t incarnation) {
  ConnectOptions options;
  options.expected_incarnation = incarnation;
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
    const auto known = links_.find(to);
    if (known == links_.end()) return;
    Link& link = known->second;
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
  if (FrameSink* sink = frame_sink_) sink->OnUnreachable(to, why);
}

void Links::Forget(PeerId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto task = tasks_.find(id);
  if (task == tasks_.end()) return;
  // Another task may have the name by now.
  std::erase_if(by_name_, [id](const auto& named) { return named.second == id; });
  tasks_.erase(task);
  if (const auto it = links_.find(id); it != links_.end() && it->second.peer == nullptr) {
    links_.erase(it);
  }
}

void Links::Drop(PeerId id) {
  if (const std::shared_ptr<Peer> lost = FindPeer(id, /*take=*/true)) {
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

// ---- Connections ----

absl::Status Links::OnHello(const PeerInfo& info) {
  TROUPE_ASSIGN_OR_RETURN(const PeerId id, events_.number(info));
  std::unique_lock<std::mutex> lock(mutex_);
  if (tasks_.count(id) == 0) return absl::OkStatus();
  Link& link = links_[id];
  if (link.peer != nullptr && link.peer->info().incarnation != info.incarnation) {
    // The name is free when the connection breaks, or nothing is heard over it any more; and it
    // belongs to whoever answers at the task's address.
    const bool ask = !std::exchange(link.dialing, true);
    lock.unlock();
    WriteLog(LogLevel::kInfo, task_, {"refused", info.task}, "refused ", info.ToString(),
             ": another process of that name lives");
    if (ask) Dial(id, info.incarnation);
    return absl::AbortedError(StrCat("another process that is ", info.task, " lives"));
  }
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
  if (const std::shared_ptr<Peer> earlier = FindPeer(id, /*take=*/false)) {
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
    link.next_frame = 0;
    // Within the lock, so that nothing overtakes it.
    try {
      for (Item& item : std::exchange(link.waiting, {})) {
        const uint64_t frame = IsFrame(item) ? link.next_frame++ : 0;
        Write(peer.get(), std::move(item), frame);
      }
    } catch (...) {  // What was not sent is lost, and so is the connection.
      peer->Close("memory has run out", std::chrono::milliseconds(0));
    }
  }
  events_.up(id, peer->info().incarnation);
  if (FrameSink* sink = frame_sink_) sink->OnOpened(id, peer);
}

void Links::OnStranger(const std::string& address, const absl::Status& why) {
  const std::string host = address.substr(0, address.rfind(':'));
  WriteLog(LevelOfRefusal(why), task_, {"refused", host}, "refused a connection from ", host, ": ",
           why.message());
}

void Links::OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status& why) {
  WriteLog(absl::IsCancelled(why) ? LogLevel::kDebug : LogLevel::kInfo, task_,
           {"connection", peer->info().task}, why.message());
  const auto known = ids_.find(peer.get());
  if (known == ids_.end()) return;
  const PeerId id = known->second;
  ids_.erase(known);
  for (auto it = incomplete_.lower_bound({peer.get(), 0});
       it != incomplete_.end() && it->first.first == peer.get();) {
    incomplete_bytes_ -= it->second.bytes;
    it = incomplete_.erase(it);
  }
  for (const auto& [number, frame] : frames_[peer.get()].early) incomplete_bytes_ -= frame.bytes;
  frames_.erase(peer.get());
  if (FrameSink* sink = frame_sink_) sink->OnClosed(id, peer);
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
  LogHeldBack();
  events_.tick();
  if (FrameSink* sink = frame_sink_) sink->OnFrameTick();
}

// ---- Receiving ----

absl::Status Links::Admit(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  if (info.step == kPartsStep) {
    const bool frame = (info.key & kFrameNumber) != 0;
    if (info.tag < kMaxParts && !info.dead && (frame || info.type == ElementType::kUint8) &&
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
  if (received.step != kPartsStep) return events_.tensor(std::move(received));
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
    if (message.idle != kMostIdle) continue;
    const PeerInfo& info = message.peer->info();
    WriteLog(LogLevel::kWarning, task_, {"stalled", info.task}, "connection to ", info.ToString(),
             " is given up: the rest of a message does not come");
    message.peer->Close("the rest of a message does not come", std::chrono::milliseconds(0));
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
  for (const Tensor& part : message.parts) {
    if (part.valid()) continue;
    // They were not numbered as they should be.
    incomplete_bytes_ -= message.bytes;
    peer->Close("parts of a message were missing", std::chrono::milliseconds(0));
    return;
  }
  if ((number & kFrameNumber) != 0) {
    OnFrame(peer, number & ~kFrameNumber, std::move(message));
  } else {
    HandOn(peer, std::move(message), false);
  }
}

void Links::OnFrame(const std::shared_ptr<Peer>& peer, uint64_t number, IncompleteMessage frame) {
  FrameOrder& order = frames_[peer.get()];
  if (number < order.next || order.early.count(number) != 0) {
    incomplete_bytes_ -= frame.bytes;
    peer->Close("a frame has come twice", std::chrono::milliseconds(0));
    return;
  }
  if (number > order.next) {
    order.early.emplace(number, std::move(frame));
    if (incomplete_bytes_ > kMaxPartBytes) {
      peer->Close("too much waits for a frame", std::chrono::milliseconds(0));
    }
    return;
  }
  ++order.next;
  HandOn(peer, std::move(frame), true);
  for (auto next = order.early.begin(); next != order.early.end() && next->first == order.next;
       next = order.early.erase(next), ++order.next) {
    HandOn(peer, std::move(next->second), true);
  }
}

void Links::HandOn(const std::shared_ptr<Peer>& peer, IncompleteMessage message, bool frame) {
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
    message.parts.clear();
  } else if (message.body_is_part) {
    const Tensor& body = message.parts.front();
    message.body.assign(static_cast<const char*>(body.raw_data()), body.bytes());
    message.parts.erase(message.parts.begin());
  }
  if (!frame) {
    events_.message(known->second, std::move(message.body), std::move(message.parts), whole);
  } else if (FrameSink* sink = frame_sink_) {
    sink->OnFrame(known->second, peer, std::move(message.body), std::move(message.parts), whole);
  }
}

void Links::OnRejected(const std::shared_ptr<Peer>&, uint64_t step, uint64_t, uint64_t,
                       const absl::Status& why) {
  if (step != kPartsStep) events_.undelivered(step, why);
}

void Links::OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                      std::string body) {
  const auto known = ids_.find(peer.get());
  const uint64_t kind = type % kPartsUnit, parts = type / kPartsUnit;
  const bool frame = kind == kFrame || kind == kFrameInPart;
  const bool body_is_part = kind == kMessageInPart || kind == kFrameInPart;
  if (kind < kMessage || kind > kFrameInPart || (body_is_part && parts == 0) ||
      frame != ((id & kFrameNumber) != 0) || known == ids_.end() || parts > kMaxParts) {
    return;
  }
  if (parts == 0 && !frame) {
    return events_.message(known->second, std::move(body), {}, absl::OkStatus());
  }
  IncompleteMessage& message = *FindIncomplete(peer, id);
  if (message.has_body) return;
  message.has_body = true;
  message.body_is_part = body_is_part;
  message.missing += parts;
  Charge(&message, body.size() + sizeof(IncompleteMessage));
  message.body = std::move(body);
  if (incomplete_bytes_ > kMaxPartBytes) Refuse(&message);
  Complete(peer, id);
}

}  // namespace troupe
