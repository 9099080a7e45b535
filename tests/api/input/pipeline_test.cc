// What comes out of pipelines of queues: all of it, once an epoch, in batches; and how they end.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "devices/status_macros.h"
#include "graph/protos/summary.pb.h"
#include "tests/api/input/pipeline.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

std::vector<int32_t> Numbers(int n, int times = 1) {
  std::vector<int32_t> numbers;
  for (int i = 0; i < n * times; ++i) numbers.push_back(i % n);
  return numbers;
}

/// 0 to n - 1 in order, so many times.
Output InOrder(const Scope& s, int32_t n, int64_t epochs = 1) {
  return Dequeue(s, RangeInputProducer(s, n, {.num_epochs = epochs, .shuffle = false}))[0];
}

// --- producers -----------------------------------------------------------------------------------

TEST(Producers, GiveRowsInOrderAndEnd) {
  const Scope s = Scope::NewRoot();
  const Output queue =
      StringInputProducer(s, Strings({"a", "b", "c"}), {.num_epochs = 2, .shuffle = false});
  const Output name = Dequeue(s, queue)[0];
  Pipeline pipeline(s);
  EXPECT_THAT(pipeline.Drain<std::string>(name), ElementsAre("a", "b", "c", "a", "b", "c"));
  EXPECT_TRUE(pipeline.coordinator().Join().ok());
}

TEST(Producers, ShuffleEachEpochAnewByTheirSeed) {
  std::vector<std::vector<int32_t>> runs;
  for (const int64_t seed : {7, 7, 8}) {
    const Scope s = Scope::NewRoot();
    const Output queue = RangeInputProducer(s, 50, {.num_epochs = 2, .seed = seed, .capacity = 5});
    const Output number = Dequeue(s, queue)[0];
    runs.push_back(Pipeline(s).Drain<int32_t>(number));
    ASSERT_EQ(runs.back().size(), 100u);
    const std::vector<int32_t> first(runs.back().begin(), runs.back().begin() + 50);
    const std::vector<int32_t> second(runs.back().begin() + 50, runs.back().end());
    EXPECT_THAT(first, UnorderedElementsAreArray(Numbers(50)));
    EXPECT_THAT(second, UnorderedElementsAreArray(Numbers(50)));
    EXPECT_NE(first, second);
    EXPECT_NE(first, Numbers(50));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(Producers, GoOnWithoutEndUnlessTheyAreTold) {
  const Scope s = Scope::NewRoot();
  const Output number = InOrder(s, 3, /*epochs=*/0);
  Pipeline pipeline(s);
  for (int i = 0; i < 100; ++i) {
    const auto value = pipeline.Take({number});
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ((*value)[0].unchecked_scalar<int32_t>(), i % 3);
  }
}

TEST(Producers, GiveTheSameRowOfSeveralTensors) {
  const Scope s = Scope::NewRoot();
  const Tensor images = *Tensor::FromValues<float>({0, 1, 10, 11, 20, 21}, Shape({3, 2}));
  const OutputList row = SliceInputProducer(s, {images, Tensor::Vector<int32_t>({0, 1, 2})},
                                            {.num_epochs = 4, .seed = 1});
  EXPECT_EQ(row[0].shape(), PartialShape({2}));
  Pipeline pipeline(s);
  std::map<int32_t, int> seen;
  while (true) {
    const auto values = pipeline.Take(row);
    if (!values.ok()) break;
    const int32_t label = (*values)[1].unchecked_scalar<int32_t>();
    EXPECT_THAT((*values)[0].unchecked_values<float>(),
                ElementsAre(10.0f * label, 10.0f * label + 1));
    ++seen[label];
  }
  EXPECT_EQ(seen, (std::map<int32_t, int>{{0, 4}, {1, 4}, {2, 4}}));
}

TEST(Producers, NeedStringsAndTheCounterOfEpochs) {
  {
    const Scope s = Scope::NewRoot();
    const Output name = Dequeue(
        s, StringInputProducer(s, Tensor::Uninitialized(ElementType::kString, Shape({0}))))[0];
    Pipeline pipeline(s);
    EXPECT_TRUE(absl::IsOutOfRange(pipeline.Take({name}).status()));
    const absl::Status status = pipeline.coordinator().Join();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("string_input_producer requires a non-null input tensor"));
  }
  const Scope s = Scope::NewRoot();
  InOrder(s, 3, 2);
  auto session = Session::Create(s.graph());
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(**session, coordinator).ok());
  const absl::Status status = coordinator.Join(absl::Seconds(60));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("input_producer/limit_epochs/epochs"));
}

