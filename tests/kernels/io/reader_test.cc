// Readers in sessions.
#include "kernels/io/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/troupe.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/record_writer.h"
#include "graph/protos/reader_state.pb.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + "reader_" + info->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    queue_ = ops::FIFOQueueV2(s, {ElementType::kString}, {.shapes = {PartialShape({})}});
    name_ = ops::Placeholder(s, ElementType::kString);
    put_ = ops::QueueEnqueueV2(s, queue_, {name_});
    close_ = ops::QueueCloseV2(s, queue_);
  }
  ~ReaderTest() override {
    session_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, std::string_view bytes) {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  /// Records of which each is its number.
  void WriteRecords(const std::string& name, int count,
                    FileCompression compression = FileCompression::kNone) {
    const auto writer =
        *RecordWriter::Create(*FileSystems().Find(folder_), Path(name), {compression});
    for (int i = 0; i < count; ++i) ASSERT_TRUE(writer->Write(std::to_string(i)).ok());
    ASSERT_TRUE(writer->Close().ok());
  }

  /// The ops of a reader; to be called before the session is used.
  void Use(Output reader) {
    reader_ = reader;
    read_ = ops::ReaderReadV2(s, reader, queue_);
    n_ = ops::Placeholder(s, ElementType::kInt64);
    read_up_to_ = ops::ReaderReadUpToV2(s, reader, queue_, n_);
    records_ = ops::ReaderNumRecordsProducedV2(s, reader);
    files_ = ops::ReaderNumWorkUnitsCompletedV2(s, reader);
    save_ = ops::ReaderSerializeStateV2(s, reader);
    state_ = ops::Placeholder(s, ElementType::kString);
    restore_ = ops::ReaderRestoreStateV2(s, reader, state_);
    reset_ = ops::ReaderResetV2(s, reader);
  }

  Session& session() {
    if (session_ == nullptr) {
      EXPECT_TRUE(s.ok()) << s.status();
      session_ = *Session::Create(s.graph(), {.threads = 2});
    }
    return *session_;
  }
  void Put(const std::string& path) {
    const absl::Status status =
        session().Run({{name_, Tensor::Scalar(std::string(path))}}, {}, {put_}).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  void Close() { EXPECT_TRUE(session().RunTargets({close_}).ok()); }
  absl::StatusOr<std::string> Read(std::string* key = nullptr) {
    const auto got = session().Run({read_.key, read_.value});
    if (!got.ok()) return got.status();
    if (key != nullptr) *key = (*got)[0].unchecked_scalar<std::string>();
    return (*got)[1].unchecked_scalar<std::string>();
  }
  absl::StatusOr<std::vector<std::string>> ReadUpTo(int64_t n) {
    const auto got = session().Run({{n_, Tensor::Scalar(n)}}, {read_up_to_.values});
    if (!got.ok()) return got.status();
    const auto values = (*got)[0].unchecked_values<std::string>();
    return std::vector<std::string>(values.begin(), values.end());
  }
  int64_t Number(Output output) {
    const auto got = session().Run({output});
    EXPECT_TRUE(got.ok()) << got.status();
    return (*got)[0].unchecked_scalar<int64_t>();
  }
  std::string State() { return (*session().Run({save_}))[0].unchecked_scalar<std::string>(); }
  absl::Status Restore(const std::string& state) {
    return session().Run({{state_, Tensor::Scalar(std::string(state))}}, {}, {restore_}).status();
  }

  Scope s = Scope::NewRoot();
  Output queue_, name_, reader_, n_, records_, files_, save_, state_;
  Node *put_, *close_, *restore_ = nullptr, *reset_ = nullptr;
  ops::ReaderReadV2Outputs read_;
  ops::ReaderReadUpToV2Outputs read_up_to_;

 private:
  std::string folder_;
  std::unique_ptr<Session> session_;
};

TEST_F(ReaderTest, ReadsFileAfterFileAndCounts) {
  WriteRecords("a", 2, FileCompression::kGzip);
  WriteRecords("empty", 0, FileCompression::kGzip);
  WriteRecords("b", 1, FileCompression::kGzip);
  Use(ops::TFRecordReaderV2(s, {.compression_type = "GZIP"}));
  for (const char* name : {"a", "empty", "b"}) Put(Path(name));
  Close();
  std::string key;
  EXPECT_EQ(*Read(&key), "0");
  EXPECT_EQ(key, Path("a") + ":0");
  EXPECT_EQ(*Read(&key), "1");
  EXPECT_EQ(key, Path("a") + ":17");
  EXPECT_EQ(Number(files_), 0);
  EXPECT_EQ(*Read(&key), "0");
  EXPECT_EQ(key, Path("b") + ":0");
  EXPECT_EQ(Number(files_), 2);
  EXPECT_EQ(Number(records_), 3);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Number(files_), 3);
}

