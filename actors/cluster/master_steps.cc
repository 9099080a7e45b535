// The master's steps: signatures are built and registered, then run on all tasks that take part.
#include <algorithm>
#include <utility>

#include "actors/cluster/master_role.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

std::string KeyOf(const cluster::Signature& signature) {
  std::string key(signature.partial() ? "p" : "");
  if (signature.placement_round() > 0) key += StrCat(signature.placement_round(), ";");
  for (const auto& name : signature.feeds()) (key += name) += '\0';
  key += '\1';
  for (const auto& name : signature.fetches()) (key += name) += '\0';
  key += '\1';
  for (const auto& name : signature.targets()) (key += name) += '\0';
  return key;
}

}  // namespace

std::shared_ptr<MasterRole::Signature> MasterRole::FindOrBuild(const std::string& name,
                                                               SessionState* session,
                                                               const cluster::Signature& names) {
  std::shared_ptr<Signature>& signature = session->signatures[KeyOf(names)];
  if (signature != nullptr) return signature;
  signature = std::make_shared<Signature>();
  signature->last_used = now_;
  signature->names = names;
  engine_->Build(name, signature->names, DevicesFor(session->config),
                 [this, name, signature](absl::StatusOr<BuiltStep> built) {
                   OnBuilt(name, signature, std::move(built));
                 });
  return signature;
}

void MasterRole::OnBuilt(const std::string& name, std::shared_ptr<Signature> signature,
                         absl::StatusOr<BuiltStep> built) {
  signature->building = false;
  absl::Status status = built.status();
  auto session = sessions_.find(name);
  if (session == sessions_.end()) status = ClosedError();
  std::vector<PeerId> tasks;
  for (size_t i = 0; status.ok() && i < built->parts.size(); ++i) {
    const auto task = task_by_name_.find(built->parts[i].task);
    if (task == task_by_name_.end()) {
      status = absl::UnavailableError(StrCat(built->parts[i].task, " has left the cluster"));
    } else {
      tasks.push_back(task->second);
    }
  }
  if (status.ok()) {
    signature->built = *std::move(built);
    signature->tasks = std::move(tasks);
    AnswerMakers(session->second.get(), signature);
    AdvanceAll(signature.get());
    TrimSignatures(name, session->second.get());
    return;
  }
  for (const Responder& maker : std::exchange(signature->makers, {})) calls_->Reply(maker, status);
  if (session != sessions_.end()) session->second->signatures.erase(KeyOf(signature->names));
  FailAll(signature.get(), status);
}

void MasterRole::MakeCallable(Responder from, const cluster::MakeCallableRequest& request) {
  SessionState* session = FindSession(from, request.session());
  if (session == nullptr) return;
  std::shared_ptr<Signature> signature =
      FindOrBuild(request.session(), session, request.signature());
  signature->makers.push_back(from);
  if (!signature->building) AnswerMakers(session, signature);
}

void MasterRole::AnswerMakers(SessionState* session, const std::shared_ptr<Signature>& signature) {
  int64_t nodes = 0;
  for (const BuiltStep::Part& part : signature->built->parts) nodes += part.num_nodes;
  for (const Responder& maker : std::exchange(signature->makers, {})) {
    cluster::Message reply;
    cluster::MakeCallableReply* made = reply.mutable_make_callable_reply();
    made->set_callable(StrCat("c", next_name_++));
    made->set_num_nodes(nodes);
    session->callables[made->callable()] = signature;
    calls_->Reply(maker, absl::OkStatus(), std::move(reply));
  }
}

// --- giving up ---------------------------------------------------------------------------------

bool MasterRole::Idle(const Signature& signature) {
  if (signature.building || signature.num_steps > 0) return false;
  // A graph that is being registered cannot be taken back yet: that could come first.
  return std::all_of(signature.registrations.begin(), signature.registrations.end(),
                     [](const auto& entry) { return entry.second.ready; });
}

void MasterRole::GiveUp(const std::string& name, SessionState* session, const std::string& key) {
  auto found = session->signatures.find(key);
  const std::shared_ptr<Signature> signature = found->second;
  session->signatures.erase(found);
  for (const auto& [task, registration] : signature->registrations) {
    Delete(task, {name, registration.handle});
  }
  signature->registrations.clear();
  signature->tasks.clear();
  signature->built.reset();  // Callables keep the rest of it.
}

