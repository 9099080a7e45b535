/// The shuffle of Fisher and Yates on the rows of a tensor.
#ifndef TROUPE_KERNELS_RANDOM_SHUFFLE_ROWS_H_
#define TROUPE_KERNELS_RANDOM_SHUFFLE_ROWS_H_

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/array/indexing_engine.h"
#include "kernels/common/philox.h"
#include "kernels/kernel.h"

namespace troupe::layout {

/// Output 0 gets the rows of input 0. `words_of` gives the words of so many blocks; it is called if
/// rows are moved at all.
template <typename WordsOf>
absl::Status ShuffleRows(KernelContext& ctx, const WordsOf& words_of) {
  const Tensor& in = ctx.input(0);
  const int64_t rows = in.rank() == 0 ? 1 : in.dim(0);
  if (in.num_elements() <= 1 || rows <= 1) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  // A row takes one word of a block of four.
  PhiloxWords words = words_of(static_cast<uint64_t>(rows - 1 + 3) / 4);
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i + 1 < rows; ++i) {
    // TensorFlow draws 32 bits, too, so that with more rows than that only the first are chosen
    // from.
    const uint32_t left = static_cast<uint32_t>(rows - i);
    const uint32_t word = words();
    std::swap(order[i], order[i + (left == 0 ? word : word % left)]);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
  return PermuteRows(ctx, order, in, out);
}

}  // namespace troupe::layout

#endif  // TROUPE_KERNELS_RANDOM_SHUFFLE_ROWS_H_
