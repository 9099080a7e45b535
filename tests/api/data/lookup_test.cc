#include "api/lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "api/ops.h"
#include "api/session.h"
#include "api/training/saver.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using Code = absl::StatusCode;
using ::testing::HasSubstr;

Tensor Texts(std::initializer_list<std::string> values) {
  return Tensor::Vector<std::string>(values);
}
Tensor Ints(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }

class LookupTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> NewSession() {
    EXPECT_TRUE(s.ok()) << s.status();
    auto session = Session::Create(s.graph());
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  static absl::Status RunNode(Session& session, Node* node) {
    return session.Run(NamedTensors{}, {}, {node->name()}, nullptr);
  }
  static absl::StatusOr<std::vector<Tensor>> Fetch(Session& session, Output output) {
    return session.Run({output});
  }
  std::string File(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/lookup_test_" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ofstream(path) << text;
    return path;
  }

  Scope s = Scope::NewRoot();
};

TEST_F(LookupTest, StaticTablesAreInitializedInEachSession) {
  const StaticHashTable table(s, KeyValueTensorInitializer(Texts({"a", "b"}), Ints({5, 6})),
                              int64_t{-1});
  const Output found = table.Lookup(s, Texts({"b", "x"}));
  const Output size = table.Size(s);
  Node* const initialize = TablesInitializer(s);
  auto one = NewSession(), two = NewSession();
  EXPECT_EQ(Fetch(*one, found).status().code(), Code::kFailedPrecondition);
  ASSERT_EQ(RunNode(*one, initialize), absl::OkStatus());
  ASSERT_EQ(RunNode(*one, initialize), absl::OkStatus());
  ExpectEqual(Fetch(*one, found).value()[0], Ints({6, -1}));
  ExpectEqual(Fetch(*one, size).value()[0], Tensor::Scalar<int64_t>(2));
  EXPECT_EQ(Fetch(*two, found).status().code(), Code::kFailedPrecondition);
}

TEST_F(LookupTest, TextFilesGiveIdsAndBuckets) {
  const IdTableWithHashBuckets ids =
      IndexTableFromFile(s, File("emerson\nlake\npalmer\n"), {.num_oov_buckets = 2});
  const StaticHashTable words = IndexToStringTableFromFile(s, File("emerson\nlake\npalmer\n"));
  const Output found = ids.Lookup(s, Texts({"lake", "palmer", "and", "king"}));
  const Output back = words.Lookup(s, Ints({2, 0, 7}));
  const Output size = ids.Size(s);
  Node* const initialize = TablesInitializer(s);
  auto session = NewSession();
  ASSERT_EQ(RunNode(*session, initialize), absl::OkStatus());
  const Tensor got = Fetch(*session, found).value()[0];
  const absl::Span<const int64_t> values = got.unchecked_values<int64_t>();
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
  // As TensorFlow's index_table_from_file has them: FarmHash64 modulo 2, after the table's.
  for (int i : {2, 3}) EXPECT_TRUE(values[i] == 3 || values[i] == 4) << values[i];
  ExpectEqual(Fetch(*session, back).value()[0], Texts({"palmer", "emerson", "UNK"}));
  ExpectEqual(Fetch(*session, size).value()[0], Tensor::Scalar<int64_t>(5));
}

