#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/data/file_bytes.h"
#include "api/data/position.h"
#include "api/dataset.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "graph/protos/tensor.pb.h"
#include "kernels/actors/tensor_actor.h"
#include "tests/api/dataset/dataset_test_util.h"
#include "tests/devices/storage/scheme_disk.h"

namespace troupe {
namespace {

using testing::All;
using testing::Begin;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Take;
using testing::TempFolder;
using testing::Text;

std::string TextOf(const std::string& value) { return Text({Tensor::Scalar(value)}); }

std::vector<std::string> TextsOf(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  for (const std::string& value : values) texts.push_back(TextOf(value));
  return texts;
}

/// Saves and restores at each position.
void CheckPositions(const Dataset& dataset, const std::vector<std::string>& expected) {
  EXPECT_EQ(All(dataset), expected);
  const auto iterator = Begin(dataset);
  for (size_t k = 0; k <= expected.size(); ++k) {
    const auto position = iterator->Save();
    ASSERT_TRUE(position.ok()) << position.status();
    const auto restored = Begin(dataset);
    ASSERT_EQ(restored->Restore(*position), absl::OkStatus());
    ASSERT_EQ(Take(*restored, 1000), std::vector<std::string>(expected.begin() + k, expected.end()))
        << "at " << k;
    Take(*iterator, 1);
  }
}

/// Records of many sizes; some are longer than a block of the file.
std::vector<std::string> SomeRecords() {
  std::vector<std::string> records;
  for (size_t i = 0; i < 40; ++i)
    records.emplace_back(i * 997 % 5000, static_cast<char>('a' + i % 26));
  records.emplace_back(700'000, 'x');
  records.emplace_back();
  records.emplace_back(300'000, 'y');
  records.emplace_back("end");
  return records;
}

TEST(DatasetSourcesTest, RecordsOfAllFilesInOrder) {
  const TempFolder folder;
  const std::vector<std::string> records = SomeRecords();
  std::vector<std::string> twice = TextsOf(records), other = TextsOf({"1", "2"});
  twice.insert(twice.end(), other.begin(), other.end());
  for (const FileCompression compression :
       {FileCompression::kNone, FileCompression::kZlib, FileCompression::kGzip}) {
    const Dataset dataset = Dataset::Records({folder.WriteRecords("a", records, compression),
                                              folder.WriteRecords("none", {}, compression),
                                              folder.WriteRecords("b", {"1", "2"}, compression)},
                                             {.compression = compression});
    CheckPositions(dataset, twice);
    CheckPositions(dataset.Shuffle({.window = 1}), twice);
  }
}

TEST(DatasetSourcesTest, LinesHaveNoEnds) {
  const TempFolder folder;
  const std::string long_line(600'000, 'z');
  const Dataset dataset = Dataset::TextLines(
      {folder.Write("a", "one\ntwo\r\n\nfour\r\rx\n" + long_line + "\nlast"), folder.Write("b", ""),
       folder.Write("c", "\n"), folder.Write("d", "more\n")});
  CheckPositions(dataset, TextsOf({"one", "two", "", "four\r\rx", long_line, "last", "", "more"}));
  absl::Status status;
  All(Dataset::TextLines({folder.Path("a")}, {.max_line_bytes = 1000}), 1, &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/a, line at byte 18"));
}

TEST(DatasetSourcesTest, TextIsBytes) {
  std::string latin;  // All bytes but ends of lines and what is special to rows.
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    if (c != '\n' && c != '\r' && c != '"' && c != ',') latin.push_back(c);
  }
  const TempFolder folder;
  const std::string file = folder.Write("latin", latin + "\n\xff\n");
  DatasetCsvOptions csv;
  csv.columns = {Tensor::Scalar("")};
  for (const Dataset& dataset : {Dataset::TextLines({file}), Dataset::Csv({file}, csv)}) {
    const auto iterator = Begin(dataset);
    Tensors element;
    for (const std::string& expected : {latin, std::string("\xff")}) {
      ASSERT_TRUE(*iterator->Next(&element));
      EXPECT_EQ(element[0].unchecked_scalar<std::string>(), expected);
    }
  }
}

DatasetCsvOptions Columns() {
  DatasetCsvOptions options;
  options.columns = {Tensor::Scalar<int32_t>(7), Tensor::Scalar<float>(0.5f),
                     Tensor::Scalar("none"), Tensor::Scalar<double>(0), Tensor::Scalar<int64_t>(0)};
  options.header = true;
  return options;
}

std::string Row(int32_t a, float b, const char* c, double d, int64_t e) {
  return Text({Tensor::Scalar(a), Tensor::Scalar(b), Tensor::Scalar(c), Tensor::Scalar(d),
               Tensor::Scalar(e)});
}

TEST(DatasetSourcesTest, LongLinesAreNotCopiedForEachBlock) {
  constexpr size_t kSize = 16 << 20;
  const TempFolder folder;
  const std::string long_line(kSize, 'x');
  const std::string file = folder.Write("long", long_line + "\nshort\n");
  const auto bytes = *data::FileBytes::Open(file, FileCompression::kNone, 0);
  int buffers = 0;
  const Buffer* before = nullptr;
  for (size_t n = 1; n < kSize; n = *bytes->NeedMore(2 * kSize)) {
    ASSERT_TRUE(bytes->Need(n).ok());
    buffers += bytes->buffer().get() != before ? 1 : 0;
    before = bytes->buffer().get();
  }
  EXPECT_LE(buffers, 10);
  DatasetCsvOptions csv;
  csv.columns = {Tensor::Scalar("")};
  for (const Dataset& dataset : {Dataset::TextLines({file}), Dataset::Csv({file}, csv)}) {
    const std::vector<std::string> lines = All(dataset);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], Text({Tensor::Scalar(long_line)}));
    EXPECT_EQ(lines[1], Text({Tensor::Scalar("short")}));
  }
}

TEST(DatasetSourcesTest, CsvRows) {
  const TempFolder folder;
  const std::string file = folder.Write("a.csv",
                                        "a,b,\"c\nd\",d,e\n"
                                        "1,2.5,text,1e3,-9\r\n"
                                        ",,,,\n\n"
                                        "+3, 4 ,\"x,\"\"y\"\"\nz\",0.1,9223372036854775807\n"
                                        "5,6,\"\",7,8");
  const Dataset dataset = Dataset::Csv({file, file}, Columns());
  std::vector<std::string> rows = {Row(1, 2.5f, "text", 1e3, -9), Row(7, 0.5f, "none", 0, 0),
                                   Row(3, 4, "x,\"y\"\nz", 0.1, INT64_MAX),
                                   Row(5, 6, "none", 7, 8)};
  const std::vector<std::string> once = rows;
  rows.insert(rows.end(), once.begin(), once.end());
  CheckPositions(dataset, rows);
  // A window that outlives what it was read from.
  CheckPositions(dataset.Shuffle({.window = 1}), rows);

  DatasetCsvOptions selected = Columns();
  selected.select = {4, 2};
  EXPECT_EQ(All(Dataset::Csv({file}, selected))[0],
            Text({Tensor::Scalar<int64_t>(-9), Tensor::Scalar("text")}));
}

TEST(DatasetSourcesTest, CsvErrorsNameFileAndOffset) {
  const TempFolder folder;
  for (const auto& [text, what] : std::map<std::string, std::string>{
           {"1,2,a,3", "row at byte 10: it has 4 fields, not 5"},
           {"1,2,a,3,4,5", "row at byte 10: it has more than 5 fields"},
           {"1,2,a,3,4x", "row at byte 10: field 4 is no int64: 4x"},
           {"99999999999,2,a,3,4", "row at byte 10: field 0 is no int32: 99999999999"},
           {"1,2,a\"b\",3,4", "row at byte 10: field 2 has a quote but is not quoted"},
           {"1,2,\"a\"b,3,4", "row at byte 10: something follows the end of a quoted field"},
           {"1,2,\"a,3,4\n5,6", "row at byte 10: a quoted field does not end"},
           {",2,a,3,4", "row at byte 10: field 0 is required but empty"}}) {
    DatasetCsvOptions options = Columns();
    options.header = false;
    options.required = {0};
    const std::string file = folder.Write("a.csv", "1,2,a,3,4\n" + text + "\n");
    absl::Status status;
    EXPECT_EQ(All(Dataset::Csv({file}, options), 1, &status).size(), 1u) << text;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat(file, ", ", what)));
    // Rows that are read at once with it come before it.
    EXPECT_EQ(All(Dataset::Csv({file}, options).Prefetch(4), 1, &status).size(), 1u) << text;
  }
}

TEST(DatasetSourcesTest, CsvRowsThatAreLeftOut) {
  const TempFolder folder;
  const std::string file = folder.Write("a.csv", "1,a\n2\nx,b\n3,\"c\"d\n4,e\n5,f,g\n6,h");
  DatasetCsvOptions options;
  options.columns = {Tensor::Scalar<int32_t>(0), Tensor::Scalar("")};
  options.skip_bad = 4;
  const auto row = [](int32_t a, const char* b) {
    return Text({Tensor::Scalar(a), Tensor::Scalar(b)});
  };
  const Dataset dataset = Dataset::Csv({file}, options);
  CheckPositions(dataset, {row(1, "a"), row(4, "e"), row(6, "h")});
  const auto iterator = Begin(dataset);
  Take(*iterator, 10);
  EXPECT_EQ(iterator->Stats()[0].bad, 4);
  options.skip_bad = 3;
  absl::Status status;
  EXPECT_EQ(All(Dataset::Csv({file}, options), 1, &status).size(), 2u);
  EXPECT_THAT(std::string(status.message()), HasSubstr("after 3 bad elements"));
  // Those that were left out before a position count.
  const auto begun = Begin(Dataset::Csv({file}, options));
  Take(*begun, 2);
  const auto position = begun->Save();
  ASSERT_TRUE(position.ok()) << position.status();
  const auto restored = Begin(Dataset::Csv({file}, options));
  ASSERT_EQ(restored->Restore(*position), absl::OkStatus());
  EXPECT_TRUE(Take(*restored, 10, &status).empty());
  EXPECT_THAT(std::string(status.message()), HasSubstr("after 3 bad elements"));
}

TEST(DatasetSourcesTest, CsvFilesThatEndWithinAQuote) {
  const TempFolder folder;
  const std::string bad = folder.Write("a.csv", "1,a\n2,\"b\n3,c\n");
  const std::string good = folder.Write("b.csv", "4,d\n");
  DatasetCsvOptions options;
  options.columns = {Tensor::Scalar<int32_t>(0), Tensor::Scalar("")};
  absl::Status status;
  EXPECT_EQ(All(Dataset::Csv({bad, good}, options), 1, &status).size(), 1u);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("row at byte 4: a quoted field does not end"));
  options.skip_bad = 1;
  const auto row = [](int32_t a, const char* b) {
    return Text({Tensor::Scalar(a), Tensor::Scalar(b)});
  };
  CheckPositions(Dataset::Csv({bad, good}, options), {row(1, "a"), row(4, "d")});
  EXPECT_EQ(All(Dataset::Csv({bad, bad}, options), 1, &status).size(), 2u);
  EXPECT_THAT(std::string(status.message()), HasSubstr("after 1 bad elements"));
  // Of a file without rows not even the columns are known.
  options.header = true;
  const std::string header = folder.Write("c.csv", "a,\"b\n1,a\n");
  EXPECT_THAT(All(Dataset::Csv({header}, options), 1, &status), IsEmpty());
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("row at byte 0: a quoted field does not end"));
}

