// MetaGraphs of trainings that TensorFlow has written: restored, gone on with; ours; scopes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "graph/meta_graph.h"
#include "tests/api/saved_model/recorded.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Code = absl::StatusCode;

MetaGraphDef Training(const std::string& name) {
  MetaGraphDef def;
  const std::string file = Recorded(name == "training" ? "training.meta" : name + ".meta.txt");
  const absl::Status status = ReadMetaGraph(file, &def);
  EXPECT_TRUE(status.ok()) << status;
  return def;
}

/// What a training gives when it goes on from its checkpoint.
void GoOn(const ImportedMetaGraph& imported, const std::shared_ptr<Graph>& graph,
          const std::string& name) {
  const auto in = [&](const std::string& tensor) {
    return imported.scope.empty() ? tensor : StrCat(imported.scope, "/", tensor);
  };
  const auto session = *Session::Create(graph);
  ASSERT_TRUE(imported.saver_def.has_value());
  absl::Status status =
      session->Run({{imported.saver_def->filename_tensor_name(), Tensor::Scalar(Recorded(name))}},
                   {}, {imported.saver_def->restore_op_name()}, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  const RecordedRun run = RecordedRunOf(name, "trained");
  const NamedTensors feed = {{in("x"), RecordedTensor(run.inputs, "x", ElementType::kFloat)}};
  std::vector<Tensor> values, more;
  ASSERT_TRUE(session->Run(feed, {in("y")}, {}, &values).ok());
  const std::vector<std::string> train = graph->Collection(collections::kTrainOp);
  ASSERT_EQ(train.size(), 2);  // the optimizer's, and what waits for it
  for (int i = 0; i < 2; ++i) {
    status = session->Run(feed, {}, {train.back()}, nullptr);
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_EQ(graph->Collection(collections::kLosses), std::vector<std::string>({in("loss:0")}));
  const ModelVariable b =
      ModelVariable::FromHandle(*graph, graph->Collection(collections::kVariables)[2]);
  ASSERT_TRUE(b.valid());
  status = session->Run(feed, {in("loss"), b.value().name()}, {}, &more);
  ASSERT_TRUE(status.ok()) << status;
  ExpectRecorded({{"y", values[0]}, {"loss", more[0]}, {"b", more[1]}}, run.outputs);
  // The global step was 1, and two steps have been made.
  const ModelVariable step = GlobalStep(Scope(graph));
  ASSERT_TRUE(step.valid());
  ASSERT_TRUE(session->Run({}, {step.value().name()}, {}, &more).ok());
  EXPECT_EQ(more[0].unchecked_scalar<int64_t>(), 3);
}

TEST(ImportMetaGraph, ATrainingGoesOn) {
  for (const char* name : {"training", "training_resource"}) {
    SCOPED_TRACE(name);
    const MetaGraphDef def = Training(name);
    for (const char* scope : {"", "replica/inner"}) {
      auto graph = std::make_shared<Graph>();
      const auto imported = ImportMetaGraph(def, {.import_scope = scope}, graph.get());
      ASSERT_TRUE(imported.ok()) << imported.status();
      EXPECT_EQ(imported->scope, scope);
      GoOn(*imported, graph, name);
    }
  }
}

TEST(ImportMetaGraph, BringsEveryKindOfCollection) {
  for (const char* name : {"training", "training_resource"}) {
    auto graph = std::make_shared<Graph>();
    ASSERT_TRUE(ImportMetaGraph(Training(name), {.import_scope = "a"}, graph.get()).ok());
    EXPECT_THAT(graph->Collection("numbers"), ElementsAre("5", "-1099511627776"));
    EXPECT_THAT(graph->Collection("rates"), ElementsAre("0.100000001"));
    EXPECT_THAT(graph->Collection("words"), ElementsAre("plain"));
    EXPECT_EQ(graph->Collection("update_ops").size(), 1);
    EXPECT_THAT(graph->Collection("trainable_variables"),
                ElementsAre("a/layer/w", "a/layer/b", "a/halves/part_0", "a/halves/part_1"));
    const auto variables = ModelVariable::Trainable(*graph);
    ASSERT_EQ(variables.size(), 4);
    EXPECT_EQ(variables[0].is_resource(), std::string_view(name) != "training");
    EXPECT_EQ(variables[3].shape().ToString(), "[2,2]");

    // Runners and initializers work in C++.
    const auto runners = QueueRunner::OfGraph(*graph);
    ASSERT_TRUE(runners.ok()) << runners.status();
    ASSERT_EQ(runners->size(), 1);
    Node* const init = GlobalVariablesInitializer(Scope(graph));
    const Output unset = ReportUninitializedVariables(Scope(graph));
    const auto session = *Session::Create(graph);
    EXPECT_EQ((*session->Run({unset}))[0].num_elements(), graph->Collection("variables").size());
    // Slots' and averages' initial values need the variables'.
    std::vector<Node*> first;
    for (const ModelVariable& variable : variables) first.push_back(variable.initializer());
    ASSERT_TRUE(session->RunTargets(first).ok());
    const absl::Status status = session->RunTargets({init});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ((*session->Run({unset}))[0].num_elements(), 0);
    Coordinator coordinator;
    ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
    std::vector<Tensor> example;
    ASSERT_TRUE(session->Run({}, {"a/example"}, {}, &example).ok());
    EXPECT_EQ(example[0].unchecked_data<float>()[2], 3.0F);
    coordinator.RequestStop();
    EXPECT_TRUE(coordinator.Join().ok());
  }
}

TEST(ExportMetaGraph, WritesWhatWasImported) {
  for (const char* name : {"training", "training_resource"}) {
    SCOPED_TRACE(name);
    const MetaGraphDef def = Training(name);
    auto graph = std::make_shared<Graph>();
    auto imported = ImportMetaGraph(def, {.import_scope = "scope"}, graph.get());
    ASSERT_TRUE(imported.ok()) << imported.status();
    ExportMetaGraphOptions options;
    options.export_scope = "scope";
    options.saver_def = imported->saver_def;
    MetaGraphDef again;
    const absl::Status status = ExportMetaGraph(*graph, options, &again);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(again.saver_def().DebugString(), def.saver_def().DebugString());
    ASSERT_EQ(again.collection_def_size(), def.collection_def_size());
    for (const auto& [key, list] : def.collection_def()) {
      const CollectionDef& other = again.collection_def().at(key);
      EXPECT_EQ(other.kind_case(), list.kind_case()) << key;
      ASSERT_EQ(other.bytes_list().value_size(), list.bytes_list().value_size()) << key;
      if (list.kind_case() != CollectionDef::kBytesList) {
        EXPECT_EQ(other.DebugString(), list.DebugString()) << key;
      }
    }
    VariableDef before, after;
    for (int i = 0; i < def.collection_def().at("variables").bytes_list().value_size(); ++i) {
      before.ParseFromString(def.collection_def().at("variables").bytes_list().value(i));
      after.ParseFromString(again.collection_def().at("variables").bytes_list().value(i));
      EXPECT_EQ(after.DebugString(), before.DebugString());
    }
    ASSERT_EQ(again.graph_def().node_size(), def.graph_def().node_size());
    // What is written goes on as well.
    auto other = std::make_shared<Graph>();
    imported = ImportMetaGraph(again, {}, other.get());
    ASSERT_TRUE(imported.ok()) << imported.status();
    GoOn(*imported, other, name);
  }
}

TEST(ExportMetaGraph, OurOwnTraining) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat);
  const Scope device = s.WithDevice("/device:CPU:0");
  const ModelVariable w(device, Const(s, Tensor::Vector<float>({1, 2})), "w");
  const ModelVariable local = ModelVariable::Local(s, Const(s, 1.0F), "local");
  const Output loss = ReduceSum(s, ops::Square(s, ops::Mul(s, x, w.value())));
  s.graph()->AddToCollection(collections::kLosses, loss.name());
  GradientDescentOptimizer optimizer(0.25F);
  Node* const train = optimizer.Minimize(s, loss, GlobalStep(s));
  ASSERT_TRUE(s.ok()) << s.status();
  ExportMetaGraphOptions options;
  options.tags = {"train"};
  options.clear_devices = options.strip_default_attrs = true;
  for (const char* suffix : {".meta", ".meta.txt"}) {
    const std::string file = testing::TempDir() + "troupe_meta_graph_test" + suffix;
    ASSERT_TRUE(WriteMetaGraph(*s.graph(), options, file).ok());
    MetaGraphDef def;
    ASSERT_TRUE(ReadMetaGraph(file, &def).ok());
    std::remove(file.c_str());
    EXPECT_THAT(def.meta_info_def().tags(), ElementsAre("train"));
    EXPECT_TRUE(def.meta_info_def().stripped_default_attrs());
    for (const NodeDef& node : def.graph_def().node()) EXPECT_EQ(node.device(), "");
    EXPECT_EQ(def.collection_def().at("train_op").node_list().value(0), train->name());

    auto graph = std::make_shared<Graph>();
    const auto imported = ImportMetaGraph(def, {}, graph.get());
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_FALSE(imported->saver_def.has_value());
    const auto session = *Session::Create(graph);
    ASSERT_TRUE(session->RunTargets({GlobalVariablesInitializer(Scope(graph))}).ok());
    ASSERT_TRUE(session
                    ->Run({{"x", Tensor::Scalar(1.0F)}}, {},
                          graph->Collection(collections::kTrainOp), nullptr)
                    .ok());
    const auto variables = ModelVariable::Trainable(*graph);
    ASSERT_EQ(variables.size(), 1);
    EXPECT_EQ(variables[0].name(), "w");
    const auto value = session->Run({variables[0].value()});
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ((*value)[0].unchecked_data<float>()[1], 1.0F);
  }
}

