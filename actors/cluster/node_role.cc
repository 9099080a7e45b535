#include "actors/cluster/node_role.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {
// What a peer says is believed within limits.
constexpr ClusterTime kShortestTimeout = kSecond / 10;
constexpr int kOffLevel = static_cast<int>(LogLevel::kOff);

cluster::Sender SenderOf(const NodeRole::Options& options) {
  cluster::Sender sender;
  sender.set_task(options.task);
  sender.set_incarnation(options.incarnation);
  for (const MasterRole::Task& task : options.tasks) {
    if (!options.task.empty() && task.name == options.task) sender.set_address(task.address);
  }
  return sender;
}

/// Goes on while a node is drained.
bool EndsSomething(const cluster::Message& request) {
  return request.has_cleanup_graph() || request.has_delete_worker_session() ||
         request.has_deregister_graph() || request.has_close_session() || request.has_cancel() ||
         request.has_get_status() || request.has_get_log() || request.has_leave_cluster();
}
}  // namespace

NodeRole::NodeRole(Options options, Outbox* outbox, WorkerEngine* worker_engine,
                   MasterEngine* master_engine, ClusterTime now)
    : options_(std::move(options)),
      calls_(SenderOf(options_), outbox),
      detector_(options_.health),
      known_from_(now + options_.health.timeout),
      worker_engine_(worker_engine) {
  for (PeerId i = 0; i < options_.tasks.size(); ++i) {
    if (!options_.task.empty() && options_.tasks[i].name == options_.task) {
      self_ = i;
    } else {
      detector_.Add(i, now);
    }
  }
  if (worker_engine != nullptr) {
    worker_ = std::make_unique<WorkerRole>(options_.worker, &calls_, worker_engine);
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
    master_->OnTaskUp(self_, options_.incarnation, worker_engine->Devices(), now);
  }
}

std::string NodeRole::Describe(PeerId peer) const {
  if (peer >= options_.tasks.size()) return "a client";
  const MasterRole::Task& task = options_.tasks[peer];
  return task.name.empty() ? task.address : StrCat(task.name, " (", task.address, ")");
}

bool NodeRole::Admit(PeerId from, const cluster::Message& message) {
  const cluster::Sender& sender = message.sender();
  if (HasLeft(from)) return false;
  absl::Status error;
  if (message.version() != kProtocolVersion) {
    error = absl::FailedPreconditionError(StrCat(
        "protocol version ", message.version(), " is not spoken here: ", Describe(self_),
        " speaks version ", kProtocolVersion, "; run the same version of Troupe everywhere"));
  } else if (sender.incarnation() == 0) {
    error = InvalidArgument("a message without an incarnation");
  } else if (from < options_.tasks.size() && from != self_ && !options_.tasks[from].name.empty() &&
             sender.task() != options_.tasks[from].name) {
    error = InvalidArgument("at ", options_.tasks[from].address, " serves ",
                            sender.task().empty() ? "nobody" : sender.task(), ", not ",
                            options_.tasks[from].name,
                            "; give all tasks the same description of the cluster");
  } else if (from >= kFirstClient && IsTask(sender.task())) {
    error = absl::AlreadyExistsError(
        StrCat(sender.task(), " is not expected at ", sender.address(),
               "; are there two tasks of one name, or two descriptions of the cluster?"));
  } else if (message.to_incarnation() != 0 && message.to_incarnation() != options_.incarnation) {
    error = absl::AbortedError(StrCat("the message is for an earlier life of ", Describe(self_),
                                      ", which has been restarted"));
  } else if (detector_.IsEarlierLife(from, sender.incarnation())) {
    error = absl::AbortedError(StrCat("the message is from an earlier life of ", Describe(from)));
  }
  if (error.ok()) return true;
  OnRefused(from, error);
  if (!message.has_ping() || !absl::IsAborted(error)) Refuse(from, message, error);
  return false;
}

void NodeRole::Refuse(PeerId from, const cluster::Message& message, const absl::Status& why) {
  if (!message.has_ping() && !IsRequest(message)) return;
  cluster::Message answer;
  if (message.has_ping()) answer.mutable_pong();
  answer.set_id(message.id());
  SetStatus(why, &answer);
  calls_.Send(from, std::move(answer));
}

void NodeRole::OnRefused(PeerId from, const absl::Status& why) {
  WriteLog(LevelOfRefusal(why), options_.task, {"refused"}, Describe(from), ": ", why.message());
  // Who waits for the peer learns why it does not count. An earlier life is no reason to give.
  if (from >= options_.tasks.size() || absl::IsAborted(why)) return;
  if (refusal_watcher_) refusal_watcher_(why);
  if (master_ != nullptr) master_->OnTaskRefused(from, why);
}

