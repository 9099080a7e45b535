#include "actors/executor/executor_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <new>
#include <stdexcept>
#include <thread>

#include "actors/state/containers.h"
#include "kernels/cancellation.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

/// A kernel made of a function.
class FunctionKernel : public Kernel {
 public:
  explicit FunctionKernel(std::function<absl::Status(KernelContext&)> f) : f_(std::move(f)) {}
  absl::Status Compute(KernelContext& ctx) override { return f_(ctx); }

 private:
  std::function<absl::Status(KernelContext&)> f_;
};

/// An asynchronous kernel that keeps its completion for the test to call.
class HeldKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone d) override {
    context = &ctx;
    done = d;
    if (started) started();
  }
  KernelContext* context = nullptr;
  KernelDone done{};
  std::function<void()> started;
};

/// Sums its inputs, in place where that is allowed.
std::shared_ptr<Kernel> Sum(std::vector<const void*>* buffers = nullptr) {
  return std::make_shared<FunctionKernel>([buffers](KernelContext& ctx) -> absl::Status {
    float sum = 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) sum += ctx.input(i).unchecked_scalar<float>();
    if (ctx.num_inputs() == 0) {
      ctx.set_output(0, Tensor::Scalar(1.0f));
    } else {
      absl::StatusOr<Tensor*> out = ctx.ForwardOrAllocate(0, 0);
      if (!out.ok()) return out.status();
      *(*out)->mutable_data<float>() = sum;
    }
    if (buffers != nullptr) buffers->push_back(ctx.output(0).raw_data());
    return absl::OkStatus();
  });
}

PlanSpec::Node MakeNode(std::string name, std::shared_ptr<Kernel> kernel,
                        std::vector<PlanSpec::Input> inputs = {}, std::vector<int> control = {},
                        int num_outputs = 1) {
  PlanSpec::Node node;
  node.name = std::move(name);
  node.op = "Test";
  node.kernel = std::move(kernel);
  node.inputs = std::move(inputs);
  node.control_inputs = std::move(control);
  node.num_outputs = num_outputs;
  return node;
}

class ExecutorRoleTest : public testing::Test {
 protected:
  ExecutorRoleTest() {
    step_.allocator = HostAllocator();
    step_.cancellation = &cancellation_;
  }
  std::unique_ptr<ExecutorRole> Make(PlanSpec spec) {
    spec.clock = &clock_;
    auto plan = Plan::Build(std::move(spec));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return std::make_unique<ExecutorRole>(*plan);
  }
  /// A microsecond passes whenever it is read.
  struct CountingClock final : TimeSource {
    uint64_t NowNs() override { return 1000 * ++read; }
    int64_t UnixNs() override { return 0; }
    std::atomic<uint64_t> read = 0;
  } clock_;
  CancellationToken cancellation_;
  StepContext step_;
};

TEST_F(ExecutorRoleTest, RunsADiamondAndReusesItself) {
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("feed", nullptr));
  spec.nodes.push_back(MakeNode("a", Sum(), {{0, 0}}));
  spec.nodes.push_back(MakeNode("b", Sum(), {{0, 0}, {0, 0}}));
  spec.nodes.push_back(MakeNode("c", Sum(), {{1, 0}, {2, 0}}));
  spec.feeds = {0};
  spec.fetches = {{3, 0}, {1, 0}, {3, 0}};
  auto executor = Make(std::move(spec));
  for (float x = 0; x < 5; ++x) {
    Tensor feed = Tensor::Scalar(x);
    Tensor fetched[3];
    ASSERT_TRUE(executor->Run(step_, {feed}, fetched).ok());
    EXPECT_EQ(fetched[0].unchecked_scalar<float>(), 3 * x);
    EXPECT_EQ(fetched[1].unchecked_scalar<float>(), x);
    EXPECT_EQ(fetched[2].unchecked_scalar<float>(), 3 * x);
    EXPECT_EQ(feed.unchecked_scalar<float>(), x) << "a fed tensor is never written to";
  }
}

TEST_F(ExecutorRoleTest, ChainsRunInPlace) {
  std::vector<const void*> buffers;
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("source", Sum(&buffers)));
  for (int i = 0; i < 10; ++i) spec.nodes.push_back(MakeNode("n", Sum(&buffers), {{i, 0}}));
  spec.fetches = {{10, 0}};
  auto executor = Make(std::move(spec));
  Tensor out[1];
  ASSERT_TRUE(executor->Run(step_, {}, out).ok());
  for (const void* buffer : buffers) EXPECT_EQ(buffer, buffers[0]);
}

