// DecodeProtoV2 and EncodeProto beside what TensorFlow gave (tests/golden): sources of descriptors,
// protobuf's own library as the other side, and bytes of strangers.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <random>

#include "graph/protos/example.pb.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using google::protobuf::FileDescriptorSet;
using google::protobuf::Message;
using testing::ExpectEqual;
using ::testing::HasSubstr;
using testing::OpTest;
using Names = std::vector<std::string>;
using Types = std::vector<ElementType>;

constexpr char kDescription[] = R"(
    file {
      name: "t.proto" package: "t"
      message_type {
        name: "M"
        field { name: "id" number: 3 type: TYPE_INT32 label: LABEL_OPTIONAL default_value: "7" }
        field { name: "inner" number: 1 type: TYPE_MESSAGE type_name: ".t.M" label: LABEL_OPTIONAL }
        field { name: "all" number: 2 type: TYPE_UINT32 label: LABEL_REPEATED
                options { packed: true } }
        field { name: "texts" number: 9 type: TYPE_BYTES label: LABEL_REPEATED }
        field { name: "group" number: 5 type: TYPE_GROUP type_name: ".t.M.Group" label: LABEL_OPTIONAL }
        nested_type { name: "Group" }
      }
      message_type {
        name: "Strict"
        field { name: "must" number: 1 type: TYPE_BOOL label: LABEL_REQUIRED }
      }
    })";

FileDescriptorSet Description() {
  FileDescriptorSet set;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kDescription, &set));
  return set;
}

std::string Source(const FileDescriptorSet& set) { return "bytes://" + set.SerializeAsString(); }

struct Decode : OpTest {
  Decode(const std::string& source, const std::string& type, const Names& names, const Types& types,
         const Tensor& bytes)
      : OpTest("DecodeProtoV2") {
    Attr("descriptor_source", source).Attr("message_type", type).Attr("field_names", names);
    Attr("output_types", types).Input(bytes);
  }
};

Tensor Strings(std::initializer_list<std::string> values) {
  return Tensor::Vector<std::string>(values);
}

TEST(DecodeProto, TensorFlowsNamesOfLinkedInMessages) {
  Feature feature;
  feature.mutable_int64_list()->add_value(300);
  feature.mutable_int64_list()->add_value(-1);
  for (const char* name : {"tensorflow.Feature", "troupe.Feature"}) {
    Decode op("local://", name, {"int64_list"}, {ElementType::kString},
              Strings({feature.SerializeAsString()}));
    ASSERT_TRUE(op.Run().ok());
    Decode list("local://", "tensorflow.Int64List", {"value"}, {ElementType::kInt64},
                op.output(1).Reshaped(Shape({1})));
    ASSERT_TRUE(list.Run().ok());
    ExpectEqual(list.output(0), Tensor::Vector<int32_t>({2}).Reshaped(Shape({1, 1})));
    ExpectEqual(list.output(1), Tensor::Vector<int64_t>({300, -1}).Reshaped(Shape({1, 2})));
  }
}

TEST(DecodeProto, DescriptorsFromAFile) {
  const std::string path = ::testing::TempDir() + "message_kernels_test.descriptors";
  std::ofstream(path, std::ios::binary) << Description().SerializeAsString();
  Decode op(path, "t.M", {"id"}, {ElementType::kInt64}, Strings({"", "\x18\x05"}));
  ASSERT_TRUE(op.Run().ok());
  std::filesystem::remove(path);
  ExpectEqual(op.output(1), Tensor::Vector<int64_t>({7, 5}).Reshaped(Shape({2, 1})));
}

TEST(DecodeProto, WrongSources) {
  FileDescriptorSet importing = Description();
  importing.mutable_file(0)->add_dependency("another.proto");
  for (const std::string& source :
       {std::string("nowhere/none"), std::string("bytes://\xff"), std::string("local://"),
        std::string(), ::testing::TempDir(), Source(importing)}) {
    Decode op(source, "t.M", {"id"}, {ElementType::kInt32}, Strings({""}));
    EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument) << source;
  }
  Decode op(Source(importing), "t.M", {"id"}, {ElementType::kInt32}, Strings({""}));
  EXPECT_THAT(op.Run().message(), HasSubstr("another.proto"));
}

