// What functions promise about time and memory.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <thread>

#include "api/functions.h"
#include "api/ops.h"
#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/resident_memory.h"

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

// "At once" where other programs may take the processor away for a while.
constexpr std::chrono::seconds kAtOnce(2);

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
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100) + kAtOnce);

    std::thread closer([&] {
      // The loop below is to be running; a session does not tell.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      start = std::chrono::steady_clock::now();
      EXPECT_TRUE(session->Close().ok());
    });
    status = session->Run({{"n", Tensor::Scalar<int32_t>(-1)}}, {"w"}, {}, &values);
    closer.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - start, kAtOnce);
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

enum class Call { kKept, kLowered, kInlined };

/// "c" calls F0, which calls F1, and so on: `n` functions, each of which negates.
std::shared_ptr<Graph> ChainGraph(int n, Call kind) {
  GraphDef def;
  def.mutable_versions()->set_producer(1000);
  auto call = [&](NodeDef* node, int function, const std::string& input) {
    node->set_name("c");
    node->add_input(input);
    const std::string callee = StrCat("F", function);
    node->set_op(kind == Call::kInlined ? callee : "PartitionedCall");
    if (kind == Call::kInlined) return;
    auto& attrs = *node->mutable_attr();
    attrs["f"].mutable_func()->set_name(callee);
    attrs["Tin"].mutable_list()->add_type(DT_FLOAT);
    attrs["Tout"].mutable_list()->add_type(DT_FLOAT);
    attrs["_lower_using_switch_merge"].set_b(kind == Call::kLowered);
  };
  auto argument = [](OpDef::ArgDef* arg, const char* name) {
    arg->set_name(name);
    arg->set_type(DT_FLOAT);
  };
  for (int i = 0; i < n; ++i) {
    FunctionDef* function = def.mutable_library()->add_function();
    function->mutable_signature()->set_name(StrCat("F", i));
    argument(function->mutable_signature()->add_input_arg(), "x");
    argument(function->mutable_signature()->add_output_arg(), "result");
    NodeDef* negated = function->add_node_def();
    negated->set_name("negated");
    negated->set_op("Neg");
    negated->add_input("x");
    (*negated->mutable_attr())["T"].set_type(DT_FLOAT);
    const bool last = i + 1 == n;
    if (!last) call(function->add_node_def(), i + 1, "negated:y:0");
    (*function->mutable_ret())["result"] = last                     ? "negated:y:0"
                                           : kind == Call::kInlined ? "c:result:0"
                                                                    : "c:output:0";
  }
  NodeDef* x = def.add_node();
  x->set_name("x");
  x->set_op("Placeholder");
  (*x->mutable_attr())["dtype"].set_type(DT_FLOAT);
  call(def.add_node(), 0, "x");
  auto graph = std::make_shared<Graph>();
  const absl::Status status = ImportGraphDef(def, {}, graph.get());
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

/// What this thread has computed so far: others on the machine do not count.
double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST(ChainTest, TheFirstRunOfAChainOfCallsTakesTimeInProportionToItsLength) {
  auto first_run = [](int n, Call kind) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      SessionOptions options;
      options.threads = 1;
      auto session = *Session::Create(ChainGraph(n, kind), options);
      std::vector<Tensor> values;
      const double start = CpuSeconds();
      const absl::Status status = session->Run({{"x", Tensor::Scalar(1.0f)}}, {"c"}, {}, &values);
      best = std::min(best, CpuSeconds() - start);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(values[0].unchecked_scalar<float>(), 1.0f);
    }
    return best;
  };
  for (Call kind : {Call::kKept, Call::kLowered, Call::kInlined}) {
    // 8 if in proportion, 64 if with the square; some more for what no cache holds.
    EXPECT_LT(first_run(3200, kind) / first_run(400, kind), 30) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace troupe
