// Savers: options, names, what is kept, what is refused. That nodes and files are TensorFlow's:
// saver_graphs_test.cc.
#include "api/training/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "api/troupe.h"
#include "graph/meta_graph.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SaverTest : public ::testing::Test {
 protected:
  SaverTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + std::to_string(getpid()) + "_saver_" + info->name();
    std::filesystem::remove_all(folder_);
  }
  ~SaverTest() override { std::filesystem::remove_all(folder_); }

  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  bool There(const std::string& name) const { return std::filesystem::exists(In(name)); }

  ModelVariable Vector(const std::string& name, std::vector<float> values) {
    return ModelVariable(s, Const(s, Tensor::Vector<float>(values)), name);
  }
  /// After the graph has been made.
  Session& session() {
    if (session_ == nullptr) {
      Node* const init = GlobalVariablesInitializer(s);
      EXPECT_TRUE(s.ok()) << s.status();
      session_ = *Session::Create(s.graph(), {.threads = 2});
      EXPECT_TRUE(session_->RunTargets({init}).ok());
    }
    return *session_;
  }
  void Set(const ModelVariable& variable, std::vector<float> values) {
    const absl::Status status =
        session().RunTargets({variable.Assign(s, Tensor::Vector<float>(values))});
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<float> Get(const ModelVariable& variable) {
    const auto values = session().Run({variable.value()});
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return {};
    const auto elements = (*values)[0].unchecked_values<float>();
    return {elements.begin(), elements.end()};
  }

  Scope s = Scope::NewRoot();
  std::string folder_;
  std::unique_ptr<Session> session_;
};

TEST_F(SaverTest, SavesAndRestores) {
  const ModelVariable w = Vector("w", {1, 2, 3}), b = Vector("layer/b", {4});
  Saver saver(s);
  const auto path = saver.Save(session(), In("model"), 12);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, In("model-12"));
  EXPECT_EQ(*LatestCheckpoint(folder_), *path);
  Set(w, {0, 0, 0});
  Set(b, {0});
  const absl::Status status = saver.Restore(session(), *path);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Get(w), ElementsAre(1, 2, 3));
  EXPECT_THAT(Get(b), ElementsAre(4));
  const auto variables = ListVariables(folder_);
  ASSERT_TRUE(variables.ok()) << variables.status();
  ASSERT_EQ(variables->size(), 2u);
  EXPECT_EQ((*variables)[0].name, "layer/b");
  EXPECT_EQ((*variables)[1].name, "w");
  EXPECT_EQ((*variables)[1].shape, Shape({3}));
}

TEST_F(SaverTest, RestoresWhatHasNoValue) {
  const ModelVariable w = Vector("w", {1, 2});
  Saver saver(s);
  const std::string path = *saver.Save(session(), In("model"));
  const auto fresh = *Session::Create(s.graph(), {.threads = 1});
  EXPECT_FALSE(fresh->Run({w.value()}).ok());
  ASSERT_TRUE(saver.Restore(*fresh, path).ok());
  EXPECT_EQ((*fresh->Run({w.value()}))[0].unchecked_values<float>()[1], 2);
}

TEST_F(SaverTest, SomeVariablesUnderOtherNames) {
  const ModelVariable w = Vector("w", {1, 2}), b = Vector("b", {3});
  Saver list(s, {b}), map(s, {{"b", w}, {"x/y", b}});
  ASSERT_TRUE(list.Save(session(), In("list")).ok());
  ASSERT_TRUE(map.Save(session(), In("map")).ok());
  EXPECT_EQ(ListVariables(In("list"))->size(), 1u);
  EXPECT_EQ(LoadVariable(In("map"), "b")->unchecked_values<float>()[1], 2);
  EXPECT_EQ(LoadVariable(In("map"), "x/y")->unchecked_values<float>()[0], 3);
  // Names of averages.
  const std::map<std::string, ModelVariable> names = {{"w/ExponentialMovingAverage", w}};
  Saver averages(s, names);
  ASSERT_TRUE(averages.Save(session(), In("averages")).ok());
  EXPECT_EQ((*ListVariables(In("averages")))[0].name, "w/ExponentialMovingAverage");
}

