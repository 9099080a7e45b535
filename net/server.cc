#include "net/server.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/cluster/graph_engine.h"
#include "actors/cluster/partition_engine.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/keep_for_good.h"
#include "net/local_master.h"
#include "net/node_shell.h"

namespace troupe {

using Clock = std::chrono::steady_clock;

struct TaskServer::Impl {
  TaskServerOptions options;
  std::string address;
  uint64_t incarnation = 0;
  std::shared_ptr<Runtime> runtime;
  std::unique_ptr<NodeShell> shell;
  std::unique_ptr<PartitionEngine> worker;
  std::unique_ptr<GraphEngine> master;
  std::shared_ptr<LocalMaster> local;
  std::mutex mutex;
  bool stopped = false;
  bool stuck = false;

  /// Until no step runs; false if that lasts too long.
  bool WaitUntilIdle(Clock::time_point deadline);
};

namespace {

// For running kernels to stop when their steps are aborted.
constexpr std::chrono::seconds kStopOfKernels(3);

/// False if the two are certainly different places: two tasks must not take each other's name.
bool MayBeTheSame(const std::string& listed, const std::string& told) {
  if (listed == told) return true;
  const absl::StatusOr<HostPort> a = ParseHostPort(listed), b = ParseHostPort(told);
  if (!a.ok() || !b.ok() || a->port != b->port) return false;
  // Names may stand for the same host as a number.
  return a->host == b->host || !IsNumericHost(a->host) || !IsNumericHost(b->host);
}

/// Which peer that is.
absl::StatusOr<PeerId> NumberOf(Links* links, const PeerInfo& info) {
  if (info.task.rfind(kClientTask, 0) == 0) return ClientPeer(info.incarnation);
  TROUPE_ASSIGN_OR_RETURN(const Links::Task task, links->FindTask(info.task));
  if (MayBeTheSame(task.address, info.serves_at)) return task.id;
  return absl::AlreadyExistsError(
      StrCat(info.task, " is not expected at ", info.serves_at,
             "; are there two tasks of one name, or two descriptions of the cluster?"));
}

absl::Status CheckHeartbeats(const TaskServerOptions& options) {
  if (options.heartbeat_interval.count() < 10 ||
      options.heartbeat_timeout < 2 * options.heartbeat_interval) {
    return InvalidArgument("heartbeats every ", options.heartbeat_interval.count(),
                           " ms need a timeout of at least twice that, not ",
                           options.heartbeat_timeout.count(), " ms");
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeRole::Options> MakeNodeOptions(const TaskServerOptions& options,
                                                  uint64_t incarnation) {
  NodeRole::Options node;
  node.task = options.task.ToString();
  for (const TaskId& task : options.cluster.tasks()) {
    if (options.joining && task != options.task) continue;
    TROUPE_ASSIGN_OR_RETURN(const std::string at, options.cluster.Address(task));
    node.tasks.push_back({task.ToString(), at});
  }
  for (const auto& [name, at] : options.members) {
    if (name != node.task) node.tasks.push_back({name, at});
  }
  node.joining = options.joining;
  node.incarnation = incarnation;
  node.health.interval = options.heartbeat_interval.count() * 1000;
  node.health.timeout = options.heartbeat_timeout.count() * 1000;
  node.master.wait_for_workers = options.wait_for_workers.count() * 1000;
  return node;
}

absl::StatusOr<TransportOptions> MakeTransportOptions(const TaskServerOptions& options,
                                                      const std::string& address,
                                                      uint64_t incarnation) {
  TransportOptions transport;
  TROUPE_ASSIGN_OR_RETURN(
      transport.tls,
      TlsContext::CreateIfAny({options.tls_certificate, options.tls_key, options.tls_authority}));
  transport.task = options.task.ToString();
  if (transport.tls) TROUPE_RETURN_IF_ERROR(transport.tls->CheckOwn(transport.task));
  transport.incarnation = incarnation;
  transport.address = address;
  transport.insecure = options.insecure;
  transport.secret = options.secret;
  transport.stall_timeout = options.heartbeat_timeout;
  return transport;
}

/// Has the links follow what the role learns of tasks. `left` is called when it has left itself.
void FollowRole(NodeShell* shell, const std::function<void()>& left) {
  Links* const links = shell->links();
  NodeRole* const role = shell->role();
  role->set_watcher([links](PeerId peer, FailureDetectorRole::Change change, uint64_t) {
    if (change == FailureDetectorRole::Change::kLost) links->Drop(peer);
  });
  role->set_member_watcher([links, shell, self = role->self(), left](
                               PeerId peer, const std::string& name, const std::string& address) {
    if (!name.empty()) {
      links->SetTask(peer, name, address);
    } else if (peer != self) {
      shell->Defer([links, peer] { links->RemoveTask(peer); });  // It is told before.
    } else if (left) {
      left();
    }
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskServer>> TaskServer::Start(const TaskServerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->incarnation = NewIncarnation();
  // What may be wrong is found before anything is started.
  TROUPE_ASSIGN_OR_RETURN(impl->address, options.cluster.Address(options.task));
  TROUPE_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(impl->address));
  TROUPE_ASSIGN_OR_RETURN(const TransportOptions transport,
                          MakeTransportOptions(options, impl->address, impl->incarnation));
  TROUPE_RETURN_IF_ERROR(CheckHeartbeats(options));
  TROUPE_ASSIGN_OR_RETURN(impl->runtime,
                          Runtime::Create({.threads = options.threads,
                                           .num_cpu_devices = options.num_cpu_devices,
                                           .job = options.task.job,
                                           .task = options.task.task,
                                           .devices = options.devices}));
  TROUPE_ASSIGN_OR_RETURN(const NodeRole::Options node,
                          MakeNodeOptions(options, impl->incarnation));
  impl->shell = std::make_unique<NodeShell>(
      std::max(4, static_cast<int>(std::thread::hardware_concurrency())));
  NodeShell* const shell = impl->shell.get();
  impl->worker = std::make_unique<PartitionEngine>(impl->runtime, shell);
  impl->master = std::make_unique<GraphEngine>(shell);
  TROUPE_RETURN_IF_ERROR(shell->MakeLinks(
      transport, [shell](const PeerInfo& info) { return NumberOf(shell->links(), info); },
      [engine = impl->worker.get()](ReceivedTensor tensor) {
        auto credit = std::make_shared<CreditLease>(std::move(tensor.credit));
        engine->Arrive(tensor.step, tensor.key, tensor.tag, tensor.dead, std::move(tensor.tensor),
                       std::move(credit));
      }));
  Links* const links = shell->links();
  for (PeerId i = 0; i < node.tasks.size(); ++i) {
    links->SetTask(i, node.tasks[i].name, node.tasks[i].address);
  }
  shell->Init(node, impl->worker.get(), impl->master.get());
  shell->Enter([&] { FollowRole(shell, options.left); });
  if (options.before_listening != nullptr) {
    options.before_listening(links, impl->incarnation, impl->runtime);
  }
  std::unique_ptr<TaskServer> server(new TaskServer(std::move(impl)));
  TROUPE_RETURN_IF_ERROR(links->Listen(address.host, address.port).status());
  const bool anyone = options.secret.empty() && options.tls_certificate.empty();
  WriteLog(LogLevel::kInfo, node.task, {"server"}, "serves at ", server->address(),
           anyone ? ", whoever connects: it has no secret (--secret-file)" : "");
  server->impl_->local =
      LocalMaster::Open(server->address(), {options.tls_certificate, options.secret}, shell);
  return server;
}

TaskServer::TaskServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TaskServer::~TaskServer() {
  // What kernels are still at work on cannot be taken away from them.
  if (!Stop(std::chrono::milliseconds(0)).ok() || impl_->stuck) KeepForGood(std::move(impl_));
}

const TaskId& TaskServer::task() const { return impl_->options.task; }
std::string TaskServer::address() const { return impl_->address; }
uint64_t TaskServer::incarnation() const { return impl_->incarnation; }
const std::shared_ptr<Runtime>& TaskServer::runtime() const { return impl_->runtime; }

void TaskServer::Joined(const cluster::JoinClusterReply& members) {
  impl_->shell->Enter([&] { impl_->shell->role()->Joined(members, NodeShell::Now()); });
}

bool TaskServer::Impl::WaitUntilIdle(Clock::time_point deadline) {
  while (true) {
    bool idle = worker->idle();
    shell->Enter([&] { idle &= shell->role()->master()->num_steps() == 0; });
    if (idle || Clock::now() >= deadline) return idle;
    // Steps end on threads of their own, and tell only their roles.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

absl::Status TaskServer::Leave(std::chrono::milliseconds drain) {
  auto told = std::make_shared<std::promise<absl::Status>>();
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->stopped) return absl::OkStatus();
    impl_->shell->Enter([this] { impl_->shell->role()->Drain(); });
    impl_->WaitUntilIdle(Clock::now() + drain);
    impl_->shell->Enter([&] {
      impl_->shell->role()->Leave(impl_->options.task.ToString(), NodeShell::Now(),
                                  [told](const absl::Status& status) { told->set_value(status); });
    });
  }
  TROUPE_RETURN_IF_ERROR(told->get_future().get());  // Each call has a deadline.
  return Stop(std::chrono::milliseconds(0));
}

absl::Status TaskServer::Stop(std::chrono::milliseconds drain) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->stopped) return absl::OkStatus();
  impl_->stopped = true;
  const std::string task = impl_->options.task.ToString();
  WriteLog(LogLevel::kInfo, task, {"server"}, "stops");
  impl_->shell->Enter([this] { impl_->shell->role()->Drain(); });
  impl_->WaitUntilIdle(Clock::now() + drain);
  impl_->shell->Enter([this] { impl_->shell->role()->Stop(NodeShell::Now()); });
  // Kernels that stop let their steps be answered. By the timeout the others have lost this task;
  // then it is not to be found any more, whatever its kernels do.
  const Clock::time_point last = Clock::now() + kStopOfKernels;
  bool idle = impl_->WaitUntilIdle(std::min(last, Clock::now() + impl_->options.heartbeat_timeout));
  // A step is over just before it is answered, and nobody hears when the answer has been written.
  if (idle) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  static_cast<void>(impl_->shell->links()->Stop(std::chrono::milliseconds(100)));
  idle = idle || impl_->WaitUntilIdle(last);
  if (impl_->local != nullptr) idle &= impl_->local->Close(std::chrono::seconds(idle ? 1 : 0));
  impl_->stuck = !impl_->shell->Stop(std::chrono::milliseconds(0)) || !idle;
  if (idle) return absl::OkStatus();
  WriteLog(LogLevel::kError, task, {"server"}, "kernels do not stop; what they use is kept");
  return absl::DeadlineExceededError(StrCat(task, " has stopped, but kernels are still at work"));
}

}  // namespace troupe
