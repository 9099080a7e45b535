// Ops that save and restore, in sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/troupe.h"
#include "devices/storage/bundle_writer.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/local_file_system.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class CheckpointKernels : public ::testing::Test {
 protected:
  CheckpointKernels() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + "checkpoint_kernels_" + info->name();
    std::filesystem::remove_all(folder_);
  }
  ~CheckpointKernels() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  Session& session() {
    if (session_ == nullptr) {
      EXPECT_TRUE(s.ok()) << s.status();
      session_ = *Session::Create(s.graph(), {.threads = 2});
    }
    return *session_;
  }
  absl::Status Run(Node* node) { return session().RunTargets({node}); }
  static Input Names(const std::vector<std::string>& names) {
    return Tensor::Vector<std::string>(names);
  }

  Scope s = Scope::NewRoot();

 private:
  std::string folder_;
  std::unique_ptr<Session> session_;
};

TEST_F(CheckpointKernels, VariablesComeBack) {
  ModelVariable a(s, ops::Const(s, Tensor::Vector<float>({1, 2, 3})), "a");
  ModelVariable b(s, ops::Const(s, Tensor::Scalar<int64_t>(7)), "b");
  Node* const init = GlobalVariablesInitializer(s);
  Node* const save =
      ops::SaveV2(s, Path("model"), Names({"a", "b"}), Names({"", ""}), {a.value(), b.value()});
  const auto restored = ops::RestoreV2(s, Path("model"), Names({"b", "a"}), Names({"", ""}),
                                       {ElementType::kInt64, ElementType::kFloat});
  Node* const restore =
      ops::NoOp(s.WithControlDependencies({a.Assign(s, restored[1]), b.Assign(s, restored[0])}));
  Node* const change = ops::NoOp(s.WithControlDependencies(
      {a.AssignAdd(s, Tensor::Vector<float>({9, 9, 9})), b.AssignAdd(s, int64_t{1})}));
  ASSERT_TRUE(Run(init).ok());
  absl::Status status = Run(save);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(Run(change).ok());
  status = Run(restore);
  ASSERT_TRUE(status.ok()) << status;
  const auto values = session().Run({a.value(), b.value()});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_values<float>()[2], 3);
  EXPECT_EQ((*values)[1].unchecked_scalar<int64_t>(), 7);
}

TEST_F(CheckpointKernels, PartsAreSavedAndPartsAreRead) {
  const Tensor upper(Tensor::Vector<float>({0, 1, 2, 3, 4, 5}));
  const Output rows = ops::Reshape(s, upper, Tensor::Vector<int32_t>({3, 2}));
  const Output lower = ops::Add(s, rows, 6.0f);
  Node* const save = ops::SaveV2(s, Path("parts"), Names({"w", "w"}),
                                 Names({"6 2 0,3:-", "6 2 3,3:-"}), {rows, lower});
  const auto read = ops::RestoreV2(s, Path("parts"), Names({"w", "w"}), Names({"", "6 2 2,2:1,1"}),
                                   {ElementType::kFloat, ElementType::kFloat});
  EXPECT_EQ(read[1].node->output_shape(1), PartialShape({2, 1}));
  ASSERT_TRUE(Run(save).ok());
  const auto values = session().Run({read[0], read[1]});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].shape(), Shape({6, 2}));
  for (int i = 0; i < 12; ++i) EXPECT_EQ((*values)[0].unchecked_values<float>()[i], i);
  EXPECT_EQ((*values)[1].unchecked_values<float>()[0], 5);
  EXPECT_EQ((*values)[1].unchecked_values<float>()[1], 7);
}

TEST_F(CheckpointKernels, ShardsAreMerged) {
  std::vector<std::string> shards;
  std::vector<Node*> saved;
  for (int i = 0; i < 3; ++i) {
    const Output name = ops::ShardedFilename(s, Path("tmp/part"), i, 3);
    shards.push_back(Path("tmp/part-0000") + std::to_string(i) + "-of-00003");
    saved.push_back(ops::SaveV2(s, name, Names({"v" + std::to_string(i)}), Names({""}),
                                {ops::Const(s, Tensor::Scalar(i))}));
  }
  Node* const merge =
      ops::MergeV2Checkpoints(s.WithControlDependencies(saved), Names(shards), Path("model"));
  absl::Status status = Run(merge);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(std::filesystem::exists(Path("tmp")));
  const auto read = OpenCheckpoint(*FileSystems().Find(Path("model")), Path("model"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->tensors().size(), 3u);
  EXPECT_EQ((*read)->Read("v2")->unchecked_scalar<int32_t>(), 2);
}

TEST_F(CheckpointKernels, TheOlderFormat) {
  const Output values = ops::Const(s, Tensor::Vector<double>({1.5, 2.5, 3.5}));
  Node* const whole = ops::Save(s, Path("v1"), Names({"x"}), {values});
  Node* const parts = ops::SaveSlices(s, Path("v1-part"), Names({"x"}), Names({"9 3,3"}), {values});
  const Output all = ops::Restore(s, Path("v1"), "x", ElementType::kDouble);
  const Output some = ops::RestoreSlice(s, Path("v1"), "x", "3 1,2", ElementType::kDouble);
  const Output part = ops::RestoreSlice(s, Path("v1-p*"), "x", "9 4,1", ElementType::kDouble);
  ASSERT_TRUE(Run(whole).ok());
  ASSERT_TRUE(Run(parts).ok());
  const auto read = session().Run({all, some, part});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].unchecked_values<double>()[2], 3.5);
  EXPECT_EQ((*read)[1].unchecked_values<double>()[1], 3.5);
  EXPECT_EQ((*read)[2].unchecked_values<double>()[0], 2.5);
}

