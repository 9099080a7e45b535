#include "net/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "devices/resource_handle.h"
#include "net/credits.h"
#include "net/tensor_codec.h"
#include "tests/net/tensors.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 34;

FrameHeader TensorHeader(ElementType type, const Shape& shape, uint64_t total) {
  FrameHeader h;
  h.kind = FrameKind::kTensor;
  h.type = type;
  h.rank = static_cast<uint8_t>(shape.rank());
  h.transfer = 1;
  h.step = 77;
  h.key = 0xfedcba9876543210u;
  h.tag = 5;
  h.total = total;
  h.length = std::min<uint64_t>(total, 1024);
  return h;
}

std::string Head(const FrameHeader& header, std::vector<int64_t> dims = {}) {
  std::string out(kFrameHeaderBytes + 8 * dims.size(), '\0');
  EncodeFrameHead(header, dims, out.data());
  return out;
}

absl::Status Decode(const std::string& head) {
  FrameHeader header;
  Shape shape;
  return DecodeFrameHead(head, kMaxTensorBytes, &header, &shape);
}

TEST(Frame, HeaderRoundTrip) {
  const Shape shape({3, 5, 2});
  FrameHeader h = TensorHeader(ElementType::kFloat, shape, 120);
  const std::string head = Head(h, {3, 5, 2});
  EXPECT_EQ(*FrameHeadBytes(head), head.size());
  FrameHeader got;
  Shape got_shape;
  ASSERT_TRUE(DecodeFrameHead(head, kMaxTensorBytes, &got, &got_shape).ok());
  EXPECT_EQ(got_shape, shape);
  EXPECT_EQ(got.kind, h.kind);
  EXPECT_EQ(got.type, h.type);
  EXPECT_EQ(got.step, h.step);
  EXPECT_EQ(got.key, h.key);
  EXPECT_EQ(got.tag, h.tag);
  EXPECT_EQ(got.total, h.total);
  EXPECT_EQ(got.length, h.length);
}

