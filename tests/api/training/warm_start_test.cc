#include "api/training/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "api/troupe.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A checkpoint with old/a = [1 2], old/deep/b = [3], c = [[0 1][2 3][4 5]] in two parts.
class WarmStartTest : public ::testing::Test {
 protected:
  WarmStartTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + std::to_string(getpid()) + "_warm_start_" + info->name();
    std::filesystem::remove_all(folder_);
    Scope old = Scope::NewRoot();
    const ModelVariable a(old, ops::Const(old, Tensor::Vector<float>({1, 2})), "old/a");
    const ModelVariable b(old, ops::Const(old, Tensor::Vector<float>({3})), "old/deep/b");
    const auto c = PartitionedVariable(old, Shape({3, 2}), 2, ZerosInitializer(), "c");
    Node* const rows =
        c[0].Assign(old, *Tensor::FromValues<float>(std::vector<float>{0, 1, 2, 3}, Shape({2, 2})));
    Node* const row =
        c[1].Assign(old, *Tensor::FromValues<float>(std::vector<float>{4, 5}, Shape({1, 2})));
    Saver saver(old);
    Node* const init = GlobalVariablesInitializer(old);
    EXPECT_TRUE(old.ok()) << old.status();
    const auto session = *Session::Create(old.graph(), {.threads = 1});
    EXPECT_TRUE(session->RunTargets({init}).ok());
    EXPECT_TRUE(session->RunTargets({rows, row}).ok());
    const auto saved = saver.Save(*session, folder_ + "/model", 1);
    EXPECT_TRUE(saved.ok()) << saved.status();
  }
  ~WarmStartTest() override { std::filesystem::remove_all(folder_); }

  ModelVariable Variable(const std::string& name, const Shape& shape) {
    return ModelVariable(s, shape, ConstantInitializer(9), name);
  }
  std::string Value(Session& session, const ModelVariable& variable) {
    const auto values = session.Run({variable.value()});
    return values.ok() ? (*values)[0].ToString() : std::string(values.status().message());
  }
  std::unique_ptr<Session> Initialized() {
    Node* const init = GlobalVariablesInitializer(s);
    EXPECT_TRUE(s.ok()) << s.status();
    auto session = *Session::Create(s.graph(), {.threads = 1});
    const absl::Status status = session->RunTargets({init});
    EXPECT_TRUE(status.ok()) << status;
    return session;
  }

  Scope s = Scope::NewRoot();
  std::string folder_;
};

TEST_F(WarmStartTest, ScopesVariablesAndParts) {
  const ModelVariable a = Variable("new/a", Shape({2})), b = Variable("new/deep/b", Shape({1})),
                      other = Variable("other", Shape({2})), left = Variable("left", Shape({1}));
  const auto table = PartitionedVariable(s, Shape({3, 2}), 3, ZerosInitializer(), "t/c");
  const absl::Status status =
      InitFromCheckpoint(s, folder_, {{"old/", "new/"}, {"old/a", other}, {"c", "t/c"}});
  ASSERT_TRUE(status.ok()) << status;
  const auto session = Initialized();
  EXPECT_EQ(Value(*session, a), "float[2] [1 2]");
  EXPECT_EQ(Value(*session, b), "float[1] [3]");
  EXPECT_EQ(Value(*session, other), "float[2] [1 2]");
  EXPECT_EQ(Value(*session, left), "float[1] [9]");
  EXPECT_EQ(Value(*session, table[2]), "float[1,2] [[4 5]]");
}

TEST_F(WarmStartTest, FromTheRootAndIntoIt) {
  const ModelVariable a = Variable("in/old/a", Shape({2})), c = Variable("in/c", Shape({3, 2}));
  ASSERT_TRUE(InitFromCheckpoint(s, folder_ + "/model-1", {{"/", "in/"}}).ok());
  auto session = Initialized();
  EXPECT_EQ(Value(*session, a), "float[2] [1 2]");
  EXPECT_EQ(Value(*session, c), "float[3,2] [[0 1][2 3][4 5]]");
  Scope root = Scope::NewRoot();
  const ModelVariable plain(root, Shape({2}), ZerosInitializer(), "a");
  ASSERT_TRUE(InitFromCheckpoint(root, folder_, {{"old/", "/"}}).ok());
  Node* const init = GlobalVariablesInitializer(root);
  session = *Session::Create(root.graph(), {.threads = 1});
  ASSERT_TRUE(session->RunTargets({init}).ok());
  EXPECT_EQ(Value(*session, plain), "float[2] [1 2]");
}

