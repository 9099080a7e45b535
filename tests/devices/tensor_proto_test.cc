#include "devices/tensor_proto.h"

#include <cstring>
#include <string>
#include <vector>

#include "devices/narrow_types.h"
#include "devices/quantized.h"
#include "devices/resource_handle.h"
#include "google/protobuf/text_format.h"
#include "graph/protos/tensor.pb.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TensorProto Parsed(const std::string& text) {
  TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

std::string Dims(std::initializer_list<int64_t> dims) {
  std::string text = "tensor_shape {";
  for (int64_t d : dims) text += " dim { size: " + std::to_string(d) + " }";
  return text + " } ";
}

TEST(TensorFromProto, ReadsEveryField) {
  const struct {
    std::string text;
    const char* want;
  } kCases[] = {
      {"dtype: DT_FLOAT float_val: 1.5", "float[] 1.5"},
      {"dtype: DT_FLOAT " + Dims({2, 2}) + "float_val: [1, 2]", "float[2,2] [[1 2][2 2]]"},
      {"dtype: DT_FLOAT " + Dims({2}), "float[2] [0 0]"},
      {"dtype: DT_FLOAT " + Dims({1}) + "float_val: [1, 2]", "float[1] [1]"},
      {"dtype: DT_FLOAT " + Dims({0}) + "float_val: [1, 2]", "float[0] []"},
      {"dtype: DT_DOUBLE double_val: 0.25", "double[] 0.25"},
      {"dtype: DT_INT32 int_val: -7", "int32[] -7"},
      {"dtype: DT_INT16 int_val: 65535", "int16[] -1"},
      {"dtype: DT_INT8 int_val: -128", "int8[] -128"},
      {"dtype: DT_UINT8 int_val: 255", "uint8[] 255"},
      {"dtype: DT_UINT16 int_val: 40000", "uint16[] 40000"},
      {"dtype: DT_UINT32 uint32_val: 4294967295", "uint32[] 4294967295"},
      {"dtype: DT_UINT64 uint64_val: 18446744073709551615", "uint64[] 18446744073709551615"},
      {"dtype: DT_INT64 int64_val: -9223372036854775808", "int64[] -9223372036854775808"},
      {"dtype: DT_HALF half_val: 15360", "half[] 1"},
      {"dtype: DT_BFLOAT16 half_val: 16256", "bfloat16[] 1"},
      {"dtype: DT_BOOL " + Dims({3}) + "bool_val: [true, false]", "bool[3] [1 0 0]"},
      {"dtype: DT_COMPLEX64 scomplex_val: [1, 2]", "complex64[] (1,2)"},
      {"dtype: DT_COMPLEX128 " + Dims({2}) + "dcomplex_val: [1, 2, 3, 4]",
       "complex128[2] [(1,2) (3,4)]"},
      {"dtype: DT_COMPLEX64 scomplex_val: 1", "complex64[] (0,0)"},
      {"dtype: DT_STRING " + Dims({3}) + "string_val: 'a' string_val: 'bc'",
       "string[3] [\"a\" \"bc\" \"bc\"]"},
      {"dtype: DT_STRING " + Dims({2}) + "tensor_content: '\\001\\002xyz'",
       "string[2] [\"x\" \"yz\"]"},
      {"dtype: DT_INT16 " + Dims({2}) + "tensor_content: '\\001\\000\\377\\377'",
       "int16[2] [1 -1]"},
      {"dtype: DT_BOOL " + Dims({2}) + "tensor_content: '\\002\\000'", "bool[2] [1 0]"},
      {"dtype: DT_RESOURCE resource_handle_val { name: 'v' container: 'c' maybe_type_name: 'Var' }",
       "resource[] <Var c/v>"},
      {"dtype: DT_VARIANT " + Dims({0}), "variant[0] []"},
  };
  for (const auto& c : kCases) {
    const auto tensor = TensorFromProto(Parsed(c.text));
    ASSERT_TRUE(tensor.ok()) << c.text << tensor.status();
    EXPECT_EQ(tensor->ToString(), c.want) << c.text;
  }
}

