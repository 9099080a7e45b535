/// For the end of what a thread may still be at work on.
#ifndef TROUPE_NET_KEEP_FOR_GOOD_H_
#define TROUPE_NET_KEEP_FOR_GOOD_H_

#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

/// Keeps what a pointer owns until the process ends. Thread-safe.
template <typename Pointer>
void KeepForGood(Pointer pointer) {
  static auto* mutex = new std::mutex;
  static auto* kept = new std::vector<Pointer>;
  std::lock_guard<std::mutex> lock(*mutex);
  kept->push_back(std::move(pointer));
}

}  // namespace troupe

#endif  // TROUPE_NET_KEEP_FOR_GOOD_H_
