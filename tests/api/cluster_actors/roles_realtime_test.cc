// What tasks have, and sessions, as actors of a cluster of processes.
#include <future>
#include <optional>

#include "tests/api/cluster_actors/cluster_actors.h"

namespace troupe {
namespace {

/// What a message without a value is answered.
template <typename Handle, typename... T>
absl::Status Order(caf::actor_system& system, const Handle& handle, T&&... content) {
  caf::scoped_actor self(system);
  absl::Status status;
  self->request(handle, caf::infinite, std::forward<T>(content)...)
      .receive([] {}, [&](const caf::error& e) { status = ToStatus(e); });
  return status;
}

TEST_F(ClusterActorsTest, RolesOfTasksAreFoundAndAsked) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output v =
      ops::VarHandleOp(on_1, ElementType::kFloat, PartialShape({2}), {.shared_name = "weights"});
  Node* init = ops::AssignVariableOp(on_1, v, ops::Const(on_1, Tensor::Vector<float>({1, 2})));
  Output read = ops::ReadVariableOp(on_1, v, ElementType::kFloat);
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join();
  EXPECT_EQ(node->Find<VariableActor>(kTask1, "weights").status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(session->RunTargets({init}).ok());

  auto weights = node->Find<VariableActor>(kTask1, "weights");
  ASSERT_TRUE(weights.ok()) << weights.status();
  auto value = Ask<Tensor>(node->system(), *weights, caf::get_atom_v);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_THAT(value->unchecked_values<float>(), ElementsAre(1, 2));
  {
    caf::scoped_actor self(node->system());
    bool done = false;
    self->request(*weights, caf::infinite, caf::put_atom_v, Tensor::Vector<float>({5, 6}))
        .receive([&] { done = true; }, [&](const caf::error& e) { FAIL() << ToStatus(e); });
    EXPECT_TRUE(done);
    absl::Status wrong;
    self->request(*weights, caf::infinite, caf::put_atom_v, Tensor::Vector<float>({5, 6, 7}))
        .receive([&] {}, [&](const caf::error& e) { wrong = ToStatus(e); });
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  auto now = session->Run({read});
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_THAT(now->at(0).unchecked_values<float>(), ElementsAre(5, 6));

  auto task = node->Find<TaskActor>(kTask0, "");
  ASSERT_TRUE(task.ok()) << task.status();
  auto status = Ask<TaskStatus>(node->system(), *task, status_atom_v);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->name, "/job:worker/replica:0/task:0");
  EXPECT_EQ(status->devices.size(), 1U);
  auto device = node->Find<DeviceActor>(kTask1, "CPU:0");
  ASSERT_TRUE(device.ok()) << device.status();
  auto about = Ask<DeviceStatus>(node->system(), *device, status_atom_v);
  ASSERT_TRUE(about.ok()) << about.status();
  EXPECT_EQ(about->name, "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_THAT(about->resources, testing::Contains(HasSubstr("weights")));

  EXPECT_EQ(node->Find<DeviceActor>(kTask1, "GPU:0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(node->Find<TaskActor>("/job:worker/task:7", "").status().code(),
            absl::StatusCode::kNotFound);
  // Another role's messages.
  auto confused = Ask<Tensor>(node->system(), caf::actor_cast<caf::actor>(*task), caf::get_atom_v);
  EXPECT_EQ(confused.status().code(), absl::StatusCode::kUnimplemented) << confused.status();

  // Who monitors the variable hears when its container drops it.
  caf::scoped_actor self(node->system());
  self->monitor(*weights);
  ASSERT_TRUE(session->Reset().ok());
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; },
                caf::after(std::chrono::seconds(5)) >> [] {});
  EXPECT_TRUE(down);
  value = Ask<Tensor>(node->system(), *weights, caf::get_atom_v);
  EXPECT_EQ(value.status().code(), absl::StatusCode::kUnavailable) << value.status();
}

TEST_F(ClusterActorsTest, AQueueIsSharedByGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output queue = ops::FIFOQueueV2(
      on_1, {ElementType::kFloat, ElementType::kString},
      {.shapes = {PartialShape({}), PartialShape({})}, .capacity = 3, .shared_name = "numbers"});
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})});
  Node* put =
      ops::QueueEnqueueV2(on_1, queue, {x, ops::Const(on_1, Tensor::Scalar<std::string>("graph"))});
  const OutputList got =
      ops::QueueDequeueV2(on_1, queue, {ElementType::kFloat, ElementType::kString});
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join(0), other = Join(1);
  ASSERT_TRUE(session->RunTargets({put}, {{x, Tensor::Scalar<float>(1)}}).ok());
  auto handle = node->Find<QueueActor>(kTask1, "numbers");
  ASSERT_TRUE(handle.ok()) << handle.status();
  const auto size = [&] { return *Ask<int64_t>(node->system(), *handle, size_atom_v); };
  EXPECT_EQ(size(), 1);
  auto tuple = Ask<Tensors>(node->system(), *handle, caf::get_atom_v);
  ASSERT_TRUE(tuple.ok()) << tuple.status();
  EXPECT_EQ(tuple->at(0).unchecked_scalar<float>(), 1);
  EXPECT_EQ(tuple->at(1).unchecked_scalar<std::string>(), "graph");

  // Who waits and is gone takes nothing.
  auto theirs = other->Find<QueueActor>(kTask1, "numbers");
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  {
    caf::scoped_actor gone(node->system());
    gone->send(caf::actor_cast<caf::actor>(*handle), caf::get_atom_v);
    gone->request(*handle, caf::infinite, caf::get_atom_v);
    caf::scoped_actor goes(other->system());
    goes->request(*theirs, caf::infinite, caf::get_atom_v);
    EXPECT_EQ(size(), 0);
  }
  other.reset();
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  int64_t there = 0;
  do {  // The queue hears of their ends soon.
    ASSERT_TRUE(session->RunTargets({put}, {{x, Tensor::Scalar<float>(2)}}).ok());
    there = size();
  } while (there == 0 && Clock::now() < deadline);
  EXPECT_EQ(there, 1);

  // What a process puts in, a graph takes out; several at once come stacked.
  caf::scoped_actor self(node->system());
  for (float value : {3.f, 4.f}) {
    self->request(*handle, caf::infinite, caf::put_atom_v,
                  Tensors{Tensor::Scalar<float>(value), Tensor::Scalar<std::string>("process")})
        .receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  }
  auto fetched = session->Run({got[0], got[1]});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->at(0).unchecked_scalar<float>(), 2);
  tuple = Ask<Tensors>(node->system(), *handle, caf::get_atom_v, int64_t{2});
  ASSERT_TRUE(tuple.ok()) << tuple.status();
  EXPECT_THAT(tuple->at(0).unchecked_values<float>(), ElementsAre(3, 4));
  absl::Status wrong;
  self->request(*handle, caf::infinite, caf::put_atom_v, Tensors{Tensor::Scalar<float>(1)})
      .receive([] {}, [&](const caf::error& e) { wrong = ToStatus(e); });
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
  self->request(*handle, caf::infinite, caf::close_atom_v, false)
      .receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  tuple = Ask<Tensors>(node->system(), *handle, caf::get_atom_v);
  EXPECT_EQ(tuple.status().code(), absl::StatusCode::kOutOfRange) << tuple.status();
  EXPECT_EQ(node->Find<QueueActor>(kTask1, "no such queue").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ClusterActorsTest, ATableIsSharedByGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output table = ops::MutableHashTableV2(on_1, ElementType::kString, ElementType::kInt64,
                                         {.shared_name = "ids"});
  Node* put = ops::LookupTableInsertV2(on_1, table, Tensor::Vector<std::string>({"a", "b"}),
                                       Tensor::Vector<int64_t>({1, 2}));
  Output found = ops::LookupTableFindV2(on_1, table, Tensor::Vector<std::string>({"c", "a"}),
                                        Tensor::Scalar<int64_t>(-1));
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join();
  ASSERT_TRUE(session->RunTargets({put}).ok());
  auto handle = node->Find<TableActor>(kTask1, "ids");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::actor_system& system = node->system();

  const Tensor none = Tensor::Scalar<int64_t>(-1);
  auto values =
      Ask<Tensor>(system, *handle, caf::get_atom_v, Tensor::Vector<std::string>({"b", "x"}), none);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->unchecked_values<int64_t>(), ElementsAre(2, -1));
  EXPECT_EQ(Order(system, *handle, caf::put_atom_v, Tensor::Vector<std::string>({"c"}),
                  Tensor::Vector<int64_t>({3})),
            absl::OkStatus());
  auto fetched = session->Run({found});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(fetched->at(0).unchecked_values<int64_t>(), ElementsAre(3, 1));
  EXPECT_EQ(Order(system, *handle, caf::delete_atom_v, Tensor::Vector<std::string>({"a", "b"})),
            absl::OkStatus());
  EXPECT_EQ(*Ask<int64_t>(system, *handle, size_atom_v), 1);
  auto all = Ask<Tensors>(system, *handle, caf::get_atom_v);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->at(0).unchecked_values<std::string>(), ElementsAre("c"));
  EXPECT_THAT(all->at(1).unchecked_values<int64_t>(), ElementsAre(3));

  // What does not fit.
  for (const Tensor& wrong : {Tensor(), Tensor::Vector<float>({1}), Tensor::Vector<int64_t>({1})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        Order(system, *handle, caf::put_atom_v, Tensor::Vector<std::string>({"c", "d"}), wrong)));
    EXPECT_TRUE(absl::IsInvalidArgument(
        Ask<Tensor>(system, *handle, caf::get_atom_v, wrong, none).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(node->Find<QueueActor>(kTask1, "ids").status()));
}

