// A protocol buffer message, its text or its description from outside: an error, or tensors of
// which messages are made that hold the same. The first byte says which of them the rest is.
#include <google/protobuf/descriptor.pb.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/io/message_decoder.h"
#include "kernels/io/message_encoder.h"

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;
using troupe::ElementType;
using troupe::Tensor;

void Check(bool right) {
  if (!right) __builtin_trap();
}

/// A type with fields of every type: f1 to f18 one value, f19 to f36 several, f37 to f54 packed.
std::string EveryField() {
  FileDescriptorSet set;
  FileDescriptorProto* file = set.add_file();
  file->set_name("f.proto");
  auto* message = file->add_message_type();
  message->set_name("M");
  auto* color = file->add_enum_type();
  color->set_name("E");
  auto* red = color->add_value();
  red->set_name("RED");
  red->set_number(3);
  message->add_nested_type()->set_name("G");
  for (int number = 1; number <= 3 * FieldDescriptor::MAX_TYPE; ++number) {
    FieldDescriptorProto* field = message->add_field();
    const auto type = FieldDescriptorProto::Type((number - 1) % FieldDescriptor::MAX_TYPE + 1);
    const int group = (number - 1) / FieldDescriptor::MAX_TYPE;
    field->set_name("f" + std::to_string(number));
    field->set_number(number);
    field->set_type(type);
    field->set_label(group == 0 ? FieldDescriptorProto::LABEL_OPTIONAL
                                : FieldDescriptorProto::LABEL_REPEATED);
    if (type == FieldDescriptorProto::TYPE_ENUM) field->set_type_name(".E");
    if (type == FieldDescriptorProto::TYPE_GROUP) field->set_type_name(".M.G");
    if (type == FieldDescriptorProto::TYPE_MESSAGE) field->set_type_name(".M");
    const bool bytes =
        type >= FieldDescriptorProto::TYPE_STRING && type <= FieldDescriptorProto::TYPE_BYTES;
    if (group == 2 && !bytes) field->mutable_options()->set_packed(true);
  }
  return set.SerializeAsString();
}

/// The names of all fields but groups, and the narrowest types that hold their values.
struct Fields {
  std::vector<std::string> names;
  std::vector<ElementType> types;

  explicit Fields(const google::protobuf::Descriptor& message) {
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      if (field.type() == FieldDescriptor::TYPE_GROUP) continue;
      for (const ElementType type :
           {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32, ElementType::kInt64,
            ElementType::kUint32, ElementType::kUint64, ElementType::kBool, ElementType::kString}) {
        if (troupe::FindFieldCodec(field.type(), type) == nullptr) continue;
        names.push_back(field.name());
        types.push_back(type);
        break;
      }
    }
  }
};

bool Same(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  if (a.type() != ElementType::kString) {
    return a.bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
  }
  const auto x = a.unchecked_values<std::string>(), y = b.unchecked_values<std::string>();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

void DecodeAndEncode(const std::string& source, const std::string& name, const Tensor& messages,
                     const troupe::MessageDecoderOptions& options) {
  auto type = troupe::FindMessageType(source, name);
  if (!type.ok()) return;
  const Fields fields(*type->descriptor);
  const auto decoder =
      troupe::MessageDecoder::Create(*std::move(type), fields.names, fields.types, options);
  if (!decoder.ok()) return;
  const auto first = (*decoder)->Decode(messages, nullptr);
  if (!first.ok() || fields.names.empty()) return;
  const auto encoder = troupe::MessageEncoder::Create(*troupe::FindMessageType(source, name),
                                                      fields.names, fields.types);
  const std::vector<Tensor> values(first->begin() + 1, first->end());
  const auto encoded = encoder->Encode((*first)[0], values, nullptr);
  Check(encoded.ok());
  const auto plain = troupe::MessageDecoder::Create(*troupe::FindMessageType(source, name),
                                                    fields.names, fields.types, {});
  const auto second = (*plain)->Decode(*encoded, nullptr);
  Check(second.ok() && second->size() == first->size());
  for (size_t i = 0; i < first->size(); ++i) Check(Same((*first)[i], (*second)[i]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const auto* every_field = new std::string("bytes://" + EveryField());
  std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 < 3) {
    DecodeAndEncode(*every_field, "M", Tensor::Vector<std::string>({rest, ""}),
                    {.text = data[0] % 4 == 1, .sanitize = data[0] % 4 == 2});
    return 0;
  }
  FileDescriptorSet set;
  if (!set.ParseFromString(rest) || set.file_size() == 0) return 0;
  const FileDescriptorProto& file = set.file(set.file_size() - 1);
  if (file.message_type_size() == 0) return 0;
  const std::string name =
      (file.package().empty() ? "" : file.package() + ".") + file.message_type(0).name();
  DecodeAndEncode("bytes://" + rest, name, Tensor::Vector<std::string>({"", ""}), {.text = true});
  return 0;
}
