#include "net/node_shell.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <new>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"

namespace troupe {

namespace {
// Contents of tensors from this size on travel beside their message.
constexpr size_t kDetachBytes = 16 << 10;
// For jobs to end when the node does.
constexpr std::chrono::milliseconds kEndOfJobs{800};

/// Whoever is connecting refuses the other's connection, so a dead machine must not be waited for.
std::chrono::milliseconds DialTimeout(std::chrono::milliseconds heartbeat_timeout) {
  return std::clamp<std::chrono::milliseconds>(heartbeat_timeout / 3, std::chrono::seconds(1),
                                               std::chrono::seconds(5));
}

/// Adds the tensors within a message, of whatever type, in the order of its fields.
void AddTensors(google::protobuf::Message* message, std::vector<TensorProto*>* tensors) {
  if (auto* tensor = dynamic_cast<TensorProto*>(message)) return tensors->push_back(tensor);
  const google::protobuf::Reflection* fields = message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> present;
  fields->ListFields(*message, &present);
  for (const auto* field : present) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) AddTensors(fields->MutableMessage(message, field), tensors);
    for (int i = 0; field->is_repeated() && i < fields->FieldSize(*message, field); ++i) {
      AddTensors(fields->MutableRepeatedMessage(message, field, i), tensors);
    }
  }
}

std::vector<TensorProto*> TensorsOf(cluster::Message* message) {
  std::vector<TensorProto*> tensors;
  AddTensors(message, &tensors);
  return tensors;
}

bool Serialize(const cluster::Message& message, std::string* bytes) {
  try {
    return message.SerializeToString(bytes);
  } catch (const std::bad_alloc&) {
    return false;
  }
}
}  // namespace

ClusterTime NodeShell::Now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status NodeShell::MakeLinks(const TransportOptions& options,
                                  std::function<absl::StatusOr<PeerId>(const PeerInfo&)> number,
                                  std::function<void(ReceivedTensor)> tensor) {
  Links::Events events;
  events.number = std::move(number);
  events.tensor = std::move(tensor);
  events.up = [this](PeerId peer, uint64_t incarnation) {
    Enter([&] { role_->OnLinkUp(peer, incarnation, Now()); });
  };
  events.lost = [this](PeerId peer, uint64_t) { Enter([&] { role_->OnLinkDown(peer, Now()); }); };
  events.unreachable = [this](PeerId peer, const std::vector<uint64_t>& steps,
                              const absl::Status& why) {
    Enter([&] { role_->OnUnreachable(peer, steps, why, Now()); });
  };
  events.message = [this](PeerId from, const std::string& bytes, std::vector<Tensor> parts,
                          const absl::Status& whole) {
    Guard(from, [&] { OnWire(from, bytes, std::move(parts), whole); });
  };
  events.undelivered = [this](uint64_t step, const absl::Status& why) { FailStep(step, why); };
  events.tick = [this] { Enter([&] { role_->Tick(Now()); }); };
  TROUPE_ASSIGN_OR_RETURN(
      links_, Links::Create(options, DialTimeout(options.stall_timeout), std::move(events)));
  return absl::OkStatus();
}

void NodeShell::Init(NodeRole::Options options, WorkerEngine* worker, MasterEngine* master) {
  std::lock_guard<std::mutex> lock(mutex_);
  role_ = std::make_unique<NodeRole>(std::move(options), this, worker, master, Now());
}

bool NodeShell::Stop(std::chrono::milliseconds drain) {
  const bool links_ended = links_ == nullptr || links_->Stop(drain);
  return jobs_.Finish(kEndOfJobs) && links_ended;
}

// ---- Events ----

template <typename F>
void NodeShell::Guard(PeerId peer, F&& f) noexcept {
  try {
    f();
  } catch (...) {
    KeepGoing([&] { links_->Lose(peer, StatusOfException()); });
  }
}

void NodeShell::Enter(absl::FunctionRef<void()> event, Player player) {
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
      role_->OnOwnMessage(std::move(message), Now());
    }
    outgoing.swap(outgoing_);
    deferred.swap(deferred_);
  }
  // The others begin before this task does.
  for (Outgoing& one : outgoing) Guard(one.to, [&] { Carry(&one); });
  for (auto& job : deferred) KeepGoing(job);
}

void NodeShell::OnMessage(PeerId from, cluster::Message message, Player player) {
  bool handled = false;
  Enter(
      [&] {
        role_->OnMessage(from, std::move(message), Now());
        handled = true;
      },
      player);
  if (!handled && links_ != nullptr) links_->Lose(from, absl::InternalError("it was not handled"));
}

void NodeShell::AddLocalClient(PeerId id, std::shared_ptr<LocalClient> client) {
  Enter([&] {
    local_clients_[id] = std::move(client);
    role_->AddLocalClient(id);
  });
}

