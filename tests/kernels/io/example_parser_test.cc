// Examples and SequenceExamples from bytes, against protobuf's own parser.
#include "kernels/io/example_parser.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "graph/protos/example.pb.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using Kind = FeatureSpec::Kind;
using ::testing::AllOf;
using testing::ExpectEqual;
using ::testing::HasSubstr;

Feature Floats(std::initializer_list<float> values) {
  Feature feature;
  feature.mutable_float_list()->mutable_value()->Add(values.begin(), values.end());
  return feature;
}
Feature Ints(std::initializer_list<int64_t> values) {
  Feature feature;
  feature.mutable_int64_list()->mutable_value()->Add(values.begin(), values.end());
  return feature;
}
Feature Bytes(std::initializer_list<const char*> values) {
  Feature feature;
  feature.mutable_bytes_list();
  for (const char* value : values) feature.mutable_bytes_list()->add_value(value);
  return feature;
}

std::string Serialized(std::initializer_list<std::pair<const char*, Feature>> features) {
  Example example;
  for (const auto& [key, feature] : features) {
    (*example.mutable_features()->mutable_feature())[key] = feature;
  }
  return example.SerializeAsString();
}

FeatureSpec Fixed(const char* key, ElementType type, Shape shape, Tensor default_value = {}) {
  return {.kind = Kind::kFixed,
          .key = key,
          .type = type,
          .shape = std::move(shape),
          .default_value = std::move(default_value)};
}
FeatureSpec Variable(const char* key, ElementType type, Shape shape, Tensor padding) {
  FeatureSpec spec = Fixed(key, type, std::move(shape), std::move(padding));
  spec.kind = Kind::kVariable;
  return spec;
}
FeatureSpec Sparse(const char* key, ElementType type) {
  return {.kind = Kind::kSparse, .key = key, .type = type};
}
FeatureSpec Ragged(const char* key, ElementType type, ElementType splits = ElementType::kInt64) {
  return {.kind = Kind::kRagged, .key = key, .type = type, .split_type = splits};
}

absl::StatusOr<std::vector<FeatureTensors>> Parse(const std::vector<std::string>& serialized,
                                                  const std::vector<FeatureSpec>& specs,
                                                  bool single = false) {
  if (absl::Status status = CheckSpecs(specs); !status.ok()) return status;
  return ParseFeatures({.serialized = serialized, .single = single}, specs);
}

Tensor Matrix(std::initializer_list<int64_t> values, int64_t columns) {
  return Tensor::Vector<int64_t>(values).Reshaped(
      Shape({static_cast<int64_t>(values.size()) / columns, columns}));
}

TEST(ExampleParser, EveryKindOfFeature) {
  const std::vector<std::string> batch = {
      Serialized({{"f", Floats({1, 2})}, {"i", Ints({-1, int64_t{1} << 40})}, {"s", Bytes({"a"})}}),
      Serialized({{"f", Floats({3, 4})}, {"s", Bytes({"b", "", "c"})}, {"other", Ints({1})}})};
  const auto got =
      Parse(batch, {Fixed("f", ElementType::kFloat, Shape({2})), Sparse("i", ElementType::kInt64),
                    Ragged("s", ElementType::kString, ElementType::kInt32)});
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectEqual((*got)[0].values, Tensor::Vector<float>({1, 2, 3, 4}).Reshaped(Shape({2, 2})));
  ExpectEqual((*got)[1].values, Tensor::Vector<int64_t>({-1, int64_t{1} << 40}));
  ExpectEqual((*got)[1].indices, Matrix({0, 0, 0, 1}, 2));
  ExpectEqual((*got)[1].shape, Tensor::Vector<int64_t>({2, 2}));
  ExpectEqual((*got)[2].values, Tensor::Vector<std::string>({"a", "b", "", "c"}));
  ExpectEqual((*got)[2].splits, Tensor::Vector<int32_t>({0, 1, 4}));
}

