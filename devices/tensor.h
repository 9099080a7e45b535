/// Tensors: typed multi-dimensional arrays, passed by value, immutable once shared.
#ifndef TROUPE_DEVICES_TENSOR_H_
#define TROUPE_DEVICES_TENSOR_H_

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/buffer.h"
#include "devices/element_type.h"
#include "devices/export.h"
#include "devices/shape.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class TensorProto;

/// An element type, a shape and a reference to row-major elements. Copying shares the elements;
/// slices and reshapes share them too. Whoever fills a new tensor does so before anybody else sees
/// it; afterwards it is written to only by a sole owner (`unique()`), as the executor's buffer
/// forwarding does. Thread-compatible; distinct copies may be read from many threads.
class Tensor {
 public:
  /// No type, no elements.
  Tensor() = default;

  /// Uninitialised elements (strings etc. default constructed). ResourceExhausted names the size.
  static absl::StatusOr<Tensor> Allocate(ElementType type, const Shape& shape,
                                         Allocator* allocator = HostAllocator());
  /// The same for sizes known to be small and right: running out of memory throws std::bad_alloc.
  static Tensor Uninitialized(ElementType type, const Shape& shape);
  /// Views `shape.num_elements()` elements of `type` that begin at `data` inside `buffer`.
  Tensor(ElementType type, Shape shape, RefPtr<Buffer> buffer, void* data)
      : buffer_(std::move(buffer)), data_(data), shape_(std::move(shape)), type_(type) {}

  template <typename T>
  static Tensor Scalar(T value) {
    Tensor t = Uninitialized(kElementType<T>, Shape());
    *t.mutable_data<T>() = std::move(value);
    return t;
  }
  static Tensor Scalar(const char* value) { return Scalar<std::string>(value); }
  /// A tensor of rank 1.
  template <typename T>
  static Tensor Vector(absl::Span<const T> values) {
    Tensor t = Uninitialized(kElementType<T>, Shape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), t.mutable_data<T>());
    return t;
  }
  template <typename T>
  static Tensor Vector(std::initializer_list<T> values) {
    return Vector<T>(absl::MakeConstSpan(values.begin(), values.size()));
  }
  /// InvalidArgument unless `values.size()` is `shape.num_elements()`.
  template <typename T>
  static absl::StatusOr<Tensor> FromValues(absl::Span<const T> values, const Shape& shape) {
    if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
      return WrongCount(kElementType<T>, values.size(), shape);
    }
    absl::StatusOr<Tensor> t = Allocate(kElementType<T>, shape);
    if (t.ok()) std::copy(values.begin(), values.end(), t->mutable_data<T>());
    return t;
  }

  /// Lets go of the elements; afterwards as if default constructed.
  void Reset() {
    buffer_.reset();
    type_ = ElementType::kInvalid;
  }

  bool valid() const { return type_ != ElementType::kInvalid; }
  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return shape_.num_elements(); }
  size_t bytes() const { return static_cast<size_t>(num_elements()) * ElementSize(type_); }
  MemorySpace space() const { return buffer_ ? buffer_->space() : MemorySpace::kHost; }

  /// The elements in row-major order, which live as long as this tensor or a copy of it.
  /// InvalidArgument, which says what the tensor is, if it holds no host elements of type `T`.
  /// Memory is 64-byte aligned unless the tensor is a slice or has 8 bytes or less.
  template <typename T>
  absl::StatusOr<const T*> data() const {
    if (absl::Status status = CheckReadable(kElementType<T>); !status.ok()) return status;
    return unchecked_data<T>();
  }
  /// The same with their number.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> values() const {
    if (absl::Status status = CheckReadable(kElementType<T>); !status.ok()) return status;
    return unchecked_values<T>();
  }
  /// The only element. InvalidArgument also if there is none or more than one.
  template <typename T>
  absl::StatusOr<T> scalar() const {
    if (absl::Status status = CheckScalar(kElementType<T>); !status.ok()) return status;
    return unchecked_scalar<T>();
  }

  /// For kernels, whose inputs are known to be of type `T` and in memory that they can read:
  /// anything else is undefined.
  template <typename T>
  const T* unchecked_data() const {
    assert(type_ == kElementType<T>);
    return static_cast<const T*>(data_);
  }
  template <typename T>
  absl::Span<const T> unchecked_values() const {
    return absl::Span<const T>(unchecked_data<T>(), static_cast<size_t>(num_elements()));
  }
  template <typename T>
  const T& unchecked_scalar() const {
    return *unchecked_data<T>();
  }
  /// For who fills a new tensor of type `T`; unchecked likewise.
  template <typename T>
  T* mutable_data() {
    assert(type_ == kElementType<T>);
    return static_cast<T*>(data_);
  }
  template <typename T>
  absl::Span<T> mutable_values() {
    return absl::Span<T>(mutable_data<T>(), static_cast<size_t>(num_elements()));
  }
  const void* raw_data() const { return data_; }
  void* mutable_raw_data() { return data_; }

  /// True if this is the only tensor that refers to its buffer, which may then be written to.
  bool unique() const { return buffer_ && buffer_->unique(); }
  bool SharesBufferWith(const Tensor& other) const { return buffer_ == other.buffer_; }
  const RefPtr<Buffer>& buffer() const { return buffer_; }
  /// Hands the reference over to the caller. Type, shape and address stay readable here for as long
  /// as the buffer lives.
  RefPtr<Buffer> ReleaseBuffer() { return std::move(buffer_); }

  /// Rows [begin, end) of dimension 0, sharing memory. Bounds are the caller's invariant.
  Tensor Slice(int64_t begin, int64_t end) const;
  /// The same elements under another shape of as many elements.
  Tensor Reshaped(Shape shape) const {
    assert(shape.num_elements() == num_elements());
    return Tensor(type_, std::move(shape), buffer_, data_);
  }
  /// The same, in place.
  void set_shape(Shape shape) {
    assert(shape.num_elements() == num_elements());
    shape_ = std::move(shape);
  }
  /// A copy of the elements in memory of its own. Host tensors only.
  absl::StatusOr<Tensor> Clone(Allocator* allocator = HostAllocator()) const;

  /// Element type, shape and the first elements: "float[2,2] [[1 2][3 4]]".
  std::string ToString(int max_elements = 16) const;

 private:
  static absl::Status WrongCount(ElementType type, size_t values, const Shape& shape);
  absl::Status CheckReadable(ElementType type) const;
  absl::Status CheckScalar(ElementType type) const;

  RefPtr<Buffer> buffer_;
  void* data_ = nullptr;
  // The type sits in what the shape leaves over of its last word: a tensor is one cache line.
  [[no_unique_address]] Shape shape_;
  ElementType type_ = ElementType::kInvalid;
};
static_assert(sizeof(Tensor) == 64);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_TENSOR_H_
