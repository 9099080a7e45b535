#include "actors/cluster/calls.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

absl::Status StatusOf(const cluster::Message& reply) {
  if (reply.code() == 0) return absl::OkStatus();
  const bool known = reply.code() > 0 && reply.code() <= 16;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(reply.code()) : absl::StatusCode::kUnknown,
      reply.error());
}

void Calls::Send(PeerId to, cluster::Message message) {
  message.set_version(kProtocolVersion);
  message.set_task(options_.task);
  message.set_incarnation(options_.incarnation);
  outbox_->Send(to, std::move(message));
}

uint64_t Calls::Call(PeerId to, uint64_t to_incarnation, cluster::Message request, ClusterTime now,
                     ClusterTime timeout, Done done) {
  const uint64_t id = next_id_++;
  Pending& pending = pending_[id];
  pending.to = to;
  pending.sent = now;
  pending.deadline = timeout > 0 ? now + timeout : 0;
  pending.method = request.method();
  pending.done = std::move(done);
  request.set_kind(cluster::REQUEST);
  request.set_id(id);
  request.set_to_incarnation(to_incarnation);
  Send(to, std::move(request));
  return id;
}

void Calls::Finish(uint64_t id, absl::Status status, cluster::Message reply) {
  auto it = pending_.find(id);
  if (it == pending_.end()) return;
  Done done = std::move(it->second.done);
  pending_.erase(it);
  done(std::move(status), std::move(reply));
}

void Calls::OnReply(PeerId from, cluster::Message reply) {
  auto it = pending_.find(reply.id());
  if (it == pending_.end() || it->second.to != from) return;  // Late, repeated or strange.
  absl::Status status = StatusOf(reply);
  const uint64_t id = reply.id();
  Finish(id, std::move(status), std::move(reply));
}

void Calls::FailPeer(PeerId peer, const absl::Status& status) {
  std::vector<uint64_t> ids;
  for (const auto& [id, pending] : pending_) {
    if (pending.to == peer) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  for (uint64_t id : ids) Finish(id, status, {});
}

void Calls::Tick(ClusterTime now) {
  std::vector<uint64_t> late;
  for (const auto& [id, pending] : pending_) {
    if (pending.deadline != 0 && now >= pending.deadline) late.push_back(id);
  }
  std::sort(late.begin(), late.end());
  for (uint64_t id : late) {
    auto it = pending_.find(id);
    if (it == pending_.end()) continue;
    Finish(id,
           absl::DeadlineExceededError(
               StrCat("no answer to ", cluster::Method_Name(it->second.method), " within ",
                      (it->second.deadline - it->second.sent) / 1000, " ms")),
           {});
  }
}

bool Calls::Accept(PeerId from, const cluster::Message& request) {
  Incoming& incoming = incoming_[from];
  if (incoming.incarnation != request.incarnation()) {
    incoming = Incoming();
    incoming.incarnation = request.incarnation();
  }
  return incoming.open.insert(request.id()).second;
}

void Calls::Reply(Responder to, const absl::Status& status, cluster::Message reply) {
  auto it = incoming_.find(to.from);
  if (it == incoming_.end() || it->second.open.erase(to.id) == 0) return;  // Who asked is gone.
  reply.set_kind(cluster::REPLY);
  reply.set_id(to.id);
  reply.set_code(static_cast<int>(status.code()));
  reply.set_error(std::string(status.message()));
  reply.set_to_incarnation(it->second.incarnation);
  Send(to.from, std::move(reply));
}

size_t Calls::num_unanswered() const {
  size_t count = 0;
  for (const auto& [peer, incoming] : incoming_) count += incoming.open.size();
  return count;
}

}  // namespace troupe
