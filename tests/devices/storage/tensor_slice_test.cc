#include "devices/storage/tensor_slice.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "devices/storage/slice_copy.h"
#include "graph/protos/tensor.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

TEST(TensorSlice, IsReadAndPrinted) {
  for (const char* text : {"", "-", "0,5", "3,2:-:1,1", "-:-"}) {
    const auto slice = TensorSlice::Parse(text);
    ASSERT_TRUE(slice.ok()) << slice.status();
    EXPECT_EQ(slice->ToString(), text);
    TensorSliceProto proto;
    slice->ToProto(&proto);
    EXPECT_EQ(*TensorSlice::FromProto(proto), *slice);
  }
  for (const char* text : {":", "1", "1,2,3", "-1,2", "1,0", "1,-1", "a,b", "1,2:", "--", " -"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(TensorSlice::Parse(text).status())) << text;
  }
  EXPECT_TRUE(TensorSlice(2).IsAll());
  EXPECT_FALSE(TensorSlice::Parse("0,5")->IsAll());
}

TEST(TensorSlice, IsInsideOfAShape) {
  EXPECT_EQ(TensorSlice::Parse("1,2:-")->In(Shape({4, 5}))->shape(), Shape({2, 5}));
  EXPECT_EQ(TensorSlice::Parse("")->In(Shape())->shape(), Shape());
  EXPECT_EQ(TensorSlice::Parse("3,1")->In(Shape({4}))->ToString(), "3,1");
  EXPECT_FALSE(TensorSlice::Parse("3,2")->In(Shape({4})).ok());
  EXPECT_FALSE(TensorSlice::Parse("5,1")->In(Shape({4})).ok());
  EXPECT_FALSE(TensorSlice::Parse("9223372036854775807,9223372036854775807")->In(Shape({4})).ok());
  EXPECT_FALSE(TensorSlice::Parse("-")->In(Shape({4, 5})).ok());
}

TEST(TensorSlice, RefusesHostileMessages) {
  TensorSliceProto proto;
  proto.add_extent()->set_start(-1);
  EXPECT_FALSE(TensorSlice::FromProto(proto).ok());
  proto.mutable_extent(0)->set_start(0);
  proto.mutable_extent(0)->set_length(-2);
  EXPECT_FALSE(TensorSlice::FromProto(proto).ok());
  proto.mutable_extent(0)->set_length(INT64_MAX);
  EXPECT_TRUE(TensorSlice::FromProto(proto).ok());
  for (int i = 0; i < 300; ++i) proto.add_extent();
  EXPECT_FALSE(TensorSlice::FromProto(proto).ok());
}

TEST(ParseShapeAndSlice, ReadsWhatTheOpsGet) {
  const auto both = ParseShapeAndSlice("4 5 0,2:-");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->full, Shape({4, 5}));
  EXPECT_EQ(both->slice.ToString(), "0,2:-");
  EXPECT_EQ(ParseShapeAndSlice("3 1,2")->full, Shape({3}));
  for (const char* text : {"4 0,2:-", "4 5 3,2:-", "x 5 0,2:-", "4  5 0,2:-", "-4 0,1", "4 5"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseShapeAndSlice(text).status())) << text;
  }
}

TEST(SliceKey, IsTensorFlows) {
  // As recorded files have them; the numbers beyond by TensorFlow's OrderedCode.
  const auto key = [](const char* name, const char* slice) {
    return absl::BytesToHexString(SliceKey(name, *TensorSlice::Parse(slice)));
  };
  EXPECT_EQ(key("rows", "4,3:-"), "00726f7773000101028483807f");
  EXPECT_EQ(key("columns", "-:1,3"), "00636f6c756d6e7300010102807f8183");
  EXPECT_EQ(key("", ""), "00000100");
  EXPECT_EQ(key("x", "63,64"), "007800010101bfc040");
  EXPECT_EQ(key("x", "8191,8192"), "007800010101dfffe02000");
  EXPECT_EQ(key("x", "4294967296,9223372036854775807"),
            "007800010101f900000000ffc07fffffffffffffff");
  EXPECT_EQ(absl::BytesToHexString(SliceKey(std::string("a\0b\xff", 4), TensorSlice())),
            "006100ff62ff00000100");
}

