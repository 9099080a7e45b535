/// Conditional accumulators: gradients of a step are added up until there are enough.
#ifndef TROUPE_KERNELS_QUEUES_ACCUMULATOR_H_
#define TROUPE_KERNELS_QUEUES_ACCUMULATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

/// What an accumulator is like; fixed for its life.
struct AccumulatorOptions {
  ElementType type = ElementType::kInvalid;
  PartialShape shape;
  bool mean = true;  ///< Gives the mean of the gradients, else their sum.
  /// Gradients are rows: indices, values and a shape, and the mean of a row is that of the
  /// gradients that have it. Else a gradient is a tensor.
  bool sparse = false;
  bool operator==(const AccumulatorOptions&) const = default;
};

/// All that an accumulator knows. A value; tensors are shared.
struct AccumulatorState {
  int64_t step = 0;
  int64_t count = 0;                     ///< Gradients that have been added up.
  Tensor values;                         ///< Their sum; invalid if there are none.
  std::vector<int64_t> indices, counts;  ///< Of sparse rows: where, and gradients that had them.
};

/// Adds up gradients that are not older than its global step, and gives the result to those who
/// wait for it, one after the other, each when there are as many gradients as it requires; then
/// begins anew with the next step. Thread-safe.
class Accumulator : public WaitingResource {
  enum { kTakes, kApplies };

  /// Gradients that have been added up.
  struct Sum {
    int64_t count = 0;
    Tensor values;
    std::vector<int64_t> indices, counts;  ///< Of sparse rows: where, and gradients that had them.
  };

 public:
  static constexpr char kKind[] = "conditional accumulator";
  /// Gradients of so many bytes are not added by whoever serves the call, but when it is concluded:
  /// adding them takes longer than waking who does that.
  static constexpr size_t kMinBytesHandedOn = size_t{4} << 20;

  class ApplyCall : public Call {
   public:
    explicit ApplyCall(Accumulator* to) : Call(to, kApplies) {}
    ~ApplyCall() override;

    int64_t local_step = 0;
    /// The tensors of the gradient, which live as long as the call: inputs of a kernel, or `owned`.
    absl::InlinedVector<const Tensor*, 3> gradient;
    Tuple owned;
    bool has_shape = true;  ///< The shape of a sparse one counts.

   protected:
    absl::Status Conclude(KernelContext&) override;

   private:
    absl::StatusOr<Progress> Serve() override;

    bool has_sum_ = false;  ///< The sum is lent to this call, which will add to it.
  };

  class TakeCall : public Call {
   public:
    explicit TakeCall(Accumulator* from) : Call(from, kTakes) {}

    int64_t required = 0;

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    friend class ApplyCall;
    bool HasEnough() const;
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;

    Sum sum_;
  };

  Accumulator(std::string name, AccumulatorOptions options)
      : WaitingResource(std::move(name)), options_(std::move(options)) {}

  const AccumulatorOptions& options() const { return options_; }
  std::string DebugString() const override;

  // `token`, which may be nullptr and outlives the call, ends its wait.

  /// A gradient computed at step `local_step`. Dropped without a word if it is stale.
  /// InvalidArgument if it does not fit.
  void ApplyGradient(int64_t local_step, Tuple gradient, CancellationToken* token, Done done);
  /// The result once `required` (at least 1) gradients have been added up.
  void TakeGradient(int64_t required, CancellationToken* token, Done done);
  void SetGlobalStep(int64_t step) { step_.store(step, std::memory_order_release); }
  /// What the accumulator is, once no gradient is just being added; it changes nothing.
  void Save(SaveDone<AccumulatorState> done);
  /// Replaces what it holds. InvalidArgument, and nothing has changed: it is the state of an
  /// accumulator of another type or shape, or of none.
  void Restore(AccumulatorState state, RestoreDone done);
  int64_t NumAccumulated() const { return count_.load(std::memory_order_acquire); }

 private:
  class SaveCall;
  class RestoreCall;

  /// Adds the gradient. If it fails, the sum is as before.
  absl::Status Add(const ApplyCall& call);
  absl::Status WrongType(const ApplyCall& call, size_t part) const;
  absl::Status AddDense(const ApplyCall& call);
  absl::Status AddSparse(const ApplyCall& call);
  absl::Status CheckSparse(const ApplyCall& call) const;
  /// Whether they may be values of sparse rows.
  bool AreRows(const Tensor& values) const;
  absl::Status CheckState(const AccumulatorState& state) const;
  absl::Status CheckRows(const Tensor& indices, const Tensor& values, int64_t limit) const;
  absl::Status Merge(absl::Span<const int64_t> indices, const Tensor& values);
  absl::Status PutOut(Sum sum, KernelContext& ctx) const;

  const AccumulatorOptions options_;
  std::atomic<int64_t> step_{0};
  Sum sum_;  ///< Of whoever plays, or of the call that it is lent to.
  std::atomic<bool> sum_is_lent_{false};
  std::atomic<int64_t> count_{0};  ///< Of `sum_`, for those who do not play.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_ACCUMULATOR_H_
