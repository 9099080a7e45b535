// SavedModels that are written here, loaded again; MetaGraphs beside checkpoints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "api/training/saver.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/local_file_system.h"
#include "tests/api/saved_model/recorded.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Code = absl::StatusCode;
namespace fs = std::filesystem;

std::string Contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class SavedModelBuilderTest : public testing::Test {
 protected:
  SavedModelBuilderTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(In("words.txt")) << "zero\none\n";
    fs::create_directories(In("other"));
    std::ofstream(In("other/words.txt")) << "two\n";
    x_ = ops::Placeholder(s_.WithOpName("x"), ElementType::kFloat, {.shape = PartialShape({-1})});
    w_ = ModelVariable(s_.WithDevice("/device:CPU:0"), Const(s_, 3.0F), "w");
    y_ = ops::Mul(s_.WithOpName("y"), x_, w_.value());
    words_ = Const(s_, Tensor::Scalar(In("words.txt")));
    path_ = ModelVariable::Local(s_, Const(s_, Tensor::Scalar(std::string())), "path");
    fill_ = path_.Assign(s_, words_);
    Node* const init = GlobalVariablesInitializer(s_);
    EXPECT_TRUE(s_.ok()) << s_.status();
    session_ = *Session::Create(s_.graph());
    EXPECT_TRUE(session_->RunTargets({init}).ok());
    options_.signatures["serving_default"] = MakeSignature({{"in", x_}}, {{"out", y_}});
  }
  ~SavedModelBuilderTest() override { fs::remove_all(folder_); }

  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  SavedModelBuilder Builder() const {
    auto builder = SavedModelBuilder::Create(In("model"));
    EXPECT_TRUE(builder.ok()) << builder.status();
    return *std::move(builder);
  }

  const std::string folder_ = testing::TempDir() + "troupe_saved_model_builder";
  Scope s_ = Scope::NewRoot();
  Output x_, y_, words_;
  ModelVariable w_, path_;
  Node* fill_;
  std::unique_ptr<Session> session_;
  SavedMetaGraph options_;
};

TEST_F(SavedModelBuilderTest, WhatIsWrittenIsLoaded) {
  options_.assets = {words_, Const(s_, Tensor::Scalar(In("other/words.txt"))),
                     Const(s_, Tensor::Scalar(In("words.txt")))};
  options_.initializer = fill_;
  options_.clear_devices = true;
  options_.strip_default_attrs = true;
  SavedModelBuilder builder = Builder();
  absl::Status status = builder.AddMetaGraphAndVariables(*session_, {"serve"}, options_);
  ASSERT_TRUE(status.ok()) << status;
  status = builder.AddMetaGraph(s_.graph(), {"train", "gpu"}, options_);
  ASSERT_TRUE(status.ok()) << status;
  // No model before it is whole.
  EXPECT_FALSE(IsSavedModel(In("model")));
  const auto file = builder.Save();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file, In("model/saved_model.pb"));
  EXPECT_EQ(Contents(In("model/assets/words.txt")), "zero\none\n");
  EXPECT_EQ(Contents(In("model/assets/words.txt_1")), "two\n");
  EXPECT_FALSE(fs::exists(In("model/assets/words.txt_2")));
  EXPECT_FALSE(fs::exists(In("model/variables/checkpoint")));
  fs::rename(In("model"), In("moved"));

  for (const std::vector<std::string>& tags :
       {std::vector<std::string>{"serve"}, {"gpu", "train"}}) {
    auto model = LoadSavedModel(In("moved"), tags);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto outputs = model->Run("serving_default", {{"in", Tensor::Vector<float>({1, 2})}});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), 1);
    EXPECT_EQ((*outputs)[0].first, "out");
    EXPECT_EQ((*outputs)[0].second.unchecked_data<float>()[1], 6.0F);
    std::vector<Tensor> path;
    ASSERT_TRUE(model->session->Run({}, {path_.value().name()}, {}, &path).ok());
    EXPECT_EQ(path[0].unchecked_scalar<std::string>(), In("moved/assets/words.txt"));
    for (const Node* node : model->session->graph()->nodes()) {
      EXPECT_EQ(node->requested_device(), "") << node->name();
    }
    // What was loaded is saved again, with its own saver.
    auto again = SavedModelBuilder::Create(In("again"));
    SavedMetaGraph same;
    same.saver = model->meta_graph.saver_def();
    same.signatures["serving_default"] = **model->Signature("serving_default");
    status = again->AddMetaGraphAndVariables(*model->session, {"serve"}, same);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(again->Save(/*as_text=*/true).ok());
    auto second = LoadSavedModel(In("again"), {"serve"});
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ((*second->Run("serving_default", {{"in", Tensor::Vector<float>({4})}}))[0]
                  .second.unchecked_data<float>()[0],
              12.0F);
    fs::remove_all(In("again"));
  }
}

