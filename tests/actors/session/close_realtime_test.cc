// Closing a session whose kernel does not stop: the call returns at its limit, and says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "api/session.h"
#include "graph/graph_def.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

std::promise<void>* began;
std::promise<void>* let_go;

REGISTER_OP("CloseTestStuck").SetIsStateful();

/// Heeds no cancellation.
class Stuck : public Kernel {
 public:
  Stuck(KernelConstruction&, absl::Status*) {}
  absl::Status Compute(KernelContext&) override {
    began->set_value();
    let_go->get_future().wait();
    return absl::OkStatus();
  }
};
REGISTER_KERNEL(KernelSpec("CloseTestStuck"), MakeKernel<Stuck>);

TEST(CloseTest, ReturnsAtItsLimitAndSaysThatAKernelIsStillAtWork) {
  std::promise<void> now_began, now_let_go;
  began = &now_began;
  let_go = &now_let_go;
  GraphDef def;
  ASSERT_TRUE(ParseGraphDef("node { name: 'stuck' op: 'CloseTestStuck' }", &def).ok());
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(def, {}, graph.get()).ok());
  auto session = *Session::Create(graph, {});
  auto step =
      std::async(std::launch::async, [&] { return session->Run({}, {}, {"stuck"}, nullptr); });
  now_began.get_future().wait();

  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(session->Close().code(), absl::StatusCode::kDeadlineExceeded);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, std::chrono::seconds(10));  // SessionRole::Options::close_timeout.
  EXPECT_LT(took, std::chrono::seconds(15));
  EXPECT_EQ(session->Run({}, {}, {"stuck"}, nullptr).code(), absl::StatusCode::kCancelled);

  now_let_go.set_value();
  step.get().IgnoreError();            // Whichever came first: the kernel's end or the session's.
  EXPECT_TRUE(session->Close().ok());  // Nothing is at work any more.
}

}  // namespace
}  // namespace troupe