TEST(Producers, RefuseWhatDoesNotFit) {
  const auto refused = [](const auto& build, const char* part) {
    const Scope s = Scope::NewRoot();
    build(s);
    EXPECT_TRUE(absl::IsInvalidArgument(s.status())) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(part));
  };
  refused([](const Scope& s) { InputProducer(s, 3.0f); }, "a scalar has no rows");
  refused([](const Scope& s) { StringInputProducer(s, {1, 2}); }, "takes strings");
  refused([](const Scope& s) { InputProducer(s, {1, 2}, {.capacity = 0}); }, "must be at least 1");
  refused([](const Scope& s) { InputProducer(s, {1, 2}, {.num_epochs = -1}); }, "-1 epochs");
  refused([](const Scope& s) { SliceInputProducer(s, {}); }, "there are no tensors");
  refused(
      [](const Scope& s) {
        InputProducer(s,
                      ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({-1, -1})}));
      },
      "give `element_shape`");
}

// --- batches -------------------------------------------------------------------------------------

TEST(Batch, KeepsTheOrderOfOneEnqueue) {
  const Scope s = Scope::NewRoot();
  const OutputList batch = Batch(s, {InOrder(s, 10)}, 4);
  EXPECT_EQ(batch[0].shape(), PartialShape({4}));
  EXPECT_THAT(Pipeline(s).Drain<int32_t>(batch[0]), ElementsAreArray(Numbers(8)));
}

TEST(Batch, OfWhatIsLeftIfAskedFor) {
  const Scope s = Scope::NewRoot();
  const OutputList batch = Batch(s, {InOrder(s, 10)}, 4, {.allow_smaller_final_batch = true});
  EXPECT_EQ(batch[0].shape(), PartialShape({-1}));
  EXPECT_THAT(Pipeline(s).Drain<int32_t>(batch[0]), ElementsAreArray(Numbers(10)));
}

/// By how many enqueues at once, and how many threads compute.
class Epochs : public testing::TestWithParam<int> {};

TEST_P(Epochs, AreExact) {
  const int enqueues = GetParam();
  for (const bool shuffle : {false, true}) {
    const Scope s = Scope::NewRoot();
    const Output number = Dequeue(s, RangeInputProducer(s, 100, {.num_epochs = 3, .seed = 3}))[0];
    const OutputList batch =
        shuffle
            ? ShuffleBatch(s, {number}, 7,
                           {.capacity = 20,
                            .min_after_dequeue = 10,
                            .num_threads = enqueues,
                            .allow_smaller_final_batch = true})
            : Batch(s, {number}, 7, {.num_threads = enqueues, .allow_smaller_final_batch = true});
    Pipeline pipeline(s, enqueues);
    EXPECT_THAT(pipeline.Drain<int32_t>(batch[0]), UnorderedElementsAreArray(Numbers(100, 3)));
    EXPECT_TRUE(pipeline.coordinator().Join().ok());
  }
}
INSTANTIATE_TEST_SUITE_P(Enqueues, Epochs, testing::Range(1, 9));

TEST(Batch, TakesManyAtOnce) {
  const Scope s = Scope::NewRoot();
  const Output three =
      DequeueMany(s, RangeInputProducer(s, 30, {.num_epochs = 1, .shuffle = false}), 3)[0];
  const OutputList batch = Batch(s, {three}, 5, {.enqueue_many = true});
  EXPECT_THAT(Pipeline(s).Drain<int32_t>(batch[0]), ElementsAreArray(Numbers(30)));
}

