// The saver's nodes are those that TensorFlow's saver has, and each runs the other's; against what
// TensorFlow 2.21 has written (scripts/golden/record_savers.py).
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "graph/protos/meta_graph.pb.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

using google::protobuf::util::MessageDifferencer;

const std::string& Data() {
  static const auto* const folder =
      new std::string(TROUPE_SOURCE_DIR "/tests/api/training/testdata/savers/");
  return *folder;
}

MetaGraphDef ReadMetaGraph(const std::string& name) {
  std::ifstream file(Data() + name + ".meta", std::ios::binary);
  MetaGraphDef meta;
  EXPECT_TRUE(meta.ParseFromIstream(&file)) << name;
  return meta;
}

bool OfSaver(const std::string& node) { return node.starts_with("save/"); }

/// The graph of the scenario, with TensorFlow's saver or without, and its variables.
std::shared_ptr<Graph> ImportScenario(const MetaGraphDef& meta, bool with_saver) {
  MetaGraphDef def = meta;
  if (!with_saver) {
    auto* const nodes = def.mutable_graph_def()->mutable_node();
    nodes->erase(std::remove_if(nodes->begin(), nodes->end(),
                                [](const NodeDef& node) { return OfSaver(node.name()); }),
                 nodes->end());
    def.clear_saver_def();
  }
  auto graph = std::make_shared<Graph>();
  ImportMetaGraphOptions options;
  options.restore_collection = [](std::string_view key) { return key == collections::kVariables; };
  const absl::Status status = ImportMetaGraph(def, options, graph.get()).status();
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

/// The saver's nodes; without attributes that say nothing about what is run, and with those that
/// have their default.
std::map<std::string, NodeDef> SaverNodes(const GraphDef& def) {
  std::map<std::string, NodeDef> nodes;
  for (NodeDef node : def.node()) {
    if (!OfSaver(node.name())) continue;
    for (auto attr = node.mutable_attr()->begin(); attr != node.mutable_attr()->end();) {
      attr = attr->first[0] == '_' ? node.mutable_attr()->erase(attr) : std::next(attr);
    }
    // Control inputs are a set.
    const auto first = std::find_if(node.input().begin(), node.input().end(),
                                    [](const std::string& input) { return input[0] == '^'; });
    std::sort(node.mutable_input()->begin() + (first - node.input().begin()),
              node.mutable_input()->end());
    std::string name = node.name();
    nodes.emplace(std::move(name), std::move(node));
  }
  return nodes;
}

SaverOptions OptionsOf(const std::string& scenario, const SaverDef& def) {
  SaverOptions options;
  options.reshape = scenario == "reshape";
  options.sharded = def.sharded();
  options.max_to_keep = def.max_to_keep();
  options.keep_checkpoint_every_n_hours = double{def.keep_checkpoint_every_n_hours()};
  if (def.version() == SaverDef::V1) options.write_version = SaverOptions::Format::kV1;
  return options;
}

class SaverGraphs : public ::testing::TestWithParam<const char*> {
 protected:
  SaverGraphs() : meta_(ReadMetaGraph(GetParam())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SaverGraphs() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Session> NewSession(const std::shared_ptr<Graph>& graph) {
    return *Session::Create(graph, {.threads = 2, .num_cpu_devices = 2});
  }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  bool local() const { return std::string(GetParam()) != "sharded_ps"; }

  const MetaGraphDef meta_;
  const std::string folder_ = ::testing::TempDir() + "saver_graphs_" + std::string(GetParam());
};

TEST_P(SaverGraphs, HasTensorFlowsNodes) {
  const std::string name = GetParam();
  if (name == "partitioned_resource" || name == "reshape") {
    GTEST_SKIP() << "reads and shapes take other nodes here";
  }
  const auto graph = ImportScenario(meta_, /*with_saver=*/false);
  const Scope scope(graph);
  const Saver saver(scope, {}, OptionsOf(GetParam(), meta_.saver_def()));
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(MessageDifferencer::Equals(saver.ToProto(), meta_.saver_def()))
      << saver.ToProto().DebugString() << meta_.saver_def().DebugString();
  GraphDef def;
  graph->ToGraphDef(&def);
  const auto ours = SaverNodes(def), theirs = SaverNodes(meta_.graph_def());
  for (auto [name, node] : theirs) {
    // A part of a variable is read as any variable is.
    for (std::string& input : *node.mutable_input()) {
      if (input.ends_with("/read")) input = input.substr(0, input.rfind('/'));
    }
    const auto found = ours.find(name);
    if (found == ours.end()) {
      ADD_FAILURE() << "there is no node " << name << " of op " << node.op();
      continue;
    }
    MessageDifferencer differencer;
    std::string differences;
    differencer.ReportDifferencesToString(&differences);
    EXPECT_TRUE(differencer.Compare(node, found->second)) << name << ":\n" << differences;
  }
  for (const auto& [name, node] : ours) EXPECT_EQ(theirs.count(name), 1) << name;
}

/// Whether the session's variables have the values of the checkpoint that TensorFlow has written.
void ExpectRestored(Session& session, const std::string& checkpoint) {
  const Graph& graph = *session.graph();
  const auto saveables = SaveablesOfGraph(graph);
  ASSERT_TRUE(saveables.ok()) << saveables.status();
  for (const Saveable& saveable : *saveables) {
    const SavedTensor& tensor = saveable.tensors()[0];
    const auto whole = LoadVariable(checkpoint, tensor.name);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const std::string read = saveable.node()->op() == "VarHandleOp"
                                 ? saveable.node()->name() + "/Read/ReadVariableOp"
                                 : saveable.node()->name();
    std::vector<Tensor> values;
    const absl::Status status = session.Run({}, {read}, {}, &values);
    ASSERT_TRUE(status.ok()) << status;
    if (tensor.shape_and_slice.empty()) {
      EXPECT_EQ(values[0].ToString(100), whole->ToString(100)) << tensor.name;
      continue;
    }
    // Parts are of rows.
    const std::string rows = tensor.shape_and_slice.substr(tensor.shape_and_slice.rfind(' ') + 1);
    const int64_t first = std::stoll(rows), count = values[0].dim(0);
    EXPECT_EQ(values[0].ToString(100), whole->Slice(first, first + count).ToString(100))
        << tensor.shape_and_slice;
  }
}

TEST_P(SaverGraphs, RestoresWhatTensorFlowSaved) {
  if (!local()) GTEST_SKIP() << "there are no parameter servers here";
  std::string checkpoint = Data() + GetParam();
  if (std::string(GetParam()) == "v1_sharded") checkpoint += "-\?\?\?\?\?-of-00002";
  for (const bool theirs : {false, true}) {
    const auto graph = ImportScenario(meta_, theirs);
    const Scope scope(graph);
    std::unique_ptr<Saver> saver;
    if (theirs) {
      auto made = Saver::FromProto(*graph, meta_.saver_def());
      ASSERT_TRUE(made.ok()) << made.status();
      saver = *std::move(made);
    } else {
      saver =
          std::make_unique<Saver>(scope, SaveableList(), OptionsOf(GetParam(), meta_.saver_def()));
    }
    const auto session = NewSession(graph);
    absl::Status status = saver->Restore(*session, checkpoint);
    ASSERT_TRUE(status.ok()) << status;
    ExpectRestored(*session, checkpoint);

    // Saved again, it is the same.
    const auto saved = saver->Save(*session, In("model"), 3);
    ASSERT_TRUE(saved.ok()) << saved.status();
    const auto before = ListVariables(checkpoint), after = ListVariables(*saved);
    ASSERT_TRUE(after.ok()) << after.status();
    ASSERT_EQ(before->size(), after->size());
    for (size_t i = 0; i < before->size(); ++i) {
      EXPECT_EQ((*before)[i].name, (*after)[i].name);
      EXPECT_EQ(LoadVariable(checkpoint, (*before)[i].name)->ToString(100),
                LoadVariable(*saved, (*before)[i].name)->ToString(100));
    }
    EXPECT_EQ(LatestCheckpoint(folder_).value(), *saved);
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, SaverGraphs,
                         ::testing::Values("plain", "resource", "partitioned",
                                           "partitioned_resource", "reshape", "sharded",
                                           "sharded_one", "sharded_ps", "v1", "v1_sharded"),
                         [](const auto& info) { return std::string(info.param); });

// --- state files ---------------------------------------------------------------------------------

struct StateFile {
  const char *name, *folder;
  SaverOptions options;
};

class SaverState : public ::testing::TestWithParam<StateFile> {};

TEST_P(SaverState, IsWrittenAsTensorFlowWritesIt) {
  const StateFile& c = GetParam();
  const std::string where = ::testing::TempDir() + "saver_state_" + c.name;
  std::filesystem::remove_all(where);
  std::filesystem::create_directories(where);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(where);
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 1.0f), "w");
  SaverOptions options = c.options;
  if (options.max_to_keep == SaverOptions().max_to_keep) options.max_to_keep = 2;
  Saver saver(s, {}, options);
  Node* const init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = *Session::Create(s.graph(), {.threads = 1});
  ASSERT_TRUE(session->RunTargets({init}).ok());
  const std::string folder = c.folder[0] == '\0' ? where : std::string(c.folder);
  for (const int64_t step : {5, 6, 8, 6}) {
    const auto saved = saver.Save(*session, folder + "/model", step);
    EXPECT_TRUE(saved.ok()) << saved.status();
  }
  std::ifstream file(folder + "/checkpoint"), expected(Data() + "state_" + c.name + ".txt");
  std::string got, want, files;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("all_model_checkpoint_timestamps: ")) got += line + "\n";
  }
  for (std::string line; std::getline(expected, line);) {
    if (const size_t at = line.find("FOLDER"); at != std::string::npos) line.replace(at, 6, where);
    (line.starts_with("# ") ? files : want) += line + "\n";
  }
  EXPECT_EQ(got, want);
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    there.insert(entry.path().filename().stem().string());
  }
  there.erase("checkpoint");
  std::istringstream list(files.substr(2));
  std::set<std::string> names;
  for (std::string name; list >> name;) names.insert(name.substr(0, name.rfind('.')));
  EXPECT_EQ(there, names);
  std::filesystem::current_path(before);
  std::filesystem::remove_all(where);
}

INSTANTIATE_TEST_SUITE_P(Recorded, SaverState,
                         ::testing::Values(StateFile{"absolute", "", {}},
                                           StateFile{
                                               "saved_relative", "", {.save_relative_paths = true}},
                                           StateFile{"relative", "run", {}},
                                           StateFile{"latest_only", "run", {.max_to_keep = 0}},
                                           StateFile{"padded", "run", {.pad_step_number = true}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace troupe
