#include "net/node_shell.h"

#include <chrono>
#include <optional>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"

namespace troupe {

namespace {
// Contents of tensors from this size on travel beside their message.
constexpr size_t kDetachBytes = 16 << 10;

/// What asks after a message, or says that there is none, must not overtake it.
bool AsksForLost(const cluster::Message& message) {
  return message.kind() == cluster::CHECK || message.kind() == cluster::CHECKED;
}
}  // namespace

ClusterTime NodeShell::Now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void NodeShell::Init(NodeRole::Options options, WorkerEngine* worker, MasterEngine* master) {
  std::lock_guard<std::mutex> lock(mutex_);
  role_ = std::make_unique<NodeRole>(std::move(options), this, worker, master, Now());
}

void NodeShell::Send(PeerId to, cluster::Message message) {
  if (to == role_->self()) {
    to_self_.push_back(std::move(message));
    return;
  }
  Outgoing& outgoing = outgoing_.emplace_back(Outgoing{to, std::move(message), nullptr});
  if (to < kFirstClient) return;
  if (auto it = local_clients_.find(to); it != local_clients_.end()) outgoing.client = it->second;
}

void NodeShell::Enter(std::function<void()> event, Player player) {
  std::vector<Outgoing> outgoing;
  std::vector<std::function<void()>> deferred;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (role_ == nullptr) return;  // A connection came before the task was complete.
    event_player_ = player;
    // What an event that throws has asked for already is done; a request is answered by the role.
    KeepGoing(event);
    while (!to_self_.empty()) {
      cluster::Message message = std::move(to_self_.front());
      to_self_.pop_front();
      KeepGoing([&] { role_->OnMessage(role_->self(), std::move(message), Now()); });
    }
    outgoing.swap(outgoing_);
    deferred.swap(deferred_);
  }
  // The others begin before this task does.
  for (Outgoing& one : outgoing) KeepGoing([&] { Carry(std::move(one)); });
  for (auto& job : deferred) KeepGoing(job);
}

void NodeShell::Carry(Outgoing outgoing) {
  cluster::Message& message = outgoing.message;
  if (outgoing.client != nullptr) {
    (*outgoing.client)(std::move(message));
    return;
  }
  if (CarryOverDataPlane(outgoing.to, &message)) return;
  control_->Send(outgoing.to, std::move(message));
}

void NodeShell::OnMessage(PeerId from, cluster::Message message, Player player) {
  Enter([&] { role_->OnMessage(from, std::move(message), Now()); }, player);
}

bool NodeShell::CarryOverDataPlane(PeerId to, cluster::Message* message) {
  const uint64_t life = message->to_incarnation();
  const bool behind = AsksForLost(*message);
  if (data_ == nullptr || life == 0) return false;
  size_t size = message->ByteSizeLong();
  if (size > ControlPlane::kMaxBytes || !data_->Reaches(to, life)) return false;
  std::vector<std::string> parts;
  if (size > kDetachBytes) {
    for (int i = 0; i < message->tensors_size(); ++i) {
      TensorProto* tensor = message->mutable_tensors(i);
      if (tensor->tensor_content().size() < kDetachBytes) continue;
      parts.push_back(std::move(*tensor->mutable_tensor_content()));
      tensor->clear_tensor_content();
      message->add_detached(i);
    }
    size = message->ByteSizeLong();
  }
  std::string bytes;
  if (size <= Transport::kMaxMessageBytes && message->SerializeToString(&bytes) &&
      data_->SendMessage(to, life, std::move(bytes), &parts, behind)) {
    return true;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    *message->mutable_tensors(message->detached(static_cast<int>(i)))->mutable_tensor_content() =
        std::move(parts[i]);
  }
  message->clear_detached();
  return false;
}

void NodeShell::OnWire(PeerId from, const std::string& bytes, std::vector<Tensor> parts) {
  cluster::Message message;
  // What cannot be read cannot be answered either.
  if (!message.ParseFromString(bytes) ||
      message.detached_size() != static_cast<int>(parts.size())) {
    return;
  }
  if (parts.empty()) {
    if (AsksForLost(message) && StaysBehind(from, &message)) return;
    OnMessage(from, std::move(message));
    return;
  }
  for (int index : message.detached()) {
    if (index < 0 || index >= message.tensors_size()) return;
  }
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(assembly_mutex_);
    number = next_assembly_++;
    assemblies_[from].under_way.insert(number);
  }
  // The I/O thread does not copy what may be large.
  Post([this, from, number, message = std::move(message), parts = std::move(parts)]() mutable {
    for (size_t i = 0; i < parts.size(); ++i) {
      message.mutable_tensors(message.detached(static_cast<int>(i)))
          ->set_tensor_content(parts[i].raw_data(), parts[i].bytes());
      parts[i].Reset();
    }
    message.clear_detached();
    OnMessage(from, std::move(message));
    PutTogether(from, number);
  });
}

