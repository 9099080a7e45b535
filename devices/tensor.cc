#include "devices/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "devices/match_type.h"
#include "devices/memory_use.h"
#include "devices/narrow_types.h"
#include "devices/quantized.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

absl::Status AllocationError(ElementType type, const Shape& shape, const Allocator& allocator) {
  if (ElementSize(type) == 0) {
    return InvalidArgument("Cannot make a tensor of type ", ElementTypeName(type),
                           ": tensors of this type are not supported");
  }
  const int64_t bytes =
      MultiplyWithoutOverflow(shape.num_elements(), static_cast<int64_t>(ElementSize(type)));
  const AllocatorStats stats = allocator.stats();
  std::string message = StrCat(
      "Out of memory allocating a tensor of type ", ElementTypeName(type), " and shape ",
      shape.ToString(), " (", bytes < 0 ? "more than 2^63" : absl::StrCat(bytes),
      " bytes) by allocator ", allocator.name(), ": ", stats.bytes_in_use, " bytes are in use");
  if (stats.bytes_limit > 0) absl::StrAppend(&message, ", the limit is ", stats.bytes_limit);
  const auto* const blocks = dynamic_cast<const LiveBlocks*>(&allocator);
  if (blocks == nullptr) return OutOfMemory(message);
  TROUPE_RETURN_IF_ERROR(blocks->Broken());
  const std::string remark = blocks->Remark();
  return absl::ResourceExhaustedError(
      StrCat(message, remark.empty() ? "" : ", ", remark, "; the largest: ", blocks->Largest()));
}

/// What a reader who asked for something else is told that the tensor is.
std::string Description(const Tensor& tensor) {
  if (!tensor.valid()) return "an empty tensor, without type or elements";
  return StrCat("a tensor of type ", ElementTypeName(tensor.type()), " and shape ",
                tensor.shape().ToString());
}

template <typename T>
void AppendElement(const T& value, std::string* out) {
  if constexpr (std::is_same_v<T, std::string>) {
    constexpr size_t kMaxBytes = 256;
    absl::StrAppend(out, "\"", absl::CEscape(value.substr(0, kMaxBytes)),
                    value.size() > kMaxBytes ? "...\"" : "\"");
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    absl::StrAppend(out, "<", value.type_name, " ", value.container, "/", value.name, ">");
  } else if constexpr (std::is_same_v<T, Variant>) {
    absl::StrAppend(out, value.empty() ? "<empty variant>" : "<variant>");
  } else if constexpr (IsQuantized(kElementType<T>)) {
    AppendElement(value.value, out);
  } else if constexpr (IsFloat8(kElementType<T>)) {
    absl::StrAppend(out, static_cast<float>(value));
  } else if constexpr (IsNarrow(kElementType<T>)) {
    absl::StrAppend(out, static_cast<int>(value));
  } else if constexpr (IsComplex(kElementType<T>)) {
    absl::StrAppend(out, "(", value.real(), ",", value.imag(), ")");
  } else if constexpr (IsFloating(kElementType<T>)) {
    absl::StrAppend(out, std::conditional_t<std::is_same_v<T, double>, double, float>(value));
  } else {
    absl::StrAppend(out, std::conditional_t<sizeof(T) <= 2, int, T>{value});
  }
}

/// Appends the text of element `i`.
void AppendElement(const Tensor& tensor, int64_t i, std::string* out) {
  const bool known =
      MatchType<float, double, half, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                uint32_t, int64_t, uint64_t, bool, complex64, complex128, std::string,
                ResourceHandle, Variant, qint8, qint16, qint32, quint8, quint16, float8_e5m2,
                float8_e4m3fn, int4, uint4>(tensor.type(), false, [&]<typename T>() {
        AppendElement(tensor.unchecked_data<T>()[i], out);
        return true;
      });
  if (!known) out->append("?");
}

