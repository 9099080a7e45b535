#include "net/server.h"

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "actors/cluster/graph_engine.h"
#include "actors/cluster/partition_engine.h"
#include "devices/status_macros.h"
#include "net/address.h"
#include "net/data_plane.h"
#include "net/local_master.h"
#include "net/node_shell.h"

namespace troupe {

uint64_t NewIncarnation() {
  std::random_device random;
  uint64_t number = 0;
  while (number == 0) number = (uint64_t{random()} << 32) | random();
  return number;
}

struct TaskServer::Impl {
  TaskServerOptions options;
  std::string address;
  uint64_t incarnation = 0;
  std::shared_ptr<Runtime> runtime;
  std::unique_ptr<ControlPlane> control;
  std::unique_ptr<NodeShell> shell;
  std::unique_ptr<PartitionEngine> worker;
  std::unique_ptr<GraphEngine> master;
  std::unique_ptr<DataPlane> data;
  std::shared_ptr<LocalMaster> door;
  std::mutex mutex;
  bool stopped = false;
  bool stuck = false;
};

absl::StatusOr<std::unique_ptr<TaskServer>> TaskServer::Start(const TaskServerOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const std::string listed, options.cluster.Address(options.task));
  TROUPE_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(listed));
  const bool tls = !options.tls_certificate.empty() || !options.tls_key.empty() ||
                   !options.tls_authority.empty();
  if (tls && (options.tls_certificate.empty() || options.tls_key.empty() ||
              options.tls_authority.empty())) {
    return InvalidArgument("TLS needs a certificate, its key and the authority's certificate");
  }
  if (!tls && !options.insecure && !IsLoopback(address.host)) {
    return absl::FailedPreconditionError(
        StrCat(options.task.ToString(), " is to listen at ", listed,
               ", which other machines may reach; give certificates for TLS, or allow it "
               "explicitly as insecure"));
  }
  if (options.heartbeat_interval.count() < 10 ||
      options.heartbeat_timeout < 2 * options.heartbeat_interval) {
    return InvalidArgument("heartbeats every ", options.heartbeat_interval.count(),
                           " ms need a timeout of at least twice that, not ",
                           options.heartbeat_timeout.count(), " ms");
  }
  std::shared_ptr<TlsContext> tls_context;
  if (tls) {  // Before anything is started.
    TROUPE_ASSIGN_OR_RETURN(
        tls_context,
        TlsContext::Create({options.tls_certificate, options.tls_key, options.tls_authority}));
  }
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->address = listed;
  impl->incarnation = NewIncarnation();
  Runtime::Options runtime_options;
  runtime_options.threads = options.threads;
  runtime_options.num_cpu_devices = options.num_cpu_devices;
  runtime_options.job = options.task.job;
  runtime_options.task = options.task.task;
  TROUPE_ASSIGN_OR_RETURN(impl->runtime, Runtime::Create(runtime_options));

  ControlOptions control;
  NodeRole::Options node;
  control.task = options.task.ToString();
  for (const TaskId& task : options.cluster.tasks()) {
    if (options.joining && task != options.task) continue;
    TROUPE_ASSIGN_OR_RETURN(const std::string at, options.cluster.Address(task));
    node.tasks.push_back({task.ToString(), at});
  }
  for (const auto& [name, at] : options.members) {
    if (name != control.task) node.tasks.push_back({name, at});
  }
  for (const MasterRole::Task& task : node.tasks) {
    control.tasks.push_back(task.name);
    control.addresses.push_back(task.address);
  }
  node.joining = options.joining;
  control.threads = std::max(4, static_cast<int>(std::thread::hardware_concurrency()));
  control.tls_certificate = options.tls_certificate;
  control.tls_key = options.tls_key;
  control.tls_authority = options.tls_authority;
  node.task = control.task;
  node.incarnation = impl->incarnation;
  node.health.interval = options.heartbeat_interval.count() * 1000;
  node.health.timeout = options.heartbeat_timeout.count() * 1000;
  node.master.wait_for_workers = options.wait_for_workers.count() * 1000;
  TROUPE_ASSIGN_OR_RETURN(impl->control, ControlPlane::Create(control));
  impl->shell = std::make_unique<NodeShell>(impl->control.get());
  impl->worker = std::make_unique<PartitionEngine>(impl->runtime, impl->shell.get());
  impl->master = std::make_unique<GraphEngine>(impl->shell.get());
  TransportOptions transport;
  transport.task = node.task;
  transport.incarnation = impl->incarnation;
  transport.insecure = options.insecure;
  transport.stall_timeout = options.heartbeat_timeout;
  transport.tls = tls_context;
  DataPlane::Events events;
  events.tensor = [engine = impl->worker.get()](ReceivedTensor tensor) {
    auto credit = std::make_shared<CreditLease>(std::move(tensor.credit));
    engine->Arrive(tensor.step, tensor.key, tensor.tag, tensor.dead, std::move(tensor.tensor),
                   std::move(credit));
  };
  events.rejected = [shell = impl->shell.get()](uint64_t step, const absl::Status& why) {
    shell->Enter([&] { shell->role()->worker()->OnSendFailed(step, why); });
  };
  TaskTable* const tasks = impl->control->tasks();
  events.number = [tasks](const PeerInfo& info) -> std::optional<PeerId> {
    if (info.task.rfind(kClientTask, 0) == 0) return ClientPeer(info.incarnation);
    return tasks->Find(info.task);
  };
  events.message = [shell = impl->shell.get()](PeerId from, const std::string& bytes,
                                               std::vector<Tensor> parts) {
    shell->OnWire(from, bytes, std::move(parts));
  };
  events.lost = [shell = impl->shell.get()](PeerId peer, uint64_t incarnation) {
    shell->OnConnectionLost(peer, incarnation);
  };
  TROUPE_ASSIGN_OR_RETURN(impl->data, DataPlane::Create(transport, std::move(events)));
  TROUPE_ASSIGN_OR_RETURN(node.worker.data_port,
                          impl->data->Listen(address.host, options.data_port));
  impl->shell->set_data_plane(impl->data.get());
  impl->shell->Init(node, impl->worker.get(), impl->master.get());
  impl->shell->Enter([&] {
    NodeRole* role = impl->shell->role();
    role->set_watcher([data = impl->data.get()](PeerId peer, FailureDetectorRole::Change change,
                                                uint64_t incarnation) {
      if (change == FailureDetectorRole::Change::kUp) data->Heard(peer, incarnation);
      if (change == FailureDetectorRole::Change::kLost) data->Drop(peer);
    });
    role->set_status_watcher(
        [data = impl->data.get(), tasks, self = node.task](PeerId peer, uint64_t incarnation,
                                                           const cluster::Message& status) {
          const std::optional<TaskTable::Task> task = tasks->Get(peer);
          if (!task || status.data_port() == 0 || !Dials(self, task->name)) return;
          absl::StatusOr<HostPort> at = ParseHostPort(task->address);
          if (!at.ok()) return;
          at->port = status.data_port();
          data->Dial(peer, task->name, incarnation, at->ToString());
        });
    role->set_member_watcher(
        [tasks](PeerId peer, const std::string& name, const std::string& member_address) {
          tasks->Set(peer, name, member_address);
        });
  });
  impl->control->Start(impl->shell.get());
  std::unique_ptr<TaskServer> server(new TaskServer(std::move(impl)));
  TROUPE_RETURN_IF_ERROR(server->impl_->control->Listen(address.host, address.port).status());
  server->impl_->door =
      LocalMaster::Open(listed, options.tls_certificate, server->impl_->shell.get());
  return server;
}

