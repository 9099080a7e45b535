#include "api/cluster.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "api/internal/cluster_actors.h"
#include "api/internal/master_link.h"
#include "api/internal/secret.h"
#include "api/termination_signals.h"
#include "devices/status_macros.h"
#include "net/keep_for_good.h"
#include "net/server.h"

namespace troupe {

struct Server::Impl {
  std::shared_ptr<ActorHost> actors;
  std::unique_ptr<TaskServer> server;  ///< Ends first.
  /// Written by `Stop` and never read: it stays readable.
  const int stopped = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

  ~Impl() {
    if (stopped >= 0) close(stopped);
  }
};

namespace {

/// A task that becomes a member of the cluster of `options.join`. It serves, and knows the members,
/// before they hear of it.
absl::StatusOr<std::unique_ptr<TaskServer>> JoinCluster(const ServerOptions& options,
                                                        TaskServerOptions task) {
  TROUPE_ASSIGN_OR_RETURN(const std::string address, options.cluster.Address(task.task));
  SessionOptions session;
  session.target = StrCat("troupe://", options.join);
  session.heartbeat_timeout = options.heartbeat_timeout;
  session.tls_certificate = options.tls_certificate;
  session.tls_key = options.tls_key;
  session.tls_authority = options.tls_authority;
  session.secret_file = options.secret_file;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MasterLink> link, MasterLink::Create(session));
  const ClusterTime timeout = 2 * absl::ToInt64Microseconds(options.heartbeat_timeout);
  TROUPE_ASSIGN_OR_RETURN(task.members, ListMembers(link.get(), timeout));
  task.joining = true;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<TaskServer> server, TaskServer::Start(task));
  cluster::Message join, joined;
  cluster::Task* newcomer = join.mutable_join_cluster()->mutable_task();
  newcomer->set_name(task.task.ToString());
  newcomer->set_address(address);
  newcomer->set_incarnation(server->incarnation());
  TROUPE_RETURN_IF_ERROR(link->CallAndWait(std::move(join), timeout, &joined));
  server->Joined(joined.join_cluster_reply());
  return server;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  TaskServerOptions task;
  task.cluster = options.cluster;
  task.task = {options.job, options.task};
  task.threads = options.threads;
  task.num_cpu_devices = options.num_cpu_devices;
  task.devices = options.devices;
  task.heartbeat_interval = absl::ToChronoMilliseconds(options.heartbeat_interval);
  task.heartbeat_timeout = absl::ToChronoMilliseconds(options.heartbeat_timeout);
  task.wait_for_workers = absl::ToChronoMilliseconds(options.wait_for_workers);
  task.insecure = options.insecure;
  task.tls_certificate = options.tls_certificate;
  task.tls_key = options.tls_key;
  task.tls_authority = options.tls_authority;
  // Who joins a task that clients find the secret of finds it, too.
  if (!options.secret_file.empty() || !options.join.empty()) {
    TROUPE_ASSIGN_OR_RETURN(task.secret, SecretFor(options.secret_file, options.join));
  }
  auto impl = std::make_unique<Impl>();
  if (impl->stopped < 0) return absl::ErrnoToStatus(errno, "no event for the server's end");
  task.before_listening = [&impl, name = task.task.ToString(), &options](
                              Links* links, uint64_t incarnation,
                              const std::shared_ptr<Runtime>& runtime) {
    impl->actors = MakeActorHost(name, incarnation, links, runtime,
                                 absl::ToChronoMilliseconds(options.heartbeat_timeout));
  };
  task.left = [stopped = impl->stopped] { eventfd_write(stopped, 1); };
  if (options.join.empty()) {
    TROUPE_ASSIGN_OR_RETURN(impl->server, TaskServer::Start(task));
  } else {
    TROUPE_ASSIGN_OR_RETURN(impl->server, JoinCluster(options, std::move(task)));
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Stop(absl::ZeroDuration()).IgnoreError(); }

std::string Server::target() const { return StrCat("troupe://", impl_->server->address()); }
std::string Server::task() const { return impl_->server->task().ToString(); }
uint64_t Server::incarnation() const { return impl_->server->incarnation(); }
const std::shared_ptr<Runtime>& Server::runtime() const { return impl_->server->runtime(); }

const std::shared_ptr<ActorHost>& Server::actors() const { return impl_->actors; }

void Server::Join() {
  pollfd stopped{impl_->stopped, POLLIN, 0};
  while (poll(&stopped, 1, -1) < 0 && errno == EINTR) {
  }
}

absl::Status Server::JoinUntilSignal(absl::Duration drain) {
  const TerminationSignals signals;
  if (signals.Wait(impl_->stopped) == 0) return absl::OkStatus();
  return Stop(drain);
}

absl::Status Server::Stop(absl::Duration drain) {
  absl::Status status = impl_->server->Stop(absl::ToChronoMilliseconds(drain));
  // Links that go on may still tell of their frames.
  if (!status.ok()) KeepForGood(impl_->actors);
  eventfd_write(impl_->stopped, 1);
  return status;
}

absl::Status Server::Leave(absl::Duration drain) {
  return impl_->server->Leave(absl::ToChronoMilliseconds(drain));
}

}  // namespace troupe
