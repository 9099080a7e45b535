#include "api/internal/master_link.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "devices/status_macros.h"
#include "net/address.h"
#include "net/local_master.h"
#include "net/node_shell.h"
#include "net/server.h"
#include "net/tls.h"

namespace troupe {

namespace {

constexpr std::string_view kScheme = "troupe://";

absl::Status LostMaster(const std::string& target) {
  return absl::UnavailableError(StrCat("lost the master, ", target));
}
absl::Status ClosedSession() { return absl::CancelledError("the session has been closed"); }

/// The master is a task of this process.
class InProcessLink final : public MasterLink {
 public:
  InProcessLink(std::shared_ptr<LocalMaster> master, const std::string& target)
      : master_(std::move(master)), end_(std::make_shared<End>(target)) {}
  ~InProcessLink() override { master_->Detach(end_->id); }

  absl::Status Attach() {
    if (master_->Attach(end_->id, end_)) return absl::OkStatus();
    return LostMaster(end_->target);
  }

  void Call(cluster::Message request, ClusterTime, Calls::Done done, Player player) override {
    request.set_version(kProtocolVersion);
    request.set_kind(cluster::REQUEST);
    request.set_incarnation(end_->incarnation);
    absl::Status status;
    uint64_t id = 0;
    {
      std::lock_guard<std::mutex> lock(end_->mutex);
      status = end_->over;
      if (status.ok()) end_->pending[id = end_->next_id++] = std::move(done);
    }
    if (!status.ok()) {
      done(std::move(status), {});
      return;
    }
    request.set_id(id);
    if (!master_->Send(end_->id, std::move(request), player))
      end_->Answer(id, LostMaster(end_->target), {});
  }
  void Shut() override { end_->FailAll(ClosedSession()); }
  void Post(std::function<void()> job) override {
    if (!master_->Post(job)) job();
  }

 private:
  struct End final : LocalClient {
    explicit End(const std::string& t) : target(t) {}
    void OnMessage(cluster::Message message) override {
      if (message.kind() != cluster::REPLY) return;
      absl::Status status = StatusOf(message);
      const uint64_t id = message.id();
      Answer(id, std::move(status), std::move(message));
    }
    void OnStopped() override { FailAll(LostMaster(target)); }
    void Answer(uint64_t request, absl::Status status, cluster::Message reply) {
      Calls::Done done;
      {
        std::lock_guard<std::mutex> lock(mutex);
        auto it = pending.find(request);
        if (it == pending.end()) return;
        done = std::move(it->second);
        pending.erase(it);
      }
      done(std::move(status), std::move(reply));
    }
    void FailAll(const absl::Status& status) {
      std::unordered_map<uint64_t, Calls::Done> failed;
      {
        std::lock_guard<std::mutex> lock(mutex);
        over = status;
        failed.swap(pending);
      }
      for (auto& [request, done] : failed) done(status, {});
    }

    const std::string target;
    const uint64_t incarnation = NewIncarnation();
    const PeerId id = ClientPeer(incarnation);
    std::mutex mutex;
    uint64_t next_id = 1;
    std::unordered_map<uint64_t, Calls::Done> pending;
    absl::Status over;  ///< Not OK: nothing can be asked any more.
  };

  const std::shared_ptr<LocalMaster> master_;
  const std::shared_ptr<End> end_;
};

/// The master is elsewhere.
class NetworkLink final : public MasterLink {
 public:
  ~NetworkLink() override {
    if (data_ != nullptr) data_->Stop(std::chrono::milliseconds(0));
    if (control_ == nullptr || control_->Stop()) return;
    // A callback goes on; it may use what is below, but not this.
    if (shell_ == nullptr) return;
    shell_->Enter([this] {
      shell_->role()->set_watcher([](PeerId, FailureDetectorRole::Change, uint64_t) {});
      shell_->role()->set_status_watcher([](PeerId, uint64_t, const cluster::Message&) {});
    });
    static_cast<void>(shell_.release());
    static_cast<void>(data_.release());
  }

