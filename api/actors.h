/// Actors of an application that graphs ask and tell: the ops AskActor and TellActor; and the
/// actors of a cluster, which any process can hold. The only header of Troupe's that shows CAF;
/// link target `troupe::actors`.
///
///     troupe::PublishedActor published = *troupe::PublishActor("cache", system.spawn(Cache));
///     Output y = ops::AskActor(s, {key}, "cache", {ElementType::kFloat})[0];
#ifndef TROUPE_API_ACTORS_H_
#define TROUPE_API_ACTORS_H_

#include <caf/all.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/publication.h"
#include "devices/export.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Server;
class Session;

/// What a task says of itself.
struct TaskStatus {
  std::string name;  ///< "/job:worker/replica:0/task:0".
  uint64_t incarnation = 0;
  std::vector<std::string> devices;  ///< Their complete names.
};

/// What a device says of itself.
struct DeviceStatus {
  std::string name, type;
  std::vector<std::string> resources;  ///< "container/name: description" of each.
  int64_t bytes_in_use = 0, peak_bytes_in_use = 0, bytes_limit = 0;  ///< Of its memory.
};

/// Tensors travel between processes only over the links of a `ClusterNode`.
caf::error inspect(caf::serializer& sink, const Tensor& tensor);
caf::error inspect(caf::deserializer& source, Tensor& tensor);
inline std::string to_string(const Tensor& tensor) { return tensor.ToString(); }
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TaskStatus& x) {
  return f(caf::meta::type_name("TaskStatus"), x.name, x.incarnation, x.devices);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, DeviceStatus& x) {
  return f(caf::meta::type_name("DeviceStatus"), x.name, x.type, x.resources, x.bytes_in_use,
           x.peak_bytes_in_use, x.bytes_limit);
}

}  // namespace troupe
TROUPE_EXPORT_END

CAF_BEGIN_TYPE_ID_BLOCK(troupe, first_custom_type_id + 64)
CAF_ADD_TYPE_ID(troupe, (troupe::Tensor))
CAF_ADD_TYPE_ID(troupe, (std::vector<troupe::Tensor>))
CAF_ADD_TYPE_ID(troupe, (std::vector<std::pair<std::string, troupe::Tensor>>))
CAF_ADD_TYPE_ID(troupe, (troupe::TaskStatus))
CAF_ADD_TYPE_ID(troupe, (troupe::DeviceStatus))
CAF_ADD_ATOM(troupe, troupe, ask_atom, "trp_ask")
CAF_ADD_ATOM(troupe, troupe, tell_atom, "trp_tell")
CAF_ADD_ATOM(troupe, troupe, run_atom, "trp_run")
CAF_ADD_ATOM(troupe, troupe, size_atom, "trp_size")
CAF_ADD_ATOM(troupe, troupe, status_atom, "trp_status")
CAF_ADD_ATOM(troupe, troupe, lock_atom, "trp_lock")
CAF_ADD_ATOM(troupe, troupe, unlock_atom, "trp_unlock")
CAF_END_TYPE_ID_BLOCK(troupe)

