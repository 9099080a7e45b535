// Messages whose parts come in any order, not at all, or from those who mean no good.

#include "net/message_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devices/status_macros.h"
#include "net/stall_watch.h"

namespace troupe {
namespace {

using Format = MessageFormat;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kLimit = 1 << 20, kLeast = 4096;

/// A peer, and what has been handed on of it, in words.
struct FromPeer {
  explicit FromPeer(SharedBudget* budget)
      : messages(budget, [this](MessageAssembler::Message message) {
          std::string said = StrCat(message.frame ? "frame " : "", message.body);
          for (const Tensor& part : message.parts) said += StrCat(" + ", part.bytes());
          if (!message.whole.ok()) {
            said += StrCat(", ", absl::StatusCodeToString(message.whole.code()));
          }
          heard.push_back(said);
        }) {}
  static IncomingTensor Part(uint64_t number, uint64_t index, uint64_t bytes) {
    return {.step = Format::kStep,
            .key = number,
            .tag = index,
            .type = ElementType::kUint8,
            .shape = Shape({static_cast<int64_t>(bytes)}),
            .bytes = bytes};
  }
  /// What a connection does when a part comes. The error of which the connection dies.
  absl::Status Bring(uint64_t number, uint64_t index, uint64_t bytes) {
    if (!messages.Admit(Part(number, index, bytes)).ok()) return messages.OnDropped(number);
    return messages.OnPart(
        number, index,
        Tensor::Uninitialized(ElementType::kUint8, Shape({static_cast<int64_t>(bytes)})));
  }
  absl::Status Say(uint64_t id, uint64_t parts, const std::string& body) {
    return messages.OnMessage(Format::kMessage + parts * Format::kPartsUnit, id, body);
  }
  absl::Status SayFrame(uint64_t number, uint64_t parts, const std::string& body) {
    return messages.OnMessage(Format::kFrame + parts * Format::kPartsUnit,
                              Format::kFrameNumber | number, body);
  }

