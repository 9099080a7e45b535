/// Changes that somebody could make to bytes on their way.
#ifndef TROUPE_TESTS_NET_MUTATE_H_
#define TROUPE_TESTS_NET_MUTATE_H_

#include <random>
#include <string>

namespace troupe {

/// One to three of: a bit, a byte, some that are left out, put in or doubled, and an early end.
inline std::string Mutated(std::string bytes, std::mt19937* random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : (*random)() % n; };
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    const size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>((*random)());
        break;
      case 2:
        bytes.erase(at, 1 + below(40));
        break;
      case 3:
        bytes.insert(at, std::string(1 + below(40), static_cast<char>((*random)())));
        break;
      case 4:
        bytes.insert(below(bytes.size()), bytes.substr(at, below(80)));
        break;
      case 5:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_NET_MUTATE_H_
