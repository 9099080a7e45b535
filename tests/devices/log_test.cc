#include "devices/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "devices/exceptions.h"

namespace troupe {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

/// The log is the process's: each test leaves it as it was, and uses topics of its own.
class LogTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kInfo); }
  void TearDown() override {
    SetLogSink(nullptr);
    SetLogLevel(LogLevel::kWarning);
  }
};

TEST_F(LogTest, LevelsHaveNames) {
  EXPECT_EQ(*ParseLogLevel("trace"), LogLevel::kTrace);
  EXPECT_EQ(*ParseLogLevel("off"), LogLevel::kOff);
  EXPECT_THAT(std::string(ParseLogLevel("loud").status().message()),
              HasSubstr("\"loud\" is no level of a log; expected trace, debug"));
  EXPECT_FALSE(ParseLogLevel("").ok());
}

TEST_F(LogTest, ALineHasTimeLevelTaskAndText) {
  CaptureStderr();
  WriteLog(LogLevel::kWarning, "/job:ps/replica:0/task:0", {"line"}, "lost ", 2, " of them");
  WriteLog(LogLevel::kInfo, "", {"line"}, "of the process");
  WriteLog(LogLevel::kDebug, "", {"line"}, "below the level");
  const std::string date = "[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+\\.[0-9]+";
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex(date + " W /job:ps/task:0 lost 2 of them\n" + date +
                                                " I - of the process\n"));
}

TEST_F(LogTest, NothingIsMadeOfWhatIsOff) {
  SetLogLevel(LogLevel::kOff);
  EXPECT_FALSE(Logs(LogLevel::kError));
  EXPECT_FALSE(Logs(LogLevel::kOff));
  CaptureStderr();
  WriteLog(LogLevel::kError, "", {"off"}, "unheard");
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST_F(LogTest, ControlCharactersAreEscaped) {
  CaptureStderr();
  WriteLog(LogLevel::kWarning, "", {"escape"}, "a\nb\x1b[31m\x7f", "\xc2\x9b", "\xc3\xa9");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("a\\nb\\x1b[31m\\x7f\\xc2\x9b\xc3\xa9\n"));
}

TEST_F(LogTest, ALongTextIsCut) {
  CaptureStderr();
  WriteLog(LogLevel::kWarning, "", {"long"}, std::string(100000, 'x'));
  EXPECT_LT(GetCapturedStderr().size(), 4096u);
}

TEST_F(LogTest, WhatRepeatsItselfIsHeldBack) {
  std::vector<LogRecord> records;
  SetLogSink([&](const LogRecord& record) { records.push_back(record); });
  for (int i = 0; i < 1000; ++i) WriteLog(LogLevel::kWarning, "", {"storm"}, "gust ", i);
  EXPECT_THAT(records, SizeIs(10));
}

TEST_F(LogTest, ASinkTakesTheRecordsInPlaceOfStandardError) {
  CaptureStderr();
  std::vector<LogRecord> records;
  SetLogSink([&](const LogRecord& record) {
    records.push_back(record);
    WriteLog(LogLevel::kError, "", {"sink"}, "from within");
    throw std::runtime_error("the sink's");
  });
  WriteLog(LogLevel::kError, "client:1f", {"sink"}, "to the\tsink");
  SetLogSink(nullptr);
  EXPECT_EQ(GetCapturedStderr(), "");
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].level, LogLevel::kError);
  EXPECT_EQ(records[0].task, "client:1f");
  EXPECT_EQ(records[0].text, "to the\\x09sink");
  EXPECT_LT(absl::AbsDuration(absl::Now() - records[0].time), absl::Minutes(1));
}

TEST_F(LogTest, TheLastLinesAreKept) {
  SetLogSink([](const LogRecord&) {});
  for (int i = 0; i < 1500; ++i) {
    const std::string subject = StrCat(i % 160);
    WriteLog(i % 2 == 0 ? LogLevel::kInfo : LogLevel::kError, "/job:w/replica:0/task:3",
             {"kept", subject}, "line ", i);
  }
  EXPECT_THAT(RecentLog("", LogLevel::kTrace, 5000), SizeIs(1000));
  EXPECT_THAT(RecentLog("/job:w/task:3", LogLevel::kTrace, 2),
              ElementsAre(HasSubstr("I /job:w/task:3 line 1498"), HasSubstr("line 1499")));
  EXPECT_THAT(RecentLog("/job:w/replica:0/task:3", LogLevel::kError, 2),
              ElementsAre(HasSubstr("line 1497"), HasSubstr("E /job:w/task:3 line 1499")));
  EXPECT_THAT(RecentLog("/job:w/task:4", LogLevel::kTrace, 10), SizeIs(0));
}

TEST_F(LogTest, AFullPipeHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  ASSERT_GE(dup2(ends[1], STDERR_FILENO), 0);
  const auto write_some = [](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string subject = StrCat(i);
      WriteLog(LogLevel::kWarning, "", {"full", subject}, std::string(3000, 'x'));
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  write_some(60);  // Nobody reads, and a pipe holds 64 KiB.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  std::string text(1 << 20, '\0');
  text.resize(read(ends[0], text.data(), text.size()));
  WriteLog(LogLevel::kWarning, "", {"full"}, "room again");
  std::string rest(1 << 20, '\0');
  rest.resize(read(ends[0], rest.data(), rest.size()));
  dup2(before, STDERR_FILENO);
  for (int end : {before, ends[0], ends[1]}) close(end);
  EXPECT_GT(text.size(), 30000u);
  EXPECT_THAT(rest, MatchesRegex("\\.\\.\\. [0-9]+ lines of the log could not be written\n"
                                 ".* W - room again\n"));
}

TEST_F(LogTest, ThreadsLogAtOnce) {
  std::atomic<int> count{0};
  SetLogSink([&](const LogRecord&) { ++count; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) {
        const std::string subject = StrCat(t);
        WriteLog(LogLevel::kWarning, "", {"threads", subject}, i);
        LogHeldBack();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40);
}

TEST_F(LogTest, WhatIsThrownAndSwallowedIsAnError) {
  std::vector<LogRecord> records;
  SetLogSink([&](const LogRecord& record) { records.push_back(record); });
  KeepGoing([] { throw std::runtime_error("on the way"); });
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].level, LogLevel::kError);
  EXPECT_THAT(records[0].text, HasSubstr("an exception was thrown: on the way"));
}

}  // namespace
}  // namespace troupe
