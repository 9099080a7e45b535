#include "actors/cluster/partition_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devices/tensor_proto.h"
#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"
#include "tests/actors/cluster/inline_host.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PartitionEngineTest : public testing::Test {
 protected:
  void Arrive(uint64_t step) {
    engine_.Arrive(step, 1, 0, false, Tensor::Vector<float>({1}), nullptr);
  }
  static Node* Add(Graph* graph, const NodeSpec& spec) {
    absl::StatusOr<Node*> node = graph->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  /// The node is run as a target; its first output is fetched if it has one.
  void Register(const Graph& graph, const std::string& node, const std::string& handle) {
    cluster::RegisterGraphRequest request;
    request.set_session("s");
    request.set_handle(handle);
    cluster::Partition* partition = request.add_partitions();
    partition->set_device("/job:localhost/replica:0/task:0/device:CPU:0");
    GraphDef def;
    graph.ToGraphDef(&def);
    partition->set_graph(def.SerializeAsString());
    partition->add_targets(node);
    if (graph.FindNode(node)->num_outputs() > 0) {
      partition->add_fetches()->set_tensor(node + ":0");
    }
    engine_.Register(request, [](const absl::Status& status) { EXPECT_EQ(status.message(), ""); });
  }
  /// So that steps of its master may come.
  void RegisterNothing() {
    Graph graph;
    Add(&graph, NodeSpec("NoOp", "nothing"));
    Register(graph, "nothing", "nothing");
  }
  void Start(const std::string& handle, uint64_t step, WorkerEngine::StepDone done) {
    cluster::RunGraphRequest request;
    request.set_session("s");
    request.set_handle(handle);
    request.set_step(step);
    engine_.Start(request, std::move(done));
  }
  /// The number that a step fetches.
  float Run(const std::string& handle) {
    float result = -1;
    Start(handle, next_step_++, [&](const absl::Status& status, std::vector<TensorProto> fetches) {
      ASSERT_TRUE(status.ok()) << status;
      result = TensorFromProto(fetches.at(0))->unchecked_values<float>()[0];
    });
    return result;
  }

  uint64_t next_step_ = 1;
  InlineHost host_;
  PartitionEngine engine_{*Runtime::Create({.threads = 1}), &host_};
};

// A process that has just begun, or stood still, has been told an old time or none.
TEST_F(PartitionEngineTest, ValuesThatComeBeforeTheirStepAreKeptForAWhile) {
  constexpr ClusterTime kUptime = 1000000 * kSecond;
  RegisterNothing();
  Arrive(7);
  EXPECT_THAT(engine_.DropEarly(kUptime, 10 * kSecond), IsEmpty());
  EXPECT_THAT(engine_.DropEarly(kUptime + 10 * kSecond, 10 * kSecond), IsEmpty());
  Arrive(8);
  EXPECT_THAT(engine_.DropEarly(kUptime + 30 * kSecond, 10 * kSecond), ElementsAre(7));
  EXPECT_EQ(engine_.counts().early, 1u);
  EXPECT_THAT(engine_.DropEarly(kUptime + 41 * kSecond, 10 * kSecond), ElementsAre(8));
  EXPECT_EQ(engine_.counts().early, 0u);
}

TEST_F(PartitionEngineTest, TracesHavePartitionsOnlyIfTheyAreWanted) {
  Graph graph;
  Add(&graph, NodeSpec("Const", "one")
                  .Attr("dtype", ElementType::kFloat)
                  .Attr("value", Tensor::Vector<float>({1})));
  Register(graph, "one", "g");
  for (int wanted = 0; wanted < 4; ++wanted) {
    const bool partitions = (wanted & 1) != 0, times = (wanted & 2) != 0;
    cluster::RunGraphRequest request;
    request.set_session("s");
    request.set_handle("g");
    request.set_step(next_step_);
    request.set_trace(partitions);
    request.set_times(times);
    engine_.Start(request, [](const absl::Status& status, std::vector<TensorProto>) {
      EXPECT_EQ(status.message(), "");
    });
    RunMetadata metadata;
    ASSERT_TRUE(metadata.ParseFromString(engine_.TakeTrace(next_step_)));
    EXPECT_EQ(metadata.partition_graphs_size(), partitions ? 1 : 0);
    EXPECT_EQ(metadata.step_stats().dev_stats_size(), partitions || times ? 1 : 0);
    EXPECT_EQ(engine_.TakeTrace(next_step_++), "") << "it is not kept";
  }
}

