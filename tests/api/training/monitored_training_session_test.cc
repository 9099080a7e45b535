#include "api/training/monitored_training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "api/internal/training_state.h"
#include "api/troupe.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// A training of which every bit depends on random numbers, the initial values included.
struct Noise {
  Noise() {
    s.SetGraphSeed(7);
    step = GlobalStep(s);
    w = ModelVariable(s, Shape({3}), RandomNormalInitializer(0, 0.05), "w");
    const Output noise = ops::RandomStandardNormal(s, Tensor::Vector<int32_t>({3}),
                                                   ElementType::kFloat, {.seed = 1, .seed2 = 2});
    const Output order =
        ops::RandomShuffle(s, Tensor::Vector<float>({0.25f, 0.5f, 1.0f}), {.seed = 3, .seed2 = 4});
    loss = ops::Sum(s, noise, 0);
    summary::Scalar(s, "loss", loss);
    const Scope after =
        s.WithControlDependencies({Output(w.AssignAdd(s, ops::Mul(s, noise, order)))});
    train = step.AssignAdd(after, int64_t{1});
  }

  Scope s = Scope::NewRoot();
  ModelVariable step, w;
  Output loss;
  Node* train = nullptr;
};

std::vector<float> Values(Session& session, const Output& output) {
  const auto values = session.Run({output});
  if (!values.ok()) {
    ADD_FAILURE() << values.status();
    return {};
  }
  const auto span = (*values)[0].unchecked_values<float>();
  return {span.begin(), span.end()};
}

/// Fails a step with a code, once.
class FailingHook final : public SessionRunHook {
 public:
  FailingHook(int64_t step, absl::StatusCode code) : step_(step), code_(code) {}
  absl::Status AfterRun(SessionRunContext&, const SessionRunValues&) override {
    if (++steps_ == step_) return absl::Status(code_, "as it was told");
    return absl::OkStatus();
  }

 private:
  const int64_t step_;
  const absl::StatusCode code_;
  int64_t steps_ = 0;
};

class MonitoredTraining : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::set<std::string> Files() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  MonitoredTrainingOptions Options(int64_t last_step) {
    return {.session = {.threads = 1},
            .checkpoint_dir = folder_,
            .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(last_step))},
            .save_checkpoints = {.steps = 3}};
  }
  /// Trains until it is told to stop or fails; the values of `w`.
  std::vector<float> Train(MonitoredTrainingOptions options, absl::Status* status = nullptr) {
    Noise model;
    auto session = MonitoredTrainingSession(model.s.graph(), std::move(options));
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return {};
    absl::Status run;
    while (run.ok() && !(*session)->should_stop()) {
      run = (*session)->Run({}, {}, {model.train}).status();
    }
    std::vector<float> values;
    if (run.ok()) values = Values(*(*session)->session(), model.w.value());
    EXPECT_TRUE((*session)->Close().ok());
    if (status != nullptr)
      *status = run;
    else
      EXPECT_TRUE(run.ok()) << run;
    return values;
  }

  const std::string folder_ = testing::TempDir() + "troupe_monitored_training_test";
};

TEST_F(MonitoredTraining, GoesOnWithTheSameBits) {
  MonitoredTrainingOptions alone = Options(20);
  alone.checkpoint_dir.clear();
  const std::vector<float> wanted = Train(alone);
  ASSERT_EQ(wanted.size(), 3u);

  EXPECT_EQ(Train(Options(20)), wanted) << "saving changes nothing";
  std::filesystem::remove_all(folder_);
  // Ends after some steps that no checkpoint has, four times.
  for (const int64_t steps : {4, 8, 2, 5}) {
    MonitoredTrainingOptions broken = Options(20);
    broken.hooks.push_back(std::make_shared<FailingHook>(steps, absl::StatusCode::kInternal));
    absl::Status status;
    Train(broken, &status);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
  }
  EXPECT_EQ(Train(Options(20)), wanted);
}

