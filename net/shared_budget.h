/// Memory that several peers use, and that none of them can take away from the others.
#ifndef TROUPE_NET_SHARED_BUDGET_H_
#define TROUPE_NET_SHARED_BUDGET_H_

#include <cstdint>

namespace troupe {

/// One may hold as much as it leaves free: the first one half of it, two that take what they can a
/// third each, and so on. Thread-compatible.
class SharedBudget {
 public:
  /// `least`: what each may hold in any case.
  SharedBudget(uint64_t limit, uint64_t least) : limit_(limit), least_(least) {}

  /// Takes `bytes` for one who holds `*held`; false, and nothing is taken, if that is too much.
  bool Take(uint64_t bytes, uint64_t* held) {
    if (!Allows(*held, bytes)) return false;
    Force(bytes, held);
    return true;
  }
  /// Takes them in any case.
  void Force(uint64_t bytes, uint64_t* held) {
    *held += bytes;
    used_ += bytes;
  }
  void Return(uint64_t bytes, uint64_t* held) {
    *held -= bytes;
    used_ -= bytes;
  }
  /// One who holds so much may hold it.
  bool Allows(uint64_t held) const { return Allows(held, 0); }
  uint64_t used() const { return used_; }

 private:
  bool Allows(uint64_t held, uint64_t bytes) const {
    if (bytes > limit_) return false;
    const uint64_t mine = held + bytes, all = used_ + bytes;
    return mine <= least_ || (all <= limit_ && mine <= limit_ - all);
  }

  const uint64_t limit_, least_;
  uint64_t used_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_NET_SHARED_BUDGET_H_
