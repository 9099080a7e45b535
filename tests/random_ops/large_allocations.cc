// Without a sanitizer, which does the same: whoever asks for more than a gigabyte at once, other
// than for a tensor, ends the process. Tensors have a limit of their own.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROUPE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TROUPE_SANITIZED 1
#endif
#endif

#ifndef TROUPE_SANITIZED
namespace {

void* AllocateBounded(size_t bytes) {
  if (bytes > size_t{1} << 30) {
    std::fprintf(stderr, "ERROR: operator new of %zu bytes\n", bytes);
    std::abort();
  }
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(size_t bytes) { return AllocateBounded(bytes); }
void* operator new[](size_t bytes) { return AllocateBounded(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
#endif
