#include "api/data/position.h"

#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/tensor_proto.h"
#include "graph/protos/tensor.pb.h"

namespace troupe::data {

void PositionWriter::Number(uint64_t value) { AppendVarint(value, &bytes_); }

void PositionWriter::Text(std::string_view text) {
  Number(text.size());
  bytes_.append(text);
}

absl::Status PositionWriter::Put(const Element& element) {
  if (full()) {
    return absl::ResourceExhaustedError(StrCat("the position has more than ", most_, " bytes"));
  }
  Number(element.components.size());
  for (size_t i = 0; i < element.components.size(); ++i) {
    const Tensor& tensor = element.components[i];
    Number(element.is_bytes(i) ? 1 : 0);
    if (element.is_bytes(i)) {
      Text(BytesOf(tensor));
      continue;
    }
    if (!IsPlain(tensor.type()) && tensor.type() != ElementType::kString) {
      return absl::UnimplementedError(StrCat("the position holds an element with a tensor of type ",
                                             ElementTypeName(tensor.type()),
                                             ", which cannot be saved"));
    }
    TensorProto proto;
    TensorToProto(tensor, &proto);
    if (proto.ByteSizeLong() > INT32_MAX) {
      return absl::ResourceExhaustedError(
          StrCat("an element of ", proto.ByteSizeLong(),
                 " bytes takes 2 GiB or more, and cannot be saved"));
    }
    Text(proto.SerializeAsString());
  }
  return absl::OkStatus();
}

absl::Status PositionWriter::Put(const Block& elements) {
  Number(elements.size());
  for (const Element& element : elements) TROUPE_RETURN_IF_ERROR(Put(element));
  return absl::OkStatus();
}

void PositionReader::Refuse() {
  Fail(InvalidArgument("the position is damaged, or that of other stages"));
}

void PositionReader::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  bytes_ = {};
}

uint64_t PositionReader::Number() {
  uint64_t value = 0;
  if (!TakeVarint(&bytes_, &value)) {
    Refuse();
    return 0;
  }
  return value;
}

uint64_t PositionReader::Number(uint64_t most) {
  const uint64_t value = Number();
  if (value <= most) return value;
  Refuse();
  return 0;
}

std::string_view PositionReader::Text() {
  const uint64_t size = Number();
  if (size > bytes_.size()) {
    Refuse();
    return {};
  }
  const std::string_view text = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return text;
}

void PositionReader::Expect(std::string_view text) {
  const std::string_view found = Text();
  if (!status_.ok() || found == text) return;
  status_ = InvalidArgument("the position is that of another pipeline: it has ",
                            found.substr(0, 80), " where this one has ", text);
  bytes_ = {};
}

void PositionReader::Expect(uint64_t value) {
  if (Number() != value) Refuse();
}

Element PositionReader::TakeElement() {
  Element element;
  const uint64_t n = Number();
  // Each takes two bytes at least.
  if (n > bytes_.size()) Refuse();
  for (uint64_t i = 0; i < n && status_.ok(); ++i) {
    const bool as_bytes = Flag();
    const std::string_view text = Text();
    if (!status_.ok()) break;
    if (as_bytes) {
      if (i >= 64) {
        Refuse();
        break;
      }
      absl::StatusOr<Tensor> bytes =
          Tensor::Allocate(ElementType::kUint8, Shape({static_cast<int64_t>(text.size())}));
      if (!bytes.ok()) {
        status_ = bytes.status();
        break;
      }
      text.copy(static_cast<char*>(bytes->mutable_raw_data()), text.size());
      element.components.push_back(*std::move(bytes));
      element.as_bytes |= uint64_t{1} << i;
      continue;
    }
    TensorProto proto;
    absl::StatusOr<Tensor> tensor = InvalidArgument("no message");
    if (text.size() <= INT32_MAX &&
        proto.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
      tensor = TakeWholeTensorFromProto(&proto);
    }
    if (!tensor.ok() || !tensor->valid()) {
      Refuse();
      break;
    }
    element.components.push_back(*std::move(tensor));
  }
  return element;
}

Block PositionReader::TakeBlock() {
  Block block;
  const uint64_t n = Number();
  for (uint64_t i = 0; i < n && status_.ok(); ++i) {
    if (bytes_.empty()) {
      Refuse();
      break;
    }
    block.push_back(TakeElement());
  }
  if (!status_.ok()) block.clear();
  return block;
}

}  // namespace troupe::data
