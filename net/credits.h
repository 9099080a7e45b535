/// How many bytes of tensors may be under way from one task to another.
///
/// The receiver has a window. Every tensor is charged for when its first byte is sent, and the
/// charge comes back when the receiver's user lets go of the tensor's credit. Both ends compute a
/// charge in the same way; a sender that takes more than it was given breaks the protocol.
///
/// A charge is at most three quarters of the window, so that a tensor larger than the window can
/// pass, alone; what comes back is told to the sender in portions of less than a quarter. So a
/// sender that waits always gets on once the receiver holds nothing.
#ifndef TROUPE_NET_CREDITS_H_
#define TROUPE_NET_CREDITS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace troupe {

/// Below this a window could not hold a tensor's book-keeping.
inline constexpr uint64_t kMinWindow = 4096;
inline constexpr uint64_t kMaxWindow = uint64_t{1} << 48;

/// What a tensor of `bytes` bytes is charged; the surcharge bounds the number of empty ones.
inline uint64_t CreditCharge(uint64_t bytes, uint64_t window) {
  constexpr uint64_t kSurcharge = 256;
  const uint64_t most = window / 4 * 3;
  return bytes >= most ? most : std::min(bytes + kSurcharge, most);
}

/// The sender's account. Thread-compatible.
class SendCredits {
 public:
  explicit SendCredits(uint64_t window) : window_(window), available_(window) {}

  uint64_t window() const { return window_; }
  uint64_t available() const { return available_; }
  /// Takes the charge for a tensor, if there is enough.
  bool TryTake(uint64_t bytes) {
    const uint64_t charge = CreditCharge(bytes, window_);
    if (charge > available_) return false;
    available_ -= charge;
    return true;
  }
  /// The receiver gives some back; false if that is more than was taken.
  bool Give(uint64_t bytes) {
    if (bytes > window_ - available_) return false;
    available_ += bytes;
    return true;
  }

 private:
  uint64_t window_;
  uint64_t available_;
};

/// The receiver's account. `Take` belongs to the thread that reads; `Release` is thread-safe.
class ReceiveCredits {
 public:
  explicit ReceiveCredits(uint64_t window) : window_(window) {}

  uint64_t window() const { return window_; }
  /// What is charged for and has not been told the sender to be free again.
  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  /// Charges for a tensor; false if the sender had no credit for it.
  bool Take(uint64_t bytes, uint64_t* charge) {
    *charge = CreditCharge(bytes, window_);
    if (*charge > window_ - taken_.load(std::memory_order_acquire)) return false;
    taken_.fetch_add(*charge, std::memory_order_relaxed);
    return true;
  }
  /// The user is done with a tensor. The result, if not 0, is to be told to the sender.
  uint64_t Release(uint64_t charge) {
    const uint64_t pending = pending_.fetch_add(charge, std::memory_order_acq_rel) + charge;
    if (pending < window_ / 4) return 0;
    const uint64_t told = pending_.exchange(0, std::memory_order_acq_rel);
    taken_.fetch_sub(told, std::memory_order_release);
    return told;
  }

 private:
  uint64_t window_;
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> pending_{0};  ///< Released, not yet told.
};

}  // namespace troupe

#endif  // TROUPE_NET_CREDITS_H_
