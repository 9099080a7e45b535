// A send queue's bytes, cut in all ways, read by a frame reader: without sockets.

#include "net/frame_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "net/send_queue.h"
#include "tests/net/tensors.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Recorder : FrameReader::Handler {
  struct Came {
    IncomingTensor info;
    Tensor tensor;
    uint64_t charge;
  };
  absl::Status Admit(const IncomingTensor& info) override {
    return info.step == refused_step ? absl::NotFoundError("no such step") : absl::OkStatus();
  }
  void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) override {
    tensors.push_back({info, std::move(tensor), charge});
  }
  void OnDropped(const IncomingTensor& info, uint64_t, const absl::Status& why) override {
    dropped.emplace_back(info.key, why);
  }
  absl::Status OnCredit(int lane, uint64_t bytes) override {
    credits.emplace_back(lane, bytes);
    return absl::OkStatus();
  }
  void OnReject(uint64_t, uint64_t key, uint64_t, const absl::Status& why) override {
    rejected.emplace_back(key, why);
  }
  void OnMessage(uint64_t type, uint64_t id, std::string body) override {
    messages.push_back(std::to_string(type) + "/" + std::to_string(id) + "/" + body);
  }
  void OnGoodbye(const absl::Status& why) override { goodbye = why; }

  uint64_t refused_step = 999;
  std::vector<Came> tensors;
  std::vector<std::pair<uint64_t, absl::Status>> dropped, rejected;
  std::vector<std::pair<int, uint64_t>> credits;
  std::vector<std::string> messages;
  absl::Status goodbye;
};

constexpr uint64_t kWindow = uint64_t{1} << 30;

struct Reading {
  explicit Reading(bool bulk, uint64_t window = kWindow)
      : credits(window), reader(uint64_t{1} << 34, bulk, &credits, &recorder) {}
  /// Puts the bytes where the reader wants them, at most `step` at a time.
  absl::Status Feed(std::string_view bytes, size_t step = SIZE_MAX) {
    while (!bytes.empty()) {
      iovec buffers[2];
      const int count = reader.NextBuffers(buffers);
      size_t left = std::min(step, bytes.size()), put = 0;
      for (int i = 0; i < count && left > 0; ++i) {
        const size_t n = std::min(left, buffers[i].iov_len);
        std::memcpy(buffers[i].iov_base, bytes.data() + put, n);
        put += n;
        left -= n;
      }
      bytes.remove_prefix(put);
      const absl::Status status = reader.Consume(put);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  Recorder recorder;
  ReceiveCredits credits;
  FrameReader reader;
};

void AppendBatches(SendQueue* queue, std::string* out) {
  Batch batch;
  while (queue->NextBatch(&batch)) {
    for (const iovec& piece : batch.rest()) {
      out->append(static_cast<const char*>(piece.iov_base), piece.iov_len);
    }
    batch.Clear();
  }
}

void Push(SendQueue* queue, uint64_t step, uint64_t key, Tensor tensor, bool dead = false) {
  auto outgoing = Outgoing::ForTensor(step, key, key + 1, dead, std::move(tensor), kWindow);
  ASSERT_TRUE(outgoing.ok()) << outgoing.status();
  queue->PushTensor(*std::move(outgoing));
}

Tensor Big(int64_t floats) {
  Tensor tensor = Tensor::Uninitialized(ElementType::kFloat, Shape({floats}));
  for (int64_t i = 0; i < floats; ++i) tensor.mutable_data<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(FrameReader, AllTypesCutAnywhere) {
  const std::vector<Tensor> tensors = TensorsOfAllTypes();
  SendQueue queue(kWindow);
  for (size_t i = 0; i < tensors.size(); ++i) Push(&queue, 7, i, tensors[i]);
  Push(&queue, 7, 1000, Tensor(), /*dead=*/true);
  FrameHeader message;
  message.kind = FrameKind::kMessage;
  message.key = 3;
  message.tag = 4;
  queue.PushUrgent(message, "hello");
  std::string bytes;
  AppendBatches(&queue, &bytes);
  for (const bool bulk : {false, true}) {
    for (const size_t step : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}, SIZE_MAX}) {
      Reading reading(bulk);
      ASSERT_TRUE(reading.Feed(bytes, step).ok());
      ASSERT_EQ(reading.recorder.tensors.size(), tensors.size() + 1);
      for (const auto& came : reading.recorder.tensors) {
        EXPECT_EQ(came.info.step, 7u);
        EXPECT_EQ(came.info.tag, came.info.key + 1);
        if (came.info.key == 1000) {
          EXPECT_TRUE(came.info.dead);
          continue;
        }
        EXPECT_TRUE(SameTensor(came.tensor, tensors[came.info.key])) << came.info.key;
      }
      EXPECT_EQ(reading.recorder.messages, std::vector<std::string>{"3/4/hello"});
      EXPECT_FALSE(reading.reader.midway());
    }
  }
}

TEST(FrameReader, LargeTensorsGoInTurns) {
  SendQueue queue(kWindow);
  for (uint64_t key = 0; key < 6; ++key) Push(&queue, 1, key, Big(500000 + int64_t(key)));
  Push(&queue, 1, 6, Big(100));
  std::string bytes;
  AppendBatches(&queue, &bytes);
  EXPECT_EQ(queue.queued_bytes(), 0u);
  std::mt19937 random(1);
  Reading reading(true);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t n = std::min<size_t>(rest.size(), random() % 300000 + 1);
    ASSERT_TRUE(reading.Feed(rest.substr(0, n)).ok());
    rest.remove_prefix(n);
  }
  ASSERT_EQ(reading.recorder.tensors.size(), 7u);
  for (const auto& came : reading.recorder.tensors) {
    EXPECT_TRUE(SameTensor(came.tensor,
                           came.info.key == 6 ? Big(100) : Big(500000 + int64_t(came.info.key))));
  }
  // The small one has not waited for all of the large ones.
  EXPECT_NE(reading.recorder.tensors.back().info.key, 6u);
}