TEST_F(ExecutorRoleTest, ConstantsAreNeverWrittenTo) {
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("constant", nullptr));
  spec.nodes[0].constants = {Tensor::Scalar(2.0f)};
  spec.nodes.push_back(MakeNode("twice", Sum(), {{0, 0}, {0, 0}}));
  spec.fetches = {{1, 0}, {0, 0}};
  auto executor = Make(std::move(spec));
  for (int i = 0; i < 3; ++i) {
    Tensor out[2];
    ASSERT_TRUE(executor->Run(step_, {}, out).ok());
    EXPECT_EQ(out[0].unchecked_scalar<float>(), 4);
    EXPECT_EQ(out[1].unchecked_scalar<float>(), 2);
  }
}

TEST_F(ExecutorRoleTest, ControlEdgesOrder) {
  std::vector<int> order;
  PlanSpec spec;
  for (int i = 0; i < 20; ++i) {
    std::vector<int> before;
    if (i > 0) before = {i - 1};
    // Every third node is one that only orders others.
    std::shared_ptr<Kernel> kernel;
    if (i % 3 != 0) {
      kernel = std::make_shared<FunctionKernel>([&order, i](KernelContext&) {
        order.push_back(i);
        return absl::OkStatus();
      });
    }
    spec.nodes.push_back(MakeNode("n", kernel, {}, before, 0));
  }
  auto executor = Make(std::move(spec));
  ASSERT_TRUE(executor->Run(step_, {}, {}).ok());
  EXPECT_EQ(order.size(), 13u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(ExecutorRoleTest, TheFirstErrorStopsWhatDependsOnItAndNamesItsNode) {
  bool ran = false;
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("source", Sum()));
  spec.nodes.push_back(MakeNode("bad", std::make_shared<FunctionKernel>([](KernelContext&) {
                                  return absl::InvalidArgumentError("no good");
                                }),
                                {{0, 0}}));
  spec.nodes.push_back(MakeNode("after", std::make_shared<FunctionKernel>([&](KernelContext&) {
                                  ran = true;
                                  return absl::OkStatus();
                                }),
                                {{1, 0}}));
  spec.fetches = {{2, 0}};
  auto executor = Make(std::move(spec));
  Tensor out[1];
  absl::Status status = executor->Run(step_, {}, out);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("no good"), testing::HasSubstr("bad")));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(cancellation_.cancelled());
  cancellation_.Reset();
  EXPECT_EQ(executor->Run(step_, {}, out).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExecutorRoleTest, ACancelledStepRunsNothing) {
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("source", Sum()));
  spec.fetches = {{0, 0}};
  auto executor = Make(std::move(spec));
  cancellation_.Cancel(absl::DeadlineExceededError("too late"));
  Tensor out[1];
  EXPECT_EQ(executor->Run(step_, {}, out).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ExecutorRoleTest, AnAsynchronousKernelMayFinishAtOnce) {
  class Immediate : public AsyncKernel {
    void ComputeAsync(KernelContext& ctx, KernelDone done) override {
      ctx.set_output(0, Tensor::Scalar(ctx.input(0).unchecked_scalar<float>() + 1));
      done(absl::OkStatus());
    }
  };
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("source", Sum()));
  for (int i = 0; i < 100; ++i) {
    spec.nodes.push_back(MakeNode("n", std::make_shared<Immediate>(), {{i, 0}}));
  }
  spec.fetches = {{100, 0}};
  auto executor = Make(std::move(spec));
  Tensor out[1];
  ASSERT_TRUE(executor->Run(step_, {}, out).ok());
  EXPECT_EQ(out[0].unchecked_scalar<float>(), 101);
}