TEST_F(ClusterActorsTest, AMutexIsHeldByGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output mutex = ops::MutexV2(on_1, {.shared_name = "mutex"});
  Output lock = ops::MutexLock(on_1, mutex);
  Node* locked = ops::ConsumeMutexLock(on_1, lock);
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join(0), other = Join(1);
  ASSERT_TRUE(session->RunTargets({locked}).ok());
  auto handle = node->Find<MutexActor>(kTask1, "mutex");
  ASSERT_TRUE(handle.ok()) << handle.status();
  auto theirs = other->Find<MutexActor>(kTask1, "mutex");
  ASSERT_TRUE(theirs.ok()) << theirs.status();

  const auto graph_gets_it = [&](absl::Duration timeout) {
    return session->Run({}, {}, {locked}, {.timeout = timeout}).status();
  };
  caf::scoped_actor self(node->system());
  const auto ask = [&](auto&& atom) {
    absl::Status status;
    self->request(*handle, caf::infinite, atom)
        .receive([] {}, [&](const caf::error& e) { status = ToStatus(e); });
    return status;
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(ask(unlock_atom_v)));
  EXPECT_EQ(ask(lock_atom_v), absl::OkStatus());
  EXPECT_TRUE(absl::IsDeadlineExceeded(graph_gets_it(absl::Milliseconds(100))));
  // Only who holds it gives it back.
  EXPECT_TRUE(absl::IsFailedPrecondition(Order(node->system(), *handle, unlock_atom_v)));
  EXPECT_EQ(ask(unlock_atom_v), absl::OkStatus());
  EXPECT_EQ(graph_gets_it(absl::Seconds(10)), absl::OkStatus());

  // A holder that ends, one that waits and ends, and a process that goes.
  EXPECT_EQ(Order(node->system(), *handle, lock_atom_v), absl::OkStatus());
  EXPECT_EQ(graph_gets_it(absl::Seconds(10)), absl::OkStatus());
  EXPECT_EQ(ask(lock_atom_v), absl::OkStatus());
  std::optional<caf::scoped_actor> far(std::in_place, other->system());
  {
    caf::scoped_actor waits(other->system());
    waits->request(*theirs, caf::infinite, lock_atom_v);
  }
  auto got = (*far)->request(*theirs, caf::infinite, lock_atom_v);
  EXPECT_EQ(ask(unlock_atom_v), absl::OkStatus());
  got.receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(graph_gets_it(absl::Milliseconds(100))));

  // However many of its process wait, who holds it can give it back.
  {
    constexpr int kMostWaiting = 5000, kTooMany = 6000;
    caf::scoped_actor crowd(other->system());
    for (int i = 0; i < kMostWaiting; ++i) crowd->request(*theirs, caf::infinite, lock_atom_v);
    for (int i = kMostWaiting; i < kTooMany; ++i) {
      crowd->request(*theirs, caf::infinite, lock_atom_v)
          .receive([] { ADD_FAILURE() << "it is held"; },
                   [](const caf::error& e) {
                     EXPECT_TRUE(absl::IsResourceExhausted(ToStatus(e))) << ToStatus(e);
                   });
    }
    (*far)
        ->request(*theirs, absl::ToChronoSeconds(absl::Seconds(20)), unlock_atom_v)
        .receive([] {}, [](const caf::error& e) { ADD_FAILURE() << ToStatus(e); });
  }
  EXPECT_EQ(graph_gets_it(absl::Seconds(20)), absl::OkStatus());
  far.reset();
  other.reset();
  EXPECT_EQ(graph_gets_it(absl::Seconds(20)), absl::OkStatus());
}

