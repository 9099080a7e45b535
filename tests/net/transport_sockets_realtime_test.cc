#include "net/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <new>
#include <numeric>
#include <sstream>
#include <thread>

#include "absl/strings/str_format.h"
#include "tests/net/recording_sink.h"
#include "tests/net/tensors.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

Tensor Numbers(int64_t count, int64_t first = 0) {
  Tensor tensor = Tensor::Uninitialized(ElementType::kInt64, Shape({count}));
  std::iota(tensor.mutable_data<int64_t>(), tensor.mutable_data<int64_t>() + count, first);
  return tensor;
}

TEST(Transport, IntroducesPeers) {
  Task ps(kPs), worker(kWorker);
  ConnectOptions expected;
  expected.expected_task = kPs;
  expected.expected_incarnation = ps.transport->incarnation();
  const auto peer = ConnectNow(*worker.transport, ps.address, expected);
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ((*peer)->info().task, kPs);
  EXPECT_EQ((*peer)->info().incarnation, ps.transport->incarnation());
  EXPECT_EQ((*peer)->info().address, ps.address);
  EXPECT_FALSE((*peer)->info().answered);
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
  EXPECT_EQ(ps.sink.connected[0]->info().task, kWorker);
  EXPECT_TRUE(ps.sink.connected[0]->info().answered);
}

/// How many connected sockets of a port have a timer running, of the four of a connection.
int SocketsWithTimers(int port) {
  std::ifstream file("/proc/net/tcp");
  std::string line, word;
  std::getline(file, line);
  int timers = 0;
  const std::string mark = absl::StrFormat(":%04X", port);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string number, here, there, state, queues, timer;
    words >> number >> here >> there >> state >> queues >> timer;
    const bool ours = here.ends_with(mark) || there.ends_with(mark);
    timers += ours && state == "01" && !timer.starts_with("00") ? 1 : 0;
  }
  return timers;
}

// Else one whose other end is gone without a word would stay for ever.
TEST(Transport, ConnectionsThatRestAreProbed) {
  Task ps(kPs), worker(kWorker);
  ASSERT_TRUE(ConnectNow(*worker.transport, ps.address, {}).ok());
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
  EXPECT_EQ(SocketsWithTimers(ps.port), 4);
}

TEST(Transport, CarriesAllTypesBothWays) {
  Task ps(kPs), worker(kWorker);
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
  const std::vector<Tensor> tensors = TensorsOfAllTypes();
  const auto send = [&](Peer* to) {
    std::vector<SendItem> batch;
    for (size_t i = 0; i < tensors.size(); ++i) batch.push_back({1, i, i + 5, false, tensors[i]});
    batch.push_back({1, tensors.size(), 9, true, Tensor()});
    ASSERT_TRUE(to->Send(absl::MakeSpan(batch)).ok());
  };
  send(peer.get());
  send(ps.sink.connected[0].get());
  for (RecordingSink* sink : {&ps.sink, &worker.sink}) {
    ASSERT_TRUE(sink->Await([&] { return sink->tensors.size() == tensors.size() + 1; }));
    for (const ReceivedTensor& got : sink->tensors) {
      EXPECT_EQ(got.step, 1u);
      if (got.key == tensors.size()) {
        EXPECT_TRUE(got.dead);
        EXPECT_FALSE(got.tensor.valid());
        continue;
      }
      EXPECT_EQ(got.tag, got.key + 5);
      EXPECT_TRUE(SameTensor(got.tensor, tensors[got.key])) << got.key;
    }
  }
}

// Both ways at once, through shared memory if both would have it.
TEST(Transport, LargeTensorsAreAlignedAndWhole) {
  const Tensor large = Numbers(8 << 20);  // 64 MiB.
  for (const bool of_ps : {true, false}) {
    for (const bool of_worker : {true, false}) {
      TransportOptions options;
      options.share_memory = of_ps;
      Task ps(kPs, options);
      options.share_memory = of_worker;
      Task worker(kWorker, options);
      const auto peer = worker.ConnectTo(ps);
      ASSERT_NE(peer, nullptr);
      ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
      EXPECT_EQ(peer->info().shared, of_ps && of_worker);
      EXPECT_EQ(ps.sink.connected[0]->info().shared, of_ps && of_worker);
      for (uint64_t key = 0; key < 3; ++key) {
        ASSERT_TRUE(peer->Send({1, key, 0, false, large}).ok());
        ASSERT_TRUE(ps.sink.connected[0]->Send({1, key, 0, false, large}).ok());
      }
      for (RecordingSink* sink : {&ps.sink, &worker.sink}) {
        ASSERT_TRUE(sink->Await([&] { return sink->tensors.size() == 3; }));
        for (const ReceivedTensor& got : sink->tensors) {
          EXPECT_TRUE(SameTensor(got.tensor, large));
          EXPECT_EQ(reinterpret_cast<uintptr_t>(got.tensor.raw_data()) % Allocator::kAlignment, 0u);
        }
      }
    }
  }
}