TEST(ExportMetaGraph, APartUnderAScopeAndItsUnboundInputs) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat);
  const Scope in = s.NewSubScope("layer");
  const ModelVariable w(in, Const(in, 3.0F), "w");
  const Output y = ops::Mul(in.WithOpName("y"), x, w.value());
  ModelVariable other(s, Const(s, 1.0F), "other");
  ASSERT_TRUE(s.ok() && y.valid()) << s.status();
  MetaGraphDef def;
  ASSERT_TRUE(ExportMetaGraph(*s.graph(), {.export_scope = "layer"}, &def).ok());
  EXPECT_THAT(def.collection_def().at("unbound_inputs").bytes_list().value(),
              ElementsAre("$unbound_inputs_x"));
  EXPECT_EQ(def.collection_def().at("variables").bytes_list().value_size(), 1);

  auto graph = std::make_shared<Graph>();
  const absl::Status unmapped = ImportMetaGraph(def, {}, graph.get()).status();
  EXPECT_EQ(unmapped.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(unmapped.message()), HasSubstr("$unbound_inputs_x"));
  Scope root(graph);
  const Output five = Const(root, 5.0F);
  // Twice: the second time the scope gets a number.
  for (const char* scope : {"first", "first_1"}) {
    const auto imported = ImportMetaGraph(
        def, {.import_scope = "first", .input_map = {{"$unbound_inputs_x", five}}}, graph.get());
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->scope, scope);
  }
  EXPECT_THAT(graph->Collection("variables"), ElementsAre("first/w/handle", "first_1/w/handle"));
  const auto session = *Session::Create(graph);
  ASSERT_TRUE(session->RunTargets({GlobalVariablesInitializer(root)}).ok());
  std::vector<Tensor> values;
  ASSERT_TRUE(session->Run({}, {"first/y", "first_1/y"}, {}, &values).ok());
  EXPECT_EQ(values[1].unchecked_scalar<float>(), 15.0F);
}