  std::vector<std::string> heard;
  MessageAssembler messages;
};

TEST(MessageAssembler, PartsAndBodiesComeInAnyOrder) {
  SharedBudget budget(kLimit, kLeast);
  FromPeer peer(&budget);
  ASSERT_TRUE(peer.Say(0, 0, "alone").ok());
  ASSERT_TRUE(peer.Bring(5, 1, 20).ok());
  EXPECT_TRUE(peer.messages.waits());
  ASSERT_TRUE(peer.Say(5, 2, "five").ok());
  ASSERT_TRUE(peer.Say(6, 1, "six").ok());
  ASSERT_TRUE(peer.Bring(6, 0, 30).ok());
  ASSERT_TRUE(peer.Bring(5, 0, 10).ok());
  EXPECT_THAT(peer.heard, ElementsAre("alone", "six + 30", "five + 10 + 20"));
  EXPECT_FALSE(peer.messages.waits());
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MessageAssembler, FramesAreHandedOnInOrder) {
  SharedBudget budget(kLimit, kLeast);
  FromPeer peer(&budget);
  ASSERT_TRUE(peer.SayFrame(1, 0, "one").ok());
  ASSERT_TRUE(peer.SayFrame(0, 1, "zero").ok());
  ASSERT_TRUE(peer.SayFrame(2, 0, "two").ok());
  EXPECT_TRUE(peer.heard.empty());
  ASSERT_TRUE(peer.Bring(Format::kFrameNumber, 0, 100).ok());
  EXPECT_THAT(peer.heard, ElementsAre("frame zero + 100", "frame one", "frame two"));
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_FALSE(peer.SayFrame(1, 0, "again").ok());
}

// What is promised counts before it has come, or many would be promised the same memory.
TEST(MessageAssembler, NobodyTakesTheMemoryOfOthers) {
  SharedBudget budget(kLimit, kLeast);
  auto greedy = std::make_unique<FromPeer>(&budget);
  uint64_t number = 1;
  while (greedy->messages.Admit(FromPeer::Part(number, 0, 10000)).ok()) ++number;
  EXPECT_GT(budget.used(), kLimit / 2 - 20000);
  EXPECT_LE(budget.used(), kLimit / 2);
  // What it sends from now on is refused, and nobody else's.
  ASSERT_TRUE(greedy->messages.OnDropped(number).ok());
  ASSERT_TRUE(greedy->Say(number, 1, "greedy").ok());
  EXPECT_THAT(greedy->heard, ElementsAre("greedy, RESOURCE_EXHAUSTED"));
  std::vector<std::unique_ptr<FromPeer>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(std::make_unique<FromPeer>(&budget));
    for (uint64_t n = 1; others.back()->messages.Admit(FromPeer::Part(n, 0, 1000)).ok(); ++n) {
    }
  }
  FromPeer late(&budget);
  ASSERT_TRUE(late.Say(7, 1, "late").ok());
  ASSERT_TRUE(late.Bring(7, 0, kLeast / 2).ok());
  EXPECT_THAT(late.heard, ElementsAre(StrCat("late + ", kLeast / 2)));
  EXPECT_LE(budget.used(), kLimit + 100 * kLeast);
  // The end of a connection gives all of it back.
  const uint64_t held = greedy->messages.held(), before = budget.used();
  greedy.reset();
  EXPECT_EQ(budget.used(), before - held);
}

TEST(MessageAssembler, PartsOfNoMessageCount) {
  SharedBudget budget(kLimit, kLeast);
  FromPeer peer(&budget);
  absl::Status status;
  uint64_t number = 1;
  while (status.ok() && number < 1000000) status = peer.messages.OnDropped(number++);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_LT(number, kLimit / 64);
}

TEST(MessageAssembler, FramesThatWaitForAnotherCount) {
  SharedBudget budget(kLimit, kLeast);
  FromPeer peer(&budget);
  absl::Status status;
  uint64_t number = 1;
  while (status.ok() && number < 1000000) {
    status = peer.SayFrame(number++, 0, std::string(1000, 'x'));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(peer.heard.empty());
}

TEST(MessageAssembler, StringsCountWhatTheyTake) {
  SharedBudget budget(kLimit, kLeast);
  FromPeer peer(&budget);
  IncomingTensor strings = FromPeer::Part(Format::kFrameNumber, 0, 10000);
  strings.type = ElementType::kString;  // Empty ones, each a byte on the wire.
  ASSERT_TRUE(peer.messages.Admit(strings).ok());
  EXPECT_GT(peer.messages.held(), 33u * 10000);
  strings.tag = 1;
  EXPECT_FALSE(peer.messages.Admit(strings).ok());
}

TEST(MessageAssembler, WhatIsNotNumberedAsItShouldBeEndsTheConnection) {
  SharedBudget budget(kLimit, kLeast);
  FromPeer peer(&budget);
  ASSERT_TRUE(peer.Say(5, 2, "two parts").ok());
  EXPECT_FALSE(peer.Say(5, 2, "again").ok());
  ASSERT_TRUE(peer.Bring(5, 0, 10).ok());
  EXPECT_FALSE(peer.Bring(5, 0, 10).ok());
  ASSERT_TRUE(peer.Say(6, 2, "two parts").ok());
  ASSERT_TRUE(peer.Bring(6, 0, 10).ok());
  EXPECT_THAT(std::string(peer.Bring(6, 3, 10).message()), HasSubstr("missing"));
  EXPECT_TRUE(peer.heard.empty());
}

TEST(StallWatch, AByteNowAndThenIsNoProgress) {
  StallWatch watch(/*least=*/100, /*patience=*/4);
  uint64_t moved = 0;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.Look(true, moved += 100)) << i;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(watch.Look(true, ++moved)) << i;
  EXPECT_TRUE(watch.Look(true, ++moved));
}

TEST(StallWatch, LumpsAreProgress) {
  StallWatch watch(100, 4);
  uint64_t moved = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(watch.Look(true, moved += i % 3 == 2 ? 300 : 0)) << i;
}

TEST(StallWatch, WhoIsNotAwaitedIsNotBehind) {
  StallWatch watch(100, 4);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.Look(i % 4 != 3, 0)) << i;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watch.Look(true, 0));
  EXPECT_TRUE(watch.Look(true, 0));
}

}  // namespace
}  // namespace troupe
