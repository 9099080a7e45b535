#include "actors/cluster/worker_role.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {
// Values that are late by more than so many steps do not exist.
constexpr size_t kForgotten = 8192;
// A request to make what the one to delete it has overtaken comes soon or never.
constexpr size_t kClosed = 1024;

/// A registered graph, among the names of sessions.
std::string GraphName(const cluster::Message& request) {
  return StrCat(request.session(), " ", request.handle());
}

/// The master learns what nodes cost with a session's 8th step, and with every 8th as many later.
bool TellsCosts(uint64_t num_steps) {
  if (num_steps < 8) return false;
  while (num_steps % 8 == 0) num_steps /= 8;
  return num_steps == 1;
}
}  // namespace

void WorkerRole::OnRequest(Responder from, cluster::Message request, ClusterTime now) {
  now_ = now;
  switch (request.method()) {
    case cluster::GET_STATUS: {
      cluster::Message reply;
      if (members_) members_(&reply);
      for (cluster::DeviceInfo& device : engine_->Devices()) {
        *reply.add_devices() = std::move(device);
      }
      calls_->Reply(from, absl::OkStatus(), std::move(reply));
      return;
    }
    case cluster::CREATE_WORKER_SESSION:
      CreateSession(from, request);
      return;
    case cluster::DELETE_WORKER_SESSION:
      DeleteSession(request.session(), absl::CancelledError("the session has been closed"));
      RememberClosed(request.session());
      calls_->Reply(from, absl::OkStatus());
      return;
    case cluster::REGISTER_GRAPH:
      Register(from, std::move(request));
      return;
    case cluster::DEREGISTER_GRAPH: {
      auto it = sessions_.find(request.session());
      const bool known = it != sessions_.end();
      if (!known || it->second.master == from.from) {
        if (known && it->second.graphs.erase(request.handle()) != 0) {
          engine_->Deregister(request.session(), request.handle());
        } else {
          RememberClosed(GraphName(request));  // REGISTER_GRAPH may still come.
        }
      }
      calls_->Reply(from, absl::OkStatus());
      return;
    }
    case cluster::RUN_GRAPH:
      Run(from, std::move(request), now);
      return;
    case cluster::FEED_GRAPH:
      Feed(from, std::move(request), now);
      return;
    case cluster::CLEANUP_GRAPH: {
      absl::Status reason = absl::CancelledError("the master has ended the step");
      if (!request.error().empty()) reason = absl::CancelledError(request.error());
      Abort(request.step(), reason, true);
      if (steps_.count(request.step()) == 0) Forget(request.step());
      calls_->Reply(from, absl::OkStatus());
      return;
    }
    case cluster::CLEANUP_ALL:
      engine_->ResetContainers({request.containers().begin(), request.containers().end()});
      calls_->Reply(from, absl::OkStatus());
      return;
    default:
      calls_->Reply(from, absl::UnimplementedError(
                              StrCat("a worker does not know method ", request.method())));
  }
}

void WorkerRole::RememberClosed(const std::string& name) {
  if (closed_.insert(name).second) closings_.push_back(name);
  if (closings_.size() > kClosed) {
    closed_.erase(closings_.front());
    closings_.pop_front();
  }
}

void WorkerRole::CreateSession(Responder from, const cluster::Message& request) {
  if (request.session().empty()) {
    calls_->Reply(from, InvalidArgument("a session needs a name"));
    return;
  }
  if (closed_.count(request.session()) != 0) {
    calls_->Reply(from, absl::CancelledError("the session has been closed"));
    return;
  }
  auto it = sessions_.find(request.session());
  if (it != sessions_.end()) {
    if (it->second.master != from.from) {
      calls_->Reply(from, absl::AlreadyExistsError(
                              StrCat("session ", request.session(), " belongs to another master")));
      return;
    }
    // The master has lost sight of this task for a while: what it left here is forgotten.
    if (request.reset()) {
      DeleteSession(request.session(), absl::AbortedError("the master has begun anew"));
    }
  }
  sessions_[request.session()].master = from.from;
  calls_->Reply(from, absl::OkStatus());
}

void WorkerRole::DeleteSession(const std::string& name, const absl::Status& status) {
  auto it = sessions_.find(name);
  if (it == sessions_.end()) return;
  sessions_.erase(it);
  std::vector<uint64_t> steps;
  for (const auto& [id, step] : steps_) {
    if (step.session == name) steps.push_back(id);
  }
  std::sort(steps.begin(), steps.end());
  for (uint64_t id : steps) Abort(id, status, true);
  engine_->DeleteSession(name);
}

