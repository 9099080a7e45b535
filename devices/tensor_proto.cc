#include "devices/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "devices/match_type.h"
#include "devices/narrow_types.h"
#include "devices/quantized.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"
#include "graph/protos/tensor.pb.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensor_content is little-endian; a big-endian machine would have to swap");

/// What a message may grow to by repeating its last value, or zeros.
constexpr int64_t kMaxExpandedBytes = int64_t{1} << 30;

std::string Describe(ElementType type, const Shape& shape) {
  return StrCat("TensorProto of type ", ElementTypeName(type), " and shape ", shape.ToString());
}

/// The values of a typed field as elements: element i is made of fields [i * Width, (i + 1) *
/// Width).
template <typename T>
struct FieldTraits;

#define TROUPE_FIELD(T, FIELD, FIELD_TYPE)                                     \
  template <>                                                                  \
  struct FieldTraits<T> {                                                      \
    static int64_t size(const TensorProto& p) { return p.FIELD##_val_size(); } \
    static T get(const TensorProto& p, int64_t i) {                            \
      return static_cast<T>(p.FIELD##_val(static_cast<int>(i)));               \
    }                                                                          \
    static void add(T value, TensorProto* p) {                                 \
      p->add_##FIELD##_val(static_cast<FIELD_TYPE>(value));                    \
    }                                                                          \
  };
TROUPE_FIELD(float, float, float)
TROUPE_FIELD(double, double, double)
TROUPE_FIELD(int8_t, int, int32_t)
TROUPE_FIELD(uint8_t, int, int32_t)
TROUPE_FIELD(int16_t, int, int32_t)
TROUPE_FIELD(uint16_t, int, int32_t)
TROUPE_FIELD(int32_t, int, int32_t)
TROUPE_FIELD(int64_t, int64, int64_t)
TROUPE_FIELD(uint32_t, uint32, uint32_t)
TROUPE_FIELD(uint64_t, uint64, uint64_t)
TROUPE_FIELD(bool, bool, bool)
TROUPE_FIELD(int4, int, int32_t)
TROUPE_FIELD(uint4, int, int32_t)
#undef TROUPE_FIELD

template <typename Int>
struct FieldTraits<Quantized<Int>> {
  static int64_t size(const TensorProto& p) { return p.int_val_size(); }
  static Quantized<Int> get(const TensorProto& p, int64_t i) {
    return Quantized<Int>(static_cast<Int>(p.int_val(static_cast<int>(i))));
  }
  static void add(Quantized<Int> value, TensorProto* p) { p->add_int_val(value.value); }
};

#define TROUPE_FLOAT8_FIELD(T)                                           \
  template <>                                                            \
  struct FieldTraits<T> {                                                \
    static int64_t size(const TensorProto& p) {                          \
      return static_cast<int64_t>(p.float8_val().size());                \
    }                                                                    \
    static T get(const TensorProto& p, int64_t i) {                      \
      return T::FromBits(static_cast<uint8_t>(p.float8_val()[i]));       \
    }                                                                    \
    static void add(T value, TensorProto* p) {                           \
      p->mutable_float8_val()->push_back(static_cast<char>(value.bits)); \
    }                                                                    \
  };
TROUPE_FLOAT8_FIELD(float8_e5m2)
TROUPE_FLOAT8_FIELD(float8_e4m3fn)
#undef TROUPE_FLOAT8_FIELD

#define TROUPE_HALF_FIELD(T)                                                      \
  template <>                                                                     \
  struct FieldTraits<T> {                                                         \
    static int64_t size(const TensorProto& p) { return p.half_val_size(); }       \
    static T get(const TensorProto& p, int64_t i) {                               \
      return T::FromBits(static_cast<uint16_t>(p.half_val(static_cast<int>(i)))); \
    }                                                                             \
    static void add(T value, TensorProto* p) { p->add_half_val(value.bits); }     \
  };
TROUPE_HALF_FIELD(half)
TROUPE_HALF_FIELD(bfloat16)
#undef TROUPE_HALF_FIELD

#define TROUPE_COMPLEX_FIELD(T, FIELD)                                             \
  template <>                                                                      \
  struct FieldTraits<T> {                                                          \
    static int64_t size(const TensorProto& p) { return p.FIELD##_val_size() / 2; } \
    static T get(const TensorProto& p, int64_t i) {                                \
      const int at = static_cast<int>(2 * i);                                      \
      return T(p.FIELD##_val(at), p.FIELD##_val(at + 1));                          \
    }                                                                              \
    static void add(T value, TensorProto* p) {                                     \
      p->add_##FIELD##_val(value.real());                                          \
      p->add_##FIELD##_val(value.imag());                                          \
    }                                                                              \
  };
TROUPE_COMPLEX_FIELD(complex64, scomplex)
TROUPE_COMPLEX_FIELD(complex128, dcomplex)
#undef TROUPE_COMPLEX_FIELD

template <>
struct FieldTraits<std::string> {
  static int64_t size(const TensorProto& p) { return p.string_val_size(); }
  static const std::string& get(const TensorProto& p, int64_t i) {
    return p.string_val(static_cast<int>(i));
  }
  static void add(const std::string& value, TensorProto* p) { p->add_string_val(value); }
};

/// Calls `f.template operator()<T>()` for the plain type.
template <typename R, typename F>
R SwitchPlain(ElementType type, R otherwise, F&& f) {
  return MatchType<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                   uint64_t, half, bfloat16, complex64, complex128, bool, qint8, qint16, qint32,
                   quint8, quint16, float8_e5m2, float8_e4m3fn, int4, uint4>(
      type, std::move(otherwise), std::forward<F>(f));
}

absl::Status CheckExpansion(ElementType type, const Shape& shape, int64_t held) {
  const int64_t missing = shape.num_elements() - held;
  if (missing <= 0) return absl::OkStatus();
  const int64_t bytes = MultiplyWithoutOverflow(missing, static_cast<int64_t>(ElementSize(type)));
  if (bytes >= 0 && bytes <= kMaxExpandedBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat(Describe(type, shape), " claims ", shape.num_elements(), " elements but holds ", held,
             "; at most ", kMaxExpandedBytes, " bytes may be filled by repeating a value"));
}

template <typename T>
absl::StatusOr<Tensor> FromFields(const TensorProto& proto, ElementType type, const Shape& shape) {
  using Traits = FieldTraits<T>;
  const int64_t n = shape.num_elements();
  const int64_t held = std::min(n, Traits::size(proto));
  TROUPE_RETURN_IF_ERROR(CheckExpansion(type, shape, held));
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  T* data = tensor.mutable_data<T>();
  for (int64_t i = 0; i < held; ++i) data[i] = Traits::get(proto, i);
  const T last = held > 0 ? T(data[held - 1]) : T();
  std::fill(data + held, data + n, last);
  return tensor;
}

/// That the content is as long as the shape wants, and how long that is.
absl::StatusOr<size_t> CheckContent(const TensorProto& proto, ElementType type,
                                    const Shape& shape) {
  const std::string& content = proto.tensor_content();
  const int64_t bytes =
      MultiplyWithoutOverflow(shape.num_elements(), static_cast<int64_t>(ElementSize(type)));
  if (bytes < 0 || static_cast<size_t>(bytes) != content.size()) {
    return InvalidArgument(Describe(type, shape), " has ", content.size(),
                           " bytes of tensor_content; expected ",
                           bytes < 0 ? std::string("more than 2^63") : StrCat(bytes));
  }
  return content.size();
}

absl::StatusOr<Tensor> FromContent(const TensorProto& proto, ElementType type, const Shape& shape) {
  TROUPE_RETURN_IF_ERROR(CheckContent(proto, type, shape).status());
  const std::string& content = proto.tensor_content();
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  if (type == ElementType::kBool) {
    // Any byte but 0 and 1 would be an invalid bool.
    std::transform(content.begin(), content.end(), tensor.mutable_data<bool>(),
                   [](char c) { return c != 0; });
  } else {
    std::memcpy(tensor.mutable_raw_data(), content.data(), content.size());
  }
  return tensor;
}

bool ReadVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes->empty()) return false;
    const uint8_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// The strings' lengths as varints, then their bytes.
absl::StatusOr<Tensor> StringsFromContent(const TensorProto& proto, const Shape& shape) {
  const std::string& content = proto.tensor_content();
  const int64_t n = shape.num_elements();
  const auto error = [&](const char* what) {
    return InvalidArgument(Describe(ElementType::kString, shape),
                           " has a malformed tensor_content: ", what, " (", content.size(),
                           " bytes)");
  };
  if (n > static_cast<int64_t>(content.size()))
    return error("too short for one length per element");
  std::string_view rest = content;
  std::vector<uint64_t> lengths(static_cast<size_t>(n));
  uint64_t sum = 0;
  for (uint64_t& length : lengths) {
    if (!ReadVarint(&rest, &length)) return error("a length is cut off");
    if (length > content.size()) return error("a string is longer than the content");
    sum += length;  // at most size^2, far below 2^64 for a message
  }
  if (sum != rest.size()) return error("the lengths do not add up to the bytes that follow");
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(ElementType::kString, shape));
  std::string* strings = tensor.mutable_data<std::string>();
  for (int64_t i = 0; i < n; ++i) {
    strings[i].assign(rest.data(), lengths[i]);
    rest.remove_prefix(lengths[i]);
  }
  return tensor;
}

absl::StatusOr<ResourceHandle> HandleFromProto(const ResourceHandleProto& proto) {
  ResourceHandle handle;
  handle.device = proto.device();
  handle.container = proto.container();
  handle.name = proto.name();
  handle.type_name = proto.maybe_type_name();
  handle.hash_code = proto.hash_code();
  for (const auto& item : proto.dtypes_and_shapes()) {
    TROUPE_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::FromProto(item.shape()));
    handle.types_and_shapes.emplace_back(static_cast<ElementType>(item.dtype()), std::move(shape));
  }
  return handle;
}

void HandleToProto(const ResourceHandle& handle, ResourceHandleProto* proto) {
  proto->set_device(handle.device);
  proto->set_container(handle.container);
  proto->set_name(handle.name);
  proto->set_maybe_type_name(handle.type_name);
  proto->set_hash_code(handle.hash_code);
  for (const auto& [type, shape] : handle.types_and_shapes) {
    auto* item = proto->add_dtypes_and_shapes();
    item->set_dtype(static_cast<DataType>(type));
    shape.ToProto(item->mutable_shape());
  }
}

absl::StatusOr<Tensor> HandlesFromFields(const TensorProto& proto, const Shape& shape) {
  const int64_t n = shape.num_elements();
  const int64_t held = std::min<int64_t>(n, proto.resource_handle_val_size());
  TROUPE_RETURN_IF_ERROR(CheckExpansion(ElementType::kResource, shape, held));
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(ElementType::kResource, shape));
  ResourceHandle* handles = tensor.mutable_data<ResourceHandle>();
  for (int64_t i = 0; i < held; ++i) {
    TROUPE_ASSIGN_OR_RETURN(handles[i],
                            HandleFromProto(proto.resource_handle_val(static_cast<int>(i))));
  }
  for (int64_t i = held; held > 0 && i < n; ++i) handles[i] = handles[held - 1];
  return tensor;
}