TEST(DatasetSourcesTest, FilesThatMatch) {
  const TempFolder folder;
  folder.Write("b.txt", "3");
  folder.Write("a.txt", "1\n2");
  folder.Write("c.csv", "");
  const Dataset files = Dataset::Files(folder.Path("*.txt"));
  EXPECT_THAT(All(files), ElementsAre(TextOf(folder.Path("a.txt")), TextOf(folder.Path("b.txt"))));
  const Dataset lines = files.Interleave(
      [](const Tensors& file) -> absl::StatusOr<Dataset> {
        return Dataset::TextLines({file[0].unchecked_scalar<std::string>()});
      },
      {.cycle = 2});
  EXPECT_EQ(All(lines), TextsOf({"1", "3", "2"}));
  EXPECT_EQ(Dataset::Files(folder.Path("*.none")).MakeIterator().status().code(),
            absl::StatusCode::kNotFound);
}

/// Answers on a thread of its own, now and then out of order.
class NumbersActor : public TensorActor {
 public:
  explicit NumbersActor(int64_t n) : n_(n) {}
  ~NumbersActor() override {
    for (std::thread& thread : threads_) thread.join();
  }
  uint64_t Ask(std::vector<Tensor> inputs, absl::Duration, Answer answer) override {
    const int64_t pass = inputs[0].unchecked_scalar<int64_t>();
    const int64_t number = inputs[1].unchecked_scalar<int64_t>();
    const auto reply = [=, n = n_] {
      if (number >= n) return answer(absl::OutOfRangeError("the end"));
      answer(Tensors{Tensor::Scalar(number), Tensor::Scalar(pass)});
    };
    if (number % 3 == 0) {
      reply();
    } else {
      std::lock_guard<std::mutex> lock(mutex_);
      threads_.emplace_back(reply);
    }
    return 1;
  }
  void Forget(uint64_t) override {}
  absl::Status Tell(std::vector<Tensor>) override { return absl::OkStatus(); }

