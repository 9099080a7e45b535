/// Whether somebody gets on.
#ifndef TROUPE_NET_STALL_WATCH_H_
#define TROUPE_NET_STALL_WATCH_H_

#include <algorithm>
#include <cstdint>
#include <utility>

namespace troupe {

/// What a peer that is waited for must move. A byte now and then is no progress: it would let a
/// peer hold what it has for ever.
inline constexpr uint64_t kLeastBytesPerSecond = 16 << 10;

/// Looked at regularly. Who is waited for must move `least` bytes from one look to the next, on
/// average, and is given up when it is behind by what it should have moved in `patience` looks.
/// What it moves in excess does not count for later. Thread-compatible.
class StallWatch {
 public:
  StallWatch(uint64_t least, uint64_t patience) : least_(least), most_(least * patience) {}

  /// `moved`: all the bytes that it has moved. `awaited`: it is to move some. True: it is given up.
  bool Look(bool awaited, uint64_t moved) {
    const uint64_t progress = moved - std::exchange(moved_, moved);
    behind_ = awaited ? behind_ + least_ - std::min(progress, behind_ + least_) : 0;
    return behind_ >= most_;
  }
  /// It is not waited for.
  void Reset() { behind_ = 0; }

 private:
  const uint64_t least_, most_;
  uint64_t moved_ = 0, behind_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_NET_STALL_WATCH_H_
