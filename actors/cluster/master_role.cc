#include "actors/cluster/master_role.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "devices/device_name.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

absl::Status CheckFilters(const cluster::SessionConfig& config) {
  for (const std::string& filter : config.device_filters()) {
    TROUPE_RETURN_IF_ERROR(DeviceName::Parse(filter).status());
  }
  return absl::OkStatus();
}

absl::Status LostStates(const std::string& task) {
  return absl::UnavailableError(StrCat(task, " was lost, and what the session had there with it"));
}

/// Adds what a task tells of its kernels. A function has some on each task that calls it.
void Qualify(const KernelStates& told, const std::string& task, KernelStates* states) {
  for (const auto& [node, state] : told) {
    (*states)[node.starts_with('@') ? StrCat("@", task, "\n", node) : node] = state;
  }
}

/// Answers when as many have said something as were asked; the first error counts.
struct Gather {
  Calls* calls;
  Responder to;
  int left;
  absl::Status status;

  void Add(const absl::Status& one) {
    status.Update(one);
    if (--left == 0) calls->Reply(to, status);
  }
};

}  // namespace

MasterRole::MasterRole(Options options, std::vector<Task> tasks, Calls* calls, MasterEngine* engine)
    : master_(options, std::move(tasks), calls, engine),
      leftovers_(&master_),
      signatures_(&master_, &leftovers_,
                  [this](const std::vector<uint64_t>& steps, const absl::Status& status) {
                    steps_.Wake(steps, status);
                  }),
      steps_(&master_, &signatures_) {}

void MasterRole::AddTask(PeerId number, const Task& task, ClusterTime now) {
  master_.tasks.Add(number, task, now);
}

void MasterRole::RemoveTask(PeerId number, const absl::Status& why, ClusterTime now) {
  master_.now = now;
  leftovers_.Forget(number);
  master_.tasks.Remove(number, why);
  CreateWaiting();
}

void MasterRole::OnRequest(Responder from, cluster::Message request, ClusterTime now) {
  master_.now = now;
  switch (request.body_case()) {
    case cluster::Message::kCreateSession:
      return CreateSession(from, std::move(*request.mutable_create_session()));
    case cluster::Message::kExtendSession:
      return ExtendSession(from, std::move(*request.mutable_extend_session()));
    case cluster::Message::kCloseSession: {
      const std::string& name = request.close_session().session();
      if (master_.FindSession(from, name) != nullptr) CloseSession(name, from);
      return;
    }
    case cluster::Message::kRunStep:
      return steps_.Run(from, std::move(*request.mutable_run_step()));
    case cluster::Message::kMakeCallable:
      return signatures_.MakeCallable(from, request.make_callable());
    case cluster::Message::kReleaseCallable:
      if (MasterSession* session =
              master_.FindSession(from, request.release_callable().session())) {
        session->callables.erase(request.release_callable().callable());
        master_.calls->Reply(from, absl::OkStatus());
      }
      return;
    case cluster::Message::kPartialRunSetup:
      return steps_.partial_runs()->Setup(from, std::move(*request.mutable_partial_run_setup()));
    case cluster::Message::kPartialRun:
      return steps_.partial_runs()->AddPiece(from, std::move(*request.mutable_partial_run()));
    case cluster::Message::kCancel:
      return Cancel(from, request.cancel());
    case cluster::Message::kListDevices:
      return ListDevices(from);
    case cluster::Message::kReset:
      return Reset(from, request.reset());
    case cluster::Message::kSaveStates:
      return SaveStates(from, request.save_states().session());
    case cluster::Message::kRestoreStates:
      return RestoreStates(from, request.restore_states());
    case cluster::Message::kSaveResources:
      return SaveResources(from, request.save_resources());
    case cluster::Message::kRestoreResource:
      return RestoreResource(from, std::move(*request.mutable_restore_resource()));
    default:
      master_.calls->Reply(from, absl::UnimplementedError(StrCat("a master does not know request ",
                                                                 request.body_case())));
  }
}

void MasterRole::Cancel(Responder from, const cluster::CancelRequest& request) {
  absl::Status reason = absl::CancelledError("the client has cancelled the run");
  if (request.reason().code() != 0) reason = StatusOf(request.reason());
  const auto meant = [&](const MasterStep& step) {
    return step.client.from == from.from &&
           std::count(request.ids().begin(), request.ids().end(), step.client.id) > 0;
  };
  steps_.FailIf(meant, reason);
  master_.calls->Reply(from, absl::OkStatus());
}

