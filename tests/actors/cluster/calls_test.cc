#include "actors/cluster/calls.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <new>
#include <stdexcept>

#include "tests/actors/cluster/messages.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

class Sent final : public Outbox {
 public:
  void Send(PeerId to, cluster::Message message) override {
    if (has_no_memory) throw std::bad_alloc();
    messages.emplace_back(to, message);
  }
  cluster::Message Take() {
    cluster::Message first = messages.front().second;
    messages.erase(messages.begin());
    return first;
  }
  std::vector<std::pair<PeerId, cluster::Message>> messages;
  bool has_no_memory = false;
};

class CallsTest : public testing::Test {
 protected:
  Sent sent_a_, sent_b_;
  Calls a_{MessageFrom("/job:a/replica:0/task:0", 11, "").sender(), &sent_a_};
  Calls b_{MessageFrom("/job:b/replica:0/task:0", 22, "").sender(), &sent_b_};
  std::vector<absl::Status> answers_;

  uint64_t Ask(ClusterTime timeout = 0) {
    cluster::Message request;
    request.mutable_get_status();
    return a_.Call(1, 22, request, 0, timeout, [this](absl::Status status, cluster::Message) {
      answers_.push_back(std::move(status));
    });
  }
};

TEST_F(CallsTest, RequestIsAnsweredOnce) {
  Ask();
  const cluster::Message request = sent_a_.Take();
  EXPECT_EQ(request.sender().incarnation(), 11u);
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

// A request that takes long, like the step of a client that waits, keeps nothing of those that come
// and are answered behind it.
TEST_F(CallsTest, OnlyOpenRequestsAreKept) {
  Ask();
  EXPECT_TRUE(b_.Accept(0, sent_a_.Take()));
  const auto answer = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Ask();
      const cluster::Message request = sent_a_.Take();
      ASSERT_TRUE(b_.Accept(0, request));
      b_.Reply({0, request.id()}, absl::OkStatus());
      a_.OnReply(1, sent_b_.Take());
      answers_.clear();
    }
  };
  answer(1000);
  const size_t before = mallinfo2().uordblks;  // 0 with the address sanitizer's allocator
  answer(kSlowBuild ? 1000 : 100000);
  EXPECT_LT(mallinfo2().uordblks, before + 4096);
  EXPECT_EQ(b_.num_unanswered(), 1u);
  EXPECT_EQ(a_.num_pending(), 1u);
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
  EXPECT_EQ(answers_[0], absl::DeadlineExceededError("no answer to get_status within 1000 ms"));
  Ask();
  a_.FailPeer(2, absl::UnavailableError("another"));
  EXPECT_EQ(answers_.size(), 1u);
  a_.FailPeer(1, absl::UnavailableError("gone"));
  EXPECT_EQ(answers_.back(), absl::UnavailableError("gone"));
}

TEST_F(CallsTest, WhatCannotBeSentIsAnswered) {
  sent_a_.has_no_memory = true;
  Ask();
  EXPECT_TRUE(answers_.empty()) << "who asks has not noted the call yet";
  a_.Tick(0);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(a_.num_pending(), 0u);
}

TEST_F(CallsTest, AnAnswerThatCannotBeSentIsAnError) {
  Ask();
  const cluster::Message request = sent_a_.Take();
  EXPECT_TRUE(b_.Accept(0, request));
  sent_b_.has_no_memory = true;
  b_.Reply({0, request.id()}, absl::OkStatus());
  b_.Tick(0);  // Nor is there any now.
  EXPECT_EQ(b_.num_unanswered(), 1u);
  sent_b_.has_no_memory = false;
  b_.Tick(0);
  b_.Tick(0);
  ASSERT_EQ(sent_b_.messages.size(), 1u);
  a_.OnReply(1, sent_b_.Take());
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(b_.num_unanswered(), 0u);
}

TEST_F(CallsTest, WhoHasNoMemoryForAnAnswerGetsAnError) {
  std::vector<absl::Status> told;
  a_.Call(1, 22, {}, 0, 0, [&](const absl::Status& status, const cluster::Message&) {
    told.push_back(status);
    if (told.size() < 3) throw std::bad_alloc();
  });
  cluster::Message reply;
  reply.set_id(sent_a_.Take().id());
  reply.mutable_status();
  a_.OnReply(1, reply);
  a_.OnReply(1, reply);
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(a_.num_pending(), 1u);
  a_.Tick(0);
  a_.Tick(0);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(told[0].ok());
  EXPECT_TRUE(absl::IsResourceExhausted(told[2]));
  EXPECT_EQ(a_.num_pending(), 0u);
}

// One that throws, and one that asks again, which is not failed with the others.
TEST_F(CallsTest, ALostPeerFailsAllThatWaitForIt) {
  a_.Call(1, 22, {}, 0, 0,
          [](const absl::Status&, const cluster::Message&) { throw std::runtime_error("no"); });
  a_.Call(1, 22, {}, 0, 0, [this](const absl::Status&, const cluster::Message&) { Ask(); });
  Ask();
  a_.FailPeer(1, absl::UnavailableError("gone"));
  EXPECT_EQ(answers_, std::vector<absl::Status>{absl::UnavailableError("gone")});
  EXPECT_EQ(a_.num_pending(), 1u);
}

TEST_F(CallsTest, NewLifeOfWhoAsksBeginsAnew) {
  Ask();
  cluster::Message request = sent_a_.Take();
  EXPECT_TRUE(b_.Accept(0, request));
  request.mutable_sender()->set_incarnation(12);
  EXPECT_TRUE(b_.Accept(0, request));
}

}  // namespace
}  // namespace troupe