TEST_F(CheckpointKernels, Names) {
  const Output name = ops::ShardedFilename(s, "a/b", 3, 12);
  const Output pattern = ops::ShardedFilespec(s, "a/b", 12);
  const auto values = session().Run({name, pattern});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<std::string>(), "a/b-00003-of-00012");
  EXPECT_EQ((*values)[1].unchecked_scalar<std::string>(), "a/b-\?\?\?\?\?-of-00012");
}

TEST_F(CheckpointKernels, ErrorsSayWhatIsWrong) {
  const Output x = ops::Const(s, Tensor::Vector<float>({1, 2}));
  ASSERT_TRUE(Run(ops::SaveV2(s, Path("model"), Names({"x"}), Names({""}), {x})).ok());
  struct Case {
    Node* node;
    absl::StatusCode code;
    const char* says;
  };
  const auto restore = [&](const std::string& prefix, const std::string& name,
                           const std::string& slice, ElementType type) {
    return ops::RestoreV2(s, Path(prefix), Names({name}), Names({slice}), {type})[0].node;
  };
  const auto f = ElementType::kFloat;
  const std::vector<Case> cases = {
      {restore("nowhere", "x", "", f), absl::StatusCode::kNotFound, "nowhere"},
      {restore("model", "y", "", f), absl::StatusCode::kNotFound, "y"},
      {restore("model", "x", "", ElementType::kInt32), absl::StatusCode::kInvalidArgument, "int32"},
      {restore("model", "x", "3 0,1", f), absl::StatusCode::kInvalidArgument, "[3]"},
      {ops::SaveV2(s, "nobody://model", Names({"x"}), Names({""}), {x}),
       absl::StatusCode::kUnimplemented, "nobody"},
      {ops::SaveV2(s, Path(""), Names({"x"}), Names({""}), {x}), absl::StatusCode::kInvalidArgument,
       "names no checkpoint"},
      {ops::SaveV2(s, Path("twice"), Names({"x", "x"}), Names({"", ""}), {x, x}),
       absl::StatusCode::kAlreadyExists, "'x'"},
      {ops::SaveV2(s, Path("slice"), Names({"x"}), Names({"4 3,2"}), {x}),
       absl::StatusCode::kInvalidArgument, "4 3,2"},
  };
  ASSERT_TRUE(s.ok()) << s.status();
  for (const Case& c : cases) {
    const absl::Status status = Run(c.node);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.node->name()));
  }
  const Scope bad(s.graph());
  ops::SaveV2(bad, Path("m"), Names({"x", "y"}), Names({""}), {x});
  EXPECT_TRUE(absl::IsInvalidArgument(bad.status()));
  const Scope worse(s.graph());
  ops::RestoreV2(worse, Path("m"), Names({"x"}), Names({"not a slice"}), {f});
  EXPECT_TRUE(absl::IsInvalidArgument(worse.status()));
}

TEST_F(CheckpointKernels, AStepThatIsCancelledDoesNotWait) {
  const Output big = ops::Fill(s, Tensor::Vector<int32_t>({1 << 22}), 1.0f);
  Node* const save = ops::SaveV2(s, Path("model"), Names({"x"}), Names({""}), {big});
  session();
  for (int i = 0; i < 20; ++i) {
    const auto result = session().Run(FeedMap{}, {}, {save}, {.timeout = absl::Milliseconds(i)});
    EXPECT_TRUE(result.ok() || absl::IsDeadlineExceeded(result.status())) << result.status();
  }
  ASSERT_TRUE(Run(save).ok());
  const auto read = OpenCheckpoint(*FileSystems().Find(Path("model")), Path("model"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE((*read)->Verify().ok());
  // Nothing is left beside it.
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Path(""))) {
    count += entry.is_regular_file();
  }
  EXPECT_EQ(count, 2u);
}

}  // namespace
}  // namespace troupe