TEST(ExportMetaGraph, SignaturesGoAlong) {
  Scope s = Scope::NewRoot();
  const Scope in = s.NewSubScope("layer");
  const Output x = ops::Placeholder(in.WithOpName("x"), ElementType::kFloat);
  const Output y = ops::Neg(in.WithOpName("y"), x);
  ASSERT_TRUE(s.ok() && y.valid()) << s.status();
  SignatureDef call;
  call.set_method_name("layer/predict");
  (*call.mutable_inputs())["layer/in"].set_name("layer/x:0");
  TensorInfo& rows = (*call.mutable_outputs())["out"];
  rows.mutable_composite_tensor()->add_components()->set_name("layer/y:0");
  rows.mutable_composite_tensor()->add_components()->mutable_coo_sparse()->set_values_tensor_name(
      "layer/y:0");
  const ExportMetaGraphOptions options = {.export_scope = "layer", .signatures = {{"call", call}}};
  MetaGraphDef def;
  ASSERT_TRUE(ExportMetaGraph(*s.graph(), options, &def).ok());
  const SignatureDef& saved = def.signature_def().at("call");
  EXPECT_EQ(saved.method_name(), "layer/predict");
  EXPECT_EQ(saved.inputs().at("layer/in").name(), "x:0");
  EXPECT_EQ(saved.outputs().at("out").composite_tensor().components(0).name(), "y:0");
  // What is exported is imported, as it was under the scope.
  auto graph = std::make_shared<Graph>();
  const auto imported = ImportMetaGraph(def, {.import_scope = "layer"}, graph.get());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->signatures.at("call").DebugString(), call.DebugString());
}

