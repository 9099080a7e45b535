#include "actors/cluster/master_signatures.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "devices/exceptions.h"
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

absl::Status LeftError(const std::string& task) {
  return absl::UnavailableError(StrCat(task, " has left the cluster"));
}

}  // namespace

// --- building ----------------------------------------------------------------------------------

std::shared_ptr<MasterSignature> MasterSignatures::FindOrBuild(const std::string& session_name,
                                                               MasterSession* session,
                                                               const cluster::Signature& names) {
  std::string key = KeyOf(names);
  if (const auto it = session->signatures.find(key); it != session->signatures.end()) {
    return it->second;
  }
  auto signature = std::make_shared<MasterSignature>();
  signature->last_used = master_->now;
  signature->names = names;
  const auto added = session->signatures.emplace(std::move(key), signature).first;
  absl::Cleanup not_begun = [&] { session->signatures.erase(added); };
  master_->engine->Build(session_name, signature->names, master_->tasks.DevicesFor(session->config),
                         [this, session_name, signature](absl::StatusOr<BuiltStep> built) {
                           OnBuilt(session_name, signature, std::move(built));
                         });
  std::move(not_begun).Cancel();
  return signature;
}

void MasterSignatures::OnBuilt(const std::string& session_name, const Signature& signature,
                               absl::StatusOr<BuiltStep> built) {
  signature->building = false;
  auto session = master_->sessions.find(session_name);
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    if (session == master_->sessions.end()) return SessionClosedError();
    TROUPE_RETURN_IF_ERROR(built.status());
    std::vector<PeerId> tasks;
    for (const BuiltStep::Part& part : built->parts) {
      const std::optional<PeerId> task = master_->tasks.Find(part.task);
      if (!task) return LeftError(part.task);
      tasks.push_back(*task);
    }
    signature->built = *std::move(built);
    signature->tasks = std::move(tasks);
    return absl::OkStatus();
  });
  if (status.ok()) {
    AnswerMakers(session->second.get(), signature);
    WakeAll(signature.get(), status);
    return KeepGoing([&] { Trim(session_name, session->second.get()); });
  }
  for (const Responder& maker : std::exchange(signature->makers, {})) {
    master_->calls->Reply(maker, status);
  }
  if (session != master_->sessions.end()) {
    std::erase_if(session->second->signatures,
                  [&](const auto& entry) { return entry.second == signature; });
  }
  WakeAll(signature.get(), status);
}

void MasterSignatures::WakeAll(MasterSignature* signature, const absl::Status& status) {
  wake_(std::exchange(signature->waiting, {}), status);
}

// --- callables ---------------------------------------------------------------------------------

void MasterSignatures::MakeCallable(Responder from, const cluster::MakeCallableRequest& request) {
  MasterSession* session = master_->FindSession(from, request.session());
  if (session == nullptr) return;
  const Signature signature = FindOrBuild(request.session(), session, request.signature());
  signature->makers.push_back(from);
  if (!signature->building) AnswerMakers(session, signature);
}

void MasterSignatures::AnswerMakers(MasterSession* session, const Signature& signature) {
  int64_t nodes = 0;
  for (const BuiltStep::Part& part : signature->built->parts) nodes += part.num_nodes;
  for (const Responder& maker : std::exchange(signature->makers, {})) {
    cluster::Message reply;
    const absl::Status status = CatchExceptions([&] {
      cluster::MakeCallableReply* made = reply.mutable_make_callable_reply();
      made->set_callable(master_->NewName("c"));
      made->set_num_nodes(nodes);
      session->callables[made->callable()] = signature;
      return absl::OkStatus();
    });
    master_->calls->Reply(maker, status, std::move(reply));
  }
}

std::shared_ptr<MasterSignature> MasterSignatures::FindCallable(const std::string& session_name,
                                                                MasterSession* session,
                                                                const std::string& callable) {
  auto it = session->callables.find(callable);
  if (it == session->callables.end()) return nullptr;
  if (!it->second->building && !it->second->built) {
    it->second = FindOrBuild(session_name, session, it->second->names);
  }
  return it->second;
}

// --- registering -------------------------------------------------------------------------------

