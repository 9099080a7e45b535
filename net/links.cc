#include "net/links.h"

#include <algorithm>

#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "net/tensor_codec.h"

namespace troupe {

namespace {
using Format = MessageFormat;
// For a peer that is being connected to.
constexpr size_t kMostWaiting = 65536;
// How often, tick by tick, a peer may say that it is connecting to us before it is not believed.
constexpr int kMostRefusals = 500;
// For how many ticks the connection of a peer that has said hello is waited for, and the peer has
// time to hear of ours.
constexpr int kPatience = 50;
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
  uint64_t type = in_order ? Format::kFrame : Format::kMessage;
  if (body.size() > Transport::kMaxMessageBytes) {
    type = in_order ? Format::kFrameInPart : Format::kMessageInPart;
    parts.insert(parts.begin(), AsTensor(std::move(body)));
    body.clear();
  }
  uint64_t number = in_order ? frame | Format::kFrameNumber : 0;
  if (parts.empty()) {
    peer->SendMessage(type, number, std::move(body)).IgnoreError();
    return;
  }
  if (!in_order) number = next_number_.fetch_add(1, std::memory_order_relaxed);
  std::vector<SendItem> items;
  for (size_t i = 0; i < parts.size(); ++i) {
    items.push_back({Format::kStep, number, i, false, std::move(parts[i])});
  }
  if (!peer->SendMessage(type + Format::kPartsUnit * items.size(), number, std::move(body)).ok())
    return;
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
  std::shared_ptr<Peer> lost;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = links_.find(id);
    if (it == links_.end() || it->second.peer == nullptr) return;
    lost = std::exchange(it->second.peer, nullptr);
    if (tasks_.count(id) == 0) links_.erase(it);  // A client, which nobody connects to.
  }
  lost->Close("the peer was not heard any more", std::chrono::milliseconds(0));
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

bool Links::Stop(std::chrono::milliseconds drain) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    links_.clear();
  }
  return transport_ == nullptr || transport_->Stop(drain).ok();
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
  const bool added =
      incoming_
          .try_emplace(peer, id, &budget_,
                       [this, id, to = std::weak_ptr(peer)](MessageAssembler::Message message) {
                         if (const auto from = to.lock()) OnWhole(id, from, std::move(message));
                       })
          .second;
  if (!added) return;
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
  WriteLog(LogLevel::kDebug, task_, {"connection", peer->info().task}, "connected to ",
           peer->info().ToString(),
           peer->info().shared ? "; large tensors go through shared memory" : "");
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
  const auto known = incoming_.find(peer);
  if (known == incoming_.end()) return;
  const PeerId id = known->second.id;
  incoming_.erase(known);
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

Links::Incoming* Links::FindIncoming(const std::shared_ptr<Peer>& peer) {
  const auto known = incoming_.find(peer);
  return known != incoming_.end() ? &known->second : nullptr;
}

absl::Status Links::Admit(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  Incoming* const from = FindIncoming(peer);
  if (from != nullptr && info.step == Format::kStep) return from->messages.Admit(info);
  if (from != nullptr && from->id < kFirstClient) return absl::OkStatus();
  return absl::PermissionDeniedError("only tasks of the cluster may send tensors");
}

void Links::OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) {
  if (received.step != Format::kStep) return events_.tensor(std::move(received));
  Incoming* const from = FindIncoming(peer);
  if (from == nullptr) return;
  Judge(peer.get(), from->messages.OnPart(received.key, received.tag, std::move(received.tensor)));
}

void Links::OnDropped(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) {
  Incoming* const from = FindIncoming(peer);
  if (from == nullptr || info.step != Format::kStep) return;
  Judge(peer.get(), from->messages.OnDropped(info.key));
}

void Links::OnRejected(const std::shared_ptr<Peer>& peer, uint64_t step, uint64_t, uint64_t,
                       const absl::Status& why) {
  Incoming* const from = FindIncoming(peer);
  if (from == nullptr || step == Format::kStep) return;
  if (from->id < kFirstClient) return events_.undelivered(step, why);
  Judge(peer.get(), absl::PermissionDeniedError("a client refuses a step's tensor: it got none"));
}

void Links::OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                      std::string body) {
  Incoming* const from = FindIncoming(peer);
  if (from != nullptr) Judge(peer.get(), from->messages.OnMessage(type, id, std::move(body)));
}

void Links::OnWhole(PeerId id, const std::shared_ptr<Peer>& peer,
                    MessageAssembler::Message message) {
  if (!message.whole.ok()) message.whole = WithContext(StrCat(task_, ": "), message.whole);
  if (!message.frame) {
    events_.message(id, std::move(message.body), std::move(message.parts), message.whole);
  } else if (FrameSink* sink = frame_sink_) {
    sink->OnFrame(id, peer, std::move(message.body), std::move(message.parts), message.whole);
  }
}

void Links::Judge(Peer* peer, const absl::Status& status) {
  if (status.ok()) return;
  const PeerInfo& info = peer->info();
  WriteLog(LogLevel::kWarning, task_, {"given up", info.task}, "connection to ", info.ToString(),
           " is given up: ", status.message());
  peer->Close(std::string(status.message()), std::chrono::milliseconds(0));
}

void Links::EndStalled() {
  for (auto& [peer, from] : incoming_) {
    if (!from.messages.waits()) {
      from.watch.Reset();
      continue;
    }
    // What its own tensors here hold, until steps take them, is not its fault.
    const PeerStats stats = peer->stats();
    if (from.watch.Look(!stats.short_of_credits, stats.tensor_bytes_received)) {
      Judge(peer.get(), absl::DeadlineExceededError("the rest of a message does not come"));
    }
  }
}

}  // namespace troupe
