// Strings to tensors: raw and compressed bytes, messages, JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "devices/tensor_proto.h"
#include "graph/protos/example.pb.h"
#include "graph/protos/tensor.pb.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using ::testing::HasSubstr;
using testing::OpTest;

Tensor Strings(std::initializer_list<std::string> values) {
  return Tensor::Vector<std::string>(values);
}

std::string Compressed(const std::string& bytes, bool gzip) {
  z_stream stream = {};
  constexpr int kMemoryLevel = 8;
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0), kMemoryLevel,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(DecodeRaw, BothOrdersOfBytes) {
  OpTest little("DecodeRaw");
  little.Attr("out_type", ElementType::kInt16).Input(Strings({std::string("\x01\x02\x03\x04", 4)}));
  ASSERT_TRUE(little.Run().ok());
  ExpectEqual(little.output(0), Tensor::Vector<int16_t>({0x0201, 0x0403}).Reshaped(Shape({1, 2})));
  OpTest big("DecodeRaw");
  big.Attr("out_type", ElementType::kInt16)
      .Attr("little_endian", false)
      .Input(Strings({std::string("\x01\x02\x03\x04", 4)}));
  ASSERT_TRUE(big.Run().ok());
  ExpectEqual(big.output(0), Tensor::Vector<int16_t>({0x0102, 0x0304}).Reshaped(Shape({1, 2})));
}

TEST(DecodeRaw, ABoolIsOneWhateverItsBits) {
  OpTest op("DecodeRaw");
  op.Attr("out_type", ElementType::kBool).Input(Tensor::Scalar(std::string("\x00\x01\xfe", 3)));
  ASSERT_TRUE(op.Run().ok());
  const auto* bytes = static_cast<const uint8_t*>(op.output(0).raw_data());
  EXPECT_THAT(std::vector<uint8_t>(bytes, bytes + 3), ::testing::ElementsAre(0, 1, 1));
}

TEST(DecodeRaw, Errors) {
  OpTest uneven("DecodeRaw");
  uneven.Attr("out_type", ElementType::kUint8).Input(Strings({"ab", "a"}));
  EXPECT_THAT(uneven.Run().message(), HasSubstr("that at 1 has 1"));
  OpTest rest("DecodeRaw");
  rest.Attr("out_type", ElementType::kFloat).Input(Strings({"abcde"}));
  EXPECT_EQ(rest.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DecodePaddedRaw, CutsOffAndFillsUp) {
  OpTest op("DecodePaddedRaw");
  op.Attr("out_type", ElementType::kUint8)
      .Input(Strings({"a", "bcd", ""}))
      .Input(Tensor::Scalar<int32_t>(2));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0),
              Tensor::Vector<uint8_t>({'a', 0, 'b', 'c', 0, 0}).Reshaped(Shape({3, 2})));
}

TEST(DecodeCompressed, EveryFormat) {
  const std::string text(100'000, 'x');
  for (const char* type : {"ZLIB", "GZIP"}) {
    OpTest op("DecodeCompressed", 2);
    const bool gzip = type[0] == 'G';
    op.Attr("compression_type", type)
        .Input(Strings({Compressed(text, gzip), Compressed("", gzip), Compressed("abc", gzip)}));
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), Strings({text, "", "abc"}));
  }
  OpTest none("DecodeCompressed");
  none.Input(Strings({"as it is"}));
  ASSERT_TRUE(none.Run().ok());
  ExpectEqual(none.output(0), Strings({"as it is"}));
}

TEST(DecodeCompressed, DamagedBytesGiveAnErrorOrTheSame) {
  for (const bool gzip : {false, true}) {
    const std::string text = "some text, some text, and an end", whole = Compressed(text, gzip);
    OpTest op("DecodeCompressed");
    op.Attr("compression_type", gzip ? "GZIP" : "ZLIB");
    const auto check = [&](const std::string& bytes) {
      op.ClearInputs().Input(Strings({"", bytes}));
      const absl::Status status = op.Run();
      if (status.ok()) {
        // No bytes at all are a stream that has not begun.
        ExpectEqual(op.output(0), Strings({"", bytes.empty() ? "" : text}));
        return;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(status.message(), HasSubstr("string 1, near byte"));
    };
    for (size_t i = 0; i < whole.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string altered = whole;
        altered[i] = static_cast<char>(altered[i] ^ (1 << bit));
        check(altered);
      }
      check(whole.substr(0, i));
    }
  }
}

TEST(ParseTensor, IsWhatSerializeTensorGave) {
  for (const Tensor& tensor :
       {Tensor::Vector<float>({1.5f, -2}), Tensor::Scalar<int64_t>(7), Strings({"a", ""}),
        Tensor::Vector<uint8_t>({}), Tensor::Vector<bool>({true, false})}) {
    OpTest to("SerializeTensor");
    to.Input(tensor);
    ASSERT_TRUE(to.Run().ok());
    OpTest from("ParseTensor");
    from.Attr("out_type", tensor.type()).Input(to.output(0));
    ASSERT_TRUE(from.Run().ok());
    ExpectEqual(from.output(0), tensor);
    OpTest other("ParseTensor");
    other.Attr("out_type", ElementType::kDouble).Input(to.output(0));
    EXPECT_THAT(other.Run().message(), HasSubstr("not double"));
  }
}

TEST(DecodeJsonExample, MakesExamples) {
  OpTest op("DecodeJSONExample");
  op.Input(Strings({R"({"features":{"feature":{"b":{"int64List":{"value":["1",2]}},)"
                    R"("a":{"bytesList":{"value":["YWI="]}}}}})",
                    "{}"}));
  ASSERT_TRUE(op.Run().ok());
  const auto* bytes = op.output(0).unchecked_data<std::string>();
  Example example;
  ASSERT_TRUE(example.ParseFromString(bytes[0]));
  const auto& features = example.features().feature();
  EXPECT_EQ(features.at("b").int64_list().value(1), 2);
  EXPECT_EQ(features.at("a").bytes_list().value(0), "ab");
  EXPECT_EQ(bytes[1], "");
}

TEST(DecodeJsonExample, EveryCutIsRefusedWithItsNumber) {
  const std::string whole = R"({"features":{"feature":{"a":{"floatList":{"value":[1.5]}}}}})";
  OpTest op("DecodeJSONExample");
  for (size_t i = 0; i < whole.size(); ++i) {
    op.ClearInputs().Input(Strings({"{}", whole.substr(0, i)}));
    const absl::Status status = op.Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << i;
    EXPECT_THAT(status.message(), HasSubstr("string 1"));
  }
  // Nested far deeper than an Example is.
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"features":)";
  op.ClearInputs().Input(Strings({deep}));
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
