/// The actors of a process among those of a cluster: what a `ClusterNode` shows. Not public.
#ifndef TROUPE_API_INTERNAL_ACTOR_HOST_H_
#define TROUPE_API_INTERNAL_ACTOR_HOST_H_

#include <atomic>
#include <caf/actor_proxy.hpp>
#include <caf/all.hpp>
#include <caf/proxy_registry.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/actors.h"
#include "net/links.h"
#include "net/wire.h"

namespace troupe {

class Runtime;

/// Carries messages between the actors of this process and those of others, in frames over the
/// links. A remote actor is a proxy, whose `enqueue` writes a frame on the sender's thread; what
/// comes is enqueued by the links' I/O thread. A node is known by its incarnation, which is in the
/// node id of CAF's handles. The actor system is made when it is first needed. Thread-safe.
class ActorHost final : public std::enable_shared_from_this<ActorHost>,
                        public FrameSink,
                        public caf::proxy_registry::backend {
 public:
  struct Options {
    std::string name;  ///< As others know this process.
    uint64_t incarnation = 0;
    Links* links = nullptr;
    std::shared_ptr<Runtime> runtime;         ///< Of a task; nullptr: of none.
    std::chrono::milliseconds silence{5000};  ///< After which a peer is lost.
    /// Told, on the I/O thread, that a task may know of members that have come or gone.
    std::function<void(PeerId task)> members_changed;
    /// Of deadlines and pings.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
    uint64_t max_tensor_bytes = TransportOptions().max_tensor_bytes;  ///< That peers take.
  };
  /// What may be under way to an actor.
  static constexpr int64_t kMostMessages = 10000;
  static constexpr int64_t kMostBytes = 256 << 20;
  /// Actors of other processes that are known here because one peer has named them.
  static constexpr int64_t kMostProxies = 100000;

  explicit ActorHost(Options options) : options_(std::move(options)) {}
  /// The links have been stopped.
  ~ActorHost() override;

  /// Makes the actor system with the application's `config`, or gives the one that is there.
  /// FailedPrecondition if that was made with another.
  absl::StatusOr<caf::actor_system*> System(caf::actor_system_config* config);
  caf::actor_system& system() { return **System(nullptr); }

  using Found = std::function<void(absl::StatusOr<caf::strong_actor_ptr>)>;
  using Published = std::function<void(absl::StatusOr<PublishedActor>)>;
  /// `done` is called once, on the I/O thread or before this returns.
  void FindAsync(const std::string& task, ActorKind kind, const std::string& name,
                 absl::Duration timeout, Found done);
  void PublishAsync(const std::string& name, const caf::actor& actor, const PublishOptions& options,
                    absl::Duration timeout, Published done);
  /// The same; these wait, and so are not called on the I/O thread.
  absl::StatusOr<caf::strong_actor_ptr> Find(const std::string& task, ActorKind kind,
                                             const std::string& name, absl::Duration timeout);
  absl::StatusOr<PublishedActor> Publish(const std::string& name, const caf::actor& actor,
                                         const PublishOptions& options, absl::Duration timeout);
  absl::StatusOr<PublishedActor> Import(const std::string& name, absl::Duration timeout);
  /// Ends all that concerns other processes.
  void Disconnect();
  /// Nothing that was asked waits for its answer.
  bool idle();

  // The links' sink.
  void OnOpened(PeerId id, const std::shared_ptr<Peer>& peer) override;
  void OnClosed(PeerId id, const std::shared_ptr<Peer>& peer) override;
  void OnUnreachable(PeerId id, const absl::Status& why) override;
  void OnFrame(PeerId id, const std::shared_ptr<Peer>& peer, std::string body,
               std::vector<Tensor> tensors, const absl::Status& whole) override;
  void OnFrameTick() override;
  void OnTasksChanged() override;

  // The backend of proxies.
  caf::strong_actor_ptr make_proxy(caf::node_id node, caf::actor_id actor) override;
  void set_last_hop(caf::node_id*) override {}

 private:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(absl::StatusOr<std::string>)>;
  using Count = std::shared_ptr<std::atomic<int64_t>>;
  class Proxy;
  class CountedElement;
  class Held;
  struct Window;
  /// A process with which there is something to exchange.
  struct Process {
    PeerId id = 0;
    std::shared_ptr<Peer> peer;  ///< Null until there is a connection.
    bool pings = false;          ///< Frames have been exchanged.
    uint64_t received = 0;       ///< Bytes, at the last ping.
    int unheard = 0;             ///< For so many pings nothing has come.
    bool unanswered = false;     ///< One of its requests could not be answered.
    Count proxies = std::make_shared<std::atomic<int64_t>>(0);  ///< That it has named.
  };
  /// Something that was asked of the host of another process.
  struct Call {
    PeerId to = 0;
    Clock::time_point deadline;
    Done done;
  };
  struct Publication {
    uint64_t incarnation = 0;
    caf::actor_id actor = 0;
    bool quick = false;
    std::unique_ptr<PublishedActor> local;  ///< For the graphs of this process.
  };
  /// A request of an actor of this process to one of another.
  struct Request {
    uint64_t node = 0;
    caf::actor_id actor = 0;
    caf::strong_actor_ptr sender;
  };
  /// The sender's actor and the request's id.
  using RequestKey = std::pair<caf::actor_id, uint64_t>;

  void Start(caf::actor_system_config* config);
  caf::strong_actor_ptr HandleOf(uint64_t node, caf::actor_id actor);
  /// Who the process of an incarnation is, for errors; empty: there is no connection to it.
  std::string Describe(uint64_t node);

  void OnFrameOf(uint64_t from, PeerId id, std::string body, std::vector<Tensor> tensors,
                 const absl::Status& whole);

  // Messages.
  void Forward(Proxy* proxy, caf::mailbox_element& what);
  absl::Status TryForward(Proxy* proxy, caf::mailbox_element& what);
  /// Says why instead of an answer that cannot travel: whoever asked would wait for ever.
  void RefuseAnswer(Proxy* proxy, const caf::mailbox_element& answer, const absl::Status& why);
  void OnSend(uint64_t from, WireReader* reader, std::string_view body, std::vector<Tensor> tensors,
              const absl::Status& whole);
  /// For whoever holds the lock: the process is not told what is handled of its messages to
  /// `actor`; 0: to any.
  void ForgetWindows(uint64_t node, caf::actor_id actor);
  /// False: there is none.
  bool ForgetRequest(const RequestKey& key);
  void FailRequests(const std::function<bool(const Request&)>& concerned);
  /// Of an actor that has ended: no process answers it.
  void ForgetRequestsOf(caf::actor_id sender);

  // Processes.
  /// To a process that may have to be looked for first.
  void SendTo(uint64_t node, std::string body, std::vector<Tensor> tensors = {});
  /// Not behind what is to be done `Later`.
  void SendNow(uint64_t node, std::string body, std::vector<Tensor> tensors = {});
  void LookFor(uint64_t node);
  /// What has waited for a way to the process.
  void Flush(uint64_t node, PeerId id);
  absl::Status OnWhere(uint64_t node, std::string_view answer);
  /// The processes that are, or were, known as that peer, and that fit.
  template <typename Fits>
  std::vector<uint64_t> LivesAt(PeerId id, const Fits& fits);
  /// There is no way to a process, or no longer: its actors have ended.
  void Lose(uint64_t node);
  /// What waited for a connection to a task that leaves meanwhile goes with it, without a word.
  void LoseThoseThatLeft(const std::vector<std::pair<uint64_t, PeerId>>& unconnected);
  void Watch(uint64_t from, const caf::strong_actor_ptr& actor);
  void TellDown(uint64_t to, caf::actor_id actor, const caf::error& why);
  void SendWatches();
  void OnDown(uint64_t from, WireReader* reader, std::string_view body);

  // Links. An actor of this process is linked with a proxy, and the process of that one with a
  // proxy of the actor's: either end is told by `TellDown`, and ends the proxy there.
  /// `kind`: kLink, kUnlink. The caller may hold locks of actors.
  void TellLink(uint8_t kind, const Proxy& to, caf::strong_actor_ptr who);
  void OnLink(uint8_t kind, uint64_t from, WireReader* reader);
  /// Has `what` called, in order, by a thread of the actor system or by the next that sends a
  /// frame, which goes behind it. Dropped when this ends.
  void Later(std::function<void()> what);
  void RunLater();

  // Questions to the hosts of other processes.
  void Ask(PeerId to, uint8_t kind, std::string_view fields, Clock::time_point deadline, Done done);
  /// Asks them all: the first answer that is OK if `any`, else the first refusal, or OK if there is
  /// none. Unavailable or DeadlineExceeded if nobody answers.
  void AskAll(const std::vector<PeerId>& to, uint8_t kind, const std::string& fields,
              Clock::time_point deadline, bool any, Done done);
  void FailCalls(PeerId to, const absl::Status& why);
  absl::StatusOr<std::string> OnQuestion(uint8_t kind, uint64_t from, WireReader* reader);
  absl::StatusOr<std::string> OnPublish(uint64_t from, const std::string& name,
                                        caf::actor_id actor);
  /// Has the first of `tasks` that lives take a name, and then the others; `done`: OK, or its
  /// refusal.
  struct Publishing;
  void PublishAt(std::vector<PeerId> tasks, const std::shared_ptr<Publishing>& publishing);
  absl::StatusOr<caf::strong_actor_ptr> FindHere(ActorKind kind, const std::string& name);
  /// Tells a task of a name of this process, and again (every second) until it takes it.
  void Announce(PeerId id, const std::string& name, caf::actor_id actor);
  void AnnounceAgain();
  void Unpublish(const std::string& name);
  std::vector<PeerId> Tasks() const;
  /// An infinite timeout is a day.
  Clock::time_point DeadlineIn(absl::Duration timeout) const;

  const Options options_;
  std::mutex mutex_;
  bool over_ = false;
  std::map<uint64_t, Process> processes_;  ///< By incarnation.
  /// Frames for processes whose address is being asked for.
  std::map<uint64_t, std::vector<std::pair<std::string, std::vector<Tensor>>>> unknown_;
  std::map<uint64_t, Call> calls_;
  uint64_t next_call_ = 1;
  std::map<std::string, Publication> publications_;    ///< Of any process.
  std::set<std::pair<PeerId, std::string>> announce_;  ///< Names that tasks are to be told again.
  std::map<RequestKey, Request> requests_;
  std::vector<std::pair<uint64_t, caf::actor_id>> watches_;  ///< To be sent.
  std::deque<std::function<void()>> later_;
  bool running_later_ = false;
  /// Actors of this process that others watch, and who does.
  std::map<caf::actor_id, std::set<uint64_t>> watchers_;
  std::map<std::pair<ActorKind, std::string>, caf::strong_actor_ptr> roles_;
  /// By node and actor.
  std::map<std::pair<uint64_t, caf::actor_id>, std::shared_ptr<Window>> windows_;
  std::set<caf::actor_id> quick_;          ///< Published so.
  std::atomic<bool> owes_credits_{false};  ///< There was no memory to tell some.
  Count speaker_;                          ///< The count of whose frame is being read.
  /// Names in it that are no proxies.
  std::vector<std::pair<caf::node_id, caf::actor_id>> refused_;
  Clock::time_point next_ping_{};

  std::mutex starting_;
  caf::actor_system_config* config_ = nullptr;  ///< The application's.
  std::unique_ptr<caf::actor_system_config> own_config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<caf::proxy_registry> proxies_;
  caf::actor runner_;  ///< Of what is to be done later.
  std::atomic<bool> started_{false};
};

/// Sends a message to an actor whose handlers never wait: this thread runs them, if nobody else
/// does.
void EnqueueQuick(caf::actor_control_block* actor, caf::mailbox_element_ptr message);
/// If `actor` is what is published in this process as `name`.
bool IsPublishedAs(const std::string& name, const caf::strong_actor_ptr& actor);
/// As `PublishActor`, of another process, which errors name.
absl::StatusOr<PublishedActor> PublishActorOf(const std::string& process, const std::string& name,
                                              const caf::actor& actor);

/// Makes an actor of a resource or device of a task, or of the task. NotFound.
absl::StatusOr<caf::strong_actor_ptr> MakeRoleActor(caf::actor_system& system,
                                                    const std::shared_ptr<Runtime>& runtime,
                                                    const TaskStatus& task, ActorKind kind,
                                                    const std::string& name);
/// Ends such an actor if what it is of is gone.
void EndIfOver(const caf::strong_actor_ptr& role);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_ACTOR_HOST_H_
