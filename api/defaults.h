/// The graph and session that a thread works with unless told otherwise.
///
///     troupe::InteractiveSession session;
///     troupe::Scope s = troupe::DefaultScope();
///     troupe::Output y = troupe::ops::Mul(s, 6.0f, 7.0f);
///     std::cout << troupe::Eval(y)->scalar<float>().value();
#ifndef TROUPE_API_DEFAULTS_H_
#define TROUPE_API_DEFAULTS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/scope.h"
#include "api/session.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The innermost graph that this thread has made its default, else the thread's own first graph,
/// which lives as long as the thread and whoever shares it.
std::shared_ptr<Graph> DefaultGraph();
/// A root scope of `DefaultGraph()`.
Scope DefaultScope();
/// The innermost session that this thread has made its default; nullptr if there is none.
Session* DefaultSession();

/// While it lives, a graph is the default of the thread that made it. Ends on the same thread;
/// inner ones end first.
class AsDefaultGraph {
 public:
  explicit AsDefaultGraph(std::shared_ptr<Graph> graph);
  ~AsDefaultGraph();
  AsDefaultGraph(const AsDefaultGraph&) = delete;
  AsDefaultGraph& operator=(const AsDefaultGraph&) = delete;
};

/// While it lives, a session (which must live longer) is the default of the thread that made it,
/// and its graph the default graph.
class AsDefaultSession {
 public:
  explicit AsDefaultSession(Session* session);
  ~AsDefaultSession();
  AsDefaultSession(const AsDefaultSession&) = delete;
  AsDefaultSession& operator=(const AsDefaultSession&) = delete;

 private:
  AsDefaultGraph graph_;
};

/// The value of a tensor in a step of the default session (`Tensor.eval`). FailedPrecondition if
/// the thread has no default session; InvalidArgument if that is of another graph; else as
/// `Session::Run`.
absl::StatusOr<Tensor> Eval(Output tensor, const FeedMap& feeds = {});
/// Runs a node in a step of the default session (`Operation.run`). Errors as `Eval`.
absl::Status RunNode(Node* node, const FeedMap& feeds = {});

/// A session on the default graph that is the thread's default as long as it lives: for trying
/// things out.
class InteractiveSession {
 public:
  explicit InteractiveSession(const SessionOptions& options = {});
  ~InteractiveSession();
  InteractiveSession(const InteractiveSession&) = delete;
  InteractiveSession& operator=(const InteractiveSession&) = delete;
  /// What creating the session gave; if not ok there is no default session.
  const absl::Status& status() const { return status_; }
  Session* session() const { return session_.get(); }

 private:
  absl::Status status_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<AsDefaultSession> as_default_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_DEFAULTS_H_
