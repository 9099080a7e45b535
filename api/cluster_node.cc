// A process's place among the actors of a cluster.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/internal/actor_host.h"
#include "api/internal/cluster_actors.h"
#include "api/internal/secret.h"
#include "devices/status_macros.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/keep_for_good.h"
#include "net/node_shell.h"
#include "net/server.h"
#include "net/tls.h"

namespace troupe {

namespace {

constexpr std::string_view kScheme = "troupe://";

/// Whether a task is there. The shell may outlive the node.
struct AnyUp {
  std::mutex mutex;
  std::condition_variable changed;
  bool is = false;
};

absl::StatusOr<PeerId> NumberOf(Links* links, const PeerInfo& info) {
  if (info.task.rfind(kClientTask, 0) == 0) return ClientPeer(info.incarnation);
  TROUPE_ASSIGN_OR_RETURN(const Links::Task task, links->FindTask(info.task));
  return task.id;
}

/// Port 0: any.
absl::StatusOr<HostPort> ParseListenAddress(const std::string& text) {
  if (!text.ends_with(":0")) return ParseHostPort(text);
  TROUPE_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(text.substr(0, text.size() - 1) + "1"));
  address.port = 0;
  return address;
}

}  // namespace

std::shared_ptr<ActorHost> MakeActorHost(const std::string& name, uint64_t incarnation,
                                         Links* links, const std::shared_ptr<Runtime>& runtime,
                                         std::chrono::milliseconds heartbeat_timeout,
                                         const std::function<void(PeerId task)>& members_changed) {
  auto host = std::make_shared<ActorHost>(
      ActorHost::Options{name, incarnation, links, runtime, heartbeat_timeout, members_changed});
  links->SetFrameSink(host.get());
  return host;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ListMembers(MasterLink* link,
                                                                             ClusterTime timeout) {
  cluster::Message ask, known;
  ask.mutable_get_status();
  TROUPE_RETURN_IF_ERROR(link->CallAndWait(std::move(ask), timeout, &known));
  std::vector<std::pair<std::string, std::string>> members;
  for (const cluster::Task& member : known.get_status_reply().tasks()) {
    if (!member.left()) members.emplace_back(member.name(), member.address());
  }
  return members;
}

struct ClusterNode::Impl {
  std::shared_ptr<ActorHost> host;
  std::string address;
  std::unique_ptr<NodeShell> shell;  ///< Null: the server has it.

  ~Impl() {
    if (shell == nullptr) return;
    // The last words of what was told go out.
    if (!shell->Stop(std::chrono::milliseconds(100))) {
      // Links that go on may still tell of their frames.
      KeepForGood(std::move(shell));
      KeepForGood(host);
    }
    host->Disconnect();
  }
};

absl::StatusOr<std::unique_ptr<ClusterNode>> ClusterNode::Join(const NodeOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const HostPort address, ParseListenAddress(options.address));
  SessionOptions session;
  session.target = options.target;
  session.heartbeat_timeout = options.heartbeat_timeout;
  session.tls_certificate = options.tls_certificate;
  session.tls_key = options.tls_key;
  session.tls_authority = options.tls_authority;
  session.secret_file = options.secret_file;
  NodeRole::Options node;
  node.follows = true;
  {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MasterLink> link, MasterLink::Create(session));
    const ClusterTime timeout = 2 * absl::ToInt64Microseconds(options.heartbeat_timeout);
    TROUPE_ASSIGN_OR_RETURN(const auto members, ListMembers(link.get(), timeout));
    for (const auto& [name, at] : members) node.tasks.push_back({name, at});
  }
  node.incarnation = NewIncarnation();
  node.health.timeout = absl::ToInt64Microseconds(options.heartbeat_timeout);
  node.health.interval = std::min(kSecond, node.health.timeout / 5);
  TransportOptions transport;
  transport.task = StrCat(kClientTask, absl::Hex(node.incarnation));
  transport.incarnation = node.incarnation;
  transport.address = address.ToString();
  transport.insecure = options.insecure;
  transport.stall_timeout = absl::ToChronoMilliseconds(options.heartbeat_timeout);
  TROUPE_ASSIGN_OR_RETURN(transport.secret,
                          SecretFor(options.secret_file, options.target.substr(kScheme.size())));
  TROUPE_ASSIGN_OR_RETURN(
      transport.tls,
      TlsContext::CreateIfAny({options.tls_certificate, options.tls_key, options.tls_authority}));
  auto impl = std::make_unique<Impl>();
  NodeShell* const shell = (impl->shell = std::make_unique<NodeShell>(/*threads=*/1)).get();
  TROUPE_RETURN_IF_ERROR(shell->MakeLinks(
      transport, [shell](const PeerInfo& info) { return NumberOf(shell->links(), info); },
      [](const ReceivedTensor&) {}));
  Links* const links = shell->links();
  for (PeerId i = 0; i < node.tasks.size(); ++i) {
    links->SetTask(i, node.tasks[i].name, node.tasks[i].address);
  }
  impl->host = MakeActorHost(
      transport.task, node.incarnation, links, nullptr,
      absl::ToChronoMilliseconds(options.heartbeat_timeout), [shell](PeerId task) {
        shell->Enter([shell, task] { shell->role()->AskMembers(task, NodeShell::Now()); });
      });
  TROUPE_RETURN_IF_ERROR(impl->host->System(options.config).status());
  TROUPE_ASSIGN_OR_RETURN(const int port, links->Listen(address.host, address.port));
  impl->address = HostPort{address.host, port}.ToString();
  auto up = std::make_shared<AnyUp>();
  shell->Init(node, nullptr, nullptr);
  shell->Enter([shell, links, up] {
    shell->role()->set_watcher(
        [links, up](PeerId peer, FailureDetectorRole::Change change, uint64_t) {
          if (change == FailureDetectorRole::Change::kLost) return links->Drop(peer);
          if (change != FailureDetectorRole::Change::kUp) return;
          std::lock_guard<std::mutex> lock(up->mutex);
          up->is = true;
          up->changed.notify_all();
        });
    shell->role()->set_member_watcher(
        [shell, links](PeerId task, const std::string& name, const std::string& at) {
          if (!name.empty()) return links->SetTask(task, name, at);
          shell->Defer([links, task] { links->RemoveTask(task); });
        });
  });
  std::unique_lock<std::mutex> lock(up->mutex);
  if (up->changed.wait_for(lock, absl::ToChronoMilliseconds(options.heartbeat_timeout),
                           [&] { return up->is; })) {
    return std::unique_ptr<ClusterNode>(new ClusterNode(std::move(impl)));
  }
  return absl::UnavailableError(StrCat("no task of the cluster of ", options.target,
                                       " answers within ",
                                       absl::FormatDuration(options.heartbeat_timeout)));
}

