// What a task does when something else than a task of its cluster, or a broken one, speaks to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "devices/status_macros.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "tests/net/raw_socket.h"
#include "tests/net/recording_sink.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0";

Handshake Role(int lane, uint64_t connection = 1) {
  return Handshake::Connecting({kWorker, 5, ""}, {connection, lane, 1 << 20, 1 << 30}, "", 0);
}

/// A task that a test plays byte by byte.
struct Impostor {
  explicit Impostor(int port) : small(port), bulk(port) {
    // The task welcomes both streams when both have come: neither can wait for its own welcome.
    Handshake roles[] = {Role(0), Role(1)};
    RawSocket* sockets[] = {&small, &bulk};
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 2; ++i) {
        sockets[i]->Write(roles[i].TakeOutput());
        if (round == 1) continue;
        while (roles[i].wanted() > 0 && roles[i].status().ok()) {
          const std::string bytes = sockets[i]->Read(roles[i].wanted());
          if (bytes.empty()) return;
          roles[i].Consume(bytes);
          std::string proof = roles[i].TakeOutput();
          if (proof.empty()) continue;
          sockets[i]->Write(proof);
          break;
        }
      }
    }
    open = sockets[0]->Read(kFrameHeaderBytes).size() == kFrameHeaderBytes &&
           sockets[1]->Read(kFrameHeaderBytes).size() == kFrameHeaderBytes;
  }
  RawSocket small, bulk;
  bool open = false;
};

FrameHeader TensorFrame(uint64_t transfer, uint64_t length, uint64_t total) {
  FrameHeader h;
  h.kind = FrameKind::kTensor;
  h.type = ElementType::kUint8;
  h.rank = 1;
  h.transfer = transfer;
  h.step = 1;
  h.length = length;
  h.total = total;
  return h;
}

std::string Frame(const FrameHeader& header, std::string_view body) {
  const int64_t dims[] = {static_cast<int64_t>(header.total)};
  const bool tensor = header.kind == FrameKind::kTensor;
  std::string out(kFrameHeaderBytes + (tensor ? 8 : 0), '\0');
  EncodeFrameHead(header, absl::MakeConstSpan(dims, tensor ? 1 : 0), out.data());
  return out.append(body);
}

TEST(Strangers, OtherProtocolsAreRefused) {
  Task ps(kPs);
  const std::string others[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(1000, '\0'),
                                "SSH-2.0-OpenSSH_9.2\r\n", std::string("\x16\x03\x01\x00\xff", 5)};
  for (size_t i = 0; i < std::size(others); ++i) {
    RawSocket socket(ps.port);
    ASSERT_TRUE(socket.Write(others[i]));
    EXPECT_EQ(socket.Read(4), "TRPF");  // A refusal, in our own words; then the end.
    socket.Read(1 << 20);
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == i + 1; }));
    EXPECT_TRUE(absl::IsInvalidArgument(ps.sink.Get(ps.sink.strangers)[i]));
  }
  EXPECT_TRUE(ps.sink.connected.empty());
}

TEST(Strangers, OtherVersionsAreRefused) {
  Task ps(kPs);
  Handshake role = Role(0);
  std::string hello = role.TakeOutput();
  hello[4] = kWireVersion + 1;
  RawSocket socket(ps.port);
  ASSERT_TRUE(socket.Write(hello));
  role.Consume(socket.Read(kFrameHeaderBytes));
  role.Consume(socket.Read(role.wanted()));
  EXPECT_TRUE(absl::IsFailedPrecondition(role.status())) << role.status();
  EXPECT_THAT(std::string(role.status().message()),
              HasSubstr(StrCat("speaks version ", kWireVersion + 1)));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == 1; }));
  EXPECT_THAT(std::string(ps.sink.Get(ps.sink.strangers)[0].message()),
              HasSubstr(StrCat("speaks version ", kWireVersion + 1)));
}

TEST(Strangers, AStreamIsJoinedOnce) {
  Task ps(kPs);
  RawSocket first(ps.port), second(ps.port);
  Handshake a = Role(0), b = Role(0);
  first.Write(a.TakeOutput());
  a.Consume(first.Read(a.wanted()));
  a.Consume(first.Read(a.wanted()));
  first.Write(a.TakeOutput());  // Verified; now it waits for the other stream.
  EXPECT_FALSE(second.Play(&b));
  EXPECT_THAT(std::string(b.status().message()), HasSubstr("open already"));
  first.Close();
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == 2; }));
  Impostor impostor(ps.port);
  EXPECT_TRUE(impostor.open);
}

// Those who say nothing do not keep others out.
TEST(Strangers, TheOldestHandshakeGivesWay) {
  TransportOptions options;
  options.max_handshakes = 8;
  Task ps(kPs, options);
  std::vector<std::unique_ptr<RawSocket>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<RawSocket>(ps.port));
  const auto before = std::chrono::steady_clock::now();
  Impostor impostor(ps.port);
  EXPECT_TRUE(impostor.open);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  EXPECT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() >= 32; }));
  EXPECT_THAT(std::string(ps.sink.Get(ps.sink.strangers)[0].message()),
              HasSubstr("8 later handshakes are under way"));
  EXPECT_THAT(silent[0]->Read(4096), HasSubstr("8 later handshakes are under way"));
}

