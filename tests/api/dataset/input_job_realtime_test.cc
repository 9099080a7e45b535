// A job that reads the input of workers: the iterator is on its task, its elements travel.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "api/administration.h"
#include "api/cluster.h"
#include "api/troupe.h"
#include "graph/protos/stats.pb.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

TEST(InputJobTest, TwoWorkersShareTheElements) {
  const PublishedDataset published =
      *PublishDataset("rows", Dataset::Range(0, 200).Shuffle({.window = 50, .seed = 1}));
  std::vector<std::string> addresses;
  for (int i = 0; i < 3; ++i) addresses.push_back("127.0.0.1:" + std::to_string(FreePort()));
  ServerOptions options;
  options.cluster =
      *ClusterSpec::Create({{"input", {addresses[0]}}, {"worker", {addresses[1], addresses[2]}}});
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < 3; ++i) {
    options.job = i == 0 ? "input" : "worker";
    options.task = i == 0 ? 0 : i - 1;
    servers.push_back(*Server::Start(options));
  }
  // Each worker has a session of its own; the iterator is found by its name.
  const auto work = [&](int worker) -> absl::StatusOr<std::vector<int64_t>> {
    const Scope s = Scope::NewRoot();
    const Scope input = s.WithDevice("/job:input/task:0");
    const Output iterator = ops::DatasetIterator(input, "rows", {.shared_name = "rows"});
    const Output row = ops::DatasetIteratorNext(input, iterator, {ElementType::kInt64})[0];
    const Output twice = ops::Add(
        s.WithDevice("/job:worker/task:" + std::to_string(worker) + "/device:CPU:0"), row, row);
    TROUPE_RETURN_IF_ERROR(s.status());
    TROUPE_ASSIGN_OR_RETURN(
        const auto session,
        Session::Create(s.graph(), {.target = "troupe://" + addresses[1 + worker]}));
    RunOptions trace;
    trace.trace = true;
    RunMetadata metadata;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> first,
                            session->Run(FeedMap{}, {&twice, 1}, {}, trace, &metadata));
    std::vector<int64_t> got = {first[0].unchecked_scalar<int64_t>()};
    const auto& devices = metadata.step_stats().dev_stats();
    EXPECT_EQ(std::count_if(devices.begin(), devices.end(),
                            [](const auto& d) { return d.device() == "/dataset:dataset"; }),
              1);
    while (true) {
      const auto values = session->Run({twice});
      if (absl::IsOutOfRange(values.status())) return got;
      TROUPE_RETURN_IF_ERROR(values.status());
      got.push_back((*values)[0].unchecked_scalar<int64_t>());
    }
  };
  std::multiset<int64_t> all, expected;
  std::vector<std::future<absl::StatusOr<std::vector<int64_t>>>> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(std::async(std::launch::async, work, i));
  for (auto& worker : workers) {
    const auto got = worker.get();
    ASSERT_TRUE(got.ok()) << got.status();
    all.insert(got->begin(), got->end());
  }
  for (int64_t i = 0; i < 200; ++i) expected.insert(2 * i);
  EXPECT_EQ(all, expected);
}

/// A function of a dataset under way when the task's states are saved, which waits for it.
TEST(InputJobTest, ATaskThatSavesItsPositionGoesOn) {
  std::mutex mutex;
  std::condition_variable changed;
  bool called = false, let_go = false;
  const PublishedDataset published =
      *PublishDataset("waits", Dataset::Range(0, 9).Map([&](Tensors element) {
        std::unique_lock<std::mutex> lock(mutex);
        called = true;
        changed.notify_all();
        changed.wait(lock, [&] { return let_go; });
        return element;
      }));
  ServerOptions options;
  std::vector<std::string> addresses;
  for (int i = 0; i < 2; ++i) addresses.push_back("127.0.0.1:" + std::to_string(FreePort()));
  options.cluster = *ClusterSpec::Create({{"worker", {addresses[0]}}, {"input", {addresses[1]}}});
  options.heartbeat_timeout = absl::Seconds(2);
  std::vector<std::unique_ptr<Server>> servers;
  for (const char* const job : {"worker", "input"}) {
    options.job = job;
    servers.push_back(*Server::Start(options));
  }

  const Scope s = Scope::NewRoot();
  const Scope input = s.WithDevice("/job:input/task:0");
  const Output iterator = ops::DatasetIterator(input.WithOpName("iterator"), "waits");
  const Output row = ops::DatasetIteratorNext(input, iterator, {ElementType::kInt64})[0];
  const Output shape = ops::Const(input, Tensor::Vector<int32_t>({1}));
  const Output drawn = ops::RandomUniform(input, shape, ElementType::kFloat);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(
      s.graph(), {.target = servers[0]->target(), .heartbeat_timeout = options.heartbeat_timeout});
  auto runs = std::async(std::launch::async, [&] { return session->Run({row}); });
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return called; });
  }
  std::vector<std::future<absl::StatusOr<Session::KernelStates>>> saves;
  const auto save = [&] { return session->SaveKernelStates(); };
  for (int i = 0; i < 2; ++i) saves.push_back(std::async(std::launch::async, save));

  // While the save waits the task answers, takes new graphs of the session and is not lost.
  const absl::Time end = absl::Now() + 2 * options.heartbeat_timeout;
  bool registered = false;
  while (absl::Now() < end) {
    const auto log =
        ReadLog({.target = servers[1]->target()}, TaskId{"input", 0}, LogLevel::kError, /*most=*/1);
    ASSERT_TRUE(log.ok()) << log.status();
    if (!registered && absl::Now() > end - options.heartbeat_timeout) {
      const auto values = session->Run({drawn});
      ASSERT_TRUE(values.ok()) << values.status();
      registered = true;
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
  for (auto& one : saves) {
    EXPECT_EQ(one.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    let_go = true;
    changed.notify_all();
  }
  for (auto& one : saves) {
    const absl::StatusOr<Session::KernelStates> states = one.get();
    ASSERT_TRUE(states.ok()) << states.status();
    EXPECT_TRUE(std::any_of(states->begin(), states->end(), [](const auto& state) {
      return state.first.find("iterator") != std::string::npos && !state.second.empty();
    }));
  }
  const auto values = runs.get();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<int64_t>(), 0);
}

}  // namespace
}  // namespace troupe
