// How tasks join a cluster that runs.
#include <charconv>
#include <utility>

#include "actors/cluster/node_role.h"
#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

// Somebody else's list is believed within limits.
constexpr size_t kMostTasks = 100000;

/// A name that a task may have, and an address that somebody may be at.
absl::Status CheckMember(const std::string& name, const std::string& address) {
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

absl::Status NodeRole::CheckNewcomer(const std::string& name, const std::string& address,
                                     uint64_t incarnation) const {
  TROUPE_RETURN_IF_ERROR(CheckMember(name, address));
  for (PeerId i = 0; i < options_.tasks.size(); ++i) {
    const MasterRole::Task& task = options_.tasks[i];
    const bool lives = i == self_ || detector_.alive(i);
    const uint64_t life = i == self_ ? options_.incarnation : detector_.incarnation(i);
    if (task.name == name && lives && life != incarnation) {
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

void NodeRole::AddMember(const std::string& name, const std::string& address, ClusterTime now) {
  PeerId id = 0;
  while (id < options_.tasks.size() && options_.tasks[id].name != name) ++id;
  if (id == self_) return;
  if (id < options_.tasks.size()) {
    if (options_.tasks[id].address == address) return;
    options_.tasks[id].address = address;
  } else {
    options_.tasks.push_back({name, address});
    detector_.Add(id, now);
  }
  if (master_ != nullptr) master_->AddTask(id, options_.tasks[id], now);
  if (member_watcher_) member_watcher_(id, name, address);
}

void NodeRole::AddMembers(const cluster::Message& message, ClusterTime now) {
  if (message.tasks_size() != message.addresses_size()) return;
  for (int i = 0; i < message.tasks_size(); ++i) {
    bool known = false;
    for (const MasterRole::Task& task : options_.tasks) known |= task.name == message.tasks(i);
    // Others may know a task by another address than this one does.
    if (known || options_.tasks.size() >= kMostTasks ||
        !CheckMember(message.tasks(i), message.addresses(i)).ok()) {
      continue;
    }
    AddMember(message.tasks(i), message.addresses(i), now);
  }
}

void NodeRole::ListMembers(cluster::Message* message) const {
  for (const MasterRole::Task& task : options_.tasks) {
    message->add_tasks(task.name);
    message->add_addresses(task.address);
  }
}

void NodeRole::OnJoin(Responder from, const cluster::Message& request, ClusterTime now) {
  if (request.tasks_size() != 1 || request.addresses_size() != 1 || request.ids_size() != 1) {
    calls_.Reply(from, InvalidArgument("one task joins at a time"));
    return;
  }
  const std::string name = request.tasks(0), address = request.addresses(0);
  const bool announced = request.method() == cluster::ADD_TASK;
  absl::Status status = CheckNewcomer(name, address, request.ids(0));
  if (announced && from.from >= options_.tasks.size()) {
    status = absl::PermissionDeniedError("only tasks of the cluster may announce others");
  }
  if (!status.ok()) {
    calls_.Reply(from, status);
    return;
  }
  AddMember(name, address, now);
  if (announced) {
    calls_.Reply(from, absl::OkStatus());
    return;
  }
  // The newcomer is told when all have heard of it, so that any of them can use it from then on.
  // Whoever cannot be reached learns of it from the others when it is back.
  struct Announcement {
    int left = 1;
    absl::Status status;
  };
  auto announcement = std::make_shared<Announcement>();
  auto heard = [this, from, announcement](const absl::Status& answer) {
    if (absl::IsAlreadyExists(answer) || absl::IsInvalidArgument(answer)) {
      announcement->status.Update(answer);
    }
    if (--announcement->left > 0) return;
    cluster::Message reply;
    ListMembers(&reply);
    calls_.Reply(from, announcement->status, std::move(reply));
  };
  for (PeerId i = 0; i < options_.tasks.size(); ++i) {
    if (i == self_ || !detector_.alive(i) || options_.tasks[i].name == name) continue;
    ++announcement->left;
    cluster::Message call;
    call.set_method(cluster::ADD_TASK);
    call.add_tasks(name);
    call.add_addresses(address);
    call.add_ids(request.ids(0));
    calls_.Call(i, detector_.incarnation(i), std::move(call), now, options_.health.timeout,
                [heard](const absl::Status& answer, const cluster::Message&) { heard(answer); });
  }
  heard(absl::OkStatus());
}

void NodeRole::Joined(const cluster::Message& members, ClusterTime now) {
  options_.joining = false;
  AddMembers(members, now);
}

}  // namespace troupe
