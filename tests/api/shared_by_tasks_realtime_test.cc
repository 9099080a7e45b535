// Tables and barriers of one task that sessions of another task's share by name; and what a master
// logs of where nodes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Values = absl::StatusOr<std::vector<Tensor>>;

/// Two tasks, and programs of which each has the other one's task as its master: their graphs are
/// their own, and agree on names only.
class SharedByTasks : public testing::Test {
 protected:
  struct Program {
    Scope s = Scope::NewRoot();
    std::unique_ptr<Session> session;
    Scope On(int task) const { return s.WithDevice("/job:worker/task:" + std::to_string(task)); }
  };

  SharedByTasks() {
    const std::string host = "127.0.0.1:";
    options_.cluster = *ClusterSpec::Create(
        {{"worker", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}}});
    options_.job = "worker";
    options_.heartbeat_timeout = absl::Seconds(2);
    options_.wait_for_workers = absl::Seconds(3);
    for (int i = 0; i < 2; ++i) Start(i);
  }
  void Start(int task) {
    options_.task = task;
    auto server = Server::Start(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[task] = *std::move(server);
  }
  void Connect(Program* program, int master) {
    ASSERT_TRUE(program->s.ok()) << program->s.status();
    auto session = Session::Create(program->s.graph(), {.target = servers_[master]->target()});
    ASSERT_TRUE(session.ok()) << session.status();
    program->session = *std::move(session);
  }
  static std::vector<std::string> Strings(const Tensor& tensor) {
    const auto values = tensor.unchecked_values<std::string>();
    return {values.begin(), values.end()};
  }
  static std::vector<int64_t> Integers(const Tensor& tensor) {
    const auto values = tensor.unchecked_values<int64_t>();
    return {values.begin(), values.end()};
  }

  ServerOptions options_;
  std::unique_ptr<Server> servers_[2];
};

TEST_F(SharedByTasks, ATable) {
  Program programs[2];
  Node* put[2];
  Output found[2], size[2];
  for (int i = 0; i < 2; ++i) {
    // It is on task 1; keys and values come from the program's own task.
    const Scope there = programs[i].On(1), here = programs[i].On(i);
    const MutableHashTable table(there, ElementType::kString, ElementType::kInt64,
                                 Tensor::Scalar<int64_t>(-1), {.shared_name = "words"});
    const Output keys = ops::Identity(here, Const(here, Tensor::Vector<std::string>({"a", "b"})));
    const Output numbers =
        ops::Add(here, Const(here, Tensor::Vector<int64_t>({10 * i, 10 * i + 1})), int64_t{1});
    put[i] = table.Insert(there, keys, numbers);
    found[i] = ops::Identity(here, table.Lookup(there, keys));
    size[i] = table.Size(there);
    Connect(&programs[i], 1 - i);
  }
  const auto look = [&](int i) {
    const Values values = programs[i].session->Run({found[i]});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? Integers((*values)[0]) : std::vector<int64_t>();
  };
  EXPECT_THAT(look(0), ElementsAre(-1, -1));
  for (int i : {0, 1, 0}) {
    ASSERT_TRUE(programs[i].session->RunTargets({put[i]}).ok());
    for (int reader : {0, 1}) EXPECT_THAT(look(reader), ElementsAre(10 * i + 1, 10 * i + 2));
  }
  // It outlives the session that made it, and not its task.
  programs[0].session.reset();
  EXPECT_THAT(look(1), ElementsAre(1, 2));
  Connect(&programs[0], 0);
  EXPECT_THAT(look(0), ElementsAre(1, 2));
  programs[1].session.reset();
  servers_[1].reset();
  Start(1);
  Values after;
  for (int i = 0; i < 200; ++i) {
    after = programs[0].session->Run({size[0]});
    if (after.ok()) break;
    EXPECT_TRUE(absl::IsUnavailable(after.status()) || absl::IsAborted(after.status()))
        << after.status();
    absl::SleepFor(absl::Milliseconds(20));  // Nothing tells when a task is back.
  }
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)[0].unchecked_scalar<int64_t>(), 0);
}

