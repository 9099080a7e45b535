#include "api/training/summary_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_split.h"
#include "api/training/progress_hook.h"
#include "api/troupe.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "graph/protos/summary.pb.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::Time At(double seconds) { return absl::FromUnixSeconds(1000) + absl::Seconds(seconds); }

std::vector<Event> EventsIn(const std::string& folder) {
  std::vector<Event> events;
  const auto files = NewLocalFileSystem();
  const auto names = files->List(folder);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (name.find("tfevents") == std::string::npos) continue;
    const auto reader = EventFileReader::Open(files.get(), StrCat(folder, "/", name));
    Event event;
    while (reader.ok() && (*reader)->Next(&event).value_or(false)) events.push_back(event);
  }
  return events;
}

class SummaryHooks : public testing::Test {
 protected:
  SummaryHooks() {
    step_ = GlobalStep(s_);
    train_ = step_.AssignAdd(s_, int64_t{1});
    init_ = GlobalVariablesInitializer(s_);
    loss_ = ops::Div(s_, 1.0f, ops::Cast(s_, step_.value(), ElementType::kFloat));
  }
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::unique_ptr<MonitoredSession>> Start(Hooks hooks) {
    return MonitoredSession::Create(
        s_.graph(),
        [this]() -> absl::StatusOr<std::unique_ptr<Session>> {
          auto session = Session::Create(s_.graph(), {.threads = 1});
          if (session.ok()) {
            const absl::Status status = (*session)->RunTargets({init_});
            if (!status.ok()) return status;
          }
          return session;
        },
        std::move(hooks));
  }
  void Train(MonitoredSession& session, int steps) {
    for (int i = 0; i < steps; ++i) {
      const absl::Status status = session.Run({}, {}, {train_}).status();
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  std::vector<Event> Events() { return EventsIn(folder_); }

  const std::string folder_ = testing::TempDir() + "troupe_summary_hooks_test";
  const Scope s_ = Scope::NewRoot();
  ModelVariable step_;
  Node *train_ = nullptr, *init_ = nullptr;
  Output loss_;
};

/// The steps for which a hook does something, if each step takes a second.
std::vector<int64_t> StepsOf(const std::string& kind, HookInterval interval, int steps,
                             const std::string& folder) {
  std::filesystem::remove_all(folder);
  const Scope s = Scope::NewRoot();
  Node* train = GlobalStep(s).AssignAdd(s, int64_t{1});
  Node* init = GlobalVariablesInitializer(s);
  summary::Scalar(s, "x", 1.0f);
  double now = 0;
  std::vector<int64_t> found;
  std::shared_ptr<SessionRunHook> hook;
  if (kind == "summary") {
    hook = std::make_shared<SummarySaverHook>(SummarySaverHook::Options{
        .interval = interval, .directory = folder, .now = [&] { return At(now); }});
  } else {
    hook = std::make_shared<StepCounterHook>(
        interval, [&](int64_t step, double) { found.push_back(step); }, [&] { return At(now); });
  }
  {
    auto session = MonitoredSession::Create(
        s.graph(),
        [&]() -> absl::StatusOr<std::unique_ptr<Session>> {
          auto made = Session::Create(s.graph(), {.threads = 1});
          return made.ok() && !(*made)->RunTargets({init}).ok() ? nullptr : std::move(made);
        },
        {hook});
    EXPECT_TRUE(session.ok()) << session.status();
    for (int i = 0; i < steps; ++i, ++now) {
      EXPECT_TRUE((*session)->Run({}, {}, {train}).ok());
    }
    EXPECT_TRUE((*session)->Close().ok());
  }
  for (const Event& event : EventsIn(folder)) {
    if (event.has_session_log()) {
      EXPECT_EQ(event.session_log().status(), SessionLog::START);
    }
    if (!event.has_summary()) continue;
    EXPECT_EQ(event.summary().value(0).tag(), "x");
    EXPECT_EQ(event.summary().value(0).simple_value(), 1.0f);
    found.push_back(event.step());
  }
  return found;
}

TEST_F(SummaryHooks, AreDueWhenTensorFlowsAre) {
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/api/training/hook_steps.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar(": "));
    const int every = std::stoi(parts[2]), steps = std::stoi(parts[3]);
    std::vector<int64_t> wanted;
    for (size_t i = 4; i < parts.size(); ++i) {
      if (!parts[i].empty()) wanted.push_back(std::stoi(parts[i]));
    }
    const HookInterval interval = parts[1] == "steps" ? HookInterval{.steps = every}
                                                      : HookInterval{.time = absl::Seconds(every)};
    EXPECT_EQ(StepsOf(parts[0], interval, steps, folder_), wanted) << line;
  }
  EXPECT_EQ(lines, 12);
}

TEST_F(SummaryHooks, WithoutSummariesWritesThatItBegan) {
  auto session =
      Start({std::make_shared<SummarySaverHook>(SummarySaverHook::Options{.directory = folder_})});
  ASSERT_TRUE(session.ok()) << session.status();
  Train(**session, 2);
  ASSERT_TRUE((*session)->Close().ok());
  EXPECT_EQ(Events().size(), 2u);
}