  absl::Status Connect(const HostPort& address, const SessionOptions& options) {
    target_ = options.target;
    std::shared_ptr<TlsContext> tls;
    ControlOptions control;
    control.addresses.push_back(address.ToString());
    control.threads = 2;
    control.tls_certificate = options.tls_certificate;
    control.tls_key = options.tls_key;
    control.tls_authority = options.tls_authority;
    if (!control.tls_certificate.empty() || !control.tls_key.empty() ||
        !control.tls_authority.empty()) {
      TROUPE_ASSIGN_OR_RETURN(tls, TlsContext::Create({control.tls_certificate, control.tls_key,
                                                       control.tls_authority}));
    }
    TROUPE_ASSIGN_OR_RETURN(control_, ControlPlane::Create(control));
    shell_ = std::make_unique<NodeShell>(control_.get());
    NodeRole::Options node;
    node.incarnation = NewIncarnation();
    node.tasks.push_back({"", options.target});
    node.health.timeout = absl::ToInt64Microseconds(options.heartbeat_timeout);
    node.health.interval = std::min(kSecond, node.health.timeout / 5);
    TransportOptions transport;
    transport.task = StrCat(kClientTask, absl::Hex(node.incarnation));
    transport.incarnation = node.incarnation;
    transport.tls = tls;
    transport.stall_timeout = absl::ToChronoMilliseconds(options.heartbeat_timeout);
    DataPlane::Events events;
    events.number = [](const PeerInfo&) { return std::optional<PeerId>(0); };
    events.tensor = [](const ReceivedTensor&) {};
    events.rejected = [](uint64_t, const absl::Status&) {};
    events.message = [this](PeerId from, const std::string& bytes, std::vector<Tensor> parts) {
      shell_->OnWire(from, bytes, std::move(parts));
    };
    events.lost = [this](PeerId peer, uint64_t incarnation) {
      shell_->OnConnectionLost(peer, incarnation);
    };
    TROUPE_ASSIGN_OR_RETURN(data_, DataPlane::Create(transport, std::move(events)));
    shell_->set_data_plane(data_.get());
    shell_->Init(node, nullptr, nullptr);
    shell_->Enter([this, address] {
      shell_->role()->set_watcher(
          [this](PeerId peer, FailureDetectorRole::Change change, uint64_t) {
            if (change == FailureDetectorRole::Change::kLost) data_->Drop(peer);
            std::lock_guard<std::mutex> lock(mutex_);
            up_ = change == FailureDetectorRole::Change::kUp;
            changed_.notify_all();
          });
      shell_->role()->set_status_watcher([this, address](PeerId peer, uint64_t incarnation,
                                                         const cluster::Message& status) {
        if (status.data_port() == 0) return;
        data_->Dial(peer, "", incarnation, HostPort{address.host, status.data_port()}.ToString());
      });
    });
    control_->Start(shell_.get());
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, absl::ToChronoMilliseconds(options.heartbeat_timeout),
                          [this] { return up_; })) {
      return absl::OkStatus();
    }
    lock.unlock();
    std::string why = "does a task of the same version serve there?";
    shell_->Enter([&] {
      const absl::Status& refusal = shell_->role()->refusal();
      if (!refusal.ok()) why = std::string(refusal.message());
    });
    return absl::UnavailableError(StrCat("no answer from ", options.target, " within ",
                                         absl::FormatDuration(options.heartbeat_timeout), "; ",
                                         why));
  }

  void Call(cluster::Message request, ClusterTime timeout, Calls::Done done, Player) override {
    shell_->Enter([&] {
      NodeRole* role = shell_->role();
      if (shut_) {
        done(ClosedSession(), {});
      } else if (!role->detector().alive(0)) {
        done(LostMaster(target_), {});
      } else {
        role->Call(0, std::move(request), NodeShell::Now(), timeout, std::move(done));
      }
    });
  }
  void Shut() override {
    shell_->Enter([this] {
      shut_ = true;
      shell_->role()->calls()->FailPeer(0, ClosedSession());
    });
  }
  void Post(std::function<void()> job) override { control_->Post(std::move(job)); }

 private:
  std::string target_;
  std::unique_ptr<ControlPlane> control_;
  std::unique_ptr<NodeShell> shell_;
  std::unique_ptr<DataPlane> data_;
  bool shut_ = false;  ///< Within the shell's events.

  std::mutex mutex_;
  std::condition_variable changed_;
  bool up_ = false;
};

/// One answer, waited for.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status status;
  cluster::Message reply;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MasterLink>> MasterLink::Create(const SessionOptions& options) {
  if (options.target.rfind(kScheme, 0) != 0) {
    return InvalidArgument("target \"", options.target,
                           "\" is neither empty nor of the form troupe://host:port");
  }
  const std::string address = options.target.substr(kScheme.size());
  TROUPE_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  if (options.heartbeat_timeout < absl::Milliseconds(100) ||
      options.heartbeat_timeout > absl::Hours(24)) {
    return InvalidArgument("the heartbeat timeout is to be from 0.1 s to a day, not ",
                           absl::FormatDuration(options.heartbeat_timeout));
  }
  if (auto master = LocalMaster::Find(address, options.tls_certificate)) {
    auto link = std::make_unique<InProcessLink>(std::move(master), options.target);
    TROUPE_RETURN_IF_ERROR(link->Attach());
    return link;
  }
  auto link = std::make_unique<NetworkLink>();
  TROUPE_RETURN_IF_ERROR(link->Connect(parsed, options));
  return link;
}

absl::Status MasterLink::CallAndWait(cluster::Message request, ClusterTime timeout,
                                     cluster::Message* reply) {
  // The master counts the time, too, but the wait must not depend on it.
  constexpr std::chrono::seconds kSlack{1};
  auto waiter = std::make_shared<Waiter>();
  auto answered = [waiter](absl::Status status, cluster::Message answer) {
    std::lock_guard<std::mutex> lock(waiter->mutex);
    waiter->status = std::move(status);
    waiter->reply = std::move(answer);
    waiter->done = true;
    waiter->changed.notify_all();
  };
  Call(std::move(request), timeout, answered, Player::kPlays);
  std::unique_lock<std::mutex> lock(waiter->mutex);
  const auto done = [&] { return waiter->done; };
  if (timeout == 0) {
    waiter->changed.wait(lock, done);
  } else if (!waiter->changed.wait_for(lock, std::chrono::microseconds(timeout) + kSlack, done)) {
    return absl::DeadlineExceededError(
        StrCat("no answer from the master within ", timeout / 1000, " ms"));
  }
  if (reply != nullptr) *reply = std::move(waiter->reply);
  return std::move(waiter->status);
}

}  // namespace troupe
