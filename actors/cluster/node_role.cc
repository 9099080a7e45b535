#include "actors/cluster/node_role.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {
// What a peer says is believed within limits.
constexpr ClusterTime kShortestTimeout = kSecond / 10;
}  // namespace

NodeRole::NodeRole(Options options, Outbox* outbox, WorkerEngine* worker_engine,
                   MasterEngine* master_engine, ClusterTime now)
    : options_(std::move(options)),
      calls_({options_.task, options_.incarnation}, outbox),
      detector_(options_.health),
      known_from_(now + options_.health.timeout),
      outbox_(outbox) {
  for (PeerId i = 0; i < options_.tasks.size(); ++i) {
    if (!options_.task.empty() && options_.tasks[i].name == options_.task) {
      self_ = i;
    } else {
      detector_.Add(i, now);
    }
  }
  if (worker_engine != nullptr) {
    worker_ = std::make_unique<WorkerRole>(options_.worker, &calls_, worker_engine);
    worker_->set_members([this](cluster::Message* status) { ListMembers(status); });
  }
  if (master_engine != nullptr) {
    MasterRole::Options master = options_.master;
    master.self = self_;
    // A step that failed because one task was lost is answered before two timeouts have passed.
    master.grace = std::min(master.grace, options_.health.timeout / 2);
    master.seed = options_.incarnation;
    master_ = std::make_unique<MasterRole>(master, options_.tasks, &calls_, master_engine);
  }
  if (master_ != nullptr && worker_engine != nullptr) {
    cluster::Message status;
    for (cluster::DeviceInfo& device : worker_engine->Devices()) {
      *status.add_devices() = std::move(device);
    }
    master_->OnTaskUp(self_, options_.incarnation, status, now);
  }
}

std::string NodeRole::Describe(PeerId peer) const {
  if (peer >= options_.tasks.size()) return "a client";
  const MasterRole::Task& task = options_.tasks[peer];
  return task.name.empty() ? task.address : StrCat(task.name, " (", task.address, ")");
}

bool NodeRole::Admit(PeerId from, const cluster::Message& message) {
  absl::Status error;
  if (message.version() != kProtocolVersion) {
    error = absl::FailedPreconditionError(StrCat(
        "protocol version ", message.version(), " is not spoken here: ", Describe(self_),
        " speaks version ", kProtocolVersion, "; run the same version of Troupe everywhere"));
  } else if (message.incarnation() == 0) {
    error = InvalidArgument("a message without an incarnation");
  } else if (from < options_.tasks.size() && from != self_ && !options_.tasks[from].name.empty() &&
             message.task() != options_.tasks[from].name) {
    error = InvalidArgument("at ", options_.tasks[from].address, " serves ",
                            message.task().empty() ? "nobody" : message.task(), ", not ",
                            options_.tasks[from].name,
                            "; give all tasks the same description of the cluster");
  } else if (from >= kFirstClient && IsTask(message.task())) {
    error = absl::AlreadyExistsError(
        StrCat(message.task(), " is not expected at ", message.address(),
               "; are there two tasks of one name, or two descriptions of the cluster?"));
  } else if (message.to_incarnation() != 0 && message.to_incarnation() != options_.incarnation) {
    error = absl::AbortedError(StrCat("the message is for an earlier life of ", Describe(self_),
                                      ", which has been restarted"));
  } else if (detector_.IsEarlierLife(from, message.incarnation())) {
    error = absl::AbortedError(StrCat("the message is from an earlier life of ", Describe(from)));
  }
  if (error.ok()) return true;
  OnRefused(from, error);
  if (message.kind() != cluster::PING || !absl::IsAborted(error)) Refuse(from, message, error);
  return false;
}

void NodeRole::Refuse(PeerId from, const cluster::Message& message, const absl::Status& why) {
  const bool ping = message.kind() == cluster::PING;
  if (!ping && message.kind() != cluster::REQUEST) return;
  cluster::Message answer;
  answer.set_kind(ping ? cluster::PONG : cluster::REPLY);
  answer.set_id(message.id());
  answer.set_code(static_cast<int>(why.code()));
  answer.set_error(std::string(why.message()));
  calls_.Send(from, std::move(answer));
}

bool NodeRole::IsTask(const std::string& name) const {
  for (const MasterRole::Task& task : options_.tasks) {
    if (!name.empty() && task.name == name) return true;
  }
  return false;
}

