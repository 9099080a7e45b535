// Sessions that wait for variables, and are made anew; in this process.
#include "api/training/recoverable_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/troupe.h"
#include "tests/api/training/replicas.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class RecoverableSessionTest : public testing::Test {
 protected:
  RecoverableSessionTest()
      : v_(s_, Const(s_, 5.0f), "v"), w_(s_, Const(s_, 6.0f), "w"), begun_(Begun()) {
    init_ = ops::NoOp(s_.WithControlDependencies({v_.initializer(), w_.initializer()}));
    uninitialized_ = ReportUninitializedVariables(s_);
    count_ = begun_.AssignAdd(s_, Const(s_, int64_t{1}));
    EXPECT_TRUE(s_.ok()) << s_.status();
    owner_ = *Session::Create(s_.graph());
    EXPECT_TRUE(owner_->RunTargets({begun_.initializer()}).ok());
  }
  ModelVariable Begun() { return ModelVariable::Local(s_, Const(s_, int64_t{0}), "begun"); }
  RecoverableSessionOptions Options(bool chief) {
    RecoverableSessionOptions options;
    options.session.runtime = owner_->runtime();
    options.uninitialized = uninitialized_;
    options.init = chief ? init_ : nullptr;
    options.local_init = count_;
    return options;
  }
  int64_t NumBegun() { return (*owner_->Run({begun_.value()}))[0].unchecked_scalar<int64_t>(); }

  Scope s_ = Scope::NewRoot();
  ModelVariable v_, w_, begun_;
  Node *init_ = nullptr, *count_ = nullptr;
  Output uninitialized_;
  std::unique_ptr<Session> owner_;
};

