// RandomIndexShuffle: where an index goes in a permutation that is never made as a whole. A block
// cipher permutes numbers of an even count of bits; it is applied again until the result is an
// index (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). The cipher is
// Simon (Beaulieu et al., 2013) with few rounds and keys of 96 bits: no secrets are kept by it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cancellation.h"
#include "kernels/common/registration.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// On numbers of twice `half_bits` bits, at least 8 and at most 32.
class SimonCipher {
 public:
  SimonCipher(int half_bits, const uint32_t (&key)[3], int64_t rounds) : bits_(half_bits) {
    keys_.reserve(rounds);
    for (const uint32_t part : key) keys_.push_back(part & mask());
    uint64_t constants = uint64_t{0x7369f885192c0ef5} & mask();
    for (int64_t i = 3; i < rounds; ++i) {
      const uint64_t last = keys_[i - 1];
      keys_.push_back((0xfffffffc & mask()) ^ (constants & 1) ^ keys_[i - 3] ^ Right(last, 3) ^
                      Right(last, 4));
      constants >>= 1;
    }
  }

  uint64_t Encrypt(uint64_t number) const {
    uint64_t left = number >> bits_ & mask(), right = number & mask();
    for (size_t i = 0; i < keys_.size(); i += 2) {
      left ^= Mix(right) ^ keys_[i];
      right ^= Mix(left) ^ keys_[i + 1];
    }
    return left << bits_ | right;
  }

 private:
  uint64_t mask() const { return (uint64_t{1} << bits_) - 1; }
  uint64_t Left(uint64_t x, int by) const { return (x << by | x >> (bits_ - by)) & mask(); }
  uint64_t Right(uint64_t x, int by) const { return (x >> by | x << (bits_ - by)) & mask(); }
  uint64_t Mix(uint64_t x) const { return (Left(x, 1) & Left(x, 8)) ^ Left(x, 2); }

  int bits_;
  std::vector<uint64_t> keys_;
};

uint64_t ShuffledIndex(uint64_t index, const uint32_t (&key)[3], uint64_t max_index,
                       int64_t rounds) {
  if (max_index == 0) return 0;
  // Fewer bits would show patterns.
  constexpr int kMinBits = 16;
  // As many bits as a double of max_index has, rounded up: for a power of two one fewer than it
  // takes, as TensorFlow has it.
  const int bits = static_cast<int>(std::ceil(std::log2(static_cast<double>(max_index))));
  const SimonCipher cipher(std::max(bits + bits % 2, kMinBits) / 2, key, rounds);
  // As the cipher permutes, and the index is none that is skipped, this comes to an end.
  do {
    index = cipher.Encrypt(index);
  } while (index > max_index);
  return index;
}

/// The element of a scalar, or of a vector.
template <typename T>
T Pick(const Tensor& tensor, int64_t i) {
  return tensor.unchecked_data<T>()[tensor.rank() == 0 ? 0 : i];
}

absl::Status RandomIndexShuffle(KernelContext& ctx, int64_t rounds) {
  const Tensor &index = ctx.input(0), &seed = ctx.input(1), &max_index = ctx.input(2);
  constexpr int64_t kMaxRounds = 4096;
  if (rounds < 4 || rounds > kMaxRounds || rounds % 2 != 0) {
    return InvalidArgument("rounds must be even and in the range [4, ", kMaxRounds, "], got ",
                           rounds);
  }
  const int64_t n =
      std::max({index.num_elements(), max_index.num_elements(), seed.num_elements() / 3});
  const auto fits = [n](const Tensor& tensor, int rank) {
    return tensor.rank() == rank || (tensor.rank() == rank + 1 && tensor.dim(0) == n);
  };
  if (!fits(index, 0) || !fits(max_index, 0) || !fits(seed, 1) || seed.dim(seed.rank() - 1) != 3) {
    return InvalidArgument(
        "index and max_index must be scalars or vectors of one size n, seed of "
        "shape [3] or [n, 3], got shapes ",
        index.shape().ToString(), ", ", max_index.shape().ToString(), " and ",
        seed.shape().ToString());
  }
  const bool scalar = index.rank() == 0 && max_index.rank() == 0 && seed.rank() == 1;
  TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                          ctx.AllocateOutput(0, index.type(), scalar ? Shape() : Shape({n})));
  return SwitchType<int32_t, int64_t, uint32_t, uint64_t>(
      index.type(), [&]<typename T>() -> absl::Status {
        return SwitchType<int32_t, int64_t, uint32_t, uint64_t>(
            seed.type(), [&]<typename Seed>() -> absl::Status {
              for (int64_t i = 0; i < n; ++i) {
                // For a small max_index most results are no index: it takes a while.
                if (ctx.cancellation() != nullptr && ctx.cancellation()->cancelled()) {
                  return ctx.cancellation()->status();
                }
                const T at = Pick<T>(index, i), max = Pick<T>(max_index, i);
                if (at < T{0} || at > max) {
                  return InvalidArgument("index must be in the range [0, max_index = ", max,
                                         "], got ", at);
                }
                const Seed* words = seed.unchecked_data<Seed>() + (seed.rank() == 1 ? 0 : 3 * i);
                const uint32_t key[3] = {static_cast<uint32_t>(words[0]),
                                         static_cast<uint32_t>(words[1]),
                                         static_cast<uint32_t>(words[2])};
                out->mutable_data<T>()[i] = static_cast<T>(ShuffledIndex(
                    static_cast<uint64_t>(at), key, static_cast<uint64_t>(max), rounds));
              }
              return absl::OkStatus();
            });
      });
}

REGISTER_KERNEL(KernelSpec("RandomIndexShuffle"), (MakeAttrKernel<RandomIndexShuffle, "rounds">));

}  // namespace
}  // namespace troupe