/// Elements from `*next` on, of the dimensions `axis` and below, until `limit` elements are
/// printed.
void AppendNested(const Tensor& tensor, int axis, int64_t limit, int64_t* next, std::string* out) {
  if (axis == tensor.rank()) {
    AppendElement(tensor, (*next)++, out);
    return;
  }
  out->push_back('[');
  const bool innermost = axis + 1 == tensor.rank();
  for (int64_t i = 0; i < tensor.dim(axis); ++i) {
    if (*next >= limit) {
      out->append(i > 0 && innermost ? " ..." : "...");
      break;
    }
    if (i > 0 && innermost) out->push_back(' ');
    AppendNested(tensor, axis + 1, limit, next, out);
  }
  out->push_back(']');
}

}  // namespace

absl::Status Tensor::WrongCount(ElementType type, size_t values, const Shape& shape) {
  return InvalidArgument("a tensor of type ", ElementTypeName(type), " and shape ",
                         shape.ToString(), " has ", shape.num_elements(), " elements, but ", values,
                         " values are given");
}

absl::Status Tensor::CheckReadable(ElementType type) const {
  if (type_ != type) {
    return InvalidArgument("asked for elements of type ", ElementTypeName(type), ", but this is ",
                           Description(*this));
  }
  if (space() == MemorySpace::kDevice) {
    return InvalidArgument("the elements of ", Description(*this),
                           " are not in the host's memory: fetch it");
  }
  return absl::OkStatus();
}

absl::Status Tensor::CheckScalar(ElementType type) const {
  TROUPE_RETURN_IF_ERROR(CheckReadable(type));
  if (num_elements() == 1) return absl::OkStatus();
  return InvalidArgument("asked for a scalar, but this is ", Description(*this));
}

absl::StatusOr<Tensor> Tensor::Allocate(ElementType type, const Shape& shape,
                                        Allocator* allocator) {
  RefPtr<Buffer> buffer = Buffer::Allocate(allocator, type, shape.num_elements());
  if (!buffer) return AllocationError(type, shape, *allocator);
  void* data = buffer->data();
  return Tensor(type, shape, std::move(buffer), data);
}

Tensor Tensor::Uninitialized(ElementType type, const Shape& shape) {
  RefPtr<Buffer> buffer = Buffer::Allocate(HostAllocator(), type, shape.num_elements());
  if (!buffer) throw std::bad_alloc();
  void* data = buffer->data();
  return Tensor(type, shape, std::move(buffer), data);
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  assert(rank() > 0 && 0 <= begin && begin <= end && end <= dim(0));
  const int64_t rows = dim(0);
  const int64_t row_elements = rows > 0 ? num_elements() / rows : 0;
  const size_t offset = static_cast<size_t>(begin * row_elements) * ElementSize(type_);
  Shape shape = shape_;
  shape.set_dim(0, end - begin);
  return Tensor(type_, std::move(shape), buffer_, static_cast<char*>(data_) + offset);
}

absl::StatusOr<Tensor> Tensor::Clone(Allocator* allocator) const {
  if (!valid()) return Tensor();
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, Allocate(type_, shape_, allocator));
  const int64_t n = num_elements();
  switch (type_) {
    case ElementType::kString:
      std::copy_n(unchecked_data<std::string>(), n, copy.mutable_data<std::string>());
      break;
    case ElementType::kResource:
      std::copy_n(unchecked_data<ResourceHandle>(), n, copy.mutable_data<ResourceHandle>());
      break;
    case ElementType::kVariant:
      std::copy_n(unchecked_data<Variant>(), n, copy.mutable_data<Variant>());
      break;
    default:
      if (n > 0) std::memcpy(copy.mutable_raw_data(), data_, bytes());
  }
  return copy;
}

std::string Tensor::ToString(int max_elements) const {
  if (!valid()) return "<no tensor>";
  std::string text = absl::StrCat(ElementTypeName(type_), shape_.ToString(), " ");
  if (space() == MemorySpace::kDevice) return text + "<in device memory>";
  if (num_elements() == 0) return text + "[]";
  int64_t next = 0;
  AppendNested(*this, 0, max_elements, &next, &text);
  return text;
}

}  // namespace troupe