void MasterRole::TrimSignatures(const std::string& name, SessionState* session) {
  while (session->signatures.size() > options_.max_signatures) {
    const std::pair<const std::string, std::shared_ptr<Signature>>* oldest = nullptr;
    for (const auto& entry : session->signatures) {
      if (!Idle(*entry.second)) continue;
      if (oldest == nullptr || entry.second->last_used < oldest->second->last_used) oldest = &entry;
    }
    if (oldest == nullptr) return;
    GiveUp(name, session, std::string(oldest->first));
  }
}

void MasterRole::DropOldSignatures() {
  for (const auto& [name, session] : sessions_) {
    const auto old = [this](const std::shared_ptr<Signature>& signature) {
      return Idle(*signature) && now_ - signature->last_used >= options_.signature_lifetime;
    };
    for (const auto& key : KeysIf(session->signatures, old)) GiveUp(name, session.get(), key);
  }
}

size_t MasterRole::num_signatures() const {
  size_t count = 0;
  for (const auto& [name, session] : sessions_) count += session->signatures.size();
  return count;
}

// --- steps -------------------------------------------------------------------------------------

void MasterRole::RunStep(Responder from, cluster::RunStepRequest request) {
  SessionState* session = FindSession(from, request.session());
  if (session == nullptr) return;
  std::shared_ptr<Signature> signature;
  if (request.has_callable()) {
    auto it = session->callables.find(request.callable());
    if (it == session->callables.end()) {
      return calls_->Reply(
          from, absl::NotFoundError(StrCat("there is no callable ", request.callable())));
    }
    // What has been given up is built anew.
    if (!it->second->building && !it->second->built) {
      it->second = FindOrBuild(request.session(), session, it->second->names);
    }
    signature = it->second;
  } else {
    signature = FindOrBuild(request.session(), session, request.signature());
  }
  if (request.feeds_size() != signature->names.feeds_size()) {
    return calls_->Reply(from, InvalidArgument("expected ", signature->names.feeds_size(),
                                               " fed tensors, got ", request.feeds_size()));
  }
  const uint64_t id = AddStep(from, request.session(), signature);
  Step& step = steps_.at(id);
  for (TensorProto& feed : *request.mutable_feeds()) step.feeds.push_back(std::move(feed));
  if (request.timeout_us() > 0) step.deadline = now_ + request.timeout_us();
  step.trace = request.trace();
  BeginStep(id);
}

uint64_t MasterRole::AddStep(Responder from, const std::string& session,
                             const std::shared_ptr<Signature>& signature) {
  const uint64_t id = (options_.seed << 32) | (next_step_++ & 0xffffffffu);
  Step& step = steps_[id];
  step.client = from;
  step.session = session;
  step.signature = signature;
  ++signature->num_steps;
  signature->last_used = now_;
  return id;
}

void MasterRole::BeginStep(uint64_t id) {
  Signature* signature = steps_.at(id).signature.get();
  if (signature->building) {
    signature->waiting.push_back(id);
  } else {
    Advance(id);
  }
}

bool MasterRole::EnsureOpen(const std::string& name, SessionState* session, PeerId task) {
  const uint64_t life = tasks_[task].incarnation;
  if (auto it = session->opened.find(task); it != session->opened.end() && it->second == life) {
    return true;
  }
  if (auto it = session->opening.find(task); it != session->opening.end() && it->second == life) {
    return false;
  }
  session->opening[task] = life;
  session->touched.insert(task);
  cluster::Message request;
  request.mutable_create_worker_session()->set_session(name);
  calls_->Call(task, life, std::move(request), now_, options_.register_timeout,
               [this, name, task, life](const absl::Status& status, const cluster::Message&) {
                 OnOpened(name, task, life, status);
               });
  return false;
}

void MasterRole::OnOpened(const std::string& name, PeerId task, uint64_t life,
                          const absl::Status& status) {
  auto found = sessions_.find(name);
  if (found == sessions_.end()) return;
  SessionState& session = *found->second;
  if (auto it = session.opening.find(task); it != session.opening.end() && it->second == life) {
    session.opening.erase(it);
  }
  if (status.ok() && tasks_[task].incarnation == life) session.opened[task] = life;
  const auto signatures = session.signatures;
  for (const auto& [key, signature] : signatures) {
    if (!signature->Uses(task)) continue;
    status.ok() ? AdvanceAll(signature.get()) : FailAll(signature.get(), status);
  }
}

void MasterRole::AdvanceAll(Signature* signature) {
  for (uint64_t id : std::exchange(signature->waiting, {})) Advance(id);
}