TEST(CopyCommon, CopiesWhatSlicesShare) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 500; ++round) {
    const int rank = static_cast<int>(below(5));
    Shape full;
    std::vector<TensorSlice::Extent> from, to;
    for (int i = 0; i < rank; ++i) {
      full.AddDim(1 + below(4));
      for (auto* extents : {&from, &to}) {
        const int64_t start = below(2) == 0 ? 0 : below(full.dim(i));
        extents->push_back({start, 1 + below(full.dim(i) - start)});
      }
    }
    const TensorSlice from_slice(from), to_slice(to);
    // The number of an element in the whole tensor is its value.
    const auto number = [&](const TensorSlice& slice, int64_t place) {
      int64_t whole = 0, stride = 1;
      for (int i = rank; i-- > 0;) {
        const TensorSlice::Extent& extent = slice.extents()[static_cast<size_t>(i)];
        whole += stride * (extent.start + place % extent.length);
        place /= extent.length;
        stride *= full.dim(i);
      }
      return whole;
    };
    Tensor a = Tensor::Uninitialized(ElementType::kInt64, from_slice.shape());
    Tensor b = Tensor::Uninitialized(ElementType::kInt64, to_slice.shape());
    Tensor a_text = Tensor::Uninitialized(ElementType::kString, from_slice.shape());
    Tensor b_text = Tensor::Uninitialized(ElementType::kString, to_slice.shape());
    std::vector<bool> present(static_cast<size_t>(full.num_elements()));
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      a.mutable_data<int64_t>()[i] = number(from_slice, i);
      a_text.mutable_data<std::string>()[i] = std::to_string(number(from_slice, i));
      present[static_cast<size_t>(number(from_slice, i))] = true;
    }
    for (int64_t& value : b.mutable_values<int64_t>()) value = -1;
    CopyCommon(a, from_slice, to_slice, &b);
    CopyCommon(a_text, from_slice, to_slice, &b_text);
    for (int64_t i = 0; i < b.num_elements(); ++i) {
      const int64_t whole = number(to_slice, i);
      const bool here = present[static_cast<size_t>(whole)];
      ASSERT_EQ(b.unchecked_data<int64_t>()[i], here ? whole : -1)
          << from_slice.ToString() << " to " << to_slice.ToString();
      ASSERT_EQ(b_text.unchecked_data<std::string>()[i], here ? std::to_string(whole) : "");
    }
  }
}

TEST(FindOverlap, FindsWhatAnyTwoHaveInCommon) {
  std::mt19937 random(5);
  const auto number = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  int overlaps = 0;
  for (int round = 0; round < 2000; ++round) {
    const int rank = static_cast<int>(number(3));
    std::vector<TensorSlice> slices;
    for (int64_t i = number(12); i >= 0; --i) {
      std::vector<TensorSlice::Extent> extents;
      for (int d = 0; d < rank; ++d) extents.push_back({number(12), 1 + number(5)});
      slices.emplace_back(extents);
    }
    bool any = false;
    for (size_t i = 0; i < slices.size(); ++i) {
      for (size_t j = i + 1; j < slices.size(); ++j)
        any |= Intersect(slices[i], slices[j]).has_value();
    }
    const auto found = FindOverlap(slices);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->has_value(), any);
    overlaps += any ? 1 : 0;
    if (!any) continue;
    EXPECT_LT((*found)->first, (*found)->second);
    EXPECT_TRUE(Intersect(slices[(*found)->first], slices[(*found)->second]));
  }
  EXPECT_GT(overlaps, 500);
  EXPECT_LT(overlaps, 1900);
}

TEST(FindOverlap, EndsSoon) {
  // A column each, one of them twice; a field each.
  std::vector<TensorSlice> columns, fields;
  for (int64_t i = 0; i < 200'000; ++i) columns.push_back(TensorSlice({{0, 9}, {i, 1}}));
  EXPECT_EQ(*FindOverlap(columns), std::nullopt);
  columns.push_back(columns[77]);
  EXPECT_EQ(*FindOverlap(columns), std::pair(size_t{77}, size_t{200'000}));
  for (int64_t i = 0; i < 100'000; ++i) fields.push_back(TensorSlice({{i / 400, 1}, {i % 400, 1}}));
  EXPECT_EQ(*FindOverlap(fields), std::nullopt);
  // Long and thin ones, across each other in two thirds of a cube.
  std::vector<TensorSlice> across;
  for (int64_t i = 0; i < 300'000; ++i) {
    across.push_back(i % 2 == 0 ? TensorSlice({{0, 1'000'000}, {2 * i, 1}, {0, 1}})
                                : TensorSlice({{2 * i, 1}, {0, 1'000'000}, {1, 1}}));
  }
  const absl::Status status = FindOverlap(across).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace troupe
