// A training whose process is killed again and again ends with the same bits as one that never was,
// and its curve has no gap.
// TROUPE_KILLS: how often (12).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "api/program/child_process.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "graph/protos/summary.pb.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

constexpr char kFolder[] = "TROUPE_KILLED_TRAINING_FOLDER";
constexpr int kSteps = 400;

/// Weights of a small network, of which inputs and initial values are random. Factors come from a
/// shuffling queue, chosen from as many whenever one is taken.
absl::Status Train(const std::string& folder) {
  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(11);
  const ModelVariable step = GlobalStep(s);
  const ModelVariable w(s, Shape({8, 4}), RandomNormalInitializer(0, 0.05), "w");
  const auto [seed, seed2] = s.graph()->OpSeeds(nullptr);
  const Output x = ops::RandomUniform(s, Tensor::Vector<int32_t>({16, 8}), ElementType::kFloat,
                                      {.seed = seed, .seed2 = seed2});
  const Output y = ops::Tanh(s, ops::MatMul(s, ops::RandomShuffle(s, x, {.seed = 5}), w.value()));
  const Output queue = ops::RandomShuffleQueueV2(
      s, {ElementType::kFloat},
      {.shapes = {PartialShape({})}, .capacity = 20, .min_after_dequeue = 19, .seed = 7});
  const Output drawn = ops::RandomUniform(s, Tensor::Vector<int32_t>({1}), ElementType::kFloat,
                                          {.seed = 1, .seed2 = 2});
  const QueueRunner filler(s, queue, {ops::QueueEnqueueV2(s, queue, {ops::Sum(s, drawn, 0)})});
  const Output factor = ops::QueueDequeueV2(s, queue, {ElementType::kFloat})[0];
  const Output loss = ops::Mul(s, ops::Mean(s, ops::Square(s, y), {0, 1}), factor);
  Node* const train = GradientDescentOptimizer(0.1).Minimize(s, loss, step);
  summary::Scalar(s, "loss", loss);
  TROUPE_RETURN_IF_ERROR(s.status());
  TROUPE_ASSIGN_OR_RETURN(
      const auto session,
      MonitoredTrainingSession(
          s.graph(), {.session = {.threads = 1},
                      .checkpoint_dir = folder,
                      .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(kSteps))},
                      .save_checkpoints = {.steps = 7},
                      .save_summaries = {.steps = 1}}));
  while (!session->should_stop()) {
    TROUPE_RETURN_IF_ERROR(session->Run({}, {}, {train}).status());
    std::puts("a step");
    std::fflush(stdout);
  }
  return session->Close();
}

TEST(KilledTraining, Child) {
  const char* const folder = std::getenv(kFolder);
  if (folder == nullptr) GTEST_SKIP() << "the other test runs this one";
  const absl::Status status = Train(folder);
  ASSERT_TRUE(status.ok()) << status;
}

absl::StatusOr<ChildProcess> Start(const std::string& folder) {
  return ChildProcess::Start(
      {.arguments = {"/proc/self/exe", "--gtest_filter=KilledTraining.Child"},
       .environment = {{kFolder, folder}},
       .output = true,
       .errors = true});
}

/// The summaries of "loss" in all event files of `folder`, by step. A step that was repeated after
/// a kill must have given the same number.
std::map<int64_t, float> Curve(const std::string& folder) {
  const auto files = NewLocalFileSystem();
  std::map<int64_t, float> curve;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    const auto reader = EventFileReader::Open(files.get(), entry.path());
    EXPECT_TRUE(reader.ok()) << reader.status();
    Event event;
    // The last record of a process that was killed may be torn.
    while (reader.ok() && (*reader)->Next(&event).value_or(false)) {
      for (const Summary::Value& value : event.summary().value()) {
        if (value.tag() != "loss") continue;
        const auto [known, is_new] = curve.emplace(event.step(), value.simple_value());
        EXPECT_TRUE(is_new || known->second == value.simple_value()) << event.step();
      }
    }
  }
  return curve;
}

TEST(KilledTraining, EndsWithTheSameBits) {
  const std::string base = testing::TempDir() + "troupe_killed_training_test";
  std::filesystem::remove_all(base);
  const std::string whole = base + "/whole", killed = base + "/killed";
  auto child = Start(whole);
  ASSERT_TRUE(child.ok()) << child.status();
  std::string output = child->Rest();
  ASSERT_TRUE(child->Wait()->ok()) << output;

  const int kills = HowMany("TROUPE_KILLS", 12, /*one_in=*/1);
  std::mt19937 random(1);
  int done = 0;
  for (bool ended = false; !ended;) {
    child = Start(killed);
    ASSERT_TRUE(child.ok()) << child.status();
    // Once it has been killed often enough, it may go on to the end.
    const int steps = done < kills ? std::uniform_int_distribution<>(0, kSteps / 10)(random) : -1;
    for (int seen = 0; seen != steps;) {
      const auto line = child->Line();
      if (!line.has_value()) break;
      if (*line == "a step") ++seen;
    }
    // In the midst of what comes next.
    absl::SleepFor(absl::Microseconds(std::uniform_int_distribution<>(0, 3000)(random)));
    const auto status = child->Wait(steps < 0 ? absl::InfiniteDuration() : absl::ZeroDuration());
    ended = status.has_value();
    if (ended) {
      ASSERT_TRUE(status->ok()) << child->Rest();
    } else {
      child->End(SIGKILL);
      ++done;
    }
  }
  EXPECT_GE(done, std::min(kills, 5));
  for (const char* name : {"w", "global_step"}) {
    const std::string step = StrCat("/model.ckpt-", kSteps);
    const auto expected = LoadVariable(whole + step, name), got = LoadVariable(killed + step, name);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->bytes(), expected->bytes());
    EXPECT_EQ(std::memcmp(got->raw_data(), expected->raw_data(), got->bytes()), 0)
        << name << " after " << done << " kills";
  }
  const std::map<int64_t, float> curve = Curve(whole);
  EXPECT_EQ(curve.size(), kSteps);
  EXPECT_EQ(Curve(killed), curve);
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace troupe