TEST_F(SaverTest, KeepsTheLast) {
  Vector("w", {1});
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Saver saver(s, {}, {.max_to_keep = 2, .now = [&] { return now; }});
  for (int step = 1; step <= 4; ++step) {
    ASSERT_TRUE(saver.Save(session(), In("model"), step).ok());
    std::ofstream(MetaGraphFile(In("model-" + std::to_string(step)))) << "graph";
    now += absl::Seconds(1);
  }
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(In("model-3"), In("model-4")));
  EXPECT_FALSE(There("model-2.index"));
  EXPECT_FALSE(There("model-2.meta"));
  EXPECT_FALSE(There("model-2.data-00000-of-00001"));
  EXPECT_TRUE(There("model-3.index"));
  EXPECT_TRUE(There("model-3.meta"));
  const auto state = GetCheckpointState(folder_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, In("model-4"));
  EXPECT_THAT(state->all, ElementsAre(In("model-3"), In("model-4")));
  EXPECT_THAT(state->timestamps, ElementsAre(1'700'000'002, 1'700'000'003));
}

TEST_F(SaverTest, KeepsOneForSoManyHours) {
  Vector("w", {1});
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Saver saver(s, {},
              {.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2, .now = [&] { return now; }});
  // One an hour: kept are the first after 2 hours, after 4, and so on.
  for (int hour = 1; hour <= 8; ++hour) {
    now += absl::Minutes(59);
    ASSERT_TRUE(saver.Save(session(), In("model"), hour).ok());
    now += absl::Minutes(1);
  }
  std::vector<int> kept;
  for (int hour = 1; hour <= 8; ++hour) {
    if (There("model-" + std::to_string(hour) + ".index")) kept.push_back(hour);
  }
  EXPECT_THAT(kept, ElementsAre(3, 5, 7, 8));
}

TEST_F(SaverTest, KeepsAllWithoutALimit) {
  Vector("w", {1});
  Saver saver(s, {}, {.max_to_keep = 0});
  for (int step = 1; step <= 7; ++step) ASSERT_TRUE(saver.Save(session(), In("m"), step).ok());
  EXPECT_TRUE(There("m-1.index"));
  EXPECT_THAT(saver.last_checkpoints(), IsEmpty());
  EXPECT_THAT(GetCheckpointState(folder_)->all, ElementsAre(In("m-7")));
}

TEST_F(SaverTest, GoesOnAfterACrash) {
  Vector("w", {1});
  Saver first(s, {}, {.max_to_keep = 3});
  for (int step = 1; step <= 3; ++step) ASSERT_TRUE(first.Save(session(), In("m"), step).ok());
  ASSERT_TRUE(RemoveCheckpoint(In("m-2")).ok());
  const auto second = *Saver::FromProto(*s.graph(), first.ToProto());
  ASSERT_TRUE(second->recover_last_checkpoints(GetCheckpointState(folder_)->all).ok());
  EXPECT_THAT(second->last_checkpoints(), ElementsAre(In("m-1"), In("m-3")));
  for (int step = 4; step <= 5; ++step) ASSERT_TRUE(second->Save(session(), In("m"), step).ok());
  EXPECT_THAT(second->last_checkpoints(), ElementsAre(In("m-3"), In("m-4"), In("m-5")));
  EXPECT_FALSE(There("m-1.index"));
  // Those whose time is not known are not removed.
  second->set_last_checkpoints({In("m-3"), In("m-4"), In("m-5")});
  ASSERT_TRUE(second->Save(session(), In("m"), 6).ok());
  EXPECT_TRUE(There("m-3.index"));
}

