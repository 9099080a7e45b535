#include "api/internal/actor_host.h"

#include <algorithm>
#include <caf/default_attachable.hpp>
#include <cstring>
#include <utility>

#include "actors/runtime.h"
#include "api/internal/actor_frames.h"
#include "api/internal/actor_protocol.h"
#include "devices/cpu/block_signals.h"
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

std::string Credit(uint64_t node, caf::actor_id actor, int64_t messages, int64_t bytes) {
  std::string body = ForLife(kCredit, node);
  WireWriter writer(&body);
  writer.Number<uint64_t>(actor);
  writer.Number(messages);
  writer.Number(bytes);
  return body;
}

/// Such messages are of no use to an actor unless they are in queues of their own.
bool IsOfStream(const caf::type_erased_tuple& content) {
  return content.type_token() == caf::make_type_token<caf::open_stream_msg>() ||
         content.type_token() == caf::make_type_token<caf::upstream_msg>() ||
         content.type_token() == caf::make_type_token<caf::downstream_msg>();
}

}  // namespace

/// An actor of another process.
class ActorHost::Proxy final : public caf::actor_proxy {
 public:
  /// `counted`: there it counts, unless null.
  Proxy(caf::actor_config& config, ActorHost* host, uint64_t node, Count counted)
      : caf::actor_proxy(config), host_(host), node_(node), counted_(std::move(counted)) {
    if (counted_ != nullptr) ++*counted_;
  }
  ~Proxy() override {
    if (counted_ != nullptr) --*counted_;
  }

  const char* name() const override { return "troupe.proxy"; }
  uint64_t process() const { return node_; }
  bool dead() const { return dead_.load(std::memory_order_acquire); }

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    if (what == nullptr) return;
    if (dead()) return bounce(what);
    if (EndsLink(what->content())) return;
    host_->Forward(this, *what);
  }
  bool add_backlink(caf::abstract_actor* who) override {
    if (!caf::actor_proxy::add_backlink(who)) return false;
    host_->TellLink(kLink, *this, caf::strong_actor_ptr(who->ctrl()));
    return true;
  }
  bool remove_backlink(caf::abstract_actor* who) override {
    if (!caf::actor_proxy::remove_backlink(who)) return false;
    host_->TellLink(kUnlink, *this, caf::strong_actor_ptr(who->ctrl()));
    return true;
  }
  void kill_proxy(caf::execution_unit* unit, caf::error reason) override {
    dead_.store(true, std::memory_order_release);
    cleanup(std::move(reason), unit);
  }

  /// The remote actor has linked itself to an actor of this process. Unlike `add_link`, this sends
  /// it nothing if that one has ended: its process is told so in any case.
  void LinkTo(caf::abstract_actor* local) {
    auto link = caf::default_attachable::make_link(address(), local->address());
    bool ended = false;
    joined_exclusive_critical_section(this, local, [&] {
      if (local->getf(is_terminated_flag)) return;
      ended = getf(is_terminated_flag);
      if (!ended && local->add_backlink(this)) attach_impl(link);
    });
    if (!ended) return;
    local->enqueue(nullptr, caf::make_message_id(),
                   caf::make_message(caf::exit_msg{address(), fail_state()}), nullptr);
  }

  /// False if too much is under way.
  bool Take(int64_t bytes) {
    const int64_t messages = messages_.fetch_add(1) + 1, all = bytes_.fetch_add(bytes) + bytes;
    // A single one may be larger. The other process may say nothing of a quarter that it has
    // handled.
    if (messages <= kMostMessages && (all <= kMostBytes || all - bytes < kMostBytes / 4))
      return true;
    GiveBack(1, bytes);
    return false;
  }
  void GiveBack(int64_t messages, int64_t bytes) {
    messages_ -= messages;
    bytes_ -= bytes;
  }

 private:
  /// An actor of this process that is linked with this one has ended. The other process is told of
  /// its end (`TellDown`), which no back-pressure refuses.
  bool EndsLink(const caf::type_erased_tuple& content) {
    if (content.type_token() != caf::make_type_token<caf::exit_msg>()) return false;
    const auto source =
        caf::actor_cast<caf::strong_actor_ptr>(content.get_as<caf::exit_msg>(0).source);
    if (source == nullptr || !source->get()->getf(is_terminated_flag)) return false;
    return detach(caf::default_attachable::observe_token{source->get()->address(),
                                                         caf::default_attachable::link}) > 0;
  }

  ActorHost* const host_;
  const uint64_t node_;
  const Count counted_;
  std::atomic<bool> dead_{false};
  std::atomic<int64_t> messages_{0}, bytes_{0};  ///< Under way.
};

