// Queues, staging areas and maps, and tensors of sessions, on a device with a memory of its own,
// here the simulated one: what they keep stays there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "actors/runtime.h"
#include "actors/session/compile.h"
#include "actors/session/kept_resources.h"
#include "actors/state/resource_state.h"
#include "api/internal/actor_host.h"
#include "api/session.h"
#include "devices/device.h"
#include "devices/device_figures.h"
#include "graph/graph.h"
#include "graph/protos/stats.pb.h"
#include "graph/protos/training_state.pb.h"
#include "kernels/queues/queue.h"
#include "kernels/state/session_tensors.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace troupe {
namespace {

using enum ElementType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeviceContainersTest : public ::testing::Test {
 protected:
  DeviceContainersTest() { troupe::testing::BorrowKernels(); }

  Node* Add(NodeSpec spec, const char* device = "/device:SIM:0") {
    const auto node = graph_->AddNode(spec.Device(device));
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  Output Placeholder(const char* name, ElementType type) {
    return Output(Add(NodeSpec("Placeholder", name).Attr("dtype", type), ""));
  }
  Output Doubled(const Output& x, const char* name) {
    return Output(Add(NodeSpec("Add", name).Input(x).Input(x)));
  }
  Output Int(const char* name, const Tensor& value) {
    return Output(Add(NodeSpec("Const", name).Attr("value", value).Attr("dtype", value.type())));
  }
  std::unique_ptr<Session> NewSession(uint64_t seed, int count = 1) {
    troupe::testing::UseSimulatedDevices({.seed = seed});
    SessionOptions options;
    options.devices["SIM"].count = count;
    auto session = Session::Create(graph_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  /// The values; `*copies` counts copies between the host and the device.
  static std::vector<Tensor> Run(Session* session, const FeedMap& feeds,
                                 const std::vector<Output>& fetches,
                                 const std::vector<Node*>& targets, int* copies) {
    std::vector<std::pair<std::string, Tensor>> named;
    for (const auto& [output, value] : feeds) named.emplace_back(output.name(), value);
    std::vector<std::string> names, nodes;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    for (const Node* target : targets) nodes.push_back(target->name());
    RunOptions trace;
    trace.trace = true;
    RunMetadata metadata;
    std::vector<Tensor> values;
    const absl::Status status = session->Run(trace, named, names, nodes, &values, &metadata);
    EXPECT_TRUE(status.ok()) << status;
    *copies = 0;
    for (const auto& device : metadata.step_stats().dev_stats()) {
      if (device.device().find("stream") != std::string::npos) continue;
      for (const auto& node : device.node_stats()) {
        *copies += node.timeline_label().find("= _Download") != std::string::npos ||
                   node.timeline_label().find("= _Upload") != std::string::npos;
      }
    }
    return values;
  }

  /// A step puts what it computes in, one more takes it out and computes with it.
  void ExpectKept(const Output& x, Node* put, const Output& taken) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const auto session = NewSession(seed);
      int copies = 0;
      for (const float value : {1.5f, -4.0f}) {
        Run(session.get(), {{x, Tensor::Vector<float>({value, 3})}}, {}, {put}, &copies);
        EXPECT_EQ(copies, 1) << "of what is fed";
      }
      for (const float value : {1.5f, -4.0f}) {
        const auto values = Run(session.get(), {}, {taken}, {}, &copies);
        EXPECT_THAT(values[0].unchecked_values<float>(), ElementsAre(4 * value, 12));
        EXPECT_EQ(copies, 1) << "of what is fetched";
      }
    }
  }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

TEST_F(DeviceContainersTest, Queues) {
  const std::vector<ElementType> types = {kFloat, kInt32, kString};
  const Output x = Placeholder("x", kFloat);
  const Output queue(Add(NodeSpec("FIFOQueueV2", "queue").Attr("component_types", types)));
  Node* const put = Add(NodeSpec("QueueEnqueueV2", "put")
                            .Input(queue)
                            .Input({Doubled(x, "doubled"), Int("int", Tensor::Scalar<int32_t>(7)),
                                    Int("text", Tensor::Scalar<std::string>("text"))}));
  Node* const take =
      Add(NodeSpec("QueueDequeueV2", "take").Input(queue).Attr("component_types", types));
  const Output size(Add(NodeSpec("QueueSizeV2", "size").Input(queue)));
  const Output closed(Add(NodeSpec("QueueIsClosedV2", "closed").Input(queue)));
  Node* const close = Add(NodeSpec("QueueCloseV2", "close").Input(queue));
  ExpectKept(x, put, Doubled(Output(take, 0), "again"));

  const auto session = NewSession(1);
  int copies = 0;
  Run(session.get(), {{x, Tensor::Vector<float>({1})}}, {}, {put}, &copies);
  EXPECT_EQ(Run(session.get(), {}, {size}, {}, &copies)[0].unchecked_scalar<int32_t>(), 1);
  const auto values = Run(session.get(), {}, {Output(take, 1), Output(take, 2)}, {}, &copies);
  EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), 7);
  EXPECT_EQ(values[1].unchecked_scalar<std::string>(), "text");
  Run(session.get(), {}, {}, {close}, &copies);
  EXPECT_TRUE(Run(session.get(), {}, {closed}, {}, &copies)[0].unchecked_scalar<bool>());
  EXPECT_EQ(copies, 0);
  EXPECT_TRUE(absl::IsOutOfRange(session->Run({Output(take, 0)}).status()));
}

TEST_F(DeviceContainersTest, AQueueOfAnotherDeviceIsRefused) {
  const std::vector<ElementType> types = {kFloat};
  const auto queue = [&](const char* name, const char* device) {
    return Output(Add(NodeSpec("FIFOQueueV2", name)
                          .Attr("component_types", types)
                          .Attr("shapes", std::vector<PartialShape>{PartialShape({1})}),
                      device));
  };
  const Output there = queue("there", "/device:SIM:0"), here = queue("here", "/device:CPU:0");
  const Output x = Placeholder("x", kFloat);
  const Output n(Add(
      NodeSpec("Const", "n").Attr("value", Tensor::Scalar<int32_t>(1)).Attr("dtype", kInt32), ""));
  Node* const put =
      Add(NodeSpec("QueueEnqueueV2", "put").Input(there).Input(std::vector<Output>{x}));
  const Output size(Add(NodeSpec("QueueSizeV2", "size").Input(there)));
  // A handle that is fed, and what takes an element by it.
  using Taker = std::pair<Output, Output>;
  const auto taker = [&](const char* op, const char* name, const char* device) {
    const Output fed = Placeholder(("fed_to_" + std::string(name)).c_str(), kResource);
    NodeSpec take(op, name);
    take.Input(fed).Attr("component_types", types);
    if (std::string_view(op) == "QueueDequeueManyV2") take.Input(n);
    return Taker(fed, Output(Add(take, device)));
  };
  const Taker by_device = taker("QueueDequeueV2", "by_device", "/device:SIM:0");
  const Taker by_host = taker("QueueDequeueV2", "by_host", "/device:CPU:0");
  const Taker many_by_host = taker("QueueDequeueManyV2", "many_by_host", "/device:CPU:0");
  const auto session = NewSession(1), other = NewSession(2);
  int copies = 0;
  Run(session.get(), {{x, Tensor::Vector<float>({3})}}, {}, {put}, &copies);
  const Tensor handle = Run(session.get(), {}, {there}, {}, &copies)[0];
  const Tensor of_host = Run(session.get(), {}, {here}, {}, &copies)[0];
  const auto expect_refused = [](Session* by, const Tensor& it, const Taker& take) {
    const absl::Status status = by->Run({{take.first, it}}, {take.second}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("was made on"));
  };
  expect_refused(session.get(), handle, by_host);
  expect_refused(session.get(), handle, many_by_host);
  expect_refused(session.get(), of_host, by_device);
  // Its device is called the same, but has another memory.
  expect_refused(other.get(), handle, by_device);
  EXPECT_EQ(Run(session.get(), {}, {size}, {}, &copies)[0].unchecked_scalar<int32_t>(), 1);
  const auto taken =
      Run(session.get(), {{by_device.first, handle}}, {by_device.second}, {}, &copies);
  EXPECT_THAT(taken[0].unchecked_values<float>(), ElementsAre(3));
}

TEST_F(DeviceContainersTest, StagingAreas) {
  const Output x = Placeholder("x", kFloat);
  const auto named = [](const char* op, const char* name) {
    return NodeSpec(op, name)
        .Attr("dtypes", std::vector<ElementType>{kFloat})
        .Attr("shared_name", "area");
  };
  Node* const put = Add(named("Stage", "put").Input(std::vector<Output>{Doubled(x, "doubled")}));
  const Output take(Add(named("Unstage", "take")));
  const Output look(
      Add(named("StagePeek", "look").Input(Int("first", Tensor::Scalar<int32_t>(0)))));
  const Output size(Add(named("StageSize", "size")));
  Node* const clear = Add(named("StageClear", "clear"));
  ExpectKept(x, put, Doubled(take, "again"));

  const auto session = NewSession(1);
  int copies = 0;
  Run(session.get(), {{x, Tensor::Vector<float>({1})}}, {}, {put}, &copies);
  EXPECT_THAT(Run(session.get(), {}, {look}, {}, &copies)[0].unchecked_values<float>(),
              ElementsAre(2));
  EXPECT_EQ(Run(session.get(), {}, {size}, {}, &copies)[0].unchecked_scalar<int32_t>(), 1);
  Run(session.get(), {}, {}, {clear}, &copies);
  EXPECT_EQ(Run(session.get(), {}, {size}, {}, &copies)[0].unchecked_scalar<int32_t>(), 0);
}

TEST_F(DeviceContainersTest, StagingAreasThatNobodyPlacesAreOnTheHost) {
  // Steps find an area by its name alone: each must look where the others do.
  const Output x = Placeholder("x", kFloat);
  const auto named = [](const char* op) {
    return NodeSpec(op, op)
        .Attr("dtypes", std::vector<ElementType>{kFloat})
        .Attr("shared_name", "area");
  };
  Node* const put = Add(named("Stage").Input(std::vector<Output>{Doubled(x, "doubled")}), "");
  const Output size(Add(named("StageSize"), ""));
  const Output again = Doubled(Output(Add(named("Unstage"), "")), "again");
  troupe::testing::UseSimulatedDevices({.figures = DeviceFigures{1e8, 1e7, 0.01, 0.1, 1e6}});
  const auto session = Session::Create(graph_, {.devices = {{"SIM", {.count = 1}}}});
  ASSERT_TRUE(session.ok()) << session.status();
  int copies = 0;
  Run(session->get(), {{x, Tensor::Vector<float>({1.5f})}}, {}, {put}, &copies);
  EXPECT_EQ(Run(session->get(), {}, {size}, {}, &copies)[0].unchecked_scalar<int32_t>(), 1);
  EXPECT_THAT(Run(session->get(), {}, {again}, {}, &copies)[0].unchecked_values<float>(),
              ElementsAre(6));
}

TEST_F(DeviceContainersTest, StagingMaps) {
  const Output x = Placeholder("x", kFloat);
  const auto named = [](const char* op, const char* name) {
    return NodeSpec(op, name)
        .Attr("dtypes", std::vector<ElementType>{kFloat})
        .Attr("shared_name", "map");
  };
  const Output key = Int("key", Tensor::Scalar<int64_t>(5));
  const Output indices = Int("indices", Tensor::Vector<int32_t>({0}));
  Node* const put = Add(named("OrderedMapStage", "put")
                            .Input(key)
                            .Input(indices)
                            .Input(std::vector<Output>{Doubled(x, "doubled")})
                            .Attr("fake_dtypes", std::vector<ElementType>{kFloat}));
  Node* const take = Add(named("OrderedMapUnstageNoKey", "take").Input(indices));
  const Output look(Add(named("OrderedMapPeek", "look").Input(key).Input(indices)));
  const Output again = Doubled(Output(take, 1), "again");
  const auto session = NewSession(2);
  int copies = 0;
  Run(session.get(), {{x, Tensor::Vector<float>({1.5f})}}, {}, {put}, &copies);
  EXPECT_EQ(copies, 1);
  EXPECT_THAT(Run(session.get(), {}, {look}, {}, &copies)[0].unchecked_values<float>(),
              ElementsAre(3));
  const auto values = Run(session.get(), {}, {Output(take, 0), again}, {}, &copies);
  EXPECT_EQ(values[0].unchecked_scalar<int64_t>(), 5);
  EXPECT_THAT(values[1].unchecked_values<float>(), ElementsAre(6));
  EXPECT_EQ(copies, 1);
}

TEST_F(DeviceContainersTest, Mutexes) {
  const Output mutex(Add(NodeSpec("MutexV2", "mutex")));
  const Output lock(Add(NodeSpec("MutexLock", "lock").Input(mutex)));
  Node* const back = Add(NodeSpec("ConsumeMutexLock", "back").Input(lock));
  const auto session = NewSession(1);
  for (int i = 0; i < 3; ++i) {
    int copies = 0;
    Run(session.get(), {}, {}, {back}, &copies);
    EXPECT_EQ(copies, 0);
  }
}

TEST_F(DeviceContainersTest, TensorsOfSessions) {
  const size_t before = SessionTensors::Global()->size();
  const Output x = Placeholder("x", kFloat), name = Placeholder("name", kString);
  const Output kept(Add(NodeSpec("GetSessionHandle", "keep").Input(Doubled(x, "doubled"))));
  std::vector<Output> got;
  for (const char* device : {"/device:SIM:0", "/device:SIM:1", "/device:CPU:0"}) {
    const std::string number = StrCat(got.size());
    const Output value(Add(
        NodeSpec("GetSessionTensor", "get" + number).Input(name).Attr("dtype", kFloat), device));
    got.emplace_back(Add(NodeSpec("Neg", "neg" + number).Input(value), device));
  }
  Node* const forget = Add(NodeSpec("DeleteSessionTensor", "forget").Input(name));
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto session = NewSession(seed, 2);
    int copies = 0;
    const auto handle =
        Run(session.get(), {{x, Tensor::Vector<float>({1, 2})}}, {kept}, {}, &copies)[0];
    EXPECT_EQ(copies, 1) << "of what is fed";
    EXPECT_THAT(handle.unchecked_scalar<std::string>(), HasSubstr("SIM:0"));
    for (size_t i = 0; i < got.size(); ++i) {
      const auto values = Run(session.get(), {{name, handle}}, {got[i]}, {}, &copies);
      EXPECT_THAT(values[0].unchecked_values<float>(), ElementsAre(-2, -4));
      EXPECT_EQ(copies, i < 2 ? 1 : 0);
    }
    Run(session.get(), {{name, handle}}, {}, {forget}, &copies);
    EXPECT_TRUE(absl::IsInvalidArgument(session->Run({{name, handle}}, {got[0]}).status()));
    Run(session.get(), {{x, Tensor::Vector<float>({1, 2})}}, {kept}, {}, &copies);
    EXPECT_EQ(SessionTensors::Global()->size(), before + 1);
  }
  EXPECT_EQ(SessionTensors::Global()->size(), before);
}

