#include "kernels/tables/lookup_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/tables/dense_hash.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/queues/calls.h"
#include "tests/kernels/sync/reply.h"

namespace troupe {
namespace {

using testing::Calls;
using testing::ExpectEqual;
using testing::MakeMachine;
using testing::Reply;
using Code = absl::StatusCode;
using Kind = TableOptions::Kind;

constexpr ElementType kInt64 = ElementType::kInt64, kText = ElementType::kString;

/// A table, called by handle; a call that cannot wait here is over at once.
class Table {
 public:
  explicit Table(TableOptions options) : table_(MakeMachine<LookupTable>(std::move(options))) {}

  absl::Status Insert(Tensor keys, Tensor values) {
    Reply reply;
    table_->Insert(std::move(keys), std::move(values), nullptr, reply.done());
    return reply.status();
  }
  absl::Status Import(Tensor keys, Tensor values) {
    Reply reply;
    table_->Import(std::move(keys), std::move(values), nullptr, reply.done());
    return reply.status();
  }
  absl::Status Remove(Tensor keys) {
    Reply reply;
    table_->Remove(std::move(keys), nullptr, reply.done());
    return reply.status();
  }
  absl::StatusOr<Tensor> Find(Tensor keys, Tensor defaults) {
    Reply reply;
    table_->Find(std::move(keys), std::move(defaults), nullptr, reply.done());
    if (!reply.status().ok()) return reply.status();
    return reply.tuple()[0];
  }
  absl::StatusOr<Tuple> Export() {
    Reply reply;
    table_->Export(nullptr, reply.done());
    if (!reply.status().ok()) return reply.status();
    return reply.tuple();
  }
  LookupTable* operator->() { return table_.get(); }