TEST_F(SharedByTasks, ABarrier) {
  // One program brings the names, the other one the numbers, and takes what is complete.
  Program names, numbers;
  const auto barrier = [](const Scope& scope) {
    return Barrier(scope, {ElementType::kString, ElementType::kInt64}, {Shape({}), Shape({})},
                   {.shared_name = "pairs"});
  };
  const Output name_keys = ops::Placeholder(names.On(0), ElementType::kString);
  Node* const bring_names = barrier(names.On(1))
                                .InsertMany(names.On(1), 0, name_keys,
                                            ops::StringJoin(names.On(0), {name_keys, name_keys}));
  const Output number_keys = ops::Placeholder(numbers.On(1), ElementType::kString);
  const Output given = ops::Placeholder(numbers.On(1), ElementType::kInt64);
  const Barrier second = barrier(numbers.On(1));
  Node* const bring_numbers = second.InsertMany(numbers.On(1), 1, number_keys, given);
  const Barrier::Batch taken = second.TakeMany(numbers.On(1), 2);
  const std::vector<Output> batch = {ops::Identity(numbers.On(0), taken.values[0]),
                                     ops::Identity(numbers.On(0), taken.values[1])};
  Connect(&names, 0);
  Connect(&numbers, 0);
  const auto keys = [](const std::vector<std::string>& text) {
    return Tensor::Vector<std::string>(text);
  };
  auto waiting = std::async(std::launch::async, [&] { return numbers.session->Run(batch); });
  ASSERT_TRUE(names.session->Run({{name_keys, keys({"x", "y", "z"})}}, {}, {bring_names}).ok());
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  ASSERT_TRUE(numbers.session
                  ->Run({{number_keys, keys({"z", "x"})}, {given, Tensor::Vector<int64_t>({3, 1})}},
                        {}, {bring_numbers})
                  .ok());
  const Values values = waiting.get();
  ASSERT_TRUE(values.ok()) << values.status();
  // Of one insertion, so in any order.
  std::map<std::string, int64_t> pairs;
  for (int i = 0; i < 2; ++i) pairs[Strings((*values)[0])[i]] = Integers((*values)[1])[i];
  EXPECT_THAT(pairs, ElementsAre(testing::Pair("xx", 1), testing::Pair("zz", 3)));

  // Who waits for the task's barrier is told when the task is gone.
  waiting = std::async(std::launch::async, [&] { return numbers.session->Run(batch); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  servers_[1].reset();
  const absl::Status lost = waiting.get().status();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
}

TEST_F(SharedByTasks, TheMasterLogsWhereNodesAre) {
  Program program;
  const Output x = ops::Placeholder(program.s.WithOpName("x"), ElementType::kFloat);
  const Output y = ops::Neg(program.On(0).WithOpName("y"), x);
  const Output z = ops::Neg(program.On(1).WithOpName("z"), y);
  ASSERT_TRUE(program.s.ok()) << program.s.status();
  for (const bool wanted : {false, true}) {
    std::mutex mutex;
    std::vector<std::string> lines;
    SetLogSink([&](const LogRecord& record) {
      const std::lock_guard<std::mutex> lock(mutex);
      lines.push_back(record.text);
    });
    const auto session = Session::Create(
        program.s.graph(), {.target = servers_[0]->target(), .log_device_placement = wanted});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Run({{x, Tensor::Scalar(1.0f)}}, {z}).ok());
    SetLogSink(nullptr);
    for (const std::string task : {"0", "1"}) {
      const auto placed = Contains(
          AllOf(HasSubstr("placed on /job:worker/replica:0/task:" + task + "/device:CPU:0"),
                HasSubstr(task == "0" ? "y (Neg)" : "z (Neg)")));
      const std::lock_guard<std::mutex> lock(mutex);
      if (wanted) {
        EXPECT_THAT(lines, placed);
      } else {
        EXPECT_THAT(lines, testing::Not(placed));
      }
    }
  }
}

}  // namespace
}  // namespace troupe