// --- those who are no kernels --------------------------------------------------------------------

/// A runtime with a device that has a queue, `it`, with two elements in the device's memory.
class DeviceQueueTest : public ::testing::Test {
 protected:
  DeviceQueueTest() {
    troupe::testing::UseSimulatedDevices();
    runtime_ = *Runtime::Create({.threads = 2, .devices = {{"SIM", {.count = 1}}}});
    device_ = runtime_->FindDevice("/job:localhost/replica:0/task:0/device:SIM:0");
    Containers* const containers = &device_->containers;
    QueueOptions options;
    options.types = {kFloat};
    EXPECT_TRUE(containers
                    ->FindOrCreate("", "it",
                                   [&]() -> absl::StatusOr<RefPtr<Resource>> {
                                     return containers->MakeQueue("it", options);
                                   })
                    .ok());
    auto queue = *FindWaiting<Queue>(containers, "", "it");
    for (const float value : {1.f, 2.f}) {
      auto there = Upload(device_->device.get(), Tensor::Vector<float>({value, 5}));
      EXPECT_TRUE(there.ok()) << there.status();
      queue->Enqueue({*there}, nullptr, [](const auto& done) { EXPECT_TRUE(done.ok()); });
    }
  }

  std::shared_ptr<Runtime> runtime_;
  DeviceRole* device_;
};

