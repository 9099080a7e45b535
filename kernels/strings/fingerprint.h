/// Fingerprints of strings that are the same everywhere and always.
#ifndef TROUPE_KERNELS_STRINGS_FINGERPRINT_H_
#define TROUPE_KERNELS_STRINGS_FINGERPRINT_H_

#include <cstdint>
#include <string_view>

namespace troupe {

/// FarmHash's Fingerprint64, by which TensorFlow chooses buckets.
uint64_t Fingerprint64(std::string_view bytes);

}  // namespace troupe

#endif  // TROUPE_KERNELS_STRINGS_FINGERPRINT_H_
