#include "kernels/io/message_encoder.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/io/for_rows.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

/// Messages that a thread takes at a time.
constexpr int64_t kGrain = 16;

uint8_t* WriteTag(const FieldDescriptor& field, FieldCodec::WireType type, uint8_t* to) {
  return CodedOutputStream::WriteVarint32ToArray(WireFormatLite::MakeTag(field.number(), type), to);
}

Shape WithoutLast(Shape shape) {
  shape.RemoveDim(shape.rank() - 1);
  return shape;
}

}  // namespace

absl::StatusOr<MessageEncoder> MessageEncoder::Create(MessageType type,
                                                      absl::Span<const std::string> field_names,
                                                      absl::Span<const ElementType> types) {
  if (field_names.size() != types.size()) {
    return InvalidArgument("there are ", field_names.size(), " field_names, but values for ",
                           types.size(), " fields");
  }
  if (types.empty()) return InvalidArgument("no field is named");
  MessageEncoder encoder(std::move(type));
  for (size_t i = 0; i < types.size(); ++i) {
    const FieldDescriptor* field = encoder.type_.descriptor->FindFieldByName(field_names[i]);
    if (field == nullptr) {
      return InvalidArgument("messages of type ", encoder.type_.descriptor->full_name(),
                             " have no field '", field_names[i], "'");
    }
    const FieldCodec* codec = FindFieldCodec(field->type(), types[i]);
    if (codec == nullptr) {
      return InvalidArgument("the field ", field->full_name(), " is of type ", field->type_name(),
                             ", of which ", ElementTypeName(types[i]), " holds no values");
    }
    encoder.fields_.push_back({field, codec, static_cast<int64_t>(i)});
  }
  std::stable_sort(encoder.fields_.begin(), encoder.fields_.end(),
                   [](const Field& a, const Field& b) {
                     return a.descriptor->number() < b.descriptor->number();
                   });
  return encoder;
}

absl::Status MessageEncoder::Check(const Tensor& sizes, absl::Span<const Tensor> values) const {
  const Shape& first = values[0].shape();
  for (const Field& field : fields_) {
    const Shape& shape = values[field.input].shape();
    if (shape.rank() < 2 || first.rank() < 2 || WithoutLast(shape) != WithoutLast(first)) {
      return InvalidArgument(
          "values must be matrices or of higher rank, of one shape but for the "
          "last size: those of ",
          field.descriptor->name(), " have the shape ", shape.ToString(), ", the first ones ",
          first.ToString());
    }
  }
  const auto count = static_cast<int64_t>(fields_.size());
  const bool fits = sizes.rank() > 0 && sizes.shape().dim(sizes.rank() - 1) == count &&
                    WithoutLast(sizes.shape()) == WithoutLast(first);
  if (!fits) {
    return InvalidArgument("sizes has the shape ", sizes.shape().ToString(), "; expected that of ",
                           "the values, ", first.ToString(), ", with ", count, " as the last size");
  }
  const auto sizes_of = sizes.unchecked_values<int32_t>();
  for (const Field& field : fields_) {
    const Shape& shape = values[field.input].shape();
    const int64_t most = shape.dim(shape.rank() - 1);
    for (size_t i = field.input; i < sizes_of.size(); i += fields_.size()) {
      if (sizes_of[i] <= most) continue;
      return InvalidArgument("message ", i / fields_.size(), " has ", sizes_of[i], " values of ",
                             field.descriptor->name(), ", but only ", most, " are there");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> MessageEncoder::Encode(const Tensor& sizes, absl::Span<const Tensor> values,
                                              ComputePool* pool) const {
  TROUPE_RETURN_IF_ERROR(Check(sizes, values));
  TROUPE_ASSIGN_OR_RETURN(Tensor output,
                          Tensor::Allocate(ElementType::kString, WithoutLast(values[0].shape())));
  const auto* const sizes_of = sizes.unchecked_data<int32_t>();
  auto* const strings = output.mutable_data<std::string>();
  TROUPE_RETURN_IF_ERROR(ForRows(
      pool, output.num_elements(), kGrain, [&](int64_t begin, int64_t end, RowFailed failed) {
        std::vector<Part> parts;
        for (int64_t i = begin; i < end; ++i) {
          parts.clear();
          for (const Field& field : fields_) {
            const Tensor& all = values[field.input];
            const int64_t count = sizes_of[i * static_cast<int64_t>(fields_.size()) + field.input];
            if (count <= 0) continue;
            const auto row_bytes =
                static_cast<size_t>(all.shape().dim(all.rank() - 1)) * field.codec->element_size;
            const void* first = static_cast<const char*>(all.raw_data()) + i * row_bytes;
            parts.push_back({&field, first, count, field.codec->size(first, count)});
          }
          absl::Status status = Write(parts, &strings[i]);
          if (!status.ok()) return failed(i, std::move(status));
        }
      }));
  return output;
}

absl::Status MessageEncoder::Write(absl::Span<const Part> parts, std::string* to) {
  size_t bytes = 0;
  for (const Part& part : parts) {
    const FieldDescriptor& field = *part.field->descriptor;
    const size_t tag =
        WireFormatLite::TagSize(field.number(), WireFormatLite::FieldType(field.type()));
    bytes += part.value_bytes;
    bytes += field.is_packed() ? tag + CodedOutputStream::VarintSize64(part.value_bytes)
                               : tag * static_cast<size_t>(part.count);
  }
  if (bytes > INT_MAX) {
    return absl::ResourceExhaustedError(
        StrCat("a message of ", bytes, " bytes; protocol buffers have 2 GiB at most"));
  }
  to->resize(bytes);
  auto* at = reinterpret_cast<uint8_t*>(to->data());
  for (const Part& part : parts) {
    const FieldDescriptor& field = *part.field->descriptor;
    const FieldCodec& codec = *part.field->codec;
    if (field.is_packed()) {
      at = WriteTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, at);
      at = CodedOutputStream::WriteVarint64ToArray(part.value_bytes, at);
    }
    for (int64_t i = 0; i < part.count; ++i) {
      if (!field.is_packed()) at = WriteTag(field, codec.wire_type, at);
      at = codec.write(part.values, i, at);
      if (codec.wire_type == WireFormatLite::WIRETYPE_START_GROUP) {
        at = WriteTag(field, WireFormatLite::WIRETYPE_END_GROUP, at);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