void NodeRole::OnRefused(PeerId from, const absl::Status& why) {
  // Who waits for the peer learns why it does not count. An earlier life is no reason to give.
  if (from >= options_.tasks.size() || absl::IsAborted(why)) return;
  refusal_ = why;
  if (master_ != nullptr) master_->OnTaskRefused(from, why);
}

void NodeRole::OnMessage(PeerId from, cluster::Message message, ClusterTime now) {
  now_ = now;
  if (!Admit(from, message)) return;
  if (message.kind() == cluster::PONG && message.code() != 0) {
    OnRefused(from, StatusOf(message));
    return;
  }
  if (from != self_) {
    if (from < options_.tasks.size()) {
      Handle(detector_.Heard(from, message.incarnation(), now), now, "it was restarted");
    } else if (!stopped_ && local_clients_.count(from) == 0) {
      clients_[from] = now;
    }
  }
  switch (message.kind()) {
    case cluster::REQUEST:
      OnRequest(from, std::move(message), now);
      return;
    case cluster::REPLY:
      calls_.OnReply(from, std::move(message));
      return;
    case cluster::PING: {
      cluster::Message pong;
      pong.set_kind(cluster::PONG);
      pong.set_timeout_us(options_.health.timeout);
      pong.set_address(Address());
      calls_.Send(from, std::move(pong));
      return;
    }
    case cluster::PONG:
      // A client notices as soon as the cluster's own tasks do.
      if (options_.task.empty() && message.timeout_us() >= kShortestTimeout &&
          message.timeout_us() < detector_.options().timeout) {
        detector_.set_options({std::min(detector_.options().interval, message.timeout_us() / 5),
                               static_cast<ClusterTime>(message.timeout_us())});
      }
      return;
    default:
      return;
  }
}

void NodeRole::OnRequest(PeerId from, cluster::Message message, ClusterTime now) {
  if (!calls_.Accept(from, message)) return;
  const Responder responder{from, message.id()};
  try {
    Serve(responder, std::move(message), now);
  } catch (...) {
    calls_.Reply(responder, StatusOfException());  // Unless it was answered before.
  }
}

void NodeRole::Serve(Responder responder, cluster::Message message, ClusterTime now) {
  const PeerId from = responder.from;
  const cluster::Method method = message.method();
  const bool ends_something =
      method == cluster::CLEANUP_GRAPH || method == cluster::DELETE_WORKER_SESSION ||
      method == cluster::DEREGISTER_GRAPH || method == cluster::CLOSE_SESSION ||
      method == cluster::CANCEL || method == cluster::GET_STATUS;
  if (method == cluster::GET_STATUS && message.reset() && worker_ != nullptr &&
      from < options_.tasks.size()) {
    worker_->FailSteps({message.ids().begin(), message.ids().end()},
                       absl::UnavailableError(
                           StrCat("lost ", Describe(from), ": it had lost sight of this task")));
  }
  if (stopped_ || (draining_ && !ends_something)) {
    calls_.Reply(responder, absl::UnavailableError(StrCat(Describe(self_), " is stopping")));
  } else if (method == cluster::JOIN_CLUSTER || method == cluster::ADD_TASK) {
    OnJoin(responder, message, now);
  } else if (message.method() >= cluster::CREATE_SESSION) {
    if (master_ != nullptr) {
      master_->OnRequest(responder, std::move(message), now);
    } else {
      calls_.Reply(responder, absl::UnimplementedError("this is not a master"));
    }
  } else if (worker_ != nullptr) {
    worker_->OnRequest(responder, std::move(message), now);
  } else {
    calls_.Reply(responder, absl::UnimplementedError("this is not a worker"));
  }
}

void NodeRole::Handle(const std::vector<FailureDetectorRole::Event>& events, ClusterTime now,
                      const std::string& why) {
  using Change = FailureDetectorRole::Change;
  for (const FailureDetectorRole::Event& event : events) {
    switch (event.change) {
      case Change::kPing: {
        if (options_.joining) break;
        cluster::Message ping;
        ping.set_kind(cluster::PING);
        ping.set_address(Address());
        calls_.Send(event.peer, std::move(ping));
        break;
      }
      case Change::kSuspected:
        break;
      case Change::kLost:
        lost_.insert(event.peer);
        Lost(event.peer, why, now);
        if (watcher_) watcher_(event.peer, event.change, event.incarnation);
        break;
      case Change::kUp:
        if (master_ != nullptr) AskStatus(event.peer, event.incarnation);
        if (watcher_) watcher_(event.peer, event.change, event.incarnation);
        break;
    }
  }
}

