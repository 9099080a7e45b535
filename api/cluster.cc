#include "api/cluster.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "devices/status_macros.h"
#include "net/server.h"

namespace troupe {

struct Server::Impl {
  std::unique_ptr<TaskServer> server;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  TaskServerOptions task;
  task.cluster = options.cluster;
  task.task = {options.job, options.task};
  task.threads = options.threads;
  task.num_cpu_devices = options.num_cpu_devices;
  task.data_port = options.data_port;
  task.heartbeat_interval = absl::ToChronoMilliseconds(options.heartbeat_interval);
  task.heartbeat_timeout = absl::ToChronoMilliseconds(options.heartbeat_timeout);
  task.wait_for_workers = absl::ToChronoMilliseconds(options.wait_for_workers);
  task.insecure = options.insecure;
  task.tls_certificate = options.tls_certificate;
  task.tls_key = options.tls_key;
  task.tls_authority = options.tls_authority;
  auto impl = std::make_unique<Impl>();
  TROUPE_ASSIGN_OR_RETURN(impl->server, TaskServer::Start(task));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Stop(absl::ZeroDuration()).IgnoreError(); }

std::string Server::target() const { return StrCat("troupe://", impl_->server->address()); }
std::string Server::task() const { return impl_->server->task().ToString(); }
uint64_t Server::incarnation() const { return impl_->server->incarnation(); }
const std::shared_ptr<Runtime>& Server::runtime() const { return impl_->server->runtime(); }

void Server::Join() {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->changed.wait(lock, [this] { return impl_->stopped; });
}

absl::Status Server::Stop(absl::Duration drain) {
  absl::Status status = impl_->server->Stop(absl::ToChronoMilliseconds(drain));
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->stopped = true;
  impl_->changed.notify_all();
  return status;
}

}  // namespace troupe
