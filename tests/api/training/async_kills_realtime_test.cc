// A process that saves asynchronously all the time is killed at random moments: what it said it had
// saved is there, and the last checkpoint is of one step. TROUPE_KILLS says how many times.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include "absl/strings/numbers.h"
#include "api/program/child_process.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

constexpr char kFolderVariable[] = "TROUPE_KILLS_FOLDER";
constexpr int kVariables = 6;

/// Variables that all have the number of the step, in a saver that saves asynchronously.
struct Program {
  Program() {
    for (int i = 0; i < kVariables; ++i) {
      const ModelVariable variable(s, Shape({40'000}), ZerosInitializer(), "v" + std::to_string(i));
      variables.push_back(variable);
      adds.push_back(variable.AssignAdd(s, ops::Fill(s, Tensor::Vector<int32_t>({40'000}), 1.0f)));
    }
    saver = std::make_shared<Saver>(
        s, variables, SaverOptions{.sharded = true, .max_to_keep = 3, .asynchronous = true});
    init = GlobalVariablesInitializer(s);
    session = *Session::Create(s.graph(), {.threads = 1});
  }

  /// The step that the variables have.
  absl::StatusOr<int> Step() {
    std::vector<Output> reads;
    for (const ModelVariable& variable : variables) reads.push_back(variable.value());
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session->Run(reads));
    const float step = values[0].unchecked_values<float>()[0];
    for (const Tensor& value : values) {
      for (const float element : value.unchecked_values<float>()) {
        if (element != step) return absl::InternalError("the values are of two steps");
      }
    }
    return static_cast<int>(step);
  }

  Scope s = Scope::NewRoot();
  std::vector<ModelVariable> variables;
  std::vector<Node*> adds;
  std::shared_ptr<Saver> saver;
  Node* init = nullptr;
  std::unique_ptr<Session> session;
};

/// What the child does: it goes on from the last checkpoint until it is killed.
absl::Status TrainForEver(const std::string& folder) {
  Program program;
  int step = 0;
  const absl::StatusOr<std::string> latest = LatestCheckpoint(folder);
  if (latest.ok()) {
    TROUPE_RETURN_IF_ERROR(program.saver->Restore(*program.session, *latest));
    TROUPE_ASSIGN_OR_RETURN(const CheckpointHistory state, GetCheckpointState(folder));
    TROUPE_RETURN_IF_ERROR(program.saver->recover_last_checkpoints(state.all));
    TROUPE_ASSIGN_OR_RETURN(step, program.Step());
  } else if (absl::IsNotFound(latest.status())) {
    TROUPE_RETURN_IF_ERROR(program.session->RunTargets({program.init}));
  } else {
    return latest.status();
  }
  std::cout << "begins " << step << std::endl;
  AsyncCheckpointer checkpointer(program.saver, {.done = [](const auto& saved) {
                                   if (saved.ok()) {
                                     std::cout << saved->substr(saved->rfind('-') + 1) << std::endl;
                                   }
                                 }});
  while (true) {
    TROUPE_RETURN_IF_ERROR(program.session->RunTargets(program.adds));
    TROUPE_RETURN_IF_ERROR(checkpointer.Save(*program.session, folder + "/model", ++step).status());
  }
}

// Only in the process that is to be killed.
TEST(AsyncKills, DISABLED_Child) {
  const char* const folder = std::getenv(kFolderVariable);
  ASSERT_NE(folder, nullptr);
  const absl::Status status = TrainForEver(folder);
  std::cout << status << std::endl;
  FAIL() << status;
}

TEST(AsyncKills, LeaveTheLastCheckpoint) {
  const int kills = HowMany("TROUPE_KILLS", 30, /*one_in=*/1);
  const std::string folder = ::testing::TempDir() + "troupe_kills_" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  std::mt19937 random(kills);
  Program program;
  int last = 0, between = 0;
  for (int kill = 0; kill < kills; ++kill) {
    auto child = ChildProcess::Start(
        {.arguments = {ThisProgram(), "--gtest_filter=AsyncKills.DISABLED_Child",
                       "--gtest_also_run_disabled_tests", "--gtest_brief=1"},
         .environment = {{kFolderVariable, folder}},
         .output = true});
    ASSERT_TRUE(child.ok()) << child.status();
    int begun = -1;
    while (const auto line = child->Line(absl::Seconds(60))) {
      ASSERT_EQ(line->find("INTERNAL"), std::string::npos) << *line;
      if (line->starts_with("begins ") && absl::SimpleAtoi(line->substr(7), &begun)) break;
    }
    ASSERT_GE(begun, last) << "what was saved is there for the next process";
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200'000));
    child->End(SIGKILL);
    int said = begun;
    while (const auto line = child->Line(absl::Seconds(10))) {
      int step = 0;
      if (absl::SimpleAtoi(*line, &step)) said = step;
    }
    if (said == 0) continue;  // Killed before the first one.
    const absl::StatusOr<std::string> latest = LatestCheckpoint(folder);
    ASSERT_TRUE(latest.ok()) << latest.status();
    const absl::Status restored = program.saver->Restore(*program.session, *latest);
    ASSERT_TRUE(restored.ok()) << restored;
    const absl::StatusOr<int> step = program.Step();
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(*latest, folder + "/model-" + std::to_string(*step));
    ASSERT_GE(*step, said);
    between += *step > said ? 1 : 0;
    last = *step;
  }
  EXPECT_GT(last, kills / 2);
  std::cout << kills << " kills, " << last << " steps, " << between
            << " checkpoints that were complete and not yet told of\n";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe
