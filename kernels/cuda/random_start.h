/// Positions in streams of random numbers, for launches.
#ifndef TROUPE_KERNELS_CUDA_RANDOM_START_H_
#define TROUPE_KERNELS_CUDA_RANDOM_START_H_

#include "kernels/common/philox.h"
#include "kernels/cuda/random.h"

namespace troupe::cuda {

inline PhiloxStart StartAt(const Philox& position) {
  return {position.key(), position.counter_low(), position.counter_high()};
}
/// What is in the card's memory when the launch runs.
inline PhiloxStart StartAt(const uint64_t* key, const uint64_t* counter) {
  return {.key_there = key, .counter_there = counter};
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_RANDOM_START_H_