void WorkerRole::Register(Responder from, cluster::Message request) {
  auto it = sessions_.find(request.session());
  if (it == sessions_.end() || it->second.master != from.from) {
    ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
    return;
  }
  if (closed_.count(GraphName(request)) != 0) {
    calls_->Reply(from, absl::CancelledError("the graph has been given up"));
    return;
  }
  const std::string session = request.session(), handle = request.handle();
  if (handle.empty() || !it->second.graphs.insert(handle).second) {
    calls_->Reply(from, absl::AlreadyExistsError(
                            StrCat("graph \"", handle, "\" of session ", session, " exists")));
    return;
  }
  it->second.compiling.insert(handle);
  const auto done = [this, from, session, handle](absl::Status status) {
    auto found = sessions_.find(session);
    if (found == sessions_.end()) {
      if (status.ok()) status = absl::CancelledError("the session was deleted meanwhile");
    } else {
      found->second.compiling.erase(handle);
      if (!status.ok()) {
        found->second.graphs.erase(handle);
      } else if (found->second.graphs.count(handle) == 0) {
        status = absl::CancelledError("the graph was given up meanwhile");
        engine_->Deregister(session, handle);
      }
    }
    calls_->Reply(from, status);
  };
  try {
    engine_->Register(std::move(request), done);
  } catch (...) {  // Then it has not begun.
    done(StatusOfException());
  }
}

void WorkerRole::ReplyUnknown(Responder to, const std::string& what) {
  // It may have been forgotten because the master could not be heard for a while.
  cluster::Message reply;
  reply.set_reset(true);
  calls_->Reply(to, absl::NotFoundError(what), std::move(reply));
}

void WorkerRole::Run(Responder from, cluster::Message request, ClusterTime now) {
  const uint64_t id = request.step();
  auto session = sessions_.find(request.session());
  if (session == sessions_.end() || session->second.master != from.from) {
    ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
    return;
  }
  if (session->second.graphs.count(request.handle()) == 0 ||
      session->second.compiling.count(request.handle()) != 0) {
    ReplyUnknown(from, StrCat("session ", request.session(), " has no graph ", request.handle()));
    return;
  }
  absl::Status error;
  if (auto failed_step = failed_steps_.find(id); failed_step != failed_steps_.end()) {
    error = failed_step->second;
  } else if (forgotten_.count(id) != 0) {
    error = absl::CancelledError("the step was cancelled before it began");
  } else if (steps_.count(id) != 0) {
    error = absl::AlreadyExistsError(StrCat("step ", id, " runs already"));
  }
  if (!error.ok()) {
    calls_->Reply(from, error);
    return;
  }
  Step& step = steps_[id];
  step.traced = request.trace();
  step.master = from;
  step.session = request.session();
  step.tells_costs = TellsCosts(++session->second.num_steps);
  step.tasks.assign(request.tasks().begin(), request.tasks().end());
  try {
    engine_->Start(std::move(request),
                   [this, id](const absl::Status& status, std::vector<TensorProto> fetches) {
                     OnStepDone(id, status, std::move(fetches));
                   });
  } catch (...) {  // Then it has not begun.
    OnStepDone(id, StatusOfException(), {});
    return;
  }
  if (auto early = early_.find(id); early != early_.end()) {
    auto feeds = std::move(early->second.feeds);
    num_early_ -= feeds.size();
    early_bytes_ -= early->second.bytes;
    early_.erase(early);
    for (auto& [feeder, feed] : feeds) Feed(feeder, std::move(feed), now);
  }
}

void WorkerRole::RefuseFeed(Responder from, uint64_t step) {
  // If it has failed, the answer to RUN_GRAPH says why.
  cluster::Message reply;
  reply.set_derived(true);
  calls_->Reply(from, absl::AbortedError(StrCat("step ", step, " does not run here")),
                std::move(reply));
}

void WorkerRole::Feed(Responder from, cluster::Message request, ClusterTime now) {
  const uint64_t id = request.step();
  auto step = steps_.find(id);
  if (step == steps_.end() && forgotten_.count(id) == 0 && num_early_ < options_.max_early_feeds) {
    // It has overtaken RUN_GRAPH.
    const int64_t bytes = static_cast<int64_t>(request.ByteSizeLong());
    if (bytes <= options_.max_early_bytes - early_bytes_) {
      Early& early = early_[id];
      if (early.feeds.empty()) early.since = now;
      early.bytes += bytes;
      early_bytes_ += bytes;
      ++num_early_;
      early.feeds.emplace_back(from, std::move(request));
      return;
    }
  }
  if (step == steps_.end() || step->second.master.from != from.from) {
    RefuseFeed(from, id);
    return;
  }
  const bool taken =
      engine_->Feed(std::move(request),
                    [this, from](const absl::Status& status, std::vector<TensorProto> fetches) {
                      cluster::Message reply;
                      reply.set_derived(!status.ok());
                      for (TensorProto& fetch : fetches) *reply.add_tensors() = std::move(fetch);
                      calls_->Reply(from, status, std::move(reply));
                    });
  if (!taken) RefuseFeed(from, id);
}

