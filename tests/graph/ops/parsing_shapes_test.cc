// What is expected here is what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";
constexpr ElementType kString = ElementType::kString;

using Types = std::vector<ElementType>;
using Shapes = std::vector<PartialShape>;

/// With a sparse feature, two dense ones and a ragged one.
std::string ParseExampleV2(PartialShape serialized,
                           const Shapes& dense = {PartialShape({2}), PartialShape({-1, 3})}) {
  const PartialShape keys({-1});
  return Inferred("ParseExampleV2")
      .In(std::move(serialized), kString)
      .In(PartialShape({0}), kString)
      .In(keys, kString)
      .In(keys, kString)
      .In(keys, kString)
      .List({PartialShape({0}), PartialShape({1})})
      .Attr("num_sparse", 1)
      .Attr("sparse_types", Types{ElementType::kInt64})
      .Attr("ragged_value_types", Types{ElementType::kInt64})
      .Attr("ragged_split_types", Types{ElementType::kInt32})
      .Attr("dense_shapes", dense)
      .Shapes();
}

TEST(ParsingShapes, Examples) {
  EXPECT_EQ(ParseExampleV2(PartialShape()), "[?,?] [?] [?] <unknown> <unknown> [?] [?]");
  EXPECT_EQ(ParseExampleV2(PartialShape({})), "[?,1] [?] [1] [2] [?,3] [?] [?]");
  EXPECT_EQ(ParseExampleV2(PartialShape({-1})), "[?,2] [?] [2] [?,2] [?,?,3] [?] [?]");
  EXPECT_EQ(ParseExampleV2(PartialShape({3})), "[?,2] [?] [2] [3,2] [3,?,3] [?] [4]");
  EXPECT_EQ(ParseExampleV2(PartialShape({3, 1})), kRefused);
  EXPECT_EQ(ParseExampleV2(PartialShape({3}), {PartialShape({2})}), kRefused);
  EXPECT_EQ(ParseExampleV2(PartialShape({3}), {PartialShape({2}), PartialShape()}), kRefused);
  EXPECT_EQ(ParseExampleV2(PartialShape({3}), {PartialShape({2}), PartialShape({2, -1})}),
            kRefused);
}

TEST(ParsingShapes, SequenceExamples) {
  const auto parse = [](PartialShape serialized) {
    Inferred op("ParseSequenceExample");
    op.In(std::move(serialized), kString).In(PartialShape({0}), kString).List({PartialShape({1})});
    for (const char* keys :
         {"feature_list_dense_missing_assumed_empty", "context_sparse_keys", "context_dense_keys",
          "feature_list_sparse_keys", "feature_list_dense_keys"}) {
      op.Attr(keys, std::vector<std::string>{keys});
    }
    for (const char* count :
         {"Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense"}) {
      op.Attr(count, 1);
    }
    for (const char* types :
         {"context_sparse_types", "feature_list_dense_types", "feature_list_sparse_types"}) {
      op.Attr(types, Types{ElementType::kInt64});
    }
    op.Attr("context_dense_shapes", Shapes{PartialShape({1})});
    op.Attr("feature_list_dense_shapes", Shapes{PartialShape({2})});
    return op.Shapes();
  };
  EXPECT_EQ(parse(PartialShape({-1})), "[?,2] [?] [2] [?,1] [?,3] [?] [3] [?,?,2] [?]");
  EXPECT_EQ(parse(PartialShape({})), "[?,1] [?] [1] [1] [?,2] [?] [2] [?,2] []");
}

TEST(ParsingShapes, Bytes) {
  const auto raw = [](PartialShape shape) {
    return Inferred("DecodeRaw")
        .In(std::move(shape), kString)
        .Attr("out_type", ElementType::kFloat)
        .Shapes();
  };
  EXPECT_EQ(raw({2, -1}), "[2,?,?]");
  EXPECT_EQ(raw(PartialShape()), "<unknown>");
  const auto padded = [](int32_t length) {
    return Inferred("DecodePaddedRaw")
        .In({2}, kString)
        .Scalar(length)
        .Attr("out_type", ElementType::kFloat)
        .Shapes();
  };
  EXPECT_EQ(padded(12), "[2,3]");
  EXPECT_EQ(padded(13), kRefused);
}

TEST(ParsingShapes, Files) {
  EXPECT_EQ(Inferred("ReaderReadUpToV2")
                .InScalar(ElementType::kResource)
                .InScalar(ElementType::kResource)
                .InScalar(ElementType::kInt64)
                .Shapes(),
            "[?] [?]");
  EXPECT_EQ(Inferred("MatchingFiles").In({3}, kString).Shapes(), "[?]");
  EXPECT_EQ(Inferred("MatchingFiles").In({3, 1}, kString).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ReadFile").In({1}, kString).Shapes(), kRefused);
}

}  // namespace
}  // namespace troupe