// Others may rely on the thread that completes a kernel: it plays the step only if it says so.
TEST_F(ExecutorRoleTest, WhoMayPlayIsAnArgument) {
  for (const Player player : {Player::kHandsOn, Player::kPlays}) {
    auto held = std::make_shared<HeldKernel>();
    std::thread::id finisher;
    struct Rest : KernelRest {
      Rest(KernelContext* context, std::thread::id* thread) : ctx(context), finisher(thread) {}
      absl::Status Finish() override {
        *finisher = std::this_thread::get_id();
        ctx->set_output(0, Tensor::Scalar(5.0f));
        return absl::OkStatus();
      }
      KernelContext* ctx;
      std::thread::id* finisher;
    };
    std::thread completer;
    held->started = [&] {
      completer = std::thread([&] {
        // The caller does not spin any more.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        held->done(absl::OkStatus(), player, std::make_unique<Rest>(held->context, &finisher));
      });
    };
    std::thread::id after;
    PlanSpec spec;
    spec.nodes.push_back(MakeNode("held", held));
    spec.nodes.push_back(MakeNode("after",
                                  std::make_shared<FunctionKernel>([&](KernelContext& ctx) {
                                    after = std::this_thread::get_id();
                                    ctx.set_output(0, ctx.TakeInput(0));
                                    return absl::OkStatus();
                                  }),
                                  {{0, 0}}));
    spec.fetches = {{1, 0}};
    auto executor = Make(std::move(spec));
    for (int i = 0; i < 5; ++i) {
      Tensor out[1];
      ASSERT_TRUE(executor->Run(step_, {}, out).ok());
      EXPECT_EQ(out[0].unchecked_scalar<float>(), 5);
      EXPECT_EQ(after, finisher);
      if (player == Player::kHandsOn) {
        EXPECT_EQ(after, std::this_thread::get_id());
      }
      completer.join();
    }
  }
}

// With nobody who waits the pool plays.
TEST_F(ExecutorRoleTest, AStepWithoutACallerIsHandedToThePool) {
  ComputePool pool(2);
  step_.pool = &pool;
  auto held = std::make_shared<HeldKernel>();
  std::thread::id after;
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("held", held));
  spec.nodes.push_back(MakeNode("after", std::make_shared<FunctionKernel>([&](KernelContext& ctx) {
                                  after = std::this_thread::get_id();
                                  ctx.set_output(0, Tensor::Scalar(1.0f));
                                  return absl::OkStatus();
                                }),
                                {{0, 0}}));
  spec.fetches = {{1, 0}};
  auto executor = Make(std::move(spec));
  struct Completion : StepCompletion {
    void Over() noexcept override { promise.set_value(); }
    std::promise<void> promise;
  } over;
  executor->RunAsync(step_, {}, &over);
  held->context->set_output(0, Tensor::Scalar(5.0f));
  held->done(absl::OkStatus());
  over.promise.get_future().wait();
  EXPECT_NE(after, std::this_thread::get_id());
  Tensor out[1];
  EXPECT_TRUE(executor->Finish(out).ok());
}

TEST_F(ExecutorRoleTest, AFailedAsynchronousKernelFailsTheStep) {
  auto held = std::make_shared<HeldKernel>();
  std::thread completer;
  held->started = [&] {
    completer = std::thread([&] { held->done(absl::OutOfRangeError("drained")); });
  };
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("held", held));
  spec.fetches = {{0, 0}};
  auto executor = Make(std::move(spec));
  Tensor out[1];
  EXPECT_EQ(executor->Run(step_, {}, out).code(), absl::StatusCode::kOutOfRange);
  completer.join();
}

TEST_F(ExecutorRoleTest, ReferencesAreReadWhenTheirConsumerStarts) {
  Containers containers;
  auto variable = containers.FindOrCreateVariable("", "v", ElementType::kFloat, Shape());
  ASSERT_TRUE(variable.ok());
  Variable* v = variable->get();
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("v", std::make_shared<FunctionKernel>([v](KernelContext& ctx) {
                                  ctx.set_output_ref(0, v);
                                  return absl::OkStatus();
                                })));
  spec.nodes.push_back(MakeNode("assign", std::make_shared<FunctionKernel>([](KernelContext& ctx) {
                                  ctx.input_ref(0)->TryLend().set_value(Tensor::Scalar(7.0f));
                                  return absl::OkStatus();
                                }),
                                {{0, 0}}, {}, 0));
  spec.nodes.push_back(MakeNode("read", Sum(), {{0, 0, /*snapshot=*/true}}, {1}));
  spec.fetches = {{2, 0}, {0, 0, /*snapshot=*/true}};
  v->TryLend().set_value(Tensor::Scalar(3.0f));
  auto executor = Make(spec);
  Tensor out[2];
  ASSERT_TRUE(executor->Run(step_, {}, out).ok());
  EXPECT_EQ(out[0].unchecked_scalar<float>(), 7);
  EXPECT_EQ(out[1].unchecked_scalar<float>(), 3) << "a fetch is a snapshot at the end of its node";
}

