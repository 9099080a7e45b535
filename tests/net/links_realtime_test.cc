// Links of several processes, all in this one, on loopback.
#include "net/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <thread>

#include "absl/strings/str_join.h"
#include "devices/status_macros.h"
#include "net/frame.h"
#include "tests/net/connect_now.h"
#include "tests/net/raw_socket.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kPatience = std::chrono::seconds(10);
const std::string kA = "/job:a/replica:0/task:0", kB = "/job:b/replica:0/task:0";

/// A process: what it hears, in words.
class Process {
 public:
  Process(const std::string& name, uint64_t incarnation, milliseconds dial_timeout = kPatience) {
    Links::Events events;
    events.number = [this](const PeerInfo& info) -> absl::StatusOr<PeerId> {
      if (info.task.starts_with("client")) return ClientPeer(info.incarnation);
      TROUPE_ASSIGN_OR_RETURN(const Links::Task task, links->FindTask(info.task));
      return task.id;
    };
    events.up = [this](PeerId peer, uint64_t life) { Say(StrCat("up ", peer, " ", life)); };
    events.lost = [this](PeerId peer, uint64_t life) { Say(StrCat("lost ", peer, " ", life)); };
    events.unreachable = [this](PeerId peer, const std::vector<uint64_t>& steps,
                                const absl::Status& why) {
      Say(StrCat("unreachable ", peer, ": ", absl::StrJoin(steps, " "), why.message()));
    };
    events.message = [this](PeerId from, const std::string& body, std::vector<Tensor> parts,
                            const absl::Status& whole) {
      std::string said = StrCat(from, ": ", body.size() < 100 ? body : StrCat(body.size()));
      for (const Tensor& part : parts) {
        const char* data = static_cast<const char*>(part.raw_data());
        said += StrCat(" + ", part.bytes(), " of ", std::string(1, data[part.bytes() - 1]));
      }
      if (!whole.ok()) said += StrCat(", ", absl::StatusCodeToString(whole.code()));
      Say(said);
    };
    events.tensor = [this](const ReceivedTensor& tensor) { Say(StrCat("tensor ", tensor.key)); };
    events.undelivered = [this](uint64_t step, const absl::Status& why) {
      Say(StrCat("undelivered ", step, ": ", absl::StatusCodeToString(why.code())));
    };
    events.tick = [] {};
    TransportOptions options;
    options.task = name;
    options.incarnation = incarnation;
    links = *Links::Create(options, dial_timeout, std::move(events));
  }
  std::string Listen() { return StrCat("127.0.0.1:", *links->Listen("127.0.0.1", 0)); }

  void Say(const std::string& what) {
    std::lock_guard<std::mutex> lock(mutex_);
    heard_.push_back(what);
    changed_.notify_all();
  }
  /// What is heard next.
  std::vector<std::string> Hear(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return heard_.size() >= count; });
    return std::exchange(heard_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;

 public:
  std::unique_ptr<Links> links;  ///< Ends first: until then it says what it hears.
};

/// A port at which connections are accepted, as the kernel does, and nothing is said.
class Silent {
 public:
  Silent() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~Silent() { close(fd_); }
  const std::string& address() const { return address_; }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  std::string address_;
};

/// Task `a`, 0 for the others, listens; `client` is linked with it.
class LinksTest : public testing::Test {
 protected:
  LinksTest() : address_(a_.Listen()) {
    client_.links->SetTask(0, kA, address_);
    client_.links->Send(0, "first");
    EXPECT_THAT(a_.Hear(2), ElementsAre(StrCat("up ", kClient, " 9"), Said("first")));
    EXPECT_THAT(client_.Hear(1), ElementsAre("up 0 7"));
  }
  std::string Said(const std::string& what) { return StrCat(kClient, ": ", what); }

  static constexpr PeerId kClient = ClientPeer(9);
  Process a_{kA, 7};
  Process client_{"client:9", 9};
  std::string address_;
};

TEST_F(LinksTest, MessagesAndWhatComesBesideThem) {
  client_.links->Send(0, "hello");
  client_.links->Send(0, "parts", {std::string(20000, 'x'), std::string(3 << 20, 'y')});
  EXPECT_THAT(a_.Hear(2),
              ElementsAre(Said("hello"), Said(StrCat("parts + 20000 of x + ", 3 << 20, " of y"))));
  client_.links->Send(0, std::string(3 << 20, 'b'), {std::string(20000, 'x')});
  EXPECT_THAT(a_.Hear(1), ElementsAre(Said(StrCat(3 << 20, " + 20000 of x"))));
  a_.links->Send(kClient, "back", {std::string(100000, 'z')});
  EXPECT_THAT(client_.Hear(1), ElementsAre("0: back + 100000 of z"));
}

