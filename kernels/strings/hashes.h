/// Hashes that give the same numbers everywhere and always.
#ifndef TROUPE_KERNELS_STRINGS_HASHES_H_
#define TROUPE_KERNELS_STRINGS_HASHES_H_

#include <cstdint>
#include <string_view>

namespace troupe {

/// MurmurHash64A (Austin Appleby), with the seed that TensorFlow's `Hash64` has.
uint64_t MurmurHash64(std::string_view bytes, uint64_t seed = 0xDECAFCAFFE);

/// SipHash-2-4 ("SipHash: a fast short-input PRF", Aumasson and Bernstein, 2012) under a key of two
/// numbers.
uint64_t SipHash(std::string_view bytes, const uint64_t (&key)[2]);

}  // namespace troupe

#endif  // TROUPE_KERNELS_STRINGS_HASHES_H_
