// Deadlines of the transport, and peers that die: these take the time that they test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/program/child_process.h"
#include "net/frame.h"
#include "tests/how_many.h"
#include "tests/net/raw_socket.h"
#include "tests/net/recording_sink.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0";

TransportOptions Quick() {
  TransportOptions options;
  options.handshake_timeout = milliseconds(300);
  options.stall_timeout = milliseconds(400);
  return options;
}

TEST(TransportRealtime, WhoSaysNothingIsTurnedAway) {
  Task ps(kPs, Quick());
  RawSocket silent(ps.port), half(ps.port);
  half.Write("TRPF");
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == 2; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ps.sink.Get(ps.sink.strangers)[0]));
  EXPECT_EQ(silent.Read(1), "");
}

TEST(TransportRealtime, AStreamWithoutItsPairIsTurnedAway) {
  Task ps(kPs, Quick());
  RawSocket socket(ps.port);
  Handshake role = Handshake::Connecting({kWorker, 5, ""}, {1, 0, 1 << 20, 1 << 30}, "", 0);
  EXPECT_FALSE(socket.Play(&role));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() == 1; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ps.sink.Get(ps.sink.strangers)[0]));
}

TEST(TransportRealtime, ConnectHasADeadline) {
  // A listener that accepts (the kernel does) and never answers.
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 5), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  Task worker(kWorker);
  ConnectOptions options;
  options.timeout = milliseconds(300);
  options.expected_task = kPs;
  const auto before = Clock::now();
  const auto peer = ConnectNow(*worker.transport,
                               "127.0.0.1:" + std::to_string(ntohs(address.sin_port)), options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer.status())) << peer.status();
  EXPECT_THAT(std::string(peer.status().message()), HasSubstr(kPs));
  EXPECT_LT(Clock::now() - before, milliseconds(2000));
  // Stopping does not wait for an attempt.
  options.timeout = std::chrono::seconds(100);
  absl::Status status;
  worker.transport->Connect("127.0.0.1:" + std::to_string(ntohs(address.sin_port)), options,
                            [&](const auto& result) { status = result.status(); });
  // The attempt is to be under way; nobody is told when it begins to wait.
  std::this_thread::sleep_for(milliseconds(50));
  worker.Stop();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  ::close(fd);
}

/// Pushes tensors without end to the task at the port that standard input names.
int Push() {
  int port = 0;
  if (std::scanf("%d", &port) != 1) return 1;
  Task worker(kWorker);
  auto peer = ConnectNow(*worker.transport, "127.0.0.1:" + std::to_string(port));
  if (!peer.ok()) return 1;
  const Tensor tensor = Tensor::Uninitialized(ElementType::kFloat, Shape({16 << 20}));
  while ((*peer)->connected()) {
    if ((*peer)->stats().queued_bytes < uint64_t{256} << 20) {
      (void)(*peer)->Send({1, 1, 0, false, tensor});
    }
    // Not to keep the core busy while the queue is full; there is no event for room in it.
    std::this_thread::sleep_for(milliseconds(1));
  }
  return 0;
}

/// Has another process, forked before this one has threads, push tensors to a task here, and sends
/// it a signal in the middle.
template <typename F>
void WithPusher(int signal_to_send, F check) {
  auto pusher = ChildProcess::Fork(Push, {.input = true});
  ASSERT_TRUE(pusher.ok()) << pusher.status();
  Task ps(kPs, Quick());
  pusher->Say(std::to_string(ps.port));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() >= 2; }));
  pusher->Signal(signal_to_send);
  const auto before = Clock::now();
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; }));
  check(ps.sink.Get(ps.sink.lost)[0].second, Clock::now() - before);
  // Time for a second report, which must not come.
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(ps.sink.Get(ps.sink.lost).size(), 1u);
}

/// Connects to the task at the port that standard input names, and exchanges tensors with it, all
/// of whose elements are the key.
int Exchange() {
  int port = 0;
  if (std::scanf("%d", &port) != 1) return 1;
  Task worker(kWorker);
  auto peer = ConnectNow(*worker.transport, "127.0.0.1:" + std::to_string(port));
  if (!peer.ok()) return 1;
  for (int64_t key = 1; (*peer)->connected(); ++key) {
    const auto size = static_cast<size_t>(1 << 15) << key % 5;
    (void)(*peer)->Send({1, static_cast<uint64_t>(key), 0, false,
                         Tensor::Vector<int64_t>(std::vector<int64_t>(size, key))});
    // There is no event for room in the queue.
    while ((*peer)->connected() && (*peer)->stats().queued_bytes > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return 0;
}

/// What /proc says of this process.
int64_t Kilobytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::atoll(line.c_str() + std::strlen(field) + 1);
  }
  return -1;
}