/// Says what frames bring.
class Frames final : public FrameSink {
 public:
  void OnOpened(PeerId, const std::shared_ptr<Peer>&) override { Say("opened"); }
  void OnClosed(PeerId, const std::shared_ptr<Peer>&) override { Say("closed"); }
  void OnUnreachable(PeerId, const absl::Status&) override { Say("unreachable"); }
  void OnFrame(PeerId, const std::shared_ptr<Peer>&, std::string body, std::vector<Tensor> tensors,
               const absl::Status& whole) override {
    if (body.size() > 100) body = std::to_string(body.size());
    for (const Tensor& tensor : tensors) body += " " + tensor.shape().ToString();
    Say(whole.ok() ? body : "lost");
  }
  void OnFrameTick() override {}
  void OnTasksChanged() override {}
  std::vector<std::string> Hear(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return heard_.size() >= count; });
    return std::exchange(heard_, {});
  }

 private:
  void Say(std::string what) {
    std::lock_guard<std::mutex> lock(mutex_);
    heard_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
};

TEST_F(LinksTest, FramesComeInOrderWhateverIsWithThem) {
  Frames frames;
  Process b(kB, 11);
  a_.links->SetTask(1, kB, "127.0.0.1:1");
  b.links->SetTask(0, kA, address_);
  a_.links->SetFrameSink(&frames);
  // The first ones wait for the connection.
  const auto tensor = [](int64_t size) {
    return Tensor::Uninitialized(ElementType::kFloat, Shape({size}));
  };
  b.links->SendFrame(0, "one", {tensor(1 << 20)});
  b.links->SendFrame(0, "two", {});
  EXPECT_THAT(frames.Hear(3), ElementsAre("opened", "one [1048576]", "two"));
  b.links->SendFrame(0, "three", {tensor(3), tensor(4 << 20), Tensor::Scalar<float>(1)});
  b.links->SendFrame(0, std::string(2 << 20, 'x'), {});
  b.links->SendFrame(0, "five", {tensor(100)});
  b.links->SendFrame(0, "", {});
  EXPECT_THAT(frames.Hear(4), ElementsAre("three [3] [4194304] []", "2097152", "five [100]", ""));
  b.links->Drop(0);
  EXPECT_THAT(frames.Hear(1), ElementsAre("closed"));
  b.links->SendFrame(0, "again", {});
  EXPECT_THAT(frames.Hear(2), ElementsAre("opened", "again"));
  b.links->Stop(std::chrono::milliseconds(0));
  a_.links->Stop(std::chrono::milliseconds(0));
}

TEST_F(LinksTest, ClientsSendNoTensorsToSteps) {
  client_.links->Send(0, {5, 6, 0, false, Tensor::Scalar<float>(1)});
  EXPECT_THAT(client_.Hear(1), ElementsAre("undelivered 5: PERMISSION_DENIED"));
}

// Refusals of tensors that were never sent. Only tasks get tensors of steps, and may refuse some.
TEST_F(LinksTest, RefusalsThatNobodyWaitsFor) {
  const int port = std::stoi(address_.substr(address_.rfind(':') + 1));
  const auto refusal = [](uint64_t step) {
    return EncodeFrame({.kind = FrameKind::kReject,
                        .step = step,
                        .key = 6,
                        .total = static_cast<uint64_t>(absl::StatusCode::kUnknown)},
                       "never asked for");
  };
  RawPeer rogue(port, {.task = "client:11", .incarnation = 11, .secret = "", .address = ""});
  ASSERT_TRUE(rogue.connected);
  EXPECT_THAT(a_.Hear(1), ElementsAre(StrCat("up ", ClientPeer(11), " 11")));
  // Of a part of a message: whoever sent one has forgotten it.
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(rogue.lanes[0].Write(refusal(~uint64_t{0})));
  client_.links->Send(0, "second");
  EXPECT_THAT(a_.Hear(1), ElementsAre(Said("second")));
  // Of a step: none fails, and the connection is given up.
  ASSERT_TRUE(rogue.lanes[0].Write(refusal(5)));
  EXPECT_THAT(a_.Hear(1), ElementsAre(StrCat("lost ", ClientPeer(11), " 11")));
  client_.links->Send(0, "third");
  EXPECT_THAT(a_.Hear(1), ElementsAre(Said("third")));
}