TEST(Strangers, BadFramesEndTheirConnectionOnly) {
  Task ps(kPs), worker("/job:worker/replica:0/task:7");
  const auto good = worker.ConnectTo(ps);
  ASSERT_NE(good, nullptr);
  FrameHeader unknown_chunk;
  unknown_chunk.kind = FrameKind::kChunk;
  unknown_chunk.transfer = 9;
  FrameHeader credit;
  credit.kind = FrameKind::kCredit;
  credit.total = 1;
  std::string flipped = Frame(TensorFrame(1, 3, 3), "abc");
  flipped[40] = 1;
  unknown_chunk.length = 3;
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {Frame(TensorFrame(1, 3, uint64_t{1} << 50), "abc"), "at most"},
      {Frame(TensorFrame(1, 3, 3), "abc") + Frame(TensorFrame(1, 3, 3), "abc"), "out of order"},
      {Frame(unknown_chunk, "abc"), "not under way"},
      {Frame(credit, ""), "not taken"},
      {flipped, "checksum"},
      {std::string(64, 'z'), "begin no frame"},
      {Frame(TensorFrame(1, 1 << 20, uint64_t{1} << 30), std::string(1 << 20, 'x')) +
           Frame(TensorFrame(2, 1 << 20, uint64_t{1} << 30), std::string(1 << 20, 'x')),
       "no credit"},
  };
  size_t lost = 0;
  for (const auto& c : cases) {
    for (const bool bulk : {false, true}) {
      Impostor impostor(ps.port);
      ASSERT_TRUE(impostor.open);
      (bulk ? impostor.bulk : impostor.small).Write(c.bytes);
      ++lost;
      ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == lost; })) << c.message;
      EXPECT_THAT(std::string(ps.sink.Get(ps.sink.lost).back().second.message()),
                  HasSubstr(c.message));
      EXPECT_THAT(std::string(ps.sink.Get(ps.sink.lost).back().second.message()),
                  HasSubstr(kWorker));
    }
  }
  EXPECT_LT(HostAllocator()->stats().peak_bytes_in_use, int64_t{3} << 30);
  EXPECT_TRUE(good->connected());
  ASSERT_TRUE(good->SendMessage(1, 1, "fine").ok());
  EXPECT_TRUE(ps.sink.Await([&] { return ps.sink.messages.size() == 1; }));
}

// A byte now and then is no progress: it would keep memory for ever.
TEST(Strangers, APeerThatDripsIsLost) {
  TransportOptions options;
  options.stall_timeout = std::chrono::milliseconds(500);
  Task ps(kPs, options);
  Impostor impostor(ps.port);
  ASSERT_TRUE(impostor.open);
  ASSERT_TRUE(impostor.bulk.Write(Frame(TensorFrame(1, 1000, 1000), "")));
  const auto before = std::chrono::steady_clock::now();
  const auto lost = [&] { return !ps.sink.Get(ps.sink.lost).empty(); };
  while (!lost() && std::chrono::steady_clock::now() - before < std::chrono::seconds(8)) {
    impostor.bulk.Write("x");
    // The rate is what is tested: a hundred bytes a second.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(lost());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4));
  EXPECT_THAT(std::string(ps.sink.Get(ps.sink.lost)[0].second.message()),
              HasSubstr("in the middle of a tensor"));
}

TEST(Strangers, APeerThatDoesNotReadItsMessagesIsLost) {
  Task ps(kPs);
  Impostor impostor(ps.port);
  ASSERT_TRUE(impostor.open);
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
  const auto peer = ps.sink.Get(ps.sink.connected)[0];
  int sent = 0;
  while (sent < 1000 && peer->SendMessage(1, 1, std::string(1 << 20, 'x')).ok()) ++sent;
  EXPECT_LT(sent, 300);  // 256 MiB, and what the kernels take.
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; }));
  EXPECT_THAT(std::string(ps.sink.Get(ps.sink.lost)[0].second.message()),
              HasSubstr("does not read"));
}

// Who is refused has a second to read why, unless the task stops.
TEST(Strangers, AStopDoesNotWaitForThem) {
  Task ps(kPs);
  RawSocket stranger(ps.port);
  ASSERT_TRUE(stranger.Write("GET / HTTP/1.1\r\n"));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == 1; }));
  const auto before = std::chrono::steady_clock::now();
  ps.Stop();
  // It takes milliseconds; the rest is for a machine that has other things to do.
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(500));
}

// So many that are refused do not take the descriptors of those who are not.
TEST(Strangers, RefusalsUnderWayAreBounded) {
  TransportOptions options;
  options.max_handshakes = 8;
  Task ps(kPs, options);
  std::vector<std::unique_ptr<RawSocket>> refused;
  for (size_t i = 0; i < 40; ++i) {
    refused.push_back(std::make_unique<RawSocket>(ps.port));
    ASSERT_TRUE(refused.back()->Write("SSH-2.0-OpenSSH_9.2\r\n"));
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == i + 1; }));
  }
  // The first ones have been closed, and read the end of what they were told.
  const auto before = std::chrono::steady_clock::now();
  for (size_t i = 0; i < 32; ++i) refused[i]->Read(1 << 20);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(800));
  Impostor impostor(ps.port);
  EXPECT_TRUE(impostor.open);
}

TEST(Strangers, APeerThatIsCutOffInATensor) {
  Task ps(kPs);
  for (const size_t have : {size_t{10}, size_t{64}, size_t{72}, size_t{75}}) {
    Impostor impostor(ps.port);
    ASSERT_TRUE(impostor.open);
    const std::string frame = Frame(TensorFrame(1, 10, 1000000), "0123456789");
    impostor.bulk.Write(std::string_view(frame).substr(0, have));
    impostor.bulk.Close();
    impostor.small.Close();
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; }));
    EXPECT_TRUE(absl::IsUnavailable(ps.sink.Get(ps.sink.lost)[0].second));
    std::lock_guard<std::mutex> lock(ps.sink.mutex);
    ps.sink.lost.clear();
  }
  EXPECT_TRUE(ps.sink.tensors.empty());
}

}  // namespace
}  // namespace troupe
