/// Looking many keys up in a hash map.
#ifndef TROUPE_KERNELS_TABLES_PREFETCHED_MAP_H_
#define TROUPE_KERNELS_TABLES_PREFETCHED_MAP_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "kernels/kernel.h"

namespace troupe {

/// Calls found(i, pointer to the value or nullptr) for each of `count` keys, on several threads if
/// there are many. The memory that a few keys need is on its way before the first of them is
/// compared: what a look-up in a large map costs is the wait for memory.
template <typename K, typename V, typename Found>
void FindEach(KernelContext& ctx, const absl::flat_hash_map<K, V>& map, const K* keys,
              int64_t count, const Found& found) {
  constexpr int64_t kAhead = 16;
  ctx.ParallelFor(count, KernelContext::GrainFor(50.0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < std::min(begin + kAhead, end); ++i) map.prefetch(keys[i]);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) map.prefetch(keys[i + kAhead]);
      const auto it = map.find(keys[i]);
      found(i, it == map.end() ? nullptr : &it->second);
    }
  });
}

/// Calls f.operator()<K>() with the C++ type of keys.
template <typename F>
auto SwitchKeyType(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kInt32:
      return f.template operator()<int32_t>();
    case ElementType::kInt64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<std::string>();
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_PREFETCHED_MAP_H_