TEST(ExportMetaGraph, LeavesOtherSaversOut) {
  const MetaGraphDef def = Training("training");
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportMetaGraph(def, {}, graph.get()).ok());
  MetaGraphDef bare;
  ASSERT_TRUE(ExportMetaGraph(*graph, {.clear_extraneous_savers = true}, &bare).ok());
  for (const NodeDef& node : bare.graph_def().node()) {
    EXPECT_NE(node.op(), "SaveV2");
    EXPECT_NE(node.op(), "RestoreV2");
  }
  EXPECT_LT(bare.graph_def().node_size(), def.graph_def().node_size());
}

TEST(ExportMetaGraph, RefusesCollectionsThatDoNotFit) {
  Graph graph;
  ASSERT_TRUE(graph.AddNode(NodeSpec("NoOp", "a")).ok());
  MetaGraphDef def;
  for (const auto& [key, value] :
       {std::pair("variables", "nobody"), {"variables", "a"}, {"queue_runners", "\xff"}}) {
    graph.AddToCollection(key, value);
    const absl::Status status = ExportMetaGraph(graph, {}, &def);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << key << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
    graph.ClearCollection(key);
  }
  EXPECT_TRUE(ExportMetaGraph(graph, {}, &def).ok());
}

TEST(ImportMetaGraph, IsAllOrNothing) {
  const MetaGraphDef good = Training("training");
  const auto collection = [](const char* key, CollectionDef list) {
    return [key, list](MetaGraphDef* def) { (*def->mutable_collection_def())[key] = list; };
  };
  CollectionDef nodes, bytes, unnamed, no_runner;
  nodes.mutable_node_list()->add_value("nobody:0");
  bytes.mutable_bytes_list()->add_value("\xff\xff");
  unnamed.mutable_bytes_list()->add_value("");
  VariableDef strange;
  strange.set_variable_name("nobody:0");
  no_runner.mutable_bytes_list()->add_value(strange.SerializeAsString());
  const std::vector<std::function<void(MetaGraphDef*)>> damages = {
      collection("losses", nodes),
      collection("variables", bytes),
      collection("variables", unnamed),
      collection("local_variables", no_runner),
      collection("queue_runners", bytes),
      collection("savers", bytes),
      collection("while_context", bytes),
      [](MetaGraphDef* def) { def->mutable_saver_def()->set_restore_op_name("nobody"); },
      [](MetaGraphDef* def) { def->mutable_graph_def()->mutable_node(3)->set_name("a b"); },
  };
  for (const auto& damage : damages) {
    MetaGraphDef def = good;
    damage(&def);
    Graph graph;
    const absl::Status status = ImportMetaGraph(def, {}, &graph).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_EQ(graph.num_nodes(), 2);
    EXPECT_TRUE(graph.CollectionKeys().empty());
  }
  Graph graph;
  EXPECT_TRUE(ImportMetaGraph(good, {}, &graph).ok());
  EXPECT_EQ(ImportMetaGraph(good, {}, &graph).status().code(), Code::kInvalidArgument);
}

TEST(ReadMetaGraph, RefusesWhatIsNone) {
  const std::string file = testing::TempDir() + "troupe_no_meta_graph";
  MetaGraphDef def;
  EXPECT_EQ(ReadMetaGraph(file, &def).code(), Code::kNotFound);
  std::string whole;
  ASSERT_TRUE(Training("training").SerializeToString(&whole));
  GraphDef graph;
  graph.add_node()->set_name("x");
  for (const std::string& bytes :
       {std::string(), std::string("node { name: 'a' op: 'B' }"), std::string("meta_info_def { }"),
        std::string(100, '\xff'), whole.substr(0, whole.size() / 2), graph.SerializeAsString()}) {
    std::ofstream(file, std::ios::binary) << bytes;
    const absl::Status status = ReadMetaGraph(file, &def);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
  }
  std::remove(file.c_str());
}

}  // namespace
}  // namespace troupe