TEST_F(SavedModelBuilderTest, AModelWithoutVariables) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat);
  const Output y = ops::Neg(s, x);
  const auto session = *Session::Create(s.graph());
  SavedModelBuilder builder = Builder();
  SavedMetaGraph options;
  options.signatures["negate"] = MakeSignature({{"x", x}}, {{"y", y}});
  ASSERT_TRUE(builder.AddMetaGraphAndVariables(*session, {"serve"}, options).ok());
  ASSERT_TRUE(builder.Save().ok());
  auto model = LoadSavedModel(In("model"), {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(
      (*model->Run("negate", {{"x", Tensor::Scalar(2.0F)}}))[0].second.unchecked_scalar<float>(),
      -2.0F);
}

TEST_F(SavedModelBuilderTest, RefusesWhatDoesNotFit) {
  const auto refused = [&](const std::function<void(SavedMetaGraph*)>& change) {
    SavedMetaGraph options = options_;
    change(&options);
    fs::remove_all(In("model"));
    SavedModelBuilder builder = Builder();
    const absl::Status status = builder.AddMetaGraphAndVariables(*session_, {"serve"}, options);
    EXPECT_FALSE(status.ok());
    return status.code();
  };
  EXPECT_EQ(refused([](auto* o) { o->signatures["__saved_model_init_op"] = {}; }),
            Code::kInvalidArgument);
  EXPECT_EQ(
      refused([](auto* o) { (*o->signatures["bad"].mutable_inputs())["x"].set_name("nobody:0"); }),
      Code::kInvalidArgument);
  EXPECT_EQ(refused([&](auto* o) { o->assets = {x_}; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([&](auto* o) { o->assets = {Const(s_, 1.0F)}; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([&](auto* o) { o->assets = {Const(s_, Tensor::Scalar(In("nowhere.txt")))}; }),
            Code::kNotFound);
  EXPECT_EQ(refused([](auto* o) {
              o->saver = SaverDef();
              o->saver->set_restore_op_name("nobody");
            }),
            Code::kInvalidArgument);

  fs::remove_all(In("model"));
  SavedModelBuilder builder = Builder();
  EXPECT_EQ(builder.Save().status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(builder.AddMetaGraph(s_.graph(), {"serve"}).code(), Code::kFailedPrecondition);
  ASSERT_TRUE(builder.AddMetaGraphAndVariables(*session_, {"serve"}, options_).ok());
  EXPECT_EQ(builder.AddMetaGraphAndVariables(*session_, {"b"}).code(), Code::kFailedPrecondition);
  EXPECT_EQ(builder.AddMetaGraph(s_.graph(), {"serve"}).code(), Code::kInvalidArgument);
  ASSERT_TRUE(builder.Save().ok());
  EXPECT_EQ(SavedModelBuilder::Create(In("model")).status().code(), Code::kAlreadyExists);
  EXPECT_FALSE(SavedModelBuilder::Create(In("words.txt/model")).ok());
}

TEST_F(SavedModelBuilderTest, UnsetVariablesAreTold) {
  const auto fresh = *Session::Create(s_.graph());
  SavedModelBuilder builder = Builder();
  const absl::Status status = builder.AddMetaGraphAndVariables(*fresh, {"serve"}, options_);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
}

TEST_F(SavedModelBuilderTest, ASaverWritesTheMetaGraphBeside) {
  Saver saver(s_);
  ASSERT_TRUE(s_.ok()) << s_.status();
  const auto prefix = saver.Save(*session_, In("run/model"), 7);
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  MetaGraphDef def;
  ASSERT_TRUE(ReadMetaGraph(*prefix + ".meta", &def).ok());
  auto graph = std::make_shared<Graph>();
  const auto imported = ImportMetaGraph(def, {.import_scope = "copy"}, graph.get());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto restored = Saver::FromProto(*graph, *imported->saver_def);
  ASSERT_TRUE(restored.ok()) << restored.status();
  const auto session = *Session::Create(graph);
  ASSERT_TRUE((*restored)->Restore(*session, *prefix).ok());
  std::vector<Tensor> values;
  ASSERT_TRUE(session->Run({}, {"copy/" + w_.value().name()}, {}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), 3.0F);
}

TEST_F(SavedModelBuilderTest, SlicesOfImportedVariablesStaySlices) {
  MetaGraphDef def;
  ASSERT_TRUE(ReadMetaGraph(Recorded("training.meta"), &def).ok());
  auto graph = std::make_shared<Graph>();
  const auto imported = ImportMetaGraph(def, {}, graph.get());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto session = *Session::Create(graph);
  ASSERT_TRUE(session
                  ->Run({{imported->saver_def->filename_tensor_name(),
                          Tensor::Scalar(Recorded("training"))}},
                        {}, {imported->saver_def->restore_op_name()}, nullptr)
                  .ok());
  Scope scope(graph);
  Saver saver(scope.NewSubScope("again"));
  ASSERT_TRUE(scope.ok()) << scope.status();
  const auto prefix = saver.Save(*session, In("slices"));
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  const auto files = NewLocalFileSystem();
  const auto ours = OpenCheckpoint(files.get(), *prefix);
  const auto theirs = OpenCheckpoint(files.get(), Recorded("training"));
  ASSERT_TRUE(ours.ok() && theirs.ok());
  std::vector<std::string> names, expected;
  for (const auto& [name, tensor] : (*ours)->tensors()) names.push_back(name);
  for (const auto& [name, tensor] : (*theirs)->tensors()) {
    expected.push_back(name);
    const auto a = (*ours)->Read(name), b = (*theirs)->Read(name);
    ASSERT_TRUE(a.ok() && b.ok()) << name << a.status() << b.status();
    EXPECT_EQ(a->shape(), b->shape()) << name;
    EXPECT_EQ(std::memcmp(a->raw_data(), b->raw_data(), b->bytes()), 0) << name;
  }
  EXPECT_EQ(names, expected);
  EXPECT_EQ((*ours)->tensors().at("halves").slices.size(), 2);
}

}  // namespace
}  // namespace troupe