TEST_F(LinksTest, LossIsToldWithTheLife) {
  client_.links->Stop(milliseconds(0));
  EXPECT_THAT(a_.Hear(1), ElementsAre(StrCat("lost ", kClient, " 9")));
  a_.links->Send(kClient, "nobody connects to clients");
  client_.links.reset();
}

// What was on its way over the earlier one may not have come: its steps must not wait for it.
TEST_F(LinksTest, AConnectionThatIsReplacedIsLost) {
  Process again{"client:9", 9};
  again.links->SetTask(0, kA, address_);
  again.links->Send(0, "again");
  EXPECT_THAT(a_.Hear(3), ElementsAre(StrCat("lost ", kClient, " 9"), StrCat("up ", kClient, " 9"),
                                      Said("again")));
  a_.links->Send(kClient, "hello");
  EXPECT_THAT(again.Hear(2), ElementsAre("up 0 7", "0: hello"));
  EXPECT_THAT(client_.Hear(1), ElementsAre("lost 0 7"));
}

TEST_F(LinksTest, WhatIsSentAfterALossConnectsAnew) {
  a_.links->Drop(kClient);
  EXPECT_THAT(client_.Hear(1), ElementsAre("lost 0 7"));
  client_.links->Send(0, "again");
  EXPECT_THAT(a_.Hear(2), ElementsAre(StrCat("up ", kClient, " 9"), Said("again")));
}

// --- Connecting ---

TEST(Links, NobodyIsThere) {
  Process a(kA, 7);
  a.links->SetTask(1, kB, "127.0.0.1:1");
  a.links->Send(1, "hello");
  EXPECT_THAT(a.Hear(1), ElementsAre(AllOf(StartsWith("unreachable 1: "), HasSubstr("refused"))));
  a.links->Send(1, {5, 6, 0, false, Tensor::Scalar<float>(1)});
  EXPECT_THAT(a.Hear(1), ElementsAre(StartsWith("unreachable 1: 5")));
  a.links->SetTask(2, "/job:c/replica:0/task:0", "no address");
  a.links->Send(2, "hello");
  EXPECT_THAT(a.Hear(1), ElementsAre(StartsWith("unreachable 2: ")));
}

TEST(Links, WhoIsRefusedLearnsWhy) {
  Process a(kA, 7), stranger(kB, 8), other(kB, 9);
  const std::string address = a.Listen();
  stranger.links->SetTask(0, kA, address);
  stranger.links->Send(0, "hello");
  EXPECT_THAT(stranger.Hear(1),
              ElementsAre(AllOf(StartsWith("unreachable 0: "), HasSubstr("no task " + kB))));
  other.links->SetTask(0, "/job:x/replica:0/task:0", address);
  other.links->Send(0, "hello");
  EXPECT_THAT(other.Hear(1), ElementsAre(HasSubstr("this is task " + kA)));
}

TEST(Links, AHostThatSaysNothingIsGivenUp) {
  const Silent silent;
  Process a(kA, 7, milliseconds(200));
  a.links->SetTask(1, kB, silent.address());
  a.links->Send(1, "hello");
  EXPECT_THAT(a.Hear(1), ElementsAre(HasSubstr("no answer within 200 ms")));
}

TEST(Links, StopsAtOnceWhileItConnects) {
  const Silent silent;
  Process a(kA, 7);
  a.links->SetTask(1, kB, silent.address());
  a.links->SetTask(2, "/job:c/replica:0/task:0", "name.invalid:1");
  a.links->Send(1, "hello");
  a.links->Send(2, "hello");
  const auto before = std::chrono::steady_clock::now();
  a.links->Stop(milliseconds(0));
  // It takes milliseconds; the rest is for a machine that has other things to do.
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(500));
}

// Whatever they say first, and whenever, arrives, in order, over one connection.
TEST(Links, BothConnectAtOnce) {
  for (int round = 0; round < 50; ++round) {
    Process a(kA, 7), b(kB, 8);
    const std::string at_a = a.Listen(), at_b = b.Listen();
    a.links->SetTask(1, kB, at_b);
    b.links->SetTask(0, kA, at_a);
    std::thread other([&] {
      for (int i = 0; i < 5; ++i) b.links->Send(0, StrCat("b", i));
    });
    for (int i = 0; i < 5; ++i) a.links->Send(1, StrCat("a", i));
    other.join();
    ASSERT_THAT(a.Hear(6), ElementsAre("up 1 8", "1: b0", "1: b1", "1: b2", "1: b3", "1: b4"));
    ASSERT_THAT(b.Hear(6), ElementsAre("up 0 7", "0: a0", "0: a1", "0: a2", "0: a3", "0: a4"));
  }
}

