// Kernels that go on whatever is asked of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "api/cluster.h"
#include "api/troupe.h"
#include "graph/graph_def.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel_registry.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::HasSubstr;

REGISTER_OP("StuckTestOp").Output("y: int32").SetIsStateful();

std::promise<void> entered;
std::promise<void> may_go;

class Stuck : public Kernel {
 public:
  Stuck(KernelConstruction&, absl::Status*) {}
  absl::Status Compute(KernelContext& ctx) override {
    entered.set_value();
    may_go.get_future().wait();
    ctx.set_output(0, Tensor::Scalar<int32_t>(1));
    return absl::OkStatus();
  }
};
REGISTER_KERNEL(KernelSpec("StuckTestOp"), MakeKernel<Stuck>);

TEST(StuckKernels, ATaskThatIsStoppedIsNotToBeFound) {
  const std::string host = "127.0.0.1:";
  ServerOptions options;
  options.cluster = *ClusterSpec::Create({{"ps", {host + std::to_string(FreePort())}},
                                          {"worker", {host + std::to_string(FreePort())}}});
  options.heartbeat_interval = absl::Milliseconds(200);
  options.heartbeat_timeout = absl::Seconds(1);
  const auto start = [&](const std::string& job) {
    options.job = job;
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  };
  auto ps = start("ps"), worker = start("worker");
  ASSERT_TRUE(ps != nullptr && worker != nullptr);
  GraphDef def;
  ASSERT_TRUE(ParseGraphDef("node { name: 'stuck' op: 'StuckTestOp' device: '/job:worker/task:0' }"
                            "node { name: 'end' op: 'Identity' input: 'stuck' device: "
                            "'/job:ps/task:0' attr { key: 'T' value { type: DT_INT32 } } }"
                            "node { name: 'seven' op: 'Const' device: '/job:worker/task:0' "
                            "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' "
                            "value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 7 } } } }",
                            &def)
                  .ok());
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(def, {}, graph.get()).ok());
  auto session = Session::Create(graph, {.target = ps->target()});
  ASSERT_TRUE(session.ok()) << session.status();
  auto step = std::async(std::launch::async, [&] {
    std::vector<Tensor> values;
    const absl::Status status = (*session)->Run({}, {"end"}, {}, &values);
    return std::pair(status, absl::Now());
  });
  entered.get_future().wait();
  const absl::Time stopped = absl::Now();
  const absl::Status stop = worker->Stop(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stop)) << stop;
  EXPECT_LT(absl::Now() - stopped, absl::Seconds(6));
  const auto [status, ended] = step.get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:worker/replica:0/task:0"));
  EXPECT_LT(ended - stopped, 2 * options.heartbeat_timeout);
  // Its kernel is still at work; another process may serve at its address, under its name.
  worker.reset();
  worker = start("worker");
  ASSERT_NE(worker, nullptr);
  std::vector<Tensor> values;
  absl::Status again = absl::UnavailableError("");
  for (const absl::Time end = absl::Now() + absl::Seconds(5); !again.ok() && absl::Now() < end;) {
    again = (*session)->Run({}, {"seven"}, {}, &values);
  }
  ASSERT_TRUE(again.ok()) << again;
  EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), 7);
  may_go.set_value();
}

}  // namespace
}  // namespace troupe
