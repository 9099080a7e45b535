#include "kernels/random/fill.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "devices/half.h"
#include "kernels/random/draws.h"
#include "kernels/random/random_kernels.h"
#include "kernels/simd/random.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

PhiloxBlocks BlocksFrom(Philox position, uint64_t first, uint64_t stride) {
  position.Skip(first);
  return {position.key(), position.counter_low(), position.counter_high(), stride};
}

// ---- Filling `out[0, n)`, n in whole or broken groups of a block, from block `first` of the run.

constexpr int64_t kBufferBlocks = 64;

// Calls `make(blocks, count, words)` for runs of blocks and `use(words, i, count)` for every output
// group.
template <int kGroup, typename Value, typename Make, typename Use>
void InBuffers(const Philox& position, int64_t begin, int64_t end, Make make, Use use) {
  alignas(64) Value values[4 * kBufferBlocks];
  for (int64_t i = begin; i < end; i += kGroup * kBufferBlocks) {
    const int64_t n = std::min<int64_t>(end - i, kGroup * kBufferBlocks);
    const int64_t blocks = (n + kGroup - 1) / kGroup;
    make(BlocksFrom(position, static_cast<uint64_t>(i / kGroup), 1), blocks, values);
    use(values, i, n);
  }
}

// `begin` is a multiple of 4 here and below.
void FillUniform(const Philox& position, int64_t begin, int64_t end, float* out) {
  const int64_t whole = (end - begin) / 4 * 4;
  Random().uniform(BlocksFrom(position, static_cast<uint64_t>(begin / 4), 1), whole / 4,
                   out + begin);
  if (begin + whole < end) {
    float last[4];
    Random().uniform(BlocksFrom(position, static_cast<uint64_t>((begin + whole) / 4), 1), 1, last);
    std::copy(last, last + (end - begin - whole), out + begin + whole);
  }
}
void FillUniform(const Philox& position, int64_t begin, int64_t end, double* out) {
  InBuffers<2, uint32_t>(position, begin, end, Random().words,
                         [&](const uint32_t* w, int64_t i, int64_t n) {
                           for (int64_t j = 0; j < n; ++j) {
                             out[i + j] = ToUniform(w[2 * j], w[2 * j + 1]);
                           }
                         });
}
template <typename T>
void FillUniform(const Philox& position, int64_t begin, int64_t end, T* out) {
  InBuffers<4, uint32_t>(position, begin, end, Random().words,
                         [&](const uint32_t* w, int64_t i, int64_t n) {
                           for (int64_t j = 0; j < n; ++j) {
                             if constexpr (std::is_same_v<T, half>) {
                               out[i + j] = ToUniformHalf(w[j]);
                             } else {
                               out[i + j] = ToUniformBfloat16(w[j]);
                             }
                           }
                         });
}

void FillNormal(const Philox& position, int64_t begin, int64_t end, double* out) {
  InBuffers<2, uint32_t>(position, begin, end, Random().words,
                         [&](const uint32_t* w, int64_t i, int64_t n) {
                           for (int64_t j = 0; j < n; j += 2) {
                             double pair[2];
                             BoxMuller(w + 2 * j, &pair[0], &pair[1]);
                             out[i + j] = pair[0];
                             if (j + 1 < n) out[i + j + 1] = pair[1];
                           }
                         });
}
template <typename T>
void FillNormal(const Philox& position, int64_t begin, int64_t end, T* out) {
  InBuffers<4, float>(position, begin, end, Random().normal,
                      [&](const float* v, int64_t i, int64_t n) {
                        for (int64_t j = 0; j < n; ++j) out[i + j] = T(v[j]);
                      });
}

constexpr double kTruncateAt = 2.0;

