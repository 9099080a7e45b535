/// Synchronous training by several workers.
#ifndef TROUPE_API_TRAINING_SYNC_REPLICAS_OPTIMIZER_H_
#define TROUPE_API_TRAINING_SYNC_REPLICAS_OPTIMIZER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/training/optimizer.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Who is waited for. A value.
struct SyncReplicasOptions {
  /// Gradients that make an update, at least 1. More than there are replicas: some give several.
  int replicas_to_aggregate = 1;
  /// Replicas that compute gradients; 0: as many as are aggregated. What is more than that are
  /// backup workers: an update takes the gradients that come first, and those of the slow or dead
  /// are not missed.
  int total_num_replicas = 0;
  /// The number of this replica, from 0; -1: the task of the device that the scope gives to ops, 0
  /// if it gives none.
  int replica = -1;
};

/// Lets replicas (workers that each build this graph, with the same variables) wait for each other:
/// their gradients are collected, and the wrapped optimizer applies the mean of the first
/// `replicas_to_aggregate` of a step as one update. With equal batches and a loss that is a mean,
/// that is the update of a batch as large as all of them together.
///
///     SyncReplicasOptimizer optimizer(std::make_unique<AdamOptimizer>(0.001f),
///                                     {.replicas_to_aggregate = 3, .total_num_replicas = 4});
///     Node* train = optimizer.Minimize(s, loss, GlobalStep(s));
///     // Every worker: init, then local_init, then `train` per step. The chief also:
///     auto chief = BackgroundSteps::Start(s.graph(), {.local_init = optimizer.chief_init(), ...},
///                                         optimizer.sync());
///
/// How it works. Beside every variable there is an accumulator, and beside the global step a queue
/// of tokens for each replica. A run of `train` reads the variables, computes gradients, gives them
/// to the accumulators, and then takes a token: the number of the step that comes next, by which
/// its next gradients are labelled. Accumulators drop gradients that are labelled with an earlier
/// step than their own. A run of `sync` takes the means as soon as there are enough gradients,
/// updates the variables, adds one to the global step, and gives every replica a token of that
/// number. A replica throws away tokens of steps that are over, so that one that was slow or dead
/// does not work for a step that is over. (TensorFlow has one queue for all: there a fast replica
/// may take the token of a slow one, and give two gradients of one step.)
///
/// A run of `train` blocks until the others have contributed: give it a deadline
/// (`RunOptions::timeout`), after which it ends with DeadlineExceeded. The row of a sparse gradient
/// is the mean of those gradients that have it. Clip gradients before (`ApplyGradients`): what the
/// wrapped optimizer sees are means.
class SyncReplicasOptimizer : public Optimizer {
 public:
  SyncReplicasOptimizer(std::unique_ptr<Optimizer> optimizer, SyncReplicasOptions options,
                        std::string name = "sync_replicas");

  /// A node that contributes gradients and waits for the next step. Needs the global step, and the
  /// shapes of variables. InvalidArgument: neither, or options that cannot be.
  Node* ApplyGradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                       const ModelVariable& global_step = {}) override;

  // After ApplyGradients, else nullptr:

  /// What every worker runs once the variables are there, and again after it was restarted.
  Node* local_init() const { return local_init_; }
  /// What the chief runs before it begins with `sync`, and again when a run of `sync` failed: a
  /// chief that takes over in the midst of training gives out new tokens.
  Node* chief_init() const { return chief_init_; }
  /// One update: what the chief runs over and over, beside its steps.
  Node* sync() const { return sync_; }

  /// Of the wrapped optimizer.
  ModelVariable GetSlot(const ModelVariable& variable, const std::string& slot) const override;
  std::vector<std::string> SlotNames() const override;

 protected:
  /// Not called: updates are the wrapped optimizer's.
  Node* Apply(const Update&) override { return nullptr; }

 private:
  /// The collected gradients of one variable.
  struct Collected {
    Node* apply = nullptr;  ///< Contributes this replica's gradient.
    Gradient mean;          ///< Of enough gradients, once they are there.
    Node* set_global_step = nullptr;
  };
  Collected Collect(const Scope& scope, const Gradient& gradient, const ModelVariable& variable);
  Collected CollectRows(const Scope& scope, const Gradient& gradient,
                        const ModelVariable& variable);
  Node* LocalInit(const Scope& scope, const Scope& beside, int each) const;
  Output NextToken(const Scope& scope, const std::vector<Node*>& contributed) const;
  Node* PutTokens(const Scope& scope, const Output& count) const;
  absl::Status CheckOptions(const ModelVariable& global_step) const;
  int ReplicaOf(const Scope& scope) const;

  std::unique_ptr<Optimizer> optimizer_;
  SyncReplicasOptions options_;
  ModelVariable global_step_, local_step_;
  std::vector<Output> tokens_;  ///< A queue for each replica.
  int replica_ = 0;
  Node* local_init_ = nullptr;
  Node* chief_init_ = nullptr;
  Node* sync_ = nullptr;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SYNC_REPLICAS_OPTIMIZER_H_
