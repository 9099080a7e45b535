/// NumPy's broadcasting: shapes are aligned at their last dimensions, and dimensions of size 1
/// stretch.
#ifndef TROUPE_KERNELS_COMMON_BROADCAST_H_
#define TROUPE_KERNELS_COMMON_BROADCAST_H_

#include <array>
#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "devices/shape.h"

namespace troupe {

/// The shape of `a` and `b` broadcast against each other. InvalidArgument shows both if they do not
/// fit, or if the result is too large.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

/// How up to three operands are read to fill an output that they are broadcast to: as runs, which
/// are stretches of the output along which every operand either advances element by element or
/// stands still. Neighbouring dimensions that behave alike are taken as one. Immutable.
class BroadcastWalk {
 public:
  static constexpr int kMaxOperands = 3;
  using Offsets = std::array<int64_t, kMaxOperands>;

  /// Every operand must be broadcastable to `out`.
  BroadcastWalk(const Shape& out, std::initializer_list<const Shape*> operands);

  /// Elements of the output in a run, and the number of runs (0 if the output is empty).
  int64_t run_length() const { return run_length_; }
  int64_t num_runs() const { return num_runs_; }
  /// Whether operand `i` advances (1) or stands still (0) along a run.
  int64_t run_step(int i) const { return run_steps_[i]; }

  /// The dimensions outside a run, innermost last.
  struct Dim {
    int64_t size;
    Offsets strides;
  };
  const absl::InlinedVector<Dim, 6>& outer() const { return outer_; }

  /// Calls f(first element of the run in the output, first elements in the operands) for runs
  /// [begin, end).
  template <typename F>
  void ForEach(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    absl::InlinedVector<int64_t, 6> index(outer_.size());
    Offsets offsets = {};
    int64_t rest = begin;
    for (int d = static_cast<int>(outer_.size()) - 1; d >= 0; --d) {
      index[d] = rest % outer_[d].size;
      rest /= outer_[d].size;
      for (int i = 0; i < kMaxOperands; ++i) offsets[i] += index[d] * outer_[d].strides[i];
    }
    for (int64_t run = begin;;) {
      f(run * run_length_, offsets);
      if (++run == end) return;
      for (int d = static_cast<int>(outer_.size()) - 1; d >= 0; --d) {
        const Dim& dim = outer_[d];
        if (++index[d] < dim.size) {
          for (int i = 0; i < kMaxOperands; ++i) offsets[i] += dim.strides[i];
          break;
        }
        index[d] = 0;
        for (int i = 0; i < kMaxOperands; ++i) offsets[i] -= (dim.size - 1) * dim.strides[i];
      }
    }
  }

 private:
  absl::InlinedVector<Dim, 6> outer_;
  int64_t run_length_ = 1;
  int64_t num_runs_ = 1;
  Offsets run_steps_ = {};
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_BROADCAST_H_