TEST(Batch, PadsWhatVariesInSize) {
  const Scope s = Scope::NewRoot();
  const Output n = InOrder(s, 6);
  const Output ones = ops::Range(s, 0, n, 1);
  const Output words = ops::Fill(s, ops::Reshape(s, n, {1}), "w");
  const OutputList batch = Batch(s, {n, ones, words}, 3, {.dynamic_pad = true});
  EXPECT_EQ(batch[1].shape(), PartialShape({3, -1}));
  Pipeline pipeline(s);
  auto values = pipeline.Take(batch);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[1].shape(), Shape({3, 2}));
  EXPECT_THAT((*values)[1].unchecked_values<int32_t>(), ElementsAre(0, 0, 0, 0, 0, 1));
  EXPECT_THAT((*values)[2].unchecked_values<std::string>(), ElementsAre("", "", "w", "", "w", "w"));
  values = pipeline.Take(batch);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[1].shape(), Shape({3, 5}));
}

// As docs/input.md shows it: a sparse tensor goes through the queue as three strings.
TEST(Batch, OfSparseTensors) {
  const Scope s = Scope::NewRoot();
  const Output n = InOrder(s, 6);
  const Output index = ops::Cast(s, ops::FloorMod(s, n, 4), ElementType::kInt64);
  const Output sparse = ops::SerializeSparse(s, ops::Reshape(s, index, {1, 1}),
                                             ops::Reshape(s, n, {1}), {int64_t{4}});
  const Output batch = Batch(s, {sparse}, 3)[0];
  EXPECT_EQ(batch.shape(), PartialShape({3, 3}));
  const auto whole = ops::DeserializeSparse(s, batch, ElementType::kInt32);
  Pipeline pipeline(s);
  const std::vector<std::vector<int64_t>> expected = {{0, 0, 1, 1, 2, 2}, {0, 3, 1, 0, 2, 1}};
  for (int i = 0; i < 2; ++i) {
    const auto taken =
        pipeline.Take({whole.sparse_indices, whole.sparse_values, whole.sparse_shape});
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ((*taken)[0].shape(), Shape({3, 2}));
    EXPECT_THAT((*taken)[0].unchecked_values<int64_t>(), ElementsAreArray(expected[i]));
    EXPECT_THAT((*taken)[1].unchecked_values<int32_t>(), ElementsAre(3 * i, 3 * i + 1, 3 * i + 2));
    EXPECT_THAT((*taken)[2].unchecked_values<int64_t>(), ElementsAre(3, 4));
  }
}

TEST(Batch, OfSomeElements) {
  {
    const Scope s = Scope::NewRoot();
    const Output n = InOrder(s, 20);
    const Output even = ops::Equal(s, ops::FloorMod(s, n, 2), 0);
    const OutputList batch = MaybeBatch(s, {n}, even, 5);
    EXPECT_THAT(Pipeline(s).Drain<int32_t>(batch[0]),
                ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18));
  }
  {
    const Scope s = Scope::NewRoot();
    const Output many =
        DequeueMany(s, RangeInputProducer(s, 20, {.num_epochs = 1, .shuffle = false}), 4)[0];
    const Output kept = ops::GreaterEqual(s, ops::FloorMod(s, many, 5), 3);
    const OutputList batch = MaybeBatch(s, {many, many}, kept, 2, {.enqueue_many = true});
    EXPECT_THAT(Pipeline(s).Drain<int32_t>(batch[1]), ElementsAre(3, 4, 8, 9, 13, 14, 18, 19));
  }
  const Scope s = Scope::NewRoot();
  const OutputList none =
      MaybeShuffleBatch(s, {InOrder(s, 20)}, false, 5, {.capacity = 9, .min_after_dequeue = 1});
  // The runner of such a queue would never end.
  const auto runners = QueueRunner::OfGraph(*s.graph());
  ASSERT_TRUE(runners.ok()) << runners.status();
  for (const QueueRunner& runner : *runners) {
    if (runner.name().find("shuffle") == std::string::npos) continue;
    EXPECT_EQ(runner.enqueues()[0]->op(), "NoOp");
  }
}

