// The cost of a node: plans of trivial kernels run by the executor alone, and whole runs through a
// session.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/executor/executor_role.h"
#include "actors/executor/plan.h"
#include "devices/caching_allocator.h"
#include "kernels/cancellation.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

/// The first input, as it is.
class PassKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
};

/// A new scalar: the sum of all inputs, in place if possible.
class SumKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    float sum = 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) sum += ctx.input(i).unchecked_scalar<float>();
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out,
        ctx.ForwardEitherOrAllocate(0, ctx.num_inputs() - 1, 0, ElementType::kFloat, Shape()));
    *out->mutable_data<float>() = sum;
    return absl::OkStatus();
  }
};

PlanSpec::Node Source() {
  PlanSpec::Node node;
  node.name = node.op = "source";
  node.constants = {Tensor::Scalar(1.0f)};
  node.num_outputs = 1;
  return node;
}

PlanSpec::Node Node(std::shared_ptr<Kernel> kernel, std::vector<PlanSpec::Input> inputs) {
  PlanSpec::Node node;
  node.name = node.op = "node";
  node.kernel = std::move(kernel);
  node.inputs = std::move(inputs);
  node.num_outputs = 1;
  return node;
}

void RunPlan(benchmark::State& state, PlanSpec spec, int64_t nodes) {
  spec.clock = TimeSource::System();
  absl::StatusOr<std::shared_ptr<const Plan>> plan = Plan::Build(std::move(spec));
  if (!plan.ok()) {
    state.SkipWithError(std::string(plan.status().message()).c_str());
    return;
  }
  ExecutorRole executor(*plan);
  CancellationToken token;
  StepContext step;
  step.cancellation = &token;
  step.allocator = CachingAllocator::Get();
  for (auto _ : state) {
    const absl::Status status = executor.Run(step, {}, {});
    if (!status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      return;
    }
  }
  state.SetItemsProcessed(state.iterations() * nodes);
}

template <typename K>
void Chain(benchmark::State& state) {
  const int64_t length = state.range(0);
  PlanSpec spec;
  spec.nodes.push_back(Source());
  auto kernel = std::make_shared<K>();
  for (int i = 0; i < length; ++i) spec.nodes.push_back(Node(kernel, {{i, 0}}));
  RunPlan(state, std::move(spec), length);
}
BENCHMARK(Chain<PassKernel>)->Arg(100)->Arg(10000);
BENCHMARK(Chain<SumKernel>)->Arg(100)->Arg(10000);

/// Layers of nodes with two inputs each.
void Layers(benchmark::State& state) {
  const int width = static_cast<int>(state.range(0)), depth = static_cast<int>(state.range(1));
  PlanSpec spec;
  auto kernel = std::make_shared<SumKernel>();
  for (int i = 0; i < width; ++i) spec.nodes.push_back(Source());
  for (int layer = 0; layer < depth; ++layer) {
    for (int i = 0; i < width; ++i) {
      spec.nodes.push_back(
          Node(kernel, {{layer * width + i, 0}, {layer * width + (i + 1) % width, 0}}));
    }
  }
  RunPlan(state, std::move(spec), int64_t{width} * depth);
}
BENCHMARK(Layers)->Args({10, 10})->Args({100, 100});

void NoOps(benchmark::State& state) {
  const int64_t length = state.range(0);
  PlanSpec spec;
  for (int i = 0; i < length; ++i) {
    PlanSpec::Node node;
    node.name = node.op = "NoOp";
    if (i > 0) node.control_inputs = {i - 1};
    spec.nodes.push_back(std::move(node));
  }
  RunPlan(state, std::move(spec), length);
}
BENCHMARK(NoOps)->Arg(100)->Arg(10000);

/// A session on one Identity of a placeholder.
struct NullSession {
  NullSession() {
    Scope s = Scope::NewRoot();
    x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat, {.shape = PartialShape({})});
    y = ops::Identity(s.WithOpName("y"), x);
    SessionOptions options;
    options.threads = 1;
    auto created = Session::Create(s.graph(), options);
    if (created.ok()) session = *std::move(created);
  }
  Output x, y;
  std::unique_ptr<Session> session;
};

void NullRunByCallable(benchmark::State& state) {
  NullSession null;
  auto callable = null.session->MakeCallable({"x"}, {"y"}, {});
  const Tensor feed = Tensor::Scalar(1.0f);
  Tensor value;
  for (auto _ : state) {
    if (!(*callable)(absl::MakeSpan(&feed, 1), absl::MakeSpan(&value, 1)).ok()) {
      state.SkipWithError("the run failed");
    }
  }
}
BENCHMARK(NullRunByCallable);

void NullRunByName(benchmark::State& state) {
  NullSession null;
  const NamedTensors feeds = {{"x", Tensor::Scalar(1.0f)}};
  const std::vector<std::string> fetches = {"y"}, targets;
  std::vector<Tensor> values;
  for (auto _ : state) {
    if (!null.session->Run(feeds, fetches, targets, &values).ok())
      state.SkipWithError("the run failed");
  }
}
BENCHMARK(NullRunByName);

void NullRunByTensor(benchmark::State& state) {
  NullSession null;
  const FeedMap feeds = {{null.x, Tensor::Scalar(1.0f)}};
  for (auto _ : state) {
    if (!null.session->Run(feeds, {null.y}).ok()) state.SkipWithError("the run failed");
  }
}
BENCHMARK(NullRunByTensor);

}  // namespace
}  // namespace troupe

BENCHMARK_MAIN();