// A program that is started again may call the folder otherwise.
TEST_F(SaverTest, KeepsWhatItSavesUnderAnotherSpelling) {
  Vector("w", {1});
  Saver first(s, {}, {.max_to_keep = 1});
  ASSERT_TRUE(first.Save(session(), In("m"), 20).ok());
  const std::string link = folder_ + "_link";
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(folder_, link);
  const std::string relative = std::filesystem::relative(folder_).string();
  for (const std::string& folder : {folder_ + "/", "file://" + folder_, link, relative}) {
    const auto again = *Saver::FromProto(*s.graph(), first.ToProto());
    ASSERT_TRUE(again->recover_last_checkpoints({In("m-20")}).ok());
    const auto saved = again->Save(session(), folder + "/m", 20);
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_TRUE(LoadVariable(In("m-20"), "w").ok()) << folder;
    EXPECT_THAT(again->last_checkpoints(), ElementsAre(folder + "/m-20"));
  }
  std::filesystem::remove(link);
}

TEST_F(SaverTest, KeepsWhatItSavesAgainAfterAnError) {
  Vector("w", {1});
  Saver saver(s, {}, {.max_to_keep = 1});
  ASSERT_TRUE(saver.Save(session(), In("m"), 1).ok());
  std::filesystem::remove(In("checkpoint"));
  std::filesystem::create_directories(In("checkpoint/in the way"));
  EXPECT_FALSE(saver.Save(session(), In("m"), 2).ok());
  std::filesystem::remove_all(In("checkpoint"));
  ASSERT_TRUE(saver.Save(session(), In("m"), 1).ok());
  const auto latest = LatestCheckpoint(folder_);
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_EQ(*latest, In("m-1"));
  EXPECT_FALSE(There("m-2.index"));
}

TEST_F(SaverTest, PartsOfAVariable) {
  const auto parts = PartitionedVariable(s, Shape({7, 2}), 3, ZerosInitializer(), "table");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].name(), "table/part_1");
  std::vector<Node*> sets;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t rows = parts[i].shape().dim(0);
    EXPECT_EQ(rows, i == 0 ? 3 : 2);
    sets.push_back(parts[i].Assign(
        s, ops::Fill(s, Tensor::Vector<int64_t>({rows, 2}), static_cast<float>(i))));
  }
  Saver saver(s);
  ASSERT_TRUE(session().RunTargets(sets).ok());
  ASSERT_TRUE(saver.Save(session(), In("model")).ok());
  const auto whole = LoadVariable(In("model"), "table");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->shape(), Shape({7, 2}));
  EXPECT_EQ(whole->ToString(100), "float[7,2] [[0 0][0 0][0 0][1 1][1 1][2 2][2 2]]");

  // A program with two parts, along the other axis, reads it; so does one that has it whole.
  Scope other = Scope::NewRoot();
  const auto two = PartitionedVariable(other, Shape({7, 2}), 2, ZerosInitializer(), "table", 1);
  Saver restores(other);
  const auto there = *Session::Create(other.graph(), {.threads = 1});
  absl::Status status = restores.Restore(*there, In("model"));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ((*there->Run({two[1].value()}))[0].ToString(100), "float[7,1] [[0][0][0][1][1][2][2]]");
}

TEST_F(SaverTest, PartsGoWithTheGraph) {
  PartitionedVariable(s, Shape({4}), 2, ZerosInitializer(), "scope/table");
  GraphDef def;
  s.graph()->ToGraphDef(&def);
  auto imported = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(def, {}, imported.get()).ok());
  const auto saveables = SaveablesOfGraph(*imported);
  ASSERT_TRUE(saveables.ok()) << saveables.status();
  ASSERT_EQ(saveables->size(), 2u);
  EXPECT_EQ((*saveables)[1].name(), "scope/table");
  EXPECT_EQ((*saveables)[1].tensors()[0].shape_and_slice, "4 2,2");
}