/// What an actor of this process has handled, for the process that sent it. The sender counts what
/// it has not been told to be handled; so that it is not refused for that alone, it is told when
/// this is a quarter of what it may still send.
struct ActorHost::Window {
  ActorHost* host;
  uint64_t node;
  caf::actor_id actor;
  std::atomic<int64_t> messages{0}, bytes{0};            ///< Handled, not told yet.
  std::atomic<int64_t> held_messages{0}, held_bytes{0};  ///< Not handled.
  std::atomic<bool> over{false};  ///< The process is lost, or the actor has ended.

  void Came(int64_t size) noexcept {
    ++held_messages;
    held_bytes += size;
    TellIfDue();
  }
  void Handled(int64_t size) noexcept {
    --held_messages;
    held_bytes -= size;
    ++messages;
    bytes += size;
    TellIfDue();
  }

  void TellIfDue() noexcept {
    if (!IsDue(messages, held_messages, kMostMessages) && !IsDue(bytes, held_bytes, kMostBytes)) {
      return;
    }
    if (over.load(std::memory_order_acquire)) return;
    const int64_t told_messages = messages.exchange(0), told_bytes = bytes.exchange(0);
    const absl::Status told = CatchExceptions([&] {
      host->SendTo(node, Credit(node, actor, told_messages, told_bytes));
      return absl::OkStatus();
    });
    if (told.ok()) return;
    messages += told_messages;
    bytes += told_bytes;
    host->owes_credits_ = true;
  }

 private:
  static bool IsDue(int64_t handled, int64_t held, int64_t most) {
    return handled >= std::max<int64_t>(1, (most - held) / 4);
  }
};

/// A message that has come; it counts as handled when it is destroyed.
class ActorHost::CountedElement final : public caf::mailbox_element {
 public:
  CountedElement(caf::strong_actor_ptr from, caf::message_id id, caf::message content,
                 std::shared_ptr<Window> window, int64_t bytes)
      : caf::mailbox_element(std::move(from), id, {}),
        content_(std::move(content)),
        window_(std::move(window)),
        bytes_(bytes) {
    window_->Came(bytes_);
  }
  ~CountedElement() override { window_->Handled(bytes_); }

  caf::type_erased_tuple& content() override { return content_; }
  const caf::type_erased_tuple& content() const override { return content_; }
  caf::message move_content_to_message() override { return std::move(content_); }
  caf::message copy_content_to_message() const override { return content_; }

 private:
  caf::message content_;
  const std::shared_ptr<Window> window_;
  const int64_t bytes_;
};

// ---- The actor system ----

absl::StatusOr<caf::actor_system*> ActorHost::System(caf::actor_system_config* config) {
  if (config == nullptr && started_.load(std::memory_order_acquire)) return system_.get();
  std::lock_guard<std::mutex> lock(starting_);
  if (system_ == nullptr) {
    Start(config);
  } else if (config != nullptr && config != config_) {
    return absl::FailedPreconditionError(
        StrCat("the actor system of ", options_.name, " has been made with another configuration"));
  }
  return system_.get();
}

void ActorHost::Start(caf::actor_system_config* config) {
  if (config == nullptr) {
    own_config_ = std::make_unique<caf::actor_system_config>();
    own_config_->set("scheduler.policy", caf::atom("sharing"));
    own_config_->set("scheduler.max-threads", uint64_t{2});
  }
  caf::actor_system_config* const used = config != nullptr ? config : own_config_.get();
  caf::put(used->content, Identity::kSetting, static_cast<int64_t>(options_.incarnation));
  used->add_message_types<caf::id_block::troupe>();
  used->load<Identity>();
  config_ = config;
  const ScopedBlockSignals blocked;
  system_ = std::make_unique<caf::actor_system>(*used);
  system_->await_actors_before_shutdown(false);
  proxies_ = std::make_unique<caf::proxy_registry>(*system_, *this);
  runner_ = system_->spawn<caf::hidden>(
      [this]() -> caf::behavior { return {[this](caf::ok_atom) { RunLater(); }}; });
  started_.store(true, std::memory_order_release);
}