void FillTruncated(const Philox& position, int64_t begin, int64_t end, double* out) {
  constexpr int kGroup = 2;
  for (int64_t i = begin; i < end; i += kGroup) {
    Philox group = position;
    group.Skip(static_cast<uint64_t>(i / kGroup) * kGroup * kBlocksPerOutput / 4);
    const int64_t wanted = std::min<int64_t>(kGroup, end - i);
    for (int64_t found = 0; found < wanted;) {
      double pair[2];
      BoxMuller(group.Next().data(), &pair[0], &pair[1]);
      for (int j = 0; j < 2 && found < wanted; ++j) {
        if (std::abs(pair[j]) < kTruncateAt) out[i + found++] = pair[j];
      }
    }
  }
}
template <typename T>
void FillTruncated(const Philox& position, int64_t begin, int64_t end, T* out) {
  constexpr int kGroup = 4;
  constexpr uint64_t kSkip = kGroup * kBlocksPerOutput / 4;
  alignas(64) float values[4 * kBufferBlocks];
  for (int64_t i = begin; i < end; i += kGroup * kBufferBlocks) {
    const int64_t groups = std::min<int64_t>((end - i + kGroup - 1) / kGroup, kBufferBlocks);
    const uint64_t first = static_cast<uint64_t>(i / kGroup) * kSkip;
    Random().normal(BlocksFrom(position, first, kSkip), groups, values);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = i + g * kGroup;
      const int64_t wanted = std::min<int64_t>(kGroup, end - at);
      float* candidates = values + 4 * g;
      float more[4 * 4];
      int64_t found = 0, available = 4;
      uint64_t next_block = first + static_cast<uint64_t>(g) * kSkip + 1;
      while (true) {
        for (int64_t j = 0; j < available && found < wanted; ++j) {
          if (std::abs(candidates[j]) < static_cast<float>(kTruncateAt)) {
            out[at + found++] = T(candidates[j]);
          }
        }
        if (found == wanted) break;
        Random().normal(BlocksFrom(position, next_block, 1), 4, more);
        next_block += 4;
        candidates = more;
        available = 16;
      }
    }
  }
}

template <Distribution kDistribution, typename T>
void FillWith(KernelContext& ctx, const Philox& position, int64_t n, T* out) {
  const double ns = kDistribution == Distribution::kUniform  ? 1
                    : std::is_same_v<T, double>              ? 20
                    : kDistribution == Distribution::kNormal ? 3
                                                             : 8;
  const int64_t grain = (KernelContext::GrainFor(ns) + 3) / 4 * 4;
  ctx.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    if constexpr (kDistribution == Distribution::kUniform) {
      FillUniform(position, begin, end, out);
    } else if constexpr (kDistribution == Distribution::kNormal) {
      FillNormal(position, begin, end, out);
    } else {
      FillTruncated(position, begin, end, out);
    }
  });
}

template <typename T>
void FillRange(KernelContext& ctx, const Philox& position, std::make_unsigned_t<T> low,
               std::make_unsigned_t<T> range, int64_t n, T* out) {
  using U = std::make_unsigned_t<T>;
  constexpr int kGroup = sizeof(T) == 4 ? 4 : 2;
  ctx.ParallelFor(n, 8192, [&](int64_t begin, int64_t end) {
    InBuffers<kGroup, uint32_t>(position, begin, end, Random().words,
                                [&](const uint32_t* w, int64_t i, int64_t count) {
                                  for (int64_t j = 0; j < count; ++j) {
                                    U x;
                                    if constexpr (sizeof(T) == 4) {
                                      x = w[j];
                                    } else {
                                      x = static_cast<uint64_t>(w[2 * j + 1]) << 32 | w[2 * j];
                                    }
                                    if (range != 0) x %= range;
                                    out[i + j] = static_cast<T>(low + x);
                                  }
                                });
  });
}

template <Distribution kDistribution>
absl::Status FillNumbers(KernelContext& ctx, const Philox& position, Tensor* out) {
  return SwitchType<float, double, half, bfloat16>(out->type(), [&]<typename T>() {
    FillWith<kDistribution>(ctx, position, out->num_elements(), out->mutable_data<T>());
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status Fill(KernelContext& ctx, Distribution distribution, const Philox& position,
                  Tensor* out) {
  switch (distribution) {
    case Distribution::kUniform:
      return FillNumbers<Distribution::kUniform>(ctx, position, out);
    case Distribution::kNormal:
      return FillNumbers<Distribution::kNormal>(ctx, position, out);
    case Distribution::kTruncatedNormal:
      break;
  }
  return FillNumbers<Distribution::kTruncatedNormal>(ctx, position, out);
}

absl::Status FillIntegers(KernelContext& ctx, const Philox& position, uint64_t low, uint64_t range,
                          Tensor* out) {
  return SwitchType<int32_t, int64_t, uint32_t, uint64_t>(out->type(), [&]<typename T>() {
    using U = std::make_unsigned_t<T>;
    FillRange<T>(ctx, position, static_cast<U>(low), static_cast<U>(range), out->num_elements(),
                 out->mutable_data<T>());
    return absl::OkStatus();
  });
}

}  // namespace troupe
