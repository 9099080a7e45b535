// Messages between actors of two processes, and links of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "api/internal/actor_frames.h"
#include "api/internal/actor_host.h"
#include "api/internal/actor_protocol.h"
#include "api/internal/actor_proxy.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

using namespace actor_protocol;  // NOLINT: its own

namespace {

int64_t BytesOf(const std::string& body, const std::vector<Tensor>& tensors) {
  int64_t bytes = static_cast<int64_t>(body.size());
  for (const Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.bytes());
  return bytes;
}

/// What a peer may say that its message takes, so that sums of it fit.
constexpr int64_t kMostFrameBytes = int64_t{1} << 44;

/// What a tensor beside a frame takes on the wire, or in memory if that is more.
uint64_t SizeOfPart(const Tensor& tensor) {
  constexpr uint64_t kMostLength = 10;  // Of a length's varint.
  uint64_t encoded = 0;
  if (tensor.type() == ElementType::kString) {
    for (const auto& text : tensor.unchecked_values<std::string>()) {
      encoded += text.size() + kMostLength;
    }
  }
  return std::max<uint64_t>(encoded, tensor.bytes());
}

/// Such messages are of no use to an actor unless they are in queues of their own.
bool IsOfStream(const caf::type_erased_tuple& content) {
  return content.type_token() == caf::make_type_token<caf::open_stream_msg>() ||
         content.type_token() == caf::make_type_token<caf::upstream_msg>() ||
         content.type_token() == caf::make_type_token<caf::downstream_msg>();
}

}  // namespace

// ---- Messages ----

void ActorHost::Forward(Proxy* proxy, caf::mailbox_element& what) {
  const absl::Status sent = CatchExceptions([&] { return TryForward(proxy, what); });
  if (sent.ok()) return;
  if (what.mid.is_response()) return RefuseAnswer(proxy, what, sent);
  if (what.sender == nullptr) return;
  const caf::message_id id = what.mid.is_request() ? what.mid.response_id() : caf::message_id();
  what.sender->enqueue(caf::make_mailbox_element(proxy->ctrl(), id, {}, ToCafError(sent)), nullptr);
}

void ActorHost::RefuseAnswer(Proxy* proxy, const caf::mailbox_element& answer,
                             const absl::Status& why) {
  const absl::Status refused = CatchExceptions([&] {
    const absl::Status said(why.code(), StrCat("the answer cannot travel: ", why.message()));
    return TryForward(proxy,
                      *caf::make_mailbox_element(answer.sender, answer.mid, {}, ToCafError(said)));
  });
  if (refused.ok()) return;
  // The end of the connection answers whoever asked; the next tick ends it, if need be the one
  // after.
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto it = processes_.find(proxy->process()); it != processes_.end()) {
    it->second.unanswered = true;
  }
}