TEST_F(DeviceQueueTest, IsSavedFromTheHost) {
  const std::string name = device_->device->name();
  std::promise<std::vector<KeptResource>> saved;
  SaveResources(*runtime_, StatefulKernels(), {{.device = name, .name = "it"}},
                [&](absl::StatusOr<std::vector<KeptResource>> kept) {
                  EXPECT_TRUE(kept.ok()) << kept.status();
                  saved.set_value(*std::move(kept));
                });
  const std::vector<KeptResource> kept = saved.get_future().get();
  ASSERT_EQ(kept.size(), 1u);
  const auto& state = std::get<QueueState>(kept[0].state);
  ASSERT_EQ(state.elements.size(), 2u);
  ASSERT_NE(state.elements[1][0].space(), MemorySpace::kDevice);
  EXPECT_THAT(state.elements[1][0].unchecked_values<float>(), ElementsAre(2, 5));
  TupleDef message;
  const absl::Status written = TupleToDef(state.elements[1], &message);
  EXPECT_TRUE(written.ok()) << written;
}

/// Keeps what it is sent, and whether a worker of `pool` sent it.
class Asker : public caf::monitorable_actor {
 public:
  struct Answer {
    Tuple tuple;
    bool by_pool;
  };
  Asker(caf::actor_config& config, const ComputePool* pool)
      : caf::monitorable_actor(config), pool_(pool) {}
  const char* name() const override { return "asker"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    const auto& content = what->content();
    Answer answer{{}, pool_->OnWorker()};
    if (content.match_elements<Tuple>()) answer.tuple = content.get_as<Tuple>(0);
    if (content.match_elements<Tensor>()) answer.tuple = {content.get_as<Tensor>(0)};
    answer_.set_value(std::move(answer));
  }
  std::promise<Answer> answer_;