TEST_F(ExecutorRoleTest, ABusyVariableIsWaitedForWithoutBlocking) {
  Containers containers;
  RefPtr<Variable> v = *containers.FindOrCreateVariable("", "v", ElementType::kFloat, Shape());
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("v", std::make_shared<FunctionKernel>([&](KernelContext& ctx) {
                                  ctx.set_output_ref(0, v.get());
                                  return absl::OkStatus();
                                })));
  spec.nodes.push_back(MakeNode("read", Sum(), {{0, 0, true}}));
  spec.fetches = {{1, 0}};
  auto executor = Make(std::move(spec));
  Variable::Lease lease = v->TryLend();
  lease.set_value(Tensor::Scalar(9.0f));
  std::thread release([&] { lease.Release(); });
  Tensor out[1];
  ASSERT_TRUE(executor->Run(step_, {}, out).ok());
  release.join();
  EXPECT_EQ(out[0].unchecked_scalar<float>(), 9);
}

TEST_F(ExecutorRoleTest, AnUninitialisedVariableIsNamed) {
  Containers containers;
  RefPtr<Variable> v =
      *containers.FindOrCreateVariable("", "weights", ElementType::kFloat, Shape());
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("v", std::make_shared<FunctionKernel>([&](KernelContext& ctx) {
                                  ctx.set_output_ref(0, v.get());
                                  return absl::OkStatus();
                                })));
  spec.fetches = {{0, 0, true}};
  auto executor = Make(std::move(spec));
  Tensor out[1];
  absl::Status status = executor->Run(step_, {}, out);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("weights"));
}

TEST_F(ExecutorRoleTest, ExpensiveKernelsAreSharedWithThePool) {
  ComputePool pool(2);
  step_.pool = &pool;
  PlanSpec spec;
  constexpr int kWide = 40;
  for (int i = 0; i < kWide; ++i) {
    spec.nodes.push_back(MakeNode("n", Sum()));
    spec.nodes.back().cost = KernelCost::kExpensive;
  }
  spec.nodes.push_back(MakeNode("sum", Sum()));
  for (int i = 0; i < kWide; ++i) spec.nodes.back().inputs.push_back({i, 0});
  spec.fetches = {{kWide, 0}};
  auto executor = Make(std::move(spec));
  for (int round = 0; round < 50; ++round) {
    Tensor out[1];
    ASSERT_TRUE(executor->Run(step_, {}, out).ok());
    ASSERT_EQ(out[0].unchecked_scalar<float>(), kWide);
  }
}

TEST_F(ExecutorRoleTest, TracesEveryNode) {
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("a", Sum()));
  spec.nodes.push_back(MakeNode("b", Sum(), {{0, 0}}));
  spec.fetches = {{1, 0}};
  auto executor = Make(std::move(spec));
  std::vector<NodeTrace> trace;
  Tensor out[1];
  ASSERT_TRUE(executor->Run(step_, {}, out, &trace).ok());
  ASSERT_EQ(trace.size(), 2u);
  // The clock that it was given, and no other, read before and after each node.
  EXPECT_EQ(trace[0].start_ns, 1000u);
  EXPECT_EQ(trace[0].end_ns, 2000u);
  EXPECT_EQ(trace[1].start_ns, 3000u);
  EXPECT_EQ(trace[1].end_ns, 4000u);
  EXPECT_EQ(executor->plan().cost_ns(0), 1000u);
  // The second, third and fourth run measure, and the 64th.
  for (int run = 2; run <= 65; ++run) ASSERT_TRUE(executor->Run(step_, {}, out).ok());
  EXPECT_EQ(clock_.read, 4u + 4 * 4);
}

TEST_F(ExecutorRoleTest, WithoutAClockNothingIsMeasured) {
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("a", Sum()));
  ExecutorRole executor(Plan::Build(std::move(spec)).value());
  std::vector<NodeTrace> trace;
  for (int run = 1; run <= 65; ++run) ASSERT_TRUE(executor.Run(step_, {}, {}, &trace).ok());
  EXPECT_TRUE(trace.empty());
  EXPECT_EQ(executor.plan().cost_ns(0), 0u);
}

// --- exceptions ---