void NodeRole::Lost(PeerId peer, const std::string& why, ClusterTime now) {
  const absl::Status status = absl::UnavailableError(StrCat("lost ", Describe(peer), ": ", why));
  calls_.FailPeer(peer, status);
  calls_.ForgetPeer(peer);
  if (master_ != nullptr) {
    master_->OnTaskLost(peer, status);
    master_->OnClientLost(peer, now);
  }
  if (worker_ != nullptr) worker_->OnPeerLost(peer, options_.tasks[peer].name, status);
}

void NodeRole::AskStatus(PeerId peer, uint64_t incarnation) {
  cluster::Message request;
  request.set_method(cluster::GET_STATUS);
  // What was under way between the two may have been lost without the other one knowing: steps that
  // have ended here may wait there, or begin later, for values that never came.
  if (worker_ != nullptr && lost_.count(peer) != 0) {
    request.set_reset(true);
    for (uint64_t id : worker_->EndedStepsWith(options_.tasks[peer].name)) request.add_ids(id);
  }
  calls_.Call(
      peer, incarnation, std::move(request), now_, options_.health.timeout,
      [this, peer, incarnation](const absl::Status& status, cluster::Message reply) {
        if (stopped_ || detector_.incarnation(peer) != incarnation || !detector_.alive(peer)) {
          return;
        }
        if (status.ok()) {
          if (!options_.task.empty()) AddMembers(reply, now_);
          master_->OnTaskUp(peer, incarnation, reply, now_);
        } else if (status.code() == absl::StatusCode::kUnavailable ||
                   status.code() == absl::StatusCode::kDeadlineExceeded) {
          // It lives, but the question was lost.
          AskStatus(peer, incarnation);
        } else if (absl::IsAborted(status)) {
          // It takes this life for an earlier one, until it hears more of it.
          ask_again_[peer] = incarnation;
        }
      });
}

void NodeRole::OnLinkUp(PeerId peer, uint64_t incarnation, ClusterTime now) {
  now_ = now;
  if (peer < options_.tasks.size()) {
    Handle(detector_.Heard(peer, incarnation, now), now, "it was restarted");
  } else if (!stopped_) {
    clients_[peer] = now;
  }
}

void NodeRole::OnUnreachable(PeerId peer, const std::vector<uint64_t>& steps,
                             const absl::Status& why, ClusterTime now) {
  now_ = now;
  lost_.insert(peer);
  calls_.FailPeer(peer, why);
  OnRefused(peer, why);
  if (worker_ == nullptr) return;
  for (uint64_t step : steps) worker_->OnSendFailed(step, why);
}

void NodeRole::OnLinkDown(PeerId peer, ClusterTime now) {
  now_ = now;
  if (peer < options_.tasks.size()) {
    lost_.insert(peer);
    Handle(detector_.LinkDown(peer, now), now, "its connection broke");
    calls_.FailPeer(peer, absl::UnavailableError(StrCat("lost ", Describe(peer))));
    return;
  }
  clients_.erase(peer);
  local_clients_.erase(peer);
  calls_.ForgetPeer(peer);
  if (master_ != nullptr) master_->OnClientLost(peer, now);
}

void NodeRole::Tick(ClusterTime now) {
  now_ = now;
  Handle(detector_.Tick(now), now,
         StrCat("nothing has been heard of it for ", detector_.options().timeout / 1000, " ms"));
  std::vector<PeerId> silent;
  for (const auto& [client, heard] : clients_) {
    if (now - heard >= options_.health.timeout * 3 / 2) silent.push_back(client);
  }
  for (PeerId client : silent) OnLinkDown(client, now);
  for (const auto& [peer, incarnation] : std::exchange(ask_again_, {})) {
    if (detector_.alive(peer) && detector_.incarnation(peer) == incarnation) {
      AskStatus(peer, incarnation);
    }
  }
  calls_.Tick(now);
  if (worker_ != nullptr) worker_->Tick(now);
  if (master_ != nullptr) master_->Tick(now);
}

void NodeRole::Stop(ClusterTime now) {
  stopped_ = true;
  if (master_ != nullptr) master_->Stop(now);
  if (worker_ != nullptr) {
    worker_->AbortAll(absl::UnavailableError(StrCat(Describe(self_), " is stopping")));
  }
}

uint64_t NodeRole::Call(PeerId to, cluster::Message request, ClusterTime now, ClusterTime timeout,
                        Calls::Done done) {
  return calls_.Call(to, detector_.incarnation(to), std::move(request), now, timeout,
                     std::move(done));
}

}  // namespace troupe
