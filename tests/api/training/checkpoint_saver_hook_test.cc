#include "api/training/checkpoint_saver_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "api/troupe.h"
#include "tests/devices/storage/scheme_disk.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// Notes its calls; in one of them it fails, or asks for the end.
class NotingListener final : public CheckpointSaverListener {
 public:
  NotingListener(std::vector<std::string> event, std::vector<std::string>* calls)
      : event_(std::move(event)), calls_(calls) {}

  absl::Status Begin(const Scope&) override {
    calls_->push_back("begin");
    return absl::OkStatus();
  }
  absl::Status BeforeSave(Session&, int64_t step) override {
    return Note("before_save", step).status();
  }
  absl::StatusOr<bool> AfterSave(Session&, int64_t step) override {
    return Note("after_save", step);
  }
  absl::Status End(Session&, int64_t step) override { return Note("end", step).status(); }

 private:
  absl::StatusOr<bool> Note(const std::string& call, int64_t step) {
    calls_->push_back(call + "(" + std::to_string(step) + ")");
    if (event_.size() != 3 || event_[0] != call || event_[1] != std::to_string(step)) return false;
    if (event_[2] == "stop") return true;
    return absl::InternalError("as it was told");
  }

  const std::vector<std::string> event_;
  std::vector<std::string>* const calls_;
};

class HookTest : public ::testing::Test {
 protected:
  HookTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + std::to_string(getpid()) + "_saver_hook_" + info->name();
    std::filesystem::remove_all(folder_);
  }
  ~HookTest() override { std::filesystem::remove_all(folder_); }

  struct Model {
    Model() : step(GlobalStep(s)), train(step.AssignAdd(s, int64_t{1})) {}
    absl::StatusOr<std::unique_ptr<MonitoredSession>> Start(Hooks hooks) {
      if (init == nullptr) init = GlobalVariablesInitializer(s);
      return MonitoredSession::Create(
          s.graph(),
          [this]() -> absl::StatusOr<std::unique_ptr<Session>> {
            auto session = Session::Create(s.graph(), {.threads = 2});
            if (!session.ok()) return session;
            const absl::Status status = (*session)->RunTargets({init});
            if (!status.ok()) return status;
            return session;
          },
          std::move(hooks));
    }
    Scope s = Scope::NewRoot();
    ModelVariable step;
    Node *train, *init = nullptr;
  };

  std::vector<int> Left() const {
    std::set<int> steps;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() == ".index") steps.insert(std::stoi(name.substr(11)));
    }
    return {steps.begin(), steps.end()};
  }

  std::string folder_;
};

TEST_F(HookTest, CallsListenersAsTensorFlowDoes) {
  std::ifstream file(TROUPE_SOURCE_DIR "/tests/api/training/saver_hook_order.txt");
  int scenarios = 0;
  for (std::string line; std::getline(file, line); ++scenarios) {
    std::filesystem::remove_all(folder_);
    const std::vector<std::string> parts = absl::StrSplit(line, ": ");
    ASSERT_EQ(parts.size(), 8u) << line;
    const std::vector<std::string> event = absl::StrSplit(parts[4], ' ');
    std::vector<std::string> calls;
    std::string result = "OK";
    const auto say = [&](const absl::Status& status) {
      if (!status.ok()) result = absl::StatusCodeToString(status.code());
    };
    {
      Model model;
      auto saver = std::make_shared<Saver>(model.s, SaveableList(),
                                           SaverOptions{.max_to_keep = std::stoi(parts[3])});
      auto hook = std::make_shared<CheckpointSaverHook>(
          folder_,
          CheckpointSaverOptions{.interval = {.steps = std::stoi(parts[2])},
                                 .saver = saver,
                                 .listeners = {std::make_shared<NotingListener>(event, &calls)}});
      auto session = model.Start({hook});
      ASSERT_TRUE(session.ok()) << session.status();
      for (int i = 0; i < std::stoi(parts[1]) && !(*session)->should_stop(); ++i) {
        const absl::Status status = (*session)->Run({}, {}, {model.train}).status();
        say(status);
        if (!status.ok()) break;
        calls.push_back("ran");
      }
      say((*session)->Close());
    }
    EXPECT_EQ(absl::StrJoin(calls, " "), parts[5]) << line;
    EXPECT_EQ(absl::StrJoin(Left(), " "), parts[6]) << line;
    EXPECT_EQ(result, parts[7]) << line;
  }
  EXPECT_EQ(scenarios, 10);
}

