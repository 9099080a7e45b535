#include "actors/cluster/master_role.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "devices/device_name.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// True if what is called `name`, a device or a task, may be of use to a session.
bool Fits(const std::string& name, const cluster::SessionConfig& config, bool task) {
  absl::StatusOr<DeviceName> parsed = DeviceName::Parse(name);
  for (const std::string& filter : config.device_filters()) {
    absl::StatusOr<DeviceName> pattern = DeviceName::Parse(filter);
    if (!parsed.ok() || !pattern.ok()) continue;
    if (task) {
      pattern->type = std::nullopt;
      pattern->index = std::nullopt;
    }
    if (parsed->Matches(*pattern)) return true;
  }
  return config.device_filters().empty();
}

absl::Status CheckFilters(const cluster::SessionConfig& config) {
  for (const std::string& filter : config.device_filters()) {
    TROUPE_RETURN_IF_ERROR(DeviceName::Parse(filter).status());
  }
  return absl::OkStatus();
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

absl::Status MasterRole::ClosedError() {
  return absl::CancelledError("the session has been closed");
}

MasterRole::MasterRole(Options options, std::vector<Task> tasks, Calls* calls, MasterEngine* engine)
    : options_(options), calls_(calls), engine_(engine) {
  for (Task& task : tasks) {
    task_by_name_[task.name] = tasks_.size();
    tasks_.push_back({std::move(task)});
  }
}

void MasterRole::AddTask(PeerId number, const Task& task, ClusterTime now) {
  if (number >= tasks_.size()) tasks_.resize(number + 1);
  if (tasks_[number].task.name != task.name) tasks_[number] = {};
  tasks_[number].task = task;
  tasks_[number].joined = std::max<ClusterTime>(1, now);
  task_by_name_[task.name] = number;
}

void MasterRole::RemoveTask(PeerId number, const absl::Status& why, ClusterTime now) {
  now_ = now;
  task_by_name_.erase(tasks_[number].task.name);
  leftovers_.erase(number);
  tasks_[number] = {};
  tasks_[number].lost = why;
  tasks_[number].joined = 1;  // Nobody waits for it.
  CreateWaiting();
}

std::string MasterRole::Describe(PeerId task) const {
  return StrCat(tasks_[task].task.name, " (", tasks_[task].task.address, ")");
}

std::vector<std::string> MasterRole::MissingTasks(const cluster::SessionConfig& config) const {
  std::vector<std::string> missing;
  for (PeerId i = 0; i < tasks_.size(); ++i) {
    const TaskState& task = tasks_[i];
    const bool may_miss =
        task.joined != 0 && (!task.lost.ok() || now_ - task.joined > options_.wait_for_workers);
    if (task.incarnation == 0 && !may_miss && Fits(task.task.name, config, /*task=*/true)) {
      const std::string why(task.lost.message());
      missing.push_back(why.empty() ? Describe(i) : StrCat(Describe(i), " [", why, "]"));
    }
  }
  return missing;
}

std::vector<cluster::DeviceInfo> MasterRole::DevicesFor(
    const cluster::SessionConfig& config) const {
  std::vector<cluster::DeviceInfo> devices;
  const auto add = [&](PeerId task) {
    for (const cluster::DeviceInfo& device : tasks_[task].devices) {
      if (Fits(device.name(), config, /*task=*/false)) devices.push_back(device);
    }
  };
  // The master's own first: what may run anywhere runs there.
  add(options_.self);
  for (PeerId i = 0; i < tasks_.size(); ++i) {
    if (i != options_.self) add(i);
  }
  return devices;
}

MasterRole::SessionState* MasterRole::FindSession(Responder from, const std::string& name) {
  auto it = sessions_.find(name);
  if (it == sessions_.end() || it->second->client != from.from) {
    calls_->Reply(from,
                  absl::AbortedError(StrCat(
                      "there is no session ", name, " of this client on ", Describe(options_.self),
                      "; the task may have been restarted: create a new session")));
    return nullptr;
  }
  return it->second.get();
}

void MasterRole::OnRequest(Responder from, cluster::Message request, ClusterTime now) {
  now_ = now;
  switch (request.body_case()) {
    case cluster::Message::kCreateSession:
      return CreateSession(from, std::move(*request.mutable_create_session()));
    case cluster::Message::kExtendSession:
      return ExtendSession(from, std::move(*request.mutable_extend_session()));
    case cluster::Message::kCloseSession: {
      const std::string& name = request.close_session().session();
      if (FindSession(from, name) != nullptr) CloseSession(name, from);
      return;
    }
    case cluster::Message::kRunStep:
      return RunStep(from, std::move(*request.mutable_run_step()));
    case cluster::Message::kMakeCallable:
      return MakeCallable(from, request.make_callable());
    case cluster::Message::kReleaseCallable:
      if (SessionState* session = FindSession(from, request.release_callable().session())) {
        session->callables.erase(request.release_callable().callable());
        calls_->Reply(from, absl::OkStatus());
      }
      return;
    case cluster::Message::kPartialRunSetup:
      return PartialRunSetup(from, std::move(*request.mutable_partial_run_setup()));
    case cluster::Message::kPartialRun:
      return PartialRunPiece(from, std::move(*request.mutable_partial_run()));
    case cluster::Message::kCancel:
      return Cancel(from, request.cancel());
    case cluster::Message::kListDevices:
      return ListDevices(from);
    case cluster::Message::kReset:
      return Reset(from, request.reset());
    default:
      calls_->Reply(from, absl::UnimplementedError(
                              StrCat("a master does not know request ", request.body_case())));
  }
}

void MasterRole::Cancel(Responder from, const cluster::CancelRequest& request) {
  absl::Status reason = absl::CancelledError("the client has cancelled the run");
  if (request.reason().code() != 0) reason = StatusOf(request.reason());
  const auto meant = [&](const Step& step) {
    return step.client.from == from.from &&
           std::count(request.ids().begin(), request.ids().end(), step.client.id) > 0;
  };
  for (uint64_t id : KeysIf(steps_, meant)) Fail(id, reason);
  calls_->Reply(from, absl::OkStatus());
}

void MasterRole::CreateSession(Responder from, cluster::CreateSessionRequest request) {
  if (absl::Status status = CheckFilters(request.config()); !status.ok()) {
    calls_->Reply(from, status);
  } else if (MissingTasks(request.config()).empty()) {
    CreateSessionNow(from, std::move(request));
  } else {
    ClusterTime wait = options_.wait_for_workers;
    if (request.timeout_us() > 0) wait = std::min<ClusterTime>(wait, request.timeout_us());
    waiting_.push_back({from, std::move(request), now_ + wait});
  }
}

void MasterRole::CreateSessionNow(Responder from, cluster::CreateSessionRequest request) {
  if (request.config().device_filters_size() > 0 && DevicesFor(request.config()).empty()) {
    calls_->Reply(
        from, InvalidArgument("no device of the cluster fits the session's device ",
                              "filters: ", absl::StrJoin(request.config().device_filters(), ", ")));
    return;
  }
  const std::string name = StrCat("s", absl::Hex(options_.seed), "_", next_name_++);
  auto session = std::make_shared<SessionState>();
  session->client = from.from;
  session->config = request.config();
  sessions_[name] = session;
  WriteLog(LogLevel::kDebug, tasks_[options_.self].task.name, {"session"}, "session ", name,
           " is opened");
  engine_->CreateGraph(name, std::move(request), [this, from, name](const absl::Status& status) {
    auto it = sessions_.find(name);
    if (it == sessions_.end()) {
      engine_->DeleteGraph(name);
      calls_->Reply(from, status.ok() ? ClosedError() : status);
      return;
    }
    cluster::Message reply;
    cluster::CreateSessionReply* created = reply.mutable_create_session_reply();
    if (status.ok()) {
      created->set_session(name);
      for (cluster::DeviceInfo& device : DevicesFor(it->second->config)) {
        *created->add_devices() = std::move(device);
      }
    } else {
      sessions_.erase(it);
      engine_->DeleteGraph(name);
    }
    calls_->Reply(from, status, std::move(reply));
  });
}

void MasterRole::ExtendSession(Responder from, cluster::ExtendSessionRequest request) {
  if (FindSession(from, request.session()) == nullptr) return;
  const std::string name = request.session();
  engine_->ExtendGraph(name, std::move(request),
                       [this, from](const absl::Status& status) { calls_->Reply(from, status); });
}

void MasterRole::CloseSession(const std::string& name, std::optional<Responder> from) {
  auto it = sessions_.find(name);
  if (it == sessions_.end()) return;
  std::shared_ptr<SessionState> session = it->second;
  sessions_.erase(it);
  WriteLog(LogLevel::kDebug, tasks_[options_.self].task.name, {"session"}, "session ", name,
           " is closed");
  const auto of_session = [&name](const Step& step) { return step.session == name; };
  for (uint64_t id : KeysIf(steps_, of_session)) Fail(id, ClosedError());
  engine_->DeleteGraph(name);
  auto gather = std::make_shared<Gather>(Gather{calls_, from.value_or(Responder()),
                                                static_cast<int>(session->touched.size()) + 1,
                                                absl::OkStatus()});
  for (PeerId task : session->touched) {
    Delete(task, {name, ""}, [gather] { gather->Add(absl::OkStatus()); });
  }
  gather->Add(absl::OkStatus());
}

void MasterRole::Delete(PeerId task, const Leftover& leftover, std::function<void()> tried) {
  leftovers_[task].insert(leftover);
  if (tasks_[task].incarnation == 0) {
    if (tried) tried();
    return;
  }
  cluster::Message request;
  if (leftover.handle.empty()) {
    request.mutable_delete_worker_session()->set_session(leftover.session);
  } else {
    request.mutable_deregister_graph()->set_session(leftover.session);
    request.mutable_deregister_graph()->set_handle(leftover.handle);
  }
  calls_->Call(task, tasks_[task].incarnation, std::move(request), now_, options_.grace,
               [this, task, leftover, tried = std::move(tried)](const absl::Status& status,
                                                                const cluster::Message&) {
                 if (status.ok()) leftovers_[task].erase(leftover);
                 if (tried) tried();
               });
}

void MasterRole::DropRegistrations(const std::string& name, SessionState* session, PeerId task) {
  for (auto& [key, signature] : session->signatures) {
    auto it = signature->registrations.find(task);
    if (it == signature->registrations.end()) continue;
    // The task may have the graph nevertheless.
    leftovers_[task].insert({name, it->second.handle});
    signature->registrations.erase(it);
  }
}

absl::Status MasterRole::Forgotten(const std::string& session, PeerId task) {
  if (auto it = sessions_.find(session); it != sessions_.end()) {
    it->second->opened.erase(task);
    DropRegistrations(session, it->second.get(), task);
  }
  return absl::UnavailableError(
      StrCat(Describe(task),
             " could not hear the master for a while and has forgotten the session's "
             "graphs; they will be registered again by the next run"));
}

void MasterRole::ListDevices(Responder from) {
  cluster::Message reply;
  cluster::ListDevicesReply* list = reply.mutable_list_devices_reply();
  for (cluster::DeviceInfo& device : DevicesFor({})) *list->add_devices() = std::move(device);
  calls_->Reply(from, absl::OkStatus(), std::move(reply));
}

void MasterRole::Reset(Responder from, const cluster::ResetRequest& request) {
  auto gather = std::make_shared<Gather>(
      Gather{calls_, from, static_cast<int>(tasks_.size()) + 1, absl::OkStatus()});
  for (PeerId i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].incarnation == 0) {
      gather->Add(
          tasks_[i].task.name.empty()
              ? absl::OkStatus()
              : absl::UnavailableError(StrCat(
                    Describe(i), " cannot be reached; the containers of the others were reset")));
      continue;
    }
    cluster::Message call;
    *call.mutable_cleanup_all()->mutable_containers() = request.containers();
    calls_->Call(
        i, tasks_[i].incarnation, std::move(call), now_, options_.wait_for_workers,
        [gather](const absl::Status& status, const cluster::Message&) { gather->Add(status); });
  }
  gather->Add(absl::OkStatus());
}