TEST(ExampleParser, ASingleExampleHasNoDimensionOfExamples) {
  const std::vector<std::string> one = {Serialized({{"i", Ints({5, 6})}})};
  const auto got = Parse(
      one, {Sparse("none", ElementType::kFloat), Fixed("i", ElementType::kInt64, Shape({2, 1}))},
      true);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectEqual((*got)[0].shape, Tensor::Vector<int64_t>({0}));
  EXPECT_EQ((*got)[0].indices.shape(), Shape({0, 1}));
  ExpectEqual((*got)[1].values, Matrix({5, 6}, 1));
  const auto others =
      Parse(one,
            {Ragged("i", ElementType::kInt64),
             Variable("v", ElementType::kInt64, Shape(), Tensor::Scalar<int64_t>(9))},
            true);
  ASSERT_TRUE(others.ok()) << others.status();
  ExpectEqual((*others)[0].values, Tensor::Vector<int64_t>({5, 6}));
  EXPECT_EQ((*others)[0].splits.shape(), Shape({0}));
  EXPECT_EQ((*others)[1].values.shape(), Shape({0}));
}

TEST(ExampleParser, WhatVariesIsPaddedAndWhatIsMissingHasItsDefault) {
  const std::vector<std::string> batch = {Serialized({{"v", Ints({1, 2, 3, 4})}}), Serialized({}),
                                          Serialized({{"v", Ints({5, 6})}, {"d", Floats({7})}})};
  const auto got =
      Parse(batch, {Variable("v", ElementType::kInt64, Shape({2}), Tensor::Vector<int64_t>({-1})),
                    Fixed("d", ElementType::kFloat, Shape({1}), Tensor::Vector<float>({0.5f}))});
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectEqual((*got)[0].values, Tensor::Vector<int64_t>({1, 2, 3, 4, -1, -1, -1, -1, 5, 6, -1, -1})
                                    .Reshaped(Shape({3, 2, 2})));
  ExpectEqual((*got)[1].values, Tensor::Vector<float>({0.5f, 0.5f, 7}).Reshaped(Shape({3, 1})));
}

TEST(ExampleParser, OfSeveralEntriesTheLastWithValuesCounts) {
  const std::vector<std::string> one = {Serialized({{"a", Ints({1})}}) +
                                        Serialized({{"a", Ints({2, 3})}}) +
                                        Serialized({{"a", Feature()}})};
  const auto got = Parse(one, {Ragged("a", ElementType::kInt64)});
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectEqual((*got)[0].values, Tensor::Vector<int64_t>({2, 3}));
}

TEST(ExampleParser, ReadsUnpackedAndMixedLists) {
  // A FloatList of fixed32 fields, one of them packed; an Int64List likewise, with a field that
  // nobody knows.
  const std::string floats =
      std::string("\x0d\0\0\x80\x3f", 5) + std::string("\x0a\x04\0\0\0\x40", 6);
  const std::string ints = std::string("\x08\x05\x0a\x02\x06\x07\x12\x01x\x08\x08", 11);
  const auto feature = [](char tag, const std::string& list) {
    return std::string(1, tag) + static_cast<char>(list.size()) + list;
  };
  const auto entry = [](const char* key, const std::string& value) {
    const std::string pair =
        std::string("\x0a\x01") + key + "\x12" + static_cast<char>(value.size()) + value;
    return std::string("\x0a") + static_cast<char>(pair.size()) + pair;
  };
  const std::string features = entry("f", feature(0x12, floats)) + entry("i", feature(0x1a, ints));
  const std::vector<std::string> one = {
      "\x0a" + std::string(1, static_cast<char>(features.size())) + features};
  const auto got =
      Parse(one, {Fixed("f", ElementType::kFloat, Shape({2})), Ragged("i", ElementType::kInt64)});
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectEqual((*got)[0].values, Tensor::Vector<float>({1, 2}).Reshaped(Shape({1, 2})));
  ExpectEqual((*got)[1].values, Tensor::Vector<int64_t>({5, 6, 7, 8}));
}

