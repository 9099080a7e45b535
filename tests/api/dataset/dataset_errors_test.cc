// What goes wrong, what is stopped, and what piles up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/data/root.h"
#include "api/data/stage.h"
#include "api/dataset.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "graph/protos/stats.pb.h"
#include "tests/api/dataset/dataset_test_util.h"

namespace troupe {
namespace {

using testing::All;
using testing::Begin;
using ::testing::HasSubstr;
using testing::Take;
using testing::TempFolder;
using Code = absl::StatusCode;

TEST(DatasetErrorsTest, StagesSayWhatIsWrongWithThem) {
  const Dataset some = Dataset::Range(0, 3);
  DatasetCsvOptions csv;
  csv.columns = {Tensor::Scalar<float>(0)};
  csv.select = {1};
  DatasetBucketOptions bucket;
  bucket.length = [](const Tensors&) -> absl::StatusOr<int64_t> { return 1; };
  bucket.batch_sizes = {1, 2};
  for (const auto& [dataset, what] : std::vector<std::pair<Dataset, std::string>>{
           {some.Batch(0), "Batch: the size is 0; it must be at least 1"},
           {some.Shuffle({}), "Shuffle: the window is 0"},
           {some.Map(ElementFunction()), "Map: there is no function"},
           {some.Map(nullptr, Function()), "Map: there is no graph"},
           {some.Repeat(-2), "Repeat: passes is -2"},
           {some.Shard(2, 2), "Shard: there is no shard 2 of 2"},
           {some.Batch(0).Map([](Tensors t) { return t; }).Prefetch(), "Batch: the size"},
           {some.Bucket(bucket), "Bucket: there are 0 boundaries and 2 batch sizes"},
           {Dataset::Zip({}), "Zip: there are no datasets"},
           {Dataset::Zip({some, some.Take(-1)}), "Take: the number is -1"},
           {Dataset::Range(0, 3, 0), "Range: the step is 0"},
           {Dataset::Csv({}, csv), "Csv: there is no column 1 of 1"},
           {Dataset::FromTensors({Tensor::Vector<float>({1}), Tensor::Vector<float>({1, 2})}),
            "has not as many rows as"}}) {
    EXPECT_EQ(dataset.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(dataset.status().message()), HasSubstr(what));
    EXPECT_EQ(dataset.MakeIterator().status(), dataset.status());
  }
}

/// An error comes in its place, whoever calls the function, and stays.
TEST(DatasetErrorsTest, FunctionsThatFail) {
  for (const bool throws : {false, true}) {
    const auto fails = [throws](Tensors element) -> absl::StatusOr<Tensors> {
      const int64_t value = element[0].unchecked_scalar<int64_t>();
      if (value % 10 != 7) return element;
      if (throws) throw std::runtime_error("seven");
      return absl::AbortedError("seven");
    };
    for (const int parallel : {1, 3, kAuto}) {
      const Dataset dataset = Dataset::Range(0, 30).Map(fails, {.parallel = parallel});
      for (const Dataset& around : {dataset, dataset.Prefetch(2), dataset.Prefetch(2).Repeat()}) {
        const auto iterator = Begin(around);
        absl::Status status;
        EXPECT_EQ(Take(*iterator, 100, &status).size(), 7u);
        EXPECT_EQ(status.code(), throws ? Code::kInternal : Code::kAborted);
        EXPECT_THAT(std::string(status.message()), HasSubstr("Map"));
        EXPECT_THAT(std::string(status.message()), HasSubstr("seven"));
        Tensors element;
        EXPECT_EQ(iterator->Next(&element).status(), status);
        EXPECT_EQ(iterator->Save().status(), status);
      }
      // Left out, up to a limit.
      const auto two =
          Begin(Dataset::Range(0, 30).Map(fails, {.parallel = parallel, .skip_bad = 2}));
      absl::Status status;
      EXPECT_EQ(Take(*two, 100, &status).size(), 25u);
      EXPECT_THAT(std::string(status.message()), HasSubstr("after 2 bad elements"));
      EXPECT_EQ(two->Stats()[0].bad, 2);
      const auto three =
          Begin(Dataset::Range(0, 30).Map(fails, {.parallel = parallel, .skip_bad = 3}));
      EXPECT_EQ(Take(*three, 100).size(), 27u);
    }
  }
  absl::Status status;
  EXPECT_EQ(All(Dataset::Range(0, 9).Filter([](const Tensors& element) -> absl::StatusOr<bool> {
              if (element[0].unchecked_scalar<int64_t>() == 5) return absl::DataLossError("five");
              return true;
            }),
                1, &status)
                .size(),
            5u);
  EXPECT_EQ(status, absl::DataLossError("Filter: five"));
}

TEST(DatasetErrorsTest, BatchesOfWhatDoesNotFit) {
  const auto sizes = [](Tensors element) -> absl::StatusOr<Tensors> {
    const int64_t n = element[0].unchecked_scalar<int64_t>();
    return Tensors{*Tensor::FromValues<float>(std::vector<float>(n, 1.0f), Shape({n}))};
  };
  absl::Status status;
  const Dataset rows = Dataset::Range(2, 5).Map(sizes);
  All(rows.Batch(2), 1, &status);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Batch(2): component 0 of an element is float[3], that of the first of its "
                        "batch float[2]"));
  DatasetPaddedBatchOptions narrow;
  narrow.padding.shapes = {PartialShape({3})};
  EXPECT_EQ(All(rows.PaddedBatch(2, narrow), 1, &status).size(), 1u);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 4 values in dimension 0"));
  DatasetPaddedBatchOptions wide;
  wide.padding.shapes = {PartialShape({6})};
  wide.padding.values = {Tensor::Scalar<float>(-1)};
  EXPECT_EQ(All(rows.Take(1).PaddedBatch(2, wide)),
            std::vector<std::string>{"float[1,6] [[1 1 -1 -1 -1 -1]]"});
  wide.padding.values = {Tensor::Scalar<int32_t>(-1)};
  All(rows.PaddedBatch(2, wide), 1, &status);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

/// {float[n], int64[], string[]} for each number, of as many values as `size` says.
Dataset LargeRows(int64_t n, std::function<int64_t(int64_t)> size) {
  return Dataset::Range(0, n).Map([size](Tensors element) -> absl::StatusOr<Tensors> {
    const int64_t i = element[0].unchecked_scalar<int64_t>();
    const std::vector<float> row(size(i), static_cast<float>(i));
    TROUPE_ASSIGN_OR_RETURN(Tensor values, Tensor::FromValues<float>(row, Shape({size(i)})));
    return Tensors{std::move(values), std::move(element[0]), Tensor::Scalar(StrCat("row ", i))};
  });
}

/// Rows of which a batch is larger than 1 MiB are copied to their place one after the other.
TEST(DatasetErrorsTest, BatchesOfLargeRows) {
  constexpr int64_t kSize = 100'000, kBatch = 4, kRows = 4 * kBatch + 3;
  const Dataset batches = LargeRows(kRows, [](int64_t) { return kSize; }).Batch(kBatch);
  auto iterator = Begin(batches);
  Tensors batch;
  for (int64_t begin = 0; begin < kRows; begin += kBatch) {
    const absl::StatusOr<bool> more = iterator->Next(&batch);
    ASSERT_TRUE(more.ok() && *more) << more.status();
    const int64_t n = std::min(kBatch, kRows - begin);
    ASSERT_EQ(batch[0].shape(), Shape({n, kSize}));
    for (int64_t k = 0; k < n; ++k) {
      const float* const values = batch[0].unchecked_data<float>() + k * kSize;
      EXPECT_EQ(std::count(values, values + kSize, static_cast<float>(begin + k)), kSize);
      EXPECT_EQ(batch[1].unchecked_data<int64_t>()[k], begin + k);
      EXPECT_EQ(batch[2].unchecked_data<std::string>()[k], StrCat("row ", begin + k));
    }
  }
  EXPECT_FALSE(*iterator->Next(&batch));

  // Saved between the rows of a batch, too.
  const Dataset halves = LargeRows(6 * kBatch, [](int64_t) { return kSize; })
                             .Map([](Tensors row) { return row; }, {.parallel = 2})
                             .Batch(kBatch)
                             .Prefetch(1);
  auto saved = Begin(halves);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(*saved->Next(&batch));
    auto restored = Begin(halves);
    ASSERT_TRUE(restored->Restore(*saved->Save()).ok());
    Tensors left;
    for (int64_t begin = (i + 1) * kBatch; *restored->Next(&left); begin += kBatch) {
      const float* const values = left[0].unchecked_data<float>();
      for (int64_t k = 0; k < kBatch * kSize; ++k) ASSERT_EQ(values[k], begin + k / kSize);
    }
  }

