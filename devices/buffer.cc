#include "devices/buffer.h"

#include <memory>
#include <new>
#include <string>

#include "devices/memory_use.h"
#include "devices/resource_handle.h"
#include "devices/shape.h"

namespace troupe {
namespace {

template <typename T>
void ConstructAll(void* data, int64_t count) {
  std::uninitialized_value_construct_n(static_cast<T*>(data), count);
}

template <typename T>
void DestroyAll(void* data, int64_t count) {
  std::destroy_n(static_cast<T*>(data), count);
}

/// The head of a block whose elements follow it, one alignment further on; a scalar finds room in
/// the rest of the head's own cache line.
class InlineBuffer final : public Buffer {
 public:
  static constexpr size_t kHeader = Allocator::kAlignment;
  static constexpr size_t kScalar = 8;

  /// Where the elements begin.
  static size_t DataOffset(size_t bytes) { return bytes <= kScalar ? kHeader - kScalar : kHeader; }

  InlineBuffer(Allocator* allocator, ElementType type, int64_t count, size_t bytes)
      : Buffer(reinterpret_cast<char*>(this) + DataOffset(bytes), bytes, allocator->space()),
        type_(type),
        allocator_(allocator),
        count_(count) {
    if (type == ElementType::kString) ConstructAll<std::string>(data(), count);
    if (type == ElementType::kResource) ConstructAll<ResourceHandle>(data(), count);
    if (type == ElementType::kVariant) ConstructAll<Variant>(data(), count);
  }

 protected:
  void Destroy() override {
    if (!IsPlain(type_)) {
      if (type_ == ElementType::kString) DestroyAll<std::string>(data(), count_);
      if (type_ == ElementType::kResource) DestroyAll<ResourceHandle>(data(), count_);
      if (type_ == ElementType::kVariant) DestroyAll<Variant>(data(), count_);
    }
    Allocator* allocator = allocator_;
    const size_t block_bytes = DataOffset(bytes()) + bytes();
    void* block = this;
    this->~InlineBuffer();
    allocator->Free(block, block_bytes);
  }

 private:
  ElementType type_;
  Allocator* allocator_;
  int64_t count_;
};
static_assert(sizeof(InlineBuffer) <= InlineBuffer::kHeader - InlineBuffer::kScalar);

/// Memory that the host cannot address: its head lives apart.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(Allocator* allocator, void* data, size_t bytes)
      : Buffer(data, bytes, allocator->space()), allocator_(allocator) {}

 protected:
  ~DeviceBuffer() override { allocator_->Free(data(), bytes()); }

 private:
  Allocator* allocator_;
};

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(void* data, size_t bytes, void (*release)(void*, void*), void* context,
                MemorySpace space)
      : Buffer(data, bytes, space), release_(release), context_(context) {}

 protected:
  ~WrappedBuffer() override {
    if (release_ != nullptr) release_(data(), context_);
  }

 private:
  void (*release_)(void* data, void* context);
  void* context_;
};

}  // namespace

RefPtr<Buffer> Buffer::Allocate(Allocator* allocator, ElementType type, int64_t count) {
  const size_t size = ElementSize(type);
  if (size == 0) return nullptr;
  const int64_t bytes = count < 0 ? -1 : MultiplyWithoutOverflow(count, static_cast<int64_t>(size));
  if (bytes < 0 || bytes > INT64_MAX - static_cast<int64_t>(InlineBuffer::kHeader)) return nullptr;
  if (allocator->space() == MemorySpace::kDevice && !IsPlain(type)) allocator = HostAllocator();
  if (allocator->space() == MemorySpace::kDevice) {
    AllocationPurpose purpose = AllocationPurpose::OfThisThread();
    purpose.type = type;
    purpose.num_elements = count;
    const ScopedAllocationPurpose of_elements(purpose);
    void* data = allocator->Allocate(static_cast<size_t>(bytes));
    if (data == nullptr) return nullptr;
    auto* buffer = new (std::nothrow) DeviceBuffer(allocator, data, static_cast<size_t>(bytes));
    if (buffer == nullptr) allocator->Free(data, static_cast<size_t>(bytes));
    return RefPtr<Buffer>::Adopt(buffer);
  }
  void* block = allocator->Allocate(InlineBuffer::DataOffset(static_cast<size_t>(bytes)) +
                                    static_cast<size_t>(bytes));
  if (block == nullptr) return nullptr;
  return RefPtr<Buffer>::Adopt(
      new (block) InlineBuffer(allocator, type, count, static_cast<size_t>(bytes)));
}

RefPtr<Buffer> Buffer::Wrap(void* data, size_t bytes, void (*release)(void* data, void* context),
                            void* context, MemorySpace space) {
  return RefPtr<Buffer>::Adopt(new WrappedBuffer(data, bytes, release, context, space));
}

}  // namespace troupe
