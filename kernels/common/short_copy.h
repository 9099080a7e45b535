/// Copies of few bytes without a call.
#ifndef TROUPE_KERNELS_COMMON_SHORT_COPY_H_
#define TROUPE_KERNELS_COMMON_SHORT_COPY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace troupe {

/// As std::memcpy. Faster where many runs of one length, at most `kShortCopy` bytes, are copied:
/// branches hang on the length alone, and two copies of a fixed size may overlap.
inline constexpr size_t kShortCopy = 64;
inline void CopyBytes(void* to, const void* from, size_t n) {
  char* const out = static_cast<char*>(to);
  const char* const in = static_cast<const char*>(from);
  const auto both_ends = [&]<size_t kSize>(std::integral_constant<size_t, kSize>) {
    char first[kSize], last[kSize];
    std::memcpy(first, in, kSize);
    std::memcpy(last, in + n - kSize, kSize);
    std::memcpy(out, first, kSize);
    std::memcpy(out + n - kSize, last, kSize);
  };
  if (n > kShortCopy) {
    std::memcpy(to, from, n);
  } else if (n >= 16) {
    for (size_t i = 16; i + 16 < n; i += 16) std::memcpy(out + i, in + i, 16);
    both_ends(std::integral_constant<size_t, 16>());
  } else if (n >= 8) {
    both_ends(std::integral_constant<size_t, 8>());
  } else if (n >= 4) {
    both_ends(std::integral_constant<size_t, 4>());
  } else if (n >= 2) {
    both_ends(std::integral_constant<size_t, 2>());
  } else if (n == 1) {
    *out = *in;
  }
}

/// Copies `n` elements of any type; the runs must not overlap.
template <typename T>
void CopyRun(T* to, const T* from, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    CopyBytes(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    std::copy_n(from, n, to);
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_SHORT_COPY_H_