  absl::Status status;
  const Dataset ragged = LargeRows(kRows, [](int64_t i) { return kSize + (i == 10 ? 1 : 0); });
  EXPECT_EQ(All(ragged.Batch(kBatch), 1, &status).size(), 2u);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("component 0 of an element is float[100001], that of the first of its batch "
                "float[100000]"));
  // As large as can be: no memory is taken for it until it is known that there are so many.
  EXPECT_EQ(All(LargeRows(3, [](int64_t) { return kSize; }).Batch(int64_t{1} << 40)).size(), 1u);
}

/// Each byte of a small file altered, and the file cut at each byte.
TEST(DatasetErrorsTest, DamagedRecordFiles) {
  const TempFolder folder;
  const std::string good = folder.WriteRecords("good", {"alpha", "b", "", "delta"});
  const std::string bytes = ReadWholeFile(TempFolder::files(), good).value();
  const std::vector<std::string> all = All(Dataset::Records({good}));
  ASSERT_EQ(all.size(), 4u);
  const auto check = [&](const std::string& damaged, size_t at) {
    const std::string file = folder.Write("damaged", damaged);
    absl::Status status;
    const std::vector<std::string> before = All(Dataset::Records({file}), 1, &status);
    ASSERT_EQ(status.code(), Code::kDataLoss) << at;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file + ", record at byte "));
    EXPECT_EQ(before, std::vector<std::string>(all.begin(), all.begin() + before.size()));
    // Left out, and the next file is read.
    const auto iterator = Begin(Dataset::Records({file, good}, {.skip_bad = 1}));
    const std::vector<std::string> rest = Take(*iterator, 100);
    EXPECT_GE(rest.size(), before.size() + 4);
    EXPECT_LE(rest.size(), 7u);
    EXPECT_EQ(iterator->Stats()[0].bad, 1);
  };
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x41);
    check(altered, at);
  }
  size_t cuts = 0;
  for (size_t at = 1; at < bytes.size(); ++at) {
    if (at == 21 || at == 38 || at == 54) continue;  // Between records.
    check(bytes.substr(0, at), at);
    ++cuts;
  }
  EXPECT_GT(cuts, 60u);
  // A length that lies, with a checksum that is right, costs no memory.
  std::string lies;
  AppendFixed<uint64_t>(uint64_t{1} << 30, &lies);
  AppendFixed<uint32_t>(MaskCrc32c(Crc32c(lies)), &lies);
  check(lies + "some", 0);
  absl::Status status;
  All(Dataset::Records({folder.Path("none")}), 1, &status);
  EXPECT_EQ(status.code(), Code::kNotFound) << status;
  All(Dataset::Records({good}, {.max_record_bytes = 4}), 1, &status);
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status;
  // Left out, and the records after it are read.
  const std::string long_one =
      folder.WriteRecords("long", {"alpha", std::string(1'000'000, 'x'), "", "omega"});
  const auto short_ones =
      Begin(Dataset::Records({long_one}, {.max_record_bytes = 5, .skip_bad = 1}));
  EXPECT_EQ(Take(*short_ones, 10),
            All(Dataset::FromTensors({Tensor::Vector<std::string>({"alpha", "", "omega"})})));
  EXPECT_EQ(short_ones->Stats()[0].bad, 1);
}

