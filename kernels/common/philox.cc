#include "kernels/common/philox.h"

#include <random>

namespace troupe {

PhiloxStream::PhiloxStream(int64_t seed, int64_t seed2) {
  uint64_t key = static_cast<uint64_t>(seed);
  uint64_t stream = static_cast<uint64_t>(seed2);
  if (key == 0 && stream == 0) {
    std::random_device device;
    key = uint64_t{device()} << 32 | device();
    stream = uint64_t{device()} << 32 | device();
  }
  start_ = Philox(key, stream);
}

}  // namespace troupe