TEST(Links, ARestartedTaskSpeaksFirst) {
  Process a(kA, 7);
  const std::string at_a = a.Listen();
  auto b = std::make_unique<Process>(kB, 8);
  a.links->SetTask(1, kB, b->Listen());
  a.links->Send(1, "hello");
  b->links->SetTask(0, kA, at_a);
  ASSERT_THAT(b->Hear(2), ElementsAre("up 0 7", "0: hello"));
  ASSERT_THAT(a.Hear(1), ElementsAre("up 1 8"));
  b.reset();
  ASSERT_THAT(a.Hear(1), ElementsAre("lost 1 8"));
  b = std::make_unique<Process>(kB, 9);
  b->links->SetTask(0, kA, at_a);
  b->links->Send(0, {5, 6, 0, false, Tensor::Scalar<float>(1)});
  EXPECT_THAT(a.Hear(2), ElementsAre("up 1 9", "tensor 6"));
}

// Two processes that say they are one task: the second one waits for the first one's end.
TEST(Links, ANameThatLivesIsNotGivenAway) {
  Process a(kA, 7);
  const std::string at_a = a.Listen();
  auto b = std::make_unique<Process>(kB, 8);
  a.links->SetTask(1, kB, b->Listen());
  b->links->SetTask(0, kA, at_a);
  b->links->Send(0, "first");
  ASSERT_THAT(a.Hear(2), ElementsAre("up 1 8", "1: first"));
  Process second(kB, 9);
  second.links->SetTask(0, kA, at_a);
  second.links->Send(0, "second");
  for (int i = 0; i < 20; ++i) {
    // Time for the second one to try again, which it does at every tick of 20 ms.
    std::this_thread::sleep_for(milliseconds(10));
    b->links->Send(0, StrCat(i));
    a.links->Send(1, StrCat(i));
    ASSERT_THAT(a.Hear(1), ElementsAre(StrCat("1: ", i)));
  }
  EXPECT_THAT(b->Hear(21), testing::Not(testing::Contains(StartsWith("lost"))));
  b.reset();
  std::vector<std::string> heard = a.Hear(3);
  // It may look for the one that is gone before the other tries again.
  while (std::erase_if(heard, [](const auto& what) { return what.starts_with("unreachable"); })) {
    for (std::string& what : a.Hear(3 - heard.size())) heard.push_back(std::move(what));
  }
  EXPECT_THAT(heard, ElementsAre("lost 1 8", "up 1 9", "1: second"));
}

// Whoever came first under a name that is not its own gives way to the one at the task's address.
TEST(Links, ANameBelongsToWhoeverServesAtItsAddress) {
  for (const bool a_is_first : {true, false}) {
    Process a(a_is_first ? kA : kB, 7), other(a_is_first ? kB : kA, 8), b(a_is_first ? kB : kA, 9);
    const std::string at_a = a.Listen();
    a.links->SetTask(1, a_is_first ? kB : kA, b.Listen());
    other.links->SetTask(0, a_is_first ? kA : kB, at_a);
    other.links->Send(0, "other");
    ASSERT_THAT(a.Hear(2), ElementsAre("up 1 8", "1: other"));
    b.links->SetTask(0, a_is_first ? kA : kB, at_a);
    b.links->Send(0, "b");
    ASSERT_THAT(a.Hear(3), ElementsAre("lost 1 8", "up 1 9", "1: b"));
    a.links->Send(1, "back");
    EXPECT_THAT(b.Hear(2), ElementsAre("up 0 7", "0: back"));
  }
}

// --- Peers that do not keep to the protocol ---

class Rogue final : public TensorSink {
 public:
  void OnTensor(const std::shared_ptr<Peer>&, ReceivedTensor) override {}
  void OnPeerLost(const std::shared_ptr<Peer>&, const absl::Status&) override {}
};

class LinksWireTest : public testing::Test {
 protected:
  static constexpr uint64_t parts_step = ~uint64_t{0};