void MasterRole::CreateSession(Responder from, cluster::CreateSessionRequest request) {
  if (absl::Status status = CheckFilters(request.config()); !status.ok()) {
    master_.calls->Reply(from, status);
  } else if (Missing(request.config()).empty()) {
    CreateSessionNow(from, std::move(request));
  } else {
    ClusterTime wait = master_.options.wait_for_workers;
    if (request.timeout_us() > 0) wait = std::min<ClusterTime>(wait, request.timeout_us());
    waiting_.push_back({from, std::move(request), master_.now + wait});
  }
}

void MasterRole::CreateSessionNow(Responder from, cluster::CreateSessionRequest request) {
  if (request.config().device_filters_size() > 0 &&
      master_.tasks.DevicesFor(request.config()).empty()) {
    master_.calls->Reply(
        from, InvalidArgument("no device of the cluster fits the session's device ",
                              "filters: ", absl::StrJoin(request.config().device_filters(), ", ")));
    return;
  }
  const std::string name = master_.NewName(StrCat("s", absl::Hex(master_.options.seed), "_"));
  auto session = std::make_shared<MasterSession>();
  session->client = from.from;
  session->config = request.config();
  master_.sessions[name] = session;
  absl::Cleanup not_begun = [&] { master_.sessions.erase(name); };
  WriteLog(LogLevel::kDebug, master_.own_name(), {"session"}, "session ", name, " is opened");
  master_.engine->CreateGraph(
      name, std::move(request), [this, from, name](const absl::Status& status) {
        auto it = master_.sessions.find(name);
        if (it == master_.sessions.end()) {
          master_.engine->DeleteGraph(name);
          master_.calls->Reply(from, status.ok() ? SessionClosedError() : status);
          return;
        }
        cluster::Message reply;
        cluster::CreateSessionReply* created = reply.mutable_create_session_reply();
        if (status.ok()) {
          created->set_session(name);
          for (cluster::DeviceInfo& device : master_.tasks.DevicesFor(it->second->config)) {
            *created->add_devices() = std::move(device);
          }
        } else {
          master_.sessions.erase(it);
          master_.engine->DeleteGraph(name);
        }
        master_.calls->Reply(from, status, std::move(reply));
      });
  std::move(not_begun).Cancel();
}

void MasterRole::ExtendSession(Responder from, cluster::ExtendSessionRequest request) {
  if (master_.FindSession(from, request.session()) == nullptr) return;
  const std::string name = request.session();
  master_.engine->ExtendGraph(name, std::move(request), [this, from](const absl::Status& status) {
    master_.calls->Reply(from, status);
  });
}

void MasterRole::CloseSession(const std::string& name, std::optional<Responder> from) {
  auto it = master_.sessions.find(name);
  if (it == master_.sessions.end()) return;
  std::shared_ptr<MasterSession> session = it->second;
  master_.sessions.erase(it);
  WriteLog(LogLevel::kDebug, master_.own_name(), {"session"}, "session ", name, " is closed");
  steps_.FailIf([&name](const MasterStep& step) { return step.session == name; },
                SessionClosedError());
  master_.engine->DeleteGraph(name);
  auto gather = std::make_shared<Gather>(Gather{master_.calls, from.value_or(Responder()),
                                                static_cast<int>(session->touched.size()) + 1,
                                                absl::OkStatus()});
  for (PeerId task : session->touched) {
    leftovers_.Delete(task, {name, ""}, [gather] { gather->Add(absl::OkStatus()); });
  }
  gather->Add(absl::OkStatus());
}

void MasterRole::ListDevices(Responder from) {
  cluster::Message reply;
  cluster::ListDevicesReply* list = reply.mutable_list_devices_reply();
  for (cluster::DeviceInfo& device : master_.tasks.DevicesFor({}))
    *list->add_devices() = std::move(device);
  master_.calls->Reply(from, absl::OkStatus(), std::move(reply));
}

void MasterRole::Reset(Responder from, const cluster::ResetRequest& request) {
  auto gather = std::make_shared<Gather>(
      Gather{master_.calls, from, static_cast<int>(master_.tasks.size()) + 1, absl::OkStatus()});
  for (PeerId i = 0; i < master_.tasks.size(); ++i) {
    if (master_.tasks.life(i) == 0) {
      gather->Add(master_.tasks.at(i).task.name.empty()
                      ? absl::OkStatus()
                      : absl::UnavailableError(
                            StrCat(master_.tasks.Describe(i),
                                   " cannot be reached; the containers of the others were reset")));
      continue;
    }
    cluster::Message call;
    *call.mutable_cleanup_all()->mutable_containers() = request.containers();
    master_.calls->Call(
        i, master_.tasks.life(i), std::move(call), master_.now, master_.options.wait_for_workers,
        [gather](const absl::Status& status, const cluster::Message&) { gather->Add(status); });
  }
  gather->Add(absl::OkStatus());
}

