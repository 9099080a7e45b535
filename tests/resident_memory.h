/// How much memory a process has.
#ifndef TROUPE_TESTS_RESIDENT_MEMORY_H_
#define TROUPE_TESTS_RESIDENT_MEMORY_H_

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace troupe {

/// The address sanitizer keeps so many bytes of what has been freed.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_KEEPS_FREED
#endif
#endif
#ifdef TROUPE_KEEPS_FREED
inline constexpr int64_t kKeptBytes = int64_t{256} << 20;
#else
inline constexpr int64_t kKeptBytes = 0;
#endif

/// The thread sanitizer has four bytes of its own for each byte that the program has used. (Its
/// macro is not set here: cmake/compiler.cmake.)
extern "C" __attribute__((weak)) void __tsan_init();
inline const int64_t kResidentPerByte = __tsan_init != nullptr ? 5 : 1;

/// Bytes in memory of a process of the caller's, its own for 0; 0 if it is gone.
inline int64_t ResidentBytes(pid_t process = 0) {
  const std::string whose = process == 0 ? "self" : std::to_string(process);
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/" + whose + "/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_RESIDENT_MEMORY_H_
