#include "net/control_plane.h"

#include <arpa/inet.h>

#include <atomic>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "actors/caf_logger.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "net/address.h"
#include "net/control_sockets.h"
#include "net/middleman.h"
#include "net/tls.h"

namespace troupe {

/// What travels between processes.
struct WireMessage {
  std::string bytes;
};

template <typename Inspector>
typename Inspector::result_type inspect(Inspector& f, WireMessage& message) {
  return f(caf::meta::type_name("troupe::WireMessage"), message.bytes);
}

/// Work for a thread of the actor system; stays in the process.
struct ControlJob {
  std::function<void()> run;
};

}  // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_net, first_custom_type_id + 64)
CAF_ADD_TYPE_ID(troupe_net, (troupe::WireMessage))
CAF_ADD_TYPE_ID(troupe_net, (troupe::ControlJob))
CAF_ADD_ATOM(troupe_net, troupe, cluster_tick_atom, "trp_tick")
CAF_ADD_ATOM(troupe_net, troupe, cluster_link_atom, "trp_link")
CAF_END_TYPE_ID_BLOCK(troupe_net)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ControlJob)

namespace troupe {

namespace {

/// How a task looks from outside. Requests, replies and everything else are one-way messages:
/// deadlines and the loss of peers are ours to deal with (`Calls`).
using ControlActor = caf::typed_actor<caf::reacts_to<WireMessage>>;

// For a host to accept a connection; it is tried again as long as it is missed.
constexpr std::chrono::milliseconds kConnectTimeout{1500};
// For a peer to say its first word.
constexpr std::chrono::seconds kFirstWord{5};
// When the control plane ends, for peers to take over what is still to be written to them.
constexpr std::chrono::milliseconds kLastWords{200};
// For CAF's threads to end afterwards: they wait for nobody any more.
constexpr std::chrono::milliseconds kEndOfCaf{800};

struct Config : caf::actor_system_config {
  explicit Config(const ControlOptions& options) {
    add_message_types<caf::id_block::troupe_net>();
    load<caf::io::middleman>();
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", static_cast<size_t>(options.threads));
    set("middleman.app-identifiers", std::vector<std::string>{"troupe-control-1"});
    set("middleman.workers", size_t{0});
    set("logger.verbosity", caf::atom("quiet"));
  }
};

/// False if the two are certainly different places: two tasks must not take each other's name.
bool MayBeTheSame(const std::string& listed, const std::string& told) {
  if (listed == told || told.empty()) return true;
  const absl::StatusOr<HostPort> a = ParseHostPort(listed), b = ParseHostPort(told);
  if (!a.ok() || !b.ok() || a->port != b->port) return false;
  // Names may stand for the same host as a number.
  const auto is_number = [](const std::string& host) {
    in6_addr bytes{};
    return inet_pton(AF_INET, host.c_str(), &bytes) == 1 ||
           inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
  };
  return a->host == b->host || !is_number(a->host) || !is_number(b->host);
}

}  // namespace

struct ControlPlane::Impl {
  explicit Impl(const ControlOptions& o) : options(o), config(o) {}

  // --- Played by the control actor. ---

  void OnWire(caf::event_based_actor* self, const WireMessage& wire) {
    cluster::Message message;
    const caf::strong_actor_ptr sender = self->current_sender();
    if (sender == nullptr || wire.bytes.size() > kMaxBytes ||
        !message.ParseFromString(wire.bytes)) {
      return;  // Nobody whom an answer would reach, or nothing that could be answered.
    }
    const PeerId from = PeerOf(self, sender, message);
    if (ControlHandler* h = handler) h->OnMessage(from, std::move(message));
  }

  PeerId PeerOf(caf::event_based_actor* self, const caf::strong_actor_ptr& sender,
                const cluster::Message& message) {
    auto known = by_actor.find(sender->address());
    if (known != by_actor.end() && (known->second < kFirstClient || message.task().empty())) {
      return known->second;
    }
    std::optional<PeerId> task =
        message.task().empty() || options.task.empty() ? std::nullopt : tasks->Find(message.task());
    if (task && !MayBeTheSame(tasks->Get(*task)->address, message.address())) task.reset();
    if (known != by_actor.end()) {
      if (!task) return known->second;
      // It was a stranger, and has become a member.
      std::lock_guard<std::mutex> lock(mutex);
      actors.erase(known->second);
      actors[*task] = sender;
      known->second = *task;
      return *task;
    }
    const PeerId peer = task ? *task : ClientPeer(message.incarnation());
    Link(self, peer, sender);
    return peer;
  }

  void Link(caf::event_based_actor* self, PeerId peer, const caf::strong_actor_ptr& actor) {
    if (by_actor.count(actor->address()) != 0) return;
    self->monitor(caf::actor_cast<caf::actor>(actor));
    by_actor[actor->address()] = peer;
    std::lock_guard<std::mutex> lock(mutex);
    actors[peer] = actor;
  }