TEST_F(MonitoredTraining, GoesOnWithTheSameBitsWhenItSavesMeanwhile) {
  MonitoredTrainingOptions alone = Options(20);
  alone.checkpoint_dir.clear();
  const std::vector<float> wanted = Train(alone);
  for (const int64_t steps : {4, 8, 2, 5}) {
    MonitoredTrainingOptions broken = Options(20);
    broken.asynchronous_checkpoints = true;
    broken.save_checkpoints = {.steps = 1};
    broken.session.operation_timeout = absl::Minutes(1);
    broken.hooks.push_back(std::make_shared<FailingHook>(steps, absl::StatusCode::kInternal));
    absl::Status status;
    Train(broken, &status);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    for (const std::string& file : Files()) {
      if (!absl::EndsWith(file, ".index")) continue;
      const std::string prefix = file.substr(0, file.size() - 6);
      EXPECT_EQ(Files().count(prefix + ".troupe-state"), 1u) << prefix;
    }
  }
  MonitoredTrainingOptions whole = Options(20);
  whole.asynchronous_checkpoints = true;
  EXPECT_EQ(Train(whole), wanted);
  EXPECT_EQ(Files().count("model.ckpt-20.index"), 1u);
}

TEST_F(MonitoredTraining, SavesMeanwhileByASaverThatCan) {
  Noise model;
  MonitoredTrainingOptions options = Options(3);
  options.asynchronous_checkpoints = true;
  options.scaffold = std::make_shared<Scaffold>();
  const auto refused = MonitoredTrainingSession(model.s.graph(), options);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  options.scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.asynchronous_saver = true});
  Train(options);
  EXPECT_EQ(Files().count("model.ckpt-3.index"), 1u);
}

TEST_F(MonitoredTraining, WithoutTheFileOfStatesBitsDiffer) {
  const std::vector<float> wanted = Train(Options(6));
  std::filesystem::remove_all(folder_);
  Train(Options(3));
  std::filesystem::remove(TrainingStatePath(folder_ + "/model.ckpt-3"));
  EXPECT_NE(Train(Options(6)), wanted) << "the test before could not fail";
}

TEST_F(MonitoredTraining, ADamagedFileOfStatesIsRefused) {
  Train(Options(3));
  const std::string path = TrainingStatePath(folder_ + "/model.ckpt-3");
  std::string bytes;
  {
    std::ifstream file(path);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_GT(bytes.size(), 64u);
  for (size_t i = 0; i <= bytes.size(); ++i) {
    std::string damaged = bytes.substr(0, i);  // Torn; the last one is longer.
    if (i == bytes.size()) damaged += 'x';
    std::ofstream(path) << damaged;
    EXPECT_TRUE(absl::IsDataLoss(ReadTrainingState(folder_ + "/model.ckpt-3").status())) << i;
    if (i == bytes.size()) break;
    damaged = bytes;
    damaged[i] ^= 0x10;
    std::ofstream(path) << damaged;
    EXPECT_TRUE(absl::IsDataLoss(ReadTrainingState(folder_ + "/model.ckpt-3").status())) << i;
  }
  Noise model;
  const auto session = MonitoredTrainingSession(model.s.graph(), Options(6));
  EXPECT_TRUE(absl::IsDataLoss(session.status())) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr(path));
}