 private:
  const int64_t n_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

TEST(DatasetSourcesTest, ActorsAreAskedForNumbers) {
  ASSERT_EQ(TensorActors::Global()->Add("numbers", std::make_shared<NumbersActor>(20)),
            absl::OkStatus());
  std::vector<std::string> expected;
  for (int64_t i = 0; i < 20; ++i) {
    expected.push_back(Text({Tensor::Scalar(i), Tensor::Scalar<int64_t>(0)}));
  }
  for (const int in_flight : {1, 5, 100}) {
    CheckPositions(Dataset::FromActor("numbers", {.in_flight = in_flight}), expected);
  }
  EXPECT_EQ(All(Dataset::FromActor("numbers").Prefetch(3).Repeat(2)).size(), 40u);
  // Requests under way outlive who has asked.
  for (int i = 0; i < 20; ++i) {
    Take(*Begin(Dataset::FromActor("numbers", {.in_flight = 20}).Prefetch(2)), i);
  }
  // A number beyond all that there can be.
  const auto iterator = Begin(Dataset::FromActor("numbers"));
  Take(*iterator, 1);
  std::string position = *iterator->Save();
  position.resize(position.size() - sizeof(uint32_t) - 1);
  AppendVarint(UINT64_MAX - 2, &position);
  AppendFixed(MaskCrc32c(Crc32c(position)), &position);
  EXPECT_EQ(Begin(Dataset::FromActor("numbers"))->Restore(position).code(),
            absl::StatusCode::kInvalidArgument);
  TensorActors::Global()->Remove("numbers");
  absl::Status status;
  All(Dataset::FromActor("numbers"), 1, &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

TEST(DatasetSourcesTest, AFileOfTheCacheIsReadByLaterPrograms) {
  const TempFolder folder;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset dataset = Dataset::Records({folder.WriteRecords("r", {"a", "bb", "ccc", "d"})})
                              .Map([calls](Tensors element) -> absl::StatusOr<Tensors> {
                                ++*calls;
                                element.push_back(Tensor::Scalar<int64_t>(static_cast<int64_t>(
                                    element[0].unchecked_scalar<std::string>().size())));
                                return element;
                              })
                              .CacheFile(folder.Path("cache"));
  std::vector<std::string> expected;
  for (const std::string text : {"a", "bb", "ccc", "d"}) {
    expected.push_back(
        Text({Tensor::Scalar(text), Tensor::Scalar(static_cast<int64_t>(text.size()))}));
  }
  Take(*Begin(dataset), 3);  // Is not completed, and leaves nothing behind.
  EXPECT_THAT(TempFolder::files()->List(folder.Path("")).value(), ElementsAre("r"));
  *calls = 0;
  std::vector<std::string> three;
  for (int i = 0; i < 3; ++i) three.insert(three.end(), expected.begin(), expected.end());
  EXPECT_EQ(All(dataset.Repeat(3)), three);
  EXPECT_EQ(*calls, 4);
  CheckPositions(dataset, expected);
  EXPECT_EQ(*calls, 4);
  // Positions before it is complete.
  ASSERT_TRUE(TempFolder::files()->Remove(folder.Path("cache")).ok());
  CheckPositions(dataset.Take(3), {expected[0], expected[1], expected[2]});
  // A small record that claims a large tensor.
  TensorProto claim;
  claim.set_dtype(DT_FLOAT);
  claim.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 27);
  claim.add_float_val(1);
  data::PositionWriter element;
  element.Number(1);
  element.Number(0);
  element.Text(claim.SerializeAsString());
  folder.WriteRecords("cache", {element.Take()});
  absl::Status claimed;
  EXPECT_THAT(All(dataset, 1, &claimed), IsEmpty());
  EXPECT_EQ(claimed.code(), absl::StatusCode::kDataLoss) << claimed;
  absl::Status nowhere;
  All(Dataset::Range(0, 3).CacheFile(folder.Path("nowhere/cache")), 1, &nowhere);
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr("CacheFile: Cannot create"));
  // What is no cache.
  folder.WriteRecords("cache", {"x"});
  absl::Status status;
  EXPECT_THAT(All(dataset, 1, &status), IsEmpty());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/cache, record at byte 0"));
}

/// Counts how often elements are asked for.
Dataset Counting(int64_t n, const std::shared_ptr<std::atomic<int>>& calls) {
  return Dataset::Range(0, n).Map([calls](Tensors element) -> absl::StatusOr<Tensors> {
    ++*calls;
    element.push_back(Tensor::Scalar(std::string(10, 'x')));
    return element;
  });
}

TEST(DatasetSourcesTest, ACompleteCacheIsRestoredWithoutItsInput) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  constexpr size_t kElements = 1000;
  const auto restored = [&](const Dataset& dataset, size_t given, int calls_at_most) {
    const std::vector<std::string> all = All(dataset);
    const auto iterator = Begin(dataset);
    Take(*iterator, given);
    const auto position = iterator->Save();
    ASSERT_TRUE(position.ok()) << position.status();
    const auto other = Begin(dataset);
    *calls = 0;
    ASSERT_EQ(other->Restore(*position), absl::OkStatus());
    // Where it has not gone on either.
    const auto again = other->Save();
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Take(*other, 10 * kElements),
              std::vector<std::string>(all.begin() + static_cast<ptrdiff_t>(given), all.end()));
    EXPECT_EQ(*calls, calls_at_most) << given;
    const auto third = Begin(dataset);
    ASSERT_EQ(third->Restore(*again), absl::OkStatus());
    EXPECT_EQ(Take(*third, 10 * kElements),
              std::vector<std::string>(all.begin() + static_cast<ptrdiff_t>(given), all.end()));
  };
  const Dataset cached = Counting(kElements, calls).Cache().Repeat(3);
  restored(cached, kElements + 10, 0);
  restored(cached, 2 * kElements, 0);
  restored(cached, 10, kElements - 10);
  // A number, a string and its bytes.
  constexpr int64_t kBytes = kElements * (8 + sizeof(std::string) + 10);
  for (const int64_t most : {kBytes - 1, kBytes}) {
    restored(Counting(kElements, calls).Cache({.position_bytes = most}).Repeat(3), kElements + 10,
             most < kBytes ? kElements : 0);
  }
  EXPECT_EQ(Counting(1, calls).Cache({.position_bytes = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

/// Such as the window of a Shuffle: its elements are numbers with something that only it holds.
TEST(DatasetSourcesTest, ACacheWhoseInputIsNotSavedReadsItAgain) {
  constexpr size_t kElements = 300, kGiven = 50;
  constexpr int64_t kEach = 10'000, kWindow = 100;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const auto cached = [&](const Tensor& held, bool ordered, int64_t position_bytes) {
    return Dataset::Range(0, kElements)
        .Map(
            [calls, held](Tensors element) -> absl::StatusOr<Tensors> {
              ++*calls;
              element.push_back(held);
              return element;
            },
            {.parallel = ordered ? 1 : 2, .ordered = ordered})
        .Shuffle({.window = kWindow, .seed = 5})
        .Map([](Tensors element) -> absl::StatusOr<Tensors> { return Tensors{element[0]}; })
        .Cache({.position_bytes = position_bytes})
        .Repeat(2);
  };
  const auto position_of = [&](const Dataset& dataset) {
    const auto iterator = Begin(dataset);
    Take(*iterator, kGiven);
    return iterator->Save();
  };
  const Tensor large = Tensor::Scalar(std::string(kEach, 'x'));
  const Tensor handle = Tensor::Scalar(ResourceHandle());
  const int64_t enough = int64_t{64} << 20, little = kEach * kWindow / 2;
  for (const auto& [held, position_bytes] :
       {std::pair{large, enough}, std::pair{large, little}, std::pair{handle, enough}}) {
    const Dataset dataset = cached(held, true, position_bytes);
    const std::vector<std::string> all = All(dataset);
    const auto position = position_of(dataset);
    ASSERT_TRUE(position.ok()) << position.status();
    const bool saved = held.type() == ElementType::kString && position_bytes == enough;
    if (saved) {
      EXPECT_GT(position->size(), static_cast<size_t>(little));
    } else {
      EXPECT_LT(position->size(), 1000u);
    }
    *calls = 0;
    const auto restored = Begin(dataset);
    ASSERT_EQ(restored->Restore(*position), absl::OkStatus());
    EXPECT_EQ(Take(*restored, 3 * kElements),
              std::vector<std::string>(all.begin() + kGiven, all.end()));
    EXPECT_EQ(*calls < static_cast<int>(kElements), saved) << *calls;
  }
  // Which would give another order.
  EXPECT_TRUE(position_of(cached(large, false, little)).ok());
  EXPECT_EQ(position_of(cached(handle, false, enough)).status().code(),
            absl::StatusCode::kUnimplemented);
}

/// Two calls of which the second ends first, in the first pass over a cache.
TEST(DatasetSourcesTest, ACacheOfAnyOrderIsRestoredExactlyOrNotSaved) {
  const TempFolder folder;
  constexpr int64_t kElements = 200;
  const Dataset any_order = Dataset::Range(0, kElements)
                                .Map(
                                    [](Tensors element) {
                                      // Others overtake it: no order is the same.
                                      if (element[0].unchecked_scalar<int64_t>() % 3 == 0) {
                                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                      }
                                      return element;
                                    },
                                    {.parallel = 4, .ordered = false});
  const Dataset cached = any_order.Cache();
  for (const size_t given : {size_t{1}, size_t{20}, size_t{77}}) {
    const auto iterator = Begin(cached, 4);
    std::vector<std::string> elements = Take(*iterator, given);
    const auto position = iterator->Save();
    ASSERT_TRUE(position.ok()) << position.status();
    const auto other = Begin(cached, 4);
    ASSERT_EQ(other->Restore(*position), absl::OkStatus());
    for (std::string& element : Take(*other, kElements)) elements.push_back(std::move(element));
    std::vector<std::string> expected = All(Dataset::Range(0, kElements));
    std::sort(expected.begin(), expected.end());
    std::sort(elements.begin(), elements.end());
    EXPECT_EQ(elements, expected);
  }
  for (const Dataset& dataset :
       {any_order.Cache({.position_bytes = 0}), any_order.Prefetch().CacheFile(folder.Path("c"))}) {
    const auto iterator = Begin(dataset.Repeat(2));
    Take(*iterator, 20);
    const absl::Status status = iterator->Save().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ordered = false"));
  }
  // The file that is complete has one order.
  const auto complete = Begin(any_order.CacheFile(folder.Path("c")).Repeat(2));
  Take(*complete, kElements + 20);
  const auto position = complete->Save();
  ASSERT_TRUE(position.ok()) << position.status();
  ASSERT_TRUE(TempFolder::files()->Remove(folder.Path("c")).ok());
  const auto gone = Begin(any_order.CacheFile(folder.Path("c")).Repeat(2));
  ASSERT_EQ(gone->Restore(*position), absl::OkStatus());
  absl::Status status;
  EXPECT_TRUE(Take(*gone, 1, &status).empty());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST(DatasetSourcesTest, AFileOfTheCacheIsReadFromThePosition) {
  const TempFolder folder;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset dataset = Counting(20, calls).CacheFile(folder.Path("cache"));
  const std::vector<std::string> all = All(dataset);
  const auto iterator = Begin(dataset);
  Take(*iterator, 15);
  const auto position = iterator->Save();
  ASSERT_TRUE(position.ok()) << position.status();
  // What is before the position is damaged, and not read.
  auto file = ReadWholeFile(TempFolder::files(), folder.Path("cache"));
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)[20] ^= 1;
  folder.Write("cache", *file);
  absl::Status status;
  All(dataset, 1, &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  const auto other = Begin(dataset);
  ASSERT_EQ(other->Restore(*position), absl::OkStatus());
  EXPECT_EQ(Take(*other, 1000), std::vector<std::string>(all.begin() + 15, all.end()));
  // The file has gone: the input is asked again.
  ASSERT_TRUE(TempFolder::files()->Remove(folder.Path("cache")).ok());
  *calls = 0;
  const auto third = Begin(dataset);
  ASSERT_EQ(third->Restore(*position), absl::OkStatus());
  EXPECT_EQ(Take(*third, 1000), std::vector<std::string>(all.begin() + 15, all.end()));
  EXPECT_EQ(*calls, 20);
}

TEST(DatasetSourcesTest, AFileOfTheCacheOutlivesAPowerCut) {
  SchemeDisk* const disk = SchemeDisk::Register("cached");
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset dataset = Counting(20, calls).CacheFile("cached://d/cache").Repeat(2);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    disk->Clear();
    ASSERT_TRUE(disk->CreateDirectories("cached://d").ok());
    ASSERT_TRUE(disk->SyncDirectory("cached://").ok());
    auto iterator = Begin(dataset);
    std::vector<std::string> expected = Take(*iterator, 25);
    const auto position = iterator->Save();
    ASSERT_TRUE(position.ok()) << position.status();
    iterator = nullptr;
    disk->Restart(seed);
    *calls = 0;
    const auto restored = Begin(dataset);
    ASSERT_EQ(restored->Restore(*position), absl::OkStatus());
    EXPECT_EQ(Take(*restored, 100),
              std::vector<std::string>(expected.begin() + 5, expected.begin() + 20));
    EXPECT_EQ(*calls, 0) << "seed " << seed;
  }
}

TEST(DatasetSourcesTest, WhatWasGivenIsNotGivenAgainBeforeAnError) {
  const TempFolder folder;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset cached = Counting(100, calls).CacheFile(folder.Path("cache"));
  const Dataset dataset = cached.Prefetch(16);
  constexpr size_t kTaken = 20;
  const auto iterator = Begin(dataset);
  Take(*iterator, kTaken);
  const auto position = iterator->Save();
  ASSERT_TRUE(position.ok()) << position.status();
  const std::vector<std::string> all = All(cached);
  auto file = ReadWholeFile(TempFolder::files(), folder.Path("cache"));
  ASSERT_TRUE(file.ok()) << file.status();
  // In a record that has been given.
  (*file)[file->size() * 13 / 100] ^= 1;
  folder.Write("cache", *file);
  for (int round = 0; round < 20; ++round) {  // The number asked for at once differs.
    const auto other = Begin(dataset);
    ASSERT_EQ(other->Restore(*position), absl::OkStatus());
    absl::Status status;
    const std::vector<std::string> rest = Take(*other, 1000, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    ASSERT_LT(rest.size(), all.size() - kTaken);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + kTaken));
  }
}

}  // namespace
}  // namespace troupe
