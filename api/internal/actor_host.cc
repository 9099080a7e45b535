#include "api/internal/actor_host.h"

#include <algorithm>
#include <utility>

#include "actors/runtime.h"
#include "api/internal/actor_protocol.h"
#include "api/internal/actor_proxy.h"
#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

using namespace actor_protocol;  // NOLINT: its own

// ---- The actor system ----

absl::StatusOr<caf::actor_system*> ActorHost::System(caf::actor_system_config* config) {
  if (config == nullptr && started_.load(std::memory_order_acquire)) return system_.get();
  std::lock_guard<std::mutex> lock(starting_);
  if (system_ == nullptr) {
    Start(config);
  } else if (config != nullptr && config != config_) {
    return absl::FailedPreconditionError(
        StrCat("the actor system of ", options_.name, " has been made with another configuration"));
  }
  return system_.get();
}

void ActorHost::Start(caf::actor_system_config* config) {
  if (config == nullptr) {
    own_config_ = std::make_unique<caf::actor_system_config>();
    own_config_->set("scheduler.policy", caf::atom("sharing"));
    own_config_->set("scheduler.max-threads", uint64_t{2});
  }
  caf::actor_system_config* const used = config != nullptr ? config : own_config_.get();
  caf::put(used->content, Identity::kSetting, static_cast<int64_t>(options_.incarnation));
  used->add_message_types<caf::id_block::troupe>();
  used->load<Identity>();
  config_ = config;
  const ScopedBlockSignals blocked;
  system_ = std::make_unique<caf::actor_system>(*used);
  system_->await_actors_before_shutdown(false);
  proxies_ = std::make_unique<caf::proxy_registry>(*system_, *this);
  runner_ = system_->spawn<caf::hidden>(
      [this]() -> caf::behavior { return {[this](caf::ok_atom) { RunLater(); }}; });
  started_.store(true, std::memory_order_release);
}

void ActorHost::Disconnect() {
  std::vector<uint64_t> nodes;
  std::map<std::string, Publication> publications;
  std::map<uint64_t, Call> calls;
  std::deque<std::function<void()>> later;  // With actors, which end without the lock.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    later.swap(later_);
    for (const auto& [node, process] : processes_) nodes.push_back(node);
    publications.swap(publications_);
    calls.swap(calls_);
  }
  for (auto& [id, call] : calls) call.done(absl::CancelledError("the node has left"));
  for (uint64_t node : nodes) Lose(node);
  if (proxies_ != nullptr) proxies_->clear();
  FailRequests([](const Request&) { return true; });
}

bool ActorHost::idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return requests_.empty() && unknown_.empty() && calls_.empty() && later_.empty() &&
         !running_later_;
}

ActorHost::~ActorHost() {
  Disconnect();
  roles_.clear();
  runner_ = nullptr;
  proxies_.reset();
  if (system_ == nullptr) return;
  // Actors that are registered when their system ends would end without it.
  for (caf::actor_id id = system_->latest_actor_id(); id > 0; --id) system_->registry().erase(id);
  system_.reset();
}

caf::strong_actor_ptr ActorHost::make_proxy(caf::node_id node, caf::actor_id actor) {
  const uint64_t incarnation = Identity::IncarnationOf(node);
  Count counted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    counted = speaker_;
    const bool full = counted != nullptr && *counted >= kMostProxies;
    if (incarnation == 0 || actor == 0 || over_ || full) {
      // The registry keeps the name.
      if (counted != nullptr) refused_.emplace_back(std::move(node), actor);
      return nullptr;
    }
    watches_.emplace_back(incarnation, actor);
  }
  caf::actor_config config;
  return caf::make_actor<Proxy, caf::strong_actor_ptr>(
      actor, std::move(node), system_.get(), config, this, incarnation, std::move(counted));
}

caf::strong_actor_ptr ActorHost::HandleOf(uint64_t node, caf::actor_id actor) {
  if (node == 0) return nullptr;
  if (node == options_.incarnation) return system().registry().get(actor);
  system();
  caf::strong_actor_ptr handle = proxies_->get_or_put(Identity::IdOf(node), actor);
  SendWatches();
  return handle;
}

// ---- Frames ----