/// The files after it do not stand in for what is missing.
TEST(DatasetErrorsTest, FilesThatHaveBecomeShorter) {
  const TempFolder folder;
  const std::string records = folder.WriteRecords("records", {"alpha", "b", "c"});
  const std::string zipped =
      folder.WriteRecords("zipped", {"alpha", "b", "c"}, FileCompression::kGzip);
  const std::string text = folder.Write("text", "1\n2\n3\n");
  DatasetCsvOptions csv;
  csv.columns = {Tensor::Scalar<int32_t>(0)};
  for (const auto& [dataset, file] : std::vector<std::pair<Dataset, std::string>>{
           {Dataset::Records({records, records}), records},
           {Dataset::Records({zipped, zipped}, {.compression = FileCompression::kGzip}), zipped},
           {Dataset::TextLines({text, text}), text},
           {Dataset::Csv({text, text}, csv), text}}) {
    const auto iterator = Begin(dataset);
    Take(*iterator, 2);
    const std::string position = *iterator->Save();
    const std::string before = *ReadWholeFile(TempFolder::files(), file);
    const std::string name = file.substr(folder.Path("").size());
    if (file == zipped) {
      folder.WriteRecords(name, {"alpha"}, FileCompression::kGzip);
    } else {
      folder.Write(name, before.substr(0, file == records ? 21 : 2));
    }
    const auto restored = Begin(dataset);
    ASSERT_EQ(restored->Restore(position), absl::OkStatus());
    absl::Status status;
    EXPECT_TRUE(Take(*restored, 10, &status).empty());
    EXPECT_EQ(status.code(), Code::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file + ": it ends at byte "));
    folder.Write(name, before);
  }
}

