// SavedModels that TensorFlow has written, loaded, run, frozen; and damaged ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/saved_model/recorded.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;
namespace fs = std::filesystem;

TEST(LoadSavedModel, GivesWhatTensorFlowGave) {
  for (const RecordedCase& c : RecordedCases()) ExpectLoadsAndGives(Recorded(""), c);
}

TEST(LoadSavedModel, RunsTheInitializerWithTheAssets) {
  auto model = LoadSavedModel(Recorded("v1"), {saved_model::kServe});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<Tensor> text;
  ASSERT_TRUE(model->session->Run({}, {"text/Read/ReadVariableOp:0"}, {}, &text).ok());
  EXPECT_EQ(text[0].unchecked_scalar<std::string>(), Recorded("v1") + "/assets/words.txt");
}

TEST(LoadSavedModel, VariablesAreKnown) {
  auto model = LoadSavedModel(Recorded("v1"), {saved_model::kServe});
  ASSERT_TRUE(model.ok()) << model.status();
  const Graph& graph = *model->session->graph();
  const std::vector<ModelVariable> variables = ModelVariable::Trainable(graph);
  ASSERT_EQ(variables.size(), 2);
  EXPECT_EQ(variables[0].name(), "w");
  EXPECT_FALSE(variables[0].is_resource());
  EXPECT_EQ(variables[0].shape().ToString(), "[3,2]");
  EXPECT_EQ(variables[1].name(), "r");
  EXPECT_TRUE(variables[1].is_resource());
  const auto values = model->session->Run({variables[0].value(), variables[1].value()});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[1].unchecked_data<float>()[1], 2.0F);
}

TEST(SavedModelBundle, RefusesUnknownNames) {
  auto model = LoadSavedModel(Recorded("v2"), {saved_model::kServe});
  ASSERT_TRUE(model.ok()) << model.status();
  absl::Status status = model->Run("classify", {}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it has count, lookup, serving_default"));
  status = model->Run("count", {{"x", Tensor::Scalar(int64_t{1})}}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no input 'x'; it has n"));
  // Fed by nobody, of the wrong type.
  EXPECT_EQ(model->Run("count", {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->Run("count", {{"n", Tensor::Scalar(1.0F)}}).status().code(),
            Code::kInvalidArgument);
}

TEST(FreezeGraph, GivesTheSameWithoutVariables) {
  for (const RecordedCase& c : RecordedCases()) {
    SCOPED_TRACE(StrCat(c.model, " ", c.run));
    auto model = LoadSavedModel(Recorded(c.model), c.tags);
    ASSERT_TRUE(model.ok()) << model.status();
    const SignatureDef& signature = **model->Signature(c.signature);
    NamedTensors feeds = RecordedInputs(*model, c);
    for (auto& [name, value] : feeds) name = signature.inputs().at(name).name();
    NamedTensors outputs;
    std::vector<std::string> fetches;
    for (const SignatureTensor& output : SignatureTensors(signature.outputs())) {
      outputs.emplace_back(output.name, Tensor());
      fetches.push_back(output.tensor);
    }
    const auto frozen = FreezeGraph(*model->session, fetches);
    if (c.signature == "count") {
      EXPECT_EQ(frozen.status().code(), Code::kFailedPrecondition);
      EXPECT_THAT(std::string(frozen.status().message()), HasSubstr("AssignAddVariableOp"));
      continue;
    }
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    for (const NodeDef& node : frozen->node()) {
      EXPECT_THAT(node.op(), testing::Not(HasSubstr("Var"))) << node.name();
    }
    auto graph = std::make_shared<Graph>();
    const absl::Status imported = ImportGraphDef(*frozen, {}, graph.get());
    ASSERT_TRUE(imported.ok()) << imported;
    auto session = Session::Create(graph);
    std::vector<Tensor> values;
    const absl::Status run = (*session)->Run(feeds, fetches, {}, &values);
    if (c.model == "tables") {  // They are no variables.
      EXPECT_EQ(run.code(), Code::kFailedPrecondition) << run;
      continue;
    }
    ASSERT_TRUE(run.ok()) << run;
    for (size_t i = 0; i < values.size(); ++i) outputs[i].second = values[i];
    ExpectRecorded(outputs, RecordedRunOf(c.model, c.run).outputs);
  }
}

TEST(FreezeGraph, RefusesWhatIsNotThere) {
  auto model = LoadSavedModel(Recorded("v1"), {saved_model::kServe});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(FreezeGraph(*model->session, {"nobody"}).status().code(), Code::kNotFound);
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 1.0F), "w");
  const auto session = *Session::Create(s.graph());
  const absl::Status unset = FreezeGraph(*session, {w.value().name()}).status();
  EXPECT_EQ(unset.code(), Code::kFailedPrecondition) << unset;
  EXPECT_THAT(std::string(unset.message()), HasSubstr("w"));
}

/// A copy of a recorded model that a test may damage.
class DamagedModel : public testing::Test {
 protected:
  DamagedModel() : folder_(testing::TempDir() + "troupe_damaged_model") {
    fs::remove_all(folder_);
    fs::copy(Recorded("v2"), folder_, fs::copy_options::recursive);
  }
  ~DamagedModel() override { fs::remove_all(folder_); }

  absl::Status Load(const std::vector<std::string>& tags = {"serve"}) const {
    return LoadSavedModel(folder_, tags).status();
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }

  const std::string folder_;
};

TEST_F(DamagedModel, MissingParts) {
  ASSERT_TRUE(Load().ok());
  absl::Status status = Load({"serve", "gpu"});
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("{gpu, serve}; those there are: {serve}"));
  EXPECT_EQ(Load({}).code(), Code::kNotFound);

  fs::rename(folder_ + "/variables", folder_ + "/elsewhere");
  status = Load();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("variables/variables.index"));
  fs::rename(folder_ + "/elsewhere", folder_ + "/variables");

  fs::remove(folder_ + "/variables/variables.data-00000-of-00001");
  EXPECT_EQ(Load().code(), Code::kNotFound);

  fs::remove(folder_ + "/saved_model.pb");
  status = Load();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("neither saved_model.pb nor"));
  EXPECT_EQ(LoadSavedModel(folder_ + "/nowhere", {"serve"}).status().code(), Code::kNotFound);
}

