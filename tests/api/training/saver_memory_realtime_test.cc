// Saving and restoring 20 variables of 16 MiB: the resident memory of the process does not grow by
// the size of the checkpoint.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "api/troupe.h"
#include "tests/resident_memory.h"

namespace troupe {
namespace {

constexpr int64_t kMiB = 1 << 20;

/// A line of /proc/self/status in bytes.
int64_t Status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

/// By how much the resident memory has grown at most while `work` ran; -1: it cannot be measured.
template <typename F>
int64_t Growth(F&& work) {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  if (!reset) return -1;
  const int64_t before = Status("VmRSS");
  work();
  return Status("VmHWM") - before;
}

TEST(SaverMemory, DoesNotGrowByTheCheckpoint) {
  const std::string folder =
      ::testing::TempDir() + std::to_string(getpid()) + "_troupe_saver_memory";
  std::filesystem::remove_all(folder);
  Scope s = Scope::NewRoot();
  std::vector<ModelVariable> variables;
  for (int i = 0; i < 20; ++i) {
    variables.emplace_back(s, Shape({4, 1024, 1024}), OnesInitializer(), "v" + std::to_string(i));
  }
  Saver saver(s);
  Node* const init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = *Session::Create(s.graph(), {.threads = 2});
  ASSERT_TRUE(session->RunTargets({init}).ok());
  absl::StatusOr<std::string> path;
  const int64_t saving = Growth([&] { path = saver.Save(*session, folder + "/model", 1); });
  ASSERT_TRUE(path.ok()) << path.status();
  absl::Status status;
  const int64_t restoring = Growth([&] { status = saver.Restore(*session, *path); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ((*session->Run({variables[19].value()}))[0].unchecked_values<float>()[99], 1);
  std::filesystem::remove_all(folder);
  if (saving < 0) GTEST_SKIP() << "the peak of the resident memory cannot be reset";
  std::cout << "320 MiB saved with " << saving / kMiB << " MiB more, restored with "
            << restoring / kMiB << "\n";
  EXPECT_LT(saving, 16 * kMiB * kResidentPerByte);
  EXPECT_LT(restoring, 96 * kMiB * kResidentPerByte);  // 64 at a time.
}

}  // namespace
}  // namespace troupe
