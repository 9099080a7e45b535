/// Optimisers' updates of variables, on cards.
#ifndef TROUPE_KERNELS_CUDA_UPDATES_H_
#define TROUPE_KERNELS_CUDA_UPDATES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/indexing.h"
#include "kernels/cuda/number.h"
#include "kernels/late_record.h"
#include "kernels/simd/update_rule.h"

namespace troupe::cuda {

/// What a rule demands of a scalar.
enum class ScalarNeed : uint8_t { kNothing, kPositive, kNotNegative, kNotPositive };

/// Scalars of the variable's type, or (`integer`) int64, in device memory.
struct UpdateScalars {
  const void* at[kMaxUpdateScalars] = {};  ///< nullptr: the rule has no more.
  bool integer[kMaxUpdateScalars] = {};
  ScalarNeed needs[kMaxUpdateScalars] = {};
  /// Of one that is not what the rule demands: its number, and the bits of its value as a double.
  /// Nothing is updated then.
  LateCheck check{};
};

/// An update of a variable and its slots, whose elements are read at `from` and written to `to`,
/// the same or not. Two variables may be one.
struct UpdateCall {
  UpdateRule rule;
  bool flag = false, by_row = false;  ///< Which of the rule's forms.
  Number type;
  const void* from[4] = {};
  void* to[4] = {};
  const void* grad = nullptr;
  UpdateScalars scalars;
};

/// Elements 0 to n.
cudaError_t LaunchUpdate(const UpdateCall& call, int64_t n, cudaStream_t stream);

/// Row indices[r] of the variables, of `width` elements, is updated by row r of the gradient. Rows
/// that are named more than once are updated in the order of r.
struct RowUpdates {
  Indices indices;
  int64_t rows, width, limit;
  LateCheck check;  ///< Of indices that are not in [0, limit), which are left out.
};
/// `from` and `to` are the same. `scratch`: UpdateRowsScratch(rows) bytes.
cudaError_t LaunchUpdateRows(const UpdateCall& call, const RowUpdates& rows, void* scratch,
                             cudaStream_t stream);
int64_t UpdateRowsScratch(int64_t rows);

/// out[i] = a[i] + b[i], or the difference, of any numbers but int32; `out` may be `a`.
cudaError_t LaunchAssignUpdate(bool subtract, Number type, const void* a, const void* b, void* out,
                               int64_t n, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_UPDATES_H_