// Killed in the middle of a copy in either direction: what has come is whole, its end is told
// once, and no memory stays. TROUPE_TRANSFER_KILLS=N kills N.
TEST(TransportRealtime, PeersKilledWhileMemoryIsShared) {
  std::mt19937 random(5);
  const Tensor answer = Tensor::Uninitialized(ElementType::kFloat, Shape({1 << 18}));
  int64_t kilobytes = 0;
  const int runs = HowMany("TROUPE_TRANSFER_KILLS", 20, /*one_in=*/4);
  for (int run = 0; run < runs; ++run) {
    auto pusher = ChildProcess::Fork(Exchange, {.input = true});
    ASSERT_TRUE(pusher.ok()) << pusher.status();
    Task ps(kPs);
    std::atomic<int> came{0};
    ps.sink.on_tensor = [&](const std::shared_ptr<Peer>& peer, ReceivedTensor received) {
      const int64_t* const all = received.tensor.unchecked_data<int64_t>();
      const auto other = [&](int64_t x) { return x != static_cast<int64_t>(received.key); };
      EXPECT_TRUE(std::none_of(all, all + received.tensor.num_elements(), other)) << received.key;
      EXPECT_TRUE(peer->info().shared);
      if (peer->stats().queued_bytes < 8 << 20) {
        (void)peer->Send({1, received.key, 0, false, answer});
      }
      ++came;
    };
    pusher->Say(std::to_string(ps.port));
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
    const int least = 1 + static_cast<int>(random() % 40);
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    // `came` is counted on the I/O thread, which wakes nobody for it.
    while (came < least && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
    ASSERT_GE(came, least);
    // The moment is to be any, in the middle of a copy, too.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    pusher->Signal(SIGKILL);
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; })) << run;
    EXPECT_TRUE(absl::IsUnavailable(ps.sink.Get(ps.sink.lost)[0].second));
    ps.sink.connected.clear();
    ps.Stop();
    EXPECT_EQ(ps.sink.lost.size(), 1u);
    EXPECT_EQ(Kilobytes("RssShmem:"), 0) << run;
    if (run == runs / 4) kilobytes = Kilobytes("VmRSS:");
  }
  EXPECT_LT(Kilobytes("VmRSS:"), kilobytes + (64 << 10));
}

TEST(TransportRealtime, APeerKilledInATransfer) {
  WithPusher(SIGKILL, [](const absl::Status& why, Clock::duration took) {
    EXPECT_TRUE(absl::IsUnavailable(why)) << why;
    EXPECT_THAT(std::string(why.message()), HasSubstr(kWorker));
    EXPECT_LT(took, milliseconds(500));
  });
}

TEST(TransportRealtime, APeerFrozenInATransfer) {
  WithPusher(SIGSTOP, [](const absl::Status& why, Clock::duration took) {
    EXPECT_TRUE(absl::IsUnavailable(why)) << why;
    EXPECT_THAT(std::string(why.message()), HasSubstr("stopped"));
    EXPECT_LT(took, milliseconds(2000));
  });
}

TEST(TransportRealtime, AConsumerThatTakesItsTimeIsNotLost) {
  TransportOptions options = Quick();
  options.window_bytes = 1 << 20;
  Task ps(kPs, options), worker(kWorker, Quick());
  ps.sink.keep_credits = true;
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  const Tensor tensor = Tensor::Uninitialized(ElementType::kFloat, Shape({1 << 18}));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(peer->Send({1, 1, 0, false, tensor}).ok());
  // Longer than the stall timeout, which must not strike here.
  std::this_thread::sleep_for(milliseconds(1200));
  EXPECT_TRUE(peer->connected());
  EXPECT_EQ(ps.sink.Get(ps.sink.lost).size(), 0u);
}

}  // namespace
}  // namespace troupe