void WorkerRole::OnStepDone(uint64_t id, const absl::Status& status,
                            std::vector<TensorProto> fetches) {
  auto it = steps_.find(id);
  if (it == steps_.end()) return;
  Step step = std::move(it->second);
  steps_.erase(it);
  KeepGoing([&] {
    Forget(id);
    if (!step.tasks.empty()) ended_.push_back({id, now_, std::move(step.tasks)});
    if (ended_.size() > kForgotten) ended_.pop_front();
  });
  cluster::Message reply;
  absl::Status result = status;
  try {
    if (step.traced) reply.set_metadata(engine_->TakeTrace(id));
    if (!status.ok() && !step.aborted.ok()) {
      result = step.aborted;
      reply.set_derived(step.derived);
    }
    if (result.ok()) {
      for (TensorProto& fetch : fetches) *reply.add_tensors() = std::move(fetch);
      if (step.tells_costs) engine_->AddCosts(step.session, &reply);
    }
  } catch (...) {  // The master waits for an answer, whatever it says.
    reply.Clear();
    result = StatusOfException();
  }
  calls_->Reply(step.master, result, std::move(reply));
}

void WorkerRole::Abort(uint64_t id, const absl::Status& status, bool derived) {
  auto it = steps_.find(id);
  if (it == steps_.end() || !it->second.aborted.ok()) return;
  it->second.aborted = status;
  it->second.derived = derived;
  engine_->Abort(id, status);
}

void WorkerRole::Forget(uint64_t id) {
  DropEarly(id);
  engine_->Forget(id);
  if (!forgotten_.insert(id).second) return;
  forget_order_.push_back(id);
  if (forget_order_.size() > kForgotten) {
    forgotten_.erase(forget_order_.front());
    failed_steps_.erase(forget_order_.front());
    forget_order_.pop_front();
  }
}

void WorkerRole::DropEarly(uint64_t id) {
  auto it = early_.find(id);
  if (it == early_.end()) return;
  auto feeds = std::move(it->second.feeds);
  num_early_ -= feeds.size();
  early_bytes_ -= it->second.bytes;
  early_.erase(it);
  for (const auto& [feeder, feed] : feeds) RefuseFeed(feeder, id);
}

void WorkerRole::OnPeerLost(PeerId peer, const std::string& task, const absl::Status& status) {
  std::vector<std::string> sessions;
  for (const auto& [name, session] : sessions_) {
    if (session.master == peer) sessions.push_back(name);
  }
  for (const std::string& name : sessions) DeleteSession(name, status);
  std::vector<uint64_t> steps;
  for (const auto& [id, step] : steps_) {
    if (std::find(step.tasks.begin(), step.tasks.end(), task) != step.tasks.end()) {
      steps.push_back(id);
    }
  }
  std::sort(steps.begin(), steps.end());
  for (uint64_t id : steps) Abort(id, status, false);
}

std::vector<uint64_t> WorkerRole::EndedStepsWith(const std::string& task) const {
  std::vector<uint64_t> ids;
  auto takes_part = [&](const std::vector<std::string>& tasks) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  for (const Ended& step : ended_) {
    if (takes_part(step.tasks)) ids.push_back(step.id);
  }
  for (const auto& [id, step] : steps_) {
    if (!step.aborted.ok() && takes_part(step.tasks)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

void WorkerRole::FailSteps(const std::vector<uint64_t>& ids, const absl::Status& status) {
  for (uint64_t id : ids) {
    if (steps_.count(id) != 0) {
      Abort(id, status, false);
    } else if (forgotten_.count(id) == 0) {
      Forget(id);
      failed_steps_[id] = status;
    }
  }
}

void WorkerRole::OnSendFailed(uint64_t step, const absl::Status& status) {
  Abort(step, status, false);
}

void WorkerRole::Tick(ClusterTime now) {
  now_ = now;
  while (!ended_.empty() && now - ended_.front().when > options_.early_lifetime) {
    ended_.pop_front();
  }
  std::vector<uint64_t> old;
  for (const auto& [id, early] : early_) {
    if (now - early.since >= options_.early_lifetime) old.push_back(id);
  }
  const absl::Status late = absl::UnavailableError(
      StrCat("values of the step have come ", options_.early_lifetime / kSecond,
             " s before the step itself, and were dropped"));
  FailSteps(old, late);
  FailSteps(engine_->DropEarly(now, options_.early_lifetime), late);
}

size_t WorkerRole::num_graphs() const {
  size_t count = 0;
  for (const auto& [name, session] : sessions_) count += session.graphs.size();
  return count;
}

void WorkerRole::AbortAll(const absl::Status& status) {
  std::vector<std::string> names;
  for (const auto& [name, session] : sessions_) names.push_back(name);
  for (const std::string& name : names) DeleteSession(name, status);
}

}  // namespace troupe
