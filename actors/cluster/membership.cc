// How tasks join a cluster that runs, and leave it. A name that is free counts as another one:
// whoever has the higher epoch is right, and of one epoch who says that it has left.
#include <algorithm>
#include <charconv>
#include <utility>

#include "actors/cluster/node_role.h"
#include "actors/executor/rendezvous.h"
#include "devices/device_name.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

// Somebody else's list is believed within limits.
constexpr size_t kMostTasks = 100000;
// Tasks that have left are remembered for those who are away.
constexpr size_t kMostGone = 1000;

/// A name that a task may have, and an address that somebody may be at.
absl::Status CheckMember(const cluster::Task& member) {
  const std::string& name = member.name();
  const std::string& address = member.address();
  absl::StatusOr<DeviceName> parsed = DeviceName::Parse(name);
  if (!parsed.ok() || !parsed->job || !parsed->task || parsed->replica != 0 || parsed->type ||
      parsed->index) {
    return InvalidArgument("\"", name, "\" is no name of a task");
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != std::string::npos) {
    const char* end = address.data() + address.size();
    const auto read = std::from_chars(address.data() + colon + 1, end, port);
    if (read.ec != std::errc() || read.ptr != end) port = 0;
  }
  if (colon == 0 || port < 1 || port > 65535) {
    return InvalidArgument("\"", address, "\", the address of ", name, ", is not host:port");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NodeRole::CheckNewcomer(const cluster::Task& newcomer) const {
  TROUPE_RETURN_IF_ERROR(CheckMember(newcomer));
  const std::string& name = newcomer.name();
  const std::string& address = newcomer.address();
  if (newcomer.incarnation() == 0) return InvalidArgument(name, " has no incarnation");
  for (PeerId i = 0; i < options_.tasks.size(); ++i) {
    const MasterRole::Task& task = options_.tasks[i];
    const bool lives = i == self_ || detector_.alive(i);
    const uint64_t life = i == self_ ? options_.incarnation : detector_.incarnation(i);
    if (task.name == name && lives && life != newcomer.incarnation()) {
      return absl::AlreadyExistsError(
          StrCat("there is a task ", Describe(i), " already, and it lives; join as another one"));
    }
    if (task.name == name && task.address != address && i != self_ && now_ < known_from_ &&
        detector_.health(i) == FailureDetectorRole::Health::kUnknown) {
      return absl::UnavailableError(
          StrCat("it is not known yet whether ", Describe(i), " lives; try again in a moment"));
    }
    if (task.name != name && task.address == address) {
      return InvalidArgument(address, " is the address of ", task.name, "; ", name,
                             " needs one of its own");
    }
  }
  return options_.tasks.size() < kMostTasks
             ? absl::OkStatus()
             : absl::ResourceExhaustedError("the cluster has too many tasks");
}

void NodeRole::AddMember(const cluster::Task& member, ClusterTime now) {
  PeerId id = FindMember(member.name());
  const bool is_new = id == options_.tasks.size();
  if (is_new && !free_numbers_.empty() &&
      now - free_numbers_.front().second >= options_.health.timeout) {
    id = free_numbers_.front().first;
    free_numbers_.pop_front();
  } else if (is_new) {
    options_.tasks.emplace_back();
  }
  MasterRole::Task& task = options_.tasks[id];
  task.epoch = std::max(task.epoch, member.epoch());
  members_hash_ = 0;
  if (id == self_ || task.address == member.address()) return;
  task.name = member.name();
  task.address = member.address();
  if (is_new) {
    std::erase_if(gone_, [&](const cluster::Task& gone) { return gone.name() == task.name; });
    lost_.erase(id);
    detector_.Add(id, now);
  }
  WriteLog(LogLevel::kInfo, options_.task, {"member"}, Describe(id), " is a member now");
  if (master_ != nullptr) master_->AddTask(id, task, now);
  if (member_watcher_) member_watcher_(id, task.name, task.address);
}

void NodeRole::AddMembers(const Tasks& members, ClusterTime now) {
  // Who is no task believes the tasks: they may all have been restarted, and have forgotten that
  // one had left when it joined again.
  const uint64_t forgotten = options_.task.empty() ? 1 : 0;
  for (const cluster::Task& member : members) {
    const PeerId id = FindMember(member.name());
    const bool known = id < options_.tasks.size();
    if (member.left()) {
      Remove(member, now);
      // Of one epoch, others may know a task by another address than this one does.
    } else if ((known ? member.epoch() > options_.tasks[id].epoch
                      : member.epoch() + forgotten >= NextEpoch(member.name())) &&
               options_.tasks.size() < kMostTasks && CheckMember(member).ok()) {
      AddMember(member, now);
    }
  }
}

void NodeRole::ListMembers(Tasks* members) const {
  for (const MasterRole::Task& task : options_.tasks) {
    if (task.name.empty()) continue;
    cluster::Task* member = members->Add();
    member->set_name(task.name);
    member->set_address(task.address);
    member->set_epoch(task.epoch);
  }
  for (const cluster::Task& gone : gone_) *members->Add() = gone;
}

uint64_t NodeRole::HashMembers() {
  if (members_hash_ != 0) return members_hash_;
  for (const MasterRole::Task& task : options_.tasks) {
    if (task.name.empty()) continue;
    members_hash_ += (RendezvousKey(task.name) ^ task.epoch) * 0x9e3779b97f4a7c15u;
  }
  members_hash_ += members_hash_ == 0;
  return members_hash_;
}

PeerId NodeRole::FindMember(const std::string& name) const {
  PeerId id = 0;
  while (id < options_.tasks.size() && (options_.tasks[id].name != name || name.empty())) ++id;
  return id;
}

uint64_t NodeRole::NextEpoch(const std::string& name) const {
  for (const cluster::Task& gone : gone_) {
    if (gone.name() == name) return gone.epoch() + 1;
  }
  return 0;
}

void NodeRole::Tell(const cluster::Message& news, const std::string& but,
                    std::function<void(const absl::Status&)> told) {
  struct Telling {
    int left = 1;
    absl::Status status;
  };
  auto telling = std::make_shared<Telling>();
  // Whoever cannot be reached learns of it from the others when it is back.
  auto heard = [telling, told = std::move(told)](const absl::Status& answer) {
    if (absl::IsAlreadyExists(answer) || absl::IsInvalidArgument(answer)) {
      telling->status.Update(answer);
    }
    if (--telling->left <= 0) told(telling->status);
  };
  for (PeerId i = 0; i < options_.tasks.size(); ++i) {
    if (i == self_ || !detector_.alive(i) || options_.tasks[i].name == but) continue;
    ++telling->left;
    calls_.Call(i, detector_.incarnation(i), news, now_, options_.health.timeout,
                [heard](const absl::Status& answer, const cluster::Message&) { heard(answer); });
  }
  heard(absl::OkStatus());
}

void NodeRole::OnAddTask(Responder from, const cluster::Task& newcomer, ClusterTime now) {
  absl::Status status =
      from.from < options_.tasks.size()
          ? CheckNewcomer(newcomer)
          : absl::PermissionDeniedError("only tasks of the cluster may announce others");
  if (newcomer.epoch() < NextEpoch(newcomer.name())) {
    status.Update(
        absl::AlreadyExistsError(StrCat(newcomer.name(), " has left, which ", Describe(from.from),
                                        " had not heard yet; try again in a moment")));
  }
  if (status.ok()) AddMember(newcomer, now);
  calls_.Reply(from, status);
}

void NodeRole::OnJoin(Responder from, cluster::Task newcomer, ClusterTime now) {
  if (absl::Status status = CheckNewcomer(newcomer); !status.ok()) {
    WriteLog(LogLevel::kWarning, options_.task, {"join"}, newcomer.name(), " at ",
             newcomer.address(), " does not become a member: ", status.message());
    calls_.Reply(from, status);
    return;
  }
  const PeerId id = FindMember(newcomer.name());
  newcomer.set_epoch(id < options_.tasks.size() ? options_.tasks[id].epoch
                                                : NextEpoch(newcomer.name()));
  AddMember(newcomer, now);
  // The newcomer is told when all have heard of it, so that any of them can use it from then on.
  cluster::Message news;
  *news.mutable_add_task()->mutable_task() = newcomer;
  Tell(news, newcomer.name(), [this, from](const absl::Status& status) {
    cluster::Message reply;
    ListMembers(reply.mutable_join_cluster_reply()->mutable_tasks());
    calls_.Reply(from, status, std::move(reply));
  });
}

void NodeRole::AskMembers(PeerId task, ClusterTime now) {
  now_ = now;
  if (task >= options_.tasks.size() || !detector_.alive(task)) return;
  cluster::Message request;
  request.mutable_get_status();
  calls_.Call(task, detector_.incarnation(task), std::move(request), now, options_.health.timeout,
              [this](const absl::Status& status, const cluster::Message& reply) {
                asking_members_ = false;
                if (status.ok() && !stopped_) AddMembers(reply.get_status_reply().tasks(), now_);
              });
  asking_members_ = true;
}

void NodeRole::Joined(const cluster::JoinClusterReply& members, ClusterTime now) {
  options_.joining = false;
  AddMembers(members.tasks(), now);
}

// ---- Leaving ----

void NodeRole::Leave(const std::string& task, ClusterTime now,
                     std::function<void(const absl::Status&)> done) {
  now_ = now;
  const PeerId id = FindMember(task);
  if (id == options_.tasks.size()) {
    done(NextEpoch(task) > 0 ? absl::OkStatus()
                             : absl::NotFoundError(StrCat("there is no task ", task,
                                                          " in the cluster of ", Describe(self_))));
    return;
  }
  bool others = false;
  for (PeerId i = 0; i < options_.tasks.size(); ++i) others |= i != self_ && detector_.alive(i);
  if (id == self_ && !others) {
    done(absl::FailedPreconditionError(StrCat("no task lives but ", Describe(self_),
                                              ", so that nobody would know that it leaves; ",
                                              "stop it instead")));
    return;
  }
  cluster::Message news;
  cluster::Task* gone = news.mutable_leave_cluster()->mutable_task();
  gone->set_name(task);
  gone->set_address(options_.tasks[id].address);
  gone->set_epoch(options_.tasks[id].epoch);
  // It hears of it, too, as long as it is a member.
  Tell(news, "", [this, record = *gone, done = std::move(done)](const absl::Status& status) {
    Remove(record, now_);
    done(status);
  });
}

void NodeRole::OnLeave(Responder from, const cluster::Task& gone, ClusterTime now) {
  if (from.from >= options_.tasks.size()) {
    Leave(gone.name(), now,
          [this, from](const absl::Status& status) { calls_.Reply(from, status); });
    return;
  }
  calls_.Reply(from, absl::OkStatus());  // It may be the last one.
  Remove(gone, now);
}

void NodeRole::Remove(const cluster::Task& gone, ClusterTime now) {
  const PeerId id = FindMember(gone.name());
  const bool member = id < options_.tasks.size();
  if (gone.epoch() < std::max(NextEpoch(gone.name()), member ? options_.tasks[id].epoch : 0))
    return;
  if (!CheckMember(gone).ok() || (id == self_ && options_.joining)) return;
  std::erase_if(gone_, [&](const cluster::Task& one) { return one.name() == gone.name(); });
  gone_.push_back(gone);
  gone_.back().set_left(true);
  if (gone_.size() > kMostGone) gone_.pop_front();
  if (!member) return;
  const absl::Status why = absl::UnavailableError(StrCat(Describe(id), " has left the cluster"));
  if (!options_.task.empty()) {
    cluster::Message news;
    *news.mutable_leave_cluster()->mutable_task() = gone;
    Tell(news, "", [](const absl::Status&) {});  // Itself, too, if it is there.
  }
  if (id == self_) {
    WriteLog(LogLevel::kWarning, options_.task, {"member"}, "has left the cluster");
    options_.joining = true;
    Stop(now);
  } else {
    detector_.Remove(id);
    ask_again_.erase(id);
    Lost(id, why, now);
    if (master_ != nullptr) master_->RemoveTask(id, why, now);
    options_.tasks[id] = {};
    members_hash_ = 0;
    free_numbers_.emplace_back(id, now);
  }
  if (member_watcher_) member_watcher_(id, "", "");
}

}  // namespace troupe
