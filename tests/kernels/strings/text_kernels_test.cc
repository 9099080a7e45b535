// Strings one by one, and as parts. TensorFlow's own results: tests/golden/strings.pb.gz.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/strings/hashes.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Strings(const std::vector<std::string>& values) {
  return Tensor::Vector<std::string>(values);
}
Tensor Scalar(const std::string& value) { return Tensor::Scalar<std::string>(value); }
Tensor Longs(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }
Tensor Longs(std::initializer_list<int64_t> values, const Shape& shape) {
  return Tensor::FromValues<int64_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
      .value();
}

/// What an op makes of one input.
void ExpectMapped(OpTest& op, const Tensor& input, const Tensor& want) {
  op.Input(input);
  const absl::Status status = op.Run();
  ASSERT_TRUE(status.ok()) << status;
  ExpectEqual(op.output(0), want);
}
void ExpectRefused(OpTest& op, StatusCode code = StatusCode::kInvalidArgument) {
  EXPECT_EQ(op.Run().code(), code);
}

TEST(AsString, WritesNumbersAsPrintfDoes) {
  OpTest plain("AsString"), flags("AsString"), shortest("AsString"), real("AsString");
  ExpectMapped(plain, Longs({-7, 0, INT64_MIN}), Strings({"-7", "0", "-9223372036854775808"}));
  flags.Attr("width", 5).Attr("fill", "0");
  ExpectMapped(flags, Longs({-7, 123456}), Strings({"-0007", "123456"}));
  shortest.Attr("shortest", true);
  ExpectMapped(shortest, Tensor::Vector<float>({0.1f, 1e10f, -0.0f}),
               Strings({"0.1", "1e+10", "-0"}));
  real.Attr("precision", 2).Attr("width", 6);
  ExpectMapped(real, Tensor::Vector<double>({1.5, std::nan(""), 1e300}),
               Strings({"  1.50", "   nan", [] {
                          char text[400];
                          std::snprintf(text, sizeof text, "%6.2f", 1e300);
                          return std::string(text);
                        }()}));
}

TEST(AsString, RefusesWhatIsNoFormat) {
  const auto code = [](const Tensor& input, const char* name, auto value) {
    OpTest op("AsString");
    op.Attr(name, value).Input(input);
    return op.Run().code();
  };
  EXPECT_EQ(code(Longs({1}), "precision", 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Longs({1}), "shortest", true), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Longs({1}), "fill", "ab"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Longs({1}), "fill", "%"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Longs({1}), "width", int64_t{1} << 40), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Tensor::Scalar(1.0f), "precision", int64_t{1} << 40),
            StatusCode::kInvalidArgument);
}

TEST(StringToNumber, ReadsAllButWhatIsNoNumber) {
  OpTest floats("StringToNumber"), longs("StringToNumber");
  ExpectMapped(floats, Strings({" 1.5\n", "1e99", "-inf", "0x1.8p1", "-0X10"}),
               Tensor::Vector<float>({1.5f, std::numeric_limits<float>::infinity(),
                                      -std::numeric_limits<float>::infinity(), 3.0f, -16.0f}));
  longs.Attr("out_type", ElementType::kInt64);
  ExpectMapped(longs, Strings({"+7", "-9223372036854775808"}), Longs({7, INT64_MIN}));
  for (const char* text : {"", " ", "1x", "0x", "0x-1", "- 5", "1 2"}) {
    OpTest op("StringToNumber");
    op.Input(Strings({"1", text}));
    ExpectRefused(op);
  }
  OpTest large("StringToNumber");
  large.Attr("out_type", ElementType::kInt32).Input(Strings({"2147483648"}));
  ExpectRefused(large);
}

TEST(Base64, ThereAndBack) {
  for (const bool pad : {false, true}) {
    std::vector<std::string> bytes;
    for (int size = 0; size < 9; ++size) bytes.push_back(std::string(size, static_cast<char>(251)));
    OpTest encode("EncodeBase64"), decode("DecodeBase64");
    encode.Attr("pad", pad).Input(Strings(bytes));
    ASSERT_TRUE(encode.Run().ok());
    ExpectMapped(decode, encode.output(0), Strings(bytes));
  }
  for (const char* text : {"YWJjY", "YQ=", "Y=Jj", "YW+/", "YW\nj", "====", "YQ==YQ=="}) {
    OpTest op("DecodeBase64");
    op.Input(Strings({text}));
    ExpectRefused(op);
  }
}

TEST(Letters, KnowAsciiOrUnicode) {
  OpTest lower("StringLower"), upper("StringUpper"), unicode("StringUpper"), strip("StringStrip");
  ExpectMapped(lower, Strings({"ABz\xc3\x84"}), Strings({"abz\xc3\x84"}));
  ExpectMapped(upper, Strings({"abZ1"}), Strings({"ABZ1"}));
  unicode.Attr("encoding", "utf-8");
  ExpectMapped(unicode,
               Strings({"stra\xc3\x9f"
                        "e"}),
               Strings({"STRASSE"}));
  ExpectMapped(strip, Strings({" \t a b\v\n", ""}), Strings({"a b", ""}));
  OpTest latin("StringLower");
  latin.Attr("encoding", "latin-1").Input(Strings({"a"}));
  ExpectRefused(latin);
}

