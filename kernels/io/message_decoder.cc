#include "kernels/io/message_decoder.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/io/for_rows.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

/// Messages that a thread takes at a time.
constexpr int64_t kGrain = 16;
/// How deep messages in text may be nested, and types of messages may refer to one another where
/// messages are parsed: protobuf calls itself once for each level.
constexpr int kMostNested = 1000;

absl::Status DataLoss(std::string_view what) { return absl::DataLossError(StrCat(what)); }

/// Keeps the first thing that is wrong with a text.
class FirstTextError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Whether making a message of type `root` leads through more than `kMostNested` types, each of
/// which is first met in the one before.
bool NestedTooDeep(const Descriptor* root) {
  absl::flat_hash_set<const Descriptor*> seen = {root};
  std::vector<std::pair<const Descriptor*, int>> path = {{root, 0}};
  while (!path.empty()) {
    if (path.size() > kMostNested) return true;
    auto& [type, next] = path.back();
    if (next == type->field_count()) {
      path.pop_back();
      continue;
    }
    const Descriptor* inner = type->field(next++)->message_type();
    if (inner != nullptr && seen.insert(inner).second) path.emplace_back(inner, 0);
  }
  return false;
}

absl::StatusOr<Shape> WithLast(const Shape& shape, int64_t last) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.push_back(last);
  return Shape::Create(dims);
}

}  // namespace

/// Counts the values of one message.
struct MessageDecoder::Counts {
  int32_t* counts;  // Of fields in the order in which they were asked for.

  bool Value(const Field& field, uint32_t tag, CodedInputStream* input) {
    int32_t& count = counts[field.output];
    if (field.repeated || count == 0) ++count;
    return WireFormatLite::SkipField(input, tag);
  }
  bool Packed(const Field& field, CodedInputStream* input) {
    const uint32_t tag = WireFormatLite::MakeTag(field.number, field.codec->wire_type);
    while (input->BytesUntilLimit() > 0) {
      if (!Value(field, tag, input)) return false;
    }
    return true;
  }
};

/// Stores the values of one message, all of which `Counts` has counted.
struct MessageDecoder::Values {
  struct Array {
    void* values;  // Of the message, as many as there is room for.
    int64_t room;
    int64_t used = 0;
  };
  const Field* fields;
  Array* arrays;

  bool Value(const Field& field, uint32_t tag, CodedInputStream* input) {
    Array& array = arrays[&field - fields];
    const int64_t index = field.repeated ? array.used : 0;
    array.used = index + 1;
    return index < array.room && field.codec->read(input, tag, array.values, index);
  }
  bool Packed(const Field& field, CodedInputStream* input) {
    Array& array = arrays[&field - fields];
    if (array.used >= array.room) return false;
    // TensorFlow counts a packed value of a field that is not repeated, and ignores it.
    if (!field.repeated) return input->Skip(input->BytesUntilLimit());
    for (; input->BytesUntilLimit() > 0; ++array.used) {
      if (array.used >= array.room ||
          !field.codec->read_packed(input, 0, array.values, array.used)) {
        return false;
      }
    }
    return true;
  }
};

absl::StatusOr<std::unique_ptr<MessageDecoder>> MessageDecoder::Create(
    MessageType type, absl::Span<const std::string> field_names,
    absl::Span<const ElementType> types, const MessageDecoderOptions& options) {
  if (field_names.size() != types.size()) {
    return InvalidArgument("field_names has ", field_names.size(), " elements, output_types ",
                           types.size());
  }
  std::unique_ptr<MessageDecoder> decoder(new MessageDecoder(std::move(type)));
  for (size_t i = 0; i < types.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(decoder->AddField(field_names[i], types[i]));
  }
  std::stable_sort(decoder->fields_.begin(), decoder->fields_.end(),
                   [](const Field& a, const Field& b) { return a.number < b.number; });
  decoder->options_ = options;
  if (options.text || options.sanitize) TROUPE_RETURN_IF_ERROR(decoder->PrepareParsing());
  return decoder;
}

absl::Status MessageDecoder::AddField(const std::string& name, ElementType type) {
  const Descriptor* message = type_.descriptor;
  const FieldDescriptor* field = message->FindFieldByName(name);
  if (field == nullptr) {
    const FieldDescriptor* extension = message->file()->pool()->FindExtensionByName(name);
    if (extension != nullptr && extension->containing_type() == message) field = extension;
  }
  if (field == nullptr) {
    return InvalidArgument("messages of type ", message->full_name(), " have no field '", name,
                           "'");
  }
  const FieldCodec* codec = FindFieldCodec(field->type(), type);
  if (codec == nullptr) {
    return InvalidArgument("the field ", field->full_name(), " is of type ", field->type_name(),
                           ", which ", ElementTypeName(type), " does not hold");
  }
  fields_.push_back(
      {field, codec, static_cast<int64_t>(fields_.size()), field->number(), field->is_repeated()});
  return absl::OkStatus();
}

