/// How many of what they make at random tests make.
#ifndef TROUPE_TESTS_HOW_MANY_H_
#define TROUPE_TESTS_HOW_MANY_H_

#include <algorithm>
#include <cstdlib>

namespace troupe {

/// Whether this is a build for a sanitizer, or one without optimization: there everything takes ten
/// times as long, and more.
#if defined(NDEBUG)
inline constexpr bool kSlowBuild = false;
#else
inline constexpr bool kSlowBuild = true;
#endif

/// Simulated times, and what is to be seen in them, are divided by this.
inline constexpr int kSlow = kSlowBuild ? 5 : 1;

/// What the environment says (TROUPE_SEEDS, TROUPE_MUTATIONS, ...); else `usual`, or, in a slow
/// build, one in `one_in` of them: `scripts/check-all` has it make as many, too.
inline int HowMany(const char* variable, int usual, int one_in = 100) {
  if (const char* wanted = std::getenv(variable)) return std::atoi(wanted);
  return kSlowBuild ? std::max(1, usual / one_in) : usual;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_HOW_MANY_H_