TEST(Batch, OfSeveralReadersSideBySide) {
  for (const bool shuffle : {true, false}) {
    const Scope s = Scope::NewRoot();
    std::vector<InputList> lists;
    for (int32_t i = 0; i < 4; ++i) lists.push_back({ops::Add(s, InOrder(s, 25), 25 * i)});
    const OutputList batch =
        shuffle ? ShuffleBatchJoin(
                      s, lists, 8,
                      {.capacity = 30, .min_after_dequeue = 5, .allow_smaller_final_batch = true})
                : BatchJoin(s, lists, 8, {.allow_smaller_final_batch = true});
    EXPECT_THAT(Pipeline(s).Drain<int32_t>(batch[0]), UnorderedElementsAreArray(Numbers(100)));
  }
}

TEST(Batch, RefusesWhatDoesNotFit) {
  const auto refused = [](const auto& build, const char* part) {
    const Scope s = Scope::NewRoot();
    build(s);
    EXPECT_TRUE(absl::IsInvalidArgument(s.status())) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(part));
  };
  const auto unknown = [](const Scope& s, PartialShape shape) {
    return ops::Placeholder(s, ElementType::kFloat, {.shape = std::move(shape)});
  };
  refused([](const Scope& s) { Batch(s, {}, 2); }, "batch: there are no tensors");
  refused([](const Scope& s) { BatchJoin(s, {}, 2); }, "batch_join: there are no lists");
  refused([](const Scope& s) { Batch(s, {Output()}, 2); }, "one of the tensors is none");
  refused([](const Scope& s) { BatchJoin(s, {{1.0f}, {1}}, 2); }, "list 1 has other types");
  refused([](const Scope& s) { BatchJoin(s, {{{1.0f, 2.0f}}, {{1.0f}}}, 2); }, "[2]");
  refused([&](const Scope& s) { Batch(s, {unknown(s, {})}, 2); }, "the rank of ");
  refused([&](const Scope& s) { Batch(s, {unknown(s, PartialShape({-1}))}, 2); }, "`dynamic_pad`");
  refused([](const Scope& s) { Batch(s, {1.0f}, 2, {.enqueue_many = true}); }, "has no rows");
  refused([](const Scope& s) { Batch(s, {1.0f}, 2, {.num_threads = 0}); }, "`num_threads` is 0");
  refused([](const Scope& s) { Batch(s, {1.0f}, 2, {.capacity = 0}); }, "`capacity` is 0");
  refused([](const Scope& s) { Batch(s, {1.0f}, 2, {.shapes = {{}, {}}}); }, "1 tensors and 2");
  refused([](const Scope& s) { MaybeBatch(s, {1.0f}, 1, 2); }, "must be of type bool");
  refused([](const Scope& s) { MaybeBatch(s, {1.0f}, {true}, 2); }, "must be a scalar");
  const auto no_rank = [](const Scope& s) {
    return ops::Placeholder(s, ElementType::kBool, {.shape = PartialShape()});
  };
  refused([&](const Scope& s) { MaybeBatch(s, {1.0f}, no_rank(s), 2); }, "must be a scalar");
  refused([&](const Scope& s) { MaybeBatch(s, {{1.0f}}, no_rank(s), 2, {.enqueue_many = true}); },
          "must be a scalar or a vector");
  refused(
      [](const Scope& s) { ShuffleBatch(s, {1.0f}, 2, {.capacity = 5, .min_after_dequeue = 5}); },
      "must be larger than `min_after_dequeue`");
  refused([](const Scope& s) { BucketByLength(s, 1, {1.0f}, {2}, {}); }, "numbers that increase");
  refused([](const Scope& s) { BucketByLength(s, 1, {1.0f}, {2}, {5, 5}); }, "that increase");
  refused([](const Scope& s) { Bucket(s, {1.0f}, 0, {2, 3}, 3); }, "3 buckets and 2 sizes");
  refused([](const Scope& s) { Bucket(s, {1.0f}, 0, {2}, 0); }, "at least one bucket");
  refused([](const Scope& s) { Bucket(s, {1.0f}, 0, {0}, 1); }, "must be at least 1");
}