absl::Status MessageDecoder::PrepareParsing() {
  if (NestedTooDeep(type_.descriptor)) {
    return InvalidArgument("the message type ", type_.descriptor->full_name(),
                           " leads through more than ", kMostNested,
                           " others, which is more than are parsed; decode serialized messages "
                           "without sanitizing them");
  }
  prototype_ = factory_.GetPrototype(type_.descriptor);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MessageDecoder::Serialized(const std::string& bytes) const {
  const std::unique_ptr<Message> message(prototype_->New());
  if (options_.text) {
    TextFormat::Parser parser;
    FirstTextError error;
    parser.RecordErrorsTo(&error);
    parser.SetRecursionLimit(kMostNested);
    if (!parser.ParseFromString(bytes, message.get())) {
      return DataLoss(StrCat("wrong text of a message: ", error.text()));
    }
  } else if (!message->ParsePartialFromString(bytes)) {
    return DataLoss("the bytes are no serialized message");
  } else if (!message->IsInitialized()) {
    return DataLoss(StrCat("required fields are missing: ", message->InitializationErrorString()));
  }
  std::string serialized;
  {
    google::protobuf::io::StringOutputStream stream(&serialized);
    google::protobuf::io::CodedOutputStream to(&stream);
    to.SetSerializationDeterministic(true);
    if (message->ByteSizeLong() > INT_MAX || !message->SerializePartialToCodedStream(&to)) {
      return DataLoss("the message has more than 2 GiB");
    }
  }
  return serialized;
}

const MessageDecoder::Field* MessageDecoder::Find(int32_t number) const {
  const auto found =
      std::lower_bound(fields_.begin(), fields_.end(), number,
                       [](const Field& field, int32_t wanted) { return field.number < wanted; });
  return found != fields_.end() && found->number == number ? &*found : nullptr;
}

template <typename Visitor>
absl::Status MessageDecoder::Visit(std::string_view message, Visitor visitor) const {
  if (message.size() > INT_MAX) return DataLoss("the message has more than 2 GiB");
  CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                         static_cast<int>(message.size()));
  constexpr auto kPackedType = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  while (const uint32_t tag = input.ReadTag()) {
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    if (wire_type == WireFormatLite::WIRETYPE_END_GROUP) break;
    const Field* field = Find(WireFormatLite::GetTagFieldNumber(tag));
    bool read = false;
    if (field != nullptr && wire_type == field->codec->wire_type) {
      read = visitor.Value(*field, tag, &input);
    } else if (field != nullptr && wire_type == kPackedType) {
      int length = 0;
      read = field->codec->read_packed != nullptr && input.ReadVarintSizeAsInt(&length) &&
             length <= input.BytesUntilLimit();
      const auto limit = input.PushLimit(length);
      read = read && visitor.Packed(*field, &input);
      input.PopLimit(limit);
    } else {
      read = WireFormatLite::SkipField(&input, tag);
    }
    if (!read) {
      return DataLoss(StrCat("wrong bytes in field ", WireFormatLite::GetTagFieldNumber(tag),
                             ", before offset ", input.CurrentPosition()));
    }
  }
  if (!input.ConsumedEntireMessage()) {
    return DataLoss(StrCat("no tag of a field before offset ", input.CurrentPosition()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> MessageDecoder::Decode(const Tensor& messages,
                                                           ComputePool* pool) const {
  const int64_t count = messages.num_elements();
  const auto fields = static_cast<int64_t>(fields_.size());
  if (count == 0) return InvalidArgument("at least one message is needed");
  TROUPE_ASSIGN_OR_RETURN(const Shape sizes_shape, WithLast(messages.shape(), fields));
  TROUPE_ASSIGN_OR_RETURN(Tensor sizes, Tensor::Allocate(ElementType::kInt32, sizes_shape));
  auto* const counts = sizes.mutable_data<int32_t>();
  std::fill_n(counts, count * fields, 0);
  const auto* const strings = messages.unchecked_data<std::string>();
  std::vector<std::string> serialized(prototype_ != nullptr ? count : 0);
  const auto bytes_of = [&](int64_t i) -> std::string_view {
    return prototype_ != nullptr ? serialized[i] : strings[i];
  };
  const auto for_messages = [&](auto work) {
    return ForRows(pool, count, kGrain, [&](int64_t begin, int64_t end, RowFailed failed) {
      for (int64_t i = begin; i < end; ++i) {
        absl::Status status = work(i);
        if (!status.ok()) {
          return failed(i, WithContext(StrCat("message ", i, ": "), std::move(status)));
        }
      }
    });
  };

  TROUPE_RETURN_IF_ERROR(for_messages([&](int64_t i) -> absl::Status {
    if (prototype_ != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(serialized[i], Serialized(strings[i]));
    }
    return Visit(bytes_of(i), Counts{counts + i * fields});
  }));

  std::vector<Tensor> outputs(fields_.size() + 1);
  std::vector<Values::Array> all;
  for (const Field& field : fields_) {
    int32_t most = 1;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, counts[i * fields + field.output]);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, WithLast(messages.shape(), most));
    TROUPE_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(field.codec->type, shape));
    all.push_back({values.mutable_raw_data(), most});
    outputs[field.output + 1] = std::move(values);
  }
  outputs[0] = std::move(sizes);

  TROUPE_RETURN_IF_ERROR(for_messages([&](int64_t i) -> absl::Status {
    std::vector<Values::Array> arrays = all;
    for (size_t f = 0; f < arrays.size(); ++f) {
      arrays[f].values = static_cast<char*>(arrays[f].values) +
                         i * arrays[f].room * fields_[f].codec->element_size;
    }
    TROUPE_RETURN_IF_ERROR(Visit(bytes_of(i), Values{fields_.data(), arrays.data()}));
    for (size_t f = 0; f < arrays.size(); ++f) {
      fields_[f].codec->fill(*fields_[f].descriptor, arrays[f].values, arrays[f].used,
                             arrays[f].room);
    }
    return absl::OkStatus();
  }));
  return outputs;
}

}  // namespace troupe
