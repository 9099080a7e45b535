#include "net/tensor_codec.h"

#include <cstring>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/control/optional.h"
#include "kernels/data/tensor_list.h"
#include "net/wire.h"

namespace troupe {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxName = 1 << 16;

absl::Status Malformed(const char* what) {
  return InvalidArgument("a tensor of ", what, " is malformed");
}

// A rank of 255 says that it is not known, a size of -1 the same.
constexpr uint8_t kUnknownRank = 255;

void EncodePartialShape(const PartialShape& shape, std::string* out) {
  WireWriter writer(out);
  writer.Number(shape.unknown_rank() ? kUnknownRank : static_cast<uint8_t>(shape.rank()));
  for (const int64_t dim : shape.dims()) writer.Number(dim);
}

bool DecodePartialShape(WireReader* reader, PartialShape* shape) {
  uint8_t rank = 0;
  if (!reader->Number(&rank)) return false;
  if (rank == kUnknownRank) {
    *shape = PartialShape();
    return true;
  }
  int64_t dims[Shape::kMaxRank + 1];
  for (int i = 0; i < rank; ++i) {
    if (!reader->Number(&dims[i])) return false;
  }
  absl::StatusOr<PartialShape> created = PartialShape::Create(absl::MakeConstSpan(dims, rank));
  if (!created.ok()) return false;
  *shape = *std::move(created);
  return true;
}

void EncodeHandle(const ResourceHandle& handle, std::string* out) {
  WireWriter writer(out);
  writer.String(handle.device);
  writer.String(handle.container);
  writer.String(handle.name);
  writer.String(handle.type_name);
  writer.Number(handle.hash_code);
  writer.Varint(handle.types_and_shapes.size());
  for (const auto& [type, shape] : handle.types_and_shapes) {
    writer.Number(static_cast<uint8_t>(type));
    EncodePartialShape(shape, out);
  }
}

bool DecodeHandle(WireReader* reader, ResourceHandle* handle) {
  uint64_t count = 0;
  if (!reader->String(&handle->device, kMaxName) || !reader->String(&handle->container, kMaxName) ||
      !reader->String(&handle->name, kMaxName) || !reader->String(&handle->type_name, kMaxName) ||
      !reader->Number(&handle->hash_code) || !reader->Varint(&count) || count > reader->left()) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t type = 0;
    PartialShape shape;
    if (!reader->Number(&type) || !DecodePartialShape(reader, &shape)) return false;
    handle->types_and_shapes.emplace_back(static_cast<ElementType>(type), std::move(shape));
  }
  return true;
}