void NodeShell::RemoveLocalClient(PeerId id) {
  Enter([&] {
    if (local_clients_.erase(id) != 0) role_->OnLinkDown(id, Now());
  });
}

void NodeShell::StopLocalClients() {
  std::map<PeerId, std::shared_ptr<LocalClient>> clients;
  Enter([&] { clients.swap(local_clients_); });
  for (auto& [id, client] : clients) client->OnStopped();
}

// ---- Sending ----

void NodeShell::Send(PeerId to, cluster::Message message) {
  if (to == role_->self()) {
    to_self_.push_back(std::move(message));
    return;
  }
  Outgoing& outgoing = outgoing_.emplace_back(Outgoing{to, std::move(message), nullptr});
  if (to < kFirstClient) return;
  if (auto it = local_clients_.find(to); it != local_clients_.end()) outgoing.client = it->second;
}

void NodeShell::Carry(Outgoing* outgoing) {
  cluster::Message& message = outgoing->message;
  if (outgoing->client != nullptr) return outgoing->client->OnMessage(std::move(message));
  const size_t size = message.ByteSizeLong();
  if (size > kMaxBytes) return Refuse(outgoing->to, std::move(message));
  std::vector<std::string> parts;
  if (size > kDetachBytes) {
    const std::vector<TensorProto*> tensors = TensorsOf(&message);
    for (size_t i = 0; i < std::min(Links::kMaxParts - 1, tensors.size()); ++i) {
      if (tensors[i]->tensor_content().size() < kDetachBytes) continue;
      parts.push_back(std::move(*tensors[i]->mutable_tensor_content()));
      tensors[i]->clear_tensor_content();
      message.add_detached(static_cast<int>(i));
    }
  }
  std::string bytes;
  if (!Serialize(message, &bytes)) return Refuse(outgoing->to, std::move(message));
  links_->Send(outgoing->to, std::move(bytes), std::move(parts));
}

void NodeShell::Refuse(PeerId to, cluster::Message message) {
  const bool request = IsRequest(message);
  const absl::Status why = absl::ResourceExhaustedError(
      StrCat("a message of ", message.ByteSizeLong(), " bytes is too large to be sent, which ",
             kMaxBytes, " at most can be, or for this process's memory"));
  message.clear_body();
  message.clear_detached();
  SetStatus(why, &message);
  if (request) {
    Enter([&] { role_->calls()->OnReply(to, std::move(message)); });
  } else {
    links_->Send(to, message.SerializeAsString());
  }
}

void NodeShell::SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag,
                           bool dead, Tensor value) {
  const absl::StatusOr<Links::Task> to = links_->FindTask(task);
  if (!to.ok()) return FailStep(step, absl::UnavailableError(to.status().message()));
  links_->Send(to->id, {step, key, tag, dead, std::move(value)});
}

void NodeShell::FailStep(uint64_t step, const absl::Status& why) {
  // The executor may be in the middle of its loop: the bad news must come from elsewhere.
  Post([this, step, why] {
    Enter([&] {
      if (role_->worker() != nullptr) role_->worker()->OnSendFailed(step, why);
    });
  });
}

// ---- Receiving ----

void NodeShell::OnWire(PeerId from, const std::string& bytes, std::vector<Tensor> parts,
                       const absl::Status& whole) {
  cluster::Message message;
  {
    // The parser would write a line for every string that is none: a peer could fill the log.
    const google::protobuf::LogSilencer silence;
    // What cannot be read cannot be answered either.
    if (!message.ParseFromString(bytes)) return;
  }
  if (!whole.ok()) {
    Enter([&] {
      if (IsRequest(message)) {
        role_->Refuse(from, message, whole);
      } else {
        SetStatus(whole, &message);
        role_->OnMessage(from, std::move(message), Now());
      }
    });
    return;
  }
  if (message.detached_size() != static_cast<int>(parts.size())) return;
  if (parts.empty()) return OnMessage(from, std::move(message), Player::kQuick);
  // The I/O thread does not copy what may be large.
  Post([this, from, message = std::move(message), parts = std::move(parts)]() mutable {
    Guard(from, [&] {
      const std::vector<TensorProto*> tensors = TensorsOf(&message);
      for (size_t i = 0; i < parts.size(); ++i) {
        const auto index = static_cast<size_t>(message.detached(static_cast<int>(i)));
        if (index >= tensors.size()) return;
        tensors[index]->set_tensor_content(parts[i].raw_data(), parts[i].bytes());
        parts[i].Reset();
      }
      message.clear_detached();
      OnMessage(from, std::move(message), Player::kQuick);
    });
  });
}

}  // namespace troupe
