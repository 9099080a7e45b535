#include "kernels/strings/hashes.h"

#include <bit>
#include <cstring>

#include "devices/storage/coding.h"

namespace troupe {
namespace {

/// The bytes after the last complete word, fewer than eight.
uint64_t Tail(std::string_view bytes) {
  uint64_t tail = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    tail |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return tail;
}

struct SipState {
  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Add(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }

  uint64_t v0, v1, v2, v3;
};

}  // namespace

uint64_t MurmurHash64(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = seed ^ (bytes.size() * kMultiplier);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word = DecodeFixed<uint64_t>(bytes.data()) * kMultiplier;
    word ^= word >> kShift;
    hash = (hash ^ (word * kMultiplier)) * kMultiplier;
  }
  if (!bytes.empty()) hash = (hash ^ Tail(bytes)) * kMultiplier;
  hash = (hash ^ (hash >> kShift)) * kMultiplier;
  return hash ^ (hash >> kShift);
}

uint64_t SipHash(std::string_view bytes, const uint64_t (&key)[2]) {
  SipState state = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                    key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  const uint64_t size = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    state.Add(DecodeFixed<uint64_t>(bytes.data()));
  }
  state.Add(size << 56 | Tail(bytes));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace troupe
