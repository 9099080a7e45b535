/// Intrusive reference counting for what is shared without copying: buffers, resources, graphs.
#ifndef TROUPE_DEVICES_REF_COUNTED_H_
#define TROUPE_DEVICES_REF_COUNTED_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Base of a reference-counted object; starts with one reference. Thread-safe.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() const {
    // A sole owner needs no atomic read-modify-write to know that it is the last.
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const_cast<RefCounted*>(this)->Destroy();
    }
  }
  /// True if the caller's reference is the only one.
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual ~RefCounted() = default;
  /// Called once, when the last reference goes.
  virtual void Destroy() { delete this; }

 private:
  mutable std::atomic<int32_t> refs_{1};
};

/// Owns one reference to a `RefCounted`.
template <typename T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}  // NOLINT
  /// Takes over the reference that the caller holds (as after `new`).
  static RefPtr Adopt(T* p) {
    RefPtr r;
    r.p_ = p;
    return r;
  }
  /// Adds a reference.
  static RefPtr Share(T* p) {
    if (p != nullptr) p->Ref();
    return Adopt(p);
  }
  RefPtr(const RefPtr& o) : p_(o.p_) {
    if (p_ != nullptr) p_->Ref();
  }
  RefPtr(RefPtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <typename U>
  RefPtr(RefPtr<U> o) : p_(o.release()) {}  // NOLINT: up-cast
  RefPtr& operator=(RefPtr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~RefPtr() {
    if (p_ != nullptr) p_->Unref();
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const RefPtr& o) const { return p_ == o.p_; }
  T* release() { return std::exchange(p_, nullptr); }
  void reset() {
    if (T* p = std::exchange(p_, nullptr)) p->Unref();
  }

 private:
  T* p_ = nullptr;
};

template <typename T, typename... Args>
RefPtr<T> MakeRef(Args&&... args) {
  return RefPtr<T>::Adopt(new T(std::forward<Args>(args)...));
}

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_REF_COUNTED_H_