TEST_F(RecoverableSessionTest, NamesVariablesThatAreMissing) {
  ASSERT_TRUE(owner_->RunTargets({v_.initializer()}).ok());
  auto report = owner_->Run({uninitialized_});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ((*report)[0].num_elements(), 1);
  EXPECT_EQ((*report)[0].unchecked_values<std::string>()[0], "w");
  const absl::Status status = WaitUntilReady(*owner_, uninitialized_, absl::Milliseconds(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("100ms: w; has the chief"));
  RecoverableSessionOptions options = Options(false);
  options.ready_timeout = absl::Milliseconds(100);
  EXPECT_EQ(RecoverableSession::Create(s_.graph(), options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(NumBegun(), 0);
}

TEST_F(RecoverableSessionTest, OthersWaitForTheChief) {
  std::thread chief([&] {
    // So that the other one has to wait.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(RecoverableSession::Create(s_.graph(), Options(true)).ok());
  });
  auto session = RecoverableSession::Create(s_.graph(), Options(false));
  EXPECT_TRUE(session.ok()) << session.status();
  chief.join();
  EXPECT_EQ(NumBegun(), 2);
  // What has a value keeps it.
  ASSERT_TRUE(owner_->RunTargets({v_.Assign(s_, 9.0f)}).ok());
  EXPECT_TRUE(RecoverableSession::Create(s_.graph(), Options(true)).ok());
  EXPECT_EQ((*owner_->Run({v_.value()}))[0].unchecked_scalar<float>(), 9);
}

TEST_F(RecoverableSessionTest, BeginsAnewAfterALoss) {
  auto session = *RecoverableSession::Create(s_.graph(), Options(true));
  int calls = 0;
  Session* first = nullptr;
  EXPECT_TRUE(session
                  ->Run([&](Session& current) {
                    if (++calls == 1) first = &current;
                    return calls == 1   ? absl::UnavailableError("task lost")
                           : calls == 2 ? absl::AbortedError("restarted")
                                        : absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(session->num_sessions(), 3);
  EXPECT_EQ(NumBegun(), 3);
  // Errors of the step's own are the caller's.
  EXPECT_EQ(session->Run([](Session&) { return absl::InvalidArgumentError("bad"); }).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->num_sessions(), 3);
}

TEST_F(RecoverableSessionTest, TheChiefRestoresLostVariables) {
  auto session = *RecoverableSession::Create(s_.graph(), Options(true));
  const auto read = [&](Session& current) { return current.Run({v_.value()}).status(); };
  ASSERT_TRUE(session->Run(read).ok());
  ASSERT_TRUE(owner_->Reset().ok());
  ASSERT_TRUE(owner_->RunTargets({begun_.initializer()}).ok());
  const absl::Status status = session->Run(read);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(session->num_sessions(), 2);
}

TEST_F(RecoverableSessionTest, GivesUpAfterAWhile) {
  RecoverableSessionOptions options = Options(true);
  options.recovery_timeout = absl::Milliseconds(200);
  auto session = *RecoverableSession::Create(s_.graph(), options);
  const absl::Time begin = absl::Now();
  const absl::Status status = session->Run([](Session&) { return absl::UnavailableError("ps0"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps0"));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(200));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST_F(RecoverableSessionTest, ClosingEndsWhatRuns) {
  const Output queue = ops::FIFOQueueV2(s_, {ElementType::kFloat});
  const Output take = ops::QueueDequeueV2(s_, queue, {ElementType::kFloat})[0];
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = *RecoverableSession::Create(s_.graph(), Options(true));
  std::thread closer([&] {
    // Most likely the step waits by then.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    session->Close();
  });
  const auto blocked = [&](Session& current) { return current.Run({take}).status(); };
  EXPECT_EQ(session->Run(blocked).code(), absl::StatusCode::kCancelled);
  closer.join();
  EXPECT_EQ(session->Run(blocked).code(), absl::StatusCode::kCancelled);
}

TEST_F(RecoverableSessionTest, StepsRunInTheBackground) {
  auto bad = BackgroundSteps::Start(s_.graph(), Options(true), nullptr);
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
  Node* fail = ops::Assert(s_, false, {Const(s_, Tensor::Scalar("no"))});
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto failing = *BackgroundSteps::Start(s_.graph(), Options(true), fail);
  for (int i = 0; i < 1000 && failing->status().ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // Until the first step has failed.
  }
  EXPECT_EQ(failing->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failing->Stop().code(), absl::StatusCode::kInvalidArgument);
  auto counting = *BackgroundSteps::Start(s_.graph(), Options(true), count_);
  for (int i = 0; i < 1000 && NumBegun() < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // Until it has counted.
  }
  EXPECT_TRUE(counting->Stop().ok());
  const int64_t counted = NumBegun();
  EXPECT_GE(counted, 50);
  EXPECT_EQ(NumBegun(), counted);
}

TEST(SyncReplicasRealtime, TooFewWorkersAreADeadlineNotAHang) {
  auto replicas = MakeReplicas(2, [] { return std::make_unique<GradientDescentOptimizer>(0.1); },
                               {.replicas_to_aggregate = 2});
  auto updates = replicas[0]->StartUpdates();
  EXPECT_EQ(replicas[0]->Train(0, 0, 6, absl::Milliseconds(200)).code(),
            absl::StatusCode::kDeadlineExceeded);
  // The gradient counts nevertheless: the other one's makes the update.
  const absl::Status status = replicas[1]->Train(0, 6, 12);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(replicas[1]->GlobalStepNow(), 1);
  // Both get a token for it, in either order; nobody is told when it is there.
  const Scope& s = replicas[0]->s;
  const Output tokens =
      ops::QueueSizeV2(s, Output(s.graph()->FindNode("sync_replicas/sync_token_q_0")));
  for (int i = 0; i < 1000; ++i) {
    const auto number = replicas[0]->session->Run({tokens});
    ASSERT_TRUE(number.ok()) << number.status();
    if ((*number)[0].unchecked_scalar<int32_t>() != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  // Started again, the first one does not find the token that it did not wait for: it gives one
  // gradient of step 1, and waits.
  ASSERT_TRUE(replicas[0]->session->RunTargets({replicas[0]->sync.local_init()}).ok());
  EXPECT_EQ(replicas[0]->Train(1, 0, 6, absl::Milliseconds(200)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(replicas[0]->GlobalStepNow(), 1);
  EXPECT_TRUE(updates->Stop().ok());
}

}  // namespace
}  // namespace troupe