TEST(Frame, DocumentedBytes) {
  FrameHeader h;
  h.kind = FrameKind::kMessage;
  h.key = 0x0102030405060708u;
  h.tag = 9;
  const std::string frame = EncodeFrame(h, "abc");
  ASSERT_EQ(frame.size(), 67u);
  EXPECT_EQ(frame.substr(0, 8), std::string("TRPF\x05\x00\x15\x00", 8));
  EXPECT_EQ(frame.substr(16, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(frame.substr(40, 8), std::string("\x08\x07\x06\x05\x04\x03\x02\x01"));
  EXPECT_EQ(frame[48], 9);
  EXPECT_EQ(frame.substr(64), "abc");
}

TEST(Frame, EveryFlippedBitIsNoticed) {
  const std::string head = Head(TensorHeader(ElementType::kFloat, Shape({2, 2}), 16), {2, 2});
  for (size_t bit = 0; bit < 8 * head.size(); ++bit) {
    std::string bad = head;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(Decode(bad).ok()) << bit;
  }
}

TEST(Frame, RefusesWrongTensors) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const struct {
    FrameHeader header;
    std::vector<int64_t> dims;
    const char* message;
  } cases[] = {
      {TensorHeader(ElementType::kFloat, Shape({1}), 8), {1}, "8 bytes for float[1]"},
      {TensorHeader(ElementType::kFloat, Shape({1}), 4), {-1}, "dimension"},
      {TensorHeader(ElementType::kFloat, Shape({1, 1}), 4), {kHuge, kHuge}, ""},
      {TensorHeader(ElementType::kDouble, Shape({1}), 4), {int64_t{1} << 61}, "bytes for double"},
      {TensorHeader(ElementType::kInt2, Shape({1}), 1), {1}, "holds no tensors"},
      {TensorHeader(static_cast<ElementType>(200), Shape({1}), 1), {1}, "holds no tensors"},
      {TensorHeader(ElementType::kFloat, Shape({1}), uint64_t{1} << 42), {kHuge}, "at most"},
      {TensorHeader(ElementType::kString, Shape({1}), 10), {kHuge}, "bytes for string"},
      {TensorHeader(ElementType::kString, Shape({1}), 10), {11}, "bytes for string"},
  };
  for (const auto& c : cases) {
    const absl::Status status = Decode(Head(c.header, c.dims));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  FrameHeader dead = TensorHeader(ElementType::kFloat, Shape(), 4);
  dead.dead = true;
  EXPECT_THAT(std::string(Decode(Head(dead)).message()), HasSubstr("dead tensor with a value"));
  FrameHeader no_first_part = TensorHeader(ElementType::kFloat, Shape(), 4);
  no_first_part.length = 0;
  EXPECT_FALSE(Decode(Head(no_first_part)).ok());
  FrameHeader too_long = TensorHeader(ElementType::kFloat, Shape(), 4);
  too_long.length = 5;
  EXPECT_FALSE(Decode(Head(too_long)).ok());
  FrameHeader transfer0 = TensorHeader(ElementType::kFloat, Shape(), 4);
  transfer0.transfer = 0;
  EXPECT_FALSE(Decode(Head(transfer0)).ok());
}

TEST(Frame, RefusesFieldsThatAKindDoesNotHave) {
  FrameHeader chunk;
  chunk.kind = FrameKind::kChunk;
  chunk.transfer = 1;
  chunk.length = 10;
  EXPECT_TRUE(Decode(Head(chunk)).ok());
  chunk.step = 1;
  EXPECT_THAT(std::string(Decode(Head(chunk)).message()), HasSubstr("does not have"));
  chunk.step = 0;
  chunk.length = 0;
  EXPECT_THAT(std::string(Decode(Head(chunk)).message()), HasSubstr("empty"));
  chunk.length = uint64_t{1} << 40;
  EXPECT_THAT(std::string(Decode(Head(chunk)).message()), HasSubstr("at most"));
  FrameHeader credit;
  credit.kind = FrameKind::kCredit;
  credit.key = 2;
  credit.total = 1;
  EXPECT_FALSE(Decode(Head(credit)).ok());
  FrameHeader reject;
  reject.kind = FrameKind::kReject;
  reject.total = 17;
  EXPECT_FALSE(Decode(Head(reject)).ok());
  FrameHeader message;
  message.rank = 1;
  EXPECT_FALSE(Decode(Head(message)).ok());
  message.rank = 0;
  message.kind = static_cast<FrameKind>(9);
  EXPECT_THAT(std::string(Decode(Head(message)).message()), HasSubstr("does not exist"));
}

TEST(Frame, OtherVersionsAreTold) {
  std::string head = Head({});
  head[4] = 9;
  const absl::Status status = FrameHeadBytes(head).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("speaks version 9"));
}

TEST(TensorCodec, RoundTrip) {
  for (const Tensor& tensor : TensorsOfAllTypes()) {
    std::string bytes;
    ASSERT_TRUE(EncodeElements(tensor, &bytes).ok());
    const auto copy = DecodeElements(tensor.type(), tensor.shape(), bytes);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_TRUE(SameTensor(tensor, *copy)) << tensor.ToString();
    if (bytes.empty()) continue;
    // Cut off, or with something more: refused, not read beyond.
    EXPECT_FALSE(DecodeElements(tensor.type(), tensor.shape(),
                                std::string_view(bytes).substr(0, bytes.size() - 1))
                     .ok());
    EXPECT_FALSE(DecodeElements(tensor.type(), tensor.shape(), bytes + "x").ok());
  }
}

TEST(TensorCodec, StringsThatClaimTooMuch) {
  EXPECT_FALSE(DecodeElements(ElementType::kString, Shape({1}), "\xff\xff\xff\xff\x0f").ok());
  EXPECT_FALSE(DecodeElements(ElementType::kString, Shape({1}),
                              "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
                   .ok());
  EXPECT_FALSE(DecodeElements(ElementType::kString, Shape({int64_t{1} << 40}), "abc").ok());
}

TEST(TensorCodec, VariantsNeedAForm) {
  std::string bytes;
  const Tensor empty = Tensor::Uninitialized(ElementType::kVariant, Shape({2}));
  ASSERT_TRUE(EncodeElements(empty, &bytes).ok());
  EXPECT_TRUE(
      DecodeElements(ElementType::kVariant, Shape({2}), bytes)->unchecked_data<Variant>()->empty());
  Tensor strange = Tensor::Uninitialized(ElementType::kVariant, Shape());
  *strange.mutable_data<Variant>() = Variant(std::string("x"));
  EXPECT_TRUE(absl::IsUnimplemented(EncodeElements(strange, &bytes)));
  EXPECT_FALSE(DecodeElements(ElementType::kVariant, Shape(), std::string("\1x\1y")).ok());
}

TEST(TensorCodec, NestedTensors) {
  for (const Tensor& tensor : TensorsOfAllTypes()) {
    std::string bytes;
    ASSERT_TRUE(EncodeNestedTensor(tensor, 0, &bytes).ok());
    ASSERT_TRUE(EncodeNestedTensor(Tensor(), 0, &bytes).ok());
    std::string_view rest = bytes;
    const auto copy = DecodeNestedTensor(&rest, 0, HostAllocator());
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_TRUE(SameTensor(tensor, *copy));
    EXPECT_FALSE(DecodeNestedTensor(&rest, 0, HostAllocator())->valid());
    EXPECT_TRUE(rest.empty());
  }
  std::string bytes;
  EXPECT_FALSE(EncodeNestedTensor(Tensor::Scalar(1.0f), 64, &bytes).ok());
}

TEST(Credits, ASenderThatWaitsGetsOnWhenNothingIsHeld) {
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{10}, uint64_t{1000}, uint64_t{2500}, uint64_t{1} << 30}) {
    SendCredits sender(4096);
    ReceiveCredits receiver(4096);
    for (int i = 0; i < 1000; ++i) {
      uint64_t charge = 0;
      ASSERT_TRUE(sender.TryTake(size)) << size << " " << i;
      ASSERT_TRUE(receiver.Take(size, &charge));
      const uint64_t told = receiver.Release(charge);
      if (told > 0) {
        ASSERT_TRUE(sender.Give(told));
      }
    }
  }
}

TEST(Credits, BoundWhatIsUnderWay) {
  SendCredits sender(1 << 20);
  int count = 0;
  while (sender.TryTake(100 << 10)) ++count;
  EXPECT_EQ(count, 10);
  EXPECT_FALSE(sender.Give(2 << 20));
  ReceiveCredits receiver(1 << 20);
  uint64_t charge = 0;
  for (int i = 0; i < count; ++i) ASSERT_TRUE(receiver.Take(100 << 10, &charge));
  EXPECT_FALSE(receiver.Take(100 << 10, &charge));
}

}  // namespace
}  // namespace troupe
