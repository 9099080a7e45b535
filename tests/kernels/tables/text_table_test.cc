#include "kernels/tables/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/kernels/sync/reply.h"
#include "tests/kernels/tables/bytes_file.h"

namespace troupe {
namespace {

using testing::BytesFile;
using Code = absl::StatusCode;
using ::testing::HasSubstr;

constexpr int64_t kWholeLine = -2, kLineNumber = -1;

struct Reading {
  std::string text;
  ElementType key = ElementType::kString, value = ElementType::kInt64;
  TextTableOptions lines = {};

  absl::StatusOr<std::unique_ptr<TableStore>> Read() const {
    TableOptions table;
    table.kind = TableOptions::Kind::kImmutable;
    table.key_type = key;
    table.value_type = value;
    return ReadTextTable(BytesFile(text), "words.txt", table, lines, [] { return false; });
  }
  template <typename K, typename V>
  std::map<K, V> Entries() const {
    std::map<K, V> entries;
    const auto store = Read();
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return entries;
    const auto exported = (*store)->Export().value();
    for (int64_t i = 0; i < exported.first.num_elements(); ++i) {
      entries[exported.first.unchecked_data<K>()[i]] = exported.second.unchecked_data<V>()[i];
    }
    return entries;
  }
};

using Words = std::map<std::string, int64_t>;

/// As TensorFlow 2.21 reads the same files.
TEST(TextTable, ReadsLinesAsTensorFlowDoes) {
  const auto words = [](std::string text, TextTableOptions lines) {
    return Reading{std::move(text), ElementType::kString, ElementType::kInt64, std::move(lines)}
        .Entries<std::string, int64_t>();
  };
  EXPECT_EQ(words("a\nb\nc\n", {}), (Words{{"a", 0}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(words("a\r\nb\r\nc", {}), (Words{{"a", 0}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(words("a\nb\nc\n", {.vocab_size = 2}), (Words{{"a", 0}, {"b", 1}}));
  EXPECT_EQ(words("a\nb\n", {.offset = 5}), (Words{{"a", 5}, {"b", 6}}));
  const TextTableOptions columns = {.key_index = 0, .value_index = 1};
  EXPECT_EQ(words("a\t1\tx\nb\t-7\n", columns), (Words{{"a", 1}, {"b", -7}}));
  EXPECT_EQ(words("a\t 5 \nb\t+7\n", columns), (Words{{"a", 5}, {"b", 7}}));
  EXPECT_EQ(words("a\t1\na\t1\n", columns), (Words{{"a", 1}}));
  EXPECT_EQ(words("1\ta\n2\tb\n", {.key_index = 1, .value_index = 0}), (Words{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(words("a,1\n,2\n", {.key_index = 0, .value_index = 1, .delimiter = ","}),
            (Words{{"a", 1}, {"", 2}}));
  // What comes after the vocabulary is not looked at.
  EXPECT_EQ(words("a\t1\nb\n", {.key_index = 0, .value_index = 1, .vocab_size = 1}),
            (Words{{"a", 1}}));
}

TEST(TextTable, ReadsTypes) {
  using std::map;
  const TextTableOptions columns = {.key_index = 0, .value_index = 1};
  EXPECT_EQ(
      (Reading{"5\n6\n", ElementType::kInt64, ElementType::kInt64}.Entries<int64_t, int64_t>()),
      (map<int64_t, int64_t>{{5, 0}, {6, 1}}));
  EXPECT_EQ((Reading{"a\nb\n",
                     ElementType::kInt64,
                     ElementType::kString,
                     {.key_index = kLineNumber, .value_index = kWholeLine}}
                 .Entries<int64_t, std::string>()),
            (map<int64_t, std::string>{{0, "a"}, {1, "b"}}));
  EXPECT_EQ((Reading{"7\t2147483647\n", ElementType::kInt32, ElementType::kInt32, columns}
                 .Entries<int32_t, int32_t>()),
            (map<int32_t, int32_t>{{7, 2147483647}}));
  const auto floats = Reading{"a\t1.5\nb\tnan\nc\tinf\nd\t1e40\n", ElementType::kString,
                              ElementType::kFloat, columns}
                          .Entries<std::string, float>();
  EXPECT_EQ(floats.at("a"), 1.5f);
  EXPECT_TRUE(std::isnan(floats.at("b")));
  EXPECT_TRUE(std::isinf(floats.at("c")) && std::isinf(floats.at("d")));
  EXPECT_EQ((Reading{"a\t1e40\n", ElementType::kString, ElementType::kDouble, columns}
                 .Entries<std::string, double>()),
            (map<std::string, double>{{"a", 1e40}}));
}

TEST(TextTable, SaysWhichLineIsBad) {
  const TextTableOptions columns = {.key_index = 0, .value_index = 1};
  const auto text = ElementType::kString;
  std::string late;
  for (int i = 0; i < 3000; ++i) late += std::to_string(i) + "\t1\n";
  struct {
    Reading reading;
    Code code;
    const char* says;
  } cases[] = {
      {{""}, Code::kOutOfRange, "no lines"},
      {{"a\nb\n", text, ElementType::kInt64, {.vocab_size = 0}}, Code::kOutOfRange, "no lines"},
      {{"a\n\nc\n"}, Code::kInvalidArgument, "words.txt line 2: an empty line"},
      {{"a\n\r\nc\n"}, Code::kInvalidArgument, "words.txt line 2: an empty line"},
      {{"a\na\n"}, Code::kFailedPrecondition, "words.txt line 2: key a has two different values"},
      {{"a\nb\n", text, ElementType::kInt64, {.vocab_size = 5}},
       Code::kInvalidArgument,
       "expected vocab_size 5 lines, got 2"},
      {{"a\t1\nb\n", text, ElementType::kInt64, columns},
       Code::kInvalidArgument,
       "words.txt line 2: expected at least 2 columns, got 1"},
      {{"a\tx\n", text, ElementType::kInt64, columns},
       Code::kInvalidArgument,
       "line 1: value \"x\" is not a valid int64"},
      {{"a\t0x10\n", text, ElementType::kInt64, columns}, Code::kInvalidArgument, "0x10"},
      {{"a\t99999999999999999999\n", text, ElementType::kInt64, columns},
       Code::kInvalidArgument,
       "is not a valid int64"},
      {{"a\t9999999999\n", text, ElementType::kInt32, columns},
       Code::kInvalidArgument,
       "is not a valid int32"},
      {{"a\t1.5x\n", text, ElementType::kFloat, columns},
       Code::kInvalidArgument,
       "is not a valid float"},
      {{"a\t\n", text, ElementType::kInt64, columns}, Code::kInvalidArgument, "is not a valid"},
      {{"a\ttrue\n", text, ElementType::kBool, columns}, Code::kInvalidArgument, "bool"},
      {{"a\t1\n", text, ElementType::kInt64, {.delimiter = ""}},
       Code::kInvalidArgument,
       "delimiter"},
      {{"a\t1\n", text, ElementType::kInt64, {.delimiter = ",,"}},
       Code::kInvalidArgument,
       "delimiter"},
      {{"a\n", text, ElementType::kInt32}, Code::kInvalidArgument, "requires type int64"},
      {{"a\n", text, text, {.key_index = kLineNumber, .value_index = kWholeLine}},
       Code::kInvalidArgument,
       "requires type int64"},
      {{late + "7\t2\n", text, ElementType::kInt64, columns},
       Code::kFailedPrecondition,
       "words.txt line 3001: key 7"},
      {{std::string(size_t{17} << 20, 'x')}, Code::kInvalidArgument, "line 1: longer than"},
      {{std::string("a\tx\0\"\n", 6), text, ElementType::kInt64, columns},
       Code::kInvalidArgument,
       "\"x\\000\\\"\""},
  };
  for (const auto& [reading, code, says] : cases) {
    const absl::Status status = reading.Read().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
}

TEST(TextTable, CanBeGivenUp) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "\n";
  TableOptions table;
  table.kind = TableOptions::Kind::kImmutable;
  table.key_type = ElementType::kString;
  table.value_type = ElementType::kInt64;
  EXPECT_EQ(ReadTextTable(BytesFile(text), "it", table, {}, [] { return true; }).status().code(),
            Code::kCancelled);
}

}  // namespace
}  // namespace troupe