TEST(FrameReader, TensorsThatAreNotAdmittedTakeNoMemory) {
  SendQueue queue(kWindow);
  Push(&queue, 1, 1, Big(10));
  Push(&queue, 999, 2, Big(1000000));
  Push(&queue, 1, 3, Tensor::Vector<std::string>({"a", "b"}));
  std::string bytes;
  AppendBatches(&queue, &bytes);
  for (const bool bulk : {false, true}) {
    Reading reading(bulk);
    ASSERT_TRUE(reading.Feed(bytes, 10000).ok());
    EXPECT_EQ(reading.recorder.tensors.size(), 2u);
    ASSERT_EQ(reading.recorder.dropped.size(), 1u);
    EXPECT_TRUE(absl::IsNotFound(reading.recorder.dropped[0].second));
  }
}

TEST(SendQueue, WaitsForCredits) {
  SendQueue queue(1 << 20);
  for (uint64_t key = 0; key < 10; ++key) Push(&queue, 1, key, Big(50000));
  std::string bytes;
  AppendBatches(&queue, &bytes);
  Reading reading(true, 1 << 20);
  ASSERT_TRUE(reading.Feed(bytes).ok());
  EXPECT_EQ(reading.recorder.tensors.size(), 5u);
  EXPECT_EQ(queue.queued_bytes(), 5 * 200000u);
  uint64_t told = 0;
  for (auto& came : reading.recorder.tensors) told += reading.credits.Release(came.charge);
  EXPECT_TRUE(queue.AddCredits(told));
  bytes.clear();
  AppendBatches(&queue, &bytes);
  ASSERT_TRUE(reading.Feed(bytes).ok());
  EXPECT_GT(reading.recorder.tensors.size(), 8u);
}

// Both ends charge for the memory that a tensor takes, not for its bytes on the wire.
TEST(SendQueue, StringsAreChargedWhatTheyTake) {
  constexpr uint64_t kSmallWindow = 1 << 20;
  const Tensor strings = Tensor::Uninitialized(ElementType::kString, Shape({10000}));  // Empty.
  SendQueue queue(kSmallWindow);
  for (uint64_t key = 0; key < 10; ++key) Push(&queue, 1, key, strings);
  std::string bytes;
  AppendBatches(&queue, &bytes);
  EXPECT_EQ(queue.queued_bytes(), 7 * 10000u);  // Each takes 330,000 there.
  Reading reading(true, kSmallWindow);
  ASSERT_TRUE(reading.Feed(bytes).ok());
  ASSERT_EQ(reading.recorder.tensors.size(), 3u);
  EXPECT_GE(reading.recorder.tensors[0].charge, 33 * 10000u);
}

TEST(SendQueue, WhatNeedsNoCreditsIsBounded) {
  SendQueue queue(1 << 20);
  const FrameHeader message{.kind = FrameKind::kMessage};
  int pushed = 0;
  while (queue.PushUrgent(message, std::string(1 << 20, 'x')) && pushed < 1000) ++pushed;
  EXPECT_EQ(pushed, 255);
  Batch batch;
  ASSERT_TRUE(queue.NextBatch(&batch));
  EXPECT_TRUE(queue.PushUrgent(message, std::string(1 << 20, 'x')));
  queue.Clear();
  // Frames without a body count, too.
  uint64_t empty = 0;
  while (queue.PushUrgent(message, "") && empty < (uint64_t{1} << 24)) ++empty;
  EXPECT_EQ(empty, SendQueue::kMaxUrgentBytes / SendQueue::kUrgentFrameBytes);
}