TEST(TensorFromProto, RefusesBadMessages) {
  using absl::StatusCode;
  const struct {
    std::string text;
    StatusCode code;
  } kCases[] = {
      {"", StatusCode::kInvalidArgument},
      {"float_val: 1", StatusCode::kInvalidArgument},
      {"dtype: 77", StatusCode::kInvalidArgument},
      {"dtype: -3", StatusCode::kInvalidArgument},
      {"dtype: 100000", StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT_REF float_val: 1", StatusCode::kInvalidArgument},
      {"dtype: DT_INT2 int_val: 1", StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT8_E5M2FNUZ float8_val: '1'", StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT " + Dims({-1}), StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT " + Dims({1 << 30, 1 << 30, 1 << 30}), StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT tensor_shape { unknown_rank: true }", StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT tensor_content: 'abc'", StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT tensor_content: 'abcde'", StatusCode::kInvalidArgument},
      {"dtype: DT_DOUBLE " + Dims({int64_t{1} << 61}) + "tensor_content: 'abcd'",
       StatusCode::kInvalidArgument},
      {"dtype: DT_FLOAT " + Dims({int64_t{1} << 40}), StatusCode::kResourceExhausted},
      {"dtype: DT_FLOAT " + Dims({int64_t{1} << 62}) + "float_val: 1",
       StatusCode::kResourceExhausted},
      {"dtype: DT_STRING " + Dims({int64_t{1} << 30}) + "string_val: 'a'",
       StatusCode::kResourceExhausted},
      {"dtype: DT_STRING " + Dims({int64_t{1} << 40}) + "tensor_content: 'a'",
       StatusCode::kInvalidArgument},
      {"dtype: DT_STRING " + Dims({2}) + "tensor_content: '\\001\\005xyz'",
       StatusCode::kInvalidArgument},
      {"dtype: DT_STRING " + Dims({2}) + "tensor_content: '\\001\\001xyz'",
       StatusCode::kInvalidArgument},
      {"dtype: DT_STRING tensor_content: '\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377'",
       StatusCode::kInvalidArgument},
      {"dtype: DT_STRING tensor_content: '\\200'", StatusCode::kInvalidArgument},
      {"dtype: DT_RESOURCE " + Dims({int64_t{1} << 40}), StatusCode::kResourceExhausted},
      {"dtype: DT_RESOURCE resource_handle_val { dtypes_and_shapes { shape { dim { size: -5 } } } "
       "}",
       StatusCode::kInvalidArgument},
      {"dtype: DT_VARIANT variant_val { type_name: 'x' }", StatusCode::kUnimplemented},
  };
  for (const auto& c : kCases) {
    const auto tensor = TensorFromProto(Parsed(c.text));
    EXPECT_EQ(tensor.status().code(), c.code) << c.text << tensor.status();
  }
}

template <typename T>
void CheckRoundTrip(std::vector<T> values) {
  for (const Tensor& tensor :
       {Tensor::FromValues<T>(values, Shape({static_cast<int64_t>(values.size()), 1})).value(),
        Tensor::Scalar<T>(values[0]), Tensor::Uninitialized(kElementType<T>, Shape({3, 0}))}) {
    TensorProto proto;
    TensorToProto(tensor, &proto);
    EXPECT_EQ(proto.tensor_content().empty(), tensor.num_elements() <= 1);
    const auto back = TensorFromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->type(), tensor.type());
    EXPECT_EQ(back->shape(), tensor.shape());
    EXPECT_EQ(std::memcmp(back->raw_data(), tensor.raw_data(), tensor.bytes()), 0);
  }
}