absl::StatusOr<bool> MasterSignatures::Register(const std::string& session_name,
                                                MasterSession* session,
                                                const Signature& signature) {
  const MasterTasks& tasks = master_->tasks;
  bool ready = true;
  for (size_t i = 0; i < signature->tasks.size(); ++i) {
    PeerId& task = signature->tasks[i];
    if (const std::string& name = signature->built->parts[i].task;
        tasks.at(task).task.name != name) {
      const std::optional<PeerId> again = tasks.Find(name);
      if (!again) return LeftError(name);
      task = *again;
    }
    const uint64_t life = tasks.life(task);
    if (life == 0) {
      absl::Status why = tasks.at(task).lost;
      why.Update(absl::UnavailableError(StrCat(tasks.Describe(task), " cannot be reached")));
      return why;
    }
    auto it = signature->registrations.find(task);
    if (it != signature->registrations.end() && it->second.incarnation == life) {
      ready &= it->second.ready;
      continue;
    }
    if (session->keeps_states && session->with_states.count(task) > 0 &&
        session->opened.count(task) == 0) {
      return absl::AbortedError(StrCat(
          tasks.Describe(task),
          " was lost, and with it what the session keeps there, such as where ",
          "random generators are, and what is in queues: create a new session, and restore it"));
    }
    ready = false;
    signature->registrations.erase(task);  // Of an earlier life.
    if (EnsureOpen(session_name, session, task)) RegisterPart(session_name, signature, i);
  }
  return ready;
}

bool MasterSignatures::EnsureOpen(const std::string& session_name, MasterSession* session,
                                  PeerId task) {
  const uint64_t life = master_->tasks.life(task);
  if (auto it = session->opened.find(task); it != session->opened.end() && it->second == life) {
    return true;
  }
  if (auto it = session->opening.find(task); it != session->opening.end() && it->second == life) {
    return false;
  }
  session->touched.insert(task);
  cluster::Message request;
  request.mutable_create_worker_session()->set_session(session_name);
  master_->calls->Call(
      task, life, std::move(request), master_->now, master_->options.register_timeout,
      [this, session_name, task, life](const absl::Status& status, const cluster::Message&) {
        OnOpened(session_name, task, life, status);
      });
  session->opening[task] = life;
  return false;
}

void MasterSignatures::Open(const std::string& session_name, MasterSession* session, PeerId task,
                            std::function<void(const absl::Status&)> then) {
  openings_.push_back({session_name, task, master_->tasks.life(task), std::move(then)});
  absl::Cleanup gone = [this] { openings_.pop_back(); };
  if (EnsureOpen(session_name, session, task)) {
    openings_.back().then(absl::OkStatus());
  } else {
    std::move(gone).Cancel();
  }
}

void MasterSignatures::OnOpened(const std::string& session_name, PeerId task, uint64_t life,
                                const absl::Status& status) {
  auto found = master_->sessions.find(session_name);
  std::vector<std::function<void(const absl::Status&)>> told;
  std::erase_if(openings_, [&](Opening& one) {
    const bool is = one.session == session_name && one.task == task && one.life == life;
    if (is) told.push_back(std::move(one.then));
    return is;
  });
  if (found == master_->sessions.end()) {
    for (const auto& then : told) KeepGoing([&] { then(SessionClosedError()); });
    return;
  }
  MasterSession& session = *found->second;
  if (auto it = session.opening.find(task); it != session.opening.end() && it->second == life) {
    session.opening.erase(it);
  }
  if (status.ok() && master_->tasks.life(task) == life) {
    session.opened[task] = life;
    session.lost.erase(task);
  }
  for (const auto& then : told) KeepGoing([&] { then(status); });
  const auto signatures = session.signatures;
  for (const auto& [key, signature] : signatures) {
    if (signature->Uses(task)) WakeAll(signature.get(), status);
  }
}

void MasterSignatures::RegisterPart(const std::string& session_name, const Signature& signature,
                                    size_t part) {
  const PeerId task = signature->tasks[part];
  const uint64_t life = master_->tasks.life(task);
  const Leftovers::Leftover graph{session_name, master_->NewName("g")};
  cluster::Message request;
  cluster::RegisterGraphRequest* body = request.mutable_register_graph();
  body->set_session(session_name);
  body->set_handle(graph.handle);
  body->set_steps(static_cast<uint32_t>(master_->options.seed));
  const auto& partitions = signature->built->parts[part].partitions;
  body->mutable_partitions()->Assign(partitions.begin(), partitions.end());
  if (const auto session = master_->sessions.find(session_name);
      session != master_->sessions.end()) {
    AddStates(StatesFor(master_->tasks.at(task).task.name, session->second->restored),
              body->mutable_states());
  }
  master_->calls->Call(
      task, life, std::move(request), master_->now, master_->options.register_timeout,
      [this, signature, task, graph](const absl::Status& status, const cluster::Message& reply) {
        const auto session = master_->sessions.find(graph.session);
        if (reply.register_graph_reply().states() && session != master_->sessions.end()) {
          session->second->with_states.insert(task);
        }
        OnRegistered(signature.get(), task, graph, status, reply.status().forgotten());
      });
  signature->registrations[task] = {life, /*ready=*/false, graph.handle};
}

