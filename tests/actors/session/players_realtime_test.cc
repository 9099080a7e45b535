// Which threads run whose kernels: steps that end make way for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "api/session.h"
#include "graph/graph_def.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "graph/shape_inference.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlow{1500};

std::mutex threads_mutex;
std::vector<std::thread::id> slow_threads;  // Of the slow kernels that have run.

std::vector<std::thread::id> TakeSlowThreads() {
  std::lock_guard<std::mutex> lock(threads_mutex);
  return std::exchange(slow_threads, {});
}

REGISTER_OP("PlayersTestSlow").Input("x: int32").Output("y: int32").SetIsStateful();

class Slow : public Kernel {
 public:
  Slow(KernelConstruction&, absl::Status*) {}
  absl::Status Compute(KernelContext& ctx) override {
    {
      std::lock_guard<std::mutex> lock(threads_mutex);
      slow_threads.push_back(std::this_thread::get_id());
    }
    // A kernel that takes long is what these tests are about.
    std::this_thread::sleep_for(kSlow);
    ctx.set_output(0, ctx.TakeInput(0));
    return absl::OkStatus();
  }
};
REGISTER_KERNEL(KernelSpec("PlayersTestSlow"), MakeKernel<Slow>);

/// A queue at which "many" waits for three elements, with "slow" behind it; and one that nobody
/// fills.
class PlayersTest : public testing::TestWithParam<std::pair<int, int>> {  // Threads, devices.
 protected:
  void SetUp() override {
    const std::string types = "attr { key: 'component_types' value { list { type: DT_INT32 } } } ";
    auto queue = [&](const std::string& name) {
      return "node { name: '" + name + "' op: 'FIFOQueueV2' " + types +
             "attr { key: 'shapes' value { list { shape {} } } } "
             "attr { key: 'shared_name' value { s: '" +
             name + "' } } } ";
    };
    auto constant = [](const std::string& name, int value) {
      return "node { name: '" + name +
             "' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' "
             "value { tensor { dtype: DT_INT32 tensor_shape {} int_val: " +
             std::to_string(value) + " } } } } ";
    };
    GraphDef def;
    const absl::Status parsed = ParseGraphDef(
        queue("q") + queue("empty") + constant("three", 3) + constant("seven", 7) +
            "node { name: 'put' op: 'QueueEnqueueV2' input: 'q' input: 'seven' "
            "attr { key: 'Tcomponents' value { list { type: DT_INT32 } } } } "
            "node { name: 'size' op: 'QueueSizeV2' input: 'q' } "
            "node { name: 'many' op: 'QueueDequeueManyV2' input: 'q' input: 'three' " +
            types +
            "} "
            "node { name: 'get' op: 'QueueDequeueV2' input: 'q' " +
            types +
            "} node { name: 'slow' op: 'PlayersTestSlow' input: 'get' device: '/device:CPU:" +
            std::to_string(GetParam().second - 1) +
            "' } "
            "node { name: 'never' op: 'QueueDequeueV2' input: 'empty' " +
            types + "} ",
        &def);
    ASSERT_TRUE(parsed.ok()) << parsed;
    const absl::Status imported = ImportGraphDef(def, {}, graph_.get());
    ASSERT_TRUE(imported.ok()) << imported;
    SessionOptions options;
    options.threads = GetParam().first;
    options.num_cpu_devices = GetParam().second;
    first_ = *Session::Create(graph_, options);
    options.runtime = first_->runtime();
    second_ = *Session::Create(graph_, options);
    TakeSlowThreads();
    // "many" takes the element that there is, and waits for two more.
    ASSERT_TRUE(first_->Run({}, {}, {"put"}, nullptr).ok());
  }
  static absl::Status Run(Session* session, const std::string& fetch, absl::Duration timeout,
                          std::vector<Tensor>* values = nullptr) {
    std::vector<Tensor> unused;
    RunOptions options;
    options.timeout = timeout;
    return session->Run(options, {}, {fetch}, {}, values != nullptr ? values : &unused);
  }
  int Size() {
    std::vector<Tensor> values;
    EXPECT_TRUE(Run(second_.get(), "size", absl::Seconds(10), &values).ok());
    return values[0].unchecked_scalar<int32_t>();
  }
  void WaitForMany() {
    // Nobody is told when a queue has become empty.
    while (Size() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::unique_ptr<Session> first_, second_;
};
INSTANTIATE_TEST_SUITE_P(ThreadsAndDevices, PlayersTest,
                         testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(1, 2),
                                         std::pair(2, 2)));

TEST_P(PlayersTest, ADeadlineThatServesAnotherStepDelaysNoOther) {
  auto many = std::async(std::launch::async,
                         [&] { return Run(first_.get(), "many", absl::Milliseconds(500)); });
  WaitForMany();
  std::thread::id player;
  absl::Status status;
  std::vector<Tensor> values;
  std::thread slow([&] {
    player = std::this_thread::get_id();
    status = Run(second_.get(), "slow", absl::InfiniteDuration(), &values);
  });
  const auto start = Clock::now();
  // Expires after the first deadline has let "slow" have its element.
  EXPECT_EQ(Run(second_.get(), "never", absl::Milliseconds(700)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(Clock::now() - start, kSlow);
  EXPECT_EQ(many.get().code(), absl::StatusCode::kDeadlineExceeded);
  slow.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), 7);
  EXPECT_THAT(TakeSlowThreads(), ElementsAre(player));
}

TEST_P(PlayersTest, WhoeverClosesRunsNoKernels) {
  auto many = std::async(std::launch::async,
                         [&] { return Run(first_.get(), "many", absl::InfiniteDuration()); });
  WaitForMany();
  std::thread::id player;
  absl::Status status;
  std::thread slow([&] {
    player = std::this_thread::get_id();
    status = Run(second_.get(), "slow", absl::InfiniteDuration());
  });
  // For it to stand behind "many" at the queue: there is no event for that.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto start = Clock::now();
  EXPECT_TRUE(first_->Close().ok());
  EXPECT_LT(Clock::now() - start, kSlow);
  EXPECT_EQ(many.get().code(), absl::StatusCode::kCancelled);
  slow.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(TakeSlowThreads(), ElementsAre(player));
}

// A client's thread plays its own step, and not those that it serves.
TEST_P(PlayersTest, WhoeverFillsAQueueRunsNotWhatWaitsThere) {
  ASSERT_TRUE(Run(second_.get(), "get", absl::Seconds(10)).ok());  // Now it is empty.
  std::thread::id player;
  absl::Status status;
  std::thread slow([&] {
    player = std::this_thread::get_id();
    status = Run(second_.get(), "slow", absl::InfiniteDuration());
  });
  // For it to stand behind "many" at the queue: there is no event for that.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto start = Clock::now();
  EXPECT_TRUE(first_->Run({}, {}, {"put"}, nullptr).ok());
  EXPECT_LT(Clock::now() - start, kSlow);
  slow.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(TakeSlowThreads(), ElementsAre(player));
}

}  // namespace
}  // namespace troupe
