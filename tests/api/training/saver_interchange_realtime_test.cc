// TensorFlow goes on from what a Saver has saved: checkpoint, state file and MetaGraph. Skipped
// where Python has no tensorflow: the Python that the environment variable TROUPE_PEERS_PYTHON
// names, or python3.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "api/troupe.h"
#include "tests/api/program/run_python.h"

namespace troupe {
namespace {

TEST(SaverInterchange, TensorFlowGoesOn) {
  if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
  const std::string folder =
      ::testing::TempDir() + std::to_string(getpid()) + "_troupe_saver_interchange";
  for (const bool sharded : {false, true}) {
    std::filesystem::remove_all(folder);
    Scope s = Scope::NewRoot();
    const ModelVariable w(s.WithDevice("/device:CPU:0"),
                          ops::Const(s, Tensor::Vector<float>({1, 2, 3})), "w");
    const ModelVariable words(s.WithDevice("/device:CPU:1"),
                              ops::Const(s, Tensor::Vector<std::string>({"a", "\xff"})), "words");
    const ModelVariable half_one(s, ops::Cast(s, ops::Const(s, 1.5f), ElementType::kBfloat16),
                                 "layer/half");
    const ModelVariable step = GlobalStep(s);
    const auto table = PartitionedVariable(s, Shape({5, 2}), 2, OnesInitializer(), "table");
    Node* const set = table[1].Assign(s, ops::Fill(s, Tensor::Vector<int32_t>({2, 2}), 7.0f));
    Node* const count = step.AssignAdd(s, int64_t{3});
    Saver saver(s, {}, {.sharded = sharded, .max_to_keep = 2});
    saver.AddToCollection(s.graph().get());
    Node* const init = GlobalVariablesInitializer(s);
    ASSERT_TRUE(s.ok()) << s.status();
    const auto session = *Session::Create(s.graph(), {.threads = 2, .num_cpu_devices = 2});
    ASSERT_TRUE(session->RunTargets({init}).ok());
    ASSERT_TRUE(session->RunTargets({set, count}).ok());
    for (int i = 1; i <= 3; ++i) {
      const auto saved = saver.Save(*session, folder + "/model", i);
      ASSERT_TRUE(saved.ok()) << saved.status();
    }
    // It changes w, and saves step 4.
    const std::string output = RunPython({"tests/api/training/go_on_with_tensorflow.py", folder});
    EXPECT_TRUE(output.ends_with("good\n")) << output;
    const auto latest = LatestCheckpoint(folder);
    ASSERT_TRUE(latest.ok()) << latest.status();
    EXPECT_EQ(*latest, folder + "/model-4");
    const absl::Status restored = saver.Restore(*session, *latest);
    ASSERT_TRUE(restored.ok()) << restored;
    EXPECT_EQ((*session->Run({w.value()}))[0].ToString(), "float[3] [10 20 30]");
    EXPECT_EQ((*session->Run({table[1].value()}))[0].ToString(), "float[2,2] [[7 7][7 7]]");
  }
  std::filesystem::remove_all(folder);
}

TEST(SaverInterchange, ObjectsOfTensorFlowHaveFullNames) {
  if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
  const std::string prefix =
      ::testing::TempDir() + std::to_string(getpid()) + "_troupe_objects/model";
  std::filesystem::create_directories(std::filesystem::path(prefix).parent_path());
  const std::string output = RunPython({"scripts/golden/record_object_checkpoint.py", prefix});
  const auto kernel = LoadVariable(prefix, "dense/kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << output;
  EXPECT_EQ(kernel->ToString(), "float[2,2] [[1 2][3 4]]");
  EXPECT_EQ(LoadVariable(prefix, "global_step")->ToString(), "int64[] 9");
  std::filesystem::remove_all(std::filesystem::path(prefix).parent_path());
}

}  // namespace
}  // namespace troupe