TEST(Substr, BytesAndCharacters) {
  for (const bool characters : {false, true}) {
    OpTest op("Substr");
    op.Attr("unit", characters ? "UTF8_CHAR" : "BYTE");
    op.Input(Strings({"\xc3\xa9t\xc3\xa9", "ab"})).Input(Longs({-2, 2}, Shape({2, 1})));
    op.Input(Longs({1, 9}, Shape({2, 1})));
    ASSERT_TRUE(op.Run().ok());
    const std::vector<std::string> want =
        characters ? std::vector<std::string>{"t", "a", "\xc3\xa9", ""}
                   : std::vector<std::string>{"\xc3", "a", "t\xc3\xa9", ""};
    ExpectEqual(op.output(0), Tensor::FromValues<std::string>(want, Shape({2, 2})).value());
    OpTest beyond("Substr");
    beyond.Attr("unit", characters ? "UTF8_CHAR" : "BYTE");
    beyond.Input(Strings({"ab"})).Input(Longs({3})).Input(Longs({1}));
    ExpectRefused(beyond);
    OpTest lowest("Substr");
    lowest.Attr("unit", characters ? "UTF8_CHAR" : "BYTE");
    lowest.Input(Strings({"ab"})).Input(Longs({INT64_MIN})).Input(Longs({INT64_MAX}));
    ExpectRefused(lowest);
  }
  OpTest length("StringLength");
  length.Attr("unit", "UTF8_CHAR");
  ExpectMapped(length, Strings({"\xc3\xa9t", ""}), Tensor::Vector<int32_t>({2, 0}));
}

TEST(StringFormat, SummarizesTensors) {
  OpTest op("StringFormat");
  op.Attr("template", "a {} b {}").Attr("placeholder", "{}").Attr("summarize", 1);
  op.Input(Longs({1, 2, 3, 4, 5, 6}, Shape({3, 2}))).Input(Strings({"x\n\xc3\xa9"}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Scalar("a [[1 2]\n ...\n [5 6]] b [\"x\\n\xc3\xa9\"]"));
  OpTest hollow("StringFormat");
  hollow.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({int64_t{1} << 60, 0})));
  ASSERT_TRUE(hollow.Run().ok());
  ExpectEqual(hollow.output(0), Scalar("[\n ...]"));
  OpTest few("StringFormat");
  few.Attr("template", "none").Input(Longs({1}));
  ExpectRefused(few);
}

void ExpectSplit(OpTest& op, const Tensor& indices, const Tensor& values, const Tensor& shape) {
  const absl::Status status = op.Run();
  ASSERT_TRUE(status.ok()) << status;
  ExpectEqual(op.output(0), indices);
  ExpectEqual(op.output(1), values);
  ExpectEqual(op.output(2), shape);
}

TEST(StringSplit, AtEachDelimiterOrSeparator) {
  OpTest bytes("StringSplit"), whole("StringSplitV2"), space("StringSplitV2");
  bytes.Input(Strings({"a,;b", ""})).Input(Scalar(",;"));
  ExpectSplit(bytes, Longs({0, 0, 0, 1}, Shape({2, 2})), Strings({"a", "b"}), Longs({2, 2}));
  whole.Attr("maxsplit", 1).Input(Strings({"a--b--c"})).Input(Scalar("--"));
  ExpectSplit(whole, Longs({0, 0, 0, 1}, Shape({2, 2})), Strings({"a", "b--c"}), Longs({1, 2}));
  space.Input(Strings({" a  b ", "  "})).Input(Scalar(""));
  ExpectSplit(space, Longs({0, 0, 0, 1}, Shape({2, 2})), Strings({"a", "b"}), Longs({2, 2}));
  OpTest matrix("StringSplit");
  matrix.Input(Tensor::Uninitialized(ElementType::kString, Shape({1, 1}))).Input(Scalar(","));
  ExpectRefused(matrix);
}

// So many strings that they are split in several pieces.
TEST(StringSplit, ManyStringsAsOneByOne) {
  std::mt19937 random(1);
  std::vector<std::string> texts(1300);
  for (std::string& text : texts) {
    text.resize(random() % 60);
    for (char& c : text) c = "aabbbbbbbbbbbbbbbbbbbbbb,"[random() % 25];
  }
  for (const std::string separator : {",", "ab", "aa", "bb", "bab", "x,"}) {
    std::vector<std::string> parts;
    std::vector<int64_t> indices;
    int64_t widest = 0;
    for (size_t row = 0; row < texts.size(); ++row) {
      int64_t column = 0;
      for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + separator.size()) {
        end = texts[row].find(separator, begin);
        parts.push_back(texts[row].substr(begin, end - begin));
        indices.insert(indices.end(), {static_cast<int64_t>(row), column++});
      }
      widest = std::max(widest, column);
    }
    const auto count = static_cast<int64_t>(parts.size());
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(separator);
      OpTest op("StringSplitV2", threads);
      op.Input(Tensor::Vector<std::string>(texts)).Input(Scalar(separator));
      ExpectSplit(op, Tensor::FromValues<int64_t>(indices, Shape({count, 2})).value(),
                  Tensor::Vector<std::string>(parts), Longs({1300, widest}));
    }
  }
}