TEST_F(LookupTest, BadFilesFailTheStep) {
  const struct {
    std::string text;
    Code code;
    const char* says;
  } cases[] = {{"a\n\nb\n", Code::kInvalidArgument, "line 2: an empty line"},
               {"a\na\n", Code::kFailedPrecondition, "line 2: key a"},
               {"", Code::kOutOfRange, "no lines"}};
  for (const auto& [text, code, says] : cases) {
    s = Scope::NewRoot();
    IndexTableFromFile(s, File(text));
    Node* const initialize = TablesInitializer(s);
    auto session = NewSession();
    const absl::Status status = RunNode(*session, initialize);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
  s = Scope::NewRoot();
  IndexTableFromFile(s, "/nonexistent/words");
  Node* const initialize = TablesInitializer(s);
  EXPECT_EQ(RunNode(*NewSession(), initialize).code(), Code::kNotFound);
}

TEST_F(LookupTest, IndicesOfATensor) {
  const IdTableWithHashBuckets ids = IndexTableFromTensor(s, Texts({"x", "y"}));
  const StaticHashTable words = IndexToStringTableFromTensor(s, Texts({"x", "y"}), "?");
  const Output found = ids.Lookup(s, Texts({"y", "z"}));
  const Output back = words.Lookup(s, Ints({1, 2}));
  Node* const initialize = TablesInitializer(s);
  auto session = NewSession();
  ASSERT_EQ(RunNode(*session, initialize), absl::OkStatus());
  ExpectEqual(Fetch(*session, found).value()[0], Ints({1, -1}));
  ExpectEqual(Fetch(*session, back).value()[0], Texts({"y", "?"}));
}

TEST_F(LookupTest, WhatCannotBeIsSaidWhereItIsWritten) {
  const auto refused = [](const std::function<void(const Scope&)>& write) {
    const Scope scope = Scope::NewRoot();
    write(scope);
    return scope.status().code();
  };
  EXPECT_EQ(refused([](const Scope& t) { IdTableWithHashBuckets(t, StaticHashTable(), 0); }),
            Code::kInvalidArgument);
  EXPECT_EQ(refused([](const Scope& t) { IndexTableFromTensor(t, Ints({1})); }),
            Code::kInvalidArgument);
  EXPECT_EQ(refused([](const Scope& t) {
              const StaticHashTable table(t, KeyValueTensorInitializer(Texts({"a"}), Ints({1, 2})),
                                          int64_t{0});
            }),
            Code::kInvalidArgument);
  EXPECT_EQ(refused([](const Scope& t) {
              DenseHashTable(t, ElementType::kInt64, ElementType::kFloat, Tensor::Scalar(0.0f),
                             "empty", "deleted");
            }),
            Code::kInvalidArgument);
}

TEST_F(LookupTest, MutableTablesChange) {
  const MutableHashTable counts(s, ElementType::kString, ElementType::kInt64,
                                Tensor::Scalar<int64_t>(0));
  const MutableHashTable rows(s, ElementType::kInt64, ElementType::kFloat,
                              Tensor::Vector<float>({-1, -2}));
  const DenseHashTable dense(s, ElementType::kInt64, ElementType::kFloat, Tensor::Scalar(0.5f),
                             int64_t{-1}, int64_t{-2});
  Node* const put_counts = counts.Insert(s, Texts({"a", "b"}), Ints({1, 2}));
  Node* const put_rows =
      rows.Insert(s, Ints({7}), Tensor::Vector<float>({3, 4}).Reshaped(Shape({1, 2})));
  Node* const put_dense = dense.Insert(s, Ints({7}), Tensor::Vector<float>({9}));
  Node* const remove = counts.Remove(s, Texts({"a"}));
  const Output found_counts = counts.Lookup(s, Texts({"a", "b"}));
  const Output found_rows = rows.Lookup(s, Ints({8, 7}));
  const Output found_dense = dense.Lookup(s, Ints({8, 7}));
  auto session = NewSession();
  for (Node* node : {put_counts, put_rows, put_dense}) {
    ASSERT_EQ(RunNode(*session, node), absl::OkStatus());
  }
  ExpectEqual(Fetch(*session, found_counts).value()[0], Ints({1, 2}));
  ASSERT_EQ(RunNode(*session, remove), absl::OkStatus());
  ExpectEqual(Fetch(*session, found_counts).value()[0], Ints({0, 2}));
  ExpectEqual(Fetch(*session, found_rows).value()[0],
              Tensor::Vector<float>({-1, -2, 3, 4}).Reshaped(Shape({2, 2})));
  ExpectEqual(Fetch(*session, found_dense).value()[0], Tensor::Vector<float>({0.5f, 9}));
}

/// By a saver, which finds the tables with the variables, into the same bundle.
TEST_F(LookupTest, MutableTablesAreSavedAndRestored) {
  const ModelVariable variable(s, Const(s, 5.0f), "v");
  const MutableHashTable table(s, ElementType::kString, ElementType::kInt64,
                               Tensor::Scalar<int64_t>(0), {.name = "words"});
  const DenseHashTable dense(s, ElementType::kInt64, ElementType::kFloat, Tensor::Scalar(0.5f),
                             int64_t{-1}, int64_t{-2}, {.name = "dense"});
  const MutableHashTable passing(s, ElementType::kString, ElementType::kInt64,
                                 Tensor::Scalar<int64_t>(0),
                                 {.name = "passing", .checkpoint = false});
  Saver saver(s);
  Node* const put = table.Insert(s, Texts({"a", "b"}), Ints({1, 2}));
  Node* const put_dense = dense.Insert(s, Ints({3, 4}), Tensor::Vector<float>({30, 40}));
  const Output found = table.Lookup(s, Texts({"b", "c"}));
  const Output found_dense = dense.Lookup(s, Ints({4, 5}));
  std::string path;
  {
    auto session = NewSession();
    ASSERT_EQ(RunNode(*session, variable.initializer()), absl::OkStatus());
    ASSERT_EQ(RunNode(*session, put), absl::OkStatus());
    ASSERT_EQ(RunNode(*session, put_dense), absl::OkStatus());
    const auto saved = saver.Save(*session, ::testing::TempDir() + "/lookup_test/model");
    ASSERT_TRUE(saved.ok()) << saved.status();
    path = *saved;
  }
  std::vector<std::string> names;
  const auto reader = OpenCheckpoint(FileSystems().Find(path).value(), path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const auto& [name, tensor] : (*reader)->tensors()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"dense-keys", "dense-values", "v", "words-keys",
                                             "words-values"}));
  auto session = NewSession();
  ASSERT_EQ(saver.Restore(*session, path), absl::OkStatus());
  ExpectEqual(Fetch(*session, found).value()[0], Ints({2, 0}));
  ExpectEqual(Fetch(*session, found_dense).value()[0], Tensor::Vector<float>({40, 0.5f}));
}

}  // namespace
}  // namespace troupe