TEST(Transport, ManySmallTensorsFromManyThreads) {
  Task ps(kPs), worker(kWorker);
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 125; ++i) {
        const uint64_t key = t * 125 + i;
        const int64_t count = key % 50 == 0 ? 20000 : static_cast<int64_t>(key % 40);
        ASSERT_TRUE(peer->Send({t, key, 0, false, Numbers(count, static_cast<int64_t>(key))}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() == 1000; }));
  std::vector<bool> seen(1000);
  for (const ReceivedTensor& got : ps.sink.tensors) {
    EXPECT_FALSE(seen[got.key]);
    seen[got.key] = true;
    const int64_t count = got.key % 50 == 0 ? 20000 : static_cast<int64_t>(got.key % 40);
    EXPECT_TRUE(SameTensor(got.tensor, Numbers(count, static_cast<int64_t>(got.key))));
  }
}

TEST(Transport, MessagesKeepTheirOrder) {
  Task ps(kPs), worker(kWorker);
  ps.sink.on_message = [](const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                          std::string body) {
    ASSERT_TRUE(peer->SendMessage(type + 1, id, body + "!").ok());
  };
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  for (uint64_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(peer->SendMessage(7, i, std::string(i * 20, 'x')).ok());
  }
  ASSERT_TRUE(worker.sink.Await([&] { return worker.sink.messages.size() == 500; }));
  for (uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(worker.sink.messages[i].type, 8u);
    EXPECT_EQ(worker.sink.messages[i].id, i);
    EXPECT_EQ(worker.sink.messages[i].body.size(), i * 20 + 1);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(peer->SendMessage(1, 1, std::string((1 << 20) + 1, 'x'))));
}

TEST(Transport, ASlowReaderBoundsWhatIsUnderWay) {
  TransportOptions options;
  options.window_bytes = 4 << 20;
  Task ps(kPs, options), worker(kWorker);
  ps.sink.keep_credits = true;
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  for (uint64_t key = 0; key < 40; ++key) {
    ASSERT_TRUE(peer->Send({1, key, 0, false, Numbers(1 << 17)}).ok());  // 1 MiB each.
  }
  // 3 fit the window, surcharge included; then nothing more comes.
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() >= 3; }));
  EXPECT_FALSE([&] {
    std::unique_lock<std::mutex> lock(ps.sink.mutex);
    return ps.sink.changed.wait_for(lock, milliseconds(200),
                                    [&] { return ps.sink.tensors.size() > 3; });
  }());
  EXPECT_EQ(peer->stats().queued_bytes, uint64_t{37} << 20);
  EXPECT_LE(ps.sink.Get(ps.sink.connected)[0]->stats().unreturned_bytes, 4u << 20);
  // Small ones and messages pass.
  ASSERT_TRUE(peer->Send({1, 100, 0, false, Numbers(3)}).ok());
  ASSERT_TRUE(peer->SendMessage(1, 2, "still there").ok());
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.messages.size() == 1; }));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() == 4; }));
  // Whoever lets go of the credits gets the rest.
  size_t got = 0;
  while (got < 41) {
    std::vector<ReceivedTensor> taken;
    ASSERT_TRUE(ps.sink.Await([&] { return !ps.sink.tensors.empty(); }));
    std::lock_guard<std::mutex> lock(ps.sink.mutex);
    taken.swap(ps.sink.tensors);
    got += taken.size();
  }
  EXPECT_EQ(got, 41u);
}