void MasterRole::FailAll(Signature* signature, const absl::Status& status) {
  for (uint64_t id : std::exchange(signature->waiting, {})) Fail(id, status);
}

void MasterRole::Advance(uint64_t step_id) {
  auto found = steps_.find(step_id);
  if (found == steps_.end() || found->second.running || !found->second.status.ok()) return;
  Step& step = found->second;
  std::shared_ptr<Signature> signature = step.signature;
  const std::string session_name = step.session;
  auto session = sessions_.find(session_name);
  if (session == sessions_.end()) return Fail(step_id, ClosedError());
  bool ready = true;
  for (size_t i = 0; i < signature->tasks.size(); ++i) {
    PeerId& task = signature->tasks[i];
    if (const std::string& name = signature->built->parts[i].task; tasks_[task].task.name != name) {
      const auto again = task_by_name_.find(name);
      if (again == task_by_name_.end()) {
        return Fail(step_id, absl::UnavailableError(StrCat(name, " has left the cluster")));
      }
      task = again->second;
    }
    const uint64_t life = tasks_[task].incarnation;
    if (life == 0) {
      absl::Status why = tasks_[task].lost;
      why.Update(absl::UnavailableError(StrCat(Describe(task), " cannot be reached")));
      return Fail(step_id, why);
    }
    auto it = signature->registrations.find(task);
    if (it != signature->registrations.end() && it->second.incarnation == life) {
      ready &= it->second.ready;
      continue;
    }
    ready = false;
    signature->registrations.erase(task);  // Of an earlier life.
    if (EnsureOpen(session_name, session->second.get(), task)) {
      Register(session_name, signature, i);
    }
  }
  if (ready) {
    SendRuns(step_id, &step);
  } else {
    signature->waiting.push_back(step_id);
  }
}

void MasterRole::Register(const std::string& session, const std::shared_ptr<Signature>& signature,
                          size_t part) {
  const PeerId task = signature->tasks[part];
  const uint64_t life = tasks_[task].incarnation;
  const Leftover graph{session, StrCat("g", next_name_++)};
  signature->registrations[task] = {life, /*ready=*/false, graph.handle};
  cluster::Message request;
  cluster::RegisterGraphRequest* body = request.mutable_register_graph();
  body->set_session(session);
  body->set_handle(graph.handle);
  body->set_steps(static_cast<uint32_t>(options_.seed));
  const auto& partitions = signature->built->parts[part].partitions;
  body->mutable_partitions()->Assign(partitions.begin(), partitions.end());
  calls_->Call(
      task, life, std::move(request), now_, options_.register_timeout,
      [this, signature, task, graph](const absl::Status& status, const cluster::Message& reply) {
        OnRegistered(signature.get(), task, graph, status, reply.status().forgotten());
      });
}

void MasterRole::OnRegistered(Signature* signature, PeerId task, const Leftover& graph,
                              const absl::Status& status, bool forgotten) {
  auto it = signature->registrations.find(task);
  const bool current = it != signature->registrations.end() && it->second.handle == graph.handle;
  if (current) it->second.ready = status.ok();
  // The task may have it although nobody wants it any more, or only the answer was lost.
  if (!(current && status.ok()) && sessions_.count(graph.session) != 0) Delete(task, graph);
  if (!current || status.ok()) {
    AdvanceAll(signature);  // If it is not current, those who wait for it look again.
    return;
  }
  signature->registrations.erase(it);
  FailAll(signature, forgotten ? Forgotten(graph.session, task) : status);
}

void MasterRole::SendRuns(uint64_t step_id, Step* step) {
  step->running = true;
  std::shared_ptr<Signature> signature = step->signature;
  const BuiltStep& built = *signature->built;
  step->fetches.resize(built.num_fetches);
  for (size_t i = 0; i < built.parts.size(); ++i) {
    const PeerId task = signature->tasks[i];
    const Registration& registration = signature->registrations.at(task);
    cluster::Message request;
    cluster::RunGraphRequest* run = request.mutable_run_graph();
    run->set_session(step->session);
    run->set_handle(registration.handle);
    run->set_step(step_id);
    run->set_trace(step->trace);
    for (int feed : built.parts[i].feeds) {
      if (step->partial != nullptr) break;  // They come later.
      // The last one to need it gets it.
      bool wanted = false;
      for (size_t j = i + 1; j < built.parts.size() && !wanted; ++j) {
        const std::vector<int>& feeds = built.parts[j].feeds;
        wanted = std::find(feeds.begin(), feeds.end(), feed) != feeds.end();
      }
      *run->add_feeds() = wanted ? step->feeds[feed] : std::move(step->feeds[feed]);
    }
    if (built.parts.size() > 1) {
      for (const BuiltStep::Part& part : built.parts) run->add_tasks(part.task);
    }
    step->calls[task] =
        calls_->Call(task, registration.incarnation, std::move(request), now_, 0,
                     [this, step_id, task, i](const absl::Status& status, cluster::Message reply) {
                       OnRunDone(step_id, task, i, status, std::move(reply));
                     });
  }
  step->feeds.clear();
  if (step->partial != nullptr) {
    OnPartialBegun(step);
  } else if (step->calls.empty()) {
    Finish(step_id);
  }
}

