// Tables, mutexes and staging areas of a real process, shared by sessions.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

using Code = absl::StatusCode;
using Values = absl::StatusOr<std::vector<Tensor>>;

class Synchronization : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string file =
        ::testing::TempDir() + "/synchronization_" + std::to_string(getpid()) + ".json";
    address_ = "127.0.0.1:" + std::to_string(FreePort());
    std::ofstream(file) << "{\"ps\": [\"" << address_ << "\"]}";
    process_ = std::make_unique<TroupeProcess>(
        std::vector<std::string>{"worker", "--cluster", file, "--job", "ps", "--task", "0"});
    ASSERT_EQ(process_->Line(), "ready troupe://" + address_);
  }
  std::unique_ptr<Session> Connect() {
    EXPECT_TRUE(s.ok()) << s.status();
    SessionOptions options;
    options.target = "troupe://" + address_;
    auto session = Session::Create(s.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  static absl::Status RunNode(Session& session, Node* node) {
    return session.Run(NamedTensors{}, {}, {node->name()}, nullptr);
  }

  Scope s = Scope::NewRoot();
  std::string address_;
  std::unique_ptr<TroupeProcess> process_;
};

TEST_F(Synchronization, SessionsShareWhatHasAName) {
  const MutableHashTable shared(s, ElementType::kString, ElementType::kInt64,
                                Tensor::Scalar<int64_t>(-1), {.shared_name = "words"});
  const StaticHashTable own(
      s,
      KeyValueTensorInitializer(Tensor::Vector<std::string>({"a"}), Tensor::Vector<int64_t>({7})),
      int64_t{-1});
  Node* const put = shared.Insert(s, "a", int64_t{5});
  const Output found = shared.Lookup(s, "a"), own_found = own.Lookup(s, "a");
  Node* const initialize = TablesInitializer(s);
  auto one = Connect(), two = Connect();
  ASSERT_TRUE(one && two);
  ASSERT_EQ(RunNode(*one, put), absl::OkStatus());
  ASSERT_EQ(RunNode(*one, initialize), absl::OkStatus());
  const Values values = two->Run({found});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<int64_t>(), 5);
  EXPECT_EQ(two->Run({own_found}).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ((*one->Run({own_found}))[0].unchecked_scalar<int64_t>(), 7);
  // The table outlives its sessions.
  one.reset();
  two.reset();
  auto three = Connect();
  EXPECT_EQ((*three->Run({found}))[0].unchecked_scalar<int64_t>(), 5);
}

/// A step waits inside of a critical section for what nobody stages; its session ends.
TEST_F(Synchronization, ASessionThatEndsGivesTheMutexBack) {
  const CriticalSection section(s);
  const StagingArea area(s, {ElementType::kFloat});
  const std::vector<Output> waits = section.Execute(
      s, [&](const Scope& locked) { return std::vector<Output>{area.Get(locked)[0]}; });
  const std::vector<Output> quick = section.Execute(s, [&](const Scope& locked) {
    return std::vector<Output>{ops::Identity(locked, Const(locked, 1.0f))};
  });
  auto one = Connect(), two = Connect();
  ASSERT_TRUE(one && two);
  auto waiting = std::async(std::launch::async, [&] { return one->Run({waits[0]}); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  auto behind = std::async(std::launch::async, [&] { return two->Run({quick[0]}); });
  EXPECT_EQ(behind.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_TRUE(one->Close().ok());
  EXPECT_FALSE(waiting.get().ok());
  const Values values = behind.get();
  EXPECT_TRUE(values.ok()) << values.status();
}

TEST_F(Synchronization, AProcessThatDiesEndsTheWait) {
  const StagingArea area(s, {ElementType::kFloat});
  const Output taken = area.Get(s)[0];
  auto session = Connect();
  ASSERT_TRUE(session);
  auto waiting = std::async(std::launch::async, [&] { return session->Run({taken}); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  process_->Signal(SIGKILL);
  const absl::Status status = waiting.get().status();
  EXPECT_TRUE(status.code() == Code::kUnavailable || status.code() == Code::kAborted) << status;
}

}  // namespace
}  // namespace troupe