// A list: element type, element shape, most elements, number of elements, how many are stored, and
// those.
absl::Status EncodeList(const TensorList& list, int depth, std::string* out) {
  WireWriter writer(out);
  writer.Number(static_cast<uint8_t>(list.type()));
  EncodePartialShape(list.element_shape(), out);
  writer.Number(list.max_size());
  writer.Number(list.size());
  writer.Varint(list.stored().size());
  for (const Tensor& element : list.stored()) {
    TROUPE_RETURN_IF_ERROR(EncodeNestedTensor(element, depth, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<RefPtr<VariantValue>> DecodeList(std::string_view bytes, int depth,
                                                Allocator* allocator) {
  WireReader reader(bytes);
  uint8_t type = 0;
  PartialShape shape;
  int64_t max_size = 0, size = 0;
  uint64_t stored = 0;
  if (!reader.Number(&type) || !DecodePartialShape(&reader, &shape) || !reader.Number(&max_size) ||
      !reader.Number(&size) || !reader.Varint(&stored) || size < 0 || size > TensorList::kMaxSize ||
      stored > static_cast<uint64_t>(size) || stored > reader.left()) {
    return Malformed("tensor lists");
  }
  auto list = MakeRef<TensorList>(static_cast<ElementType>(type), shape, max_size);
  list->Resize(size);
  bytes.remove_prefix(bytes.size() - reader.left());
  for (int64_t i = 0; i < static_cast<int64_t>(stored); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Tensor element, DecodeNestedTensor(&bytes, depth, allocator));
    if (!element.valid()) continue;
    TROUPE_RETURN_IF_ERROR(list->Check(element, "append"));
    TROUPE_RETURN_IF_ERROR(list->Set(i, std::move(element)));
  }
  if (!bytes.empty()) return Malformed("tensor lists");
  return {std::move(list)};
}

// An optional: 0, or the number of components plus 1, and those.
absl::Status EncodeOptional(const Optional& optional, int depth, std::string* out) {
  WireWriter(out).Varint(optional.has_value() ? optional.components().size() + 1 : 0);
  for (const Tensor& component : optional.components()) {
    TROUPE_RETURN_IF_ERROR(EncodeNestedTensor(component, depth, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<RefPtr<VariantValue>> DecodeOptional(std::string_view bytes, int depth,
                                                    Allocator* allocator) {
  WireReader reader(bytes);
  uint64_t count = 0;
  if (!reader.Varint(&count) || count > reader.left() + 1) return Malformed("optionals");
  bytes.remove_prefix(bytes.size() - reader.left());
  auto optional = MakeRef<Optional>();
  std::vector<Tensor> components;
  for (uint64_t i = 1; i < count; ++i) {
    TROUPE_ASSIGN_OR_RETURN(components.emplace_back(),
                            DecodeNestedTensor(&bytes, depth, allocator));
  }
  if (count > 0) TROUPE_RETURN_IF_ERROR(optional->Set(std::move(components)));
  if (!bytes.empty()) return Malformed("optionals");
  return {std::move(optional)};
}

absl::Status EncodeVariant(const Variant& variant, int depth, std::string* out) {
  WireWriter writer(out);
  if (variant.empty()) {
    writer.String("");
    return absl::OkStatus();
  }
  const VariantValue* const value = ValueOf(variant);
  if (value == nullptr) {
    return absl::UnimplementedError(
        StrCat("variants of type ", variant.type().name(), " cannot be sent to another process"));
  }
  std::string body;
  TROUPE_RETURN_IF_ERROR(value->kind() == VariantValue::Kind::kList
                             ? EncodeList(static_cast<const TensorList&>(*value), depth, &body)
                             : EncodeOptional(static_cast<const Optional&>(*value), depth, &body));
  writer.String(value->name());
  writer.String(body);
  return absl::OkStatus();
}

absl::StatusOr<Variant> DecodeVariant(WireReader* reader, int depth, Allocator* allocator) {
  std::string name;
  uint64_t size = 0;
  std::string_view body;
  if (!reader->String(&name, 256)) return Malformed("variants");
  if (name.empty()) return Variant();
  if (!reader->Varint(&size) || !reader->Raw(size, &body)) return Malformed("variants");
  if (name != "TensorList" && name != "Optional") {
    return InvalidArgument("variants of kind \"", name, "\" are not known here");
  }
  TROUPE_ASSIGN_OR_RETURN(RefPtr<VariantValue> value, name == "Optional"
                                                          ? DecodeOptional(body, depth, allocator)
                                                          : DecodeList(body, depth, allocator));
  return Variant(std::move(value));
}

absl::Status EncodeAt(const Tensor& tensor, int depth, std::string* out) {
  if (depth > kMaxDepth) {
    return InvalidArgument("variants nested more than ", kMaxDepth,
                           " deep cannot be sent to another process");
  }
  WireWriter writer(out);
  switch (tensor.type()) {
    case ElementType::kString: {
      size_t bytes = 0;
      for (const std::string& s : tensor.unchecked_values<std::string>()) bytes += s.size() + 10;
      out->reserve(out->size() + bytes);
      for (const std::string& s : tensor.unchecked_values<std::string>()) writer.String(s);
      return absl::OkStatus();
    }
    case ElementType::kResource:
      for (const ResourceHandle& h : tensor.unchecked_values<ResourceHandle>())
        EncodeHandle(h, out);
      return absl::OkStatus();
    case ElementType::kVariant:
      for (const Variant& v : tensor.unchecked_values<Variant>()) {
        TROUPE_RETURN_IF_ERROR(EncodeVariant(v, depth, out));
      }
      return absl::OkStatus();
    default:
      writer.Raw({static_cast<const char*>(tensor.raw_data()), tensor.bytes()});
      return absl::OkStatus();
  }
}

absl::StatusOr<Tensor> DecodeAt(ElementType type, const Shape& shape, std::string_view bytes,
                                int depth, Allocator* allocator) {
  if (depth > kMaxDepth) return Malformed("variants (nested too deep)");
  const uint64_t count = static_cast<uint64_t>(shape.num_elements());
  if (!IsPlain(type) && count > bytes.size()) return Malformed("another size");
  if (IsPlain(type)) {
    const uint64_t size = ElementSize(type);
    if (size == 0 || bytes.size() % size != 0 || bytes.size() / size != count) {
      return Malformed("another size");
    }
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape, allocator));
  WireReader reader(bytes);
  switch (type) {
    case ElementType::kString:
      for (std::string& s : tensor.mutable_values<std::string>()) {
        if (!reader.String(&s, SIZE_MAX)) return Malformed("strings");
      }
      break;
    case ElementType::kResource:
      for (ResourceHandle& h : tensor.mutable_values<ResourceHandle>()) {
        if (!DecodeHandle(&reader, &h)) return Malformed("resources");
      }
      break;
    case ElementType::kVariant:
      for (Variant& v : tensor.mutable_values<Variant>()) {
        TROUPE_ASSIGN_OR_RETURN(v, DecodeVariant(&reader, depth, allocator));
      }
      break;
    default:
      if (!bytes.empty()) std::memcpy(tensor.mutable_raw_data(), bytes.data(), bytes.size());
      if (type == ElementType::kBool) {
        // Any other byte in a bool would be undefined behaviour for whoever reads it.
        uint8_t* at = static_cast<uint8_t*>(tensor.mutable_raw_data());
        for (size_t i = 0; i < bytes.size(); ++i) at[i] = at[i] != 0;
      }
      return tensor;
  }
  if (!reader.done()) return Malformed("elements with more bytes than they need");
  return tensor;
}

}  // namespace

absl::Status EncodeElements(const Tensor& tensor, std::string* out) {
  return EncodeAt(tensor, 0, out);
}

absl::StatusOr<Tensor> DecodeElements(ElementType type, const Shape& shape, std::string_view bytes,
                                      Allocator* allocator) {
  return DecodeAt(type, shape, bytes, 0, allocator);
}

uint64_t DecodedBytes(ElementType type, const Shape& shape, uint64_t wire_bytes) {
  if (IsPlain(type)) return wire_bytes;
  const uint64_t element = type == ElementType::kString     ? 32
                           : type == ElementType::kResource ? 192
                                                            : 64;
  return wire_bytes + element * static_cast<uint64_t>(shape.num_elements());
}

absl::Status EncodeNestedTensor(const Tensor& tensor, int depth, std::string* out) {
  WireWriter writer(out);
  writer.Number(static_cast<uint8_t>(tensor.type()));
  if (!tensor.valid()) return absl::OkStatus();
  writer.Number(static_cast<uint8_t>(tensor.rank()));
  for (const int64_t dim : tensor.shape().dims()) writer.Number(dim);
  std::string elements;
  TROUPE_RETURN_IF_ERROR(EncodeAt(tensor, depth + 1, &elements));
  writer.String(elements);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DecodeNestedTensor(std::string_view* bytes, int depth,
                                          Allocator* allocator) {
  WireReader reader(*bytes);
  uint8_t type = 0;
  PartialShape partial;
  uint64_t size = 0;
  std::string_view elements;
  if (!reader.Number(&type)) return Malformed("tensors");
  if (type == 0) {
    bytes->remove_prefix(1);
    return Tensor();
  }
  if (!DecodePartialShape(&reader, &partial) || !partial.fully_known() || !reader.Varint(&size) ||
      !reader.Raw(size, &elements)) {
    return Malformed("tensors");
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, partial.ToShape());
  bytes->remove_prefix(bytes->size() - reader.left());
  return DecodeAt(static_cast<ElementType>(type), shape, elements, depth + 1, allocator);
}

Tensor AsTensor(std::string&& bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  auto* owner = new std::string(std::move(bytes));
  RefPtr<Buffer> buffer = Buffer::Wrap(
      owner->data(), owner->size(),
      [](void*, void* context) { delete static_cast<std::string*>(context); }, owner);
  return Tensor(ElementType::kUint8, Shape({size}), std::move(buffer), owner->data());
}

}  // namespace troupe