void MasterSignatures::OnRegistered(MasterSignature* signature, PeerId task,
                                    const Leftovers::Leftover& graph, const absl::Status& status,
                                    bool forgotten) {
  auto it = signature->registrations.find(task);
  const bool current = it != signature->registrations.end() && it->second.handle == graph.handle;
  if (current) it->second.ready = status.ok();
  // The task may have it although nobody wants it any more, or only the answer was lost.
  if (!(current && status.ok()) && master_->sessions.count(graph.session) != 0) {
    leftovers_->Delete(task, graph);
  }
  if (!current || status.ok()) {
    // If it is not current, those who wait for it look again.
    return WakeAll(signature, absl::OkStatus());
  }
  signature->registrations.erase(it);
  WakeAll(signature, forgotten ? Forgotten(graph.session, task) : status);
}

absl::Status MasterSignatures::Forgotten(const std::string& session_name, PeerId task) {
  if (auto it = master_->sessions.find(session_name); it != master_->sessions.end()) {
    if (it->second->opened.erase(task) > 0) it->second->lost.insert(task);
    DropRegistrations(session_name, it->second.get(), task);
  }
  return absl::UnavailableError(
      StrCat(master_->tasks.Describe(task),
             " could not hear the master for a while and has forgotten the session's "
             "graphs; they will be registered again by the next run"));
}

void MasterSignatures::DropRegistrations(const std::string& session_name, MasterSession* session,
                                         PeerId task) {
  for (auto& [key, signature] : session->signatures) {
    auto it = signature->registrations.find(task);
    if (it == signature->registrations.end()) continue;
    // The task may have the graph nevertheless.
    leftovers_->Add(task, {session_name, it->second.handle});
    signature->registrations.erase(it);
  }
}

void MasterSignatures::OnTaskLost(PeerId task) {
  for (auto& [name, session] : master_->sessions) {
    if (session->opened.erase(task) > 0) session->lost.insert(task);
    session->opening.erase(task);
    DropRegistrations(name, session.get(), task);
  }
}

// --- giving up ---------------------------------------------------------------------------------

void MasterSignatures::GiveUp(const std::string& session_name, MasterSession* session,
                              const std::string& key) {
  auto found = session->signatures.find(key);
  const Signature signature = found->second;
  session->signatures.erase(found);
  for (const auto& [task, registration] : signature->registrations) {
    leftovers_->Delete(task, {session_name, registration.handle});
  }
  signature->registrations.clear();
  signature->tasks.clear();
  signature->built.reset();  // Callables keep the rest of it.
}

void MasterSignatures::Trim(const std::string& session_name, MasterSession* session) {
  while (session->signatures.size() > master_->options.max_signatures) {
    const std::pair<const std::string, Signature>* oldest = nullptr;
    for (const auto& entry : session->signatures) {
      if (!entry.second->Idle()) continue;
      if (oldest == nullptr || entry.second->last_used < oldest->second->last_used) oldest = &entry;
    }
    if (oldest == nullptr) return;
    GiveUp(session_name, session, std::string(oldest->first));
  }
}

void MasterSignatures::Tick() {
  if (master_->now < next_old_) return;
  const ClusterTime lifetime = master_->options.signature_lifetime;
  next_old_ = master_->now + lifetime / 8;
  for (const auto& [name, session] : master_->sessions) {
    const auto old = [this, lifetime](const Signature& signature) {
      return signature->Idle() && master_->now - signature->last_used >= lifetime;
    };
    for (const auto& key : KeysIf(session->signatures, old)) GiveUp(name, session.get(), key);
  }
}

size_t MasterSignatures::size() const {
  size_t count = 0;
  for (const auto& [name, session] : master_->sessions) count += session->signatures.size();
  return count;
}

}  // namespace troupe
