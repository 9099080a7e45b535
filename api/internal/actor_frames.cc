#include "api/internal/actor_frames.h"

#include <cstring>
#include <utility>

#include "api/actors.h"
#include "net/tensor_codec.h"

namespace troupe {

namespace {
// Larger tensors travel beside the frame.
constexpr size_t kInlineBytes = 4096;
constexpr int kMaxDepth = 64;
// How a tensor is written.
constexpr uint8_t kInline = 0, kBeside = 1;

bool IsPlain(const Tensor& tensor) {
  return tensor.type() != ElementType::kVariant && tensor.type() != ElementType::kResource;
}
}  // namespace

caf::error FrameSerializer::Add(const Tensor& tensor) {
  if (tensor.valid() && tensor.space() == MemorySpace::kDevice) {
    return ToCafError(
        absl::UnimplementedError("tensors in a device's memory do not travel to actors"));
  }
  if (tensor.valid() && IsPlain(tensor) &&
      (tensor.type() == ElementType::kString || tensor.bytes() > kInlineBytes)) {
    tensors_->push_back(tensor);
    return Put(kBeside);
  }
  Put(kInline);
  const absl::Status encoded = EncodeNestedTensor(tensor, 0, body_);
  return encoded.ok() ? caf::error() : ToCafError(encoded);
}

caf::error FrameSerializer::begin_object(uint16_t& number, std::string& name) {
  Put(number);
  return number == 0 ? apply_impl(name) : caf::error();
}

caf::error FrameSerializer::begin_sequence(size_t& size) {
  writer_.Varint(size);
  return caf::none;
}

caf::error FrameSerializer::apply_raw(size_t size, void* data) {
  writer_.Raw({static_cast<const char*>(data), size});
  return caf::none;
}

caf::error FrameSerializer::PutString(size_t size, size_t unit, const void* data) {
  writer_.Varint(size);
  writer_.Raw({static_cast<const char*>(data), size * unit});
  return caf::none;
}

caf::error FrameDeserializer::Take(Tensor* tensor) {
  uint8_t how = 0;
  if (caf::error error = Get(how)) return error;
  if (how == kBeside) {
    if (next_tensor_ == tensors_->size()) return caf::sec::end_of_stream;
    *tensor = std::move((*tensors_)[next_tensor_++]);
    return caf::none;
  }
  if (how != kInline) return caf::sec::invalid_argument;
  absl::StatusOr<Tensor> decoded = DecodeNestedTensor(&left_, 0, HostAllocator());
  if (!decoded.ok()) return ToCafError(decoded.status());
  *tensor = *std::move(decoded);
  return caf::none;
}

caf::error FrameDeserializer::begin_object(uint16_t& number, std::string& name) {
  if (++depth_ > kMaxDepth) return caf::sec::invalid_argument;
  if (caf::error error = Get(number)) return error;
  return number == 0 ? GetString(name) : caf::error();
}

caf::error FrameDeserializer::end_object() {
  --depth_;
  return caf::none;
}

caf::error FrameDeserializer::begin_sequence(size_t& size) {
  if (++depth_ > kMaxDepth) return caf::sec::invalid_argument;
  return GetSize(1, &size);
}

caf::error FrameDeserializer::end_sequence() {
  --depth_;
  return caf::none;
}

caf::error FrameDeserializer::apply_raw(size_t size, void* data) {
  if (size > left_.size()) return caf::sec::end_of_stream;
  std::memcpy(data, left_.data(), size);
  left_.remove_prefix(size);
  return caf::none;
}

caf::error FrameDeserializer::GetSize(size_t unit, size_t* size) {
  WireReader reader(left_);
  uint64_t count = 0;
  if (!reader.Varint(&count) || count > reader.left() / unit) return caf::sec::end_of_stream;
  left_.remove_prefix(left_.size() - reader.left());
  *size = count;
  return caf::none;
}

caf::error inspect(caf::serializer& sink, const Tensor& tensor) {
  auto* frame = dynamic_cast<FrameSerializer*>(&sink);
  return frame == nullptr ? caf::error(caf::sec::invalid_argument) : frame->Add(tensor);
}

caf::error inspect(caf::deserializer& source, Tensor& tensor) {
  auto* frame = dynamic_cast<FrameDeserializer*>(&source);
  return frame == nullptr ? caf::error(caf::sec::invalid_argument) : frame->Take(&tensor);
}

}  // namespace troupe