TEST_F(SummaryHooks, RefusesWhatMakesNoSense) {
  auto writer = SummaryWriter::Create(folder_);
  for (const SummarySaverHook::Options& bad :
       {SummarySaverHook::Options{}, SummarySaverHook::Options{.interval = {}, .directory = "a"},
        SummarySaverHook::Options{.directory = "a", .writer = *writer}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Start({std::make_shared<SummarySaverHook>(bad)}).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      Start({std::make_shared<ProfilerHook>(ProfilerHook::Options{.interval = {}})}).status()));
}

TEST_F(SummaryHooks, ProfilesStepsButNotTheFirst) {
  auto session = Start({std::make_shared<ProfilerHook>(
      ProfilerHook::Options{.interval = {.steps = 2}, .directory = folder_})});
  ASSERT_TRUE(session.ok()) << session.status();
  Train(**session, 7);
  ASSERT_TRUE((*session)->Close().ok());
  std::set<int64_t> traced;
  for (const Event& event : Events()) {
    if (event.has_tagged_run_metadata()) {
      traced.insert(event.step());
      EXPECT_EQ(event.tagged_run_metadata().tag(), StrCat("step_", event.step()));
      RunMetadata metadata;
      ASSERT_TRUE(metadata.ParseFromString(event.tagged_run_metadata().run_metadata()));
      EXPECT_EQ(metadata.step_stats().dev_stats_size(), 1);
    }
  }
  ASSERT_FALSE(traced.empty());
  EXPECT_EQ(traced.count(1), 0u);
  for (const int64_t step : traced) {
    std::ifstream file(StrCat(folder_, "/timeline-", step, ".json"));
    const nlohmann::json trace = nlohmann::json::parse(file);
    std::set<std::string> names;
    for (const auto& event : trace["traceEvents"]) names.insert(event["name"]);
    EXPECT_EQ(names.count(train_->name()), 1u) << "at step " << step;
  }
}

// --- progress ------------------------------------------------------------------------------------

class Progress : public SummaryHooks {
 protected:
  ProgressHook::Options OptionsOf(bool terminal) {
    return {.terminal = terminal,
            .columns = 100,
            .write = [this](std::string_view text) { texts_.emplace_back(text); },
            .now = [this] { return At(now_); }};
  }
  double now_ = 0;
  std::vector<std::string> texts_;
};

TEST_F(Progress, LinesBecomeRare) {
  ProgressHook::Options options = OptionsOf(false);
  options.last_step = 10000;
  options.loss = loss_;
  auto session = Start({std::make_shared<ProgressHook>(options)});
  ASSERT_TRUE(session.ok()) << session.status();
  // A hundred steps a second for ten minutes, of which every 50th is made.
  for (int i = 0; i < 1200; ++i) {
    now_ += 0.5;
    Train(**session, 1);
  }
  EXPECT_LE(texts_.size(), 16u);
  EXPECT_GE(texts_.size(), 12u);
  ASSERT_TRUE((*session)->Close().ok());
  EXPECT_THAT(texts_[0], testing::MatchesRegex("step 2/10000, 0 %, 2 steps/s, loss (1|0.5), "
                                               "1h24m left\n"));
  EXPECT_THAT(texts_.back(), HasSubstr("step 1200/10000, 12 %, 2 steps/s"));
}

TEST_F(Progress, ABarOnATerminal) {
  ProgressHook::Options options = OptionsOf(true);
  options.last_step = 40;
  auto session = Start({std::make_shared<ProgressHook>(options)});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 40; ++i) {
    now_ += 0.06;
    Train(**session, 1);
  }
  ASSERT_TRUE((*session)->Close().ok());
  ASSERT_EQ(texts_.size(), 21u);  // Every second step, and the end.
  EXPECT_EQ(texts_[9], "\r[" + std::string(15, '=') + std::string(15, ' ') +
                           "] step 20/40, 50 %, 16.67 steps/s, 2s left\x1b[K");
  EXPECT_EQ(texts_[20],
            "\r[" + std::string(30, '=') + "] step 40/40, 100 %, 16.67 steps/s\x1b[K\n");
  for (const std::string& text : texts_) EXPECT_LT(text.size(), 106u);
}

TEST_F(Progress, NarrowTerminalsAndUnknownEnds) {
  ProgressHook::Options options = OptionsOf(true);
  options.columns = 12;
  auto session = Start({std::make_shared<ProgressHook>(options)});
  ASSERT_TRUE(session.ok()) << session.status();
  now_ += 1;
  Train(**session, 1);
  ASSERT_TRUE((*session)->Close().ok());
  EXPECT_THAT(texts_, ElementsAre("\rstep 1, 1 s\x1b[K", "\rstep 1, 1 s\x1b[K\n"));
}

TEST_F(Progress, BadLossIsAnError) {
  ProgressHook::Options options = OptionsOf(false);
  options.loss = step_.value();
  EXPECT_TRUE(absl::IsInvalidArgument(Start({std::make_shared<ProgressHook>(options)}).status()));
}

}  // namespace
}  // namespace troupe