TEST_F(DamagedModel, CutOffAnywhere) {
  const std::string bytes = Read("saved_model.pb");
  for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
    Write("saved_model.pb", bytes.substr(0, size));
    const absl::Status status = Load();
    EXPECT_EQ(status.code(), Code::kDataLoss) << size << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("saved_model.pb"));
  }
}

TEST_F(DamagedModel, AlteredBytesAreErrorsOrHarmless) {
  const std::string bytes = Read("saved_model.pb");
  for (size_t at = 0; at < bytes.size(); at += 211) {
    std::string altered = bytes;
    altered[at] ^= 0x15;
    Write("saved_model.pb", altered);
    Load().IgnoreError();  // must not crash, hang or take all memory
  }
}

TEST_F(DamagedModel, DamagedVariablesAreRefused) {
  const std::string name = "variables/variables.data-00000-of-00001";
  std::string bytes = Read(name);
  bytes[5] ^= 1;
  Write(name, bytes);
  const absl::Status status = Load();
  EXPECT_EQ(status.code(), Code::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("variables cannot be restored"));
}

TEST_F(DamagedModel, TextFormAndStrangeContents) {
  const auto model = ReadSavedModel(folder_);
  ASSERT_TRUE(model.ok());
  fs::remove(folder_ + "/saved_model.pb");
  Write("saved_model.pbtxt", model->DebugString());
  EXPECT_TRUE(Load().ok()) << Load();
  for (const char* text :
       {"", "meta_graphs { graph_def { node { name: 'a' ", "node { name: 'a' }"}) {
    Write("saved_model.pbtxt", text);
    EXPECT_EQ(Load().code(), Code::kDataLoss) << text;
  }
  // Assets that are not in the folder.
  for (const char* file : {"/etc/passwd", "../secret", "a/../../secret", ""}) {
    SavedModel bad = *model;
    AssetFileDef* asset = bad.mutable_meta_graphs(0)->add_asset_file_def();
    asset->mutable_tensor_info()->set_name("Const:0");
    asset->set_filename(file);
    Write("saved_model.pbtxt", bad.DebugString());
    const absl::Status status = Load();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << file << ": " << status;
  }
  // An initializer that is not there.
  SavedModel bad = *model;
  auto& outputs = *(*bad.mutable_meta_graphs(0)->mutable_signature_def())["__saved_model_init_op"]
                       .mutable_outputs();
  outputs["__saved_model_init_op"].set_name("nobody");
  Write("saved_model.pbtxt", bad.DebugString());
  EXPECT_EQ(Load().code(), Code::kNotFound);
  outputs.clear();
  Write("saved_model.pbtxt", bad.DebugString());
  EXPECT_EQ(Load().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