TEST(ReduceJoin, TheFirstNamedDimensionIsTheFastest) {
  const Tensor input =
      Tensor::FromValues<std::string>({"a", "b", "c", "d", "e", "f"}, Shape({2, 3})).value();
  const auto join = [&](std::initializer_list<int32_t> axes) {
    OpTest op("ReduceJoin");
    op.Attr("separator", ".").Input(input).Input(Tensor::Vector<int32_t>(axes));
    return op.Run().ok() ? op.output(0) : Tensor();
  };
  ExpectEqual(join({0, 1}), Scalar("a.d.b.e.c.f"));
  ExpectEqual(join({-1}), Strings({"a.b.c", "d.e.f"}));
  EXPECT_FALSE(join({0, -2}).valid());
  EXPECT_FALSE(join({2}).valid());
}

TEST(UnsortedSegmentJoin, JoinsBySegment) {
  const auto join = [](std::initializer_list<int64_t> ids, int32_t segments) {
    OpTest op("UnsortedSegmentJoin");
    op.Attr("separator", "-").Input(Strings({"a", "b", "c"})).Input(Longs(ids));
    op.Input(Tensor::Scalar(segments));
    return op.Run().ok() ? op.output(0) : Tensor();
  };
  ExpectEqual(join({1, 0, 1}, 3), Strings({"b", "a-c", ""}));
  EXPECT_FALSE(join({0, 1, 3}, 3).valid());
  EXPECT_FALSE(join({0, -1, 1}, 3).valid());
  EXPECT_FALSE(join({0, 1}, 3).valid());
  EXPECT_FALSE(join({0, 0, 0}, -1).valid());
}

OpTest& NGrams(OpTest& op, std::initializer_list<int64_t> widths, int64_t pad, bool keep_short,
               std::initializer_list<int64_t> splits) {
  op.Attr("separator", "|").Attr("left_pad", "<").Attr("right_pad", ">");
  op.Attr("ngram_widths", widths).Attr("pad_width", pad);
  op.Attr("preserve_short_sequences", keep_short);
  return op.Input(Strings({"a", "b", "c"})).Input(Longs(splits));
}

TEST(StringNGrams, PadsAndKeepsShortRows) {
  OpTest padded("StringNGrams"), kept("StringNGrams");
  ASSERT_TRUE(NGrams(padded, {2}, -1, false, {0, 2, 3}).Run().ok());
  ExpectEqual(padded.output(0), Strings({"<|a", "a|b", "b|>", "<|c", "c|>"}));
  ExpectEqual(padded.output(1), Longs({0, 3, 5}));
  ASSERT_TRUE(NGrams(kept, {3}, 0, true, {0, 2, 3}).Run().ok());
  ExpectEqual(kept.output(0), Strings({"a|b", "c"}));
}

TEST(StringNGrams, RefusesWidthsAndSplits) {
  const auto code = [](std::initializer_list<int64_t> widths, int64_t pad,
                       std::initializer_list<int64_t> splits) {
    OpTest op("StringNGrams");
    return NGrams(op, widths, pad, true, splits).Run().code();
  };
  EXPECT_EQ(code({0}, 0, {0, 3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({INT64_MAX}, 0, {0, 3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({2}, INT64_MAX, {0, 3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({INT32_MAX}, -1, {0, 3}), StatusCode::kResourceExhausted);
  EXPECT_EQ(code({2}, 0, {0, 4}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({2}, 0, {0, 2, 1, 3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({}, -1, {0, 3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({2}, 0, {}), StatusCode::kOk);
}

// The example in the paper on SipHash, appendix A.
TEST(Hashes, SipHash) {
  std::string bytes;
  for (char c = 0; c < 15; ++c) bytes.push_back(c);
  EXPECT_EQ(SipHash(bytes, {0x0706050403020100, 0x0f0e0d0c0b0a0908}), 0xa129ca6149be45e5);
}

TEST(Hashes, BucketsOfStrings) {
  OpTest murmur("StringToHashBucket"), strong("StringToHashBucketStrong");
  murmur.Attr("num_buckets", 9);
  ExpectMapped(murmur, Strings({"y", ""}), Longs({7, 4}));
  strong.Attr("num_buckets", 10)
      .Attr("key", std::initializer_list<int64_t>{1})
      .Input(Strings({"a"}));
  ExpectRefused(strong);
}

}  // namespace
}  // namespace troupe::testing