TEST(DecodeProto, MissingRequiredFieldsAreLookedForOnlyWhenSanitizing) {
  const std::string source = Source(Description());
  Decode op(source, "t.Strict", {"must"}, {ElementType::kBool}, Strings({""}));
  EXPECT_TRUE(op.Run().ok());
  Decode sanitized(source, "t.Strict", {"must"}, {ElementType::kBool}, Strings({""}));
  sanitized.Attr("sanitize", true);
  const absl::Status status = sanitized.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("must"));
}

TEST(DecodeProto, ErrorsInTextSayWhere) {
  Decode op(Source(Description()), "t.M", {"id"}, {ElementType::kInt32},
            Strings({"id: 1", "id: 1\nid: 2"}));
  op.Attr("message_format", "text");
  const absl::Status status = op.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("message 1: "));
  EXPECT_THAT(status.message(), HasSubstr("line 2"));
}

TEST(DecodeProto, NestingIsLimited) {
  constexpr int kDepth = 100'000;
  const std::string source = Source(Description());
  std::string groups;
  for (int i = 0; i < kDepth; ++i) groups += '\x7b';  // An unknown group begins, number 15.
  Decode op(source, "t.M", {"id"}, {ElementType::kInt32}, Strings({groups}));
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kDataLoss);
  std::string text;
  for (int i = 0; i < kDepth; ++i) text += "inner{";
  Decode printed(source, "t.M", {"id"}, {ElementType::kInt32}, Strings({text}));
  EXPECT_EQ(printed.Attr("message_format", "text").Run().code(), absl::StatusCode::kDataLoss);
}

