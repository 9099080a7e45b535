#include "kernels/common/philox.h"

#include <cstring>
#include <random>

namespace troupe {

PhiloxStream::PhiloxStream(int64_t seed, int64_t seed2) {
  uint64_t key = static_cast<uint64_t>(seed);
  uint64_t stream = static_cast<uint64_t>(seed2);
  if (key == 0 && stream == 0) {
    std::random_device device;
    key = uint64_t{device()} << 32 | device();
    stream = uint64_t{device()} << 32 | device();
    drawn_ = true;
  }
  start_ = Philox(key, stream);
}

namespace {

struct Saved {
  uint64_t key, stream, next;
  uint64_t version = 1;
};

}  // namespace

std::string PhiloxStream::Save() const {
  const Saved saved{start_.key(), start_.counter_high(), next_.load(std::memory_order_relaxed)};
  return std::string(reinterpret_cast<const char*>(&saved), sizeof(saved));
}

bool PhiloxStream::Restore(std::string_view bytes) {
  Saved saved;
  if (bytes.size() != sizeof(saved)) return false;
  std::memcpy(&saved, bytes.data(), sizeof(saved));
  if (saved.version != 1) return false;
  const bool same = saved.key == start_.key() && saved.stream == start_.counter_high();
  if (!same && !drawn_) return false;
  start_ = Philox(saved.key, saved.stream);
  next_.store(saved.next, std::memory_order_relaxed);
  return true;
}

}  // namespace troupe