void MasterRole::OnRunDone(uint64_t step_id, PeerId task, size_t part, const absl::Status& status,
                           cluster::Message reply) {
  auto it = steps_.find(step_id);
  if (it == steps_.end()) return;
  Step& step = it->second;
  step.calls.erase(task);
  cluster::RunGraphReply& ran = *reply.mutable_run_graph_reply();
  if (ran.costs_size() > 0) engine_->Learn(step.session, ran);
  if (step.partial != nullptr && status.ok()) return FinishPiece(step_id);
  const std::vector<int>& fetches = step.signature->built->parts[part].fetches;
  absl::Status result = status;
  if (result.ok() && ran.fetches_size() != static_cast<int>(fetches.size())) {
    result = absl::InternalError(StrCat(Describe(task), " sent ", ran.fetches_size(), " tensors, ",
                                        fetches.size(), " were fetched"));
  }
  if (!result.ok()) {
    if (reply.status().forgotten()) result = Forgotten(step.session, task);
    return Fail(step_id, result, reply.status().derived());
  }
  step.metadata += ran.metadata();
  for (size_t i = 0; i < fetches.size(); ++i) {
    step.fetches[fetches[i]] = std::move(*ran.mutable_fetches(static_cast<int>(i)));
  }
  if (step.calls.empty()) Finish(step_id);
}

void MasterRole::Fail(uint64_t step_id, const absl::Status& status, bool derived) {
  auto it = steps_.find(step_id);
  if (it == steps_.end()) return;
  Step& step = it->second;
  const bool first = step.status.ok();
  if (first || (step.derived && !derived)) {
    step.status = status;
    step.derived = derived;
  }
  if (first) {
    WriteLog(absl::IsCancelled(status) ? LogLevel::kDebug : LogLevel::kInfo,
             tasks_[options_.self].task.name, {"step", step.session}, "step ", step_id,
             " of session ", step.session, " is aborted: ", status.ToString());
    step.give_up = now_ + options_.grace;
    for (const auto& [task, call] : step.calls) {
      cluster::Message cleanup;
      cleanup.mutable_cleanup_graph()->set_step(step_id);
      cleanup.mutable_cleanup_graph()->set_reason(
          StrCat("the step failed elsewhere: ", std::string(status.message())));
      calls_->Call(task, tasks_[task].incarnation, std::move(cleanup), now_, options_.grace,
                   [](const absl::Status&, const cluster::Message&) {});
    }
  }
  if (step.calls.empty()) Finish(step_id);
}

std::vector<uint64_t> MasterRole::FailedStepsWith(PeerId task) const {
  std::vector<uint64_t> ids;
  for (const FailedStep& step : failed_steps_) {
    if (std::find(step.tasks.begin(), step.tasks.end(), task) != step.tasks.end()) {
      ids.push_back(step.id);
    }
  }
  return ids;
}

void MasterRole::Finish(uint64_t step_id) {
  auto it = steps_.find(step_id);
  Step step = std::move(it->second);
  steps_.erase(it);
  --step.signature->num_steps;
  step.signature->last_used = now_;
  for (const auto& [task, call] : step.calls) calls_->Forget(call);
  if (!step.status.ok()) {
    failed_steps_.push_back({step_id, now_, step.signature->tasks});
    if (failed_steps_.size() > kMostFailedSteps) failed_steps_.pop_front();
  }
  if (step.partial != nullptr) return EndPartial(&step);
  cluster::Message reply;
  cluster::RunStepReply* ran = reply.mutable_run_step_reply();
  for (TensorProto& fetch : step.fetches) *ran->add_fetches() = std::move(fetch);
  ran->set_metadata(std::move(step.metadata));
  calls_->Reply(step.client, step.status, std::move(reply));
}

}  // namespace troupe
