#include "api/defaults.h"

#include <utility>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {
namespace {

struct Defaults {
  std::shared_ptr<Graph> own;
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<Session*> sessions;
};

Defaults& OfThisThread() {
  thread_local Defaults defaults;
  return defaults;
}

absl::StatusOr<Session*> SessionFor(const Node* node) {
  Session* session = DefaultSession();
  if (session == nullptr) {
    return absl::FailedPreconditionError(
        "this thread has no default session; make one with InteractiveSession or "
        "AsDefaultSession, or call Session::Run");
  }
  if (node == nullptr || node->graph() != session->graph().get()) {
    return InvalidArgument(node == nullptr ? std::string("the tensor") : node->name(),
                           " is not of the graph of the default session");
  }
  return session;
}

}  // namespace

std::shared_ptr<Graph> DefaultGraph() {
  Defaults& defaults = OfThisThread();
  if (!defaults.graphs.empty()) return defaults.graphs.back();
  if (defaults.own == nullptr) defaults.own = std::make_shared<Graph>();
  return defaults.own;
}

Scope DefaultScope() { return Scope(DefaultGraph()); }

Session* DefaultSession() {
  const Defaults& defaults = OfThisThread();
  return defaults.sessions.empty() ? nullptr : defaults.sessions.back();
}

AsDefaultGraph::AsDefaultGraph(std::shared_ptr<Graph> graph) {
  OfThisThread().graphs.push_back(std::move(graph));
}

AsDefaultGraph::~AsDefaultGraph() { OfThisThread().graphs.pop_back(); }

AsDefaultSession::AsDefaultSession(Session* session) : graph_(session->graph()) {
  OfThisThread().sessions.push_back(session);
}

AsDefaultSession::~AsDefaultSession() { OfThisThread().sessions.pop_back(); }

absl::StatusOr<Tensor> Eval(Output tensor, const FeedMap& feeds) {
  TROUPE_ASSIGN_OR_RETURN(Session * session, SessionFor(tensor.node));
  TROUPE_ASSIGN_OR_RETURN(std::vector<Tensor> values, session->Run(feeds, {tensor}));
  return std::move(values[0]);
}

absl::Status RunNode(Node* node, const FeedMap& feeds) {
  TROUPE_ASSIGN_OR_RETURN(Session * session, SessionFor(node));
  return session->RunTargets({node}, feeds);
}

InteractiveSession::InteractiveSession(const SessionOptions& options) {
  auto session = Session::Create(DefaultGraph(), options);
  status_ = session.status();
  if (!status_.ok()) return;
  session_ = *std::move(session);
  as_default_ = std::make_unique<AsDefaultSession>(session_.get());
}

InteractiveSession::~InteractiveSession() = default;

}  // namespace troupe