TEST(ExampleParser, ErrorsNameExampleAndFeature) {
  const std::vector<std::string> batch = {Serialized({{"a", Ints({1})}}), Serialized({})};
  const std::vector<std::string> names = {"first", "second"};
  const std::vector<FeatureSpec> required = {Fixed("a", ElementType::kInt64, Shape({1}))};
  const auto missing = ParseFeatures({.serialized = batch, .names = names}, required);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(missing.status().message(),
              AllOf(HasSubstr("example 1"), HasSubstr("'second'"), HasSubstr("'a'")));

  const auto message = [&](const std::vector<FeatureSpec>& specs) {
    const auto got = Parse({batch[0]}, specs);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(got.status().message());
  };
  EXPECT_THAT(message({Fixed("a", ElementType::kFloat, Shape({1}))}),
              AllOf(HasSubstr("int64"), HasSubstr("not float")));
  EXPECT_THAT(message({Sparse("a", ElementType::kString)}), HasSubstr("not string"));
  EXPECT_THAT(message({Fixed("a", ElementType::kInt64, Shape({2}))}), HasSubstr("1 values"));
  EXPECT_THAT(message({Variable("a", ElementType::kInt64, Shape({2}), Tensor::Scalar<int64_t>(0))}),
              HasSubstr("multiple"));
  EXPECT_THAT(message({Variable("a", ElementType::kInt64, Shape({0}), Tensor::Scalar<int64_t>(0))}),
              HasSubstr("multiple"));
  EXPECT_THAT(message({Variable("a", ElementType::kInt64, Shape(), Tensor::Vector<int64_t>({}))}),
              HasSubstr("padding"));
  EXPECT_THAT(message({Sparse("a", ElementType::kInt64), Ragged("a", ElementType::kInt64)}),
              HasSubstr("twice"));
  EXPECT_THAT(message({Sparse("a", ElementType::kInt32)}), HasSubstr("int32"));
  EXPECT_THAT(message({Fixed("b", ElementType::kFloat, Shape({1}), Tensor::Vector<int64_t>({1}))}),
              HasSubstr("default"));
  EXPECT_FALSE(ParseFeatures({.serialized = batch, .names = {names.data(), 1}}, required).ok());
}

TEST(ExampleParser, TheFirstWrongExampleIsNamedWhoeverFindsIt) {
  std::vector<std::string> batch(2000, Serialized({{"a", Ints({1})}}));
  batch[700] = "\x0a";
  batch[1900] = "\x0a";
  ComputePool pool(4);
  for (int i = 0; i < 20; ++i) {
    const std::vector<FeatureSpec> specs = {Fixed("a", ElementType::kInt64, Shape({1}))};
    const auto got = ParseFeatures({.serialized = batch}, specs, {.pool = &pool});
    EXPECT_THAT(got.status().message(), HasSubstr("example 700:"));
  }
}

// --- against protobuf ----------------------------------------------------------------------------

template <typename T>
std::vector<T> Values(const Feature& feature) {
  if constexpr (std::is_same_v<T, std::string>) {
    return {feature.bytes_list().value().begin(), feature.bytes_list().value().end()};
  } else if constexpr (std::is_same_v<T, float>) {
    return {feature.float_list().value().begin(), feature.float_list().value().end()};
  } else {
    return {feature.int64_list().value().begin(), feature.int64_list().value().end()};
  }
}

/// What protobuf finds under a key; nothing if there is none or of another type.
template <typename T, typename Map>
std::vector<T> Expected(const Map& features, const char* key) {
  const auto found = features.find(key);
  return found == features.end() ? std::vector<T>() : Values<T>(found->second);
}

template <typename T>
std::vector<T> Got(const Tensor& tensor) {
  const auto values = tensor.unchecked_values<T>();
  return {values.begin(), values.end()};
}

/// Bytes of floats: NaNs are equal as well.
std::string Bits(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// Every byte altered in several ways, and every length.
template <typename Check>
void ForEachDamage(const std::string& bytes, Check check) {
  const google::protobuf::LogSilencer protobuf_says_what_is_wrong;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x02, 0x08, 0x10, 0x40, 0x80, 0xff}) {
      std::string altered = bytes;
      altered[i] = static_cast<char>(altered[i] ^ flip);
      check(altered);
    }
    check(bytes.substr(0, i));
  }
}

