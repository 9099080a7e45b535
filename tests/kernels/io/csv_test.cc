// Lines of CSV to columns.
#include "kernels/io/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> Split(std::string_view record,
                                               const CsvOptions& options = {}) {
  CsvSplitter splitter(options, 8);
  if (absl::Status status = splitter.Split(record); !status.ok()) return status;
  std::vector<std::string> fields;
  for (size_t i = 0; i < splitter.count(); ++i) fields.emplace_back(splitter.field(i));
  return fields;
}

TEST(Csv, SplitsAsRfc4180Says) {
  EXPECT_THAT(*Split("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*Split(""), ElementsAre());
  EXPECT_THAT(*Split(","), ElementsAre("", ""));
  EXPECT_THAT(*Split("a,"), ElementsAre("a", ""));
  EXPECT_THAT(*Split("a,\r\n"), ElementsAre("a", ""));
  EXPECT_THAT(*Split(",,b"), ElementsAre("", "", "b"));
  EXPECT_THAT(*Split("\"a,b\",\"\",c"), ElementsAre("a,b", "", "c"));
  EXPECT_THAT(*Split("\"say \"\"hi\"\"\",\"\"\"\""), ElementsAre("say \"hi\"", "\""));
  EXPECT_THAT(*Split("\"two\nlines\""), ElementsAre("two\nlines"));
  EXPECT_THAT(*Split("a;b,c", {.delimiter = ';'}), ElementsAre("a", "b,c"));
  EXPECT_THAT(*Split("\"a\",b\"c", {.quotes = false}), ElementsAre("\"a\"", "b\"c"));
  EXPECT_THAT(*Split("a,b,c,d", {.columns = {1, 3}}), ElementsAre("b", "d"));
  EXPECT_THAT(*Split("a,b,", {.columns = {2}}), ElementsAre(""));
  // What is behind the last column that is wanted is not looked at.
  EXPECT_THAT(*Split("a,b\"", {.columns = {0}}), ElementsAre("a"));
}

TEST(Csv, RefusesQuotesAndLineEndsAtWrongPlaces) {
  for (const char* record :
       {"a\"b", "a,b\nc", "a\n", "\"a", "\"a\"b", "\"a\"b\",c", "\"", "\"\"\""}) {
    const auto fields = Split(record);
    EXPECT_EQ(fields.status().code(), absl::StatusCode::kInvalidArgument) << record;
    EXPECT_THAT(fields.status().message(), HasSubstr("byte")) << record;
  }
}

template <typename T>
absl::StatusOr<T> Column(const std::string& record, std::vector<T> defaults) {
  std::vector<Tensor> columns = {Tensor::Uninitialized(kElementType<T>, Shape({1}))};
  const Tensor default_value = Tensor::Vector<T>(defaults);
  absl::Status status = ParseCsv({&record, 1}, {&default_value, 1}, {.missing = "NA"}, nullptr,
                                 absl::MakeSpan(columns));
  if (!status.ok()) return status;
  return columns[0].unchecked_data<T>()[0];
}

TEST(Csv, Numbers) {
  EXPECT_EQ(*Column<int32_t>(" -7 ", {}), -7);
  EXPECT_EQ(*Column<int32_t>("+7", {}), 7);
  EXPECT_EQ(*Column<int64_t>("9223372036854775807", {}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*Column<float>("1e999", {}), std::numeric_limits<float>::infinity());
  EXPECT_EQ(*Column<double>(" .5", {}), 0.5);
  EXPECT_TRUE(std::isnan(*Column<float>("nan", {})));
  EXPECT_EQ(*Column<std::string>(" x ", {}), " x ");
  for (const char* wrong : {"2147483648", "1.0", "x", "1 2", "0x10"}) {
    EXPECT_THAT(Column<int32_t>(wrong, {1}).status().message(), HasSubstr("int32")) << wrong;
  }
  EXPECT_FALSE(Column<float>("1.5x", {1}).ok());
  EXPECT_FALSE(Column<float>(" ", {1}).ok());
}

TEST(Csv, WhatIsMissingHasItsDefault) {
  EXPECT_EQ(*Column<int32_t>("NA", {3}), 3);
  EXPECT_EQ(*Column<std::string>("\"\"", {"none"}), "none");
  EXPECT_THAT(Column<float>("NA", {}).status().message(), HasSubstr("required"));
}

TEST(Csv, TheFirstWrongRecordIsNamed) {
  std::vector<std::string> records(5000, "1,a");
  records[4000] = "1,a,b";
  records[1234] = "x,a";
  records[1200] = "1";
  std::vector<Tensor> columns = {Tensor::Uninitialized(ElementType::kInt32, Shape({5000})),
                                 Tensor::Uninitialized(ElementType::kString, Shape({5000}))};
  const std::vector<Tensor> defaults = {Tensor::Vector<int32_t>({}),
                                        Tensor::Vector<std::string>({})};
  ComputePool pool(4);
  const auto message = [&] {
    return std::string(ParseCsv(records, defaults, {}, &pool, absl::MakeSpan(columns)).message());
  };
  EXPECT_THAT(message(), HasSubstr("record 1200: expected 2 fields, got 1"));
  records[1200] = "1,a";
  EXPECT_THAT(message(), HasSubstr("record 1234: field 0 is no int32: \"x\""));
  records[1234] = "1,a";
  EXPECT_THAT(message(), HasSubstr("record 4000: expected 2 fields, got 3"));
  records[4000] = "-5,\"q\"\"\"";
  EXPECT_EQ(message(), "");
  EXPECT_EQ(columns[0].unchecked_data<int32_t>()[4000], -5);
  EXPECT_EQ(columns[1].unchecked_data<std::string>()[4000], "q\"");
}

}  // namespace
}  // namespace troupe