absl::Status ActorHost::TryForward(Proxy* proxy, caf::mailbox_element& what) {
  if (!what.stages.empty()) {
    return absl::UnimplementedError("messages for several actors in turn do not travel");
  }
  const caf::type_erased_tuple& content = what.content();
  const caf::uniform_type_info_map& types = system_->types();
  for (size_t i = 0; i < content.size(); ++i) {
    if (types.portable_name(content.type(i)) == types.default_type_name()) {
      return InvalidArgument("a message of a type that the actor system's configuration does not ",
                             "have (add_message_type) cannot travel: ", content.stringify(i));
    }
  }
  std::string body = ForLife(kSend, proxy->process());
  std::vector<Tensor> tensors;
  WireWriter writer(&body);
  writer.Number<uint64_t>(proxy->id());
  writer.Number<uint64_t>(what.mid.integer_value());
  uint64_t sender_node = 0;
  if (what.sender != nullptr) sender_node = Identity::IncarnationOf(what.sender->nid);
  writer.Number(sender_node);
  writer.Number<uint64_t>(what.sender != nullptr ? what.sender->aid : 0);
  const size_t size_at = body.size();
  writer.Number<int64_t>(0);
  caf::scoped_execution_unit unit(system_.get());
  unit.proxy_registry_ptr(proxies_.get());
  FrameSerializer sink(&unit, &body, &tensors);
  if (caf::error error = caf::message::save(sink, content)) return ToStatus(error);
  if (tensors.size() >= Links::kMaxParts) {
    return InvalidArgument("a message with ", tensors.size(), " large tensors cannot travel");
  }
  // The connection would end with one that is too large.
  uint64_t largest = body.size();
  for (const Tensor& tensor : tensors) largest = std::max(largest, SizeOfPart(tensor));
  if (largest > options_.max_tensor_bytes) {
    return InvalidArgument("a message with ", largest,
                           " bytes in one piece cannot travel; at most ", options_.max_tensor_bytes,
                           " can");
  }
  const int64_t size = BytesOf(body, tensors);
  std::memcpy(body.data() + size_at, &size, sizeof(size));
  // Answers are as few as what was asked.
  if (!what.mid.is_response() && !proxy->Take(size)) {
    return absl::ResourceExhaustedError(StrCat("the actor has not handled the last ", kMostMessages,
                                               " messages, or ", kMostBytes, " bytes, yet"));
  }
  if (what.mid.is_response()) proxy->Answered(what.mid);
  // Whoever answers must find the sender.
  if (sender_node == options_.incarnation) {
    system_->registry().put(what.sender->aid, what.sender);
  }
  RequestKey key;
  if (what.mid.is_request() && what.sender != nullptr) {
    key = {what.sender->aid, what.mid.response_id().integer_value()};
    std::lock_guard<std::mutex> lock(mutex_);
    requests_[key] = {proxy->process(), proxy->id(), what.sender};
  }
  SendTo(proxy->process(), std::move(body), std::move(tensors));
  if (proxy->dead()) {
    FailRequests([&](const Request& request) {
      return request.node == proxy->process() && request.actor == proxy->id();
    });
  }
  return absl::OkStatus();
}

void ActorHost::OnSend(uint64_t from, WireReader* reader, std::string_view body,
                       std::vector<Tensor> tensors, const absl::Status& whole) {
  uint64_t receiver = 0, id = 0, sender_node = 0, sender_id = 0;
  // As the sender counts it: some of the tensors may not have come.
  int64_t size = 0;
  if (!reader->Number(&receiver) || !reader->Number(&id) || !reader->Number(&sender_node) ||
      !reader->Number(&sender_id) || !reader->Number(&size)) {
    return;
  }
  size = std::clamp<int64_t>(size, 0, kMostFrameBytes);
  // The other categories are those of streams.
  caf::message_id message_id = caf::make_message_id(id);
  if (!message_id.is_urgent_message()) message_id = message_id.with_normal_priority();
  const caf::strong_actor_ptr actor = system().registry().get(receiver);
  if (actor == nullptr) {
    // Nothing else of the message is looked at: each actor that it names would be one here.
    ForgetRequest({receiver, id});
    if (!message_id.is_request()) return;
    if (const caf::strong_actor_ptr sender = HandleOf(sender_node, sender_id)) {
      sender->enqueue(caf::make_mailbox_element(nullptr, message_id.response_id(), {},
                                                caf::make_error(caf::sec::request_receiver_down)),
                      nullptr);
    }
    return;
  }
  const caf::strong_actor_ptr sender = HandleOf(sender_node, sender_id);
  caf::message content;
  absl::Status status = whole;
  if (status.ok()) {
    caf::scoped_execution_unit unit(system_.get());
    unit.proxy_registry_ptr(proxies_.get());
    FrameDeserializer source(&unit, body.substr(body.size() - reader->left()), &tensors);
    status = CatchExceptions([&]() -> absl::Status {
      if (caf::error error = content.load(source)) {
        return InvalidArgument("a message that cannot be read here (", caf::to_string(error),
                               "): are its types those of this actor system's configuration?");
      }
      if (IsOfStream(content)) return absl::UnimplementedError("streams do not travel");
      return source.done() ? absl::OkStatus() : Malformed();
    });
    SendWatches();
  }
  if (message_id.is_response()) {
    if (!ForgetRequest({receiver, id})) return;  // Nobody waits for it.
    if (!status.ok()) content = caf::make_message(ToCafError(status));
    actor->enqueue(caf::make_mailbox_element(sender, message_id, {}, std::move(content)), nullptr);
    return;
  }
  std::shared_ptr<Window> window;
  bool quick = false;
  bool first = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& known = windows_[{from, receiver}];
    first = known == nullptr;
    if (first) known.reset(new Window{this, from, receiver});
    window = known;
    quick = quick_.count(receiver) != 0;
  }
  // The window goes with the actor, whether or not the other process watches it.
  if (first) Watch(from, actor);
  auto held = std::make_shared<Held>(std::move(window), size);
  if (status.ok()) {
    const bool asks = message_id.is_request() && sender_node != options_.incarnation;
    caf::mailbox_element_ptr element(new CountedElement(sender, message_id, std::move(content),
                                                        std::move(held), asks ? sender : nullptr));
    return quick ? EnqueueQuick(actor.get(), std::move(element))
                 : actor->enqueue(std::move(element), nullptr);
  }
  held->Handled();
  if (!message_id.is_request() || sender == nullptr) return;
  sender->enqueue(
      caf::make_mailbox_element(nullptr, message_id.response_id(), {}, ToCafError(status)),
      nullptr);
}

