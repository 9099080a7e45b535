// Plans whose kernels enqueue work on a device, here the simulated one.
#include "actors/executor/on_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "actors/session/memory_spaces.h"
#include "kernels/cancellation.h"
#include "tests/devices/simulated/simulated_device.h"

namespace troupe {
namespace {

using troupe::testing::Reach;
using troupe::testing::SimulatedOptions;
using troupe::testing::SimulatedStream;

float* At(const Tensor& tensor) { return static_cast<float*>(Reach(tensor.raw_data())); }

/// Adds 1 to the sum of its inputs, on the device, in place where that is allowed.
class AddOne : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    std::vector<const float*> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) inputs.push_back(At(ctx.input(i)));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
    const int64_t ahead = called.fetch_add(1) + 1 - done.load();
    if (ahead > most_ahead) most_ahead = ahead;
    Enqueue(ctx, [this, inputs, to = At(*out), report = ctx.step().late_errors->reporter()] {
      float sum = 1;
      for (const float* input : inputs) sum += *input;
      *to = sum;
      if (fails) report(absl::InvalidArgumentError("found out late"));
      done.fetch_add(1);
    });
    return failed;
  }
  static void Enqueue(KernelContext& ctx, std::function<void()> work) {
    static_cast<SimulatedStream*>(ctx.step().stream)->Enqueue(std::move(work));
  }

  std::atomic<int64_t> called{0}, done{0};
  std::atomic<int64_t> most_ahead{0};  ///< Calls that the device had not come to.
  bool fails = false;
  absl::Status failed;
};

/// On the host.
class NegateHere : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    ++called;
    return ctx.SetScalar(0, -ctx.input(0).unchecked_scalar<float>());
  }
  std::atomic<int> called{0};
};

class OnDeviceTest : public ::testing::Test {
 protected:
  void MakeDevice(const SimulatedOptions& options = {}) {
    troupe::testing::UseSimulatedDevices(options);
    auto devices = DeviceRegistry::Global()->MakeDevices("j", 0, {{"SIM", {}}}, nullptr);
    device_ = std::move(devices->back());
    step_.device = device_.get();
    step_.allocator = HostAllocator();
    step_.stream = device_->stream();
    step_.cancellation = &cancellation_;
    spec_.device_name = device_->name();
  }
  int Add(std::string name, std::shared_ptr<Kernel> kernel, std::vector<PlanSpec::Input> inputs,
          MemorySpace space = MemorySpace::kDevice) {
    ArgumentSpaces spaces{std::vector<MemorySpace>(inputs.size(), space), {space}};
    spec_.nodes.push_back({.name = std::move(name),
                           .op = "Test",
                           .kernel = std::move(kernel),
                           .inputs = std::move(inputs),
                           .num_outputs = 1,
                           .spaces = std::move(spaces)});
    return static_cast<int>(spec_.nodes.size()) - 1;
  }
  int Feed() {
    spec_.nodes.push_back({.name = "feed", .num_outputs = 1});
    spec_.feeds.push_back(static_cast<int>(spec_.nodes.size()) - 1);
    return spec_.feeds.back();
  }
  int Chain(int from, int length) {
    for (int i = 0; i < length; ++i) from = Add("n", add_, {{from, 0}});
    return from;
  }
  std::unique_ptr<ExecutorRole> Make() {
    EXPECT_TRUE(MakeSpacesAgree(device_.get(), &spec_).ok());
    auto plan = Plan::Build(spec_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return std::make_unique<ExecutorRole>(*plan);
  }
  /// The only fetch.
  absl::StatusOr<float> Run(ExecutorRole* executor, float feed = 0) {
    Tensor out[1];
    TROUPE_RETURN_IF_ERROR(executor->Run(step_, {Tensor::Scalar(feed)}, out));
    EXPECT_EQ(add_->called, add_->done) << "a step leaves no work behind";
    return out[0].scalar<float>();
  }

  std::unique_ptr<Device> device_;
  CancellationToken cancellation_;
  StepContext step_;
  PlanSpec spec_;
  std::shared_ptr<AddOne> add_ = std::make_shared<AddOne>();
};

TEST_F(OnDeviceTest, AChainRunsAheadButNotFar) {
  MakeDevice();
  spec_.fetches = {{Chain(Feed(), 10000), 0}};
  auto executor = Make();
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<float> value = Run(executor.get(), static_cast<float>(i));
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, 10000 + i);
  }
  EXPECT_GT(add_->most_ahead, 32);
  EXPECT_LE(add_->most_ahead, 5 * 64) << "four marks under way, and the kernels after the last";
  EXPECT_LT(device_->allocator(MemorySpace::kDevice)->stats().peak_bytes_in_use, 64 << 10);
}