TaskServer::TaskServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TaskServer::~TaskServer() {
  // What kernels are still at work on cannot be taken away from them.
  if (!Stop(std::chrono::milliseconds(0)).ok() || impl_->stuck) impl_.release();
}

const TaskId& TaskServer::task() const { return impl_->options.task; }
std::string TaskServer::address() const { return impl_->address; }
uint64_t TaskServer::incarnation() const { return impl_->incarnation; }
const std::shared_ptr<Runtime>& TaskServer::runtime() const { return impl_->runtime; }

void TaskServer::Joined(const cluster::Message& members) {
  impl_->shell->Enter([&] { impl_->shell->role()->Joined(members, NodeShell::Now()); });
}

absl::Status TaskServer::Stop(std::chrono::milliseconds drain) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->stopped) return absl::OkStatus();
  impl_->stopped = true;
  using Clock = std::chrono::steady_clock;
  auto wait_until_idle = [this](Clock::time_point deadline) {
    while (true) {
      bool idle = impl_->worker->idle();
      impl_->shell->Enter([&] { idle &= impl_->shell->role()->master()->num_steps() == 0; });
      if (idle || Clock::now() >= deadline) return idle;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  impl_->shell->Enter([this] { impl_->shell->role()->Drain(); });
  wait_until_idle(Clock::now() + drain);
  impl_->shell->Enter([this] { impl_->shell->role()->Stop(NodeShell::Now()); });
  bool idle = wait_until_idle(Clock::now() + std::chrono::seconds(3));
  if (impl_->door != nullptr) idle &= impl_->door->Close(std::chrono::seconds(idle ? 1 : 0));
  if (idle) {
    // The last answers are on their way.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    impl_->data->Stop(std::chrono::milliseconds(100));
    impl_->stuck = !impl_->control->Stop();
    return absl::OkStatus();
  }
  impl_->stuck = true;
  return absl::DeadlineExceededError(
      StrCat(impl_->options.task.ToString(), " is stopping, but kernels are still at work"));
}

}  // namespace troupe