/// Ends at once. A position is refused, as late as the test says.
class RefusingStage final : public data::Stage {
 public:
  /// Keeps the first promise, and waits for the second one.
  struct Order {
    std::promise<void> restores, refuses;
  };
  RefusingStage(const data::Place& place, Order* order)
      : Stage(place.player, place.parent, "Refusing"), order_(order) {}
  void Start(uint64_t) override {}

 private:
  absl::StatusOr<data::Progress> DoPull(size_t, data::Block*) override {
    return data::Progress::kEnd;
  }
  absl::Status Save(data::PositionWriter*) override { return absl::OkStatus(); }
  void Restore(data::PositionReader* from) override {
    order_->restores.set_value();
    order_->refuses.get_future().wait();
    from->Refuse();
  }

  Order* const order_;
};

/// Who has asked meanwhile is answered.
TEST(DatasetErrorsTest, CallsWhileAPositionIsRefused) {
  RefusingStage::Order order;
  const data::PlanPtr plan = data::MakePlan(
      [&order](const data::Place& place) -> absl::StatusOr<std::unique_ptr<data::Stage>> {
        return std::make_unique<RefusingStage>(place, &order);
      });
  const auto begun = *data::Root::Make(*plan, {});
  Tensors element;
  ASSERT_FALSE(*begun->Next(&element));
  const std::string position = *begun->Save();
  const auto restored = *data::Root::Make(*plan, {});
  std::future<absl::Status> status =
      std::async(std::launch::async, [&] { return restored->Restore(position); });
  order.restores.get_future().wait();
  std::promise<absl::Status> answer;
  restored->NextAsync(
      [&](absl::StatusOr<bool> more, const Tensors&) { answer.set_value(more.status()); });
  order.refuses.set_value();
  EXPECT_EQ(status.get().code(), Code::kInvalidArgument);
  std::future<absl::Status> answered = answer.get_future();
  EXPECT_EQ(answered.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  data::Root::End(begun);
  data::Root::End(restored);
  EXPECT_EQ(answered.get().code(), Code::kInvalidArgument);
}

Dataset ManyStages() {
  return Dataset::Range(0, 40)
      .Shuffle({.window = 4, .seed = 5})
      .Repeat()
      .Interleave(
          [](const Tensors& e) -> absl::StatusOr<Dataset> {
            // Elements of an altered position may be anything.
            if (e.size() != 1) return InvalidArgument("no number");
            TROUPE_ASSIGN_OR_RETURN(const int64_t n, e[0].scalar<int64_t>());
            return Dataset::Range(0, n % 4).Enumerate();
          },
          {.cycle = 2, .parallel = true, .ahead = 3})
      .Map([](Tensors element) { return element; }, {.parallel = kAuto})
      .Filter([](const Tensors&) -> absl::StatusOr<bool> { return true; })
      .Batch(3)
      .Prefetch();
}

/// Bytes that are anybody's are refused, or lead to some elements or an error.
TEST(DatasetErrorsTest, AlteredPositions) {
  const Dataset dataset = ManyStages();
  const auto iterator = Begin(dataset);
  Take(*iterator, 5);
  const std::string position = *iterator->Save();
  for (const std::string& wrong :
       {std::string(), std::string("abcd"), position.substr(1), position + "x"}) {
    EXPECT_EQ(Begin(dataset)->Restore(wrong).code(), Code::kInvalidArgument);
  }
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 400; ++i) {
    std::string altered = position.substr(0, position.size() - 4);
    if (i % 4 == 0) altered.resize(random() % altered.size());
    for (int n = 1 + static_cast<int>(random() % 3); n > 0 && !altered.empty(); --n) {
      altered[random() % altered.size()] = static_cast<char>(random());
    }
    AppendFixed(MaskCrc32c(Crc32c(altered)), &altered);
    const auto restored = Begin(dataset, 1);
    absl::Status status = restored->Restore(altered);
    if (status.ok()) {
      ++accepted;
      Take(*restored, 3, &status);
    } else {
      Tensors element;
      EXPECT_EQ(restored->Next(&element).status(), status);
    }
  }
  EXPECT_GT(accepted, 0);
  // Of other stages.
  const absl::Status other = Begin(dataset.Batch(2))->Restore(position);
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(other.message()), HasSubstr("another pipeline"));
  const auto used = Begin(dataset);
  Take(*used, 1);
  EXPECT_EQ(used->Restore(position).code(), Code::kFailedPrecondition);
}