TEST_F(WarmStartTest, AfterTheInitializerWasMade) {
  const ModelVariable a = Variable("a", Shape({2}));
  Node* const init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(InitFromCheckpoint(s, folder_, {{"old/a", "a"}}).ok());
  const auto session = *Session::Create(s.graph(), {.threads = 1});
  ASSERT_TRUE(session->RunTargets({init}).ok());
  EXPECT_EQ(Value(*session, a), "float[2] [1 2]");
}

TEST_F(WarmStartTest, SomePartsOfAVariable) {
  const auto table = PartitionedVariable(s, Shape({3, 2}), 3, ConstantInitializer(9), "c");
  ASSERT_TRUE(InitFromCheckpoint(s, folder_, {{"c", std::vector{table[0], table[1]}}}).ok());
  const auto session = Initialized();
  EXPECT_EQ(Value(*session, table[1]), "float[1,2] [[2 3]]");
  EXPECT_EQ(Value(*session, table[2]), "float[1,2] [[9 9]]");
}

TEST_F(WarmStartTest, RefusesWhatDoesNotFit) {
  const ModelVariable a = Variable("new/a", Shape({2})), wrong = Variable("wrong", Shape({3})),
                      missing = Variable("gap/x", Shape({1}));
  const ModelVariable number(s, ops::Const(s, Tensor::Vector<int32_t>({1, 2})), "number");
  const auto table = PartitionedVariable(s, Shape({4, 2}), 2, ZerosInitializer(), "table");
  const int nodes = s.graph()->num_nodes();
  const struct {
    AssignmentMap map;
    absl::StatusCode code;
    const char* text;
  } kCases[] = {
      {{{"nothing", a}}, absl::StatusCode::kNotFound, "nothing"},
      {{{"old/", "gap/"}}, absl::StatusCode::kNotFound, "old/x"},
      {{{"old/a", wrong}}, absl::StatusCode::kInvalidArgument, "'wrong/handle' of type float"},
      {{{"old/a", number}}, absl::StatusCode::kInvalidArgument, "number"},
      {{{"c", "table"}}, absl::StatusCode::kInvalidArgument, "part 4 2 0,2:0,2"},
      {{{"old/a", "nobody"}}, absl::StatusCode::kInvalidArgument, "nobody"},
      {{{"old/", "nobody/"}}, absl::StatusCode::kInvalidArgument, "scope 'nobody/'"},
      {{{"old/a", "new/"}}, absl::StatusCode::kInvalidArgument, "'from/' to 'to/'"},
      {{{"old/a", ModelVariable()}}, absl::StatusCode::kInvalidArgument, "no global variable"},
      {{{"old/a", std::vector{a, wrong}}}, absl::StatusCode::kInvalidArgument, "one variable"},
      {{{"old/a", std::vector<ModelVariable>()}}, absl::StatusCode::kInvalidArgument, "nothing"},
      // Nothing is done before all has been looked at.
      {{{"old/a", a}, {"nothing", a}}, absl::StatusCode::kNotFound, "nothing"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = InitFromCheckpoint(s, folder_, c.map);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
  EXPECT_EQ(s.graph()->num_nodes(), nodes);
  EXPECT_TRUE(absl::IsNotFound(InitFromCheckpoint(s, folder_ + "/none", {})));
}

TEST_F(WarmStartTest, RestoresByName) {
  const ModelVariable a = Variable("old/a", Shape({2})), own = Variable("own", Shape({1}));
  const auto table = PartitionedVariable(s, Shape({3, 2}), 2, ZerosInitializer(), "c", 1);
  const auto session = Initialized();
  const auto names = RestoreByName(*session, folder_);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, ElementsAre("old/a", "c", "c"));
  EXPECT_EQ(Value(*session, a), "float[2] [1 2]");
  EXPECT_EQ(Value(*session, own), "float[1] [9]");
  EXPECT_EQ(Value(*session, table[1]), "float[3,1] [[1][3][5]]");
}

TEST_F(WarmStartTest, RestoresPartsByTheirNames) {
  // As in a graph that was imported without its collections.
  const Output upper = ops::VariableV2(s.WithOpName("c/part_0"), PartialShape({1, 2}),
                                       ElementType::kFloat),
               lower = ops::VariableV2(s.WithOpName("c/part_1"), PartialShape({2, 2}),
                                       ElementType::kFloat);
  const auto session = *Session::Create(s.graph(), {.threads = 1});
  ASSERT_TRUE(RestoreByName(*session, folder_).ok());
  EXPECT_EQ((*session->Run({lower}))[0].ToString(), "float[2,2] [[2 3][4 5]]");
  EXPECT_EQ((*session->Run({upper}))[0].ToString(), "float[1,2] [[0 1]]");
  Scope odd = Scope::NewRoot();
  ops::VariableV2(odd.WithOpName("c/part_0"), PartialShape({2, 2}), ElementType::kFloat);
  ops::VariableV2(odd.WithOpName("c/part_1"), PartialShape({2, 2}), ElementType::kFloat);
  const auto other = *Session::Create(odd.graph(), {.threads = 1});
  EXPECT_EQ(RestoreByName(*other, folder_).status().code(), absl::StatusCode::kInvalidArgument);
  Scope nothing = Scope::NewRoot();
  const auto empty = *Session::Create(nothing.graph(), {.threads = 1});
  EXPECT_THAT(*RestoreByName(*empty, folder_), IsEmpty());
}

/// What scripts/golden/record_object_checkpoint.py has TensorFlow 2.21 save.
constexpr char kObjects[] = "tests/api/training/testdata/objects";
constexpr char kKernel[] = "again/kernel/.ATTRIBUTES/VARIABLE_VALUE";

TEST(ObjectCheckpoint, VariablesHaveFullNames) {
  const auto variables = ListVariables(kObjects);
  ASSERT_TRUE(variables.ok()) << variables.status();
  std::vector<std::string> names;
  for (const CheckpointVariable& variable : *variables) {
    names.push_back(variable.name + ": " + variable.full_name);
  }
  EXPECT_THAT(names, ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH: ",
                                 "again/bias/.ATTRIBUTES/VARIABLE_VALUE: dense/bias",
                                 std::string(kKernel) + ": dense/kernel",
                                 "list/0/.ATTRIBUTES/VARIABLE_VALUE: twice",
                                 "list/1/.ATTRIBUTES/VARIABLE_VALUE: twice",
                                 "step/.ATTRIBUTES/VARIABLE_VALUE: global_step"));
  for (const char* name : {kKernel, "dense/kernel"}) {
    const auto kernel = LoadVariable(kObjects, name);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(kernel->ToString(), "float[2,2] [[1 2][3 4]]");
  }
  EXPECT_TRUE(absl::IsNotFound(LoadVariable(kObjects, "dense").status()));
  const absl::Status several = LoadVariable(kObjects, "twice").status();
  EXPECT_TRUE(absl::IsInvalidArgument(several)) << several;
  EXPECT_THAT(std::string(several.message()), HasSubstr("'list/1/.ATTRIBUTES/VARIABLE_VALUE'"));
}