TEST(ExampleParser, DamagedBytesGiveAnErrorOrWhatProtobufReads) {
  const std::string whole =
      Serialized({{"f", Floats({1, -2.5f})}, {"i", Ints({7, -1, 300})}, {"s", Bytes({"ab", "c"})}});
  const std::vector<FeatureSpec> specs = {Ragged("f", ElementType::kFloat),
                                          Ragged("i", ElementType::kInt64),
                                          Ragged("s", ElementType::kString)};
  int same = 0, errors = 0;
  ForEachDamage(whole, [&](const std::string& bytes) {
    const auto got = Parse({bytes}, specs);
    if (!got.ok()) {
      ++errors;
      EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
      return;
    }
    Example example;
    if (!example.ParseFromString(bytes)) return;  // Keys are not UTF-8, for instance.
    ++same;
    const auto& features = example.features().feature();
    EXPECT_EQ(Bits(Got<float>((*got)[0].values)), Bits(Expected<float>(features, "f")));
    EXPECT_EQ(Got<int64_t>((*got)[1].values), Expected<int64_t>(features, "i"));
    EXPECT_EQ(Got<std::string>((*got)[2].values), Expected<std::string>(features, "s"));
  });
  EXPECT_GT(same, 100);
  EXPECT_GT(errors, 100);
}

TEST(ExampleParser, ALengthThatLiesAllocatesNothing) {
  // A list that claims nearly 2^63 bytes, at each level.
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  const std::string kPrefixes[] = {"\x0a", "\x0a\x20\x0a", "\x0a\x20\x0a\x18\x0a\x01i\x12",
                                   "\x0a\x20\x0a\x18\x0a\x01i\x12\x12\x1a",
                                   "\x0a\x20\x0a\x18\x0a\x01i\x12\x12\x1a\x10\x0a"};
  for (const std::string& prefix : kPrefixes) {
    EXPECT_FALSE(Parse({prefix + huge}, {Sparse("i", ElementType::kInt64)}).ok());
  }
}

TEST(ExampleParser, ResultsDoNotDependOnTheNumberOfThreads) {
  std::vector<std::string> batch;
  for (int i = 0; i < 3000; ++i) {
    Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    for (int k = 0; k < i % 7; ++k) features["i"].mutable_int64_list()->add_value(i * k);
    features["f"].mutable_float_list()->add_value(static_cast<float>(i));
    if (i % 3 == 0) features["s"].mutable_bytes_list()->add_value(std::to_string(i));
    batch.push_back(example.SerializeAsString());
  }
  const std::vector<FeatureSpec> specs = {
      Sparse("i", ElementType::kInt64), Fixed("f", ElementType::kFloat, Shape({1})),
      Variable("s", ElementType::kString, Shape(), Tensor::Scalar("-"))};
  const auto one = ParseFeatures({.serialized = batch}, specs);
  ASSERT_TRUE(one.ok()) << one.status();
  ComputePool pool(4);
  const auto four = ParseFeatures({.serialized = batch}, specs, {.pool = &pool});
  ASSERT_TRUE(four.ok()) << four.status();
  ExpectEqual((*four)[0].values, (*one)[0].values);
  ExpectEqual((*four)[0].indices, (*one)[0].indices);
  ExpectEqual((*four)[0].shape, (*one)[0].shape);
  ExpectEqual((*four)[1].values, (*one)[1].values);
  ExpectEqual((*four)[2].values, (*one)[2].values);
}

// --- sequences -----------------------------------------------------------------------------------

std::string Sequence(std::initializer_list<std::pair<const char*, std::vector<Feature>>> lists) {
  SequenceExample example;
  for (const auto& [key, features] : lists) {
    FeatureList& list = (*example.mutable_feature_lists()->mutable_feature_list())[key];
    for (const Feature& feature : features) *list.add_feature() = feature;
  }
  return example.SerializeAsString();
}

