// What it costs to put an element into a queue and to take it out again, and the same for gradients
// of an accumulator; by one thread, and by four whose steps meet at the same resource.

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "troupe/troupe.h"

namespace troupe {
namespace {

constexpr int kPairs = 100;  // A step: one after the other.

/// Makes the step; its last node.
using Build = Node* (*)(const Scope& s);

Node* QueuePairs(const Scope& s) {
  const Output queue = ops::FIFOQueueV2(s, {ElementType::kFloat});
  const Output one = ops::Const(s, 1.0f);
  Node* last = one.node;
  for (int i = 0; i < kPairs; ++i) {
    Node* put = ops::QueueEnqueueV2(s.WithControlDependencies({last}), queue, {one});
    last =
        ops::QueueDequeueV2(s.WithControlDependencies({put}), queue, {ElementType::kFloat})[0].node;
  }
  return last;
}

/// With `kTake` every gradient is taken out again, else all are added up.
template <bool kTake>
Node* Gradients(const Scope& s) {
  const Output sum =
      ops::ResourceConditionalAccumulator(s, ElementType::kFloat, PartialShape(Shape()));
  const Output one = ops::Const(s, 1.0f), step = ops::Const(s, int64_t{1} << 60);
  const Output required = ops::Const(s, int32_t{1});
  Node* last = one.node;
  for (int i = 0; i < kPairs; ++i) {
    last = ops::ResourceAccumulatorApplyGradient(s.WithControlDependencies({last}), sum, step, one);
    if (kTake) {
      last = ops::ResourceAccumulatorTakeGradient(s.WithControlDependencies({last}), sum, required,
                                                  ElementType::kFloat)
                 .node;
    }
  }
  return last;
}

/// One session for all threads.
struct Shared {
  std::unique_ptr<Session> session;
  Session::Callable callable;
};

void RunPairs(benchmark::State& state, Build build) {
  static std::unique_ptr<Shared> shared;
  if (state.thread_index() == 0) {
    shared = std::make_unique<Shared>();
    Scope s = Scope::NewRoot();
    Node* last = build(s);
    SessionOptions options;
    options.threads = 1;
    shared->session = Session::Create(s.graph(), options).value();
    shared->callable = shared->session->MakeCallable({}, {}, absl::MakeConstSpan(&last, 1)).value();
  }
  for (auto _ : state) {
    if (!shared->callable({}, {}).ok()) state.SkipWithError("the run failed");
  }
  state.SetItemsProcessed(state.iterations() * kPairs);
  if (state.thread_index() == 0) shared.reset();
}
BENCHMARK_CAPTURE(RunPairs, Queue, &QueuePairs)->Threads(1)->Threads(4)->UseRealTime();
BENCHMARK_CAPTURE(RunPairs, ApplyAndTake, &Gradients<true>)->UseRealTime();
BENCHMARK_CAPTURE(RunPairs, Apply, &Gradients<false>)->Threads(1)->Threads(4)->UseRealTime();

}  // namespace
}  // namespace troupe

BENCHMARK_MAIN();