TEST(Transport, ATensorLargerThanTheWindowPasses) {
  TransportOptions options;
  options.window_bytes = 1 << 20;
  Task ps(kPs, options), worker(kWorker);
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  const Tensor large = Numbers(1 << 20);
  for (uint64_t key = 0; key < 5; ++key) ASSERT_TRUE(peer->Send({1, key, 0, false, large}).ok());
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() == 5; }));
  EXPECT_TRUE(SameTensor(ps.sink.tensors[4].tensor, large));
}

TEST(Transport, ASinkThatThrowsLosesItsConnectionOnly) {
  Task ps(kPs), worker(kWorker);
  ps.sink.on_message = [](const std::shared_ptr<Peer>&, uint64_t, uint64_t, std::string) {
    throw std::bad_alloc();
  };
  for (int i = 1; i <= 3; ++i) {
    const auto peer = worker.ConnectTo(ps);
    ASSERT_NE(peer, nullptr) << "the I/O thread goes on";
    ASSERT_TRUE(peer->SendMessage(1, 2, "body").ok());
    const size_t lost = static_cast<size_t>(i);
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == lost; }));
    ASSERT_TRUE(worker.sink.Await([&] { return worker.sink.lost.size() == lost; }));
    EXPECT_THAT(Message(ps.sink.Get(ps.sink.lost).back().second), HasSubstr("out of memory"));
  }
}

TEST(Transport, WhatIsNotAdmittedIsTold) {
  Task ps(kPs), worker(kWorker);
  ps.sink.admit = [](const IncomingTensor& info) {
    return info.step == 5 ? absl::OkStatus() : absl::NotFoundError("no such step");
  };
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  ASSERT_TRUE(peer->Send({4, 1, 0, false, Numbers(1 << 20)}).ok());
  ASSERT_TRUE(peer->Send({4, 2, 0, false, Numbers(1)}).ok());
  ASSERT_TRUE(peer->Send({5, 3, 0, false, Numbers(1 << 20)}).ok());
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() == 1; }));
  ASSERT_TRUE(worker.sink.Await([&] { return worker.sink.rejected.size() == 2; }));
  EXPECT_TRUE(absl::IsNotFound(worker.sink.Get(worker.sink.rejected)[0].second));
  EXPECT_TRUE(peer->connected());
}

TEST(Transport, RefusesWhatIsTooLarge) {
  TransportOptions options;
  options.max_tensor_bytes = 1000;
  Task ps(kPs, options), worker(kWorker);
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  SendItem items[] = {{1, 1, 0, false, Numbers(3)}, {1, 2, 0, false, Numbers(126)}};
  const absl::Status status = peer->Send(absl::MakeSpan(items));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr("at most 1000"));
  EXPECT_TRUE(items[0].tensor.valid());  // Nothing was sent.
  EXPECT_TRUE(peer->Send({1, 1, 0, false, Numbers(125)}).ok());
}

TEST(Transport, EachSideLearnsOfACloseOnce) {
  Task ps(kPs), worker(kWorker);
  const auto peer = worker.ConnectTo(ps);
  ASSERT_NE(peer, nullptr);
  ASSERT_TRUE(peer->Send({1, 1, 0, false, Numbers(1 << 20)}).ok());
  peer->Close("enough", milliseconds(5000));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; }));
  ASSERT_TRUE(worker.sink.Await([&] { return worker.sink.lost.size() == 1; }));
  EXPECT_EQ(ps.sink.tensors.size(), 1u);  // It was drained.
  EXPECT_TRUE(absl::IsUnavailable(ps.sink.Get(ps.sink.lost)[0].second));
  EXPECT_THAT(Message(ps.sink.Get(ps.sink.lost)[0].second), HasSubstr("enough"));
  EXPECT_THAT(Message(ps.sink.Get(ps.sink.lost)[0].second), HasSubstr(kWorker));
  EXPECT_TRUE(absl::IsCancelled(worker.sink.Get(worker.sink.lost)[0].second));
  EXPECT_FALSE(peer->connected());
  const absl::Status status = peer->Send({1, 1, 0, false, Numbers(1)});
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(peer->SendMessage(1, 1, "").ok());
  peer->Close("again", {});
  // The owner connects again.
  ASSERT_NE(worker.ConnectTo(ps), nullptr);
  worker.Stop();
  ps.Stop();
  EXPECT_EQ(ps.sink.Get(ps.sink.lost).size(), 2u);
  EXPECT_EQ(worker.sink.Get(worker.sink.lost).size(), 2u);
}