  LinksWireTest() {
    TransportOptions options;
    options.task = "client:9";
    options.incarnation = 9;
    transport_ = *Transport::Create(options, &rogue_);
    peer = *ConnectNow(*transport_, a_.Listen());
    EXPECT_EQ(a_.Hear(1).size(), 1u);
  }
  std::string Said(const std::string& what) { return StrCat(ClientPeer(9), ": ", what); }

  Process a_{kA, 7};

 private:
  Rogue rogue_;
  std::unique_ptr<Transport> transport_;

 protected:
  std::shared_ptr<Peer> peer;
};

TEST_F(LinksWireTest, PartsMayComeFirst) {
  ASSERT_TRUE(peer->Send({parts_step, 5, 0, false, Tensor::Vector<uint8_t>({'x'})}).ok());
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 2, 5, "two parts").ok());
  ASSERT_TRUE(peer->SendMessage(1, 0, "overtakes").ok());
  ASSERT_TRUE(peer->Send({parts_step, 5, 1, false, Tensor::Vector<uint8_t>({'y'})}).ok());
  EXPECT_THAT(a_.Hear(2), ElementsAre(Said("overtakes"), Said("two parts + 1 of x + 1 of y")));
}

TEST_F(LinksWireTest, WhatIsNotTakenIsTold) {
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 2, 5, "refused").ok());
  ASSERT_TRUE(peer->Send({parts_step, 5, 0, false, Tensor::Scalar<float>(1)}).ok());
  ASSERT_TRUE(peer->Send({parts_step, 5, 1, false, Tensor::Vector<uint8_t>({1})}).ok());
  EXPECT_THAT(a_.Hear(1), ElementsAre(Said("refused, RESOURCE_EXHAUSTED")));
  // If nobody knows what was lost, everything is.
  ASSERT_TRUE(peer->SendMessage(2 + 256 * 1, 6, "").ok());
  ASSERT_TRUE(peer->Send({parts_step, 6, 0, false, Tensor::Scalar<float>(1)}).ok());
  EXPECT_THAT(a_.Hear(1), ElementsAre(StrCat("lost ", ClientPeer(9), " 9")));
}

TEST_F(LinksWireTest, TheRestOfAMessageIsNotWaitedForForLong) {
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 2, 5, "two parts").ok());
  ASSERT_TRUE(peer->Send({parts_step, 5, 0, false, Tensor::Vector<uint8_t>({'x'})}).ok());
  // Heartbeats and the like are not the rest of it.
  int said = 0;
  for (; peer->connected() && said < 200; ++said) {
    ASSERT_TRUE(peer->SendMessage(1, 0, "chat").ok() || !peer->connected());
    std::this_thread::sleep_for(milliseconds(50));  // Five seconds are to be bridged.
  }
  EXPECT_LT(said, 200);
  std::vector<std::string> heard = a_.Hear(1);
  std::erase(heard, Said("chat"));
  EXPECT_THAT(heard, ElementsAre(StrCat("lost ", ClientPeer(9), " 9")));
}

TEST_F(LinksWireTest, PartsThatAreNotNumberedAsTheyShouldBe) {
  // Not bytes, dead, and too many: not admitted.
  ASSERT_TRUE(peer->Send({parts_step, 6, 0, false, Tensor::Scalar<float>(1)}).ok());
  ASSERT_TRUE(peer->Send({parts_step, 6, 0, true, Tensor()}).ok());
  ASSERT_TRUE(peer->Send({parts_step, 6, 1 << 20, false, Tensor::Vector<uint8_t>({1})}).ok());
  ASSERT_TRUE(peer->SendMessage(1 + 256 * (1 << 20), 7, "a million parts").ok());
  ASSERT_TRUE(peer->SendMessage(2, 8, "a body that is a part of none").ok());
  ASSERT_TRUE(peer->SendMessage(3, 8, "of a kind that there is not").ok());
  ASSERT_TRUE(peer->SendMessage(1, 0, "good").ok());
  EXPECT_THAT(a_.Hear(1), ElementsAre(Said("good")));
  // Parts that are missing are worth the connection.
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 2, 5, "two parts").ok());
  for (uint64_t tag : {0, 5}) {
    ASSERT_TRUE(peer->Send({parts_step, 5, tag, false, Tensor::Vector<uint8_t>({1})}).ok());
  }
  while (peer->connected()) std::this_thread::yield();
}

}  // namespace
}  // namespace troupe