/// Iterators that go at any moment, with calls that wait for them.
TEST(DatasetErrorsTest, EndedAtAnyMoment) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    auto iterator = Begin(ManyStages(), 1 + i % 4);
    const int calls = static_cast<int>(random() % 8);
    const auto answered = std::make_shared<std::atomic<int>>(0);
    for (int call = 0; call < calls; ++call) {
      iterator->NextAsync([answered](absl::StatusOr<bool>, Tensors) { ++*answered; });
    }
    if (i % 3 == 0) Take(*iterator, random() % 5);
    if (i % 5 == 0) {
      ASSERT_TRUE(iterator->Save().ok());
    }
    if (i % 7 == 0) {
      std::thread cancels([&] { iterator->Cancel(); });
      absl::Status status;
      Take(*iterator, 1 << 30, &status);
      EXPECT_EQ(status.code(), Code::kCancelled);
      cancels.join();
    }
    iterator.reset();
    EXPECT_EQ(*answered, calls);
  }
}

/// What looks for an element for ever can be stopped.
TEST(DatasetErrorsTest, EndedWhileNothingIsFound) {
  const Dataset numbers = Dataset::Range(0, INT64_MAX);
  const auto never = [](const Tensors&) -> absl::StatusOr<bool> { return false; };
  for (const Dataset& dataset :
       {numbers.Filter(never), numbers.Skip(INT64_MAX), numbers.Shard(0, INT32_MAX).Skip(INT64_MAX),
        numbers.Filter(never).Prefetch(2), numbers.Filter(never).Cache()}) {
    const auto iterator = Begin(dataset, 1);
    std::thread cancels([&] {
      // Until it looks, as a rule: both orders must end it.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      iterator->Cancel();
    });
    absl::Status status;
    Take(*iterator, 1, &status);
    EXPECT_EQ(status.code(), Code::kCancelled);
    cancels.join();
  }
}

/// A callback may be the last to hold its iterator.
TEST(DatasetErrorsTest, EndedByItsOwnCallback) {
  for (int i = 0; i < 50; ++i) {
    const auto held = std::make_shared<std::unique_ptr<DatasetIterator>>(Begin(ManyStages()));
    std::atomic<bool> ended{false};
    (*held)->NextAsync([held, &ended](absl::StatusOr<bool>, Tensors) {
      held->reset();
      ended = true;
    });
    while (!ended) std::this_thread::yield();
  }
}