bool NodeShell::StaysBehind(PeerId from, cluster::Message* message) {
  std::lock_guard<std::mutex> lock(assembly_mutex_);
  auto it = assemblies_.find(from);
  if (it == assemblies_.end()) return false;
  it->second.behind.emplace_back(next_assembly_, std::move(*message));
  return true;
}

void NodeShell::PutTogether(PeerId from, uint64_t number) {
  std::vector<cluster::Message> ready;
  {
    std::lock_guard<std::mutex> lock(assembly_mutex_);
    auto it = assemblies_.find(from);
    auto& [under_way, behind] = it->second;
    under_way.erase(number);
    while (!behind.empty() && (under_way.empty() || *under_way.begin() >= behind.front().first)) {
      ready.push_back(std::move(behind.front().second));
      behind.pop_front();
    }
    if (under_way.empty()) assemblies_.erase(it);
  }
  for (cluster::Message& message : ready) OnMessage(from, std::move(message));
}

void NodeShell::OnLinkDown(PeerId peer) {
  Enter([&] { role_->OnLinkDown(peer, Now()); });
}

void NodeShell::OnConnectionLost(PeerId peer, uint64_t incarnation) {
  Enter([&] {
    // A later life has nothing to do with it.
    const uint64_t known = role_->detector().incarnation(peer);
    if (peer >= kFirstClient || known == incarnation) role_->OnLinkDown(peer, Now());
  });
}

void NodeShell::OnTick() {
  Enter([&] { role_->Tick(Now()); });
}

void NodeShell::AddLocalClient(PeerId client, LocalClient deliver) {
  Enter([&] {
    local_clients_[client] = std::make_shared<LocalClient>(std::move(deliver));
    role_->AddLocalClient(client);
  });
}

void NodeShell::RemoveLocalClient(PeerId client) {
  Enter([&] {
    if (local_clients_.erase(client) != 0) role_->OnLinkDown(client, Now());
  });
}

void NodeShell::SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag,
                           bool dead, Tensor value) {
  const std::optional<PeerId> found = control_->tasks()->Find(task);
  const PeerId to = found.value_or(0);
  absl::Status status;
  if (!found) {
    status = absl::InternalError(StrCat("a value is to go to ", task, ", which does not exist"));
  } else if (data_ != nullptr) {
    status = data_->Send(to, {step, key, tag, dead, value});  // Its memory is shared.
  } else {
    status = absl::NotFoundError("no data plane");
  }
  if (found && absl::IsNotFound(status)) {
    status = SendOverControlPlane(to, task, step, key, tag, dead, value);
  }
  if (status.ok()) return;
  // The executor is in the middle of its loop: the bad news must come from elsewhere.
  Post([this, step, status] {
    Enter([&] {
      if (role_->worker() != nullptr) role_->worker()->OnSendFailed(step, status);
    });
  });
}

absl::Status NodeShell::SendOverControlPlane(PeerId to, const std::string& task, uint64_t step,
                                             uint64_t key, uint64_t tag, bool dead,
                                             const Tensor& value) {
  const NodeRole::Options& options = role_->options();  // Those that are read never change.
  if (!dead && (value.type() == ElementType::kVariant || value.type() == ElementType::kResource)) {
    return absl::UnimplementedError(StrCat("a tensor of type ", ElementTypeName(value.type()),
                                           " cannot go to another process, to ", task));
  }
  cluster::Message message;
  message.set_version(kProtocolVersion);
  message.set_task(options.task);
  message.set_incarnation(options.incarnation);
  message.set_kind(cluster::TENSOR);
  message.set_step(step);
  cluster::CrossingTensor* crossing = message.mutable_crossing();
  crossing->set_key(key);
  crossing->set_tag(tag);
  crossing->set_dead(dead);
  if (!dead) TensorToProto(value, crossing->mutable_value());
  if (message.ByteSizeLong() > ControlPlane::kMaxBytes) {
    return absl::ResourceExhaustedError(
        StrCat("a tensor of ", message.ByteSizeLong(), " bytes is too large to go to ", task));
  }
  control_->Send(to, std::move(message));
  return absl::OkStatus();
}

}  // namespace troupe