absl::StatusOr<std::unique_ptr<ClusterNode>> ClusterNode::Of(const Server& server,
                                                             const NodeOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->host = server.actors();
  impl->address = server.target().substr(kScheme.size());
  TROUPE_RETURN_IF_ERROR(impl->host->System(options.config).status());
  return std::unique_ptr<ClusterNode>(new ClusterNode(std::move(impl)));
}

ClusterNode::ClusterNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterNode::~ClusterNode() = default;

caf::actor_system& ClusterNode::system() const { return impl_->host->system(); }
std::string ClusterNode::address() const { return impl_->address; }

absl::StatusOr<caf::strong_actor_ptr> ClusterNode::FindAny(const std::string& task, ActorKind kind,
                                                           const std::string& name,
                                                           absl::Duration timeout) {
  return impl_->host->Find(task, kind, name, timeout);
}

absl::StatusOr<PublishedActor> ClusterNode::Import(const std::string& name,
                                                   absl::Duration timeout) {
  return impl_->host->Import(name, timeout);
}

absl::StatusOr<PublishedActor> ClusterNode::Publish(const std::string& name,
                                                    const caf::actor& actor,
                                                    const PublishOptions& options,
                                                    absl::Duration timeout) {
  return impl_->host->Publish(name, actor, options, timeout);
}

}  // namespace troupe