void MasterRole::OnTaskUp(PeerId task, uint64_t incarnation,
                          std::vector<cluster::DeviceInfo> devices, ClusterTime now) {
  now_ = now;
  TaskState& state = tasks_[task];
  if (incarnation != state.last_incarnation) leftovers_.erase(task);  // They ended with that life.
  state.incarnation = state.last_incarnation = incarnation;
  state.devices = std::move(devices);
  state.lost = absl::OkStatus();
  CreateWaiting();
}

void MasterRole::CreateWaiting() {
  for (Waiting& one : std::exchange(waiting_, {})) {
    if (MissingTasks(one.request.config()).empty()) {
      CreateSessionNow(one.client, std::move(one.request));
    } else {
      waiting_.push_back(std::move(one));
    }
  }
}

void MasterRole::OnTaskLost(PeerId task, const absl::Status& status) {
  tasks_[task].incarnation = 0;
  tasks_[task].lost = status;
  for (auto& [name, session] : sessions_) {
    session->opened.erase(task);
    session->opening.erase(task);
    DropRegistrations(name, session.get(), task);
  }
  // Steps that wait for a registration on another task need not wait any longer.
  const auto needs_it = [task](const Step& step) { return step.signature->Uses(task); };
  for (uint64_t id : KeysIf(steps_, needs_it)) Fail(id, status);
}