TEST(Transport, StopWhileTransferring) {
  const Tensor large = Numbers(1 << 20);
  for (const int drain : {0, 1, 8000}) {
    Task ps(kPs), worker(kWorker);
    const auto peer = worker.ConnectTo(ps);
    ASSERT_NE(peer, nullptr);
    for (uint64_t key = 0; key < 20; ++key) {
      ASSERT_TRUE(peer->Send({1, key, 0, false, large}).ok());
    }
    const auto before = std::chrono::steady_clock::now();
    worker.Stop(milliseconds(drain));
    const auto took = std::chrono::steady_clock::now() - before;
    EXPECT_LT(took, milliseconds(drain) + std::chrono::seconds(5));
    ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; }));
    EXPECT_EQ(worker.sink.Get(worker.sink.lost).size(), 1u);
    if (drain == 8000) {
      EXPECT_EQ(ps.sink.tensors.size(), 20u);
    }
    EXPECT_TRUE(worker.transport->Stop().ok());  // Again: nothing happens.
  }
}

TEST(Transport, AStopIsBoundedEvenIfItsSinkIsNot) {
  // Kept for good, as its transport says.
  static Task* const ps = new Task(kPs);
  static std::atomic<bool> inside{false}, may_go{false};
  ps->sink.on_message = [](const std::shared_ptr<Peer>&, uint64_t, uint64_t, std::string) {
    inside = true;
    inside.notify_one();
    may_go.wait(false);
  };
  Task worker(kWorker);
  const auto peer = worker.ConnectTo(*ps);
  ASSERT_NE(peer, nullptr);
  ASSERT_TRUE(peer->SendMessage(1, 1, "hold it").ok());
  inside.wait(false);
  const auto before = std::chrono::steady_clock::now();
  const absl::Status status = ps->transport->Stop();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(8));
  // It is not to be found any more.
  EXPECT_TRUE(worker.sink.Await([&] { return worker.sink.lost.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(ConnectNow(*worker.transport, ps->address).status()));
  ps->transport.reset();
  may_go = true;
  may_go.notify_one();
}

TEST(Transport, SendersRaceWithTheEnd) {
  for (int round = 0; round < 10; ++round) {
    Task ps(kPs), worker(kWorker);
    const auto peer = worker.ConnectTo(ps);
    ASSERT_NE(peer, nullptr);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        while (!over) {
          if (!peer->Send({1, 1, 0, false, Numbers(t == 0 ? 100000 : 10)}).ok()) return;
        }
      });
    }
    // The senders are to be in the midst of it, at a moment that differs from run to run.
    std::this_thread::sleep_for(milliseconds(5));
    if (round % 2 == 0) {
      ps.Stop();
    } else {
      worker.Stop();
    }
    over = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(worker.sink.Await([&] { return worker.sink.lost.size() == 1; }));
  }
}

TEST(Transport, PortInUse) {
  Task ps(kPs);
  RecordingSink sink;
  TransportOptions options;
  options.task = kWorker;
  auto other = *Transport::Create(options, &sink);
  const auto port = other->Listen("127.0.0.1", ps.port);
  EXPECT_TRUE(absl::IsUnavailable(port.status()));
  EXPECT_THAT(Message(port.status()), HasSubstr(ps.address));
}

TEST(Transport, OnlyLoopbackWithoutTls) {
  Task ps(kPs);
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1"}) {
    const auto port = ps.transport->Listen(host, 0);
    EXPECT_TRUE(absl::IsFailedPrecondition(port.status())) << host;
    EXPECT_THAT(Message(port.status()), HasSubstr("--insecure"));
  }
  EXPECT_TRUE(ps.transport->Listen("localhost", 0).ok());
  EXPECT_FALSE(ps.transport->Listen("127.0.0.1", 65536).ok());
  TransportOptions options;
  options.insecure = true;
  Task open(kWorker, options);
  EXPECT_TRUE(open.transport->Listen("0.0.0.0", 0).ok());
}

