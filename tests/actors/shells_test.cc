#include "actors/shells.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <thread>

#include "actors/system.h"
#include "api/ops.h"
#include "api/scope.h"

namespace troupe {
namespace {

/// Asks an actor and waits for the answer.
template <typename Reply, typename Actor, typename Request>
Reply Ask(caf::actor_system& system, const Actor& actor, Request request) {
  Reply result;
  caf::scoped_actor self{system};
  self->request(actor, std::chrono::seconds(20), std::move(request))
      .receive([&](Reply& reply) { result = std::move(reply); },
               [&](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  return result;
}

TEST(ShellsTest, ASessionIsAnActor) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat);
  ops::Square(s.WithOpName("y"), x);
  auto runtime = *Runtime::Create({.threads = 2});
  SessionRole role(s.graph(), runtime, {});
  ActorSystem system(2);
  {
    const SessionActor actor = SpawnSession(system.caf(), &role);
    const RunReply good =
        Ask<RunReply>(system.caf(), actor, RunRequest{{{"x", Tensor::Scalar(3.0f)}}, {"y"}, {}});
    ASSERT_TRUE(good.status.ok()) << good.status;
    EXPECT_EQ(good.values[0].unchecked_scalar<float>(), 9);
    const RunReply bad = Ask<RunReply>(system.caf(), actor, RunRequest{{}, {"nothing"}, {}});
    EXPECT_EQ(bad.status.code(), absl::StatusCode::kNotFound);
  }
}

TEST(ShellsTest, AnotherThreadMayEndASystem) {
  Scope s = Scope::NewRoot();
  auto runtime = *Runtime::Create({.threads = 1});
  SessionRole role(s.graph(), runtime, {});
  auto system = std::make_unique<ActorSystem>(1);
  auto shell = std::make_unique<SessionShell>(system.get(), &role);
  std::promise<void> over;
  std::thread ender([&] {
    shell.reset();
    system.reset();
    over.set_value();
  });
  // This thread, which has made them, lives on.
  if (over.get_future().wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    std::cerr << "the end of the system waits for ever\n";
    std::abort();
  }
  ender.join();
}

TEST(ShellsTest, ADeviceAnswersForItsVariables) {
  auto runtime = *Runtime::Create({.threads = 1});
  ActorSystem system(1);
  const DeviceActor actor = SpawnDevice(system.caf(), runtime->devices()[0].get());
  EXPECT_EQ(Ask<VariableReply>(system.caf(), actor, ReadVariableRequest{"", "v"}).status.code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(
      Ask<VariableReply>(system.caf(), actor, AssignVariableRequest{"", "v", Tensor::Scalar(4.0f)})
          .status.ok());
  const VariableReply read = Ask<VariableReply>(system.caf(), actor, ReadVariableRequest{"", "v"});
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.value.unchecked_scalar<float>(), 4);
  using Names = std::vector<std::string>;
  EXPECT_EQ(Ask<Names>(system.caf(), actor, ListResourcesRequest{}).size(), 1u);
  EXPECT_TRUE(Ask<Names>(system.caf(), actor, ResetContainerRequest{""}).empty());
}

TEST(ShellsTest, AVariableThatIsLentAnswersLater) {
  auto runtime = *Runtime::Create({.threads = 1});
  DeviceRole* device = runtime->devices()[0].get();
  ActorSystem system(1);
  const DeviceActor actor = SpawnDevice(system.caf(), device);
  auto variable = *device->containers.FindOrCreateVariable("", "v", ElementType::kFloat, Shape());
  Variable::Lease lease = variable->TryLend();
  lease.set_value(Tensor::Scalar(1.0f));
  caf::scoped_actor self{system.caf()};
  auto pending = self->request(actor, std::chrono::seconds(20), ReadVariableRequest{"", "v"});
  lease.Release();
  float value = 0;
  pending.receive([&](VariableReply& reply) { value = reply.value.unchecked_scalar<float>(); },
                  [&](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace troupe