 private:
  const ComputePool* const pool_;
};

Asker::Answer AskForValue(caf::actor_system& system, const Runtime& runtime,
                          const caf::strong_actor_ptr& role) {
  caf::actor_config config;
  const auto asker = caf::make_actor<Asker, caf::strong_actor_ptr>(
      system.next_actor_id(), system.node(), &system, config, runtime.pool());
  auto answer = static_cast<Asker*>(asker->get())->answer_.get_future();
  role->enqueue(caf::make_mailbox_element(asker, caf::make_message_id(1), {},
                                          caf::make_message(caf::get_atom_v)),
                nullptr);
  return answer.get();
}

// The device's own thread could not end the runtime if nobody else held it any more.
TEST_F(DeviceQueueTest, ThePoolTellsActorsWhatIsOnTheHost) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  const auto role = MakeRoleActor(system, runtime_, {}, ActorKind::kQueue, "it");
  ASSERT_TRUE(role.ok()) << role.status();
  for (const float value : {1.f, 2.f}) {
    const Asker::Answer answer = AskForValue(system, *runtime_, *role);
    ASSERT_EQ(answer.tuple.size(), 1u);
    ASSERT_NE(answer.tuple[0].space(), MemorySpace::kDevice);
    EXPECT_THAT(answer.tuple[0].unchecked_values<float>(), ElementsAre(value, 5));
    EXPECT_TRUE(answer.by_pool);
  }
}

TEST_F(DeviceQueueTest, ThePoolTellsActorsTheValueOfAVariable) {
  const auto made = device_->containers.FindOrCreateVariable("", "v", kFloat, PartialShape({2}));
  ASSERT_TRUE(made.ok()) << made.status();
  const auto there = Upload(device_->device.get(), Tensor::Vector<float>({3, 4}));
  ASSERT_TRUE(there.ok()) << there.status();
  (*made)->Lend([&](Variable::Lease lease) { lease.set_value(*there); });
  caf::actor_system_config config;
  caf::actor_system system{config};
  const auto role = MakeRoleActor(system, runtime_, {}, ActorKind::kVariable, "v");
  ASSERT_TRUE(role.ok()) << role.status();
  const Asker::Answer answer = AskForValue(system, *runtime_, *role);
  ASSERT_EQ(answer.tuple.size(), 1u);
  EXPECT_THAT(answer.tuple[0].unchecked_values<float>(), ElementsAre(3, 4));
  EXPECT_TRUE(answer.by_pool);
}

}  // namespace
}  // namespace troupe