template <typename T>
void ToFields(const Tensor& tensor, TensorProto* proto) {
  for (const T& value : tensor.unchecked_values<T>()) FieldTraits<T>::add(value, proto);
}

}  // namespace

absl::StatusOr<Tensor> TensorFromProto(const TensorProto& proto) {
  const int number = static_cast<int>(proto.dtype());
  const ElementType type =
      number > 0 && number <= kRefOffset ? static_cast<ElementType>(number) : ElementType::kInvalid;
  if (ElementSize(type) == 0) {
    return InvalidArgument(
        "TensorProto of type ",
        type == ElementType::kInvalid ? StrCat("number ", number) : ElementTypeName(type),
        " cannot be read: tensors of this type are not supported");
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::FromProto(proto.tensor_shape()));
  const bool content = !proto.tensor_content().empty() && shape.num_elements() > 0;
  switch (type) {
    case ElementType::kString:
      return content ? StringsFromContent(proto, shape)
                     : FromFields<std::string>(proto, type, shape);
    case ElementType::kResource:
      return HandlesFromFields(proto, shape);
    case ElementType::kVariant:
      if (shape.num_elements() > 0) {
        return absl::UnimplementedError(
            StrCat(Describe(type, shape), " cannot be read: variants have no portable form"));
      }
      return Tensor::Allocate(type, shape);
    default:
      if (content) return FromContent(proto, type, shape);
      return SwitchPlain(type, absl::StatusOr<Tensor>(),
                         [&]<typename T>() { return FromFields<T>(proto, type, shape); });
  }
}

