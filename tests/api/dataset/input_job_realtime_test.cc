// A job that reads the input of workers: the iterator is on its task, its elements travel.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace troupe