bool MasterRole::RefuseLost(Responder from, const MasterSession& session) {
  if (session.lost.empty()) return false;
  master_.calls->Reply(from, LostStates(master_.tasks.Describe(*session.lost.begin())));
  return true;
}

void MasterRole::SaveStates(Responder from, const std::string& name) {
  MasterSession* session = master_.FindSession(from, name);
  if (session == nullptr) return;
  session->keeps_states = true;
  if (RefuseLost(from, *session)) return;
  struct All : Gather {
    KernelStates states;
  };
  const auto all = std::make_shared<All>(
      All{{master_.calls, from, static_cast<int>(session->opened.size()) + 1, absl::OkStatus()},
          session->restored});
  const auto add = [all](const absl::Status& status) {
    all->status.Update(status);
    if (--all->left > 0) return;
    cluster::Message reply;
    if (all->status.ok()) {
      AddStates(all->states, reply.mutable_save_states_reply()->mutable_states());
    }
    all->calls->Reply(all->to, all->status, std::move(reply));
  };
  for (const auto& [task, life] : session->opened) {
    if (master_.tasks.life(task) != life) {
      add(LostStates(master_.tasks.Describe(task)));
      continue;
    }
    cluster::Message call;
    call.mutable_get_states()->set_session(name);
    master_.calls->Call(task, life, std::move(call), master_.now, master_.options.register_timeout,
                        [this, name, task = task, all, add, who = master_.tasks.at(task).task.name](
                            const absl::Status& status, const cluster::Message& reply) {
                          const KernelStates told = StatesOf(reply.get_states_reply().states());
                          Qualify(told, who, &all->states);
                          const auto session = master_.sessions.find(name);
                          // Those in functions are known then.
                          if (!told.empty() && session != master_.sessions.end()) {
                            session->second->with_states.insert(task);
                          }
                          add(status);
                        });
  }
  add(absl::OkStatus());
}

void MasterRole::RestoreStates(Responder from, const cluster::RestoreStatesRequest& request) {
  MasterSession* session = master_.FindSession(from, request.session());
  if (session == nullptr) return;
  session->keeps_states = true;
  session->restored = StatesOf(request.states());
  const auto gather = std::make_shared<Gather>(
      Gather{master_.calls, from, static_cast<int>(session->opened.size()) + 1, absl::OkStatus()});
  for (const auto& [task, life] : session->opened) {
    if (master_.tasks.life(task) != life) {
      gather->Add(LostStates(master_.tasks.Describe(task)));
      continue;
    }
    cluster::Message call;
    call.mutable_set_states()->set_session(request.session());
    AddStates(StatesFor(master_.tasks.at(task).task.name, session->restored),
              call.mutable_set_states()->mutable_states());
    master_.calls->Call(
        task, life, std::move(call), master_.now, master_.options.register_timeout,
        [gather](const absl::Status& status, const cluster::Message&) { gather->Add(status); });
  }
  gather->Add(absl::OkStatus());
}

void MasterRole::SaveResources(Responder from, const cluster::SaveResourcesRequest& request) {
  const MasterSession* session = master_.FindSession(from, request.session());
  if (session == nullptr || RefuseLost(from, *session)) return;
  struct All : Gather {
    cluster::Message reply;
  };
  const auto all = std::make_shared<All>(All{
      {master_.calls, from, static_cast<int>(session->opened.size()) + 1, absl::OkStatus()}, {}});
  all->reply.mutable_save_resources_reply();
  const auto add = [all](const absl::Status& status) {
    all->status.Update(status);
    if (--all->left == 0) all->calls->Reply(all->to, all->status, std::move(all->reply));
  };
  for (const auto& [task, life] : session->opened) {
    if (master_.tasks.life(task) != life) {
      add(LostStates(master_.tasks.Describe(task)));
      continue;
    }
    cluster::Message call;
    cluster::GetResourcesRequest* body = call.mutable_get_resources();
    body->set_session(request.session());
    *body->mutable_wanted() = request.wanted();
    body->set_where_only(request.where_only());
    body->set_first(request.first());
    if (request.max_bytes() > 0) {  // The reply has all of theirs.
      const auto tasks = static_cast<int64_t>(session->opened.size());
      body->set_max_bytes(std::max<int64_t>(1, request.max_bytes() / tasks));
    }
    master_.calls->Call(
        task, life, std::move(call), master_.now, master_.options.register_timeout,
        [this, name = request.session(), task = task, all, add](const absl::Status& status,
                                                                cluster::Message reply) {
          const auto session = master_.sessions.find(name);
          if (reply.get_resources_reply().resources_size() > 0 &&
              session != master_.sessions.end()) {
            session->second->with_states.insert(task);
          }
          auto* resources = all->reply.mutable_save_resources_reply();
          for (auto& one : *reply.mutable_get_resources_reply()->mutable_resources())
            *resources->add_resources() = std::move(one);
          add(status);
        });
  }
  add(absl::OkStatus());
}