TEST_F(OnDeviceTest, ManyReadyNodesAreAllEnqueued) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    spec_ = PlanSpec();
    MakeDevice({.seed = seed});
    const int feed = Feed();
    std::vector<PlanSpec::Input> all;
    for (int i = 0; i < 1000; ++i) all.push_back({Chain(feed, 2), 0});
    spec_.fetches = {{Add("sum", add_, all), 0}};
    auto executor = Make();
    const absl::StatusOr<float> value = Run(executor.get());
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, 2001);
  }
}

TEST_F(OnDeviceTest, ValuesGoUpAndDownInTheMidst) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    spec_ = PlanSpec();
    MakeDevice({.seed = seed});
    auto negate = std::make_shared<NegateHere>();
    int value = Feed();
    for (int i = 0; i < 20; ++i) {
      value = Add("negate", negate, {{Chain(value, 3), 0}}, MemorySpace::kHost);
    }
    spec_.fetches = {{value, 0}};
    auto executor = Make();
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<float> got = Run(executor.get(), 5);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(*got, 5) << "20 times x -> -(x + 3)";
    }
  }
}

TEST_F(OnDeviceTest, TimesAreTheDevices) {
  MakeDevice({.max_delay_us = 0});
  // Its work takes 3 ms there, the call next to nothing.
  struct Slow : Kernel {
    absl::Status Compute(KernelContext& ctx) override {
      TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
      AddOne::Enqueue(ctx, [to = At(*out), from = At(ctx.input(0))] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));  // What is to be measured.
        *to = *from;
      });
      return absl::OkStatus();
    }
  };
  const int first = Add("slow", std::make_shared<Slow>(), {{Feed(), 0}});
  spec_.fetches = {{Add("after", add_, {{first, 0}}), 0}};
  spec_.clock = TimeSource::System();
  auto executor = Make();
  const Plan& plan = executor->plan();
  int slow = 0, after = 0;
  for (int i = 0; i < plan.num_nodes(); ++i) {
    if (plan.name(i) == "slow" && plan.op(i) == "Test") slow = i;
    if (plan.name(i) == "after" && plan.op(i) == "Test") after = i;
  }
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Run(executor.get()).ok());  // The first is not measured.
  EXPECT_GE(plan.cost_ns(slow), 3'000'000u);
  EXPECT_LT(plan.cost_ns(after), 3'000'000u);
  EXPECT_GE(plan.output_bytes(slow, 0), 4);

  std::vector<NodeTrace> trace;
  Tensor out[1];
  ASSERT_TRUE(executor->Run(step_, {Tensor::Scalar(0.0f)}, out, &trace).ok());
  std::map<std::pair<int32_t, bool>, NodeTrace> runs;
  for (const NodeTrace& run : trace) {
    const bool there = run.thread == NodeTrace::kDeviceStream;
    EXPECT_TRUE(runs.emplace(std::make_pair(run.node, there), run).second) << plan.name(run.node);
  }
  ASSERT_TRUE(runs.contains({slow, true}) && runs.contains({slow, false}));
  ASSERT_TRUE(runs.contains({after, true}) && runs.contains({after, false}));
  const NodeTrace &there = runs[{slow, true}], &called = runs[{slow, false}];
  EXPECT_GE(there.end_ns - there.start_ns, 3'000'000u);
  EXPECT_GE(there.start_ns, called.start_ns);
  EXPECT_GE((runs[{after, true}].start_ns), there.end_ns) << "one stream";
  EXPECT_LT((runs[{after, false}].start_ns), there.end_ns) << "the host ran ahead";
}

TEST_F(OnDeviceTest, WhatFailsLateIsNamedAndNothingOfItIsSeen) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    spec_ = PlanSpec();
    MakeDevice({.seed = seed});
    auto bad = std::make_shared<AddOne>();
    auto negate = std::make_shared<NegateHere>();
    bad->fails = true;
    const int culprit = Add("culprit", bad, {{Chain(Feed(), 10), 0}});
    spec_.fetches = {{Add("negate", negate, {{Chain(culprit, 200), 0}}, MemorySpace::kHost), 0}};
    auto executor = Make();
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = Run(executor.get()).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("[[node culprit = Test"));
      EXPECT_EQ(negate->called, 0);
      cancellation_.Reset();
    }
    bad->fails = false;
    EXPECT_EQ(*Run(executor.get()), -211) << "the next step is as good as new";
  }
}