bool ActorHost::ForgetRequest(const RequestKey& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  return requests_.erase(key) > 0;
}

void ActorHost::ForgetWindows(uint64_t node, caf::actor_id actor) {
  auto it = windows_.lower_bound({node, actor});
  while (it != windows_.end() && it->first.first == node &&
         (actor == 0 || it->first.second == actor)) {
    it->second->over.store(true, std::memory_order_release);
    it = windows_.erase(it);
  }
}

void ActorHost::FailRequests(const std::function<bool(const Request&)>& concerned) {
  std::vector<std::pair<RequestKey, Request>> failed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = requests_.begin(); it != requests_.end();) {
      if (!concerned(it->second)) {
        ++it;
        continue;
      }
      failed.emplace_back(it->first, std::move(it->second));
      it = requests_.erase(it);
    }
  }
  for (auto& [key, request] : failed) {
    request.sender->enqueue(
        caf::make_mailbox_element(nullptr, caf::make_message_id(key.second), {},
                                  caf::make_error(caf::sec::request_receiver_down)),
        nullptr);
  }
}

void ActorHost::ForgetRequestsOf(caf::actor_id sender) {
  std::map<RequestKey, Request> forgotten;  // With the sender, which goes without the lock.
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = requests_.lower_bound({sender, 0});
       it != requests_.end() && it->first.first == sender;) {
    forgotten.insert(requests_.extract(it++));
  }
}

// ---- Links ----

void ActorHost::TellLink(uint8_t kind, const Proxy& to, caf::strong_actor_ptr who) {
  if (Identity::IncarnationOf(who->nid) != options_.incarnation) return;
  std::string body = ForLife(kind, to.process());
  WireWriter writer(&body);
  writer.Number<uint64_t>(to.id());
  writer.Number<uint64_t>(who->aid);
  Later([this, kind, node = to.process(), who = std::move(who), body = std::move(body)] {
    if (kind == kLink) {
      system_->registry().put(who->aid, who);
      // Should it have ended, this is told right after the link, with the reason.
      Watch(node, who);
    }
    SendNow(node, body);
  });
}

void ActorHost::OnLink(uint8_t kind, uint64_t from, WireReader* reader) {
  uint64_t actor = 0, who = 0;
  if (!reader->Number(&actor) || !reader->Number(&who)) return;
  const caf::node_id node = Identity::IdOf(from);
  const caf::strong_actor_ptr proxy =
      kind == kLink ? proxies_->get_or_put(node, who) : proxies_->get(node, who);
  SendWatches();
  const caf::strong_actor_ptr local = system().registry().get(actor);
  if (proxy == nullptr || local == nullptr) return;
  auto* remote = static_cast<Proxy*>(proxy->get());
  kind == kLink ? remote->LinkTo(local->get()) : remote->remove_link(local->get());
}

void ActorHost::Later(std::function<void()> what) {
  bool first = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return;
    first = later_.empty() && !running_later_;
    later_.push_back(std::move(what));
  }
  if (first) caf::anon_send(runner_, caf::ok_atom_v);
}

void ActorHost::RunLater() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_later_) return;
  while (!later_.empty()) {
    running_later_ = true;
    std::function<void()> what = std::move(later_.front());
    later_.pop_front();
    lock.unlock();
    KeepGoing(what);
    what = nullptr;
    lock.lock();
  }
  running_later_ = false;
}

}  // namespace troupe
