#include "actors/cluster/master_role.h"

#include <algorithm>
#include <utility>

#include "devices/device_name.h"
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
  tasks_[number].task = task;
  tasks_[number].joined = std::max<ClusterTime>(1, now);
  task_by_name_[task.name] = number;
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
  if (stopped_) {
    calls_->Reply(from, absl::UnavailableError(StrCat(Describe(options_.self), " is stopping")));
    return;
  }
  switch (request.method()) {
    case cluster::CREATE_SESSION:
      if (absl::Status status = CheckFilters(request.config()); !status.ok()) {
        calls_->Reply(from, status);
      } else if (MissingTasks(request.config()).empty()) {
        CreateSession(from, std::move(request));
      } else {
        ClusterTime wait = options_.wait_for_workers;
        if (request.timeout_us() > 0) wait = std::min<ClusterTime>(wait, request.timeout_us());
        waiting_.push_back({from, std::move(request), now + wait});
      }
      return;
    case cluster::EXTEND_SESSION:
      ExtendSession(from, std::move(request));
      return;
    case cluster::RUN_STEP:
    case cluster::RUN_CALLABLE:
      RunStep(from, std::move(request), now);
      return;
    case cluster::MAKE_CALLABLE:
      MakeCallable(from, std::move(request));
      return;
    case cluster::RELEASE_CALLABLE:
      if (SessionState* session = FindSession(from, request.session())) {
        session->callables.erase(request.handle());
        calls_->Reply(from, absl::OkStatus());
      }
      return;
    case cluster::CLOSE_SESSION:
      if (FindSession(from, request.session()) != nullptr) CloseSession(request.session(), from);
      return;
    case cluster::LIST_DEVICES:
      ListDevices(from);
      return;
    case cluster::RESET:
      Reset(from, request);
      return;
    case cluster::CANCEL: {
      std::vector<uint64_t> steps;
      for (const auto& [id, step] : steps_) {
        if (step.client.from == from.from && std::find(request.ids().begin(), request.ids().end(),
                                                       step.client.id) != request.ids().end()) {
          steps.push_back(id);
        }
      }
      for (uint64_t id : steps) {
        Fail(id,
             absl::Status(
                 request.code() == 0 ? absl::StatusCode::kCancelled : StatusOf(request).code(),
                 request.error().empty() ? "the client has cancelled the run" : request.error()));
      }
      calls_->Reply(from, absl::OkStatus());
      return;
    }
    case cluster::PARTIAL_RUN_SETUP:
      PartialRunSetup(from, std::move(request));
      return;
    case cluster::PARTIAL_RUN:
      PartialRunPiece(from, std::move(request));
      return;
    default:
      calls_->Reply(from, absl::UnimplementedError(
                              StrCat("a master does not know method ", request.method())));
  }
}

void MasterRole::CreateSession(Responder from, cluster::Message request) {
  if (request.config().device_filters_size() > 0 && DevicesFor(request.config()).empty()) {
    std::string filters;
    for (const std::string& filter : request.config().device_filters()) {
      filters += (filters.empty() ? "" : ", ") + filter;
    }
    calls_->Reply(from, InvalidArgument("no device of the cluster fits the session's device ",
                                        "filters: ", filters));
    return;
  }
  const std::string name = StrCat("s", absl::Hex(options_.seed), "_", next_name_++);
  auto session = std::make_shared<SessionState>();
  session->client = from.from;
  session->closing = true;  // Until the graph has been read.
  session->config = request.config();
  sessions_[name] = session;
  engine_->CreateGraph(name, std::move(request), [this, from, name](const absl::Status& status) {
    auto it = sessions_.find(name);
    if (it == sessions_.end()) {
      engine_->DeleteGraph(name);
      calls_->Reply(from, status.ok() ? ClosedError() : status);
      return;
    }
    cluster::Message reply;
    if (status.ok()) {
      it->second->closing = false;
      reply.set_session(name);
      for (auto& device : DevicesFor(it->second->config)) {
        *reply.add_devices() = std::move(device);
      }
    } else {
      sessions_.erase(it);
      engine_->DeleteGraph(name);
    }
    calls_->Reply(from, status, std::move(reply));
  });
}