  void OnDown(const caf::actor_addr& address) {
    auto known = by_actor.find(address);
    if (known == by_actor.end()) return;
    const PeerId peer = known->second;
    by_actor.erase(known);
    {
      std::lock_guard<std::mutex> lock(mutex);
      auto it = actors.find(peer);
      // Perhaps the peer has a newer actor already: then this is an old story.
      if (it == actors.end() || it->second->address() != address) return;
      actors.erase(it);
    }
    if (ControlHandler* h = handler) h->OnLinkDown(peer);
  }

  void Connect(caf::event_based_actor* self, PeerId peer) {
    const std::optional<TaskTable::Task> task = tasks->Get(peer);
    if (!task || connecting[peer]) return;
    caf::actor dialer;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (stopped || actors.count(peer) != 0) return;
      dialer = caf::actor_cast<caf::actor>(middleman);
    }
    absl::StatusOr<HostPort> address = ParseHostPort(task->address);
    if (!address.ok()) return;
    connecting[peer] = true;
    self->request(dialer, std::chrono::seconds(10), caf::connect_atom_v, address->host,
                  static_cast<uint16_t>(address->port))
        .then(
            [this, self, peer](const caf::node_id&, const caf::strong_actor_ptr& actor,
                               const std::set<std::string>&) {
              connecting[peer] = false;
              if (actor != nullptr) Link(self, peer, actor);
              Flush(self, peer);
            },
            [this, peer](const caf::error&) {
              connecting[peer] = false;
              std::lock_guard<std::mutex> lock(mutex);
              waiting.erase(peer);
            });
  }

  void Flush(caf::event_based_actor* self, PeerId peer) {
    std::vector<WireMessage> messages;
    caf::strong_actor_ptr to;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (auto it = waiting.find(peer); it != waiting.end()) {
        messages = std::move(it->second);
        waiting.erase(it);
      }
      if (auto it = actors.find(peer); it != actors.end()) to = it->second;
    }
    if (to == nullptr) return;
    for (WireMessage& message : messages) SendTo(to, self->ctrl(), std::move(message));
  }

  static void SendTo(const caf::strong_actor_ptr& to, caf::strong_actor_ptr from,
                     WireMessage wire) {
    to->get()->enqueue(std::move(from), caf::make_message_id(), caf::make_message(std::move(wire)),
                       nullptr);
  }

  static caf::behavior Control(caf::event_based_actor* self, Impl* impl) {
    self->set_down_handler([impl](const caf::down_msg& down) { impl->OnDown(down.source); });
    self->set_default_handler(caf::drop);
    self->set_error_handler([](caf::scheduled_actor*, caf::error&) {});
    self->delayed_send(self, impl->options.tick, cluster_tick_atom_v);
    return {
        // The actor would end with an exception; a message that is lost is asked for again.
        [self, impl](const WireMessage& wire) { KeepGoing([&] { impl->OnWire(self, wire); }); },
        [self, impl](cluster_tick_atom) {
          self->delayed_send(self, impl->options.tick, cluster_tick_atom_v);
          KeepGoing([&] {
            impl->sockets->EndSilent(kFirstWord);
            if (ControlHandler* h = impl->handler) h->OnTick();
          });
        },
        [self, impl](cluster_link_atom, uint64_t peer) {
          KeepGoing([&] { impl->Connect(self, peer); });
        },
    };
  }

  const ControlOptions options;
  const std::shared_ptr<TaskTable> tasks = std::make_shared<TaskTable>();
  Config config;
  const std::shared_ptr<ControlSockets> sockets = std::make_shared<ControlSockets>();
  caf::actor_system* system = nullptr;  ///< Until `Stop`, which ends it on a thread of its own.
  std::atomic<ControlHandler*> handler{nullptr};
  // Of the control actor.
  std::map<caf::actor_addr, PeerId> by_actor;
  std::map<PeerId, bool> connecting;

  std::mutex mutex;
  // Null after `Stop`.
  caf::io::middleman_actor middleman;
  caf::actor control;
  std::map<PeerId, caf::strong_actor_ptr> actors;
  std::map<PeerId, std::vector<WireMessage>> waiting;  ///< For links that are being made.
  bool stopped = false;
  bool abandoned = false;  ///< CAF did not end; what it may still touch is kept for good.
};

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::Create(const ControlOptions& options) {
  std::shared_ptr<const TlsContext> tls;
  if (!options.tls_certificate.empty() || !options.tls_key.empty() ||
      !options.tls_authority.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        tls, TlsContext::Create({options.tls_certificate, options.tls_key, options.tls_authority}));
  }
  auto impl = std::make_unique<Impl>(options);
  LetGoOfLogger let_go;
  impl->system = new caf::actor_system(impl->config);
  impl->middleman = SpawnMiddleman(*impl->system, impl->sockets, std::move(tls), kConnectTimeout);
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(impl)));
}

