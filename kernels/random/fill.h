/// Filling tensors with random numbers on the host. The numbers are TensorFlow's for the same
/// position; how the work is cut does not matter, since every piece starts at its own counter.
#ifndef TROUPE_KERNELS_RANDOM_FILL_H_
#define TROUPE_KERNELS_RANDOM_FILL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "kernels/common/philox.h"
#include "kernels/kernel.h"

namespace troupe {

enum class Distribution { kUniform, kNormal, kTruncatedNormal };

/// Numbers of a floating type.
absl::Status Fill(KernelContext& ctx, Distribution distribution, const Philox& position,
                  Tensor* out);

/// Integers of [low, low + range), of 32 or 64 bits, signed or not. Range 0: any integers.
absl::Status FillIntegers(KernelContext& ctx, const Philox& position, uint64_t low, uint64_t range,
                          Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_FILL_H_
