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
// What a client may ask for.
constexpr ClusterTime kLongestTrace = 600 * kSecond;
constexpr int64_t kLargestTrace = 64 << 20;

bool Contains(const std::vector<std::string>& tasks, const std::string& task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

/// A registered graph, among the names of sessions.
std::string GraphName(const std::string& session, const std::string& handle) {
  return StrCat(session, " ", handle);
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
  switch (request.body_case()) {
    case cluster::Message::kCreateWorkerSession:
      return CreateSession(from, request.create_worker_session().session());
    case cluster::Message::kDeleteWorkerSession: {
      const std::string& name = request.delete_worker_session().session();
      DeleteSession(name, absl::CancelledError("the session has been closed"));
      RememberClosed(name);
      return calls_->Reply(from, absl::OkStatus());
    }
    case cluster::Message::kRegisterGraph:
      return Register(from, std::move(*request.mutable_register_graph()));
    case cluster::Message::kDeregisterGraph:
      return Deregister(from, request.deregister_graph());
    case cluster::Message::kRunGraph:
      return Run(from, std::move(*request.mutable_run_graph()));
    case cluster::Message::kFeedGraph:
      return Feed(from, std::move(*request.mutable_feed_graph()));
    case cluster::Message::kCleanupGraph: {
      const uint64_t step = request.cleanup_graph().step();
      Abort(step, absl::CancelledError(request.cleanup_graph().reason()), true);
      if (steps_.count(step) == 0) Forget(step);
      return calls_->Reply(from, absl::OkStatus());
    }
    case cluster::Message::kGetStates:
      return GetStates(from, request.get_states().session());
    case cluster::Message::kSetStates:
      return SetStates(from, request.set_states());
    case cluster::Message::kGetResources:
      return GetResources(from, request.get_resources());
    case cluster::Message::kSetResource:
      return SetResource(from, std::move(*request.mutable_set_resource()));
    case cluster::Message::kTrace:
      return Trace(from, request.trace());
    case cluster::Message::kCleanupAll: {
      const auto& containers = request.cleanup_all().containers();
      engine_->ResetContainers({containers.begin(), containers.end()});
      return calls_->Reply(from, absl::OkStatus());
    }
    default:
      calls_->Reply(from, absl::UnimplementedError(
                              StrCat("a worker does not know request ", request.body_case())));
  }
}

void WorkerRole::RememberClosed(const std::string& name) {
  if (closed_.insert(name).second) closings_.push_back(name);
  if (closings_.size() > kClosed) {
    closed_.erase(closings_.front());
    closings_.pop_front();
  }
}

void WorkerRole::CreateSession(Responder from, const std::string& name) {
  absl::Status status;
  auto it = sessions_.find(name);
  if (name.empty()) {
    status = InvalidArgument("a session needs a name");
  } else if (closed_.count(name) != 0) {
    status = absl::CancelledError("the session has been closed");
  } else if (it != sessions_.end() && it->second.master != from.from) {
    status = absl::AlreadyExistsError(StrCat("session ", name, " belongs to another master"));
  } else {
    // The master may have lost sight of this task for a while: what it left here is forgotten.
    DeleteSession(name, absl::AbortedError("the master has begun anew"));
    sessions_[name].master = from.from;
  }
  calls_->Reply(from, status);
}

void WorkerRole::DeleteSession(const std::string& name, const absl::Status& status) {
  auto it = sessions_.find(name);
  if (it == sessions_.end()) return;
  sessions_.erase(it);
  AbortIf([&name](const Step& step) { return step.session == name; }, status, true);
  engine_->DeleteSession(name);
}

void WorkerRole::Register(Responder from, cluster::RegisterGraphRequest request) {
  if (!IsMastersSession(from, request.session())) {
    return ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
  }
  auto it = sessions_.find(request.session());
  if (closed_.count(GraphName(request.session(), request.handle())) != 0) {
    return calls_->Reply(from, absl::CancelledError("the graph has been given up"));
  }
  const std::string session = request.session(), handle = request.handle();
  if (handle.empty() || !it->second.graphs.insert(handle).second) {
    return calls_->Reply(from, absl::AlreadyExistsError(StrCat("graph \"", handle, "\" of session ",
                                                               session, " exists")));
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
    cluster::Message reply;
    if (status.ok()) reply.mutable_register_graph_reply()->set_states(engine_->HasStates(session));
    calls_->Reply(from, status, std::move(reply));
  };
  try {
    engine_->Register(std::move(request), done);
  } catch (...) {  // Then it has not begun.
    done(StatusOfException());
  }
}

void WorkerRole::Deregister(Responder from, const cluster::DeregisterGraphRequest& request) {
  auto it = sessions_.find(request.session());
  const bool known = it != sessions_.end();
  if (!known || it->second.master == from.from) {
    if (known && it->second.graphs.erase(request.handle()) != 0) {
      engine_->Deregister(request.session(), request.handle());
    } else {
      RememberClosed(GraphName(request.session(), request.handle()));  // It may still come.
    }
  }
  calls_->Reply(from, absl::OkStatus());
}

void WorkerRole::ReplyUnknown(Responder to, const std::string& what) {
  // It may have been forgotten because the master could not be heard for a while.
  cluster::Message reply;
  reply.mutable_status()->set_forgotten(true);
  calls_->Reply(to, absl::NotFoundError(what), std::move(reply));
}

void WorkerRole::Run(Responder from, cluster::RunGraphRequest request) {
  const uint64_t id = request.step();
  auto session = sessions_.find(request.session());
  if (session == sessions_.end() || session->second.master != from.from) {
    return ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
  }
  if (session->second.graphs.count(request.handle()) == 0 ||
      session->second.compiling.count(request.handle()) != 0) {
    return ReplyUnknown(from,
                        StrCat("session ", request.session(), " has no graph ", request.handle()));
  }
  absl::Status error;
  if (auto failed_step = failed_steps_.find(id); failed_step != failed_steps_.end()) {
    error = failed_step->second;
  } else if (forgotten_.count(id) != 0) {
    error = absl::CancelledError("the step was cancelled before it began");
  } else if (steps_.count(id) != 0) {
    error = absl::AlreadyExistsError(StrCat("step ", id, " runs already"));
  }
  if (!error.ok()) return calls_->Reply(from, error);
  Step& step = steps_[id];
  step.traced = request.trace();
  step.sampled = tracing_.has_value();
  request.set_times(step.sampled);
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
    return OnStepDone(id, StatusOfException(), {});
  }
  for (auto& [feeder, feed] : TakeEarly(id)) Feed(feeder, std::move(feed));
}