void NodeRole::OnMessage(PeerId from, cluster::Message message, ClusterTime now) {
  now_ = now;
  if (!Admit(from, message)) return;
  if (message.has_pong() && message.status().code() != 0) {
    return OnRefused(from, StatusOf(message.status()));
  }
  if (from != self_) {
    if (from < options_.tasks.size()) {
      Handle(detector_.Heard(from, message.sender().incarnation(), now), now, "it was restarted");
    } else if (!stopped_ && local_clients_.count(from) == 0) {
      clients_[from] = now;
    }
  }
  if (message.has_ping()) {
    if (stopped_) return;
    cluster::Message answer;
    answer.mutable_pong()->set_timeout_us(options_.health.timeout);
    answer.mutable_pong()->set_members(HashMembers());
    calls_.Send(from, std::move(answer));
  } else if (message.has_pong()) {
    OnPong(from, message.pong());
  } else if (message.has_status()) {
    calls_.OnReply(from, std::move(message));
  } else {
    OnRequest(from, std::move(message), now);
  }
}

void NodeRole::OnOwnMessage(cluster::Message message, ClusterTime now) noexcept {
  const uint64_t id = message.id();
  bool handled = false;
  KeepGoing([&] {
    OnMessage(self_, std::move(message), now);
    handled = true;
  });
  if (!handled) calls_.Break(id);
}

void NodeRole::OnPong(PeerId from, const cluster::Pong& pong) {
  // A client notices as soon as the cluster's own tasks do.
  if (options_.task.empty() && pong.timeout_us() >= kShortestTimeout &&
      pong.timeout_us() < detector_.options().timeout) {
    detector_.set_options({std::min(detector_.options().interval, pong.timeout_us() / 5),
                           static_cast<ClusterTime>(pong.timeout_us())});
  }
  const bool others = pong.members() != 0 && pong.members() != HashMembers();
  if (others && KnowsMembers() && !options_.joining && !asking_members_) AskMembers(from, now_);
}

void NodeRole::OnRequest(PeerId from, cluster::Message message, ClusterTime now) {
  if (!calls_.Accept(from, message)) return;
  const Responder responder{from, message.id(), message.sender().incarnation()};
  try {
    Serve(responder, std::move(message), now);
  } catch (...) {
    calls_.Reply(responder, StatusOfException());  // Unless it was answered before.
  }
}

void NodeRole::Serve(Responder responder, cluster::Message message, ClusterTime now) {
  if (stopped_ || (draining_ && !EndsSomething(message))) {
    return calls_.Reply(responder, absl::UnavailableError(StrCat(Describe(self_), " is stopping")));
  }
  switch (message.body_case()) {
    case cluster::Message::kGetStatus:
      if (worker_ == nullptr) break;
      return OnGetStatus(responder, message.get_status());
    case cluster::Message::kJoinCluster:
      return OnJoin(responder, message.join_cluster().task(), now);
    case cluster::Message::kAddTask:
      return OnAddTask(responder, message.add_task().task(), now);
    case cluster::Message::kGetLog:
      if (worker_ == nullptr) break;  // The lines of a client are nobody else's.
      return OnGetLog(responder, message.get_log());
    case cluster::Message::kLeaveCluster:
      return OnLeave(responder, message.leave_cluster().task(), now);
    default:
      break;
  }
  const bool for_master = message.body_case() >= cluster::Message::kCreateSession;
  if (for_master && master_ != nullptr) {
    master_->OnRequest(responder, std::move(message), now);
  } else if (!for_master && worker_ != nullptr) {
    worker_->OnRequest(responder, std::move(message), now);
  } else {
    calls_.Reply(responder, absl::UnimplementedError(for_master ? "this is not a master"
                                                                : "this is not a worker"));
  }
}

void NodeRole::OnGetStatus(Responder from, const cluster::GetStatusRequest& request) {
  if (from.from < options_.tasks.size()) {
    worker_->FailSteps({request.ended_steps().begin(), request.ended_steps().end()},
                       absl::UnavailableError(StrCat("lost ", Describe(from.from),
                                                     ": it had lost sight of this task")));
  }
  cluster::Message reply;
  cluster::GetStatusReply* status = reply.mutable_get_status_reply();
  ListMembers(status->mutable_tasks());
  for (cluster::DeviceInfo& device : worker_engine_->Devices()) {
    *status->add_devices() = std::move(device);
  }
  calls_.Reply(from, absl::OkStatus(), std::move(reply));
}