void MasterRole::ExtendSession(Responder from, cluster::Message request) {
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
  std::vector<uint64_t> steps;
  for (const auto& [id, step] : steps_) {
    if (step.session == name) steps.push_back(id);
  }
  for (uint64_t id : steps) Fail(id, ClosedError());
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
  request.set_method(leftover.handle.empty() ? cluster::DELETE_WORKER_SESSION
                                             : cluster::DEREGISTER_GRAPH);
  request.set_session(leftover.session);
  request.set_handle(leftover.handle);
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
  for (cluster::DeviceInfo& device : DevicesFor({})) *reply.add_devices() = std::move(device);
  calls_->Reply(from, absl::OkStatus(), std::move(reply));
}

void MasterRole::Reset(Responder from, const cluster::Message& request) {
  auto gather = std::make_shared<Gather>(
      Gather{calls_, from, static_cast<int>(tasks_.size()) + 1, absl::OkStatus()});
  for (PeerId i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].incarnation == 0) {
      gather->Add(absl::UnavailableError(
          StrCat(Describe(i), " cannot be reached; the containers of the others were reset")));
      continue;
    }
    cluster::Message call;
    call.set_method(cluster::CLEANUP_ALL);
    *call.mutable_containers() = request.containers();
    calls_->Call(
        i, tasks_[i].incarnation, std::move(call), now_, options_.wait_for_workers,
        [gather](const absl::Status& status, const cluster::Message&) { gather->Add(status); });
  }
  gather->Add(absl::OkStatus());
}

void MasterRole::OnTaskUp(PeerId task, uint64_t incarnation, const cluster::Message& status,
                          ClusterTime now) {
  now_ = now;
  TaskState& state = tasks_[task];
  if (incarnation != state.last_incarnation) leftovers_.erase(task);  // They ended with that life.
  state.incarnation = state.last_incarnation = incarnation;
  state.devices.assign(status.devices().begin(), status.devices().end());
  state.lost = absl::OkStatus();
  std::vector<Waiting> waiting = std::move(waiting_);
  waiting_.clear();
  for (Waiting& one : waiting) {
    if (MissingTasks(one.request.config()).empty()) {
      CreateSession(one.client, std::move(one.request));
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
  std::vector<uint64_t> steps;
  for (const auto& [id, step] : steps_) {
    const auto& tasks = step.signature->tasks;
    if (std::find(tasks.begin(), tasks.end(), task) != tasks.end()) steps.push_back(id);
  }
  for (uint64_t id : steps) Fail(id, status);
}

void MasterRole::OnTaskRefused(PeerId task, const absl::Status& why) {
  if (tasks_[task].incarnation == 0) tasks_[task].lost = why;
}

void MasterRole::OnClientLost(PeerId client, ClusterTime now) {
  now_ = now;
  std::vector<std::string> names;
  for (const auto& [name, session] : sessions_) {
    if (session->client == client) names.push_back(name);
  }
  for (const std::string& name : names) CloseSession(name, std::nullopt);
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                [client](const Waiting& w) { return w.client.from == client; }),
                 waiting_.end());
}

void MasterRole::Tick(ClusterTime now) {
  now_ = now;
  for (size_t i = 0; i < waiting_.size();) {
    if (now < waiting_[i].deadline) {
      ++i;
      continue;
    }
    std::string missing;
    for (const std::string& task : MissingTasks(waiting_[i].request.config())) {
      missing += (missing.empty() ? "" : ", ") + task;
    }
    calls_->Reply(waiting_[i].client,
                  absl::UnavailableError(StrCat("the session was not created: no answer from ",
                                                missing, "; are these tasks running?")));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
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
  std::vector<uint64_t> late, given_up;
  for (const auto& [id, step] : steps_) {
    if (!step.status.ok()) {
      if (now >= step.give_up) given_up.push_back(id);
    } else if (step.Late(now)) {
      late.push_back(id);
    }
  }
  for (uint64_t id : given_up) Finish(id);
  for (uint64_t id : late) {
    Fail(id, absl::DeadlineExceededError("the run did not finish within its timeout"));
  }
}

void MasterRole::Stop(ClusterTime now) {
  now_ = now;
  stopped_ = true;
  std::vector<std::string> names;
  for (const auto& [name, session] : sessions_) names.push_back(name);
  for (const std::string& name : names) CloseSession(name, std::nullopt);
  for (Waiting& one : waiting_) {
    calls_->Reply(one.client,
                  absl::UnavailableError(StrCat(Describe(options_.self), " is stopping")));
  }
  waiting_.clear();
}

}  // namespace troupe