TEST(Batch, ShowsHowFullItsQueueIs) {
  const Scope s = Scope::NewRoot();
  Batch(s, {1.0f}, 2, {.capacity = 4});
  ShuffleBatch(s, {1.0f}, 2, {.capacity = 7, .min_after_dequeue = 2});
  const Output all = summary::MergeAll(s);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = Session::Create(s.graph());
  ASSERT_TRUE(session.ok());
  const auto runners = QueueRunner::OfGraph(*s.graph());
  ASSERT_TRUE(runners.ok()) << runners.status();
  for (int i = 0; i < 3; ++i) {
    for (const QueueRunner& runner : *runners) {
      ASSERT_TRUE((*session)->RunTargets(runner.enqueues()).ok());
    }
  }
  const auto values = (*session)->Run({all});
  ASSERT_TRUE(values.ok()) << values.status();
  Summary summary;
  ASSERT_TRUE(summary.ParseFromString((*values)[0].unchecked_scalar<std::string>()));
  ASSERT_EQ(summary.value_size(), 2);
  EXPECT_EQ(summary.value(0).tag(), "batch/fraction_of_4_full");
  EXPECT_FLOAT_EQ(summary.value(0).simple_value(), 0.75f);
  EXPECT_EQ(summary.value(1).tag(), "shuffle_batch/fraction_over_2_of_5_full");
  EXPECT_FLOAT_EQ(summary.value(1).simple_value(), 0.2f);
}

// --- buckets -------------------------------------------------------------------------------------

TEST(Bucket, GivesBatchesOfOneBucketAndLosesNothing) {
  for (const bool smaller : {true, false}) {
    const Scope s = Scope::NewRoot();
    const Output n = InOrder(s, 50);
    const BucketBatch batch = Bucket(s, {n}, ops::FloorMod(s, n, 3), {4, 3, 5}, 3,
                                     {.num_threads = 2, .allow_smaller_final_batch = smaller});
    Pipeline pipeline(s);
    std::map<int32_t, std::vector<int32_t>> seen;
    while (true) {
      const auto values = pipeline.Take({batch.bucket, batch.tensors[0]});
      if (!values.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(values.status())) << values.status();
        break;
      }
      const int32_t bucket = (*values)[0].unchecked_scalar<int32_t>();
      const auto elements = (*values)[1].unchecked_values<int32_t>();
      EXPECT_LE(elements.size(), bucket == 0 ? 4u : bucket == 1 ? 3u : 5u);
      for (const int32_t element : elements) {
        EXPECT_EQ(element % 3, bucket);
        seen[bucket].push_back(element);
      }
    }
    // 17, 17 and 16 elements.
    EXPECT_THAT(seen[0], SizeIs(smaller ? 17 : 16));
    EXPECT_THAT(seen[1], SizeIs(smaller ? 17 : 15));
    EXPECT_THAT(seen[2], SizeIs(smaller ? 16 : 15));
    EXPECT_TRUE(pipeline.coordinator().Join().ok());
  }
}

TEST(Bucket, OfAnElementMustExist) {
  const Scope s = Scope::NewRoot();
  const Output n = InOrder(s, 50);
  const BucketBatch batch = Bucket(s, {n}, n, {2}, 3);
  Pipeline pipeline(s);
  while (pipeline.Take({batch.bucket}).ok()) {
  }
  const absl::Status status = pipeline.coordinator().Join();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("there are 3 buckets, and none is"));
}

TEST(Bucket, ByLengthPadsLittle) {
  const Scope s = Scope::NewRoot();
  const Output length = InOrder(s, 30);
  const Output sequence = ops::Fill(s, ops::Reshape(s, length, {1}), 1);
  const LengthBatch batch = BucketByLength(s, length, {sequence}, {4}, {5, 10, 20},
                                           {.dynamic_pad = true,
                                            .allow_smaller_final_batch = true,
                                            .keep_input = ops::Less(s, length, 25)});
  Pipeline pipeline(s);
  std::vector<int32_t> seen;
  while (true) {
    const auto values = pipeline.Take({batch.lengths, batch.tensors[0]});
    if (!values.ok()) break;
    const auto lengths = (*values)[0].unchecked_values<int32_t>();
    const Tensor& rows = (*values)[1];
    const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    EXPECT_EQ(rows.shape(), Shape({static_cast<int64_t>(lengths.size()), *most}));
    for (const int32_t boundary : {5, 10, 20}) {
      EXPECT_EQ(*least < boundary, *most < boundary) << *least << " and " << *most;
    }
    for (size_t i = 0; i < lengths.size(); ++i) {
      seen.push_back(lengths[i]);
      const int32_t* row = rows.unchecked_data<int32_t>() + i * *most;
      EXPECT_EQ(std::count(row, row + *most, 1), lengths[i]);
    }
  }
  EXPECT_THAT(seen, UnorderedElementsAreArray(Numbers(25)));
}