void NodeRole::OnGetLog(Responder from, const cluster::GetLogRequest& request) {
  cluster::Message reply;
  const auto least = static_cast<LogLevel>(std::clamp(request.level(), 0, kOffLevel));
  cluster::GetLogReply* log = reply.mutable_get_log_reply();
  for (std::string& line : RecentLog(options_.task, least, std::max(0, request.lines()))) {
    log->add_lines(std::move(line));
  }
  calls_.Reply(from, absl::OkStatus(), std::move(reply));
}

void NodeRole::Handle(const std::vector<FailureDetectorRole::Event>& events, ClusterTime now,
                      const std::string& why) {
  using Change = FailureDetectorRole::Change;
  for (const FailureDetectorRole::Event& event : events) {
    if (HasLeft(event.peer)) continue;
    switch (event.change) {
      case Change::kPing: {
        if (options_.joining || stopped_) break;
        cluster::Message ping;
        ping.mutable_ping();
        calls_.Send(event.peer, std::move(ping));
        break;
      }
      case Change::kSuspected:
        break;
      case Change::kLost:
        lost_.insert(event.peer);
        Lost(event.peer, absl::UnavailableError(StrCat("lost ", Describe(event.peer), ": ", why)),
             now);
        if (watcher_) watcher_(event.peer, event.change, event.incarnation);
        break;
      case Change::kUp:
        WriteLog(LogLevel::kInfo, options_.task, {"up"}, Describe(event.peer), " is up");
        if (KnowsMembers()) AskStatus(event.peer, event.incarnation);
        if (watcher_) watcher_(event.peer, event.change, event.incarnation);
        break;
    }
  }
}

void NodeRole::Lost(PeerId peer, const absl::Status& status, ClusterTime now) {
  WriteLog(LogLevel::kWarning, options_.task, {"lost"}, status.message());
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
  cluster::GetStatusRequest* ask = request.mutable_get_status();
  // What was under way between the two may have been lost without the other one knowing: steps that
  // have ended here may wait there, or begin later, for values that never came.
  if (lost_.count(peer) != 0 && master_ != nullptr) {
    std::vector<uint64_t> ended = master_->FailedStepsWith(peer);
    if (worker_ != nullptr) {
      const std::vector<uint64_t> here = worker_->EndedStepsWith(options_.tasks[peer].name);
      ended.insert(ended.end(), here.begin(), here.end());
    }
    ask->mutable_ended_steps()->Assign(ended.begin(), ended.end());
  }
  calls_.Call(
      peer, incarnation, std::move(request), now_, options_.health.timeout,
      [this, peer, incarnation](const absl::Status& status, cluster::Message reply) {
        if (stopped_ || detector_.incarnation(peer) != incarnation || !detector_.alive(peer)) {
          return;
        }
        if (status.ok()) {
          const cluster::GetStatusReply& its = reply.get_status_reply();
          if (KnowsMembers()) AddMembers(its.tasks(), now_);
          if (master_ == nullptr || !detector_.alive(peer)) return;  // It has left.
          master_->OnTaskUp(peer, incarnation, {its.devices().begin(), its.devices().end()}, now_);
        } else if (status.code() == absl::StatusCode::kUnavailable ||
                   status.code() == absl::StatusCode::kDeadlineExceeded) {
          // It lives, but the question was lost.
          AskStatus(peer, incarnation);
        } else if (absl::IsAborted(status) || absl::IsResourceExhausted(status)) {
          // It takes this life for an earlier one, until it hears more of it, or memory was short.
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
  if (worker_ != nullptr) worker_->OnPeerLost(peer, "", absl::UnavailableError("lost a client"));
}

void NodeRole::Tick(ClusterTime now) {
  // For a process that stood still, answers may be there to be read.
  const bool awake = now - now_ < options_.health.timeout / 2;
  now_ = now;
  Handle(detector_.Tick(now), now,
         StrCat("nothing has been heard of it for ", detector_.options().timeout / 1000, " ms"));
  const auto silent = [&](ClusterTime heard) {
    return now - heard >= options_.health.timeout * 3 / 2;
  };
  for (PeerId client : awake ? KeysIf(clients_, silent) : std::vector<PeerId>()) {
    OnLinkDown(client, now);
    // What a task's client says is heard, so its connection is half-open, or rests for ever.
    if (!options_.task.empty() && watcher_) {
      watcher_(client, FailureDetectorRole::Change::kLost, /*incarnation=*/0);
    }
  }
  while (!ask_again_.empty()) {
    const auto [peer, incarnation] = *ask_again_.begin();
    if (detector_.alive(peer) && detector_.incarnation(peer) == incarnation) {
      AskStatus(peer, incarnation);
    }
    ask_again_.erase(peer);
  }
  if (awake) calls_.Tick(now);
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