TEST_F(MonitoredTraining, WritesCheckpointsAndSummaries) {
  MonitoredTrainingOptions options = Options(22);
  options.save_summaries = {.steps = 5};
  options.log_step_count_steps = 4;
  Train(options);
  const std::set<std::string> files = Files();
  EXPECT_THAT(files, Contains("checkpoint"));
  EXPECT_THAT(files, Contains("graph.pbtxt"));
  // The last five, each with its state.
  std::vector<int> kept;
  for (int step = 0; step <= 22; ++step) {
    const bool there = files.count(StrCat("model.ckpt-", step, ".index")) > 0;
    EXPECT_EQ(there, files.count(StrCat("model.ckpt-", step, ".troupe-state")) > 0) << step;
    if (there) kept.push_back(step);
  }
  EXPECT_THAT(kept, ElementsAre(12, 15, 18, 21, 22));
  EXPECT_EQ(files.count("model.ckpt-22.meta"), 1u);

  std::vector<std::string> kinds;
  std::vector<int64_t> losses;
  const auto disk = NewLocalFileSystem();
  for (const std::string& name : files) {
    if (name.find("tfevents") == std::string::npos) continue;
    const auto reader = EventFileReader::Open(disk.get(), folder_ + "/" + name);
    for (Event event; (*reader)->Next(&event).value_or(false);) {
      if (event.has_session_log()) {
        kinds.push_back(SessionLog::SessionStatus_Name(event.session_log().status()));
      } else if (event.what_case() == Event::kGraphDef) {
        kinds.push_back("graph");
      } else if (event.what_case() == Event::kMetaGraphDef) {
        kinds.push_back("meta graph");
      } else if (event.has_summary()) {
        kinds.push_back(event.summary().value(0).tag());
        if (kinds.back() == "loss") losses.push_back(event.step());
      }
    }
  }
  EXPECT_THAT(losses, ElementsAre(1, 6, 11, 16, 21));
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "global_step/sec"), 5);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "CHECKPOINT"), 9);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "START"), 1);
  ASSERT_GT(kinds.size(), 2u);
  EXPECT_EQ(kinds[0], "graph");
  EXPECT_EQ(kinds[1], "meta graph");
}

TEST_F(MonitoredTraining, WritesWhatItIsToldTo) {
  MonitoredTrainingOptions options = Options(3);
  options.save_checkpoints = options.save_summaries = {};
  options.log_step_count_steps = 0;
  options.summary_dir = folder_ + "/logs";
  Train(options);
  EXPECT_THAT(Files(), ElementsAre("logs"));
}

TEST_F(MonitoredTraining, ALossGoesOnFromTheLastCheckpoint) {
  MonitoredTrainingOptions alone = Options(12);
  alone.checkpoint_dir.clear();
  const std::vector<float> wanted = Train(alone);
  MonitoredTrainingOptions options = Options(12);
  options.hooks.push_back(std::make_shared<FailingHook>(8, absl::StatusCode::kAborted));
  EXPECT_EQ(Train(options), wanted);
}

TEST_F(MonitoredTraining, ASingularSessionDoesNot) {
  Train(Options(3));
  Noise model;
  auto session = SingularMonitoredSession(
      model.s.graph(), {.hooks = {std::make_shared<FailingHook>(2, absl::StatusCode::kAborted)},
                        .checkpoint_filename = folder_ + "/model.ckpt-3"});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*(*session)->session()->Run({model.step.value()}))[0].unchecked_scalar<int64_t>(), 3);
  EXPECT_TRUE((*session)->Run({}, {}, {model.train}).ok());
  EXPECT_TRUE(absl::IsAborted((*session)->Run({}, {}, {model.train}).status()));
  EXPECT_TRUE((*session)->should_stop());
}

TEST_F(MonitoredTraining, WorkersWaitForTheChief) {
  Noise model;
  auto runtime = (*Session::Create(model.s.graph(), {.threads = 2}))->runtime();
  absl::Status trained;
  std::thread worker([&] {
    Noise same;
    auto session = MonitoredTrainingSession(
        same.s.graph(),
        {.session = {.runtime = runtime},
         .is_chief = false,
         .checkpoint_dir = folder_,
         .chief_only_hooks = {std::make_shared<FailingHook>(1, absl::StatusCode::kInternal)},
         .max_wait = absl::Minutes(1)});
    trained = session.ok() ? (*session)->Run({}, {}, {same.train}).status() : session.status();
  });
  absl::SleepFor(absl::Milliseconds(20));
  auto chief = MonitoredTrainingSession(
      model.s.graph(), {.session = {.runtime = runtime}, .checkpoint_dir = folder_});
  ASSERT_TRUE(chief.ok()) << chief.status();
  worker.join();
  EXPECT_TRUE(trained.ok()) << trained;
  EXPECT_TRUE((*chief)->Close().ok());
  EXPECT_EQ(Files().count("model.ckpt-1.index"), 1u) << "the worker's step";
}