// Its master has died: nobody begins it, and its senders need their credits for other steps.
TEST_F(PartitionEngineTest, ValuesOfAMasterWithoutASessionAreNotKept) {
  RegisterNothing();
  Arrive(7);
  constexpr uint64_t kOther = (uint64_t{1} << 32) + 7;
  Arrive(kOther);
  EXPECT_THAT(engine_.DropEarly(kSecond, 10 * kSecond), ElementsAre(kOther));
  engine_.DeleteSession("s");
  EXPECT_THAT(engine_.DropEarly(kSecond, 10 * kSecond), ElementsAre(7));
  EXPECT_EQ(engine_.counts().early, 0u);
}

TEST_F(PartitionEngineTest, ValuesOfForgottenStepsAreNotKept) {
  Arrive(7);
  engine_.Forget(7);
  Arrive(7);
  EXPECT_EQ(engine_.counts().early, 0u);
}

// Executors are large; a burst of steps leaves a few of them.
TEST_F(PartitionEngineTest, ABurstOfStepsLeavesFewExecutors) {
  Graph graph;
  Node* queue = Add(
      &graph,
      NodeSpec("FIFOQueueV2", "queue").Attr("component_types", std::vector{ElementType::kFloat}));
  Add(&graph, NodeSpec("QueueDequeueV2", "get")
                  .Input(queue)
                  .Attr("component_types", std::vector{ElementType::kFloat}));
  Register(graph, "get", "g");
  constexpr uint64_t kSteps = 100;
  uint64_t ended = 0;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    Start("g", step, [&](const absl::Status& status, std::vector<TensorProto>) {
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      ++ended;
    });
  }
  EXPECT_EQ(engine_.counts().steps, kSteps);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    engine_.Abort(step, absl::CancelledError("enough"));
  }
  EXPECT_EQ(ended, kSteps);
  EXPECT_EQ(engine_.counts().steps, 0u);
  EXPECT_LE(engine_.counts().resting, 16u);
  EXPECT_GT(engine_.counts().resting, 0u);
}