TEST(DatasetErrorsTest, SeveralConsumersShareTheElements) {
  const auto iterator =
      Begin(Dataset::Range(0, 2000).Map([](Tensors e) { return e; }, {.parallel = 2}));
  std::atomic<int64_t> sum{0}, count{0};
  std::vector<std::thread> consumers;
  for (int i = 0; i < 4; ++i) {
    consumers.emplace_back([&] {
      Tensors element;
      while (*iterator->Next(&element)) {
        sum += element[0].unchecked_scalar<int64_t>();
        ++count;
      }
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(count, 2000);
  EXPECT_EQ(sum, 1999 * 1000);
}

TEST(DatasetErrorsTest, WithoutOrderNothingIsLostOrDoubled) {
  const Dataset dataset =
      Dataset::Range(0, 500).Map([](Tensors e) { return e; }, {.parallel = 4, .ordered = false});
  auto iterator = Begin(dataset, 4);
  std::multiset<std::string> got;
  for (const std::string& element : Take(*iterator, 123)) got.insert(element);
  const std::string position = *iterator->Save();
  iterator = Begin(dataset, 4);
  ASSERT_EQ(iterator->Restore(position), absl::OkStatus());
  for (const std::string& element : Take(*iterator, 1000)) got.insert(element);
  const std::vector<std::string> all = All(Dataset::Range(0, 500));
  EXPECT_EQ(got, std::multiset<std::string>(all.begin(), all.end()));
}

/// The local file system, which counts what is read.
class CountedFiles : public FileSystem {
 public:
  static std::atomic<int64_t> bytes;

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForReading(
      const std::string& path) override {
    struct File final : RandomAccessFile {
      absl::StatusOr<size_t> Read(uint64_t offset, absl::Span<char> to) const override {
        auto n = file->Read(offset, to);
        if (n.ok()) bytes += static_cast<int64_t>(*n);
        return n;
      }
      absl::StatusOr<uint64_t> Size() const override { return file->Size(); }
      std::unique_ptr<RandomAccessFile> file;
    };
    auto file = std::make_unique<File>();
    TROUPE_ASSIGN_OR_RETURN(file->file, local()->OpenForReading(Local(path)));
    return file;
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return local()->Create(Local(path));
  }
  absl::StatusOr<FileStat> Stat(const std::string& path) override {
    return local()->Stat(Local(path));
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return local()->List(Local(path));
  }
  absl::Status CreateDirectories(const std::string& path) override {
    return local()->CreateDirectories(Local(path));
  }
  absl::Status Remove(const std::string& path) override { return local()->Remove(Local(path)); }
  absl::Status RemoveDirectory(const std::string& path) override {
    return local()->RemoveDirectory(Local(path));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return local()->Rename(Local(from), Local(to));
  }
  absl::Status SyncDirectory(const std::string& path) override {
    return local()->SyncDirectory(Local(path));
  }

 private:
  static FileSystem* local() { return TempFolder::files(); }
  static std::string Local(const std::string& path) {
    return path.substr(std::string("counted://").size());
  }
};
std::atomic<int64_t> CountedFiles::bytes{0};

/// A consumer that stops, stops the disk.
TEST(DatasetErrorsTest, NothingIsReadThatNobodyWants) {
  ASSERT_EQ(FileSystems().Register("counted", std::make_unique<CountedFiles>()), absl::OkStatus());
  const TempFolder folder;
  folder.WriteRecords("large", std::vector<std::string>(20000, std::string(1000, 'x')));
  const std::string file = "counted://" + folder.Path("large");
  const Dataset records = Dataset::Records({file});
  const auto read_after = [](const Dataset& dataset, size_t elements) {
    const auto iterator = Begin(dataset);
    Take(*iterator, elements);
    // Until nothing more comes: all credits are used up.
    int64_t before = -1;
    while (before != CountedFiles::bytes) {
      before = CountedFiles::bytes;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return CountedFiles::bytes.exchange(0);
  };
  const int64_t block = 256 << 10;
  EXPECT_EQ(read_after(records, 0), 0);
  EXPECT_LE(read_after(records, 1), block);
  EXPECT_LE(read_after(records.Shuffle({.window = 500}), 1), 500 * 1016 + 2 * block);
  EXPECT_LE(read_after(records.Batch(10).Prefetch(5), 1), 61 * 1016 + 2 * block);
  EXPECT_LE(read_after(records.Prefetch(), 1), 256 * 1016 + 2 * block);
  EXPECT_LE(read_after(records.Map([](Tensors e) { return e; }, {.parallel = 2}), 1),
            5 * 64 * 1016 + 2 * block);
  EXPECT_LE(read_after(records.Repeat().Batch(10).Prefetch(5), 100), 1061 * 1016 + 2 * block);
}

/// Memory is that of what is held, however many elements have gone by.
TEST(DatasetErrorsTest, FlatMemory) {
  const TempFolder folder;
  const std::string file =
      folder.WriteRecords("r", std::vector<std::string>(5000, std::string(100, 'x')));
  const auto iterator = Begin(Dataset::Records({file})
                                  .Shuffle({.window = 1000})
                                  .Repeat()
                                  .Map([](Tensors e) { return e; }, {.parallel = 2})
                                  .Batch(50)
                                  .Prefetch(4));
  Take(*iterator, 500);
  const int64_t before = HostAllocator()->stats().bytes_in_use;
  Tensors element;
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(*iterator->Next(&element));
  EXPECT_LE(HostAllocator()->stats().bytes_in_use, before + (1 << 20));
}

TEST(DatasetErrorsTest, Statistics) {
  const auto iterator = Begin(Dataset::Range(0, 100)
                                  .Map(
                                      [](Tensors e) {
                                        // The time that the statistics must show, more than a
                                        // loaded machine adds to the other stages.
                                        std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                        return e;
                                      },
                                      {.parallel = 2})
                                  .Batch(10)
                                  .Prefetch(2));
  Take(*iterator, 100);
  const std::vector<StageStats> stats = iterator->Stats();
  ASSERT_EQ(stats.size(), 4u);
  EXPECT_EQ(stats[0].name, "Prefetch");
  EXPECT_EQ(stats[0].capacity, 2);
  EXPECT_GT(stats[0].starved, 0);
  EXPECT_EQ(stats[1].elements, 10);
  EXPECT_EQ(stats[2].elements, 100);
  EXPECT_EQ(stats[2].depth, 2);
  EXPECT_EQ(stats[2].parallel, 2);
  EXPECT_GT(stats[2].busy_seconds, 0.5);  // The slowest.
  EXPECT_LT(stats[1].busy_seconds + stats[3].busy_seconds, stats[2].busy_seconds);
  RunMetadata metadata;
  iterator->AddStatsTo(&metadata);
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).device(), "/dataset:dataset");
  EXPECT_EQ(metadata.step_stats().dev_stats(0).node_stats_size(), 4);
  EXPECT_THAT(metadata.step_stats().dev_stats(0).node_stats(2).timeline_label(),
              HasSubstr("2 calls at once"));
}

/// A parallel map counts elements, of which a piece has several.
TEST(DatasetErrorsTest, FullnessOfAParallelMap) {
  constexpr int kParallel = 2;
  const auto iterator = Begin(
      Dataset::Range(0, 10'000'000).Map([](Tensors e) { return e; }, {.parallel = kParallel}));
  int64_t most = 0;
  for (int i = 0; i < 1'000'000 && most <= 2 * kParallel; ++i) {
    Take(*iterator, 1);
    const StageStats stats = iterator->Stats()[0];
    ASSERT_LE(stats.held, stats.capacity);
    most = std::max(most, stats.held);
  }
  EXPECT_GT(most, 2 * kParallel);
}

/// It makes more calls at once while its consumer waits, but no more than there are threads.
TEST(DatasetErrorsTest, AutomaticParallelism) {
  constexpr int kThreads = 3;
  std::atomic<int> calls{0}, most_calls{0};
  const auto slow = [&](Tensors element) {
    const int now = ++calls;
    for (int most = most_calls; now > most && !most_calls.compare_exchange_weak(most, now);) {
    }
    // So slow that its consumer waits for it, however many processors there are.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --calls;
    return element;
  };
  const auto iterator =
      Begin(Dataset::Range(0, 1'000'000).Map(slow, {.parallel = kAuto}), kThreads);
  int parallel = 0;
  for (int i = 0; i < 10'000 && parallel < kThreads; ++i) {
    Take(*iterator, 1);
    parallel = iterator->Stats()[0].parallel;
  }
  EXPECT_EQ(parallel, kThreads);
  Take(*iterator, 100);
  EXPECT_LE(iterator->Stats()[0].parallel, kThreads);
  EXPECT_LE(most_calls, kThreads);
}

TEST(DatasetErrorsTest, StatisticsAreLogged) {
  std::mutex mutex;
  std::string log;
  SetLogLevel(LogLevel::kInfo);
  SetLogSink([&](const LogRecord& record) {
    std::lock_guard<std::mutex> lock(mutex);
    log += record.text;
  });
  DatasetIteratorOptions options;
  static int times = 0;  // Nothing is logged twice in ten seconds.
  options.name = StrCat("logged", ++times);
  options.log_every = absl::Milliseconds(1);
  const auto iterator = *Dataset::Range(0, 1'000'000).Batch(2).Prefetch(4).MakeIterator(options);
  for (int i = 0; i < 100; ++i) {
    Take(*iterator, 10);
    // For the interval between two lines of the log to pass.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  SetLogSink(nullptr);
  SetLogLevel(LogLevel::kWarning);
  std::lock_guard<std::mutex> lock(mutex);
  EXPECT_THAT(log, HasSubstr(StrCat("Dataset ", options.name, ": Prefetch: ")));
  EXPECT_THAT(log, HasSubstr(" of 4 ready, starved "));
  EXPECT_THAT(log, HasSubstr("  Range"));
}

}  // namespace
}  // namespace troupe