TROUPE_EXPORT_BEGIN
namespace troupe {

// ---- What can be asked of whom: the interfaces of all roles ----

/// An actor that graphs can ask and tell.
using GraphActor =
    caf::typed_actor<caf::replies_to<ask_atom, std::vector<Tensor>>::with<std::vector<Tensor>>,
                     caf::reacts_to<tell_atom, std::vector<Tensor>>>;
/// A task of the cluster.
using TaskActor = caf::typed_actor<caf::replies_to<status_atom>::with<TaskStatus>>;
/// A device of a task.
using DeviceActor = caf::typed_actor<caf::replies_to<status_atom>::with<DeviceStatus>>;
/// A variable: its value, and another value for it. FailedPrecondition if it has none yet,
/// InvalidArgument for tensors of another type or shape. It ends when its container drops it.
using VariableActor = caf::typed_actor<caf::replies_to<caf::get_atom>::with<Tensor>,
                                       caf::replies_to<caf::put_atom, Tensor>::with<void>>;
/// A queue: puts a tuple in, takes one, or so many, stacked, out; its size; closes it (true: those
/// who wait to put something in are Cancelled). Who waits and ends, waits no longer.
using QueueActor =
    caf::typed_actor<caf::replies_to<caf::put_atom, std::vector<Tensor>>::with<void>,
                     caf::replies_to<caf::get_atom>::with<std::vector<Tensor>>,
                     caf::replies_to<caf::get_atom, int64_t>::with<std::vector<Tensor>>,
                     caf::replies_to<size_atom>::with<int64_t>,
                     caf::replies_to<caf::close_atom, bool>::with<void>>;
/// A conditional accumulator: applies a gradient (of a tensor, or indices, values and a shape,
/// which may be empty) computed at a step, takes the mean or sum of so many, their number now; sets
/// the step. Who waits and ends, waits no longer.
using AccumulatorActor =
    caf::typed_actor<caf::replies_to<caf::put_atom, int64_t, std::vector<Tensor>>::with<void>,
                     caf::replies_to<caf::get_atom, int64_t>::with<std::vector<Tensor>>,
                     caf::replies_to<size_atom>::with<int64_t>,
                     caf::replies_to<caf::update_atom, int64_t>::with<void>>;
/// A lookup table: the values of keys, with a default for those that are not there; inserts keys
/// with values; removes keys; all keys and values; how many there are. Shapes are those of the ops.
using TableActor = caf::typed_actor<caf::replies_to<caf::get_atom, Tensor, Tensor>::with<Tensor>,
                                    caf::replies_to<caf::put_atom, Tensor, Tensor>::with<void>,
                                    caf::replies_to<caf::delete_atom, Tensor>::with<void>,
                                    caf::replies_to<caf::get_atom>::with<std::vector<Tensor>>,
                                    caf::replies_to<size_atom>::with<int64_t>>;
/// A mutex: locks it for whoever asks, when it is free; gives it back. It is also given back when
/// its holder ends or its holder's process is lost. Who waits and ends, waits no longer.
using MutexActor = caf::typed_actor<caf::replies_to<lock_atom>::with<void>,
                                    caf::replies_to<unlock_atom>::with<void>>;
/// A barrier: gives keys a value for a component; takes so many tuples: indices, keys, components;
/// how many are complete; closes it (true: what is incomplete is dropped). Who waits and ends,
/// waits no longer.
using BarrierActor =
    caf::typed_actor<caf::replies_to<caf::put_atom, int64_t, Tensor, Tensor>::with<void>,
                     caf::replies_to<caf::get_atom, int64_t>::with<std::vector<Tensor>>,
                     caf::replies_to<size_atom>::with<int64_t>,
                     caf::replies_to<caf::close_atom, bool>::with<void>>;
/// A session: feeds by name, fetches, targets. It lives where its client is, and ends with it.
using SessionActor = caf::typed_actor<
    caf::replies_to<run_atom, std::vector<std::pair<std::string, Tensor>>, std::vector<std::string>,
                    std::vector<std::string>>::with<std::vector<Tensor>>>;

struct PublishOptions {
  /// The actor's handlers never wait: the thread that asks may run them, without waking another (1
  /// us instead of 20 to 50).
  bool quick = false;
};

/// Requests that are under way when it ends go on.
using PublishedActor = Publication;

/// Makes `actor` known to the graphs of this process. It receives `(ask_atom, std::vector<Tensor>)`
/// and answers `std::vector<Tensor>` or a `caf::error`, and `(tell_atom, std::vector<Tensor>)`.
/// Tensors are shared, not copied, and must not be changed. The result keeps the actor alive, and
/// so must go before its system does. AlreadyExists, InvalidArgument. Thread-safe.
absl::StatusOr<PublishedActor> PublishActor(const std::string& name, const caf::actor& actor,
                                            const PublishOptions& options = {});

/// Publishes a function that answers tensors with tensors. It is called by the threads that run
/// kernels, from several at once, and must not wait. What it throws is the node's error.
absl::StatusOr<PublishedActor> FunctionActor(
    const std::string& name,
    std::function<absl::StatusOr<std::vector<Tensor>>(std::vector<Tensor>)> function);

/// An actor's answer that makes `status`, which is not OK, the node's: code and message.
caf::error ToCafError(const absl::Status& status);
/// The reverse; errors of CAF's are Unavailable if an actor has ended, Unimplemented if it does not
/// handle a message, Unknown otherwise.
absl::Status ToStatus(const caf::error& error);

/// The kinds of actors that `ClusterNode::Find` finds.
enum class ActorKind : uint8_t {
  kPublished,
  kTask,
  kDevice,
  kVariable,
  kQueue,
  kAccumulator,
  kTable,
  kMutex,
  kBarrier
};

struct NodeOptions {
  /// "troupe://host:port" of any task of the cluster.
  std::string target;
  /// "host:port" at which other nodes reach this one; port 0: any free one. Addresses other than
  /// loopback need TLS or `insecure`.
  std::string address = "127.0.0.1:0";
  absl::Duration heartbeat_timeout = absl::Seconds(5);
  bool insecure = false;
  /// PEM files, all or none; the certificate says that its holder is a client.
  std::string tls_certificate, tls_key, tls_authority;
  /// As `SessionOptions::secret_file`. Other nodes need the same.
  std::string secret_file;
  /// With the message types of the application; outlives the node. The node adds its own. nullptr:
  /// none.
  caf::actor_system_config* config = nullptr;
};

class ActorHost;

/// A process's place among the actors of a cluster. Handles to actors of other processes are CAF's
/// own: they can be sent messages, asked, monitored, linked to, and travel in messages themselves.
/// If the process of an actor is lost (its connection breaks, or nothing is heard of it for the
/// heartbeat timeout), requests to it fail and monitors and links fire at once. Messages from one
/// actor to another come in the order in which they were sent. Of an actor that does not keep up,
/// 10,000 messages or 256 MiB are under way at most: requests beyond that fail with
/// ResourceExhausted, and whoever sends more gets that error as a message. Thread-safe.
///
///     auto node = *troupe::ClusterNode::Join({.target = "troupe://127.0.0.1:7000"});
///     auto weights = *node->Find<troupe::VariableActor>("/job:ps/task:0", "weights");
///     caf::scoped_actor self(node->system());
///     self->request(weights, caf::infinite, caf::get_atom_v).receive(...);
class ClusterNode {
 public:
  /// Joins a cluster without being a task. InvalidArgument; Unavailable if no task answers;
  /// PermissionDenied if it refuses this node.
  static absl::StatusOr<std::unique_ptr<ClusterNode>> Join(const NodeOptions& options);
  /// The node that a task of this process is. The server must outlive it. Of the options only
  /// `config` counts; FailedPrecondition if the task's actor system was made before with another.
  static absl::StatusOr<std::unique_ptr<ClusterNode>> Of(const Server& server,
                                                         const NodeOptions& options = {});
  /// Leaves: handles of other processes' actors end, and with `Join` so does the actor system,
  /// which does not wait for actors that still run. No handle may be used afterwards.
  ~ClusterNode();