TEST(SequenceParser, EveryKindOfList) {
  const std::vector<std::string> batch = {Sequence({{"d", {Floats({1, 2}), Floats({3, 4})}},
                                                    {"s", {Ints({1}), Feature(), Ints({2, 3})}},
                                                    {"r", {Bytes({"a", "b"}), Bytes({})}}}),
                                          Sequence({{"d", {Floats({5, 6})}}})};
  const std::vector<FeatureSpec> specs = {Fixed("d", ElementType::kFloat, Shape({2})),
                                          Sparse("s", ElementType::kInt64),
                                          Ragged("r", ElementType::kString)};
  const auto got = ParseFeatureLists({.serialized = batch}, specs);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectEqual((*got)[0].values,
              Tensor::Vector<float>({1, 2, 3, 4, 5, 6, 0, 0}).Reshaped(Shape({2, 2, 2})));
  ExpectEqual((*got)[0].lengths, Tensor::Vector<int64_t>({2, 1}));
  ExpectEqual((*got)[1].values, Tensor::Vector<int64_t>({1, 2, 3}));
  ExpectEqual((*got)[1].indices, Matrix({0, 0, 0, 0, 2, 0, 0, 2, 1}, 3));
  ExpectEqual((*got)[1].shape, Tensor::Vector<int64_t>({2, 3, 2}));
  ExpectEqual((*got)[2].values, Tensor::Vector<std::string>({"a", "b"}));
  ExpectEqual((*got)[2].splits, Tensor::Vector<int64_t>({0, 2, 2}));
  ExpectEqual((*got)[2].inner_splits, Tensor::Vector<int64_t>({0, 2, 2}));

  const auto single = ParseFeatureLists({.serialized = {batch.data(), 1}, .single = true}, specs);
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_EQ((*single)[0].values.shape(), Shape({2, 2}));
  ExpectEqual((*single)[0].lengths, Tensor::Scalar<int64_t>(2));
  ExpectEqual((*single)[1].indices, Matrix({0, 0, 2, 0, 2, 1}, 2));
  ExpectEqual((*single)[1].shape, Tensor::Vector<int64_t>({3, 2}));
}

TEST(SequenceParser, Errors) {
  const std::vector<std::string> batch = {Sequence({{"d", {Floats({1}), Floats({2, 3})}}})};
  const auto message = [&](std::vector<FeatureSpec> specs) {
    const auto got = ParseFeatureLists({.serialized = batch}, specs);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(got.status().message());
  };
  EXPECT_THAT(message({Fixed("d", ElementType::kFloat, Shape({1}))}),
              AllOf(HasSubstr("'d'"), HasSubstr("position 1")));
  EXPECT_THAT(message({Sparse("d", ElementType::kInt64)}), HasSubstr("not int64"));
  EXPECT_THAT(message({Fixed("gone", ElementType::kFloat, Shape({1}))}), HasSubstr("missing"));
  FeatureSpec allowed = Fixed("gone", ElementType::kFloat, Shape({1}));
  allowed.may_be_missing = true;
  const auto got = ParseFeatureLists({.serialized = batch}, {&allowed, 1});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].values.shape(), Shape({1, 0, 1}));
}

TEST(SequenceParser, DamagedBytesGiveAnErrorOrWhatProtobufReads) {
  const std::string whole = Sequence(
      {{"i", {Ints({1, 2}), Ints({}), Ints({300})}}, {"s", {Bytes({"x"}), Bytes({"y", "z"})}}});
  const std::vector<FeatureSpec> specs = {Ragged("i", ElementType::kInt64),
                                          Sparse("s", ElementType::kString)};
  int same = 0;
  ForEachDamage(whole, [&](const std::string& bytes) {
    const std::vector<std::string> batch = {bytes};
    const auto got = ParseFeatureLists({.serialized = batch}, specs);
    SequenceExample example;
    if (!got.ok() || !example.ParseFromString(bytes)) return;
    ++same;
    std::vector<int64_t> ints;
    std::vector<std::string> strings;
    const auto& lists = example.feature_lists().feature_list();
    if (lists.contains("i")) {
      for (const Feature& one : lists.at("i").feature()) {
        for (const int64_t value : one.int64_list().value()) ints.push_back(value);
      }
    }
    if (lists.contains("s")) {
      for (const Feature& one : lists.at("s").feature()) {
        for (const auto& value : one.bytes_list().value()) strings.push_back(value);
      }
    }
    EXPECT_EQ(Got<int64_t>((*got)[0].values), ints);
    EXPECT_EQ(Got<std::string>((*got)[1].values), strings);
  });
  EXPECT_GT(same, 50);
}

}  // namespace
}  // namespace troupe