TEST(ObjectCheckpoint, AWarmStartTakesEither) {
  const Scope s = Scope::NewRoot();
  const auto make = [&s](const std::string& name, const Shape& shape) {
    return ModelVariable(s, shape, ConstantInitializer(9), name);
  };
  const ModelVariable kernel = make("own/kernel", Shape({2, 2})), bias = make("own/bias", {2}),
                      other = make("other", Shape({2, 2}));
  const absl::Status planned =
      InitFromCheckpoint(s, kObjects, {{"dense/", "own/"}, {kKernel, other}});
  ASSERT_TRUE(planned.ok()) << planned;
  EXPECT_TRUE(absl::IsNotFound(InitFromCheckpoint(s, kObjects, {{"dense/weights", other}})));
  Node* const init = GlobalVariablesInitializer(s);
  const auto session = *Session::Create(s.graph(), {.threads = 1});
  const absl::Status status = session->RunTargets({init});
  ASSERT_TRUE(status.ok()) << status;
  const auto values = session->Run({kernel.value(), bias.value(), other.value()});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].ToString(), "float[2,2] [[1 2][3 4]]");
  EXPECT_EQ((*values)[1].ToString(), "float[2] [5 6]");
  EXPECT_EQ((*values)[2].ToString(), "float[2,2] [[1 2][3 4]]");
}

TEST(ObjectCheckpoint, RestoresByFullName) {
  const Scope s = Scope::NewRoot();
  const ModelVariable bias(s, Shape({2}), ConstantInitializer(9), "dense/bias"),
      own(s, Shape({2}), ConstantInitializer(9), "dense/own");
  const auto session = *Session::Create(s.graph(), {.threads = 1});
  const auto names = RestoreByName(*session, kObjects);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, ElementsAre("again/bias/.ATTRIBUTES/VARIABLE_VALUE"));
  EXPECT_EQ((*session->Run({bias.value()}))[0].ToString(), "float[2] [5 6]");
}

}  // namespace
}  // namespace troupe