// --- scaffolds -----------------------------------------------------------------------------------

TEST(Scaffold, MakesWhatIsMissing) {
  Noise model;
  const ModelVariable local =
      ModelVariable::Local(model.s, ops::Const(model.s, Tensor::Scalar(1.0f)), "local");
  Scaffold scaffold;
  ASSERT_TRUE(scaffold.Finalize(model.s).ok());
  ASSERT_TRUE(scaffold.Finalize(model.s).ok());
  EXPECT_TRUE(scaffold.summary_op().valid());
  ASSERT_NE(scaffold.saver(), nullptr);
  EXPECT_THAT(model.s.graph()->Collection("init_op"), ElementsAre(scaffold.init_op()->name()));
  EXPECT_THAT(model.s.graph()->Collection("summary_op"), ElementsAre(scaffold.summary_op().name()));

  Scaffold second;  // Finds what the first one has made.
  ASSERT_TRUE(second.Finalize(model.s).ok());
  EXPECT_EQ(second.init_op(), scaffold.init_op());
  EXPECT_EQ(second.ready_op(), scaffold.ready_op());
  EXPECT_EQ(second.local_init_op(), scaffold.local_init_op());

  auto session = Session::Create(model.s.graph());
  const auto names = [&](const Output& ready) {
    const auto values = (*session)->Run({ready});
    EXPECT_TRUE(values.ok()) << values.status();
    const auto span = (*values)[0].unchecked_values<std::string>();
    return std::vector<std::string>(span.begin(), span.end());
  };
  EXPECT_THAT(names(scaffold.ready_op()), ElementsAre("global_step", "w", "local"));
  EXPECT_THAT(names(scaffold.ready_for_local_init_op()), ElementsAre("global_step", "w"));
  ASSERT_TRUE((*session)->RunTargets({scaffold.init_op()}).ok());
  EXPECT_THAT(names(scaffold.ready_op()), ElementsAre("local"));
  EXPECT_THAT(names(scaffold.ready_for_local_init_op()), ElementsAre());
  ASSERT_TRUE((*session)->RunTargets({scaffold.local_init_op()}).ok());
  EXPECT_THAT(names(scaffold.ready_op()), ElementsAre());
}

TEST(Scaffold, TakesWhatItIsGiven) {
  Noise model;
  Node* init = ops::NoOp(model.s);
  const Output ready = ops::Const(model.s, Tensor::Vector<std::string>({}));
  const auto other = std::make_shared<Scaffold>(
      ScaffoldOptions{.init_feeds = {{model.loss, Tensor::Scalar(1.0f)}},
                      .init_fn = [](const Scaffold&, Session&) { return absl::OkStatus(); }});
  Scaffold scaffold({.init_op = init, .ready_op = ready, .copy_from = other});
  ASSERT_TRUE(scaffold.Finalize(model.s).ok());
  EXPECT_EQ(scaffold.init_op(), init);
  EXPECT_EQ(scaffold.ready_op(), ready);
  EXPECT_EQ(scaffold.options().init_feeds.size(), 1u);
  EXPECT_NE(scaffold.options().init_fn, nullptr);
}

TEST(Scaffold, BadCollectionsAreErrors) {
  for (const char* key : {"init_op", "ready_op", "local_init_op", "summary_op"}) {
    Noise model;
    model.s.graph()->AddToCollection(key, "no_such_node");
    const absl::Status lost = Scaffold().Finalize(model.s);
    EXPECT_TRUE(absl::IsNotFound(lost)) << key << ": " << lost;
    EXPECT_THAT(std::string(lost.message()), HasSubstr(key));
    model.s.graph()->AddToCollection(key, "another");
    EXPECT_TRUE(absl::IsFailedPrecondition(Scaffold().Finalize(model.s))) << key;
  }
}

// --- session managers ----------------------------------------------------------------------------