void ActorHost::OnFrameTick() {
  KeepGoing([&] {
    const Clock::time_point now = options_.now();
    std::vector<Done> late;
    std::vector<PeerId> ping;
    std::vector<std::shared_ptr<Peer>> silent, unanswered;
    std::vector<caf::strong_actor_ptr> roles;
    std::vector<std::shared_ptr<Window>> owing;
    std::vector<std::pair<uint64_t, PeerId>> unconnected;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto it = calls_.begin(); it != calls_.end();) {
        if (it->second.deadline > now) {
          ++it;
          continue;
        }
        late.push_back(std::move(it->second.done));
        it = calls_.erase(it);
      }
      for (auto& [node, process] : processes_) {
        if (process.unanswered && process.peer != nullptr) unanswered.push_back(process.peer);
      }
      if (owes_credits_.exchange(false)) {
        for (const auto& [key, window] : windows_) owing.push_back(window);
      }
      if (now >= next_ping_) {
        next_ping_ = now + kPingInterval;
        for (const auto& [key, role] : roles_) roles.push_back(role);
        for (auto& [node, process] : processes_) {
          if (process.peer == nullptr) unconnected.emplace_back(node, process.id);
          if (!process.pings || process.peer == nullptr) continue;
          ping.push_back(process.id);
          // Part of something large is a sign of life, too.
          const uint64_t received = process.peer->stats().bytes_received;
          if (received != process.received) process.unheard = 0;
          process.received = received;
          if (++process.unheard * kPingInterval > options_.silence) silent.push_back(process.peer);
        }
      }
    }
    for (PeerId id : ping) options_.links->SendFrame(id, Fields(kPing), {});
    for (const auto& peer : silent) {
      peer->Close("nothing is heard of its actors", std::chrono::milliseconds(0));
    }
    for (const auto& peer : unanswered) {
      peer->Close("an answer to one of its actors could not be sent", std::chrono::milliseconds(0));
    }
    for (const auto& window : owing) window->TellIfDue();
    if (!unconnected.empty()) LoseThoseThatLeft(unconnected);
    if (!ping.empty()) AnnounceAgain();
    for (const caf::strong_actor_ptr& role : roles) EndIfOver(role);
    for (Done& done : late) done(absl::DeadlineExceededError("no answer in time"));
  });
}

void ActorHost::OnFrame(PeerId id, const std::shared_ptr<Peer>& peer, std::string body,
                        std::vector<Tensor> tensors, const absl::Status& whole) {
  const uint64_t from = peer->info().incarnation;
  Count proxies;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = processes_.find(from);
    if (over_ || it == processes_.end() || it->second.peer != peer) return;
    it->second.pings = true;
    proxies = speaker_ = it->second.proxies;
  }
  KeepGoing([&] { OnFrameOf(from, id, std::move(body), std::move(tensors), whole); });
  std::vector<std::pair<caf::node_id, caf::actor_id>> refused;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    speaker_ = nullptr;
    refused.swap(refused_);
  }
  for (const auto& [node, actor] : refused) proxies_->erase(node, actor);
  if (*proxies < kMostProxies) return;
  KeepGoing([&] {
    peer->Close(StrCat("it names ", kMostProxies, " actors"), std::chrono::milliseconds(0));
  });
}

void ActorHost::OnFrameOf(uint64_t from, PeerId id, std::string body, std::vector<Tensor> tensors,
                          const absl::Status& whole) {
  WireReader reader(body);
  uint8_t kind = 0;
  uint64_t number = 0;
  if (!reader.Number(&kind) || kind == kPing) return;
  if (kind == kMembers) {
    if (options_.members_changed && id < kFirstClient) options_.members_changed(id);
    return;
  }
  // What was sent to an earlier life, before the connection to this one was made.
  if (IsForLife(kind) && (!reader.Number(&number) || number != options_.incarnation)) return;
  if (!started_.load(std::memory_order_acquire)) system();
  switch (kind) {
    case kSend:
      return OnSend(from, &reader, body, std::move(tensors), whole);
    case kWatch:
      if (!reader.Number(&number)) return;
      if (const caf::strong_actor_ptr actor = system().registry().get(number)) {
        return Watch(from, actor);
      }
      // Perhaps it had asked the one that watches it now.
      ForgetRequestsOf(number);
      return TellDown(from, number, caf::make_error(caf::exit_reason::unknown));
    case kLink:
    case kUnlink:
      return OnLink(kind, from, &reader);
    case kDown:
      return OnDown(from, &reader, body);
    case kCredit: {
      int64_t messages = 0, bytes = 0;
      if (!reader.Number(&number) || !reader.Number(&messages) || !reader.Number(&bytes)) return;
      const caf::strong_actor_ptr proxy = proxies_->get(Identity::IdOf(from), number);
      if (proxy != nullptr && messages >= 0 && bytes >= 0) {
        static_cast<Proxy*>(proxy->get())->GiveBack(messages, bytes);
      }
      return;
    }
    case kUnpublish: {
      std::string name;
      if (!reader.String(&name, kMostNameBytes)) return;
      std::unique_ptr<PublishedActor> local;  // Ends without the lock.
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = publications_.find(name);
      if (it == publications_.end() || it->second.incarnation != from) return;
      local = std::move(it->second.local);
      publications_.erase(it);
      return;
    }
    case kAnswer: {
      int32_t code = 0;
      std::string_view rest;
      if (!reader.Number(&number) || !reader.Number(&code) || !reader.Raw(reader.left(), &rest)) {
        return;
      }
      Done done;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto it = calls_.find(number);
        if (it == calls_.end() || it->second.to != id) return;
        done = std::move(it->second.done);
        calls_.erase(it);
      }
      return code == 0 ? done(std::string(rest))
                       : done(absl::Status(static_cast<absl::StatusCode>(code), std::string(rest)));
    }
    default: {
      if (!reader.Number(&number)) return;
      const absl::StatusOr<std::string> answer =
          CatchExceptions([&] { return OnQuestion(kind, from, &reader); });
      std::string frame = Fields(kAnswer);
      WireWriter writer(&frame);
      writer.Number(number);
      writer.Number(static_cast<int32_t>(answer.status().code()));
      writer.Raw(answer.ok() ? *answer : std::string(answer.status().message()));
      options_.links->SendFrame(id, std::move(frame), {});
    }
  }
}

}  // namespace troupe
