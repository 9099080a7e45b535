/// Conditional accumulators: gradients of a step are added up until there are enough.
#ifndef TROUPE_KERNELS_QUEUES_ACCUMULATOR_H_
#define TROUPE_KERNELS_QUEUES_ACCUMULATOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

/// What an accumulator is like; fixed for its life.
struct AccumulatorOptions {
  ElementType type = ElementType::kInvalid;
  PartialShape shape;
  bool mean = true;  ///< Gives the mean of the gradients, else their sum.
  bool operator==(const AccumulatorOptions&) const = default;
};

/// Adds up gradients that are not older than its global step, and gives the result to those who
/// wait for it, one after the other, each when there are as many gradients as it requires; then
/// begins anew with the next step. Thread-safe.
class Accumulator : public WaitingResource {
 public:
  static constexpr char kKind[] = "conditional accumulator";

  const AccumulatorOptions& options() const { return options_; }
  bool sparse() const { return sparse_; }

  /// A gradient computed at step `local_step`: inputs [2, ...) of the kernel, of which the shape of
  /// a sparse one counts if `has_shape`. Dropped without a word if it is stale. InvalidArgument if
  /// it does not fit.
  absl::Status Apply(const KernelContext& ctx, int64_t local_step, bool has_shape);
  /// Puts the result out once `required` (at least 1) gradients have been added up.
  void TakeGradient(KernelContext& ctx, KernelDone done, int64_t required);
  void SetGlobalStep(int64_t step);
  int64_t NumAccumulated() const;

 protected:
  Accumulator(std::string name, AccumulatorOptions options, bool sparse)
      : WaitingResource(std::move(name), 1), options_(std::move(options)), sparse_(sparse) {}

  /// Gradients that have been added up.
  struct Sum {
    int64_t count = 0;
    Tensor values;
    std::vector<int64_t> indices, counts;  ///< Of sparse rows: where, and gradients that had them.
  };

  // Without the lock: both take time with large gradients, and a timer that cancels a call needs
  // the lock.

  /// Adds the gradient that the kernel has, but does not count it. If it fails, `sum` is as before.
  virtual absl::Status Add(const KernelContext& ctx, bool has_shape, Sum* sum) const = 0;
  /// Sets the outputs of the kernel. Called by the player of its step.
  virtual absl::Status PutOut(KernelContext& ctx, Sum sum) const = 0;

 private:
  struct TakeCall;
  void Serve() override;

  const AccumulatorOptions options_;
  const bool sparse_;
  std::mutex adding_;  ///< Taken before the lock.
  int64_t step_ = 0;
  Sum sum_;                   ///< Has the count only while it is lent.
  bool sum_is_lent_ = false;  ///< To whoever holds `adding_`; calls wait.
};

/// Of tensors.
RefPtr<Accumulator> MakeDenseAccumulator(std::string name, AccumulatorOptions options);
/// Of rows: gradients are indices, values and a shape; the mean of a row is that of the gradients
/// that have it.
RefPtr<Accumulator> MakeSparseAccumulator(std::string name, AccumulatorOptions options);

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_ACCUMULATOR_H_
