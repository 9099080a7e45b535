#include "net/tensor_codec.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxName = 1 << 16;

struct Codecs {
  std::mutex mutex;
  std::map<std::string, VariantCodec> by_name;
};

Codecs& AllCodecs() {
  static Codecs* codecs = new Codecs;
  return *codecs;
}

absl::Status Malformed(const char* what) {
  return InvalidArgument("a tensor of ", what, " is malformed");
}

// A rank of 255 says that it is not known, a size of -1 the same.
constexpr uint8_t kUnknownRank = 255;

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

absl::Status EncodeVariant(const Variant& value, int depth, std::string* out) {
  WireWriter writer(out);
  if (value.empty()) {
    writer.String("");
    return absl::OkStatus();
  }
  std::string name, body;
  VariantCodec codec{};
  {
    std::lock_guard<std::mutex> lock(AllCodecs().mutex);
    for (const auto& [key, candidate] : AllCodecs().by_name) {
      if (!candidate.handles(value)) continue;
      name = key;
      codec = candidate;
    }
  }
  if (name.empty()) {
    return absl::UnimplementedError(
        StrCat("variants of type ", value.type().name(), " cannot be sent to another process"));
  }
  TROUPE_RETURN_IF_ERROR(codec.encode(value, depth, &body));
  writer.String(name);
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
  VariantCodec codec{};
  {
    std::lock_guard<std::mutex> lock(AllCodecs().mutex);
    const auto found = AllCodecs().by_name.find(name);
    if (found == AllCodecs().by_name.end()) {
      return InvalidArgument("variants of kind \"", name, "\" are not known here");
    }
    codec = found->second;
  }
  return codec.decode(body, depth, allocator);
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

void RegisterVariantCodec(const std::string& name, const VariantCodec& codec) {
  std::lock_guard<std::mutex> lock(AllCodecs().mutex);
  AllCodecs().by_name[name] = codec;
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