TEST_F(HookTest, SavesByTheClock) {
  Model model;
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  auto hook = std::make_shared<CheckpointSaverHook>(
      folder_,
      CheckpointSaverOptions{.interval = {.time = absl::Seconds(10)}, .now = [&] { return now; }});
  auto session = model.Start({hook});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 9; ++i) {
    now += absl::Seconds(4);
    ASSERT_TRUE((*session)->Run({}, {}, {model.train}).ok());
  }
  ASSERT_TRUE((*session)->Close().ok());
  EXPECT_THAT(Left(), ElementsAre(0, 3, 6, 9));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/graph.pbtxt"));
  EXPECT_TRUE(ReadGraph(folder_ + "/graph.pbtxt").ok());
}

TEST_F(HookTest, NeedsAGlobalStepAndAnInterval) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, ops::Const(s, 1.0f), "w");
  CheckpointSaverHook hook(folder_);
  EXPECT_EQ(hook.Begin(s).code(), absl::StatusCode::kFailedPrecondition);
  CheckpointSaverHook both(folder_, {.interval = {.steps = 1, .time = absl::Seconds(1)}});
  EXPECT_EQ(both.Begin(s).code(), absl::StatusCode::kInvalidArgument);
  CheckpointSaverHook null(folder_, {.listeners = {nullptr}});
  EXPECT_EQ(null.Begin(s).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HookTest, SavesWhileTheTrainingGoesOn) {
  Model model;
  std::vector<std::string> calls;
  auto hook = std::make_shared<CheckpointSaverHook>(
      folder_, CheckpointSaverOptions{.interval = {.steps = 2},
                                      .listeners = {std::make_shared<NotingListener>(
                                          std::vector<std::string>(), &calls)},
                                      .asynchronous = true});
  auto session = model.Start({hook});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE((*session)->Run({}, {}, {model.train}).ok());
  ASSERT_TRUE((*session)->Close().ok());
  EXPECT_THAT(Left(), ElementsAre(0, 2, 4, 5));
  EXPECT_EQ(calls.back(), "end(5)");
  // Each save was told of, in order.
  std::vector<std::string> after;
  for (const std::string& call : calls) {
    if (call.starts_with("after")) after.push_back(call);
  }
  EXPECT_THAT(after,
              ElementsAre("after_save(0)", "after_save(2)", "after_save(4)", "after_save(5)"));
  for (const int step : Left()) {
    const std::string prefix = folder_ + "/model.ckpt-" + std::to_string(step);
    EXPECT_EQ(LoadVariable(prefix, "global_step")->unchecked_scalar<int64_t>(), step);
  }
}

TEST_F(HookTest, ListenersDoNothingForASaveThatIsSkipped) {
  SchemeDisk* const disk = SchemeDisk::Register("skips");
  Model model;
  std::vector<std::string> calls;
  auto hook = std::make_shared<CheckpointSaverHook>(
      "skips://run",
      CheckpointSaverOptions{
          .interval = {.steps = 2},
          .listeners = {std::make_shared<NotingListener>(std::vector<std::string>(), &calls)},
          .asynchronous = true,
          .when_busy = AsyncCheckpointerOptions::WhenBusy::kSkip});
  disk->Hold();
  auto session = model.Start({hook});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE((*session)->Run({}, {}, {model.train}).ok());
  disk->LetGo();
  ASSERT_TRUE((*session)->Close().ok());
  // The first save is told of in the end.
  EXPECT_THAT(calls, UnorderedElementsAre("begin", "before_save(0)", "after_save(0)",
                                          "before_save(5)", "after_save(5)", "end(5)"));
}

}  // namespace
}  // namespace troupe