void WorkerRole::Trace(Responder from, const cluster::TraceRequest& request) {
  if (tracing_) {
    calls_->Reply(from, absl::AlreadyExistsError("another client traces this task"));
    return;
  }
  Tracing tracing;
  tracing.client = from;
  tracing.until = now_ + std::clamp<ClusterTime>(request.duration_us(), 0, kLongestTrace);
  tracing.max_bytes = std::clamp<int64_t>(request.max_bytes(), 0, kLargestTrace);
  tracing_ = std::move(tracing);
}

bool WorkerRole::IsMastersSession(Responder from, const std::string& session) const {
  const auto it = sessions_.find(session);
  return it != sessions_.end() && it->second.master == from.from;
}

void WorkerRole::GetStates(Responder from, const std::string& session) {
  if (!IsMastersSession(from, session)) {
    return ReplyUnknown(from, StrCat("there is no session ", session, " here"));
  }
  engine_->States(session, [this, from](absl::Status status, const KernelStates& states) {
    cluster::Message reply;
    if (status.ok()) {
      status = CatchExceptions([&] {
        AddStates(states, reply.mutable_get_states_reply()->mutable_states());
        return absl::OkStatus();
      });
    }
    if (!status.ok()) reply.Clear();
    calls_->Reply(from, status, std::move(reply));
  });
}

void WorkerRole::SetStates(Responder from, const cluster::SetStatesRequest& request) {
  if (!IsMastersSession(from, request.session())) {
    return ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
  }
  engine_->SetStates(request.session(), StatesOf(request.states()));
  calls_->Reply(from, absl::OkStatus());
}

void WorkerRole::GetResources(Responder from, const cluster::GetResourcesRequest& request) {
  if (!IsMastersSession(from, request.session())) {
    return ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
  }
  engine_->GetResources(
      request, [this, from](const absl::Status& status, cluster::GetResourcesReply resources) {
        cluster::Message reply;
        *reply.mutable_get_resources_reply() = std::move(resources);
        calls_->Reply(from, status, std::move(reply));
      });
}

void WorkerRole::SetResource(Responder from, cluster::SetResourceRequest request) {
  if (!IsMastersSession(from, request.session())) {
    return ReplyUnknown(from, StrCat("there is no session ", request.session(), " here"));
  }
  engine_->SetResource(std::move(request),
                       [this, from](const absl::Status& status) { calls_->Reply(from, status); });
}

void WorkerRole::AddTrace(const std::string& trace) {
  std::string& all = *tracing_->reply.mutable_metadata();
  if (all.size() + trace.size() > tracing_->max_bytes) {
    tracing_->reply.set_full(true);
    EndTracing();
    return;
  }
  all += trace;
  tracing_->reply.set_num_steps(tracing_->reply.num_steps() + 1);
}

void WorkerRole::EndTracing() {
  Tracing tracing = *std::exchange(tracing_, std::nullopt);
  cluster::Message reply;
  *reply.mutable_trace_reply() = std::move(tracing.reply);
  calls_->Reply(tracing.client, absl::OkStatus(), std::move(reply));
}

void WorkerRole::RefuseFeed(Responder from, uint64_t step) {
  // If it has failed, the answer to RunGraph says why.
  cluster::Message reply;
  reply.mutable_status()->set_derived(true);
  calls_->Reply(from, absl::AbortedError(StrCat("step ", step, " does not run here")),
                std::move(reply));
}