// --- record files --------------------------------------------------------------------------------

class RecordPipelines : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    for (int file = 0; file < 4; ++file) {
      const auto writer = RecordWriter::Create(PathOf(file));
      ASSERT_TRUE(writer.ok()) << writer.status();
      for (int i = 0; i < 25; ++i) {
        ASSERT_TRUE((*writer)->Write(ExampleBuilder().Add("n", 25 * file + i).Serialize()).ok());
      }
      ASSERT_TRUE((*writer)->Close().ok());
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string PathOf(int file) const { return StrCat(folder_, "part-", file, ".tfrecord"); }
  /// The names of all files, so many times.
  Output Files(const Scope& s, int64_t epochs) const {
    return StringInputProducer(s, MatchFilenamesOnce(s, folder_ + "*.tfrecord").value(),
                               {.num_epochs = epochs, .seed = 2});
  }
  /// The feature "n" of a vector of records.
  static Output Parse(const Scope& s, const Output& records) {
    const Tensor none = Tensor::Uninitialized(ElementType::kInt64, Shape({0}));
    return ops::ParseExample(s, records, Tensor::Uninitialized(ElementType::kString, Shape({0})),
                             {}, {"n"}, {none}, {}, {Shape()})
        .dense_values[0];
  }
  const std::string folder_ = StrCat(testing::TempDir(), "troupe_record_pipelines_", getpid(), "/");
};

TEST_F(RecordPipelines, ReadersSideBySideGiveEachRecordOnceAnEpoch) {
  const Scope s = Scope::NewRoot();
  const Output files = Files(s, 2);
  std::vector<InputList> lists;
  for (int i = 0; i < 3; ++i) {
    lists.push_back({ops::ReaderReadV2(s, ops::TFRecordReaderV2(s), files).value});
  }
  const OutputList batch = ShuffleBatchJoin(
      s, lists, 16,
      {.capacity = 60, .min_after_dequeue = 20, .seed = 1, .allow_smaller_final_batch = true});
  const Output numbers = ops::Cast(s, Parse(s, batch[0]), ElementType::kInt32);
  Pipeline pipeline(s);
  EXPECT_THAT(pipeline.Drain<int32_t>(numbers), UnorderedElementsAreArray(Numbers(100, 2)));
  EXPECT_TRUE(pipeline.coordinator().Join().ok());
}

TEST_F(RecordPipelines, ReadManyAtOnce) {
  const Scope s = Scope::NewRoot();
  const auto records =
      ops::ReaderReadUpToV2(s, ops::TFRecordReaderV2(s), Files(s, 3), int64_t{10}).values;
  const OutputList batch = Batch(s, {records}, 16,
                                 {.num_threads = 4,
                                  .capacity = 40,
                                  .enqueue_many = true,
                                  .shapes = {PartialShape(Shape())},
                                  .allow_smaller_final_batch = true});
  const Output numbers = ops::Cast(s, Parse(s, batch[0]), ElementType::kInt32);
  Pipeline pipeline(s, 4);
  EXPECT_THAT(pipeline.Drain<int32_t>(numbers), UnorderedElementsAreArray(Numbers(100, 3)));
}

TEST_F(RecordPipelines, EndAtDamageWithFileAndOffset) {
  std::filesystem::resize_file(PathOf(2), std::filesystem::file_size(PathOf(2)) - 1);
  const Scope s = Scope::NewRoot();
  const OutputList batch =
      Batch(s, {ops::ReaderReadV2(s, ops::TFRecordReaderV2(s), Files(s, 1)).value}, 4);
  Pipeline pipeline(s);
  while (pipeline.Take(batch).ok()) {
  }
  const absl::Status status = pipeline.coordinator().Join();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf(2)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte "));
}

