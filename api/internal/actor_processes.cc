// The processes with which a host of actors has to do: how they are found, met and lost, and who is
// told of actors that have ended.
#include <utility>

#include "api/internal/actor_frames.h"
#include "api/internal/actor_host.h"
#include "api/internal/actor_protocol.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

using namespace actor_protocol;  // NOLINT: its own

// ---- Processes ----

void ActorHost::SendTo(uint64_t node, std::string body, std::vector<Tensor> tensors) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (running_later_ || !later_.empty()) {
      later_.push_back([this, node, body = std::move(body), tensors = std::move(tensors)] {
        SendNow(node, body, tensors);
      });
      lock.unlock();
      return RunLater();
    }
  }
  SendNow(node, std::move(body), std::move(tensors));
}

void ActorHost::SendNow(uint64_t node, std::string body, std::vector<Tensor> tensors) {
  PeerId id = 0;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (over_) return;
    const auto known = processes_.find(node);
    auto waiting = unknown_.find(node);
    if (known == processes_.end() || waiting != unknown_.end()) {
      const bool look = waiting == unknown_.end();
      if (look) waiting = unknown_.try_emplace(node).first;
      waiting->second.emplace_back(std::move(body), std::move(tensors));
      lock.unlock();
      if (look) LookFor(node);
      return;
    }
    id = known->second.id;
    known->second.pings = true;
  }
  options_.links->SendFrame(id, std::move(body), std::move(tensors));
}

void ActorHost::Flush(uint64_t node, PeerId id) {
  while (true) {
    std::vector<std::pair<std::string, std::vector<Tensor>>> frames;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = unknown_.find(node);
      if (it == unknown_.end()) return;
      frames.swap(it->second);
      // Until then what is sent goes behind these.
      if (frames.empty()) {
        unknown_.erase(it);
        return;
      }
    }
    for (auto& [body, tensors] : frames) {
      options_.links->SendFrame(id, std::move(body), std::move(tensors));
    }
  }
}

void ActorHost::LookFor(uint64_t node) {
  std::vector<PeerId> whom;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [incarnation, process] : processes_) {
      if (process.id < kFirstClient && process.peer != nullptr) whom.push_back(process.id);
    }
  }
  if (whom.empty()) return Lose(node);
  std::string fields;
  WireWriter(&fields).Number(node);
  auto left = std::make_shared<std::atomic<size_t>>(whom.size());
  for (PeerId task : whom) {
    Ask(task, kWhere, fields, options_.now() + kLookFor,
        [this, node, left](const absl::StatusOr<std::string>& answer) {
          const bool found = answer.ok() && OnWhere(node, *answer).ok();
          if (found || --*left > 0) return;
          std::unique_lock<std::mutex> lock(mutex_);
          if (processes_.count(node) != 0) return;
          lock.unlock();
          Lose(node);
        });
  }
}

absl::Status ActorHost::OnWhere(uint64_t node, std::string_view answer) {
  WireReader reader(answer);
  std::string name, address;
  if (!reader.String(&name, kMostNameBytes) || !reader.String(&address, kMostNameBytes)) {
    return Malformed();
  }
  PeerId id = ClientPeer(node);
  if (!name.empty() && name.front() == '/') {
    TROUPE_ASSIGN_OR_RETURN(const Links::Task task, options_.links->FindTask(name));
    id = task.id;
  } else {
    options_.links->SetTask(id, name, address);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return absl::CancelledError("the node has left");
    for (const auto& [other, process] : processes_) {
      // Who said so has not heard of it yet, or this process has not.
      if (other != node && process.id == id && process.peer != nullptr) {
        return absl::UnavailableError(StrCat("another life of ", name, " is connected"));
      }
    }
    Process& process = processes_[node];
    if (process.peer == nullptr) process.id = id;
    process.pings = true;
  }
  Flush(node, id);
  return absl::OkStatus();
}

void ActorHost::Lose(uint64_t node) {
  std::vector<Publication> gone;
  PeerId id = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = processes_.find(node); it != processes_.end()) {
      id = it->second.id;
      processes_.erase(it);
    }
    unknown_.erase(node);
    for (auto it = publications_.begin(); it != publications_.end();) {
      if (it->second.incarnation != node) {
        ++it;
        continue;
      }
      gone.push_back(std::move(it->second));
      it = publications_.erase(it);
    }
    for (auto& [actor, nodes] : watchers_) nodes.erase(node);
    ForgetWindows(node, /*actor=*/0);
  }
  if (id >= kFirstClient) options_.links->Forget(id);
  gone.clear();
  if (started_.load(std::memory_order_acquire)) proxies_->erase(Identity::IdOf(node));
  FailRequests([node](const Request& request) { return request.node == node; });
}

template <typename Fits>
std::vector<uint64_t> ActorHost::LivesAt(PeerId id, const Fits& fits) {
  std::vector<uint64_t> lives;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [node, process] : processes_) {
    if (process.id == id && fits(node, process)) lives.push_back(node);
  }
  return lives;
}

