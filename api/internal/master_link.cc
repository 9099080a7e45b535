#include "api/internal/master_link.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "api/internal/secret.h"
#include "devices/status_macros.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/keep_for_good.h"
#include "net/local_master.h"
#include "net/node_shell.h"
#include "net/server.h"
#include "net/tls.h"

namespace troupe {

namespace {

constexpr std::string_view kScheme = "troupe://";
// For how long attempts to connect may fail before nobody is believed to serve there: a task that
// is started with its clients takes less.
constexpr absl::Duration kAbsent = absl::Seconds(1);

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
    request.mutable_sender()->set_incarnation(end_->incarnation);
    uint64_t id = 0;
    {
      std::unique_lock<std::mutex> lock(end_->mutex);
      if (!end_->over.ok()) {
        const absl::Status over = end_->over;
        lock.unlock();
        done(over, {});
        return;
      }
      end_->pending[id = end_->next_id++] = std::move(done);
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
      if (!message.has_status()) return;
      absl::Status status = StatusOf(message.status());
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
    // A callback may go on, and use the shell.
    if (shell_ != nullptr && !shell_->Stop(std::chrono::milliseconds(0))) {
      KeepForGood(std::move(shell_));
    }
  }

  absl::Status Connect(const HostPort& address, const SessionOptions& options,
                       const std::string& secret) {
    target_ = options.target;
    const TlsFiles files{options.tls_certificate, options.tls_key, options.tls_authority};
    NodeRole::Options node;
    node.incarnation = NewIncarnation();
    node.tasks.push_back({"", options.target});
    node.health.timeout = absl::ToInt64Microseconds(options.heartbeat_timeout);
    node.health.interval = std::min(kSecond, node.health.timeout / 5);
    TransportOptions transport;
    transport.task = StrCat(kClientTask, absl::Hex(node.incarnation));
    transport.incarnation = node.incarnation;
    transport.secret = secret;
    transport.stall_timeout = absl::ToChronoMilliseconds(options.heartbeat_timeout);
    TROUPE_ASSIGN_OR_RETURN(transport.tls, TlsContext::CreateIfAny(files));
    shell_ = std::make_unique<NodeShell>(/*threads=*/2);
    TROUPE_RETURN_IF_ERROR(shell_->MakeLinks(
        transport, [](const PeerInfo&) { return PeerId{0}; }, [](const ReceivedTensor&) {}));
    shell_->links()->SetTask(0, "", address.ToString());
    shell_->Init(node, nullptr, nullptr);
    shell_->Enter([this] {
      shell_->role()->set_watcher([shell = shell_.get(), up = up_](
                                      PeerId peer, FailureDetectorRole::Change change, uint64_t) {
        if (change == FailureDetectorRole::Change::kLost) shell->links()->Drop(peer);
        std::lock_guard<std::mutex> lock(up->mutex);
        up->is = change == FailureDetectorRole::Change::kUp;
        up->changed.notify_all();
      });
      shell_->role()->set_refusal_watcher([up = up_](const absl::Status& why) {
        const absl::Time now = absl::Now();
        std::lock_guard<std::mutex> lock(up->mutex);
        up->refusal = why;
        up->absent_since =
            absl::IsUnavailable(why) ? std::min(up->absent_since, now) : absl::InfiniteFuture();
        // Others may go away: a task that starts, or starts again.
        up->final = absl::IsPermissionDenied(why) || absl::IsFailedPrecondition(why) ||
                    now - up->absent_since >= kAbsent;
        up->changed.notify_all();
      });
    });
    std::unique_lock<std::mutex> lock(up_->mutex);
    const absl::Duration patience =
        std::clamp(options.creation_timeout, absl::ZeroDuration(), options.heartbeat_timeout);
    up_->changed.wait_for(lock, absl::ToChronoNanoseconds(patience),
                          [&] { return up_->is || up_->final; });
    const absl::Status& refusal = up_->refusal;
    if (up_->is) return absl::OkStatus();
    // Others name the address and what the peer is, or is not.
    if (up_->final && !absl::IsUnavailable(refusal)) return refusal;
    return absl::UnavailableError(
        StrCat("no answer from ", options.target,
               up_->final ? "" : StrCat(" within ", absl::FormatDuration(patience)), "; ",
               refusal.ok() ? "does a task of the same version serve there?" : refusal.message()));
  }

  void Call(cluster::Message request, ClusterTime timeout, Calls::Done done, Player) override {
    shell_->Enter([&] {
      NodeRole* role = shell_->role();
      const absl::Status begun = CatchExceptions([&] {
        if (shut_) return ClosedSession();
        if (!role->detector().alive(0)) return LostMaster(target_);
        role->Call(0, std::move(request), NodeShell::Now(), timeout, done);
        return absl::OkStatus();
      });
      if (!begun.ok()) done(begun, {});
    });
  }
  void Shut() override {
    shell_->Enter([this] {
      shut_ = true;
      shell_->role()->calls()->FailPeer(0, ClosedSession());
    });
  }
  void Post(std::function<void()> job) override { shell_->Post(std::move(job)); }

 private:
  /// Whether the master is there. The shell may outlive the link.
  struct Up {
    std::mutex mutex;
    std::condition_variable changed;
    bool is = false;
    absl::Status refusal;
    absl::Time absent_since = absl::InfiniteFuture();  ///< All attempts to connect have failed.
    bool final = false;                                ///< It is not going to come.
  };

  std::string target_;
  const std::shared_ptr<Up> up_ = std::make_shared<Up>();
  std::unique_ptr<NodeShell> shell_;
  bool shut_ = false;  ///< Within the shell's events.
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
  TROUPE_ASSIGN_OR_RETURN(const std::string secret, SecretFor(options.secret_file, address));
  if (auto master = LocalMaster::Find(address, {options.tls_certificate, secret})) {
    auto link = std::make_unique<InProcessLink>(std::move(master), options.target);
    TROUPE_RETURN_IF_ERROR(link->Attach());
    return link;
  }
  auto link = std::make_unique<NetworkLink>();
  TROUPE_RETURN_IF_ERROR(link->Connect(parsed, options, secret));
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
    // Two waits: if the process stood still during the first, its answer may be there to be read.
  } else if (!waiter->changed.wait_for(lock, std::chrono::microseconds(timeout), done) &&
             !waiter->changed.wait_for(lock, kSlack, done)) {
    return absl::DeadlineExceededError(
        StrCat("no answer from the master within ", timeout / 1000, " ms"));
  }
  if (reply != nullptr) *reply = std::move(waiter->reply);
  return std::move(waiter->status);
}

}  // namespace troupe