// The master gives up a graph that is not used for long, and registers it anew when it is.
TEST_F(PartitionEngineTest, StatefulKernelsOutliveTheirGraphs) {
  Graph graph;
  Node* shape = Add(&graph, NodeSpec("Const", "shape")
                                .Attr("value", Tensor::Vector<int32_t>({1}))
                                .Attr("dtype", ElementType::kInt32));
  auto random = [&](const std::string& name) {
    Add(&graph, NodeSpec("RandomUniform", name)
                    .Input(shape)
                    .Attr("dtype", ElementType::kFloat)
                    .Attr("seed", int64_t{3})
                    .Attr("seed2", int64_t{4}));
  };
  random("kept");
  random("given_up");
  // The state of what a function calls belongs to the session, too.
  FunctionDefLibrary library;
  FunctionDef* function = library.add_function();
  function->mutable_signature()->set_name("Random");
  function->mutable_signature()->set_is_stateful(true);
  auto* arg = function->mutable_signature()->add_input_arg();
  arg->set_name("shape");
  arg->set_type(DT_INT32);
  auto* result = function->mutable_signature()->add_output_arg();
  result->set_name("r");
  result->set_type(DT_FLOAT);
  NodeDef* body = function->add_node_def();
  *body = graph.FindNode("kept")->def();
  body->set_name("u");
  body->clear_input();
  body->add_input("shape");
  (*function->mutable_ret())["r"] = "u:output:0";
  ASSERT_TRUE(graph.AddLibrary(library).ok());
  AttrValue f;
  f.mutable_func()->set_name("Random");
  Add(&graph, NodeSpec("StatefulPartitionedCall", "called")
                  .Input(std::vector<Output>{Output(shape)})
                  .Attr("Tin", std::vector{ElementType::kInt32})
                  .Attr("Tout", std::vector{ElementType::kFloat})
                  .Attr("f", f));
  Register(graph, "kept", "kept");
  std::vector<float> expected, got, called;
  for (int i = 0; i < 6; ++i) {
    expected.push_back(Run("kept"));
    const std::string handle = "g" + std::to_string(i);
    Register(graph, "given_up", handle);
    got.push_back(Run(handle));
    engine_.Deregister("s", handle);
    Register(graph, "called", handle);
    called.push_back(Run(handle));
    engine_.Deregister("s", handle);
    EXPECT_EQ(engine_.counts().graphs, 1u);
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(called, expected);
  EXPECT_NE(got[0], got[1]);
}

TEST_F(PartitionEngineTest, ResourcesAreTakenAndGiven) {
  Graph graph;
  Node* const one = Add(&graph, NodeSpec("Const", "one")
                                    .Attr("value", Tensor::Vector<float>({1, 2}))
                                    .Attr("dtype", ElementType::kFloat));
  const auto stage = [&](const char* name) {
    Add(&graph, NodeSpec("Stage", name)
                    .Input(std::vector<Output>{Output(one)})
                    .Attr("dtypes", std::vector{ElementType::kFloat})
                    .Attr("capacity", int64_t{3})
                    .Attr("shared_name", "area"));
  };
  stage("put");
  stage("another");
  Register(graph, "put", "put");
  for (uint64_t step = 1; step <= 2; ++step) {
    Start("put", step, [](const absl::Status& status, const std::vector<TensorProto>&) {
      EXPECT_EQ(status.message(), "");
    });
  }
  const auto get = [&](const std::string& session, bool where_only, const char* name = "area",
                       int64_t max_bytes = 0, int64_t first = 0) {
    cluster::GetResourcesRequest request;
    request.set_session(session);
    request.set_where_only(where_only);
    request.set_max_bytes(max_bytes);
    request.set_first(first);
    for (const char* node : {"nobody", "put", "another"}) {
      ResourceStateDef* const wanted = request.add_wanted();
      wanted->set_node(node);
      wanted->set_name(name);
    }
    cluster::GetResourcesReply got;
    engine_.GetResources(request,
                         [&](const absl::Status& status, cluster::GetResourcesReply reply) {
                           EXPECT_EQ(status.message(), "");
                           got = std::move(reply);
                         });
    return got;
  };
  const auto set = [&](const ResourceStateDef& resource) {
    cluster::SetResourceRequest request;
    request.set_session("s");
    *request.mutable_resource() = resource;
    absl::Status told = absl::UnknownError("not told");
    engine_.SetResource(request, [&](const absl::Status& status) { told = status; });
    return told.code();
  };
  EXPECT_EQ(get("another", false).resources_size(), 0);
  const cluster::GetResourcesReply where = get("s", true);
  ASSERT_EQ(where.resources_size(), 1) << "of nodes that have not been registered nothing is said";
  EXPECT_EQ(where.resources(0).node(), "put");
  EXPECT_EQ(where.resources(0).device(), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_FALSE(where.resources(0).has_staging_area());
  ResourceStateDef saved = get("s", false).resources(0);
  ASSERT_EQ(saved.tuple_size(), 2);
  EXPECT_EQ(saved.staging_area().capacity(), 3);

  *saved.add_tuple() = saved.tuple(0);
  EXPECT_EQ(set(saved), absl::StatusCode::kOk);
  EXPECT_EQ(get("s", false).resources(0).tuple_size(), 3);
  saved.set_name("made");
  EXPECT_EQ(set(saved), absl::StatusCode::kOk);

  // In parts: of one tuple each, as more do not fit.
  saved.set_name("in_parts");
  saved.set_tuples(3);
  ResourceStateDef part = saved;
  part.clear_tuple();
  EXPECT_EQ(set(part), absl::StatusCode::kOk);
  part.clear_of();
  part.set_first(1);
  EXPECT_EQ(set(part), absl::StatusCode::kInvalidArgument) << "it is not the next one";
  part = saved;
  part.mutable_tuple()->DeleteSubrange(1, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(get("s", false, "in_parts").resources_size(), 0) << "a part is not enough";
    part.set_first(i);
    EXPECT_EQ(set(part), absl::StatusCode::kOk);
    part.clear_of();
  }
  const auto parts = get("s", false, "in_parts", /*max_bytes=*/1, /*first=*/1);
  ASSERT_EQ(parts.resources_size(), 1);
  EXPECT_EQ(parts.resources(0).tuples(), 3);
  EXPECT_EQ(parts.resources(0).tuple_size(), 1);
  EXPECT_EQ(parts.resources(0).first(), 1);
  EXPECT_FALSE(parts.resources(0).has_staging_area()) << "it was in the first part";
  EXPECT_EQ(parts.resources(0).kind_crc(), get("s", false, "in_parts").resources(0).kind_crc());
  EXPECT_EQ(get("s", false, "in_parts", 1, INT64_MAX).resources(0).tuple_size(), 0);
  EXPECT_EQ(get("s", false, "in_parts", 1, -1).resources(0).tuple_size(), 0);
  saved.mutable_tuple(0)->mutable_component(0)->mutable_tensor_shape()->mutable_dim(0)->set_size(
      99);
  EXPECT_EQ(set(saved), absl::StatusCode::kInvalidArgument);
  saved.clear_tuple();
  saved.clear_tuples();
  saved.mutable_barrier();
  EXPECT_EQ(set(saved), absl::StatusCode::kInvalidArgument) << "it is a staging area";
  saved.set_name("nobody");
  EXPECT_EQ(set(saved), absl::StatusCode::kNotFound);
  saved.clear_of();
  EXPECT_EQ(set(saved), absl::StatusCode::kInvalidArgument);
  saved.mutable_staging_area();
  saved.set_device("/job:localhost/replica:0/task:0/device:CPU:9");
  EXPECT_EQ(set(saved), absl::StatusCode::kNotFound);
  EXPECT_EQ(get("s", false).resources(0).tuple_size(), 3);
}

}  // namespace
}  // namespace troupe
