#include "actors/cluster/calls.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {
// A repeated message comes soon or never; so many later answers may be given in between.
constexpr size_t kRemembered = 4096;
}  // namespace

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
  pending.to_incarnation = to_incarnation;
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

void Calls::OnChecked(PeerId from, const cluster::Message& message) {
  for (uint64_t id : message.ids()) {
    auto it = pending_.find(id);
    if (it == pending_.end() || it->second.to != from) continue;
    // On one of the two ways between processes this comes behind the request and the reply, unless
    // one of them was just being sent; on the other one it may have overtaken them. Sure is who has
    // heard it twice on either way, the second time when asked after the first.
    const int path = message.path() == 0 ? 0 : 1;
    Pending& pending = it->second;
    if (message.id() < pending.ask_from[path]) continue;
    pending.ask_from[path] = check_round_ + 1;
    ++pending.unknown[path];
    if (pending.unknown[0] < 2 || pending.unknown[1] < 2) continue;
    Finish(id,
           absl::UnavailableError(
               StrCat("a message was lost: ", message.task().empty() ? "the peer" : message.task(),
                      " does not know of a request of ", cluster::Method_Name(it->second.method))),
           {});
  }
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
  if (now < next_check_) return;
  next_check_ = now + options_.check_interval;
  const int path = static_cast<int>(++check_round_ % 2);
  std::map<PeerId, cluster::Message> checks;
  for (const auto& [id, pending] : pending_) {
    if (now - pending.sent < options_.check_interval) continue;
    cluster::Message& check = checks[pending.to];
    check.set_kind(cluster::CHECK);
    check.set_id(check_round_);
    check.set_path(path);
    if (path == 1) check.set_to_incarnation(pending.to_incarnation);
    check.add_ids(id);
  }
  for (auto& [peer, check] : checks) {
    std::sort(check.mutable_ids()->begin(), check.mutable_ids()->end());
    Send(peer, std::move(check));
  }
}

bool Calls::Accept(PeerId from, const cluster::Message& request) {
  Incoming& incoming = incoming_[from];
  if (incoming.incarnation != request.incarnation()) {
    incoming = Incoming();
    incoming.incarnation = request.incarnation();
  }
  return incoming.answered.count(request.id()) == 0 && incoming.open.insert(request.id()).second;
}

void Calls::Reply(Responder to, const absl::Status& status, cluster::Message reply) {
  auto it = incoming_.find(to.from);
  if (it == incoming_.end() || it->second.open.erase(to.id) == 0) return;  // Who asked is gone.
  Incoming& incoming = it->second;
  incoming.answered.insert(to.id);
  incoming.order.push_back(to.id);
  if (incoming.order.size() > kRemembered) {
    incoming.answered.erase(incoming.order.front());
    incoming.order.pop_front();
  }
  reply.set_kind(cluster::REPLY);
  reply.set_id(to.id);
  reply.set_code(static_cast<int>(status.code()));
  reply.set_error(std::string(status.message()));
  reply.set_to_incarnation(incoming.incarnation);
  Send(to.from, std::move(reply));
}

void Calls::OnCheck(PeerId from, const cluster::Message& message) {
  cluster::Message answer;
  answer.set_kind(cluster::CHECKED);
  answer.set_id(message.id());
  answer.set_path(message.path());
  if (message.path() == 1) answer.set_to_incarnation(message.incarnation());
  auto it = incoming_.find(from);
  const bool known = it != incoming_.end() && it->second.incarnation == message.incarnation();
  for (uint64_t id : message.ids()) {
    if (!known || it->second.open.count(id) == 0) answer.add_ids(id);
  }
  if (answer.ids_size() > 0) Send(from, std::move(answer));
}

size_t Calls::num_unanswered() const {
  size_t count = 0;
  for (const auto& [peer, incoming] : incoming_) count += incoming.open.size();
  return count;
}

size_t Calls::num_remembered() const {
  size_t count = num_unanswered();
  for (const auto& [peer, incoming] : incoming_) count += incoming.order.size();
  return count;
}

}  // namespace troupe