TEST_F(OnDeviceTest, WhatTheDeviceWritesToTheRecordEndsTheStep) {
  struct WritesRecord : Kernel {
    absl::Status Compute(KernelContext& ctx) override {
      TROUPE_ASSIGN_OR_RETURN(
          const LateCheck check,
          ctx.step().late_errors->Check(
              ctx.step().device->allocator(MemorySpace::kPinned), [](const int64_t* values) {
                return absl::InvalidArgumentError(StrCat("value ", values[0]));
              }));
      TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kFloat, Shape()));
      AddOne::Enqueue(ctx, [check, to = At(*out), from = At(ctx.input(0))] {
        *to = *from;
        if (*from != 42) return;
        check.record->node = check.node;
        check.record->explain = check.explain;
        check.record->values[0] = 42;
        std::atomic_ref(check.record->complete).store(1);
      });
      return absl::OkStatus();
    }
  };
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    spec_ = PlanSpec();
    MakeDevice({.seed = seed});
    auto negate = std::make_shared<NegateHere>();
    const int culprit = Add("culprit", std::make_shared<WritesRecord>(), {{Chain(Feed(), 10), 0}});
    spec_.fetches = {{Add("negate", negate, {{Chain(culprit, 200), 0}}, MemorySpace::kHost), 0}};
    auto executor = Make();
    EXPECT_EQ(*Run(executor.get(), 0), -210);
    const absl::Status status = Run(executor.get(), 32).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("value 42"));
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("[[node culprit = Test"));
    EXPECT_EQ(negate->called, 1);
    cancellation_.Reset();
    EXPECT_EQ(*Run(executor.get(), 0), -210) << "the next step is as good as new";
  }
}

TEST_F(OnDeviceTest, AKernelThatFailsAtOnceEndsTheStepWhenTheDeviceHasFinished) {
  MakeDevice();
  auto bad = std::make_shared<AddOne>();
  bad->failed = absl::InvalidArgumentError("at once");
  const int culprit = Add("culprit", bad, {{Chain(Feed(), 100), 0}});
  spec_.fetches = {{Chain(culprit, 100), 0}};
  auto executor = Make();
  const absl::Status status = Run(executor.get()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(bad->called, bad->done);
  EXPECT_EQ(add_->called, 100);
  EXPECT_EQ(add_->done, 100);
}

TEST_F(OnDeviceTest, AnOutputInTheWrongMemoryIsTheKernelsError) {
  MakeDevice();
  struct LeavesItHere : Kernel {
    absl::Status Compute(KernelContext& ctx) override {
      ctx.set_output(0, Tensor::Scalar(1.0f));
      return absl::OkStatus();
    }
  };
  spec_.fetches = {{Chain(Add("wrong", std::make_shared<LeavesItHere>(), {{Feed(), 0}}), 1), 0}};
  auto executor = Make();
  const absl::Status status = Run(executor.get()).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("[[node wrong"));
}

TEST_F(OnDeviceTest, CancellationWaitsForWhatHasBeenEnqueued) {
  MakeDevice({.stopped = true});
  spec_.fetches = {{Chain(Feed(), 10000), 0}};
  auto executor = Make();
  auto running = std::async(std::launch::async, [&] {
    Tensor out[1];
    return executor->Run(step_, {Tensor::Scalar(0.0f)}, out);
  });
  // As far as the marks let it.
  while (add_->called < 4 * 64) std::this_thread::yield();
  cancellation_.Cancel(absl::CancelledError("enough"));
  EXPECT_EQ(running.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(add_->done, 0);
  troupe::testing::StartSimulatedDevices();
  EXPECT_TRUE(absl::IsCancelled(running.get()));
  EXPECT_EQ(add_->called, add_->done);
  EXPECT_LE(add_->called, 5 * 64);
}

TEST_F(OnDeviceTest, FullMemoryIsTheNodesErrorAndLeavesNothing) {
  MakeDevice();
  struct Large : Kernel {
    absl::Status Compute(KernelContext& ctx) override {
      return ctx.AllocateOutput(0, ElementType::kFloat, Shape({1 << 28})).status();
    }
  };
  spec_.fetches = {{Add("large", std::make_shared<Large>(), {{Chain(Feed(), 5), 0}}), 0}};
  auto executor = Make();
  const absl::Status status = Run(executor.get()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("[[node large"));
  EXPECT_EQ(device_->allocator(MemorySpace::kDevice)->stats().bytes_in_use, 0);
}

TEST_F(OnDeviceTest, StepsOnManyThreadsShareTheDevice) {
  MakeDevice();
  spec_.fetches = {{Chain(Feed(), 300), 0}};
  const auto plan = Make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      CancellationToken cancellation;
      StepContext step = step_;
      step.cancellation = &cancellation;
      ExecutorRole executor(Plan::Build(spec_).value());
      for (int i = 0; i < 20; ++i) {
        Tensor out[1];
        const absl::Status status =
            executor.Run(step, {Tensor::Scalar(static_cast<float>(1000 * t + i))}, out);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(out[0].unchecked_scalar<float>(), 300 + 1000 * t + i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe
