#include "actors/cluster/calls.h"

#include <google/protobuf/descriptor.h>

#include <new>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

bool IsRequest(const cluster::Message& message) {
  return !message.has_status() && !message.has_ping() && !message.has_pong();
}

std::string NameOf(cluster::Message::BodyCase body) {
  const auto* field = cluster::Message::descriptor()->FindFieldByNumber(body);
  return field == nullptr ? "" : field->name();
}

absl::Status StatusOf(const cluster::Status& status) {
  if (status.code() == 0) return absl::OkStatus();
  const bool known = status.code() > 0 && status.code() <= 16;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(status.code()) : absl::StatusCode::kUnknown,
      status.error());
}

KernelStates StatesOf(const KernelStateList& list) {
  KernelStates states;
  for (const cluster::KernelState& one : list) states[one.node()] = one.state();
  return states;
}

void AddStates(const KernelStates& states, KernelStateList* list) {
  for (const auto& [node, state] : states) {
    cluster::KernelState* one = list->Add();
    one->set_node(node);
    one->set_state(state);
  }
}

void SetStatus(const absl::Status& status, cluster::Message* reply) {
  reply->mutable_status()->set_code(static_cast<int>(status.code()));
  if (!status.ok()) reply->mutable_status()->set_error(std::string(status.message()));
}

void Calls::Send(PeerId to, cluster::Message message) {
  message.set_version(kProtocolVersion);
  *message.mutable_sender() = self_;
  outbox_->Send(to, std::move(message));
}

uint64_t Calls::Call(PeerId to, uint64_t to_incarnation, cluster::Message request, ClusterTime now,
                     ClusterTime timeout, Done done) {
  const uint64_t id = next_id_++;
  Pending& pending = pending_[id];
  pending.to = to;
  pending.sent = now;
  pending.deadline = timeout > 0 ? now + timeout : 0;
  pending.request = request.body_case();
  pending.done = std::move(done);
  pending.failed = CatchExceptions([&] {
    request.set_id(id);
    request.set_to_incarnation(to_incarnation);
    Send(to, std::move(request));
    return absl::OkStatus();
  });
  return id;
}

void Calls::Finish(uint64_t id, absl::Status status, cluster::Message reply) {
  auto it = pending_.find(id);
  if (it == pending_.end()) return;
  auto call = pending_.extract(it);
  try {
    call.mapped().done(std::move(status), std::move(reply));
  } catch (const std::bad_alloc&) {
    call.mapped().failed = absl::Status(absl::StatusCode::kResourceExhausted, "");
    pending_.insert(std::move(call));
  }
}

template <typename F>
void Calls::ForEachPending(const F& f) {
  const uint64_t end = next_id_;
  for (auto it = pending_.begin(); it != pending_.end() && it->first < end;) {
    const uint64_t id = it->first;
    KeepGoing([&] { f(id, it->second); });
    it = pending_.upper_bound(id);
  }
}

void Calls::OnReply(PeerId from, cluster::Message reply) {
  auto it = pending_.find(reply.id());
  // Late, repeated or strange.
  if (it == pending_.end() || it->second.to != from || !it->second.failed.ok()) return;
  absl::Status status = StatusOf(reply.status());
  const uint64_t id = reply.id();
  Finish(id, std::move(status), std::move(reply));
}

void Calls::Break(uint64_t id) noexcept {
  const auto it = pending_.find(id);
  if (it != pending_.end())
    it->second.failed = absl::Status(absl::StatusCode::kResourceExhausted, "");
}

void Calls::FailPeer(PeerId peer, const absl::Status& status) {
  ForEachPending([&](uint64_t id, const Pending& pending) {
    if (pending.to == peer) Finish(id, status, {});
  });
}

void Calls::Tick(ClusterTime now) {
  ForEachPending([&](uint64_t id, const Pending& pending) {
    if (!pending.failed.ok()) return Finish(id, absl::Status(pending.failed), {});
    if (pending.deadline == 0 || now < pending.deadline) return;
    Finish(id,
           absl::DeadlineExceededError(StrCat("no answer to ", NameOf(pending.request), " within ",
                                              (pending.deadline - pending.sent) / 1000, " ms")),
           {});
  });
  if (!any_unsent_) return;
  const absl::Status status = absl::ResourceExhaustedError("there was no memory to answer");
  any_unsent_ = false;
  for (auto& [peer, incoming] : incoming_) {
    for (auto it = incoming.open.begin(); it != incoming.open.end();) {
      const auto [id, unsent] = *it++;
      if (unsent) Reply({peer, id}, status);
    }
  }
}

bool Calls::Accept(PeerId from, const cluster::Message& request) {
  Incoming& incoming = incoming_[from];
  if (incoming.incarnation != request.sender().incarnation()) {
    incoming = Incoming();
    incoming.incarnation = request.sender().incarnation();
  }
  return incoming.open.emplace(request.id(), /*unsent=*/false).second;
}

void Calls::Reply(Responder to, const absl::Status& status, cluster::Message reply) {
  auto it = incoming_.find(to.from);
  if (it == incoming_.end()) return;  // Who asked is gone.
  if (to.incarnation != 0 && to.incarnation != it->second.incarnation) return;
  auto request = it->second.open.find(to.id);
  if (request == it->second.open.end()) return;
  const absl::Status sent = CatchExceptions([&] {
    reply.set_id(to.id);
    SetStatus(status, &reply);
    if (!status.ok()) reply.clear_body();
    reply.set_to_incarnation(it->second.incarnation);
    Send(to.from, std::move(reply));
    return absl::OkStatus();
  });
  if (sent.ok()) {
    it->second.open.erase(request);
  } else {
    request->second = any_unsent_ = true;
  }
}

size_t Calls::num_unanswered() const {
  size_t count = 0;
  for (const auto& [peer, incoming] : incoming_) count += incoming.open.size();
  return count;
}

}  // namespace troupe