absl::StatusOr<Tensor> TakeTensorFromProto(TensorProto* proto) {
  constexpr size_t kWorthIt = 4096;
  const ElementType type = static_cast<ElementType>(proto->dtype());
  if (proto->tensor_content().size() < kWorthIt || proto->dtype() <= 0 ||
      proto->dtype() > kRefOffset || !IsPlain(type) || type == ElementType::kBool) {
    return TensorFromProto(*proto);
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::FromProto(proto->tensor_shape()));
  TROUPE_RETURN_IF_ERROR(CheckContent(*proto, type, shape).status());
  auto* content = new std::string(std::move(*proto->mutable_tensor_content()));
  RefPtr<Buffer> buffer = Buffer::Wrap(
      content->data(), content->size(),
      [](void*, void* owner) { delete static_cast<std::string*>(owner); }, content);
  return Tensor(type, shape, std::move(buffer), content->data());
}

absl::StatusOr<Tensor> TakeWholeTensorFromProto(TensorProto* proto) {
  // An element takes a byte at least. A product that overflows is found when the shape is made.
  double elements = 1;
  for (const auto& dim : proto->tensor_shape().dim()) elements *= static_cast<double>(dim.size());
  if (elements > static_cast<double>(proto->ByteSizeLong())) {
    return InvalidArgument("a TensorProto of ", proto->ByteSizeLong(), " bytes claims ", elements,
                           " elements");
  }
  return TakeTensorFromProto(proto);
}

void TensorToProto(const Tensor& tensor, TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(static_cast<DataType>(tensor.type()));
  tensor.shape().ToProto(proto->mutable_tensor_shape());
  if (!tensor.valid()) return;
  switch (tensor.type()) {
    case ElementType::kString:
      return ToFields<std::string>(tensor, proto);
    case ElementType::kResource:
      for (const ResourceHandle& handle : tensor.unchecked_values<ResourceHandle>()) {
        HandleToProto(handle, proto->add_resource_handle_val());
      }
      return;
    case ElementType::kVariant:
      for (const Variant& value : tensor.unchecked_values<Variant>()) {
        // What it holds stays here; the type's name tells a reader what is missing.
        proto->add_variant_val()->set_type_name(value.empty() ? "" : value.type().name());
      }
      return;
    default:
      if (tensor.num_elements() > 1) {
        proto->set_tensor_content(tensor.raw_data(), tensor.bytes());
      } else {
        SwitchPlain(tensor.type(), false, [&]<typename T>() {
          ToFields<T>(tensor, proto);
          return true;
        });
      }
  }
}

}  // namespace troupe
