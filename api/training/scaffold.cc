#include "api/training/scaffold.h"

#include <utility>
#include <vector>

#include "api/lookup.h"
#include "api/ops.h"
#include "api/summary.h"
#include "api/training/variables.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

/// The only entry of a collection; "" if there is none.
absl::StatusOr<std::string> OnlyEntry(const Graph& graph, const char* collection) {
  const std::vector<std::string> entries = graph.Collection(collection);
  if (entries.size() > 1) {
    return absl::FailedPreconditionError(StrCat("collection '", collection, "' has ",
                                                entries.size(),
                                                " entries, and a scaffold takes one: give it"));
  }
  return entries.empty() ? std::string() : entries.front();
}

/// Sets what was not given: to the tensor that a collection names, or to what `make` makes, which
/// the collection is then given.
template <typename Make>
absl::Status Complete(const Scope& scope, const char* collection, Output* given, Make make) {
  if (given->valid()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string name, OnlyEntry(*scope.graph(), collection));
  if (!name.empty()) {
    absl::StatusOr<Output> found = scope.graph()->FindOutput(name);
    if (!found.ok()) {
      return WithContext(StrCat("collection '", collection, "': "), found.status());
    }
    *given = *found;
    return absl::OkStatus();
  }
  *given = make();
  TROUPE_RETURN_IF_ERROR(scope.status());
  if (given->valid()) scope.graph()->AddToCollection(collection, given->name());
  return absl::OkStatus();
}

template <typename Make>
absl::Status Complete(const Scope& scope, const char* collection, Node** given, Make make) {
  if (*given != nullptr) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string name, OnlyEntry(*scope.graph(), collection));
  if (!name.empty()) {
    *given = scope.graph()->FindNode(name);
    if (*given != nullptr) return absl::OkStatus();
    return absl::NotFoundError(
        StrCat("collection '", collection, "' names '", name, "', which the graph lacks"));
  }
  *given = make();
  TROUPE_RETURN_IF_ERROR(scope.status());
  scope.graph()->AddToCollection(collection, (*given)->name());
  return absl::OkStatus();
}

/// Local variables' initial values, and what fills tables.
Node* LocalInit(const Scope& scope) {
  std::vector<Node*> nodes = {LocalVariablesInitializer(scope)};
  for (const std::string& name : scope.graph()->Collection(collections::kTableInitializers)) {
    if (Node* node = scope.graph()->FindNode(name)) nodes.push_back(node);
  }
  return ops::NoOp(scope.WithOpName("local_init").WithControlDependencies(nodes));
}

}  // namespace

absl::Status Scaffold::Finalize(const Scope& outer) {
  if (finalized_) return absl::OkStatus();
  const Scope scope = Scope(outer.graph());
  ScaffoldOptions& all = options_;
  if (all.copy_from != nullptr) {
    const ScaffoldOptions& other = all.copy_from->options();
    if (all.init_fn == nullptr) all.init_fn = other.init_fn;
    if (all.init_feeds.empty()) all.init_feeds = other.init_feeds;
    if (all.local_init_feeds.empty()) all.local_init_feeds = other.local_init_feeds;
  }
  TROUPE_RETURN_IF_ERROR(Complete(scope, collections::kInitOp, &all.init_op,
                                  [&] { return GlobalVariablesInitializer(scope); }));
  TROUPE_RETURN_IF_ERROR(Complete(scope, collections::kReadyOp, &all.ready_op, [&] {
    return ReportUninitializedVariables(scope,
                                        {collections::kVariables, collections::kLocalVariables});
  }));
  TROUPE_RETURN_IF_ERROR(
      Complete(scope, collections::kReadyForLocalInitOp, &all.ready_for_local_init_op,
               [&] { return ReportUninitializedVariables(scope, {collections::kVariables}); }));
  TROUPE_RETURN_IF_ERROR(Complete(scope, collections::kLocalInitOp, &all.local_init_op,
                                  [&] { return LocalInit(scope); }));
  TROUPE_RETURN_IF_ERROR(Complete(scope, collections::kSummaryOp, &all.summary_op,
                                  [&] { return summary::MergeAll(scope); }));
  if (all.saver == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        all.saver,
        Saver::OfGraph(
            scope, {.sharded = true, .allow_empty = true, .asynchronous = all.asynchronous_saver}));
  }
  TROUPE_RETURN_IF_ERROR(scope.status());
  finalized_ = true;
  return absl::OkStatus();
}

}  // namespace troupe