TEST_F(ClusterActorsTest, ABarrierIsSharedByGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output barrier =
      ops::Barrier(on_1, {ElementType::kFloat, ElementType::kInt64},
                   {.shapes = {PartialShape({}), PartialShape({})}, .shared_name = "barrier"});
  Node* put = ops::BarrierInsertMany(on_1, barrier, Tensor::Vector<std::string>({"a", "b"}),
                                     Tensor::Vector<float>({1, 2}), 0);
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join();
  ASSERT_TRUE(session->RunTargets({put}).ok());
  auto handle = node->Find<BarrierActor>(kTask1, "barrier");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::actor_system& system = node->system();
  EXPECT_EQ(*Ask<int64_t>(system, *handle, size_atom_v), 0);

  auto tuples = std::async(std::launch::async, [&] {
    return Ask<Tensors>(system, *handle, caf::get_atom_v, int64_t{2});
  });
  const auto insert = [&](std::vector<std::string> keys, std::vector<int64_t> values) {
    return Order(system, *handle, caf::put_atom_v, int64_t{1}, Tensor::Vector<std::string>(keys),
                 Tensor::Vector<int64_t>(values));
  };
  EXPECT_EQ(insert({"b"}, {20}), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(Order(system, *handle, caf::put_atom_v, int64_t{0},
                                            Tensor::Vector<std::string>({"a"}),
                                            Tensor::Vector<float>({3}))));
  EXPECT_TRUE(absl::IsInvalidArgument(insert({"a", "c"}, {10})));
  EXPECT_EQ(insert({"a"}, {10}), absl::OkStatus());
  const auto taken = tuples.get();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(taken->at(1).unchecked_values<std::string>(),
              testing::UnorderedElementsAre("a", "b"));
  EXPECT_THAT(taken->at(3).unchecked_values<int64_t>(), testing::UnorderedElementsAre(10, 20));
  EXPECT_EQ(Order(system, *handle, caf::close_atom_v, true), absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(insert({"z"}, {1})));
  EXPECT_TRUE(
      absl::IsOutOfRange(Ask<Tensors>(system, *handle, caf::get_atom_v, int64_t{1}).status()));
}

