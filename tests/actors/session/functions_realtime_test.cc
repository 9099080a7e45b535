// What functions promise about time and memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "api/functions.h"
#include "api/ops.h"
#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

/// "w": counts from 0 until it is "n", for the lowered and the direct form; an n below 0 never
/// ends.
std::shared_ptr<Graph> LoopGraph(bool lowered) {
  constexpr ElementType kInt = ElementType::kInt32;
  const Scope s = Scope::NewRoot();
  const Function go =
      DefineFunction(s, "Go", {kInt, kInt}, [](const Scope& s, absl::Span<const Output> args) {
        return std::vector<Output>{ops::NotEqual(s, args[0], args[1])};
      });
  const Function step =
      DefineFunction(s, "Step", {kInt, kInt}, [](const Scope& s, absl::Span<const Output> args) {
        const Output next = ops::FloorMod(s, ops::Add(s, args[0], 1), 2000000000);
        return std::vector<Output>{next, args[1]};
      });
  const Output n = ops::Placeholder(s.WithOpName("n"), kInt);
  FunctionalWhile(s.WithOpName("w"), {0, n}, go, step);
  EXPECT_TRUE(s.ok()) << s.status();
  if (!lowered) return s.graph();
  GraphDef def;
  s.graph()->ToGraphDef(&def);
  for (NodeDef& node : *def.mutable_node()) {
    if (node.name() == "w") (*node.mutable_attr())["_lower_using_switch_merge"].set_b(true);
  }
  auto graph = std::make_shared<Graph>();
  const absl::Status status = ImportGraphDef(def, {}, graph.get());
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class LoopTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DirectAndLowered, LoopTest, testing::Bool());

TEST_P(LoopTest, AnEndlessLoopObeysTheDeadlineAndTheClosingOfItsSession) {
  for (int threads : {1, 2}) {
    SessionOptions options;
    options.threads = threads;
    auto session = *Session::Create(LoopGraph(GetParam()), options);
    std::vector<Tensor> values;
    RunOptions run;
    run.timeout = absl::Milliseconds(100);
    auto start = std::chrono::steady_clock::now();
    absl::Status status =
        session->Run(run, {{"n", Tensor::Scalar<int32_t>(-1)}}, {"w"}, {}, &values);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));

    std::thread closer([&] {
      // The loop below is to be running; a session does not tell.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      start = std::chrono::steady_clock::now();
      EXPECT_TRUE(session->Close().ok());
    });
    status = session->Run({{"n", Tensor::Scalar<int32_t>(-1)}}, {"w"}, {}, &values);
    closer.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  }
}

TEST_P(LoopTest, MemoryIsFlatOverAMillionIterations) {
  auto session = *Session::Create(LoopGraph(GetParam()));
  std::vector<Tensor> values;
  auto run = [&](int32_t n) {
    const absl::Status status = session->Run({{"n", Tensor::Scalar(n)}}, {"w"}, {}, &values);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(values[0].unchecked_scalar<int32_t>(), n);
  };
  run(10000);
  const int64_t before = ResidentBytes();
  run(1000000);
  EXPECT_LT(ResidentBytes() - before, 1 << 20);
}

}  // namespace
}  // namespace troupe