// --- ends ----------------------------------------------------------------------------------------

TEST(Pipelines, EndWithTheErrorOfAnElement) {
  const Scope s = Scope::NewRoot();
  const Output number = ops::FloorDiv(s.WithOpName("part"), 10, ops::Sub(s, InOrder(s, 5), 3));
  const OutputList batch = Batch(s, {number}, 1);
  Pipeline pipeline(s);
  while (pipeline.Take(batch).ok()) {
  }
  const absl::Status status = pipeline.coordinator().Join();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("queue runner of batch/fifo_queue"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("part"));
}

// However much is taken, no more is read than the queues hold and the enqueues have in hand.
TEST(Pipelines, ReadNoMoreThanTheyHold) {
  constexpr int64_t kElements = 6, kEnqueues = 3;
  const Scope s = Scope::NewRoot();
  const Output name = InOrder(s, 7, 0);
  const ModelVariable count =
      ModelVariable::Local(s, ops::Const(s, Tensor::Scalar<int64_t>(0)), "count");
  Node* const counted = count.AssignAdd(s.WithControlDependencies({name}), int64_t{1});
  const Output element = ops::Identity(s.WithControlDependencies({&counted, 1}), name);
  const OutputList batch =
      Batch(s, {element}, 2, {.num_threads = kEnqueues, .capacity = kElements});
  const Output reads = count.Read(s);
  Pipeline pipeline(s, 3);
  for (int64_t taken = 0; taken <= 200; taken += 2) {
    const auto now = pipeline.Take({reads});
    ASSERT_TRUE(now.ok()) << now.status();
    EXPECT_LE((*now)[0].unchecked_scalar<int64_t>(), taken + kElements + kEnqueues);
    ASSERT_TRUE(pipeline.Take(batch).ok());
  }
}

// The coordinator stops, the session is closed, a take's deadline passes: whenever that is, all
// ends.
TEST(Pipelines, EndAtAnyMoment) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    const Scope s = Scope::NewRoot();
    const Output n = InOrder(s, 1000, 0);
    const BucketBatch bucket = Bucket(s, {n}, ops::FloorMod(s, n, 2), {3}, 2, {.num_threads = 2});
    const OutputList batch = ShuffleBatch(
        s, {bucket.tensors[0]}, 4,
        {.capacity = 12, .min_after_dequeue = 3, .num_threads = 2, .enqueue_many = true});
    Node* const init = LocalVariablesInitializer(s);
    ASSERT_TRUE(s.ok()) << s.status();
    auto session = Session::Create(s.graph(), {.threads = 3});
    ASSERT_TRUE((*session)->RunTargets({init}).ok());
    Coordinator coordinator;
    ASSERT_TRUE(StartQueueRunners(**session, coordinator).ok());
    for (int i = static_cast<int>(random() % 20); i > 0; --i) {
      const auto values =
          (*session)->Run({}, batch, {}, {.timeout = absl::Microseconds(random() % 500)});
      ASSERT_TRUE(values.ok() || absl::IsDeadlineExceeded(values.status())) << values.status();
    }
    if (round % 3 == 0) {
      ASSERT_TRUE((*session)->Close().ok());
    }
    coordinator.RequestStop();
    ASSERT_TRUE(coordinator.Join(absl::Seconds(60)).ok());
  }
}

TEST(Pipelines, FeedAMonitoredSession) {
  const Scope s = Scope::NewRoot();
  const OutputList batch =
      ShuffleBatch(s, {InOrder(s, 20, 3)}, 6, {.capacity = 50, .min_after_dequeue = 20, .seed = 1});
  auto session = MonitoredTrainingSession(s.graph(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  std::map<int32_t, int> seen;
  while (!(*session)->should_stop()) {
    const auto values = (*session)->Run({}, batch, {});
    if (!values.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(values.status())) << values.status();
      break;
    }
    for (const int32_t n : (*values)[0].unchecked_values<int32_t>()) ++seen[n];
  }
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ(seen.size(), 20u);
  for (const auto& [n, times] : seen) EXPECT_EQ(times, 3) << n;
}

}  // namespace
}  // namespace troupe