TEST_F(SaverTest, Reshapes) {
  const ModelVariable w = Vector("w", {1, 2, 3, 4});
  Saver saver(s);
  ASSERT_TRUE(saver.Save(session(), In("model")).ok());
  Scope other = Scope::NewRoot();
  const ModelVariable square(other, Shape({2, 2}), ZerosInitializer(), "w");
  const ModelVariable three(other, Shape({3}), ZerosInitializer(), "three");
  Saver strict(other, {square}), loose(other, {square}, {.reshape = true}),
      wrong(other, {{"w", three}}, {.reshape = true});
  const auto there = *Session::Create(other.graph(), {.threads = 1});
  const absl::Status status = strict.Restore(*there, In("model"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 'w' has the shape [4] there"));
  ASSERT_TRUE(loose.Restore(*there, In("model")).ok());
  EXPECT_EQ((*there->Run({square.value()}))[0].ToString(), "float[2,2] [[1 2][3 4]]");
  EXPECT_EQ(wrong.Restore(*there, In("model")).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SaverTest, SaysAllThatDoesNotFit) {
  Vector("w", {1});
  Vector("b", {1, 2});
  Saver saver(s);
  ASSERT_TRUE(saver.Save(session(), In("model")).ok());
  Scope other = Scope::NewRoot();
  const ModelVariable w(other, Const(other, Tensor::Vector<int32_t>({1})), "w");
  const ModelVariable b(other, Const(other, Tensor::Vector<float>({1, 2, 3})), "b");
  const ModelVariable c(other, Const(other, 1.0f), "c");
  const ModelVariable fits(other, Const(other, Tensor::Vector<float>({8})), "fits");
  Saver restores(other, {{"w", w}, {"b", b}, {"c", c}, {"w2", fits}});
  Node* const init = GlobalVariablesInitializer(other);
  const auto there = *Session::Create(other.graph(), {.threads = 1});
  ASSERT_TRUE(there->RunTargets({init}).ok());
  const absl::Status status = restores.Restore(*there, In("model"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr(In("model")));
  EXPECT_THAT(message, HasSubstr("tensor 'w' is of type float there, not of int32"));
  EXPECT_THAT(message,
              HasSubstr("tensor 'b' has the shape [2] there; the variable 'b/handle' has"));
  EXPECT_THAT(message, HasSubstr("it has no tensor 'c'"));
  // Nothing has been set.
  EXPECT_EQ((*there->Run({fits.value()}))[0].unchecked_values<float>()[0], 8);
}

TEST_F(SaverTest, RefusesToBeMade) {
  {
    Scope empty = Scope::NewRoot();
    Saver saver(empty);
    EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(saver.Save(session(), In("m")).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  const ModelVariable w = Vector("w", {1});
  Node* const plain = Const(s, 1.0f).node;
  const auto refused = [&](SaveableList list) {
    const Scope scope(s.graph());
    Saver saver(scope, std::move(list));
    EXPECT_EQ(scope.status().code(), absl::StatusCode::kInvalidArgument) << scope.status();
    return std::string(scope.status().message());
  };
  EXPECT_THAT(refused({{"a", w}, {"b", w}}), HasSubstr("restored twice"));
  EXPECT_THAT(refused({Saveable(plain)}), HasSubstr("of op Const is no variable"));
  EXPECT_THAT(refused({ModelVariable()}), HasSubstr("not valid"));
  EXPECT_THAT(refused(std::vector<ModelVariable>()), HasSubstr("no variables to save"));
  const ModelVariable v = Vector("v", {1});
  EXPECT_THAT(refused({{"a", w}, {"a", v}}), HasSubstr("two variables would be saved as 'a'"));
  const SaveSliceInfo half{"x", Shape({2}), {0}, {1}}, other{"x", Shape({3}), {0}, {1}};
  Node *const node = w.handle().node, *const second = v.handle().node;
  EXPECT_THAT(refused({Saveable("x", node, half), Saveable("x", second, other)}),
              HasSubstr("different wholes"));
  EXPECT_THAT(refused({Saveable("x", node, half), Saveable("x", second)}),
              HasSubstr("two variables"));
  EXPECT_THAT(refused({Saveable("x", node, SaveSliceInfo{"x", Shape({2}), {1}, {2}})}),
              HasSubstr("cannot be the part"));
  EXPECT_THAT(refused({Saveable("x", node, SaveSliceInfo{"x", Shape({9}), {1}, {2}})}),
              HasSubstr("has the shape [1]"));
}

TEST_F(SaverTest, AnEmptyOneDoesNothing) {
  Saver saver(s, {}, {.allow_empty = true});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_TRUE(saver.is_empty());
  Const(s, 1.0f);
  const auto saved = saver.Save(session(), In("m"), 1);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(*saved, "");
  EXPECT_TRUE(There("m-1.meta")) << "as TensorFlow does";
  EXPECT_FALSE(There("checkpoint"));
  EXPECT_TRUE(saver.Restore(session(), In("m")).ok());
}

TEST_F(SaverTest, RefusesNames) {
  Vector("w", {1});
  Saver saver(s);
  const auto refused = [&](const std::string& path, const SaveOptions& options) {
    return saver.Save(session(), path, std::nullopt, options).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(In("m"), {.latest_filename = "a/b"}));
  EXPECT_TRUE(refused(In("m"), {.latest_filename = ""}));
  EXPECT_TRUE(refused(In("checkpoint"), {}));
  EXPECT_TRUE(refused(In("m"), {.latest_filename = "m"}));
  EXPECT_TRUE(refused(In(""), {}));
  EXPECT_FALSE(There(""));
  EXPECT_EQ(saver.Save(session(), "nowhere://m").status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(SaverTest, RestoreNamesWhatIsWrong) {
  Vector("w", {1});
  Saver saver(s);
  const std::string path = *saver.Save(session(), In("m"));
  absl::Status status = saver.Restore(session(), In("other"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(In("other")));
  {
    std::fstream data(In("m.data-00000-of-00001"));
    data.put('x');
  }
  status = saver.Restore(session(), path);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'w'"));
}

TEST_F(SaverTest, AStateFileThatPointsNowhere) {
  Vector("w", {1});
  Saver saver(s);
  EXPECT_TRUE(absl::IsNotFound(LatestCheckpoint(folder_).status()));
  ASSERT_TRUE(saver.Save(session(), In("m"), 1).ok());
  ASSERT_TRUE(RemoveCheckpoint(In("m-1")).ok());
  const absl::Status status = LatestCheckpoint(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(In("checkpoint")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(In("m-1")));
}

TEST_F(SaverTest, StateFilesOfOtherNames) {
  Vector("w", {1});
  Saver saver(s);
  ASSERT_TRUE(saver.Save(session(), In("m"), 1, {.latest_filename = "best"}).ok());
  EXPECT_FALSE(There("checkpoint"));
  EXPECT_EQ(*LatestCheckpoint(folder_, "best"), In("m-1"));
  ASSERT_TRUE(saver.Save(session(), In("m"), 2, {.write_state = false}).ok());
  EXPECT_EQ(*LatestCheckpoint(folder_, "best"), In("m-1"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(In("m-1")));
}

TEST_F(SaverTest, TheGlobalStepIsInTheName) {
  const ModelVariable step = GlobalStep(s);
  Saver saver(s, {}, {.pad_step_number = true});
  ASSERT_TRUE(session().RunTargets({step.AssignAdd(s, int64_t{41})}).ok());
  EXPECT_EQ(*saver.Save(session(), In("m"), step), In("m-00000041"));
}

TEST_F(SaverTest, TheMetaGraphIsBeside) {
  const ModelVariable w = Vector("w", {1, 2});
  PartitionedVariable(s, Shape({3}), 2, OnesInitializer(), "table");
  Saver saver(s, {}, {.max_to_keep = 1});
  SaveOptions options;
  options.meta_graph_suffix = "graph";
  ASSERT_TRUE(saver.Save(session(), In("m"), 1, options).ok());
  ASSERT_TRUE(saver.Save(session(), In("m"), 2, options).ok());
  EXPECT_FALSE(There("m-1.graph"));
  ASSERT_TRUE(saver.Save(session(), In("without"), 3, {.write_meta_graph = nullptr}).ok());
  EXPECT_FALSE(There("without-3.meta"));
  ASSERT_TRUE(saver.Save(session(), In("m"), 4, options).ok());

  // Another program goes on from it.
  MetaGraphDef meta;
  ASSERT_TRUE(ReadMetaGraph(In("m-4.graph"), &meta).ok());
  auto graph = std::make_shared<Graph>();
  const auto imported = ImportMetaGraph(meta, {.import_scope = "other"}, graph.get());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto restores = Saver::FromProto(*graph, *imported->saver_def);
  ASSERT_TRUE(restores.ok()) << restores.status();
  const auto there = *Session::Create(graph, {.threads = 1});
  const absl::Status status = (*restores)->Restore(*there, In("m-4"));
  ASSERT_TRUE(status.ok()) << status;
  std::vector<Tensor> values;
  ASSERT_TRUE(there->Run({}, {"other/w/read"}, {}, &values).ok());
  EXPECT_EQ(values[0].unchecked_values<float>()[1], 2);
  // The parts are known for what they are.
  const auto saveables = SaveablesOfGraph(*graph);
  ASSERT_TRUE(saveables.ok()) << saveables.status();
  ASSERT_EQ(saveables->size(), 3u);
  EXPECT_EQ((*saveables)[2].tensors()[0].shape_and_slice, "3 2,1");
}

TEST(MetaGraphFile, IsOfTheWhole) {
  EXPECT_EQ(MetaGraphFile("a/model-7"), "a/model-7.meta");
  EXPECT_EQ(MetaGraphFile("model-7-\?\?\?\?\?-of-00003"), "model-7.meta");
  EXPECT_EQ(MetaGraphFile("model-7-00001-of-00003", "x"), "model-7.x");
  EXPECT_EQ(MetaGraphFile("-of-3"), "-of-3.meta");
  EXPECT_EQ(MetaGraphFile("one-of-3"), "one-of-3.meta");
  EXPECT_EQ(MetaGraphFile("-1-of-3"), ".meta");
  EXPECT_EQ(MetaGraphFile(""), ".meta");
}

TEST_F(SaverTest, OfTheGraphsCollection) {
  Vector("w", {1});
  const auto made = Saver::OfGraph(s);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE((*made)->ToProto().sharded());
  ASSERT_EQ(s.graph()->Collection(collections::kSavers).size(), 1u);
  const int nodes = s.graph()->num_nodes();
  const auto found = Saver::OfGraph(s);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(s.graph()->num_nodes(), nodes);
  EXPECT_TRUE((*found)->Save(session(), In("m"), 1).ok());
  (*made)->AddToCollection(s.graph().get());
  EXPECT_EQ(Saver::OfGraph(s).status().code(), absl::StatusCode::kFailedPrecondition);
  s.graph()->ClearCollection(collections::kSavers);
  s.graph()->AddToCollection(collections::kSavers, "\xff");
  EXPECT_EQ(Saver::OfGraph(s).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SaverTest, ProtosAndScopes) {
  Vector("w", {1});
  Saver saver(s.NewSubScope("model"), {}, {.name = "keeper"});
  ASSERT_TRUE(s.ok()) << s.status();
  const SaverDef def = saver.ToProto();
  EXPECT_EQ(def.save_tensor_name(), "model/keeper/control_dependency:0");
  EXPECT_EQ(saver.ToProto("model")->restore_op_name(), "keeper/restore_all");
  EXPECT_EQ(saver.ToProto("other"), nullptr);
  const auto again =
      Saver::FromProto(*s.graph(), *saver.ToProto("model"), SaverOptions{.name = "model"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE((*again)->Save(session(), In("m")).ok());
  EXPECT_EQ(Saver::FromProto(*s.graph(), *saver.ToProto("model")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Saver::FromProto(*s.graph(), SaverDef()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SaverTest, RestoresInPieces) {
  // 5 variables of 24 MiB: two at a time.
  const Shape shape({6, 1024, 1024});
  std::vector<ModelVariable> variables;
  for (int i = 0; i < 5; ++i) {
    variables.emplace_back(s, shape, ZerosInitializer(), "v" + std::to_string(i));
  }
  Saver saver(s), sequential(s, {}, {.name = "sequential", .restore_sequentially = true});
  ASSERT_TRUE(s.ok()) << s.status();
  const auto count = [&](const std::string& prefix) {
    int reads = 0;
    for (const Node* node : s.graph()->nodes()) {
      reads += node->op() == "RestoreV2" && node->name().starts_with(prefix) ? 1 : 0;
    }
    return reads;
  };
  EXPECT_EQ(count("save/"), 3);
  EXPECT_EQ(count("sequential/"), 5);
  ASSERT_TRUE(saver.Save(session(), In("m")).ok());
  EXPECT_TRUE(saver.Restore(session(), In("m")).ok());
  EXPECT_TRUE(sequential.Restore(session(), In("m")).ok());
}

TEST_F(SaverTest, ShardsOfDevices) {
  const ModelVariable here(s.WithDevice("/device:CPU:0"), Const(s, 1.0f), "here");
  const ModelVariable there(s.WithDevice("/device:CPU:1"), Const(s, 2.0f), "there");
  Saver saver(s, {}, {.sharded = true});
  Node* const init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = *Session::Create(s.graph(), {.threads = 2, .num_cpu_devices = 2});
  ASSERT_TRUE(session->RunTargets({init}).ok());
  const auto saved = saver.Save(*session, In("m"), 1);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_TRUE(There("m-1.data-00001-of-00002"));
  EXPECT_FALSE(There("m-1_temp"));
  ASSERT_TRUE(session->RunTargets({here.Assign(s, 0.0f), there.Assign(s, 0.0f)}).ok());
  ASSERT_TRUE(saver.Restore(*session, *saved).ok());
  EXPECT_EQ((*session->Run({there.value()}))[0].unchecked_scalar<float>(), 2);
}

TEST_F(SaverTest, TablesAreSavedWithVariables) {
  Vector("w", {1});
  const MutableHashTable words(s, ElementType::kString, ElementType::kInt64,
                               Tensor::Scalar<int64_t>(-1), {.name = "words"});
  const MutableHashTable scratch(s, ElementType::kString, ElementType::kInt64,
                                 Tensor::Scalar<int64_t>(-1),
                                 {.name = "scratch", .checkpoint = false});
  const std::vector<std::string> ab = {"a", "b"}, bc = {"b", "c"};
  Node* const insert =
      words.Insert(s, Tensor::Vector<std::string>(ab), Tensor::Vector<int64_t>({10, 20}));
  Node* const remove = words.Remove(s, Tensor::Vector<std::string>(ab));
  const Output found = words.Lookup(s, Tensor::Vector<std::string>(bc));
  Saver saver(s);
  ASSERT_TRUE(session().RunTargets({insert}).ok());
  const auto path = saver.Save(session(), In("m"), 1);
  ASSERT_TRUE(path.ok()) << path.status();
  std::vector<std::string> names;
  const auto variables = ListVariables(*path);
  ASSERT_TRUE(variables.ok()) << variables.status();
  for (const CheckpointVariable& variable : *variables) names.push_back(variable.name);
  EXPECT_THAT(names, ElementsAre("w", "words-keys", "words-values"));
  // TensorFlow takes no names for objects that can be saved.
  MetaGraphDef meta;
  ASSERT_TRUE(ReadMetaGraph(*path + ".meta", &meta).ok());
  EXPECT_EQ(meta.collection_def().count("saveable_objects"), 0);
  ASSERT_TRUE(session().RunTargets({remove}).ok());
  const absl::Status status = saver.Restore(session(), *path);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ((*session().Run({found}))[0].ToString(), "int64[2] [20 -1]");
}

// Two savers of one folder, as two programs by mistake: each checkpoint is whole, and the state
// file is that of one of them.
TEST_F(SaverTest, TwoWritersOfOneFolder) {
  Vector("w", {1, 2, 3});
  Saver one(s), two(s);
  Session& shared = session();
  const auto save = [&](Saver* saver, const std::string& name) {
    for (int step = 0; step < 20; ++step) {
      const auto saved = saver->Save(shared, In(name), step);
      EXPECT_TRUE(saved.ok()) << saved.status();
    }
  };
  std::thread other([&] { save(&two, "b"); });
  save(&one, "a");
  other.join();
  const auto latest = LatestCheckpoint(folder_);
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_TRUE(*latest == In("a-19") || *latest == In("b-19")) << *latest;
  for (const std::string name : {"a-19", "b-19", "a-15", "b-15"}) {
    EXPECT_TRUE(LoadVariable(In(name), "w").ok()) << name;
  }
}

}  // namespace
}  // namespace troupe
