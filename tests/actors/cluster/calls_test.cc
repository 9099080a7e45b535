#include "actors/cluster/calls.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

class Sent final : public Outbox {
 public:
  void Send(PeerId to, cluster::Message message) override { messages.emplace_back(to, message); }
  cluster::Message Take() {
    cluster::Message first = messages.front().second;
    messages.erase(messages.begin());
    return first;
  }
  std::vector<std::pair<PeerId, cluster::Message>> messages;
};

class CallsTest : public testing::Test {
 protected:
  Sent sent_a_, sent_b_;
  Calls a_{{"/job:a/replica:0/task:0", 11}, &sent_a_};
  Calls b_{{"/job:b/replica:0/task:0", 22}, &sent_b_};
  std::vector<absl::Status> answers_;

  uint64_t Ask(ClusterTime timeout = 0) {
    cluster::Message request;
    request.set_method(cluster::GET_STATUS);
    return a_.Call(1, 22, request, 0, timeout, [this](absl::Status status, cluster::Message) {
      answers_.push_back(std::move(status));
    });
  }
};

TEST_F(CallsTest, RequestIsAnsweredOnce) {
  Ask();
  const cluster::Message request = sent_a_.Take();
  EXPECT_EQ(request.incarnation(), 11u);
  EXPECT_EQ(request.to_incarnation(), 22u);
  EXPECT_TRUE(b_.Accept(0, request));
  EXPECT_FALSE(b_.Accept(0, request));  // A repeated message.
  b_.Reply({0, request.id()}, absl::NotFoundError("nothing"));
  b_.Reply({0, request.id()}, absl::OkStatus());
  ASSERT_EQ(sent_b_.messages.size(), 1u);
  const cluster::Message reply = sent_b_.Take();
  a_.OnReply(1, reply);
  a_.OnReply(1, reply);
  EXPECT_EQ(answers_, std::vector<absl::Status>{absl::NotFoundError("nothing")});
  EXPECT_EQ(a_.num_pending() + b_.num_unanswered(), 0u);
}

// A queue runner's step may stay open for as long as its session lives.
TEST_F(CallsTest, OneOpenRequestDoesNotKeepAllLaterOnes) {
  cluster::Message request;
  request.set_incarnation(11);
  auto accept = [&](uint64_t id) {
    request.set_id(id);
    return b_.Accept(0, request);
  };
  ASSERT_TRUE(accept(1));
  constexpr uint64_t kQuick = 1000000;
  for (uint64_t id = 2; id < kQuick; ++id) {
    ASSERT_TRUE(accept(id));
    b_.Reply({0, id}, absl::OkStatus());
    sent_b_.messages.clear();
  }
  EXPECT_LE(b_.num_remembered(), 5000u);
  EXPECT_EQ(b_.num_unanswered(), 1u);
  // Repetitions of the open one and of those answered last are recognized, late ones included.
  EXPECT_FALSE(accept(1));
  for (uint64_t id = kQuick - 4000; id < kQuick; ++id) EXPECT_FALSE(accept(id)) << id;
  b_.Reply({0, 1}, absl::OkStatus());
  EXPECT_EQ(sent_b_.messages.size(), 1u);
  EXPECT_FALSE(accept(1));
}

TEST_F(CallsTest, OnlyThePeerThatWasAskedAnswers) {
  Ask();
  cluster::Message reply;
  reply.set_id(sent_a_.Take().id());
  a_.OnReply(2, reply);
  EXPECT_TRUE(answers_.empty());
}

TEST_F(CallsTest, DeadlinesAndLostPeersAnswer) {
  Ask(kSecond);
  a_.Tick(kSecond - 1);
  EXPECT_TRUE(answers_.empty());
  a_.Tick(kSecond);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].code(), absl::StatusCode::kDeadlineExceeded);
  Ask();
  a_.FailPeer(2, absl::UnavailableError("another"));
  EXPECT_EQ(answers_.size(), 1u);
  a_.FailPeer(1, absl::UnavailableError("gone"));
  EXPECT_EQ(answers_.back(), absl::UnavailableError("gone"));
}

TEST_F(CallsTest, LostRequestIsNoticed) {
  Ask();
  sent_a_.Take();  // It gets lost.
  for (int i = 2; i < 6; ++i) {
    a_.Tick(i * kSecond);
    b_.OnCheck(0, sent_a_.Take());
    EXPECT_TRUE(answers_.empty());
    a_.OnChecked(1, sent_b_.Take());
  }
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].code(), absl::StatusCode::kUnavailable);
}

TEST_F(CallsTest, WhatIsSlowOnOneWayIsNotLost) {
  Ask();
  cluster::Message request = sent_a_.Take();  // It takes its time, on the second way.
  std::vector<cluster::Message> behind;
  for (int i = 2; i < 100; ++i) {
    a_.Tick(i * kSecond);
    cluster::Message check = sent_a_.Take();
    if (check.path() == 1) {
      behind.push_back(check);
      continue;
    }
    b_.OnCheck(0, check);
    a_.OnChecked(1, sent_b_.Take());
  }
  // The peer was just taking the request when the answers went out.
  for (const cluster::Message& check : behind) {
    b_.OnCheck(0, check);
    a_.OnChecked(1, sent_b_.Take());
  }
  EXPECT_TRUE(answers_.empty());
}

TEST_F(CallsTest, RequestThatIsWorkedOnIsLeftAlone) {
  Ask();
  b_.Accept(0, sent_a_.Take());
  for (int i = 2; i < 10; ++i) {
    a_.Tick(i * kSecond);
    b_.OnCheck(0, sent_a_.Take());
    EXPECT_TRUE(sent_b_.messages.empty());
  }
}

TEST_F(CallsTest, NewLifeOfWhoAsksBeginsAnew) {
  Ask();
  cluster::Message request = sent_a_.Take();
  EXPECT_TRUE(b_.Accept(0, request));
  request.set_incarnation(12);
  EXPECT_TRUE(b_.Accept(0, request));
}

}  // namespace
}  // namespace troupe
