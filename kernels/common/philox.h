/// Counter-based random bits: Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw, "Parallel
/// Random Numbers: As Easy as 1, 2, 3", SC 2011), keyed and counted as TensorFlow does.
#ifndef TROUPE_KERNELS_COMMON_PHILOX_H_
#define TROUPE_KERNELS_COMMON_PHILOX_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// A position in one of 2^64 streams of 2^128 blocks of 128 bits. A value; thread-compatible.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  Philox() = default;
  /// `seed` is the key, `stream` the upper half of the counter.
  Philox(uint64_t seed, uint64_t stream) : key_(seed), high_(stream) {}

  uint64_t key() const { return key_; }
  uint64_t counter_low() const { return low_; }
  uint64_t counter_high() const { return high_; }

  void Skip(uint64_t blocks) {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }
  Block Next() {
    const Block block = Compute(key_, low_, high_);
    Skip(1);
    return block;
  }

  static Block Compute(uint64_t key, uint64_t low, uint64_t high) {
    uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
    uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return {c0, c1, c2, c3};
  }

 private:
  uint64_t key_ = 0, low_ = 0, high_ = 0;
};

/// One 32-bit word of a stream after the other.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& position) : position_(position) {}
  uint32_t operator()() {
    if (used_ == 4) {
      block_ = position_.Next();
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Which stream it is, and where: 32 bytes.
  std::string Save() const;
  /// Goes on there. False, and nothing has changed, if these are no such bytes, or if they are of
  /// another stream; `any`: of whichever.
  bool Restore(std::string_view saved, bool any);

 private:
  Philox position_;
  Philox::Block block_ = {};
  int used_ = 4;
};

/// The stream of a random op: every run takes a part of it. Thread-safe.
class PhiloxStream {
 public:
  /// Seeds 0 and 0: a seed drawn at random.
  PhiloxStream(int64_t seed, int64_t seed2);
  /// The position of the next `blocks` blocks, which nobody else will get.
  Philox Reserve(uint64_t blocks) {
    Philox position = start_;
    position.Skip(next_.fetch_add(blocks, std::memory_order_relaxed));
    return position;
  }

  /// Which stream it is, and where: 32 bytes.
  std::string Save() const;
  /// Goes on there. False, and nothing has changed, if these are no such bytes, or if seeds were
  /// given and they are of others. Not while somebody reserves.
  bool Restore(std::string_view saved);

 private:
  Philox start_;
  bool drawn_ = false;  ///< The seed was.
  std::atomic<uint64_t> next_{0};
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_PHILOX_H_
