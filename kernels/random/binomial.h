/// Binomial numbers.
#ifndef TROUPE_KERNELS_RANDOM_BINOMIAL_H_
#define TROUPE_KERNELS_RANDOM_BINOMIAL_H_

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "kernels/common/philox.h"
#include "kernels/kernel.h"

namespace troupe {

/// The shape of `counts` and `probabilities` broadcast to one, with which `shape` must end.
absl::StatusOr<Shape> BinomialSets(const Shape& shape, const Tensor& counts,
                                   const Tensor& probabilities);

/// Fills `out`, a sample for each of the sets, with how many of `counts` trials succeed.
absl::Status DrawBinomial(KernelContext& ctx, const Shape& sets, const Tensor& counts,
                          const Tensor& probabilities, const Philox& start, Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_BINOMIAL_H_
