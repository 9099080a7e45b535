/// Work on rows in parallel, each of which may be wrong.
#ifndef TROUPE_KERNELS_IO_FOR_ROWS_H_
#define TROUPE_KERNELS_IO_FOR_ROWS_H_

#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "devices/cpu/compute_pool.h"

namespace troupe {

/// Says that a row is wrong; no row behind it in the same range is looked at.
using RowFailed = absl::FunctionRef<void(int64_t row, absl::Status status)>;

/// Calls `work(begin, end, failed)` for ranges of [0, rows), `grain` apart, on several threads if
/// there is a pool. The error is that of the first row that has one, whoever came to it first.
inline absl::Status ForRows(ComputePool* pool, int64_t rows, int64_t grain,
                            absl::FunctionRef<void(int64_t, int64_t, RowFailed)> work) {
  std::mutex mutex;
  absl::Status error;
  int64_t first = std::numeric_limits<int64_t>::max();
  const auto failed = [&](int64_t row, absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex);
    if (row >= first) return;
    first = row;
    error = std::move(status);
  };
  const auto range = [&](int64_t begin, int64_t end) { work(begin, end, failed); };
  if (pool != nullptr) {
    pool->ParallelFor(rows, grain, range);
  } else if (rows > 0) {
    range(0, rows);
  }
  return error;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_FOR_ROWS_H_
