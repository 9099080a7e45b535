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

namespace {

struct SavedWords {
  uint64_t key, stream, next;
  uint32_t used;  ///< Words of the block before `next`; 4: all.
  uint32_t version = 1;
};

}  // namespace

std::string PhiloxWords::Save() const {
  const SavedWords saved{position_.key(), position_.counter_high(), position_.counter_low(),
                         static_cast<uint32_t>(used_)};
  return std::string(reinterpret_cast<const char*>(&saved), sizeof(saved));
}

bool PhiloxWords::Restore(std::string_view bytes, bool any) {
  SavedWords saved;
  if (bytes.size() != sizeof(saved)) return false;
  std::memcpy(&saved, bytes.data(), sizeof(saved));
  if (saved.version != 1 || saved.used > 4 || (saved.used < 4 && saved.next == 0)) return false;
  const bool same = saved.key == position_.key() && saved.stream == position_.counter_high();
  if (!same && !any) return false;
  position_ = Philox(saved.key, saved.stream);
  position_.Skip(saved.next);
  if (saved.used < 4) block_ = Philox::Compute(saved.key, saved.next - 1, saved.stream);
  used_ = static_cast<int>(saved.used);
  return true;
}

}  // namespace troupe