void MasterRole::RestoreResource(Responder from, cluster::RestoreResourceRequest request) {
  MasterSession* session = master_.FindSession(from, request.session());
  if (session == nullptr) return;
  const std::string& device = request.resource().device();
  const std::optional<PeerId> task = master_.tasks.Find(device.substr(0, device.find("/device:")));
  if (!task) {
    return master_.calls->Reply(
        from, absl::NotFoundError(StrCat("the cluster has no task with a device ", device)));
  }
  const uint64_t life = master_.tasks.life(*task);
  if (life == 0) {
    return master_.calls->Reply(
        from, absl::UnavailableError(StrCat(master_.tasks.Describe(*task), " cannot be reached")));
  }
  cluster::Message call;
  cluster::SetResourceRequest* body = call.mutable_set_resource();
  body->set_session(request.session());
  *body->mutable_resource() = std::move(*request.mutable_resource());
  // A staging area may be on a task that the session has not used yet.
  const std::string name = body->session();
  signatures_.Open(
      name, session, *task,
      [this, from, task = *task, life, call = std::move(call)](const absl::Status& opened) mutable {
        absl::Status begun = opened;
        if (begun.ok()) {
          begun = CatchExceptions([&] {
            master_.calls->Call(
                task, life, std::move(call), master_.now, master_.options.register_timeout,
                [calls = master_.calls, from](const absl::Status& status, const cluster::Message&) {
                  calls->Reply(from, status);
                });
            return absl::OkStatus();
          });
        }
        if (!begun.ok()) master_.calls->Reply(from, begun);
      });
}

void MasterRole::OnTaskUp(PeerId task, uint64_t incarnation,
                          std::vector<cluster::DeviceInfo> devices, ClusterTime now) {
  master_.now = now;
  if (master_.tasks.Up(task, incarnation, std::move(devices))) leftovers_.Forget(task);
  CreateWaiting();
}

void MasterRole::CreateWaiting() {
  for (Waiting& one : std::exchange(waiting_, {})) {
    if (Missing(one.request.config()).empty()) {
      CreateSessionNow(one.client, std::move(one.request));
    } else {
      waiting_.push_back(std::move(one));
    }
  }
}

void MasterRole::OnTaskLost(PeerId task, const absl::Status& status) {
  master_.tasks.Lost(task, status);
  signatures_.OnTaskLost(task);
  steps_.OnTaskLost(task, status);
}

void MasterRole::OnClientLost(PeerId client, ClusterTime now) {
  master_.now = now;
  const auto of_client = [client](const auto& session) { return session->client == client; };
  for (const auto& name : KeysIf(master_.sessions, of_client)) CloseSession(name, std::nullopt);
  std::erase_if(waiting_, [client](const Waiting& w) { return w.client.from == client; });
}

void MasterRole::Tick(ClusterTime now) {
  master_.now = now;
  for (size_t i = 0; i < waiting_.size();) {
    if (now < waiting_[i].deadline) {
      ++i;
      continue;
    }
    const auto missing = absl::StrJoin(Missing(waiting_[i].request.config()), ", ");
    master_.calls->Reply(waiting_[i].client, absl::UnavailableError(StrCat(
                                                 "the session was not created: no answer from ",
                                                 missing, "; are these tasks running?")));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  leftovers_.Tick();
  signatures_.Tick();
  steps_.Tick();
}

void MasterRole::Stop(ClusterTime now) {
  master_.now = now;
  while (!master_.sessions.empty())
    CloseSession(std::string(master_.sessions.begin()->first), std::nullopt);
  for (Waiting& one : waiting_) {
    master_.calls->Reply(one.client,
                         absl::UnavailableError(
                             StrCat(master_.tasks.Describe(master_.options.self), " is stopping")));
  }
  waiting_.clear();
}

}  // namespace troupe
