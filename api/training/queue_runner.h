/// Queue runners: queues that fill themselves.
#ifndef TROUPE_API_TRAINING_QUEUE_RUNNER_H_
#define TROUPE_API_TRAINING_QUEUE_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/coordinator.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class QueueRunnerDef;

namespace collections {
inline constexpr char kQueueRunners[] = "queue_runners";
}

/// A queue and the nodes that fill it, each run over and over as an asynchronous step: a runner
/// holds no thread, however many nodes it has. A node that is there n times runs n times at once.
///
/// When all of them have ended with one of `closed`, as the queue or what feeds it was closed, the
/// queue is closed: who dequeues gets what is left, and then OutOfRange. Another error stops the
/// coordinator. When the coordinator stops, the queue is closed and enqueues that wait are
/// cancelled. A value; refers to nodes of a graph.
class QueueRunner {
 public:
  QueueRunner() = default;
  /// Adds the runner to the collection "queue_runners". `close` is run when the input has ended,
  /// `cancel` when the coordinator stops; nullptr: nodes that close `queue`, added to the scope.
  QueueRunner(const Scope& scope, const Output& queue, std::vector<Node*> enqueues,
              std::vector<absl::StatusCode> closed = {absl::StatusCode::kOutOfRange,
                                                      absl::StatusCode::kCancelled},
              Node* close = nullptr, Node* cancel = nullptr);

  /// As TensorFlow writes it down. NotFound: the graph lacks a node that it names.
  static absl::StatusOr<QueueRunner> FromProto(const Graph& graph, const QueueRunnerDef& def);
  QueueRunnerDef ToProto() const;
  /// Those of the graph's collection, in the order in which they were added.
  static absl::StatusOr<std::vector<QueueRunner>> OfGraph(const Graph& graph);

  /// Begins in `session`, whose end is the end of the runner, with a member of `coordinator` for
  /// each enqueue. May be started in several sessions.
  absl::Status Start(Session& session, Coordinator& coordinator) const;

  const std::string& name() const { return name_; }  ///< The queue's.
  /// The queue's node.
  std::string queue_node() const { return name_.substr(0, name_.find(':')); }
  absl::Span<Node* const> enqueues() const { return enqueues_; }

 private:
  std::string name_;
  std::vector<Node*> enqueues_;
  Node* close_ = nullptr;
  Node* cancel_ = nullptr;  ///< Closes the queue, and ends enqueues that wait.
  std::vector<absl::StatusCode> closed_;
};

/// Starts all queue runners of the session's graph.
absl::Status StartQueueRunners(Session& session, Coordinator& coordinator);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_QUEUE_RUNNER_H_
