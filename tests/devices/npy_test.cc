#include "devices/npy.h"

#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string Npy(const std::string& header, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return bytes + header + data;
}

std::string Header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

TEST(ParseNpy, ReadsTypesOrdersAndVersions) {
  using std::string_literals::operator""s;
  const struct {
    std::string bytes;
    const char* want;
  } kCases[] = {
      {Npy(Header("<f4", "()"), "\0\0\xc0\x3f"s), "float[] 1.5"},
      {Npy(Header("=f4", "()"), "\0\0\xc0\x3f"s, 2), "float[] 1.5"},
      {Npy(Header(">f4", "(1,)"), "\x3f\xc0\0\0"s, 3), "float[1] [1.5]"},
      {Npy(Header("|u1", "(2, 3)"), "\1\2\3\4\5\6"), "uint8[2,3] [[1 2 3][4 5 6]]"},
      {Npy(Header("|u1", "(2, 3)", true), "\1\2\3\4\5\6"), "uint8[2,3] [[1 3 5][2 4 6]]"},
      {Npy(Header(">i2", "(2, 2)", true), "\0\1\0\2\0\3\0\4"s), "int16[2,2] [[1 3][2 4]]"},
      {Npy(Header("|b1", "(2,)"), "\5\0"s), "bool[2] [1 0]"},
      {Npy(Header("<f2", "(1,)"), "\0\x3c"s), "half[1] [1]"},
      {Npy(Header("<V2", "(1,)"), "\x80\x3f"s), "bfloat16[1] [1]"},
      {Npy(Header(">c8", "()"), "\x3f\x80\0\0\x40\0\0\0"s), "complex64[] (1,2)"},
      {Npy(Header("<i8", "(0, 5)"), ""), "int64[0,5] []"},
      {Npy("{\"shape\":(2L,),\"descr\":\"|i1\",\"fortran_order\":False}", "\xff\1"),
       "int8[2] [-1 1]"},
  };
  for (const auto& c : kCases) {
    const auto tensor = ParseNpy(c.bytes);
    ASSERT_TRUE(tensor.ok()) << c.want << tensor.status();
    EXPECT_EQ(tensor->ToString(), c.want);
  }
}

TEST(ParseNpy, RefusesHostileFiles) {
  const std::string good = Npy(Header("<f4", "(2,)"), "abcdefgh");
  ASSERT_TRUE(ParseNpy(good).ok());
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(ParseNpy(std::string_view(good).substr(0, n)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << n;
  }
  const std::string kBad[] = {
      good + "x",
      Npy(Header("<f4", "(2,)"), "abcdefgh", 4),
      Npy(Header("<f4", "(2,)"), "abcdefgh", 0),
      Npy(Header("<f4", "(-2,)"), ""),
      Npy(Header("<f4", "(9999999999999999999999,)"), ""),
      Npy(Header("<f4", "(4611686018427387904, 4)"), ""),
      Npy(Header("<f8", "(4611686018427387904,)"), ""),
      Npy(Header("<f4", "(1000000000,)"), "abcd"),
      Npy(Header("<f4", "2"), "abcdefgh"),
      Npy(Header("<f4", "(2"), "abcdefgh"),
      Npy(Header("<f4", "(1 2)"), "abcdefgh"),
      Npy(Header("<f3", "(2,)"), "abcdefgh"),
      Npy(Header("<U1", "(2,)"), "abcdefgh"),
      Npy(Header("|O", "(1,)"), "abcdefgh"),
      Npy(Header("", "(1,)"), "abcdefgh"),
      Npy("", ""),
      Npy("{}", ""),
      Npy("{'descr': '<f4', 'shape': ()}", "abcd"),
      Npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "abcd"),
      Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "abcd"),
      Npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", "abcd"),
      Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", "abcd"),
      Npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} ()", "abcd"),
      Npy("{'descr: '<f4'", "abcd"),
      Npy(std::string(70000, ' '), "", 2),
  };
  for (const std::string& bytes : kBad) {
    EXPECT_EQ(ParseNpy(bytes).status().code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
  std::string many = "(";
  for (int i = 0; i < 300; ++i) many += "1,";
  EXPECT_FALSE(ParseNpy(Npy(Header("|u1", many + ")"), "a")).ok());
}

TEST(Npy, RoundTripsThroughFiles) {
  const std::string file = testing::TempDir() + "/troupe_npy_test.npy";
  for (const Tensor& tensor :
       {Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape({3, 2})).value(), Tensor::Scalar(7.5),
        Tensor::Vector<bool>({true, false}), Tensor::Vector<complex128>({{1, 2}}),
        Tensor::Vector<bfloat16>({bfloat16(2.0f)}), Tensor::Vector<uint64_t>({UINT64_MAX}),
        Tensor::Uninitialized(ElementType::kHalf, Shape({0, 2}))}) {
    ASSERT_TRUE(WriteNpy(tensor, file).ok());
    const auto back = ReadNpy(file);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->ToString(), tensor.ToString());
    EXPECT_EQ(SerializeNpy(tensor)->size() % 64, tensor.bytes() % 64);
  }
  std::remove(file.c_str());
  EXPECT_EQ(ReadNpy(testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument)
      << "a directory";
  EXPECT_EQ(ReadNpy(file).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(ReadNpy(file).status().message().find(file), absl::string_view::npos);
  EXPECT_EQ(WriteNpy(Tensor::Scalar("x"), file).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteNpy(Tensor::Scalar(1), "/nowhere/at/all.npy").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
