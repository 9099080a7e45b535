/// Scaffolds: what a training needs besides its steps.
#ifndef TROUPE_API_TRAINING_SCAFFOLD_H_
#define TROUPE_API_TRAINING_SCAFFOLD_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/saver.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Scaffold;

/// What is given here is used; what is not is taken from the graph's collection of that name, or
/// else made. A value.
struct ScaffoldOptions {
  /// Gives variables their values; by default all global ones get their initial values.
  Node* init_op = nullptr;
  FeedMap init_feeds;
  /// Called after `init_op`, once, by the chief, if nothing was restored.
  std::function<absl::Status(const Scaffold& scaffold, Session& session)> init_fn;
  /// A vector of names: what is not ready yet. By default variables, global and local, without
  /// values.
  Output ready_op;
  /// The same for what `local_init_op` needs; by default global variables.
  Output ready_for_local_init_op;
  /// Run in each session; by default local variables get their initial values, and tables their
  /// contents.
  Node* local_init_op = nullptr;
  FeedMap local_init_feeds;
  /// A message `Summary`, serialized; by default all summaries merged.
  Output summary_op;
  /// By default that of the graph, or a sharded one of all variables (`Saver::OfGraph`).
  std::shared_ptr<Saver> saver;
  /// Whether a saver that is made here saves asynchronously, too.
  bool asynchronous_saver = false;
  /// Another scaffold, of another graph perhaps, whose `init_fn` and feeds are used where none are
  /// given here.
  std::shared_ptr<const Scaffold> copy_from;
};

namespace collections {
inline constexpr char kInitOp[] = "init_op";
inline constexpr char kReadyOp[] = "ready_op";
inline constexpr char kReadyForLocalInitOp[] = "ready_for_local_init_op";
inline constexpr char kLocalInitOp[] = "local_init_op";
inline constexpr char kSummaryOp[] = "summary_op";
}  // namespace collections

/// Nodes, functions and the saver of a training. `Finalize` completes it while nodes can still be
/// added; a `MonitoredSession` that is given the scaffold does that when its hooks have begun.
/// Thread-compatible.
class Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}

  /// Makes what is missing; nodes are added to the root of the scope's graph. FailedPrecondition if
  /// a collection has more than one entry, NotFound if it names what is not there. Further calls do
  /// nothing.
  absl::Status Finalize(const Scope& scope);
  bool finalized() const { return finalized_; }

  /// Complete once it is finalized.
  const ScaffoldOptions& options() const { return options_; }
  Node* init_op() const { return options_.init_op; }
  Output ready_op() const { return options_.ready_op; }
  Output ready_for_local_init_op() const { return options_.ready_for_local_init_op; }
  Node* local_init_op() const { return options_.local_init_op; }
  Output summary_op() const { return options_.summary_op; }  ///< Invalid: there are no summaries.
  const std::shared_ptr<Saver>& saver() const { return options_.saver; }

 private:
  ScaffoldOptions options_;
  bool finalized_ = false;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SCAFFOLD_H_
