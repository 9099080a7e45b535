// Steps for which there is no memory. This program's operator new fails when it is told to: each
// test makes every allocation between a call and its return fail in turn, the first, then the
// second, until the call no longer gets as far. Each failure is the step's, ResourceExhausted, and
// the same step succeeds right after it. TROUPE_FAILURES says how many of a hundred allocations
// fail in turn while a signature is compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <new>

#include "absl/synchronization/notification.h"
#include "api/control_flow.h"
#include "api/gradients.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/optimizers.h"
#include "api/training/variables.h"
#include "devices/allocator.h"
#include "devices/cpu/compute_pool.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"
#include "tests/how_many.h"

namespace {

constexpr int64_t kNever = INT64_MAX;
/// Allocations to go until one fails, of all threads.
std::atomic<int64_t> left{kNever};
/// All after that one fail as well.
std::atomic<bool> all_after{false};
std::atomic<bool> has_failed{false};

bool Fails() {
  if (left.load(std::memory_order_relaxed) == kNever) return false;
  const int64_t before = left.fetch_sub(1);
  if (before > 1) return false;
  if (before < 1 && !all_after) return false;
  has_failed = true;
  return true;
}

void* New(size_t size, size_t alignment) noexcept {
  if (Fails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size > 0 ? size : 1);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* NewOrThrow(size_t size, size_t alignment = 1) {
  if (void* block = New(size, alignment)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return NewOrThrow(size); }
void* operator new[](size_t size) { return NewOrThrow(size); }
void* operator new(size_t size, std::align_val_t to) {
  return NewOrThrow(size, static_cast<size_t>(to));
}
void* operator new[](size_t size, std::align_val_t to) {
  return NewOrThrow(size, static_cast<size_t>(to));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return New(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return New(size, 1); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { std::free(block); }

namespace troupe {
namespace {

enum class Failing { kOne, kAllAfter };

class OutOfMemoryTest : public testing::TestWithParam<Failing> {
 protected:
  // A step that never ends is a failure, too. Under a sanitizer a test takes a minute and more.
  void SetUp() override { alarm(600); }
  void TearDown() override { alarm(0); }

  std::unique_ptr<Session> NewSession(int threads = 2, int devices = 1) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    SessionOptions options;
    options.threads = threads;
    options.num_cpu_devices = devices;
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  /// The status of `step` when its `k`-th allocation fails; false if it does not come to that.
  static bool RunFailing(const std::function<absl::Status()>& step, int64_t k,
                         absl::Status* status) {
    has_failed = false;
    all_after = GetParam() == Failing::kAllAfter;
    left = k;
    *status = step();
    left = kNever;
    return has_failed;
  }

  /// Lets each allocation of `step` fail in turn, or every `stride`-th; `check` runs the step again
  /// and looks at its result. `before` makes ready for a run, without failures.
  void Sweep(const std::function<absl::Status()>& step, const std::function<void()>& check,
             const std::function<void()>& before = nullptr, int64_t stride = 1, int64_t least = 1) {
    int64_t failures = 0;
    for (int64_t k = 1;; k += stride) {
      SCOPED_TRACE(testing::Message() << "allocation " << k);
      if (before) before();
      absl::Status status;
      if (!RunFailing(step, k, &status)) {
        EXPECT_TRUE(status.ok()) << status;
        break;
      }
      if (!status.ok()) {
        ++failures;
        ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      }
      check();
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(failures, least);
  }

  /// The same for the memory of tensors: there are `limit` bytes more than now, from none on.
  void SweepTensors(const std::function<absl::Status()>& step, const std::function<void()>& check) {
    for (int64_t limit = 1;; limit += 64 + limit / 4) {
      SCOPED_TRACE(testing::Message() << limit << " bytes");
      HostAllocator()->set_limit(HostAllocator()->stats().bytes_in_use + limit);
      const absl::Status status = step();
      HostAllocator()->set_limit(0);
      if (status.ok()) break;
      ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      check();
      if (HasFatalFailure()) return;
    }
  }

  static void ExpectToEnd(Session* session) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status closed = session->Close();
    EXPECT_TRUE(closed.ok()) << closed;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }

  /// Sweeps a step of one fetched scalar, once all is compiled, and from the first call on (every
  /// `stride`-th allocation then). 0: not from the first call on. Protobuf's maps, of which calls
  /// of functions and transfers are made, do not survive it if the allocation of their table fails:
  /// `InnerMap::Resize` of 3.21 has counted it by then.
  template <typename T>
  void SweepFetch(const NamedTensors& feeds, const std::vector<std::string>& fetches, T expected,
                  int devices = 1, const RunOptions& options = {}, int64_t stride = 1) {
    std::unique_ptr<Session> session;
    std::vector<Tensor> values;
    RunMetadata metadata;
    const auto step = [&] { return session->Run(options, feeds, fetches, {}, &values, &metadata); };
    const auto check = [&] {
      const absl::Status status = step();
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(values.size(), fetches.size());
      EXPECT_EQ(values[0].unchecked_scalar<T>(), expected);
    };
    const auto start = [&] { session = NewSession(2, devices); };
    start();
    for (int i = 0; i < 5; ++i) check();
    Sweep(step, check);
    SweepTensors(step, check);
    ExpectToEnd(session.get());
    if (stride == 0) return;
    // The first run of a signature is compiled, which takes its time.
    Sweep(step, check, start, stride * 100 / HowMany("TROUPE_FAILURES", 100, /*one_in=*/10));
    ExpectToEnd(session.get());
  }

  Output Placeholder(const char* name, ElementType type = ElementType::kFloat) {
    return ops::Placeholder(s_.WithOpName(name), type);
  }

  Scope s_ = Scope::NewRoot();
};

INSTANTIATE_TEST_SUITE_P(Failing, OutOfMemoryTest,
                         testing::Values(Failing::kOne, Failing::kAllAfter), [](const auto& info) {
                           return info.param == Failing::kOne ? "One" : "AllAfter";
                         });

TEST_P(OutOfMemoryTest, Elementwise) {
  Output y = Placeholder("x");
  for (int i = 0; i < 5; ++i) y = ops::Add(s_, ops::Mul(s_, y, 2.0f), 1.0f);
  SweepFetch<float>({{"x", Tensor::Scalar(1.0f)}}, {y.name()}, 63);
}

TEST_P(OutOfMemoryTest, TensorsOfManyDimensions) {  // Their shapes are allocated.
  Output y = Placeholder("x");
  Output z = ops::Reshape(s_, ops::Neg(s_, y), Const(s_, Tensor::Vector<int32_t>({})));
  Output six = ops::Mul(s_, y, Const(s_, Tensor::Vector<float>({2})));
  SweepFetch<float>({{"x", *Tensor::FromValues<float>({3}, Shape({1, 1, 1, 1, 1, 1}))}},
                    {z.name(), six.name()}, -3);
}

TEST_P(OutOfMemoryTest, KernelsOnThePool) {
  Output x = Placeholder("x");
  std::vector<Output> products;
  for (int i = 0; i < 4; ++i) products.push_back(ops::MatMul(s_, x, ops::Tanh(s_, x)));
  Output sum = ops::Mean(s_, ops::AddN(s_, products), Const(s_, Tensor::Vector<int32_t>({0, 1})));
  Tensor zeros = Tensor::Uninitialized(ElementType::kFloat, Shape({200, 200}));
  std::fill_n(zeros.mutable_data<float>(), 200 * 200, 0.0f);
  SweepFetch<float>({{"x", zeros}}, {sum.name()}, 0);
}

TEST_P(OutOfMemoryTest, Branches) {
  Output x = Placeholder("x");
  Output y = Cond(
      s_, ops::Less(s_, x, 0.0f), [&](const Scope& s) { return ops::Neg(s, x); },
      [&](const Scope& s) { return ops::Mul(s, x, 10.0f); });
  SweepFetch<float>({{"x", Tensor::Scalar(4.0f)}}, {y.name()}, 40);
}

std::vector<Output> Loop(const Scope& scope, Output n, const Output& x,
                         const char* body_device = "") {
  return WhileLoop(
      scope, {Const(scope, int32_t{0}), x},
      [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], n); },
      [&](const Scope& s, absl::Span<const Output> v) {
        return std::vector<Output>{ops::Add(s, v[0], int32_t{1}),
                                   ops::Mul(s.WithDevice(body_device), v[1], x)};
      });
}

TEST_P(OutOfMemoryTest, LoopsAndTheirGradients) {
  Output n = Placeholder("n", ElementType::kInt32), x = Placeholder("x");
  Output y = Loop(s_, n, x)[1];
  std::vector<Output> grads;
  ASSERT_TRUE(AddSymbolicGradients({y}, {x}, {}, &grads).ok());
  SweepFetch<float>({{"n", Tensor::Scalar<int32_t>(3)}, {"x", Tensor::Scalar(2.0f)}},
                    {grads[0].name(), y.name()}, 32);  // 4 x^3
}

TEST_P(OutOfMemoryTest, SeveralDevices) {
  Output n = Placeholder("n", ElementType::kInt32), x = Placeholder("x");
  Output y = Loop(s_, n, x, "/device:CPU:1")[1];
  Output z = ops::Neg(s_.WithDevice("/device:CPU:2"), y);
  SweepFetch<float>({{"n", Tensor::Scalar<int32_t>(3)}, {"x", Tensor::Scalar(2.0f)}}, {z.name()},
                    -16, /*devices=*/3, {}, 0);
}

TEST_P(OutOfMemoryTest, TracesAndDeadlines) {
  Output y = Placeholder("x");
  for (int i = 0; i < 5; ++i) y = ops::Add(s_, y, 1.0f);
  RunOptions options;
  options.trace = true;
  options.timeout = absl::Seconds(60);
  SweepFetch<float>({{"x", Tensor::Scalar(1.0f)}}, {y.name()}, 6, 1, options);
}

// Their callback is called in any case; with a deadline that has passed, too.
TEST_P(OutOfMemoryTest, AsynchronousRuns) {
  Output y = ops::Add(s_, ops::Mul(s_, Placeholder("x"), 2.0f), 1.0f);
  auto session = NewSession();
  struct Run {
    RunOptions options;
    NamedTensors feeds{{"x", Tensor::Scalar(1.0f)}};
    std::vector<std::string> fetches, targets;
    absl::Notification over;
    std::atomic<bool> written = false;  // The thread sanitizer does not see into Abseil's.
    absl::StatusOr<std::vector<Tensor>> result;
    RunDone done = [this](absl::StatusOr<std::vector<Tensor>> values) {
      result = std::move(values);
      written = true;
      over.Notify();
    };
  };
  std::unique_ptr<Run> run;
  absl::Duration timeout = absl::InfiniteDuration();
  const auto begin = [&] {
    run = std::make_unique<Run>();
    run->options.timeout = timeout;
    run->fetches = {y.name()};
  };
  const auto step = [&] {
    session->RunAsync(run->options, std::move(run->feeds), std::move(run->fetches),
                      std::move(run->targets), std::move(run->done));
    run->over.WaitForNotification();
    EXPECT_TRUE(run->written);
    return run->result.status();
  };
  const auto check = [&] {
    timeout = absl::InfiniteDuration();
    begin();
    ASSERT_EQ(step(), absl::OkStatus());
    EXPECT_EQ((*run->result)[0].unchecked_scalar<float>(), 3);
  };
  for (int i = 0; i < 5; ++i) check();
  Sweep(step, check, begin);
  const auto late = [&] {
    const absl::Status status = step();
    return status.code() == absl::StatusCode::kDeadlineExceeded ? absl::OkStatus() : status;
  };
  Sweep(late, check, [&] {
    timeout = absl::ZeroDuration();
    begin();
  });
  ExpectToEnd(session.get());
}

TEST_P(OutOfMemoryTest, FunctionsThatCallThemselves) {
  // SumTo(n) = n <= 0 ? n : n + SumTo(n - 1), and a loop as a call.
  const char* text = R"(
    node { name: 'n' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }
    node { name: 'sum' op: 'SumTo' input: 'n' }
    node { name: 'loop' op: 'StatelessWhile' input: 'n' input: 'sum'
           attr { key: 'T' value { list { type: DT_INT32 type: DT_INT32 } } }
           attr { key: 'cond' value { func { name: 'Positive' } } }
           attr { key: 'body' value { func { name: 'Count' } } } }
    node { name: 'out' op: 'Neg' input: 'loop:1' attr { key: 'T' value { type: DT_INT32 } } }
    library {
      function { signature { name: 'SumTo' input_arg { name: 'n' type: DT_INT32 }
                             output_arg { name: 'r' type: DT_INT32 } }
        node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
          attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
        node_def { name: 'go' op: 'Less' input: 'zero:output:0' input: 'n'
                   attr { key: 'T' value { type: DT_INT32 } } }
        node_def { name: 'if' op: 'StatelessIf' input: 'go:z:0' input: 'n'
          attr { key: 'Tcond' value { type: DT_BOOL } }
          attr { key: 'Tin' value { list { type: DT_INT32 } } }
          attr { key: 'Tout' value { list { type: DT_INT32 } } }
          attr { key: 'then_branch' value { func { name: 'More' } } }
          attr { key: 'else_branch' value { func { name: 'Same' } } } }
        ret { key: 'r' value: 'if:output:0' } }
      function { signature { name: 'More' input_arg { name: 'n' type: DT_INT32 }
                             output_arg { name: 'r' type: DT_INT32 } }
        node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
          attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
        node_def { name: 'less' op: 'Sub' input: 'n' input: 'one:output:0'
                   attr { key: 'T' value { type: DT_INT32 } } }
        node_def { name: 'rest' op: 'SumTo' input: 'less:z:0' }
        node_def { name: 'all' op: 'Add' input: 'n' input: 'rest:r:0'
                   attr { key: 'T' value { type: DT_INT32 } } }
        ret { key: 'r' value: 'all:z:0' } }
      function { signature { name: 'Same' input_arg { name: 'n' type: DT_INT32 }
                             output_arg { name: 'r' type: DT_INT32 } }
        ret { key: 'r' value: 'n' } }
      function { signature { name: 'Positive' input_arg { name: 'n' type: DT_INT32 }
                             input_arg { name: 'x' type: DT_INT32 }
                             output_arg { name: 'r' type: DT_BOOL } }
        node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
          attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
        node_def { name: 'go' op: 'Less' input: 'zero:output:0' input: 'n'
                   attr { key: 'T' value { type: DT_INT32 } } }
        ret { key: 'r' value: 'go:z:0' } }
      function { signature { name: 'Count' input_arg { name: 'n' type: DT_INT32 }
                             input_arg { name: 'x' type: DT_INT32 }
                             output_arg { name: 'm' type: DT_INT32 }
                             output_arg { name: 'y' type: DT_INT32 } }
        node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
          attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
        node_def { name: 'less' op: 'Sub' input: 'n' input: 'one:output:0'
                   attr { key: 'T' value { type: DT_INT32 } } }
        node_def { name: 'more' op: 'Add' input: 'x' input: 'one:output:0'
                   attr { key: 'T' value { type: DT_INT32 } } }
        ret { key: 'm' value: 'less:z:0' } ret { key: 'y' value: 'more:z:0' } }
    })";
  GraphDef def;
  ASSERT_TRUE(ParseGraphDef(text, &def).ok());
  const absl::Status imported = ImportGraphDef(def, ImportOptions(), s_.graph().get());
  ASSERT_TRUE(imported.ok()) << imported;
  SweepFetch<int32_t>({{"n", Tensor::Scalar<int32_t>(4)}}, {"out"}, -14, 1, {}, 0);
}

TEST_P(OutOfMemoryTest, Queues) {
  Output x = Placeholder("x");
  Output queue = ops::FIFOQueueV2(s_, {ElementType::kFloat});
  Output out = ops::QueueDequeueV2(s_, queue, {ElementType::kFloat})[0];
  Node* in = ops::QueueEnqueueV2(s_, queue, {x});
  Output count = ops::QueueSizeV2(s_, queue);
  Node* close = ops::QueueCloseV2(s_, queue, {.cancel_pending_enqueues = true});
  auto session = NewSession();
  std::vector<Tensor> values;
  const NamedTensors feeds = {{"x", Tensor::Scalar(5.0f)}};
  // One waits for the other, whoever is first.
  const std::vector<std::string> fetches = {out.name()}, targets = {in->name()};
  const auto step = [&] { return session->Run(feeds, fetches, targets, &values); };
  const auto check = [&] {
    // What a failed step has put in is still there: the queue is emptied.
    auto size = session->Run({count});
    ASSERT_TRUE(size.ok()) << size.status();
    for (int i = 0; i < (*size)[0].unchecked_scalar<int32_t>(); ++i) {
      ASSERT_TRUE(session->Run({out}).ok());
    }
    const absl::Status status = step();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(values[0].unchecked_scalar<float>(), 5);
  };
  check();
  Sweep(step, check);
  ASSERT_TRUE(session->RunTargets({close}).ok());
  ExpectToEnd(session.get());
}

TEST_P(OutOfMemoryTest, TrainingSteps) {
  Output x =
      ops::Placeholder(s_.WithOpName("x"), ElementType::kFloat, {.shape = PartialShape({4})});
  ModelVariable w(s_, Const(s_, 0.0f), "w");
  Output y = ops::Mul(s_, x, w.value());
  Output target = ops::Mul(s_, x, 2.0f);
  Output loss = ReduceMean(s_, ops::Square(s_, ops::Sub(s_, y, target)));
  MomentumOptimizer optimizer(0.01f, 0.5f);
  Node* train = optimizer.Minimize(s_, loss);
  Node* init = GlobalVariablesInitializer(s_);
  auto session = NewSession();
  const NamedTensors feeds = {{"x", Tensor::Vector<float>({0, 1, 2, 3})}};
  ASSERT_TRUE(session->RunTargets({init}).ok());
  const std::vector<std::string> fetches, targets = {train->name()};
  const auto step = [&] { return session->Run(feeds, fetches, targets, nullptr); };
  const auto check = [&] {
    const absl::Status status = step();
    ASSERT_TRUE(status.ok()) << status;
  };
  check();
  Sweep(step, check);
  for (int i = 0; i < 300; ++i) check();
  auto fitted = session->Run({w.value()});
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_NEAR((*fitted)[0].unchecked_scalar<float>(), 2, 0.01);
  ExpectToEnd(session.get());
}

TEST_P(OutOfMemoryTest, PartialRuns) {
  Output x = Placeholder("x"), z = Placeholder("z");
  Output y = ops::Mul(s_.WithOpName("y"), x, 2.0f);
  ops::Add(s_.WithOpName("w"), y, z);
  auto session = NewSession();
  std::vector<Tensor> values;
  const NamedTensors first = {{"x", Tensor::Scalar(3.0f)}}, second = {{"z", Tensor::Scalar(1.0f)}};
  const std::vector<std::string> feeds = {"x", "z"}, fetches = {"y", "w"}, y_name = {"y"},
                                 w_name = {"w"};
  const std::vector<std::string> targets;
  // The setup cuts a graph, and protobuf's maps do not survive it if there is no memory for them.
  std::string handle;
  const auto setup = [&] {
    absl::StatusOr<std::string> made = session->PartialRunSetup(feeds, fetches, targets);
    ASSERT_TRUE(made.ok()) << made.status();
    handle = *std::move(made);
  };
  const auto step = [&]() -> absl::Status {
    TROUPE_RETURN_IF_ERROR(session->PartialRun(handle, first, y_name, &values));
    return session->PartialRun(handle, second, w_name, &values);
  };
  const auto check = [&] {
    setup();
    const absl::Status status = step();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(values[0].unchecked_scalar<float>(), 7);
  };
  check();
  Sweep(step, check, setup);
  ExpectToEnd(session.get());
}

TEST_P(OutOfMemoryTest, CreatingASession) {
  Output y = ops::Neg(s_, Placeholder("x"));
  absl::StatusOr<std::unique_ptr<Session>> session;
  const auto step = [&] {
    session = Session::Create(s_.graph());
    return session.status();
  };
  const auto check = [&] {
    ASSERT_TRUE(step().ok()) << session.status();
    ASSERT_TRUE((*session)->Run({{"x", Tensor::Scalar(1.0f)}}, {y.name()}, {}, nullptr).ok());
  };
  Sweep(step, check);
}

TEST_P(OutOfMemoryTest, WorkersThatLetGoOfTheirPool) {
  struct Task : PoolTask {
    void Run() noexcept override {
      all_after = GetParam() == Failing::kAllAfter;
      left = 1;
      pool.reset();
      left = kNever;
      over.set_value();
    }
    std::unique_ptr<ComputePool> pool = std::make_unique<ComputePool>(3);
    std::promise<void> over;
  };
  auto task = std::make_unique<Task>();
  task->pool->SubmitLong(task.get());
  task->over.get_future().wait();
}

TEST_P(OutOfMemoryTest, CallablesOfTensors) {
  Output x = Placeholder("x");
  Output y = ops::Neg(s_, x);
  auto session = NewSession();
  auto callable = session->MakeCallable({x}, {y});
  ASSERT_TRUE(callable.ok()) << callable.status();
  const Tensor feed = Tensor::Scalar(2.0f);
  Tensor value;
  const auto step = [&] {
    return (*callable)(absl::MakeConstSpan(&feed, 1), absl::MakeSpan(&value, 1));
  };
  const auto check = [&] {
    const absl::Status status = step();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(value.unchecked_scalar<float>(), -2);
  };
  check();
  Sweep(step, check, nullptr, 1, /*least=*/0);  // Such a call allocates nothing but tensors.
  SweepTensors(step, check);
  ExpectToEnd(session.get());
}

}  // namespace
}  // namespace troupe