void ActorHost::Disconnect() {
  std::vector<uint64_t> nodes;
  std::map<std::string, Publication> publications;
  std::map<uint64_t, Call> calls;
  std::deque<std::function<void()>> later;  // With actors, which end without the lock.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    later.swap(later_);
    for (const auto& [node, process] : processes_) nodes.push_back(node);
    publications.swap(publications_);
    calls.swap(calls_);
  }
  for (auto& [id, call] : calls) call.done(absl::CancelledError("the node has left"));
  for (uint64_t node : nodes) Lose(node);
  if (proxies_ != nullptr) proxies_->clear();
  FailRequests([](const Request&) { return true; });
}

bool ActorHost::idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return requests_.empty() && unknown_.empty() && calls_.empty() && later_.empty() &&
         !running_later_;
}

ActorHost::~ActorHost() {
  Disconnect();
  roles_.clear();
  runner_ = nullptr;
  proxies_.reset();
  if (system_ == nullptr) return;
  // Actors that are registered when their system ends would end without it.
  for (caf::actor_id id = system_->latest_actor_id(); id > 0; --id) system_->registry().erase(id);
  system_.reset();
}

caf::strong_actor_ptr ActorHost::make_proxy(caf::node_id node, caf::actor_id actor) {
  const uint64_t incarnation = Identity::IncarnationOf(node);
  Count counted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    counted = speaker_;
    const bool full = counted != nullptr && *counted >= kMostProxies;
    if (incarnation == 0 || actor == 0 || over_ || full) {
      // The registry keeps the name.
      if (counted != nullptr) refused_.emplace_back(std::move(node), actor);
      return nullptr;
    }
    watches_.emplace_back(incarnation, actor);
  }
  caf::actor_config config;
  return caf::make_actor<Proxy, caf::strong_actor_ptr>(
      actor, std::move(node), system_.get(), config, this, incarnation, std::move(counted));
}

caf::strong_actor_ptr ActorHost::HandleOf(uint64_t node, caf::actor_id actor) {
  if (node == 0) return nullptr;
  if (node == options_.incarnation) return system().registry().get(actor);
  system();
  caf::strong_actor_ptr handle = proxies_->get_or_put(Identity::IdOf(node), actor);
  SendWatches();
  return handle;
}

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
  if (status.ok()) {
    caf::mailbox_element_ptr element(
        new CountedElement(sender, message_id, std::move(content), std::move(window), size));
    return quick ? EnqueueQuick(actor.get(), std::move(element))
                 : actor->enqueue(std::move(element), nullptr);
  }
  window->Came(size);
  window->Handled(size);
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

// ---- Frames ----

void ActorHost::OnFrameTick() {
  KeepGoing([&] {
    const Clock::time_point now = options_.now();
    std::vector<Done> late;
    std::vector<PeerId> ping;
    std::vector<std::shared_ptr<Peer>> silent, unanswered;
    std::vector<caf::strong_actor_ptr> roles;
    std::vector<std::shared_ptr<Window>> owing;
    std::vector<std::pair<uint64_t, PeerId>> unconnected;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto it = calls_.begin(); it != calls_.end();) {
        if (it->second.deadline > now) {
          ++it;
          continue;
        }
        late.push_back(std::move(it->second.done));
        it = calls_.erase(it);
      }
      for (auto& [node, process] : processes_) {
        if (process.unanswered && process.peer != nullptr) unanswered.push_back(process.peer);
      }
      if (owes_credits_.exchange(false)) {
        for (const auto& [key, window] : windows_) owing.push_back(window);
      }
      if (now >= next_ping_) {
        next_ping_ = now + kPingInterval;
        for (const auto& [key, role] : roles_) roles.push_back(role);
        for (auto& [node, process] : processes_) {
          if (process.peer == nullptr) unconnected.emplace_back(node, process.id);
          if (!process.pings || process.peer == nullptr) continue;
          ping.push_back(process.id);
          // Part of something large is a sign of life, too.
          const uint64_t received = process.peer->stats().bytes_received;
          if (received != process.received) process.unheard = 0;
          process.received = received;
          if (++process.unheard * kPingInterval > options_.silence) silent.push_back(process.peer);
        }
      }
    }
    for (PeerId id : ping) options_.links->SendFrame(id, Fields(kPing), {});
    for (const auto& peer : silent) {
      peer->Close("nothing is heard of its actors", std::chrono::milliseconds(0));
    }
    for (const auto& peer : unanswered) {
      peer->Close("an answer to one of its actors could not be sent", std::chrono::milliseconds(0));
    }
    for (const auto& window : owing) window->TellIfDue();
    if (!unconnected.empty()) LoseThoseThatLeft(unconnected);
    if (!ping.empty()) AnnounceAgain();
    for (const caf::strong_actor_ptr& role : roles) EndIfOver(role);
    for (Done& done : late) done(absl::DeadlineExceededError("no answer in time"));
  });
}

