#include "kernels/strings/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace troupe {
namespace {

constexpr uint64_t kFirst = 0xc3a5c85c97cb3127, kSecond = 0xb492b66fbe98f273,
                   kThird = 0x9ae16a3b2f90404f;

template <typename Word = uint64_t>
uint64_t Load(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint64_t Shifted(uint64_t value) { return value ^ (value >> 47); }

/// Two words to one.
uint64_t Fold(uint64_t a, uint64_t b, uint64_t multiplier) {
  const uint64_t c = Shifted((a ^ b) * multiplier);
  return Shifted((b ^ c) * multiplier) * multiplier;
}

uint64_t UpTo16(const char* s, size_t size) {
  const uint64_t multiplier = kThird + size * 2;
  if (size >= 8) {
    const uint64_t a = Load(s) + kThird, b = Load(s + size - 8);
    const uint64_t c = std::rotr(b, 37) * multiplier + a;
    const uint64_t d = (std::rotr(a, 25) + b) * multiplier;
    return Fold(c, d, multiplier);
  }
  if (size >= 4) {
    return Fold(size + (Load<uint32_t>(s) << 3), Load<uint32_t>(s + size - 4), multiplier);
  }
  if (size == 0) return kThird;
  const auto byte = [s](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  const uint32_t y = byte(0) + (byte(size >> 1) << 8);
  const uint32_t z = static_cast<uint32_t>(size) + (byte(size - 1) << 2);
  return Shifted(y * kThird ^ z * kFirst) * kThird;
}

uint64_t UpTo32(const char* s, size_t size) {
  const uint64_t multiplier = kThird + size * 2;
  const uint64_t a = Load(s) * kSecond, b = Load(s + 8);
  const uint64_t c = Load(s + size - 8) * multiplier, d = Load(s + size - 16) * kThird;
  return Fold(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kThird, 18) + c,
              multiplier);
}

uint64_t UpTo64(const char* s, size_t size) {
  const uint64_t multiplier = kThird + size * 2;
  const uint64_t a = Load(s) * kThird, b = Load(s + 8);
  const uint64_t c = Load(s + size - 8) * multiplier, d = Load(s + size - 16) * kThird;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = Fold(y, a + std::rotr(b + kThird, 18) + c, multiplier);
  const uint64_t e = Load(s + 16) * multiplier, f = Load(s + 24);
  const uint64_t g = (y + Load(s + size - 32)) * multiplier;
  const uint64_t h = (z + Load(s + size - 24)) * multiplier;
  return Fold(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g,
              multiplier);
}

struct Pair {
  uint64_t first = 0, second = 0;
};

/// 32 bytes and a pair to another pair.
Pair Mix32(const char* s, uint64_t a, uint64_t b) {
  const uint64_t w = Load(s), x = Load(s + 8), y = Load(s + 16), z = Load(s + 24);
  a += w;
  b = std::rotr(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += std::rotr(a, 44);
  return {a + z, b + c};
}

}  // namespace

uint64_t Fingerprint64(std::string_view bytes) {
  const char* s = bytes.data();
  const size_t size = bytes.size();
  if (size <= 16) return UpTo16(s, size);
  if (size <= 32) return UpTo32(s, size);
  if (size <= 64) return UpTo64(s, size);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed * kThird + Load(s), y = kSeed * kSecond + 113;
  uint64_t z = Shifted(y * kThird + 113) * kThird;
  Pair v, w;
  // Blocks of 64 bytes; the last 64 bytes once more, whatever of them was in a block.
  const char* const end = s + (size - 1) / 64 * 64;
  const char* const last = end + ((size - 1) & 63) - 63;
  do {
    x = std::rotr(x + y + v.first + Load(s + 8), 37) * kSecond;
    y = std::rotr(y + v.second + Load(s + 48), 42) * kSecond;
    x ^= w.second;
    y += v.first + Load(s + 40);
    z = std::rotr(z + w.first, 33) * kSecond;
    v = Mix32(s, v.second * kSecond, x + w.first);
    w = Mix32(s + 32, z + w.second, y + Load(s + 16));
    std::swap(z, x);
    s += 64;
  } while (s != end);
  const uint64_t multiplier = kSecond + ((z & 0xff) << 1);
  s = last;
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  x = std::rotr(x + y + v.first + Load(s + 8), 37) * multiplier;
  y = std::rotr(y + v.second + Load(s + 48), 42) * multiplier;
  x ^= w.second * 9;
  y += v.first * 9 + Load(s + 40);
  z = std::rotr(z + w.first, 33) * multiplier;
  v = Mix32(s, v.second * multiplier, x + w.first);
  w = Mix32(s + 32, z + w.second, y + Load(s + 16));
  std::swap(z, x);
  return Fold(Fold(v.first, w.first, multiplier) + Shifted(y) * kFirst + z,
              Fold(v.second, w.second, multiplier) + x, multiplier);
}

}  // namespace troupe