TEST_F(ReaderTest, ReadsManyButNeverOfTwoFiles) {
  WriteRecords("a", 10'000);
  WriteRecords("b", 3);
  Use(ops::TFRecordReaderV2(s));
  Put(Path("a"));
  Put(Path("b"));
  Close();
  std::vector<std::string> all;
  for (const size_t expected : {size_t{9000}, size_t{1000}}) {
    const auto got = ReadUpTo(9000);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->size(), expected);
    all.insert(all.end(), got->begin(), got->end());
  }
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], std::to_string(i));
  EXPECT_THAT(*ReadUpTo(9000), ElementsAre("0", "1", "2"));
  EXPECT_EQ(ReadUpTo(1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReadUpTo(0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReaderTest, AReadWaitsForANameWithoutAThread) {
  WriteRecords("a", 50);
  Use(ops::TFRecordReaderV2(s));
  std::atomic<int> done{0}, right{0};
  for (int i = 0; i < 40; ++i) {
    session().RunAsync(FeedMap{}, {read_.value}, {}, [&](absl::StatusOr<std::vector<Tensor>> got) {
      right += got.ok();
      ++done;
    });
  }
  EXPECT_EQ(done, 0);
  Put(Path("a"));
  while (done < 40) std::this_thread::yield();
  EXPECT_EQ(right, 40);
  EXPECT_EQ(Number(records_), 40);
}

TEST_F(ReaderTest, AReadIsGivenUpWithItsStepAndNoNameIsLost) {
  WriteRecords("a", 2);
  Use(ops::TFRecordReaderV2(s));
  RunOptions soon;
  soon.timeout = absl::Milliseconds(20);
  EXPECT_EQ(session().Run(FeedMap{}, {read_.value}, {}, soon).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Put(Path("a"));
  EXPECT_EQ(*Read(), "0");
  EXPECT_EQ(*Read(), "1");
  EXPECT_EQ(session().Run(FeedMap{}, {read_.value}, {}, soon).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Close();
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ReaderTest, AReadEndsWithItsSession) {
  Use(ops::TFRecordReaderV2(s));
  std::atomic<int> done{0};
  absl::Status status;
  session().RunAsync(FeedMap{}, {read_.value}, {}, [&](absl::StatusOr<std::vector<Tensor>> got) {
    status = got.status();
    ++done;
  });
  EXPECT_TRUE(session().Close().ok());
  while (done == 0) std::this_thread::yield();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(ReaderTest, StateBetweenFilesIsTensorFlows) {
  Use(ops::IdentityReaderV2(s));
  Put("first");
  Put("second");
  EXPECT_EQ(*Read(), "first");
  // Four fields, in this order, and no more.
  EXPECT_EQ(State(), std::string("\x08\x01\x10\x01\x18\x01\x22\x05") + "first");
  EXPECT_EQ(*Read(), "second");
  ASSERT_TRUE(Restore(std::string("\x08\x07\x10\x07\x18\x09\x22\x01") + "x").ok());
  EXPECT_EQ(Number(files_), 7);
  EXPECT_EQ(Number(records_), 9);
}

TEST_F(ReaderTest, StateIsTakenInTheMidstOfAFile) {
  WriteRecords("a", 20'000);
  Use(ops::TFRecordReaderV2(s));
  Put(Path("a"));
  ASSERT_EQ(ReadUpTo(12'345)->size(), 12'345u);
  const std::string state = State();
  EXPECT_EQ(*Read(), "12345");
  ASSERT_TRUE(Restore(state).ok());
  EXPECT_EQ(Number(records_), 12'345);
  EXPECT_EQ(*Read(), "12345");
  // After a reset it begins with the next file.
  ASSERT_TRUE(session().RunTargets({reset_}).ok());
  EXPECT_EQ(Number(records_), 0);
  Put(Path("a"));
  EXPECT_EQ(*Read(), "0");
  ASSERT_TRUE(Restore(state).ok());
  const auto rest = ReadUpTo(100'000);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->size(), 20'000u - 12'345u);
  EXPECT_EQ(Number(files_), 1);
}

TEST_F(ReaderTest, StatesThatMeanNothingAreRefused) {
  Use(ops::TextLineReaderV2(s));
  const auto refuse = [&](const std::function<void(ReaderState*)>& change, const char* message) {
    ReaderState state;
    change(&state);
    const absl::Status status = Restore(state.SerializeAsString());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  EXPECT_EQ(Restore("\x08").code(), absl::StatusCode::kInvalidArgument);
  refuse([](ReaderState* state) { state->set_num_records_produced(-1); }, "negative");
  refuse([](ReaderState* state) { state->set_work_finished(1); }, "finished");
  refuse([](ReaderState* state) { state->set_work_started(2); }, "finished");
  refuse(
      [](ReaderState* state) {
        state->set_work_started(1);
        state->set_kind("TFRecord");
      },
      "TFRecord");
  EXPECT_TRUE(Restore("").ok());
}

TEST_F(ReaderTest, AFileThatVanishedIsAnErrorAndLeftOut) {
  Write("b", "line\n");
  Use(ops::TextLineReaderV2(s));
  Put(Path("gone"));
  Put(Path("b"));
  const auto got = Read();
  EXPECT_EQ(got.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(got.status().message(), HasSubstr(Path("gone")));
  EXPECT_EQ(*Read(), "line");
}

TEST_F(ReaderTest, WhatIsBeforeDamageIsGivenOutAndThenTheError) {
  WriteRecords("a", 10);
  std::string bytes;
  {
    std::ifstream file(Path("a"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  bytes[5 * 17 + 12] = static_cast<char>(bytes[5 * 17 + 12] ^ 1);
  Write("a", bytes);
  WriteRecords("b", 1);
  Use(ops::TFRecordReaderV2(s));
  Put(Path("a"));
  Put(Path("b"));
  EXPECT_THAT(*ReadUpTo(100), ElementsAre("0", "1", "2", "3", "4"));
  for (int i = 0; i < 2; ++i) {
    const auto damaged = ReadUpTo(100);
    EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(damaged.status().message(), HasSubstr(Path("a") + ", record at byte 85"));
  }
  ASSERT_TRUE(session().RunTargets({reset_}).ok());
  EXPECT_EQ(*Read(), "0");
  EXPECT_EQ(Number(records_), 1);
}

TEST_F(ReaderTest, WholeFilesNamesAndFixedLengths) {
  Write("w", "whole\n");
  const auto whole = ops::ReaderReadV2(s, ops::WholeFileReaderV2(s), queue_);
  const auto names = ops::ReaderReadV2(s, ops::IdentityReaderV2(s), queue_);
  const auto fixed = ops::ReaderReadV2(
      s, ops::FixedLengthRecordReaderV2(s, 2, {.header_bytes = 1, .hop_bytes = 3}), queue_);
  for (int i = 0; i < 3; ++i) Put(Path("w"));
  EXPECT_EQ((*session().Run({whole.value}))[0].unchecked_scalar<std::string>(), "whole\n");
  EXPECT_EQ((*session().Run({names.value}))[0].unchecked_scalar<std::string>(), Path("w"));
  EXPECT_EQ((*session().Run({fixed.value}))[0].unchecked_scalar<std::string>(), "ho");
  EXPECT_EQ((*session().Run({fixed.value}))[0].unchecked_scalar<std::string>(), "e\n");
}

TEST_F(ReaderTest, TheFirstVersionsHaveReferences) {
  WriteRecords("a", 3);
  s.graph()->set_producer(25);  // Most of them were removed later.
  const Output queue = ops::FIFOQueue(s, {ElementType::kString});
  Node* const put = ops::QueueEnqueue(s, queue, {name_});
  const Output reader = ops::TFRecordReader(s);
  const auto read = ops::ReaderRead(s, reader, queue);
  const Output state = ops::ReaderSerializeState(s, reader);
  const Output given = ops::Placeholder(s, ElementType::kString);
  Node* const restore = ops::ReaderRestoreState(s, reader, given);
  const Output count = ops::ReaderNumRecordsProduced(s, reader);
  ASSERT_TRUE(session().Run({{name_, Tensor::Scalar(Path("a"))}}, {}, {put}).ok());
  ASSERT_TRUE(session().Run({read.value}).ok());
  const auto saved = session().Run({state});
  ASSERT_TRUE(saved.ok()) << saved.status();
  ASSERT_TRUE(session().Run({read.value}).ok());
  ASSERT_TRUE(session().Run({{given, (*saved)[0]}}, {}, {restore}).ok());
  EXPECT_EQ((*session().Run({read.value}))[0].unchecked_scalar<std::string>(), "1");
  EXPECT_EQ(Number(count), 2);
}

TEST_F(ReaderTest, WrongHandlesAndQueuesAreRefused) {
  Use(ops::TextLineReaderV2(s, {.shared_name = "shared"}));
  const Output numbers = ops::FIFOQueueV2(s, {ElementType::kInt64});
  const auto of_numbers = ops::ReaderReadV2(s, reader_, numbers);
  const auto of_queue = ops::ReaderReadV2(s, queue_, queue_);
  const auto from_reader = ops::ReaderReadV2(s, reader_, reader_);
  const Output other = ops::WholeFileReaderV2(s, {.shared_name = "shared"});
  const Output again = ops::TextLineReaderV2(s, {.skip_header_lines = 1, .shared_name = "shared"});
  const auto message = [&](Output output) {
    const auto got = session().Run({output});
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(got.status().message());
  };
  EXPECT_THAT(message(of_numbers.value), HasSubstr("one string"));
  EXPECT_THAT(message(of_queue.value), HasSubstr("not to a reader"));
  EXPECT_THAT(message(from_reader.value), HasSubstr("not to a queue"));
  EXPECT_THAT(message(ops::ReaderNumRecordsProducedV2(s, other)), HasSubstr("differs"));
  EXPECT_THAT(message(ops::ReaderNumRecordsProducedV2(s, again)), HasSubstr("attributes"));
}

TEST_F(ReaderTest, ManyThreadsGetEveryRecordOnce) {
  constexpr int kFiles = 6, kRecords = 3000, kThreads = 4;
  for (int i = 0; i < kFiles; ++i) WriteRecords(std::to_string(i), kRecords);
  Use(ops::TFRecordReaderV2(s));
  for (int i = 0; i < kFiles; ++i) Put(Path(std::to_string(i)));
  Close();
  std::atomic<int64_t> records{0}, sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (true) {
        const auto got = ReadUpTo(t + 1);
        if (!got.ok()) return;
        records += static_cast<int64_t>(got->size());
        for (const std::string& value : *got) sum += std::stoi(value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(records, kFiles * kRecords);
  EXPECT_EQ(sum, int64_t{kFiles} * kRecords * (kRecords - 1) / 2);
  EXPECT_EQ(Number(records_), kFiles * kRecords);
}

// --- whole files ---------------------------------------------------------------------------------

TEST_F(ReaderTest, FilesAreWrittenReadAndFound) {
  const std::string bytes("any\0bytes", 9);
  Node* const write = ops::WriteFile(s, Path("new/folder/f1"), Tensor::Scalar(std::string(bytes)));
  const Output read = ops::ReadFile(s, Path("new/folder/f1"));
  const Output gone = ops::ReadFile(s, Path("new/folder/gone"));
  const Output found = ops::MatchingFiles(
      s, Tensor::Vector<std::string>({Path("new/*/f?"), Path("none/*"), Path("new")}));
  EXPECT_EQ(found.node->output_shape(0), PartialShape({-1}));
  EXPECT_THAT((*session().Run({found}))[0].unchecked_values<std::string>(), IsEmpty());
  ASSERT_TRUE(session().RunTargets({write}).ok());
  EXPECT_EQ((*session().Run({read}))[0].unchecked_scalar<std::string>(), bytes);
  EXPECT_THAT((*session().Run({found}))[0].unchecked_values<std::string>(),
              ElementsAre(Path("new"), Path("new/folder/f1")));
  const auto error = session().Run({gone});
  EXPECT_EQ(error.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error.status().message(), HasSubstr("new/folder/gone"));
}

}  // namespace
}  // namespace troupe
