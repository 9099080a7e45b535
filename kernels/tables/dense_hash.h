/// The hash that says where a dense table keeps a key. It is TensorFlow's, for a dense table is
/// saved as it lies in memory.
#ifndef TROUPE_KERNELS_TABLES_DENSE_HASH_H_
#define TROUPE_KERNELS_TABLES_DENSE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace troupe {

/// MurmurHash64A with TensorFlow's seed.
inline uint64_t HashBytes(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  const char* data = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = kSeed ^ (left * kMultiplier);
  for (; left >= 8; left -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    word *= kMultiplier;
    word ^= word >> 47;
    word *= kMultiplier;
    hash ^= word;
    hash *= kMultiplier;
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, data, left);
    hash ^= word;
    hash *= kMultiplier;
  }
  hash ^= hash >> 47;
  hash *= kMultiplier;
  hash ^= hash >> 47;
  return hash;
}

/// Of `size` elements that make one key. Integers stand for themselves.
template <typename K>
uint64_t DenseHash(const K* key, int64_t size) {
  const auto one = [](const K& element) {
    if constexpr (std::is_same_v<K, std::string>) {
      return HashBytes(element);
    } else {
      return static_cast<uint64_t>(element);
    }
  };
  if (size == 1) return one(*key);
  uint64_t hash = 0;
  for (int64_t i = 0; i < size; ++i) {
    hash ^= one(key[i]) + 0x9e3779b97f4a7800 + (hash << 10) + (hash >> 4);
  }
  return hash;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_DENSE_HASH_H_