void ActorHost::OnOpened(PeerId id, const std::shared_ptr<Peer>& peer) {
  KeepGoing([&] {
    const uint64_t node = peer->info().incarnation;
    // Earlier lives, and an earlier connection to this one.
    const auto over = [node](uint64_t life, const Process& process) {
      return life != node || process.peer != nullptr;
    };
    for (uint64_t life : LivesAt(id, over)) Lose(life);
    std::vector<std::pair<std::string, caf::actor_id>> names;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Process& process = processes_[node];
      process.id = id;
      process.peer = peer;
      process.unheard = 0;
      for (const auto& [name, publication] : publications_) {
        if (publication.incarnation == options_.incarnation) {
          names.emplace_back(name, publication.actor);
        }
      }
    }
    Flush(node, id);
    if (id >= kFirstClient) return;
    // Members may have come and gone while there was no connection.
    if (options_.members_changed) options_.members_changed(id);
    for (const auto& [name, actor] : names) Announce(id, name, actor);
  });
}

void ActorHost::OnClosed(PeerId id, const std::shared_ptr<Peer>& peer) {
  KeepGoing([&] {
    const uint64_t node = peer->info().incarnation;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = processes_.find(node);
      if (it == processes_.end() || it->second.peer != peer) return;
    }
    FailCalls(id, absl::UnavailableError(StrCat("lost ", peer->info().ToString())));
    Lose(node);
  });
}

void ActorHost::OnUnreachable(PeerId id, const absl::Status& why) {
  KeepGoing([&] {
    const std::vector<uint64_t> nodes =
        LivesAt(id, [](uint64_t, const Process& process) { return process.peer == nullptr; });
    FailCalls(id, why);
    for (uint64_t node : nodes) Lose(node);
  });
}

void ActorHost::LoseThoseThatLeft(const std::vector<std::pair<uint64_t, PeerId>>& unconnected) {
  std::set<PeerId> known;
  for (const auto& [name, id] : options_.links->Tasks()) known.insert(id);
  for (const auto& [node, id] : unconnected) {
    if (known.count(id) != 0) continue;
    FailCalls(id, absl::UnavailableError("the task has left the cluster"));
    Lose(node);
  }
}

void ActorHost::OnTasksChanged() {
  // Tasks hear of it from one another.
  if (options_.runtime == nullptr) return;
  KeepGoing([&] {
    std::vector<PeerId> nodes;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [node, process] : processes_) {
        if (process.peer != nullptr && !process.peer->info().serves_at.empty() &&
            process.id >= kFirstClient) {
          nodes.push_back(process.id);
        }
      }
    }
    for (PeerId id : nodes) options_.links->SendFrame(id, Fields(kMembers), {});
  });
}

// ---- Ends of actors ----

void ActorHost::Watch(uint64_t from, const caf::strong_actor_ptr& actor) {
  const caf::actor_id id = actor->aid;
  bool first = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    first = watchers_.count(id) == 0;
    watchers_[id].insert(from);
  }
  if (!first) return;
  actor->get()->attach_functor([this, id](const caf::error& why) {
    KeepGoing([&] {
      ForgetRequestsOf(id);
      std::set<uint64_t> nodes;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto it = watchers_.find(id);
        if (over_ || it == watchers_.end()) return;
        nodes.swap(it->second);
        watchers_.erase(it);
        for (uint64_t node : nodes) ForgetWindows(node, id);
      }
      for (uint64_t node : nodes) TellDown(node, id, why);
    });
  });
}

void ActorHost::TellDown(uint64_t to, caf::actor_id actor, const caf::error& why) {
  const auto frame = [&](caf::error reason) -> std::string {
    std::string body = ForLife(kDown, to);
    WireWriter(&body).Number<uint64_t>(actor);
    caf::scoped_execution_unit unit(system_.get());
    std::vector<Tensor> none;
    FrameSerializer sink(&unit, &body, &none);
    return sink(reason) || !none.empty() ? "" : body;
  };
  std::string body = frame(why);
  if (body.empty()) body = frame(caf::make_error(caf::exit_reason::unknown));
  SendTo(to, std::move(body));
}

void ActorHost::SendWatches() {
  std::vector<std::pair<uint64_t, caf::actor_id>> watches;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    watches.swap(watches_);
  }
  for (const auto& [node, actor] : watches) {
    std::string body = ForLife(kWatch, node);
    WireWriter(&body).Number<uint64_t>(actor);
    SendTo(node, std::move(body));
  }
}

void ActorHost::OnDown(uint64_t from, WireReader* reader, std::string_view body) {
  uint64_t actor = 0;
  if (!reader->Number(&actor)) return;
  caf::scoped_execution_unit unit(system_.get());
  unit.proxy_registry_ptr(proxies_.get());
  std::vector<Tensor> none;
  FrameDeserializer source(&unit, body.substr(body.size() - reader->left()), &none);
  caf::error why;
  if (source(why)) why = caf::make_error(caf::exit_reason::unknown);
  proxies_->erase(Identity::IdOf(from), actor, why);
  FailRequests(
      [&](const Request& request) { return request.node == from && request.actor == actor; });
}

}  // namespace troupe
