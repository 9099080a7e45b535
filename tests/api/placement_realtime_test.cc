// Sessions on a cluster learn what steps cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

TEST(PlaceAgain, PartsWhatHasBeenFoundToBeSlow) {
  const std::string host = "127.0.0.1:";
  ServerOptions server_options;
  server_options.cluster = *ClusterSpec::Create(
      {{"worker", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}}});
  server_options.job = "worker";
  std::vector<std::unique_ptr<Server>> servers;
  for (server_options.task = 0; server_options.task < 2; ++server_options.task) {
    auto server = Server::Start(server_options);
    ASSERT_TRUE(server.ok()) << server.status();
    servers.push_back(*std::move(server));
  }

  // Two chains of which nothing is known but that they are fed: by estimate they are short.
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat);
  Output a = x, b = x;
  for (int i = 0; i < 10; ++i) {
    a = ops::Tanh(s, a);
    b = ops::Erf(s, b);
  }
  Output sum = ops::Add(s, ReduceMean(s, a), ReduceMean(s, b));
  ASSERT_TRUE(s.ok()) << s.status();
  SessionOptions options;
  options.target = servers[0]->target();
  auto session = Session::Create(s.graph(), options);
  ASSERT_TRUE(session.ok()) << session.status();

  const Tensor fed = Tensor::Vector<float>(std::vector<float>(400000, 0.7f));
  const std::vector<Tensor> feeds = {fed};
  std::vector<Tensor> before(1), after(1);
  auto step = (*session)->MakeCallable({x}, {sum});
  ASSERT_TRUE(step.ok()) << step.status();
  for (int i = 0; i < 9; ++i) {  // With the eighth the master is told.
    absl::Status status = (*step)(feeds, absl::MakeSpan(before));
    ASSERT_TRUE(status.ok()) << status;
  }
  auto same = (*session)->MakeCallable({x}, {sum});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->num_nodes(), step->num_nodes());

  (*session)->PlaceAgain();
  auto parted = (*session)->MakeCallable({x}, {sum});
  ASSERT_TRUE(parted.ok()) << parted.status();
  EXPECT_GT(parted->num_nodes(), step->num_nodes());  // Send and Recv.
  for (const Session::Callable& callable : {*parted, *step}) {
    absl::Status status = callable(feeds, absl::MakeSpan(after));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(after[0].unchecked_scalar<float>(), before[0].unchecked_scalar<float>());
  }
}

TEST(PlaceAgain, LocalSessionsGoOn) {
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat);
  Output y = ops::Neg(s, ops::Exp(s, x));
  SessionOptions options;
  options.num_cpu_devices = 2;
  auto session = Session::Create(s.graph(), options);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 3; ++i) {
    auto values = (*session)->Run({{x, Tensor::Scalar(0.0f)}}, {y});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<float>(), -1);
    (*session)->PlaceAgain();
  }
}

}  // namespace
}  // namespace troupe
