// The master's steps: signatures are built and registered, then run on all tasks that take part.
#include <algorithm>
#include <utility>

#include "actors/cluster/master_role.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

std::string KeyOf(const cluster::Message& request) {
  std::string key(request.partial() ? "p" : "");
  if (request.placement_round() > 0) key += StrCat(request.placement_round(), ";");
  for (const auto& name : request.feed_names()) (key += name) += '\0';
  key += '\1';
  for (const auto& name : request.fetch_names()) (key += name) += '\0';
  key += '\1';
  for (const auto& name : request.target_names()) (key += name) += '\0';
  return key;
}

}  // namespace

std::shared_ptr<MasterRole::Signature> MasterRole::FindOrBuild(const std::string& name,
                                                               SessionState* session,
                                                               const cluster::Message& request) {
  std::shared_ptr<Signature>& signature = session->signatures[KeyOf(request)];
  if (signature != nullptr) return signature;
  signature = std::make_shared<Signature>();
  signature->last_used = now_;
  *signature->request.mutable_feed_names() = request.feed_names();
  *signature->request.mutable_fetch_names() = request.fetch_names();
  *signature->request.mutable_target_names() = request.target_names();
  signature->request.set_partial(request.partial());
  signature->request.set_placement_round(request.placement_round());
  engine_->Build(name, signature->request, DevicesFor(session->config),
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
  if (status.ok()) {
    signature->built = *std::move(built);
    for (const BuiltStep::Part& part : signature->built->parts) {
      auto task = task_by_name_.find(part.task);
      if (task == task_by_name_.end()) {
        status = absl::InternalError(StrCat("there is no task ", part.task));
        break;
      }
      signature->tasks.push_back(task->second);
    }
  }
  if (status.ok()) {
    AnswerMakers(session->second.get(), signature);
    AdvanceAll(name, signature);
    TrimSignatures(name, session->second.get());
    return;
  }
  for (const Responder& maker : std::exchange(signature->makers, {})) calls_->Reply(maker, status);
  if (session != sessions_.end()) session->second->signatures.erase(KeyOf(signature->request));
  std::vector<uint64_t> steps = std::move(signature->waiting);
  signature->waiting.clear();
  for (uint64_t id : steps) Fail(id, status);
}

void MasterRole::MakeCallable(Responder from, cluster::Message request) {
  SessionState* session = FindSession(from, request.session());
  if (session == nullptr) return;
  std::shared_ptr<Signature> signature = FindOrBuild(request.session(), session, request);
  signature->makers.push_back(from);
  if (!signature->building) AnswerMakers(session, signature);
}

void MasterRole::AnswerMakers(SessionState* session, const std::shared_ptr<Signature>& signature) {
  int64_t nodes = 0;
  for (const BuiltStep::Part& part : signature->built->parts) nodes += part.num_nodes;
  for (const Responder& maker : std::exchange(signature->makers, {})) {
    cluster::Message reply;
    reply.set_handle(StrCat("c", next_name_++));
    reply.set_num_nodes(nodes);
    session->callables[reply.handle()] = signature;
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
    std::vector<std::string> old;
    for (const auto& [key, signature] : session->signatures) {
      if (Idle(*signature) && now_ - signature->last_used >= options_.signature_lifetime) {
        old.push_back(key);
      }
    }
    for (const std::string& key : old) GiveUp(name, session.get(), key);
  }
}

size_t MasterRole::num_signatures() const {
  size_t count = 0;
  for (const auto& [name, session] : sessions_) count += session->signatures.size();
  return count;
}

// --- steps -------------------------------------------------------------------------------------

void MasterRole::RunStep(Responder from, cluster::Message request, ClusterTime now) {
  SessionState* session = FindSession(from, request.session());
  if (session == nullptr) return;
  std::shared_ptr<Signature> signature;
  if (request.method() == cluster::RUN_CALLABLE) {
    auto it = session->callables.find(request.handle());
    if (it == session->callables.end()) {
      calls_->Reply(from, absl::NotFoundError(StrCat("there is no callable ", request.handle())));
      return;
    }
    // What has been given up is built anew.
    if (!it->second->building && !it->second->built) {
      it->second = FindOrBuild(request.session(), session, it->second->request);
    }
    signature = it->second;
  } else {
    signature = FindOrBuild(request.session(), session, request);
  }
  if (request.tensors_size() != signature->request.feed_names_size()) {
    calls_->Reply(from, InvalidArgument("expected ", signature->request.feed_names_size(),
                                        " fed tensors, got ", request.tensors_size()));
    return;
  }
  const uint64_t id = AddStep(from, request.session(), signature);
  Step& step = steps_.at(id);
  for (TensorProto& feed : *request.mutable_tensors()) step.feeds.push_back(std::move(feed));
  if (request.timeout_us() > 0) step.deadline = now + request.timeout_us();
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
  request.set_method(cluster::CREATE_WORKER_SESSION);
  request.set_session(name);
  request.set_reset(true);
  calls_->Call(task, life, std::move(request), now_, options_.register_timeout,
               [this, name, task, life](const absl::Status& status, const cluster::Message&) {
                 auto it = sessions_.find(name);
                 if (it == sessions_.end()) return;
                 SessionState& session = *it->second;
                 if (auto o = session.opening.find(task);
                     o != session.opening.end() && o->second == life) {
                   session.opening.erase(o);
                 }
                 if (status.ok() && tasks_[task].incarnation == life) session.opened[task] = life;
                 auto signatures = session.signatures;
                 for (const auto& [key, signature] : signatures) {
                   if (std::find(signature->tasks.begin(), signature->tasks.end(), task) ==
                       signature->tasks.end()) {
                     continue;
                   }
                   if (status.ok()) {
                     AdvanceAll(name, signature);
                   } else {
                     std::vector<uint64_t> steps = std::move(signature->waiting);
                     signature->waiting.clear();
                     for (uint64_t id : steps) Fail(id, status);
                   }
                 }
               });
  return false;
}

void MasterRole::AdvanceAll(const std::string&, const std::shared_ptr<Signature>& signature) {
  std::vector<uint64_t> steps = std::move(signature->waiting);
  signature->waiting.clear();
  for (uint64_t id : steps) Advance(id);
}

void MasterRole::Advance(uint64_t step_id) {
  auto found = steps_.find(step_id);
  if (found == steps_.end() || found->second.running || !found->second.status.ok()) return;
  Step& step = found->second;
  std::shared_ptr<Signature> signature = step.signature;
  const std::string session_name = step.session;
  auto session = sessions_.find(session_name);
  if (session == sessions_.end()) {
    Fail(step_id, ClosedError());
    return;
  }
  bool ready = true;
  for (size_t i = 0; i < signature->tasks.size(); ++i) {
    const PeerId task = signature->tasks[i];
    const uint64_t life = tasks_[task].incarnation;
    if (life == 0) {
      Fail(step_id, tasks_[task].lost.ok()
                        ? absl::UnavailableError(StrCat(Describe(task), " cannot be reached"))
                        : tasks_[task].lost);
      return;
    }
    auto [it, is_new] = signature->registrations.try_emplace(task);
    if (!is_new && it->second.incarnation == life) {
      ready &= it->second.ready;
      continue;
    }
    ready = false;
    if (!EnsureOpen(session_name, session->second.get(), task)) {
      signature->registrations.erase(it);
      continue;
    }
    Registration& registration = it->second;
    registration.incarnation = life;
    registration.ready = false;
    registration.handle = StrCat("g", next_name_++);
    cluster::Message request;
    request.set_method(cluster::REGISTER_GRAPH);
    request.set_session(session_name);
    request.set_handle(registration.handle);
    for (const cluster::Partition& part : signature->built->parts[i].partitions) {
      *request.add_partitions() = part;
    }
    calls_->Call(task, life, std::move(request), now_, options_.register_timeout,
                 [this, session_name, signature, task, handle = registration.handle](
                     absl::Status status, const cluster::Message& reply) {
                   auto it = signature->registrations.find(task);
                   if (it == signature->registrations.end() || it->second.handle != handle) {
                     // Forgotten meanwhile: those who wait for it look again.
                     if (sessions_.count(session_name) != 0) Delete(task, {session_name, handle});
                     AdvanceAll(session_name, signature);
                     return;
                   }
                   if (status.ok()) {
                     it->second.ready = true;
                     AdvanceAll(session_name, signature);
                     return;
                   }
                   signature->registrations.erase(it);
                   // Only the answer may have been lost.
                   if (sessions_.count(session_name) != 0) Delete(task, {session_name, handle});
                   if (reply.reset()) status = Forgotten(session_name, task);
                   std::vector<uint64_t> steps = std::move(signature->waiting);
                   signature->waiting.clear();
                   for (uint64_t id : steps) Fail(id, status);
                 });
  }
  if (!ready) {
    signature->waiting.push_back(step_id);
    return;
  }
  SendRuns(step_id, &step);
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
    request.set_method(cluster::RUN_GRAPH);
    request.set_session(step->session);
    request.set_handle(registration.handle);
    request.set_step(step_id);
    request.set_trace(step->trace);
    for (int feed : built.parts[i].feeds) {
      if (step->partial != nullptr) break;  // They come later.
      // The last one to need it gets it.
      bool wanted = false;
      for (size_t j = i + 1; j < built.parts.size() && !wanted; ++j) {
        const std::vector<int>& feeds = built.parts[j].feeds;
        wanted = std::find(feeds.begin(), feeds.end(), feed) != feeds.end();
      }
      TensorProto* tensor = request.add_tensors();
      if (wanted) {
        *tensor = step->feeds[feed];
      } else {
        *tensor = std::move(step->feeds[feed]);
      }
    }
    if (built.parts.size() > 1) {
      for (const BuiltStep::Part& part : built.parts) request.add_tasks(part.task);
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
  if (reply.costs_size() > 0) engine_->Learn(step.session, reply);
  absl::Status result = status;
  if (step.partial != nullptr && result.ok()) {
    FinishPiece(step_id);
    return;
  }
  const std::vector<int>& fetches = step.signature->built->parts[part].fetches;
  if (result.ok() && reply.tensors_size() != static_cast<int>(fetches.size())) {
    result = absl::InternalError(StrCat(Describe(task), " sent ", reply.tensors_size(),
                                        " tensors, ", fetches.size(), " were fetched"));
  }
  if (!result.ok()) {
    if (reply.reset()) result = Forgotten(step.session, task);
    Fail(step_id, result, reply.derived());
    return;
  }
  step.metadata += reply.metadata();
  for (size_t i = 0; i < fetches.size(); ++i) {
    step.fetches[fetches[i]] = std::move(*reply.mutable_tensors(static_cast<int>(i)));
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
    step.give_up = now_ + options_.grace;
    for (const auto& [task, call] : step.calls) {
      cluster::Message cleanup;
      cleanup.set_method(cluster::CLEANUP_GRAPH);
      cleanup.set_step(step_id);
      cleanup.set_error(StrCat("the step failed elsewhere: ", std::string(status.message())));
      calls_->Call(task, tasks_[task].incarnation, std::move(cleanup), now_, options_.grace,
                   [](const absl::Status&, const cluster::Message&) {});
    }
  }
  if (step.calls.empty()) Finish(step_id);
}

void MasterRole::Finish(uint64_t step_id) {
  auto it = steps_.find(step_id);
  Step step = std::move(it->second);
  steps_.erase(it);
  --step.signature->num_steps;
  step.signature->last_used = now_;
  for (const auto& [task, call] : step.calls) calls_->Forget(call);
  if (step.partial != nullptr) {
    EndPartial(&step);
    return;
  }
  cluster::Message reply;
  if (step.status.ok()) {
    for (TensorProto& fetch : step.fetches) *reply.add_tensors() = std::move(fetch);
    reply.set_metadata(std::move(step.metadata));
  }
  calls_->Reply(step.client, step.status, std::move(reply));
}

}  // namespace troupe