/// An asynchronous kernel that throws instead of beginning, or after it is done.
class ThrowingAsyncKernel : public AsyncKernel {
 public:
  explicit ThrowingAsyncKernel(bool after) : after_(after) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    if (!throws) return Succeed(ctx, done);
    if (after_) Succeed(ctx, done);
    throw std::runtime_error("it threw");
  }
  bool throws = true;

 private:
  static void Succeed(KernelContext& ctx, KernelDone done) {
    ctx.set_output(0, Tensor::Scalar(1.0f));
    done(absl::OkStatus());
  }
  const bool after_;
};

TEST_F(ExecutorRoleTest, AnExceptionOfAKernelIsTheStepsError) {
  bool throws = true;
  PlanSpec spec;
  spec.nodes.push_back(MakeNode("before", Sum()));
  spec.nodes.push_back(
      MakeNode("culprit", std::make_shared<FunctionKernel>([&](KernelContext& ctx) -> absl::Status {
                 if (throws) throw std::runtime_error("it threw");
                 ctx.PassThrough(0, 0);
                 return absl::OkStatus();
               }),
               {{0, 0}}));
  spec.nodes.push_back(MakeNode("after", Sum(), {{1, 0}}));
  spec.fetches = {{2, 0}};
  auto executor = Make(std::move(spec));
  Tensor out[1];
  for (int i = 0; i < 3; ++i) {
    CancellationToken token;
    step_.cancellation = &token;
    throws = true;
    const absl::Status status = executor->Run(step_, {}, out);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("it threw"));
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("culprit"));
    token.Reset();
    throws = false;
    ASSERT_TRUE(executor->Run(step_, {}, out).ok()) << "the executor may be used again";
    EXPECT_EQ(out[0].unchecked_scalar<float>(), 1);
  }
}

TEST_F(ExecutorRoleTest, AnExceptionOfAnAsynchronousKernelIsTheStepsError) {
  for (bool after : {false, true}) {
    for (int threads : {1, 3}) {
      ComputePool pool(threads);
      step_.pool = &pool;
      PlanSpec spec;
      std::vector<std::shared_ptr<ThrowingAsyncKernel>> kernels;
      for (int i = 0; i < 6; ++i) {
        kernels.push_back(std::make_shared<ThrowingAsyncKernel>(after));
        // The estimate says that some are worth a thread of the pool.
        spec.nodes.push_back(MakeNode("culprit", kernels.back()));
        spec.nodes.back().cost = i % 2 == 0 ? KernelCost::kExpensive : KernelCost::kCheap;
        spec.fetches.push_back({i, 0});
      }
      auto executor = Make(std::move(spec));
      Tensor out[6];
      for (int round = 0; round < 50; ++round) {
        CancellationToken token;
        step_.cancellation = &token;
        for (auto& kernel : kernels) kernel->throws = true;
        const absl::Status status = executor->Run(step_, {}, out);
        if (!after) {
          EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
          EXPECT_THAT(std::string(status.message()), testing::HasSubstr("culprit"));
        }
        token.Reset();
        for (auto& kernel : kernels) kernel->throws = false;
        ASSERT_TRUE(executor->Run(step_, {}, out).ok());
        for (const Tensor& tensor : out) EXPECT_EQ(tensor.unchecked_scalar<float>(), 1);
      }
    }
  }
}

TEST_F(ExecutorRoleTest, AnExceptionOnThePoolIsTheStepsError) {
  ComputePool pool(3);
  step_.pool = &pool;
  bool throws = true;
  PlanSpec spec;
  for (int i = 0; i < 8; ++i) {
    spec.nodes.push_back(MakeNode(
        "culprit", std::make_shared<FunctionKernel>([&](KernelContext& ctx) -> absl::Status {
          ctx.ParallelFor(8, 1, [&](int64_t, int64_t) {
            if (throws) throw std::bad_alloc();
          });
          ctx.set_output(0, Tensor::Scalar(1.0f));
          return absl::OkStatus();
        })));
    spec.nodes.back().cost = KernelCost::kExpensive;
    spec.fetches.push_back({i, 0});
  }
  auto executor = Make(std::move(spec));
  Tensor out[8];
  for (int round = 0; round < 50; ++round) {
    CancellationToken token;
    step_.cancellation = &token;
    throws = true;
    const absl::Status status = executor->Run(step_, {}, out);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("culprit"));
    token.Reset();
    throws = false;
    ASSERT_TRUE(executor->Run(step_, {}, out).ok());
  }
}

}  // namespace
}  // namespace troupe