void MasterRole::OnTaskRefused(PeerId task, const absl::Status& why) {
  if (tasks_[task].incarnation == 0) tasks_[task].lost = why;
}

void MasterRole::OnClientLost(PeerId client, ClusterTime now) {
  now_ = now;
  const auto of_client = [client](const auto& session) { return session->client == client; };
  for (const auto& name : KeysIf(sessions_, of_client)) CloseSession(name, std::nullopt);
  std::erase_if(waiting_, [client](const Waiting& w) { return w.client.from == client; });
}

void MasterRole::Tick(ClusterTime now) {
  now_ = now;
  for (size_t i = 0; i < waiting_.size();) {
    if (now < waiting_[i].deadline) {
      ++i;
      continue;
    }
    const auto missing = absl::StrJoin(MissingTasks(waiting_[i].request.config()), ", ");
    calls_->Reply(waiting_[i].client,
                  absl::UnavailableError(StrCat("the session was not created: no answer from ",
                                                missing, "; are these tasks running?")));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (!failed_steps_.empty() && now - failed_steps_.front().when > kFailedStepLifetime) {
    failed_steps_.pop_front();
  }
  if (now >= next_leftovers_) {
    next_leftovers_ = now + 2 * options_.grace;
    for (const auto& [task, leftovers] : std::map(leftovers_)) {
      if (tasks_[task].incarnation == 0) continue;
      for (const Leftover& leftover : leftovers) Delete(task, leftover);
    }
  }
  if (now >= next_old_signatures_) {
    next_old_signatures_ = now + options_.signature_lifetime / 8;
    DropOldSignatures();
  }
  const auto given_up = [now](const Step& step) {
    return !step.status.ok() && now >= step.give_up;
  };
  const auto late = [now](const Step& step) { return step.status.ok() && step.Late(now); };
  for (uint64_t id : KeysIf(steps_, given_up)) Finish(id);
  for (uint64_t id : KeysIf(steps_, late)) {
    Fail(id, absl::DeadlineExceededError("the run did not finish within its timeout"));
  }
}

void MasterRole::Stop(ClusterTime now) {
  now_ = now;
  while (!sessions_.empty()) CloseSession(std::string(sessions_.begin()->first), std::nullopt);
  for (Waiting& one : waiting_) {
    calls_->Reply(one.client,
                  absl::UnavailableError(StrCat(Describe(options_.self), " is stopping")));
  }
  waiting_.clear();
}

}  // namespace troupe