TEST(DecodeProto, ChainsOfTypesAreLimitedWhereMessagesAreParsed) {
  FileDescriptorSet set = Description();
  constexpr int kTypes = 20'000;
  for (int i = 0; i < kTypes; ++i) {
    auto* type = set.mutable_file(0)->add_message_type();
    type->set_name("C" + std::to_string(i));
    auto* field = type->add_field();
    field->set_name("next");
    field->set_number(1);
    field->set_type(google::protobuf::FieldDescriptorProto::TYPE_MESSAGE);
    field->set_type_name(".t.C" + std::to_string((i + 1) % kTypes));
    field->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
  }
  Decode op(Source(set), "t.C0", {"next"}, {ElementType::kString}, Strings({"\n\x01x"}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(1), Strings({"x"}).Reshaped(Shape({1, 1})));
  Decode sanitized(Source(set), "t.C0", {"next"}, {ElementType::kString}, Strings({""}));
  EXPECT_EQ(sanitized.Attr("sanitize", true).Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DecodeProto, LengthsAreCheckedBeforeAnythingIsAllocated) {
  for (const std::string& bytes :
       {std::string("J\xff\xff\xff\xff\x07"), std::string("\x12\xff\xff\xff\xff\x07\x01"),
        std::string("J\x80\x80\x80\x80\x0f"), std::string("\x12\x05\x01\x02"),
        std::string("\x12\x02\x80\x80")}) {
    Decode op(Source(Description()), "t.M", {"texts", "all"},
              {ElementType::kString, ElementType::kUint32}, Strings({bytes}));
    EXPECT_EQ(op.Run().code(), absl::StatusCode::kDataLoss);
  }
}

/// Messages of `Description()`'s M, some values of each field.
std::string RandomMessage(const google::protobuf::Descriptor* type,
                          google::protobuf::DynamicMessageFactory* factory, std::mt19937* random) {
  const std::unique_ptr<Message> message(factory->GetPrototype(type)->New());
  const auto* reflection = message->GetReflection();
  if ((*random)() % 2 == 0) {
    reflection->SetInt32(message.get(), type->FindFieldByName("id"),
                         static_cast<int32_t>((*random)()));
  }
  for (uint32_t n = (*random)() % 4; n > 0; --n) {
    reflection->AddUInt32(message.get(), type->FindFieldByName("all"),
                          static_cast<uint32_t>((*random)()) >> (*random)() % 32);
    reflection->AddString(message.get(), type->FindFieldByName("texts"),
                          std::string((*random)() % 3, 'x'));
  }
  return message->SerializeAsString();
}

TEST(EncodeProto, UndoesDecodeProtoOfWhatProtobufWrites) {
  google::protobuf::DescriptorPool pool;
  const auto* type = pool.BuildFile(Description().file(0))->FindMessageTypeByName("M");
  google::protobuf::DynamicMessageFactory factory;
  std::mt19937 random(1);
  Tensor messages = Tensor::Uninitialized(ElementType::kString, Shape({20, 10}));
  for (int i = 0; i < 200; ++i) {
    messages.mutable_data<std::string>()[i] = RandomMessage(type, &factory, &random);
  }
  const Names names = {"texts", "id", "all"};
  const Types types = {ElementType::kString, ElementType::kInt32, ElementType::kUint32};
  Decode decode(Source(Description()), "t.M", names, types, messages);
  ASSERT_TRUE(decode.Run().ok());
  OpTest encode("EncodeProto", /*threads=*/3);
  encode.Attr("descriptor_source", Source(Description())).Attr("message_type", "t.M");
  encode.Attr("field_names", names).Attr("Tinput_types", types);
  for (int i = 0; i < 4; ++i) encode.Input(decode.output(i));
  ASSERT_TRUE(encode.Run().ok());
  ExpectEqual(encode.output(0), messages);
}

struct EncodeIds : OpTest {
  explicit EncodeIds(int32_t size) : OpTest("EncodeProto") {
    Attr("descriptor_source", Source(Description())).Attr("message_type", "t.M");
    Attr("field_names", Names{"id"}).Attr("Tinput_types", Types{ElementType::kInt32});
    Input(Tensor::Vector<int32_t>({size}).Reshaped(Shape({1, 1})));
    Input(Tensor::Vector<int32_t>({1, 2}).Reshaped(Shape({1, 2})));
  }
};

TEST(EncodeProto, SizesAreThoseOfTheValues) {
  EncodeIds none(-1);
  ASSERT_TRUE(none.Run().ok());
  ExpectEqual(none.output(0), Strings({""}));
  EncodeIds two(2);
  ASSERT_TRUE(two.Run().ok());
  ExpectEqual(two.output(0), Strings({"\x18\x01\x18\x02"}));
  for (const int32_t size : {3, INT_MAX}) {
    const absl::Status status = EncodeIds(size).Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("only 2 are there"));
  }
}

TEST(DecodeProto, WrongBytesAreAnError) {
  google::protobuf::DescriptorPool pool;
  const auto* type = pool.BuildFile(Description().file(0))->FindMessageTypeByName("M");
  google::protobuf::DynamicMessageFactory factory;
  std::mt19937 random(2);
  const std::string source = Source(Description());
  int wrong = 0;
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    std::string bytes = RandomMessage(type, &factory, &random);
    for (uint32_t n = 1 + random() % 3; n > 0 && !bytes.empty(); --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Decode op(source, "t.M", {"inner", "all", "id", "group", "texts"},
              {ElementType::kString, ElementType::kUint64, ElementType::kInt32,
               ElementType::kString, ElementType::kString},
              Strings({bytes}));
    const absl::Status status = op.Run();
    // A value of another form than its field's is unknown to protobuf's parser.
    const std::unique_ptr<Message> message(factory.GetPrototype(type)->New());
    const auto* reflection = message->GetReflection();
    const bool known =
        message->ParsePartialFromString(bytes) && reflection->GetUnknownFields(*message).empty();
    if (!status.ok()) {
      ++wrong;
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_FALSE(known);
    } else if (known) {
      EXPECT_EQ(op.output(3).unchecked_values<int32_t>()[0],
                reflection->GetInt32(*message, type->FindFieldByName("id")));
      EXPECT_EQ(op.output(0).unchecked_values<int32_t>()[1],
                reflection->FieldSize(*message, type->FindFieldByName("all")));
    }
  }
  EXPECT_GT(wrong, kTries / 10);
  EXPECT_LT(wrong, kTries);
}

}  // namespace
}  // namespace troupe
