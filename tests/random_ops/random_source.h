/// What random cases are drawn from.
#ifndef TROUPE_TESTS_RANDOM_OPS_RANDOM_SOURCE_H_
#define TROUPE_TESTS_RANDOM_OPS_RANDOM_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

namespace troupe::random_ops {

/// Random numbers, the same for the same seed with every standard library. Thread-compatible.
class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }
  /// In [0, n); n is positive.
  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  /// An element of a container that has some.
  template <typename Container>
  const auto& Pick(const Container& from) {
    return *std::next(std::begin(from), Below(static_cast<int64_t>(std::size(from))));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace troupe::random_ops

#endif  // TROUPE_TESTS_RANDOM_OPS_RANDOM_SOURCE_H_