TEST_F(ClusterActorsTest, AnAccumulatorAddsUpGradientsOfGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output sum = ops::ResourceConditionalAccumulator(on_1, ElementType::kFloat, PartialShape({2}),
                                                   {.shared_name = "gradients"});
  Node* apply =
      ops::ResourceAccumulatorApplyGradient(on_1, sum, ops::Const(on_1, Tensor::Scalar<int64_t>(0)),
                                            ops::Const(on_1, Tensor::Vector<float>({1, 2})));
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join(), other = Join(1);
  ASSERT_TRUE(session->RunTargets({apply}).ok());
  auto handle = node->Find<AccumulatorActor>(kTask1, "gradients");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(node->system());
  const auto told = [&](auto... message) {
    absl::Status status;
    self->request(*handle, std::chrono::seconds(20), message...)
        .receive([] {}, [&](const caf::error& e) { status = ToStatus(e); });
    return status;
  };
  const auto number = [&] { return *Ask<int64_t>(node->system(), *handle, size_atom_v); };
  EXPECT_EQ(number(), 1);
  // Those who wait take nothing once they are gone; others go on waiting.
  {
    auto theirs = other->Find<AccumulatorActor>(kTask1, "gradients");
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    caf::scoped_actor goes(other->system());
    goes->request(*theirs, caf::infinite, caf::get_atom_v, int64_t{2});
    EXPECT_EQ(number(), 1);
  }
  other.reset();
  auto mean = std::async(std::launch::async, [&] {
    return Ask<Tensors>(node->system(), *handle, caf::get_atom_v, int64_t{3});
  });
  EXPECT_TRUE(told(caf::put_atom_v, int64_t{0}, Tensors{Tensor::Vector<float>({3, 4})}).ok());
  EXPECT_TRUE(told(caf::put_atom_v, int64_t{0}, Tensors{Tensor::Vector<float>({5, 9})}).ok());
  const absl::StatusOr<Tensors> taken = mean.get();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(taken->at(0).unchecked_values<float>(), ElementsAre(3, 5));
  EXPECT_EQ(number(), 0);
  // What is stale is dropped, what does not fit refused.
  EXPECT_TRUE(told(caf::update_atom_v, int64_t{7}).ok());
  EXPECT_TRUE(told(caf::put_atom_v, int64_t{6}, Tensors{Tensor::Vector<float>({3, 4})}).ok());
  EXPECT_EQ(number(), 0);
  for (const Tensors& wrong : {Tensors{}, Tensors{Tensor()}, Tensors{Tensor::Scalar<float>(1)},
                               Tensors{Tensor::Vector<double>({1, 2})}}) {
    const absl::Status refused = told(caf::put_atom_v, int64_t{7}, wrong);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  }
  EXPECT_EQ(Ask<Tensors>(node->system(), *handle, caf::get_atom_v, int64_t{0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node->Find<QueueActor>(kTask1, "gradients").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ClusterActorsTest, ASessionIsAnActor) {
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({2})});
  Output y = ops::Mul(s, x, x);
  auto session = Session::Create(s.graph());
  ASSERT_TRUE(session.ok());
  auto node = Join(0), user = Join(1);
  auto published =
      node->Publish("model", caf::actor_cast<caf::actor>(MakeSessionActor(
                                 node->system(), std::shared_ptr<Session>(*std::move(session)))));
  ASSERT_TRUE(published.ok()) << published.status();
  auto model = user->Find<SessionActor>("", "model");
  ASSERT_TRUE(model.ok()) << model.status();
  using Names = std::vector<std::string>;
  auto answer = Ask<Tensors>(user->system(), *model, run_atom_v,
                             NamedTensors{{x.name(), Tensor::Vector<float>({3, 4})}},
                             Names{y.name()}, Names{});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->at(0).unchecked_values<float>(), ElementsAre(9, 16));
  answer =
      Ask<Tensors>(user->system(), *model, run_atom_v, NamedTensors{}, Names{"nowhere:0"}, Names{});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kNotFound) << answer.status();
}

}  // namespace
}  // namespace troupe