TEST(TensorToProto, RoundTrips) {
  CheckRoundTrip<float>({1.5f, -0.0f, 3e38f});
  CheckRoundTrip<double>({1e300, 2});
  CheckRoundTrip<half>({half(1.5f), half(-2.0f)});
  CheckRoundTrip<bfloat16>({bfloat16(-1.5f), bfloat16(3.0f)});
  CheckRoundTrip<int8_t>({-128, 127});
  CheckRoundTrip<int16_t>({-32768, 32767});
  CheckRoundTrip<int32_t>({INT32_MIN, INT32_MAX});
  CheckRoundTrip<int64_t>({INT64_MIN, INT64_MAX});
  CheckRoundTrip<uint8_t>({255, 0});
  CheckRoundTrip<uint16_t>({65535, 0});
  CheckRoundTrip<uint32_t>({UINT32_MAX, 0});
  CheckRoundTrip<uint64_t>({UINT64_MAX, 0});
  CheckRoundTrip<qint8>({qint8(-128), qint8(127)});
  CheckRoundTrip<quint8>({quint8(255), quint8(0)});
  CheckRoundTrip<qint16>({qint16(-32768), qint16(32767)});
  CheckRoundTrip<quint16>({quint16(65535), quint16(0)});
  CheckRoundTrip<qint32>({qint32(INT32_MIN), qint32(INT32_MAX)});
  CheckRoundTrip<float8_e5m2>({float8_e5m2(-1.5), float8_e5m2(57344)});
  CheckRoundTrip<float8_e4m3fn>({float8_e4m3fn(448), float8_e4m3fn(-0.015625)});
  CheckRoundTrip<int4>({int4(-8), int4(7)});
  CheckRoundTrip<uint4>({uint4(15), uint4(0)});
  CheckRoundTrip<complex64>({{1, -2}, {3, 4}});
  CheckRoundTrip<complex128>({{1, -2}, {3, 4}});
  TensorProto proto;
  TensorToProto(Tensor::Vector<std::string>({"", std::string("a\0b", 3)}), &proto);
  EXPECT_EQ(TensorFromProto(proto)->unchecked_values<std::string>()[1].size(), 3u);
  TensorToProto(Tensor::Vector<bool>({true, false, true}), &proto);
  EXPECT_EQ(TensorFromProto(proto)->ToString(), "bool[3] [1 0 1]");
  ResourceHandle handle;
  handle.name = "n";
  handle.hash_code = 5;
  handle.types_and_shapes.emplace_back(ElementType::kFloat, PartialShape({-1, 2}));
  TensorToProto(Tensor::Scalar(handle), &proto);
  const Tensor back = *TensorFromProto(proto);
  EXPECT_EQ(back.unchecked_scalar<ResourceHandle>().hash_code, 5u);
  EXPECT_EQ(back.unchecked_scalar<ResourceHandle>().types_and_shapes[0].second.ToString(), "[?,2]");
}

TEST(TakeTensorFromProto, LargeContentsAreNotCopied) {
  TensorProto proto;
  TensorToProto(Tensor::Vector<float>(std::vector<float>(5000, 2.5f)), &proto);
  const void* bytes = proto.tensor_content().data();
  const Tensor tensor = *TakeTensorFromProto(&proto);
  EXPECT_EQ(tensor.raw_data(), bytes);
  EXPECT_EQ(tensor.unchecked_values<float>()[4999], 2.5f);
  EXPECT_TRUE(proto.tensor_content().empty());
}

TEST(TakeTensorFromProto, ReadsAndRefusesWhatTheOtherDoes) {
  TensorProto proto;
  TensorToProto(Tensor::Vector<float>(std::vector<float>(5000, 2.5f)), &proto);
  proto.mutable_tensor_content()->pop_back();
  EXPECT_EQ(TakeTensorFromProto(&proto).status().code(), absl::StatusCode::kInvalidArgument);
  TensorToProto(*Tensor::Allocate(ElementType::kUint8, Shape({9000})), &proto);
  proto.set_dtype(DT_BOOL);
  proto.set_tensor_content(std::string(9000, 5));  // No bools: they must be read, not taken.
  EXPECT_EQ(TakeTensorFromProto(&proto)->num_elements(), 9000);
  TensorToProto(Tensor::Vector<int32_t>({1, 2}), &proto);
  EXPECT_EQ(TakeTensorFromProto(&proto)->unchecked_values<int32_t>()[1], 2);
  proto.set_dtype(static_cast<DataType>(77));
  proto.set_tensor_content(std::string(5000, 'x'));
  EXPECT_FALSE(TakeTensorFromProto(&proto).ok());
}

}  // namespace
}  // namespace troupe