  /// The actors that this node's handles come from live here, and so must those that it publishes.
  caf::actor_system& system() const;
  /// "host:port" of this node.
  std::string address() const;

  /// A handle. `name`: of a published actor; empty for the task; "CPU:0" or a complete name for a
  /// device; "name" or "container/name" for a variable, queue, accumulator, table, mutex or
  /// barrier, on any of the task's devices. `task` is as in "/job:ps/task:0"; empty: whichever task
  /// knows, for published actors. NotFound, Unavailable, DeadlineExceeded after `timeout`,
  /// InvalidArgument.
  template <typename Handle>
  absl::StatusOr<Handle> Find(const std::string& task, const std::string& name,
                              absl::Duration timeout = absl::Seconds(10)) {
    absl::StatusOr<caf::strong_actor_ptr> found = FindAny(task, KindOf<Handle>(), name, timeout);
    if (!found.ok()) return found.status();
    return caf::actor_cast<Handle>(*std::move(found));
  }
  absl::StatusOr<caf::strong_actor_ptr> FindAny(const std::string& task, ActorKind kind,
                                                const std::string& name, absl::Duration timeout);

  /// Makes an actor that another process has published known to the graphs and datasets of this
  /// one, until the result goes. A task knows those of its cluster anyway. NotFound; AlreadyExists:
  /// this process has one of that name; DeadlineExceeded: its process is not reached in time.
  absl::StatusOr<PublishedActor> Import(const std::string& name,
                                        absl::Duration timeout = absl::Seconds(10));
  /// Makes an actor of `system()` known to the graphs and nodes of the whole cluster, those that
  /// come later included, until the result goes. AlreadyExists; Unavailable if no task can be
  /// reached; InvalidArgument.
  absl::StatusOr<PublishedActor> Publish(const std::string& name, const caf::actor& actor,
                                         const PublishOptions& options = {},
                                         absl::Duration timeout = absl::Seconds(10));

 private:
  struct Impl;
  explicit ClusterNode(std::unique_ptr<Impl> impl);
  template <typename Handle>
  static constexpr ActorKind KindOf() {
    if (std::is_same_v<Handle, TaskActor>) return ActorKind::kTask;
    if (std::is_same_v<Handle, DeviceActor>) return ActorKind::kDevice;
    if (std::is_same_v<Handle, VariableActor>) return ActorKind::kVariable;
    if (std::is_same_v<Handle, QueueActor>) return ActorKind::kQueue;
    if (std::is_same_v<Handle, AccumulatorActor>) return ActorKind::kAccumulator;
    if (std::is_same_v<Handle, TableActor>) return ActorKind::kTable;
    if (std::is_same_v<Handle, MutexActor>) return ActorKind::kMutex;
    if (std::is_same_v<Handle, BarrierActor>) return ActorKind::kBarrier;
    return ActorKind::kPublished;
  }

  std::unique_ptr<Impl> impl_;
};

/// An actor, of `system`, that runs steps of a session, any number at once. It keeps the session.
SessionActor MakeSessionActor(caf::actor_system& system, std::shared_ptr<Session> session);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_ACTORS_H_