void WorkerRole::Feed(Responder from, cluster::FeedGraphRequest request) {
  const uint64_t id = request.step();
  auto step = steps_.find(id);
  if (step == steps_.end() && forgotten_.count(id) == 0 && num_early_ < options_.max_early_feeds) {
    // It has overtaken RunGraph.
    const int64_t bytes = static_cast<int64_t>(request.ByteSizeLong());
    if (bytes <= options_.max_early_bytes - early_bytes_) {
      Early& early = early_[id];
      if (early.feeds.empty()) early.since = now_;
      early.bytes += bytes;
      early_bytes_ += bytes;
      ++num_early_;
      early.feeds.emplace_back(from, std::move(request));
      return;
    }
  }
  if (step == steps_.end() || step->second.master.from != from.from) return RefuseFeed(from, id);
  const bool taken =
      engine_->Feed(std::move(request),
                    [this, from](const absl::Status& status, std::vector<TensorProto> fetches) {
                      cluster::Message reply;
                      cluster::FeedGraphReply* body = reply.mutable_feed_graph_reply();
                      reply.mutable_status()->set_derived(!status.ok());
                      for (TensorProto& fetch : fetches) *body->add_fetches() = std::move(fetch);
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
    cluster::RunGraphReply& body = *reply.mutable_run_graph_reply();
    std::string trace = step.traced || step.sampled ? engine_->TakeTrace(id) : "";
    // The step does not fail because its trace finds no memory here.
    if (step.sampled && tracing_ && !trace.empty()) KeepGoing([&] { AddTrace(trace); });
    if (step.traced) body.set_metadata(std::move(trace));
    if (!status.ok() && !step.aborted.ok()) {
      result = step.aborted;
      reply.mutable_status()->set_derived(step.derived);
    }
    if (result.ok()) {
      for (TensorProto& fetch : fetches) *body.add_fetches() = std::move(fetch);
      if (step.tells_costs) engine_->AddCosts(step.session, &body);
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
  TellAbort(id, &it->second);
}

void WorkerRole::TellAbort(uint64_t id, Step* step) {
  step->engine_knows = false;
  KeepGoing([&] {
    engine_->Abort(id, step->aborted);
    step->engine_knows = true;
  });
}

template <typename Fits>
void WorkerRole::AbortIf(const Fits& fits, const absl::Status& status, bool derived) {
  for (auto it = steps_.begin(); it != steps_.end();) {
    const uint64_t id = it->first;
    if (fits(it->second)) Abort(id, status, derived);
    it = steps_.upper_bound(id);
  }
}

void WorkerRole::Forget(uint64_t id) {
  for (const auto& [feeder, feed] : TakeEarly(id)) RefuseFeed(feeder, id);
  engine_->Forget(id);
  if (!forgotten_.insert(id).second) return;
  forget_order_.push_back(id);
  if (forget_order_.size() > kForgotten) {
    forgotten_.erase(forget_order_.front());
    failed_steps_.erase(forget_order_.front());
    forget_order_.pop_front();
  }
}

std::vector<WorkerRole::EarlyFeed> WorkerRole::TakeEarly(uint64_t id) {
  auto it = early_.find(id);
  if (it == early_.end()) return {};
  auto feeds = std::move(it->second.feeds);
  num_early_ -= feeds.size();
  early_bytes_ -= it->second.bytes;
  early_.erase(it);
  return feeds;
}

void WorkerRole::OnPeerLost(PeerId peer, const std::string& task, const absl::Status& status) {
  if (tracing_ && tracing_->client.from == peer) tracing_.reset();
  const auto of_peer = [peer](const Session& session) { return session.master == peer; };
  for (const std::string& name : KeysIf(sessions_, of_peer)) DeleteSession(name, status);
  const auto needs_it = [&task](const Step& step) { return Contains(step.tasks, task); };
  AbortIf(needs_it, status, false);
}

std::vector<uint64_t> WorkerRole::EndedStepsWith(const std::string& task) const {
  std::vector<uint64_t> ids = KeysIf(steps_, [&task](const Step& step) {
    return !step.aborted.ok() && Contains(step.tasks, task);
  });
  for (const Ended& step : ended_) {
    if (Contains(step.tasks, task)) ids.push_back(step.id);
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
  if (tracing_ && now >= tracing_->until) EndTracing();
  for (auto it = steps_.begin(); it != steps_.end();) {
    const uint64_t id = it->first;
    if (!it->second.engine_knows) TellAbort(id, &it->second);
    it = steps_.upper_bound(id);
  }
  const auto old = [&](const Early& early) { return now - early.since >= options_.early_lifetime; };
  const absl::Status late = absl::UnavailableError(
      StrCat("values of the step have come ", options_.early_lifetime / kSecond,
             " s before the step itself, and were dropped"));
  FailSteps(KeysIf(early_, old), late);
  FailSteps(engine_->DropEarly(now, options_.early_lifetime), late);
}

size_t WorkerRole::num_graphs() const {
  size_t count = 0;
  for (const auto& [name, session] : sessions_) count += session.graphs.size();
  return count;
}

void WorkerRole::AbortAll(const absl::Status& status) {
  if (tracing_) EndTracing();
  while (!sessions_.empty()) DeleteSession(std::string(sessions_.begin()->first), status);
}

}  // namespace troupe