void ActorHost::OnFrame(PeerId id, const std::shared_ptr<Peer>& peer, std::string body,
                        std::vector<Tensor> tensors, const absl::Status& whole) {
  const uint64_t from = peer->info().incarnation;
  Count proxies;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = processes_.find(from);
    if (over_ || it == processes_.end() || it->second.peer != peer) return;
    it->second.pings = true;
    proxies = speaker_ = it->second.proxies;
  }
  KeepGoing([&] { OnFrameOf(from, id, std::move(body), std::move(tensors), whole); });
  std::vector<std::pair<caf::node_id, caf::actor_id>> refused;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    speaker_ = nullptr;
    refused.swap(refused_);
  }
  for (const auto& [node, actor] : refused) proxies_->erase(node, actor);
  if (*proxies < kMostProxies) return;
  KeepGoing([&] {
    peer->Close(StrCat("it names ", kMostProxies, " actors"), std::chrono::milliseconds(0));
  });
}

void ActorHost::OnFrameOf(uint64_t from, PeerId id, std::string body, std::vector<Tensor> tensors,
                          const absl::Status& whole) {
  WireReader reader(body);
  uint8_t kind = 0;
  uint64_t number = 0;
  if (!reader.Number(&kind) || kind == kPing) return;
  if (kind == kMembers) {
    if (options_.members_changed && id < kFirstClient) options_.members_changed(id);
    return;
  }
  // What was sent to an earlier life, before the connection to this one was made.
  if (IsForLife(kind) && (!reader.Number(&number) || number != options_.incarnation)) return;
  if (!started_.load(std::memory_order_acquire)) system();
  switch (kind) {
    case kSend:
      return OnSend(from, &reader, body, std::move(tensors), whole);
    case kWatch:
      if (!reader.Number(&number)) return;
      if (const caf::strong_actor_ptr actor = system().registry().get(number)) {
        return Watch(from, actor);
      }
      // Perhaps it had asked the one that watches it now.
      ForgetRequestsOf(number);
      return TellDown(from, number, caf::make_error(caf::exit_reason::unknown));
    case kLink:
    case kUnlink:
      return OnLink(kind, from, &reader);
    case kDown:
      return OnDown(from, &reader, body);
    case kCredit: {
      int64_t messages = 0, bytes = 0;
      if (!reader.Number(&number) || !reader.Number(&messages) || !reader.Number(&bytes)) return;
      const caf::strong_actor_ptr proxy = proxies_->get(Identity::IdOf(from), number);
      if (proxy != nullptr && messages >= 0 && bytes >= 0) {
        static_cast<Proxy*>(proxy->get())->GiveBack(messages, bytes);
      }
      return;
    }
    case kUnpublish: {
      std::string name;
      if (!reader.String(&name, kMostNameBytes)) return;
      std::unique_ptr<PublishedActor> local;  // Ends without the lock.
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = publications_.find(name);
      if (it == publications_.end() || it->second.incarnation != from) return;
      local = std::move(it->second.local);
      publications_.erase(it);
      return;
    }
    case kAnswer: {
      int32_t code = 0;
      std::string_view rest;
      if (!reader.Number(&number) || !reader.Number(&code) || !reader.Raw(reader.left(), &rest)) {
        return;
      }
      Done done;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto it = calls_.find(number);
        if (it == calls_.end() || it->second.to != id) return;
        done = std::move(it->second.done);
        calls_.erase(it);
      }
      return code == 0 ? done(std::string(rest))
                       : done(absl::Status(static_cast<absl::StatusCode>(code), std::string(rest)));
    }
    default: {
      if (!reader.Number(&number)) return;
      const absl::StatusOr<std::string> answer =
          CatchExceptions([&] { return OnQuestion(kind, from, &reader); });
      std::string frame = Fields(kAnswer);
      WireWriter writer(&frame);
      writer.Number(number);
      writer.Number(static_cast<int32_t>(answer.status().code()));
      writer.Raw(answer.ok() ? *answer : std::string(answer.status().message()));
      options_.links->SendFrame(id, std::move(frame), {});
    }
  }
}

}  // namespace troupe