TEST(SendQueue, TheLastFrameComesAfterAllOthers) {
  SendQueue queue(1 << 20);
  for (uint64_t key = 0; key < 10; ++key) Push(&queue, 1, key, Big(50000));
  FrameHeader goodbye;
  goodbye.kind = FrameKind::kGoodbye;
  goodbye.total = 1;
  queue.PushLast(goodbye, "done");
  std::string bytes;
  AppendBatches(&queue, &bytes);
  EXPECT_FALSE(queue.finished());  // Half of the tensors wait for credits.
  EXPECT_TRUE(queue.AddCredits(5 * CreditCharge(200000, 1 << 20)));
  AppendBatches(&queue, &bytes);
  EXPECT_TRUE(queue.finished());
  Reading reading(true);
  ASSERT_TRUE(reading.Feed(bytes).ok());
  EXPECT_EQ(reading.recorder.tensors.size(), 10u);
  EXPECT_TRUE(reading.reader.ended());
  EXPECT_EQ(std::string(reading.recorder.goodbye.message()), "done");
  EXPECT_FALSE(reading.Feed(bytes).ok());
}

TEST(SendQueue, RefusesWhatCannotBeSent) {
  EXPECT_FALSE(Outgoing::ForTensor(1, 1, 1, false, Tensor(), kWindow).ok());
  EXPECT_FALSE(Outgoing::ForTensor(1, 1, 1, false, Big(100), 399).ok());
  EXPECT_TRUE(Outgoing::ForTensor(1, 1, 1, false, Big(100), 400).ok());
}

std::string Frame(FrameHeader h, std::string_view body = "", std::vector<int64_t> dims = {}) {
  std::string out(kFrameHeaderBytes + 8 * dims.size(), '\0');
  EncodeFrameHead(h, dims, out.data());
  return out.append(body);
}

FrameHeader Header(FrameKind kind, uint64_t transfer, uint64_t length, uint64_t total = 0) {
  FrameHeader h;
  h.kind = kind;
  h.transfer = transfer;
  h.length = length;
  h.total = total;
  if (kind == FrameKind::kTensor) {
    h.type = ElementType::kUint8;
    h.rank = 1;
  }
  return h;
}

TEST(FrameReader, RefusesStrangeFrames) {
  const std::string open = Frame(Header(FrameKind::kTensor, 5, 4, 10), "abcd", {10});
  FrameHeader strings = Header(FrameKind::kTensor, 1, 3, 3);
  strings.type = ElementType::kString;
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {std::string(64, 'x'), "begin no frame"},
      {open + Frame(Header(FrameKind::kTensor, 5, 4, 10), "abcd", {10}), "out of order"},
      {open + Frame(Header(FrameKind::kTensor, 4, 4, 10), "abcd", {10}), "out of order"},
      {open + Frame(Header(FrameKind::kChunk, 6, 4), "abcd"), "not under way"},
      {open + Frame(Header(FrameKind::kChunk, 5, 7), "abcdefg"), "only 6 are missing"},
      {open + Frame(Header(FrameKind::kChunk, 5, 6), "abcdef") +
           Frame(Header(FrameKind::kChunk, 5, 1), "a"),
       "not under way"},
      {Frame(Header(static_cast<FrameKind>(18), 5, 0)), "does not exist"},
      {Frame(Header(FrameKind::kHello, 0, 0)), "open already"},
      {Frame(Header(FrameKind::kWelcome, 0, 0)), "open already"},
      {Frame(Header(FrameKind::kTensor, 1, 1, 1 << 20), "a", {1 << 20}) +
           Frame(Header(FrameKind::kTensor, 2, 1, 1 << 20), "a", {1 << 20}),
       "no credit"},
      {Frame(Header(FrameKind::kTensor, 1, 1, uint64_t{1} << 40), "a", {int64_t{1} << 40}),
       "at most"},
      {Frame(strings, "abc", {int64_t{1} << 40}), "3 bytes for string"},
  };
  for (const auto& c : cases) {
    for (const bool bulk : {false, true}) {
      Reading reading(bulk, 1 << 20);
      const absl::Status status = reading.Feed(c.bytes);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.message;
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    }
  }
}

TEST(FrameReader, TooManyTensorsAtOnce) {
  Reading reading(true);
  absl::Status status;
  for (uint64_t i = 1; i <= FrameReader::kMaxTransfers + 1; ++i) {
    EXPECT_TRUE(status.ok());
    status = reading.Feed(Frame(Header(FrameKind::kTensor, i, 1, 10), "a", {10}));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("at once"));
}

TEST(FrameReader, BoolsAreMadeProper) {
  FrameHeader h = Header(FrameKind::kTensor, 1, 3, 3);
  h.type = ElementType::kBool;
  Reading reading(false);
  ASSERT_TRUE(reading.Feed(Frame(h, std::string("\0\1\xff", 3), {3})).ok());
  const Tensor& tensor = reading.recorder.tensors[0].tensor;
  EXPECT_EQ(std::memcmp(tensor.raw_data(), "\0\1\1", 3), 0);
}

}  // namespace
}  // namespace troupe
