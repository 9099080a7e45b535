/// Large batches in small pieces.
#ifndef TROUPE_API_TRAINING_ACCUMULATION_H_
#define TROUPE_API_TRAINING_ACCUMULATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/training/optimizer.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Adds up the gradients of `steps` runs of the training op (micro-batches) and gives their mean
/// (or, with `mean` false, their sum) to another optimizer in every `steps`-th run; the others
/// change no variable, and do not count in `global_step`. For a loss that is a mean over the batch,
/// n micro-batches give the gradient of a batch n times as large, in the memory of one.
///
///     GradientAccumulation optimizer(std::make_unique<AdamOptimizer>(0.001f), 8);
///     Node* train = optimizer.Minimize(s, loss, step);
///
/// The sums are the variables "<var>/GradientAccumulation", as large as the variables themselves,
/// for sparse gradients too; the runs are counted in "GradientAccumulation/runs".
class GradientAccumulation : public Optimizer {
 public:
  /// `steps`: at least 1, else InvalidArgument when gradients are applied.
  GradientAccumulation(std::unique_ptr<Optimizer> optimizer, int64_t steps, bool mean = true,
                       std::string name = "GradientAccumulation")
      : Optimizer(std::move(name)), optimizer_(std::move(optimizer)), steps_(steps), mean_(mean) {}

  Node* ApplyGradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                       const ModelVariable& global_step = {}) override;
  /// "sum", and what the other optimizer has.
  ModelVariable GetSlot(const ModelVariable& variable, const std::string& slot) const override;
  std::vector<std::string> SlotNames() const override;

 protected:
  std::vector<Slot> Slots() const override { return {{"sum"}}; }
  void Prepare(const Scope& scope) override;
  Node* Apply(const Update& update) override;
  std::vector<Node*> Finish(const Scope& scope, const std::vector<Node*>& updates) override;
  bool TakesRepeatedRows() const override { return true; }

 private:
  Node* ApplySums(const Scope& scope);

  std::unique_ptr<Optimizer> optimizer_;
  int64_t steps_;
  bool mean_;
  ModelVariable runs_;
  // Of the call of ApplyGradients that is in progress.
  std::vector<ModelVariable> variables_;
  ModelVariable global_step_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_ACCUMULATION_H_