ControlPlane::ControlPlane(std::unique_ptr<Impl> impl)
    : tasks_(impl->tasks), impl_(std::move(impl)) {
  const ControlOptions& options = impl_->options;
  for (PeerId i = 0; i < options.addresses.size(); ++i) {
    tasks_->Set(i, i < options.tasks.size() ? options.tasks[i] : "", options.addresses[i]);
  }
}

ControlPlane::~ControlPlane() {
  Stop();
  if (impl_->abandoned) static_cast<void>(impl_.release());
}

void ControlPlane::Start(ControlHandler* handler) {
  impl_->handler = handler;
  LetGoOfLogger let_go;
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->control = impl_->system->spawn(&Impl::Control, impl_.get());
}

absl::StatusOr<int> ControlPlane::Listen(const std::string& host, int port) {
  LetGoOfLogger let_go;
  const char* address = host == "localhost" ? "127.0.0.1" : host.c_str();
  auto middleman = caf::make_function_view(impl_->middleman);
  auto published = middleman(caf::publish_atom_v, static_cast<uint16_t>(port),
                             caf::actor_cast<caf::strong_actor_ptr>(impl_->control),
                             std::set<std::string>(), std::string(address), true);
  if (!published) {
    return absl::UnavailableError(StrCat("cannot listen at ", host, ":", port,
                                         "; is the port in use? (",
                                         caf::to_string(published.error()), ")"));
  }
  return static_cast<int>(*published);
}

void ControlPlane::Send(PeerId to, cluster::Message message) {
  WireMessage wire;
  const auto serialize = [&] {
    try {
      return message.SerializeToString(&wire.bytes);
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  if (message.ByteSizeLong() > kMaxBytes || !serialize()) {
    wire.bytes.clear();
    // Whoever waits is told: a request is answered here, a reply becomes an error.
    cluster::Message error;
    error.set_version(message.version());
    error.set_kind(cluster::REPLY);
    error.set_id(message.id());
    error.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
    error.set_error(StrCat("a message of ", message.ByteSizeLong(),
                           " bytes is too large for the control plane, which takes ", kMaxBytes,
                           " at most, or for this process's memory"));
    error.set_incarnation(message.to_incarnation() != 0 ? message.to_incarnation() : 1);
    if (message.kind() == cluster::REQUEST) {
      Post([impl = impl_.get(), to, error] {
        if (ControlHandler* handler = impl->handler) handler->OnMessage(to, error);
      });
      return;
    }
    if (message.kind() != cluster::REPLY) return;
    error.set_task(message.task());
    error.set_incarnation(message.incarnation());
    error.SerializeToString(&wire.bytes);
  }
  caf::actor control;
  caf::strong_actor_ptr actor;
  bool dial = false;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->stopped) return;
    control = impl_->control;
    if (auto it = impl_->actors.find(to); it != impl_->actors.end()) {
      actor = it->second;
    } else if (const std::optional<TaskTable::Task> task = tasks_->Get(to)) {
      const std::string& self = impl_->options.task;
      if (!self.empty() && !Dials(self, task->name)) return;
      dial = true;
      auto& queue = impl_->waiting[to];
      if (queue.size() < 1000) queue.push_back(std::move(wire));
    }
  }
  if (actor != nullptr) {
    Impl::SendTo(actor, caf::actor_cast<caf::strong_actor_ptr>(control), std::move(wire));
  } else if (dial) {
    caf::anon_send(control, cluster_link_atom_v, to);
  }
}

void ControlPlane::Post(std::function<void()> job) {
  LetGoOfLogger let_go;
  // Not captured: CAF dereferences a null pointer for functions without arguments.
  impl_->system->spawn(
      [](caf::event_based_actor*, const std::function<void()>& run) { KeepGoing(run); },
      std::move(job));
}

bool ControlPlane::Stop() {
  caf::actor control;
  caf::io::middleman_actor middleman;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->stopped) return !impl_->abandoned;
    impl_->stopped = true;
    impl_->actors.clear();
    impl_->waiting.clear();
    control = std::exchange(impl_->control, nullptr);
    middleman = std::exchange(impl_->middleman, nullptr);
  }
  if (control) caf::anon_send_exit(control, caf::exit_reason::user_shutdown);
  impl_->sockets->StopConnecting();
  // It ignores other reasons, and as long as a peer has not answered it holds itself.
  caf::anon_send_exit(middleman, caf::exit_reason::kill);
  // The end of the system waits for those who hold them.
  control = nullptr;
  middleman = nullptr;
  // A stop takes a bounded time, whatever CAF's threads are at.
  auto over = std::make_shared<std::promise<void>>();
  std::future<void> ended = over->get_future();
  std::thread([system = impl_->system, over] {
    delete system;
    over->set_value();
  }).detach();
  if (ended.wait_for(kLastWords) != std::future_status::ready) {
    impl_->sockets->Sever();
    impl_->abandoned = ended.wait_for(kEndOfCaf) != std::future_status::ready;
  }
  impl_->handler = nullptr;
  return !impl_->abandoned;
}

}  // namespace troupe
