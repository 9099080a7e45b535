#ifndef TROUPE_DEVICES_CPU_FLUSH_DENORMALS_H_
#define TROUPE_DEVICES_CPU_FLUSH_DENORMALS_H_

#include <cstdint>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace troupe {

/// Makes this thread take denormal floating-point numbers as zeros, and put out zeros for them, for
/// as long as the object lives. Kernels run so, as they do in TensorFlow: denormals are many times
/// slower than other numbers, and results would differ (a denormal is equal to 0, its logarithm
/// -inf). The thread's own setting comes back at the end, since it may be a caller's thread.
/// Objects may be nested. Costs some nanoseconds.
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals() : before_(Get()) {
    if ((before_ & kFlush) != kFlush) Set(before_ | kFlush);
  }
  ~ScopedFlushDenormals() {
    if ((before_ & kFlush) != kFlush) Set(before_);
  }
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  using Word = uint32_t;
  static constexpr Word kFlush = 0x8040;  // Flush to zero, denormals are zeros.
  static Word Get() { return _mm_getcsr(); }
  static void Set(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word kFlush = Word{1} << 24;  // FZ
  static Word Get() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void Set(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  using Word = uint32_t;
  static constexpr Word kFlush = 0;
  static Word Get() { return 0; }
  static void Set(Word) {}
#endif
  Word before_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_FLUSH_DENORMALS_H_