 private:
  RefPtr<LookupTable> table_;
};

TableOptions Options(Kind kind, ElementType key, ElementType value) {
  TableOptions options;
  options.kind = kind;
  options.key_type = key;
  options.value_type = value;
  return options;
}

TableOptions Dense(int64_t buckets = 4, float max_load = 0.75f) {
  TableOptions options = Options(Kind::kDense, kInt64, ElementType::kFloat);
  options.empty_key = Tensor::Scalar<int64_t>(-1);
  options.deleted_key = Tensor::Scalar<int64_t>(-2);
  options.initial_buckets = buckets;
  options.max_load = max_load;
  return options;
}

Tensor Ints(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }
Tensor Texts(std::initializer_list<std::string> values) {
  return Tensor::Vector<std::string>(values);
}
Tensor Floats(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

TEST(LookupTable, AnImmutableOneIsInitializedOnce) {
  Table table(Options(Kind::kImmutable, kText, kInt64));
  EXPECT_EQ(table->Size(), 0);
  EXPECT_EQ(table.Find(Texts({"a"}), Tensor::Scalar<int64_t>(0)).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(table.Export().status().code(), Code::kAborted);
  EXPECT_EQ(table->Initialize(Texts({"a", "b", "a"}), Ints({1, 2, 3})).code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(table->Size(), 0);
  EXPECT_EQ(table->Initialize(Texts({"a", "b", "a"}), Ints({1, 2, 1})), absl::OkStatus());
  EXPECT_EQ(table->Size(), 2);
  ExpectEqual(table.Find(Texts({"b", "", "a"}), Tensor::Scalar<int64_t>(-7)).value(),
              Ints({2, -7, 1}));
  // The same contents, in any order, do no harm; others are refused.
  EXPECT_EQ(table->Initialize(Texts({"b", "a"}), Ints({2, 1})), absl::OkStatus());
  EXPECT_EQ(table.Import(Texts({"b", "a"}), Ints({2, 1})), absl::OkStatus());
  EXPECT_EQ(table->Initialize(Texts({"b", "a"}), Ints({2, 3})).code(), Code::kFailedPrecondition);
  EXPECT_EQ(table->Initialize(Texts({"b", "c"}), Ints({2, 1})).code(), Code::kFailedPrecondition);
  EXPECT_EQ(table->Initialize(Texts({"b"}), Ints({2})).code(), Code::kFailedPrecondition);
  EXPECT_EQ(table.Insert(Texts({"b"}), Ints({2})).code(), Code::kUnimplemented);
  EXPECT_EQ(table.Remove(Texts({"b"})).code(), Code::kUnimplemented);
  EXPECT_EQ(table.Export()->at(0).num_elements(), 2);
}

TEST(LookupTable, RefusesWhatDoesNotFit) {
  Table table(Options(Kind::kImmutable, kText, kInt64));
  EXPECT_EQ(table->Initialize(Texts({}), Ints({})).code(), Code::kInvalidArgument);
  EXPECT_EQ(table->Initialize(Texts({"a"}), Ints({1, 2})).code(), Code::kInvalidArgument);
  EXPECT_EQ(table->Initialize(Tensor::Scalar("a"), Tensor::Scalar<int64_t>(1)).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(table->Initialize(Ints({1}), Ints({1})).code(), Code::kInvalidArgument);
  Table mutable_one(Options(Kind::kMutable, kText, kInt64));
  EXPECT_EQ(mutable_one->Initialize(Texts({"a"}), Ints({1})).code(), Code::kInvalidArgument);
  EXPECT_EQ(mutable_one.Insert(Texts({"a"}), Ints({1, 2})).code(), Code::kInvalidArgument);
  EXPECT_EQ(mutable_one.Insert(Texts({"a"}), Floats({1})).code(), Code::kInvalidArgument);
  EXPECT_EQ(mutable_one.Insert(Ints({1}), Ints({1})).code(), Code::kInvalidArgument);
  EXPECT_EQ(mutable_one.Remove(Ints({1})).code(), Code::kInvalidArgument);
  const auto find = [&](Tensor keys, Tensor defaults) {
    return mutable_one.Find(std::move(keys), std::move(defaults)).status().code();
  };
  EXPECT_EQ(find(Ints({1}), Tensor::Scalar<int64_t>(0)), Code::kInvalidArgument);
  EXPECT_EQ(find(Texts({"a"}), Tensor::Scalar(0.0f)), Code::kInvalidArgument);
  EXPECT_EQ(find(Texts({"a", "b"}), Ints({0})), Code::kInvalidArgument);
  EXPECT_EQ(find(Texts({"a", "b"}), Ints({0, 1})), Code::kOk);
}

TEST(LookupTable, AMutableOneChanges) {
  Table table(Options(Kind::kMutable, kText, kInt64));
  EXPECT_EQ(table.Insert(Texts({"a", "b", "a"}), Ints({1, 2, 3})), absl::OkStatus());
  EXPECT_EQ(table->Size(), 2);
  // A default for each key, and keys of any shape.
  ExpectEqual(table.Find(Texts({"a", "x", "y"}), Ints({7, 8, 9})).value(), Ints({3, 8, 9}));
  ExpectEqual(
      table.Find(Texts({"a", "b"}).Reshaped(Shape({1, 2, 1})), Tensor::Scalar<int64_t>(0)).value(),
      Ints({3, 2}).Reshaped(Shape({1, 2, 1})));
  ExpectEqual(table.Find(Tensor::Scalar("b"), Tensor::Scalar<int64_t>(0)).value(),
              Tensor::Scalar<int64_t>(2));
  EXPECT_EQ(table.Remove(Texts({"a", "nobody"})), absl::OkStatus());
  EXPECT_EQ(table->Size(), 1);
  EXPECT_EQ(table.Import(Texts({"c", "d", "c"}), Ints({5, 6, 7})), absl::OkStatus());
  EXPECT_EQ(table->Size(), 2);
  ExpectEqual(table.Find(Texts({"b", "c"}), Tensor::Scalar<int64_t>(0)).value(), Ints({0, 7}));
  EXPECT_EQ(table.Import(Texts({}), Ints({})), absl::OkStatus());
  EXPECT_EQ(table.Export()->at(1).shape(), Shape({0}));
}

TEST(LookupTable, ValuesMayBeVectors) {
  TableOptions options = Options(Kind::kOfTensors, kInt64, kText);
  options.value_shape = Shape({2});
  Table table(options);
  const auto pairs = [](std::initializer_list<std::string> values) {
    return Texts(values).Reshaped(Shape({static_cast<int64_t>(values.size()) / 2, 2}));
  };
  EXPECT_EQ(table.Insert(Ints({1, 2}), pairs({"a", "b", "c", "d"})), absl::OkStatus());
  EXPECT_EQ(table.Remove(Ints({1})), absl::OkStatus());
  EXPECT_EQ(table.Insert(Ints({3, 4, 2}), pairs({"e", "f", "g", "h", "i", "j"})), absl::OkStatus());
  EXPECT_EQ(table->Size(), 3);
  ExpectEqual(table.Find(Ints({2, 1, 3, 4}), Texts({"x", "y"})).value(),
              pairs({"i", "j", "x", "y", "e", "f", "g", "h"}));
  EXPECT_EQ(table.Insert(Ints({3}), Texts({"a", "b"})).code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Find(Ints({3}), Tensor::Scalar("x")).status().code(), Code::kInvalidArgument);
  const Tuple exported = table.Export().value();
  Table copy(options);
  EXPECT_EQ(copy.Import(exported[0], exported[1]), absl::OkStatus());
  ExpectEqual(copy.Find(Ints({4}), Texts({"x", "y"})).value(), pairs({"g", "h"}));
}

TEST(LookupTable, DenseOnesRefuseKeysSetApart) {
  Table table(Dense());
  for (const int64_t key : {-1, -2}) {
    EXPECT_EQ(table.Insert(Ints({5, key}), Floats({1, 2})).code(), Code::kInvalidArgument);
    EXPECT_EQ(table.Remove(Ints({key})).code(), Code::kInvalidArgument);
    EXPECT_EQ(table.Find(Ints({key}), Tensor::Scalar(0.0f)).status().code(),
              Code::kInvalidArgument);
  }
  EXPECT_EQ(table->Size(), 0);  // Nothing half done.
  EXPECT_EQ(table.Insert(Ints({1, 2}).Reshaped(Shape({1, 2})), Floats({1, 2})).code(),
            Code::kInvalidArgument);
}

TEST(LookupTable, DenseOnesNeedSizesThatMakeSense) {
  const auto code = [](TableOptions options) {
    return MakeSynchronizer("it", {std::move(options)}).status().code();
  };
  for (const int64_t buckets : {INT64_MIN, int64_t{-4}, int64_t{0}, int64_t{1}, int64_t{2},
                                int64_t{3}, int64_t{12}, INT64_MAX}) {
    EXPECT_EQ(code(Dense(buckets)), Code::kInvalidArgument) << buckets;
  }
  for (const int shift : {40, 50, 62}) {
    EXPECT_EQ(code(Dense(int64_t{1} << shift)), Code::kResourceExhausted) << shift;
  }
  for (const float load : {-1.0f, 0.0f, 1.0f, 2.0f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(code(Dense(4, load)), Code::kInvalidArgument) << load;
  }
  TableOptions same = Dense();
  same.deleted_key = same.empty_key;
  EXPECT_EQ(code(same), Code::kInvalidArgument);
  TableOptions other = Dense();
  other.deleted_key = Ints({1, 2});
  EXPECT_EQ(code(other), Code::kInvalidArgument);
  TableOptions matrix = Dense();
  matrix.value_shape = Shape({2, 2});
  EXPECT_EQ(code(matrix), Code::kInvalidArgument);
  TableOptions none = Dense();
  none.empty_key = none.deleted_key = Ints({});
  none.key_shape = Shape({0});
  EXPECT_EQ(code(none), Code::kInvalidArgument);
}

/// What TensorFlow 2.21 exports after the same insertions.
TEST(LookupTable, DenseOnesLieInMemoryAsTensorFlowHasThem) {
  TableOptions vectors = Dense();
  vectors.empty_key = Ints({0, 0});
  vectors.deleted_key = Ints({0, 1});
  vectors.key_shape = Shape({2});
  vectors.initial_buckets = 8;
  Table table(vectors);
  EXPECT_EQ(table.Insert(Ints({1, 2, 3, 4, 5, 6}).Reshaped(Shape({3, 2})), Floats({1, 2, 3})),
            absl::OkStatus());
  ExpectEqual(table.Export()->at(0),
              Ints({0, 0, 0, 0, 0, 0, 1, 2, 5, 6, 0, 0, 0, 0, 3, 4}).Reshaped(Shape({8, 2})));
  ExpectEqual(table.Export()->at(1), Floats({0, 0, 0, 1, 3, 0, 0, 2}).Reshaped(Shape({8, 1})));

  TableOptions texts = Dense(8);
  texts.key_type = kText;
  texts.empty_key = Tensor::Scalar("");
  texts.deleted_key = Tensor::Scalar("del");
  Table named(texts);
  EXPECT_EQ(named.Insert(Texts({"a", "bb", "a longer string of bytes"}), Floats({1, 2, 3})),
            absl::OkStatus());
  ExpectEqual(
      named.Export()->at(0),
      Texts({"bb", "", "", "a longer string of bytes", "a", "", "", ""}).Reshaped(Shape({8, 1})));

  TableOptions small = Dense(8);
  small.key_type = ElementType::kInt32;
  small.empty_key = Tensor::Scalar<int32_t>(-1);
  small.deleted_key = Tensor::Scalar<int32_t>(-2);
  Table negative(small);
  EXPECT_EQ(negative.Insert(Tensor::Vector<int32_t>({-5, -13, 3}), Floats({1, 2, 3})),
            absl::OkStatus());
  ExpectEqual(negative.Export()->at(0),
              Tensor::Vector<int32_t>({-1, -1, -1, -5, -13, -1, 3, -1}).Reshaped(Shape({8, 1})));
}

TEST(LookupTable, DenseOnesImportWhatTheyExport) {
  Table table(Dense());
  EXPECT_EQ(table.Insert(Ints({4, 8, 12, 5}), Floats({1, 2, 3, 4})), absl::OkStatus());
  EXPECT_EQ(table.Remove(Ints({8})), absl::OkStatus());
  const Tuple exported = table.Export().value();
  // Whoever has got the buckets keeps them as they are.
  EXPECT_EQ(table.Insert(Ints({99}), Floats({9})), absl::OkStatus());
  Table copy(Dense());
  EXPECT_EQ(copy.Import(exported[0], exported[1]), absl::OkStatus());
  EXPECT_EQ(copy->Size(), 3);
  ExpectEqual(copy.Find(Ints({4, 8, 12, 5, 99}), Tensor::Scalar(0.0f)).value(),
              Floats({1, 0, 3, 4, 0}));
  ExpectEqual(copy.Export()->at(0), exported[0]);
}

TEST(LookupTable, DenseOnesTrustNoBuckets) {
  Table table(Dense());
  // 9 belongs into bucket 1, there is no empty bucket, 7 comes twice, and there are five.
  EXPECT_EQ(table.Import(Ints({7, 9, -2, 7, 11}).Reshaped(Shape({5, 1})),
                         Floats({1, 2, 3, 4, 5}).Reshaped(Shape({5, 1}))),
            absl::OkStatus());
  EXPECT_EQ(table->Size(), 3);
  ExpectEqual(table.Find(Ints({7, 9, 11, 1}), Tensor::Scalar(0.0f)).value(), Floats({4, 2, 5, 0}));
  EXPECT_EQ(table.Import(Ints({}).Reshaped(Shape({0, 1})), Floats({}).Reshaped(Shape({0, 1}))),
            absl::OkStatus());
  EXPECT_EQ(table->Size(), 0);
  EXPECT_EQ(table.Insert(Ints({1, 2, 3, 4, 5}), Floats({1, 2, 3, 4, 5})), absl::OkStatus());
  EXPECT_EQ(table.Import(Ints({7, 9}), Floats({1, 2})).code(), Code::kInvalidArgument);
  EXPECT_EQ(table->Size(), 5);
}

/// Random changes of every kind of table, compared with a map.
TEST(LookupTable, HoldsWhatAMapHolds) {
  for (const Kind kind : {Kind::kMutable, Kind::kOfTensors, Kind::kDense}) {
    TableOptions options = Dense(4, 0.9f);
    options.kind = kind;
    if (kind == Kind::kOfTensors) options.value_shape = Shape({1});
    Table table(options);
    std::map<int64_t, float> expected;
    std::mt19937 random(5);
    for (int round = 0; round < 2'000; ++round) {
      const int64_t count = random() % 5;
      Tensor keys = Tensor::Uninitialized(kInt64, Shape({count}));
      const Shape rows = kind == Kind::kOfTensors ? Shape({count, 1}) : Shape({count});
      Tensor values = Tensor::Uninitialized(ElementType::kFloat, rows);
      for (int64_t i = 0; i < count; ++i) {
        keys.mutable_data<int64_t>()[i] = static_cast<int64_t>(random() % 64);
        values.mutable_data<float>()[i] = static_cast<float>(random() % 1000);
      }
      switch (random() % 3) {
        case 0:
          ASSERT_EQ(table.Insert(keys, values), absl::OkStatus());
          for (int64_t i = 0; i < count; ++i) {
            expected[keys.unchecked_data<int64_t>()[i]] = values.unchecked_data<float>()[i];
          }
          break;
        case 1:
          ASSERT_EQ(table.Remove(keys), absl::OkStatus());
          for (int64_t i = 0; i < count; ++i) expected.erase(keys.unchecked_data<int64_t>()[i]);
          break;
        default:
          const Tensor none = kind == Kind::kOfTensors ? Floats({-1}) : Tensor::Scalar(-1.0f);
          const Tensor found = table.Find(keys, none).value();
          for (int64_t i = 0; i < count; ++i) {
            const auto it = expected.find(keys.unchecked_data<int64_t>()[i]);
            ASSERT_EQ(found.unchecked_data<float>()[i], it == expected.end() ? -1 : it->second);
          }
      }
      ASSERT_EQ(table->Size(), static_cast<int64_t>(expected.size()));
    }
  }
}

/// The same with strings, and with the integer that marks unused slots.
TEST(LookupTable, HoldsKeysOfAllTypes) {
  Table words(Options(Kind::kMutable, kText, kInt64));
  Table numbers(Options(Kind::kMutable, kInt64, kInt64));
  std::map<int64_t, int64_t> expected;
  std::mt19937 random(6);
  const auto number = [](int64_t i) { return i == 0 ? INT64_MIN : i << 40; };
  // Strings with and without memory of their own, and with zeros.
  const auto word = [](int64_t i) {
    return std::string(static_cast<size_t>(i), '\0') + std::to_string(i);
  };
  for (int64_t round = 0; round < 4'000; ++round) {
    const int64_t i = static_cast<int64_t>(random() % 50);
    const Tensor key = Tensor::Scalar<int64_t>(number(i));
    const Tensor text = Tensor::Scalar<std::string>(word(i));
    const Tensor value = Tensor::Scalar<int64_t>(round);
    const int64_t there = expected.count(i) != 0 ? expected[i] : -1;
    const Tensor none = Tensor::Scalar<int64_t>(-1);
    ASSERT_EQ(numbers.Find(key, none)->unchecked_scalar<int64_t>(), there);
    ASSERT_EQ(words.Find(text, none)->unchecked_scalar<int64_t>(), there);
    if (random() % 2 == 0) {
      ASSERT_EQ(numbers.Insert(key, value), absl::OkStatus());
      ASSERT_EQ(words.Insert(text, value), absl::OkStatus());
      expected[i] = round;
    } else {
      ASSERT_EQ(numbers.Remove(key), absl::OkStatus());
      ASSERT_EQ(words.Remove(text), absl::OkStatus());
      expected.erase(i);
    }
    ASSERT_EQ(numbers->Size(), static_cast<int64_t>(expected.size()));
    ASSERT_EQ(words->Size(), static_cast<int64_t>(expected.size()));
  }
  const Tuple exported = numbers.Export().value();
  for (int64_t i = 0; i < numbers->Size(); ++i) {
    const int64_t key = exported[0].unchecked_data<int64_t>()[i];
    const int64_t of = key == INT64_MIN ? 0 : key >> 40;
    EXPECT_EQ(exported[1].unchecked_data<int64_t>()[i], expected.at(of));
  }
}

/// Readers see tables as they were between changes, and changes exclude one another.
TEST(LookupTable, ThreadsShareOne) {
  Table table(Options(Kind::kMutable, kInt64, kInt64));
  constexpr int64_t kKeys = 64;
  std::vector<int64_t> all(kKeys);
  for (int64_t i = 0; i < kKeys; ++i) all[i] = i;
  const Tensor keys = Tensor::Vector<int64_t>(absl::MakeConstSpan(all));
  std::atomic<int> changes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t round = 1; round <= 500; ++round) {
        CancellationToken token;
        std::atomic<bool> over{false};
        const auto wait = [&] {
          while (!over.load(std::memory_order_acquire)) std::this_thread::yield();
        };
        if (t < 2) {  // All keys get one value.
          const std::vector<int64_t> values(kKeys, 1000 * t + round);
          table->Insert(keys, Tensor::Vector<int64_t>(absl::MakeConstSpan(values)), &token,
                        [&](absl::StatusOr<Tuple> result) {
                          changes += result.ok();
                          over.store(true, std::memory_order_release);
                        });
          if (round % 8 == 0) token.Cancel(absl::AbortedError("at a random moment"));
        } else {
          table->Find(keys, Tensor::Scalar<int64_t>(-1), nullptr,
                      [&](absl::StatusOr<Tuple> result) {
                        const Tensor& found = (*result)[0];
                        for (const int64_t value : found.unchecked_values<int64_t>()) {
                          EXPECT_EQ(value, found.unchecked_data<int64_t>()[0]);
                        }
                        over.store(true, std::memory_order_release);
                      });
        }
        wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(changes.load(), 0);
  EXPECT_EQ(table->Size(), kKeys);
}

// --- nodes ---------------------------------------------------------------------------------------

class TableNodes : public ::testing::Test {
 protected:
  TableNodes() {
    calls.Attr("key_dtype", kText)
        .Attr("value_dtype", kInt64)
        .Attr("Tin", kText)
        .Attr("Tout", kInt64)
        .Attr("container", std::string())
        .Attr("use_node_name_sharing", false);
  }
  Calls calls;
};

TEST_F(TableNodes, OfOneNameShareATable) {
  calls.Attr("shared_name", std::string("t"));
  const Tensor table = calls.Make("MutableHashTableV2");
  EXPECT_EQ(calls.Do("LookupTableInsertV2", {table, Texts({"a"}), Ints({5})}), absl::OkStatus());
  calls.Attr("container", std::string());  // Another node.
  const Tensor other = calls.Make("MutableHashTableV2");
  EXPECT_EQ(calls.One("LookupTableSizeV2", {other}, kInt64)->unchecked_scalar<int64_t>(), 1);
  // Of another type, or kind, it is not the same table.
  calls.Attr("value_dtype", ElementType::kFloat);
  EXPECT_EQ(calls.Run("MutableHashTableV2", {}, {ElementType::kResource}).status().code(),
            Code::kInvalidArgument);
  calls.Attr("value_dtype", kInt64);
  EXPECT_EQ(calls.Run("HashTableV2", {}, {ElementType::kResource}).status().code(),
            Code::kInvalidArgument);
  calls.resources().Reset("");
  EXPECT_EQ(calls.One("LookupTableSizeV2", {table}, kInt64).status().code(), Code::kNotFound);
}

TEST_F(TableNodes, WithoutANameEachHasItsOwn) {
  calls.Attr("shared_name", std::string());
  const Tensor one = calls.Make("MutableHashTableV2");
  calls.Attr("container", std::string());  // Another node, of the same name.
  const Tensor two = calls.Make("MutableHashTableV2");
  EXPECT_EQ(calls.Do("LookupTableInsertV2", {one, Texts({"a"}), Ints({5})}), absl::OkStatus());
  EXPECT_EQ(calls.One("LookupTableSizeV2", {two}, kInt64)->unchecked_scalar<int64_t>(), 0);
}

TEST_F(TableNodes, AnAnonymousTableIsNewAtEachStep) {
  const Tensor one = calls.Make("AnonymousHashTable"), two = calls.Make("AnonymousHashTable");
  calls.Attr("Tkey", kText).Attr("Tval", kInt64);
  EXPECT_EQ(calls.Do("InitializeTableV2", {one, Texts({"a"}), Ints({5})}), absl::OkStatus());
  EXPECT_EQ(calls.One("LookupTableSizeV2", {one}, kInt64)->unchecked_scalar<int64_t>(), 1);
  EXPECT_EQ(calls.One("LookupTableSizeV2", {two}, kInt64)->unchecked_scalar<int64_t>(), 0);
  EXPECT_TRUE(calls.resources().List().empty());
}

TEST_F(TableNodes, OtherResourcesAreNoTables) {
  calls.Attr("shared_name", std::string("m"));
  const Tensor mutex = calls.Make("MutexV2");
  EXPECT_EQ(calls.One("LookupTableSizeV2", {mutex}, kInt64).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
