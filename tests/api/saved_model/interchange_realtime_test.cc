// TensorFlow loads MetaGraphs and SavedModels that we write, and we load those
// that it writes. Skipped where Python has no tensorflow: the Python that the
// environment variable TROUPE_PEERS_PYTHON names, or python3.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/program/run_python.h"
#include "tests/api/saved_model/recorded.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

Json ToJson(const Tensor& tensor) {
  const float* const values = tensor.unchecked_data<float>();
  if (tensor.rank() == 0) return values[0];
  Json json = Json::array();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) json.push_back(values[i]);
  return json;
}

class SavedModelInterchange : public testing::Test {
 protected:
  void SetUp() override {
    if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }

  /// A training with all that a MetaGraph can say of it, and what one more step
  /// gives.
  void WriteTraining(Json* expected) {
    Scope s = Scope::NewRoot();
    const Output x =
        ops::Placeholder(s.WithOpName("x"), ElementType::kFloat, {.shape = PartialShape({2})});
    const ModelVariable w(s.WithDevice("/device:CPU:0"), Const(s, Tensor::Vector<float>({1, 2})),
                          "w");
    ModelVariable::Local(s, Const(s, 1.0F), "local");
    const Output queue = ops::FIFOQueueV2(s.WithOpName("queue"), {ElementType::kFloat});
    const QueueRunner runner(s, queue, {ops::QueueEnqueueV2(s, queue, {Const(s, 7.0F)})});
    ops::QueueDequeueV2(s.WithOpName("example"), queue, {ElementType::kFloat});
    const Output loss = ReduceSum(s, ops::Square(s, ops::Mul(s, x, w.value())));
    s.graph()->AddToCollection(collections::kLosses, loss.name());
    s.graph()->AddToCollection("words", "plain");
    MomentumOptimizer optimizer(0.125F, 0.5F);
    const ModelVariable step = GlobalStep(s);
    Node* const train = optimizer.Minimize(s, loss, step);
    Saver saver(s);
    saver.AddToCollection(s.graph().get());
    Node* const init = GlobalVariablesInitializer(s);
    ASSERT_TRUE(s.ok()) << s.status();

    const auto session = *Session::Create(s.graph());
    const FeedMap feed = {{x, Tensor::Vector<float>({1, 0.5F})}};
    ASSERT_TRUE(session->RunTargets({init}).ok());
    ASSERT_TRUE(session->RunTargets({train}, feed).ok());
    ASSERT_TRUE(saver.Save(*session, In("training")).ok());
    ExportMetaGraphOptions options;
    options.saver_def = saver.ToProto();
    ASSERT_TRUE(WriteMetaGraph(*s.graph(), options, In("training.meta")).ok());
    options.strip_default_attrs = true;
    ASSERT_TRUE(WriteMetaGraph(*s.graph(), options, In("training.meta.txt")).ok());
    (*expected)["metas"] = {"training.meta", "training.meta.txt"};
    (*expected)["x"] = {1, 0.5};
    (*expected)["w"] = ToJson((*session->Run({w.value()}))[0]);
    ASSERT_TRUE(session->RunTargets({train}, feed).ok());
    (*expected)["loss"] = ToJson((*session->Run(feed, {loss}))[0]);
    (*expected)["step"] = 2;
  }

  /// A model with two graphs, an asset and an initializer.
  void WriteModel(const std::string& name, bool as_text, Json* expected) {
    auto builder = SavedModelBuilder::Create(In(name));
    ASSERT_TRUE(builder.ok()) << builder.status();
    std::ofstream(In("words.txt")) << "zero\none\n";
    for (const bool serve : {true, false}) {
      Scope s = Scope::NewRoot();
      const Output x =
          ops::Placeholder(s.WithOpName("x"), ElementType::kFloat, {.shape = PartialShape({-1})});
      const ModelVariable w(s, Const(s, 3.0F), "w");
      const ModelVariable b(s.WithDevice("/device:GPU:7"), Const(s, 0.5F), "b");
      Output y = ops::Add(s, ops::Mul(s, x, w.value()), b.value());
      const Output file = Const(s.WithOpName("words"), Tensor::Scalar(In("words.txt")));
      const ModelVariable path =
          ModelVariable::Local(s, Const(s, Tensor::Scalar(std::string())), "path");
      Node* const fill = path.Assign(s, file);
      ops::Identity(s.WithOpName("words_path"), path.value());
      Node* const init = GlobalVariablesInitializer(s);
      ASSERT_TRUE(s.ok()) << s.status();
      SavedMetaGraph options;
      options.signatures[saved_model::kDefaultSignature] = MakeSignature({{"x", x}}, {{"y", y}});
      options.assets = {file};
      options.initializer = fill;
      options.clear_devices = true;
      options.strip_default_attrs = serve;
      SessionOptions soft;
      soft.allow_soft_placement = true;
      const auto session = *Session::Create(s.graph(), soft);
      ASSERT_TRUE(session->RunTargets({init}).ok());
      const absl::Status added =
          serve ? builder->AddMetaGraphAndVariables(*session, {"serve"}, options)
                : builder->AddMetaGraph(s.graph(), {"train", "gpu"}, options);
      ASSERT_TRUE(added.ok()) << added;
      const auto got = session->Run({{x, Tensor::Vector<float>({1, 0.5F})}}, {y});
      ASSERT_TRUE(got.ok()) << got.status();
      (*expected)["y"] = ToJson((*got)[0]);
    }
    const auto saved = builder->Save(as_text);
    ASSERT_TRUE(saved.ok()) << saved.status();
    (*expected)["models"].push_back(name);
  }

  const std::string folder_ = testing::TempDir() + "troupe_saved_model_interchange";
};

TEST_F(SavedModelInterchange, TensorFlowLoadsOurs) {
  Json expected;
  WriteTraining(&expected);
  WriteModel("saved", /*as_text=*/false, &expected);
  WriteModel("saved_text", /*as_text=*/true, &expected);
  ASSERT_FALSE(HasFatalFailure());
  std::ofstream(In("expected.json")) << expected.dump();
  const std::string output = RunPython({"tests/api/saved_model/load_with_tensorflow.py", folder_});
  EXPECT_TRUE(output.ends_with("all agree\n")) << output;
}

TEST_F(SavedModelInterchange, WeLoadTensorFlows) {
  const std::string output = RunPython({"scripts/golden/record_saved_models.py", In("theirs")});
  if (output.find("The recorded files are TensorFlow") != std::string::npos) {
    GTEST_SKIP() << output;  // Another version.
  }
  for (const RecordedCase& c : RecordedCases()) ExpectLoadsAndGives(In("theirs"), c);
}

}  // namespace
}  // namespace troupe