TEST(Transport, RefusalsAreClearOnBothSides) {
  TransportOptions options;
  options.secret = "one";
  Task ps(kPs, options);
  const auto refused = [&](const TransportOptions& mine, const ConnectOptions& connect) {
    Task worker(kWorker, mine);
    const size_t before = [&] {
      std::lock_guard<std::mutex> lock(ps.sink.mutex);
      return ps.sink.strangers.size();
    }();
    const auto peer = ConnectNow(*worker.transport, ps.address, connect);
    EXPECT_FALSE(peer.ok());
    EXPECT_THAT(Message(peer.status()), HasSubstr(ps.address));
    EXPECT_TRUE(ps.sink.Await([&] { return ps.sink.strangers.size() > before; }));
    return peer.status();
  };
  TransportOptions mine = options;
  mine.secret = "two";
  EXPECT_TRUE(absl::IsPermissionDenied(refused(mine, {})));
  ConnectOptions connect;
  connect.expected_task = "/job:ps/replica:0/task:1";
  EXPECT_THAT(Message(refused(options, connect)), HasSubstr("task /job:ps/replica:0/task:1 at"));
  connect = {};
  connect.expected_incarnation = ps.transport->incarnation() + 1;
  EXPECT_TRUE(absl::IsAborted(refused(options, connect)));
  EXPECT_TRUE(ps.sink.connected.empty());
  // The task is there for others.
  Task worker(kWorker, options);
  EXPECT_NE(worker.ConnectTo(ps), nullptr);
}

TEST(Transport, TheOwnerMayRefusePeers) {
  Task ps(kPs);
  ps.sink.on_hello = [](const PeerInfo& peer) {
    return peer.task == kWorker ? absl::OkStatus() : absl::AlreadyExistsError("that name is taken");
  };
  Task worker(kWorker), other("/job:worker/replica:0/task:1");
  EXPECT_NE(worker.ConnectTo(ps), nullptr);
  const auto peer = ConnectNow(*other.transport, ps.address);
  EXPECT_TRUE(absl::IsAlreadyExists(peer.status())) << peer.status();
  EXPECT_THAT(Message(peer.status()), HasSubstr("that name is taken"));
}

TEST(Transport, NobodyThere) {
  Task worker(kWorker);
  int port = 0;
  {
    Task ps(kPs);
    port = ps.port;
  }
  ConnectOptions options;
  options.expected_task = kPs;
  const auto peer = ConnectNow(*worker.transport, "127.0.0.1:" + std::to_string(port), options);
  EXPECT_TRUE(absl::IsUnavailable(peer.status()));
  EXPECT_THAT(Message(peer.status()), HasSubstr(kPs));
  EXPECT_FALSE(ConnectNow(*worker.transport, "nonsense").ok());
  EXPECT_FALSE(ConnectNow(*worker.transport, "a:99999").ok());
  EXPECT_TRUE(
      absl::IsUnavailable(ConnectNow(*worker.transport, "no-such-host.invalid:7").status()));
}

TEST(Transport, AfterStopNothingConnects) {
  Task ps(kPs), worker(kWorker);
  worker.Stop();
  EXPECT_TRUE(absl::IsCancelled(ConnectNow(*worker.transport, ps.address).status()));
  EXPECT_FALSE(worker.transport->Listen("127.0.0.1", 0).ok());
}

TEST(Transport, ManyPeers) {
  Task ps(kPs);
  std::vector<std::unique_ptr<Task>> workers;
  std::vector<std::shared_ptr<Peer>> peers;
  for (int i = 0; i < 8; ++i) {
    workers.push_back(std::make_unique<Task>("/job:worker/replica:0/task:" + std::to_string(i)));
    peers.push_back(workers.back()->ConnectTo(ps));
    ASSERT_NE(peers.back(), nullptr);
  }
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(peers[i]->Send({1, static_cast<uint64_t>(i), 0, false, Numbers(50000)}).ok());
  }
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.tensors.size() == 8; }));
  workers.clear();
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 8; }));
}

TEST(Transport, BadOptions) {
  RecordingSink sink;
  TransportOptions options;
  EXPECT_FALSE(Transport::Create(options, &sink).ok());
  options.task = kPs;
  EXPECT_FALSE(Transport::Create(options, nullptr).ok());
  options.window_bytes = 10;
  EXPECT_THAT(Message(Transport::Create(options, &sink).status()), HasSubstr("window"));
}

}  // namespace
}  // namespace troupe