class Manager : public MonitoredTraining {
 protected:
  Manager() { EXPECT_TRUE(scaffold_.Finalize(model_.s).ok()); }
  SessionManagerOptions All() const {
    return {.ready_op = scaffold_.ready_op(),
            .ready_for_local_init_op = scaffold_.ready_for_local_init_op(),
            .local_init_op = scaffold_.local_init_op(),
            .recovery_wait = absl::Milliseconds(20)};
  }
  RestoreOptions FromFolder() const {
    return {.saver = scaffold_.saver(), .checkpoint_dir = folder_};
  }
  std::shared_ptr<Graph> graph() const { return model_.s.graph(); }

  Noise model_;
  Scaffold scaffold_;
};

TEST_F(Manager, PreparesByInitializing) {
  const SessionManager manager(graph(), All());
  bool called = false;
  const auto session = manager.PrepareSession(
      {}, FromFolder(), {.init_op = scaffold_.init_op(), .init_fn = [&](Session&) {
                           called = true;
                           return absl::OkStatus();
                         }});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(called);

  const absl::Status failed =
      manager
          .PrepareSession(
              {}, {}, {.init_fn = [](Session&) { return absl::InternalError("as it was told"); }})
          .status();
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
}

TEST_F(Manager, SaysWhatIsNotReady) {
  const SessionManager manager(graph(), All());
  const absl::Status partly =
      manager.PrepareSession({}, {}, {.init_op = model_.step.initializer()}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(partly)) << partly;
  EXPECT_THAT(std::string(partly.message()),
              HasSubstr("the initialization did not make the model"));
  EXPECT_THAT(std::string(partly.message()), HasSubstr(": w"));
  const SessionManager bare(graph(), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(bare.PrepareSession({}, {}, {}).status()));
}

TEST_F(Manager, RecoversFromCheckpoints) {
  const SessionManager manager(graph(), All());
  auto nothing = manager.RecoverSession({}, FromFolder());
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_FALSE(nothing->ready);

  Train(Options(3));
  auto recovered = manager.RecoverSession({}, FromFolder());
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_TRUE(recovered->ready);
  EXPECT_EQ((*recovered->session->Run({model_.step.value()}))[0].unchecked_scalar<int64_t>(), 3);
  EXPECT_EQ(scaffold_.saver()->last_checkpoints().size(), 2u) << "and remembers them";
}

TEST_F(Manager, BadCheckpointsAreErrors) {
  const SessionManager manager(graph(), All());
  RestoreOptions both = FromFolder();
  both.checkpoint_filename = "a";
  EXPECT_TRUE(absl::IsInvalidArgument(manager.RecoverSession({}, both).status()));
  EXPECT_TRUE(absl::IsNotFound(
      manager
          .RecoverSession({}, {.saver = scaffold_.saver(), .checkpoint_filename = folder_ + "/no"})
          .status()));
  // A state file that points nowhere.
  Train(Options(3));
  for (const char* name : {"model.ckpt-3.index", "model.ckpt-3.data-00000-of-00001"}) {
    std::filesystem::remove(folder_ + "/" + name);
  }
  const absl::Status lost = manager.RecoverSession({}, FromFolder()).status();
  EXPECT_FALSE(lost.ok());
  EXPECT_THAT(std::string(lost.message()), HasSubstr("model.ckpt-3"));
}

TEST_F(Manager, WaitsHaveDeadlines) {
  const SessionManager manager(graph(), All());
  const absl::Status late = manager.WaitForSession({}, absl::Milliseconds(120)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("global_step, w"));
  RestoreOptions waiting = FromFolder();
  waiting.wait_for_checkpoint = true;
  waiting.max_wait = absl::Milliseconds(120);
  const absl::Status none = manager.RecoverSession({}, waiting).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr(folder_));
  const absl::Status nobody = manager
                                  .WaitForSession({.target = "troupe://127.0.0.1:1",
                                                   .heartbeat_timeout = absl::Milliseconds(200)},
                                                  absl::Milliseconds(300))
                                  .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(nobody)) << nobody;
}

}  // namespace
}  // namespace troupe
