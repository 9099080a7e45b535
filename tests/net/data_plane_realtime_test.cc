// Two data planes in this process, on loopback.
#include "net/data_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>

#include "devices/status_macros.h"

namespace troupe {
namespace {

using testing::_;
using testing::ElementsAre;

constexpr auto kPatience = std::chrono::seconds(10);

/// A process: what it hears, in words.
class Process {
 public:
  /// `peers[i]` is the name of peer i; whoever is not among them is a stranger.
  Process(const std::string& name, uint64_t incarnation,
          std::vector<std::pair<std::string, PeerId>> peers) {
    DataPlane::Events events;
    events.number = [peers](const PeerInfo& info) -> std::optional<PeerId> {
      for (const auto& [task, id] : peers) {
        if (task == info.task) return id;
      }
      return std::nullopt;
    };
    events.tensor = [this](const ReceivedTensor& tensor) { Say(StrCat("tensor ", tensor.key)); };
    events.message = [this](PeerId from, const std::string& body, std::vector<Tensor> parts) {
      std::string said = StrCat(from, ": ", body);
      for (const Tensor& part : parts) {
        const char* data = static_cast<const char*>(part.raw_data());
        said += StrCat(" + ", part.bytes(), " of ", std::string(1, data[part.bytes() - 1]));
      }
      Say(said);
    };
    events.rejected = [this](uint64_t step, const absl::Status& why) {
      Say(StrCat("rejected ", step, ": ", absl::StatusCodeToString(why.code())));
    };
    events.lost = [this](PeerId peer, uint64_t life) { Say(StrCat("lost ", peer, " ", life)); };
    TransportOptions options;
    options.task = name;
    options.incarnation = incarnation;
    plane = *DataPlane::Create(options, std::move(events));
  }

  void Say(const std::string& what) {
    std::lock_guard<std::mutex> lock(mutex_);
    heard_.push_back(what);
    changed_.notify_all();
  }
  std::vector<std::string> Hear(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return heard_.size() >= count; });
    return heard_;
  }
  void AwaitConnection(PeerId peer, uint64_t life) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!plane->Reaches(peer, life) && std::chrono::steady_clock::now() < end) {
      // There is no event for it: it is not needed but for tests.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;

 public:
  std::unique_ptr<DataPlane> plane;  ///< Ends first: until then it says what it hears.
};

bool Send(Process* from, PeerId to, uint64_t life, const std::string& body,
          std::vector<std::string> parts = {}) {
  return from->plane->SendMessage(to, life, body, &parts);
}

class DataPlaneTest : public testing::Test {
 protected:
  /// Task 0 listens, `client` connects to it.
  void Connect() {
    address_ = StrCat("127.0.0.1:", *task_.plane->Listen("127.0.0.1", 0));
    client_.plane->Dial(0, "", 7, address_);
    client_.AwaitConnection(0, 7);
    task_.AwaitConnection(ClientPeer(9), 9);
  }
  Process task_{"/job:a/replica:0/task:0", 7, {{"client:9", ClientPeer(9)}}};
  Process client_{"client:9", 9, {{"/job:a/replica:0/task:0", 0}}};
  std::string address_;
};

TEST_F(DataPlaneTest, MessagesAndWhatComesBesideThem) {
  EXPECT_FALSE(Send(&client_, 0, 7, "nobody is there"));
  Connect();
  EXPECT_TRUE(Send(&client_, 0, 7, "hello"));
  EXPECT_TRUE(Send(&client_, 0, 7, "parts", {std::string(20000, 'x'), std::string(3 << 20, 'y')}));
  EXPECT_THAT(task_.Hear(2),
              ElementsAre(StrCat(ClientPeer(9), ": hello"),
                          StrCat(ClientPeer(9), ": parts + 20000 of x + ", 3 << 20, " of y")));
  EXPECT_TRUE(Send(&task_, ClientPeer(9), 9, "back", {std::string(100000, 'z')}));
  EXPECT_THAT(client_.Hear(1), ElementsAre("0: back + 100000 of z"));
}

TEST_F(DataPlaneTest, WhatCannotBeSentIsNotTaken) {
  Connect();
  std::vector<std::string> parts = {"kept"};
  EXPECT_FALSE(client_.plane->SendMessage(0, 8, "for another life", &parts));
  EXPECT_FALSE(client_.plane->SendMessage(3, 7, "for another peer", &parts));
  EXPECT_FALSE(client_.plane->SendMessage(0, 7, std::string((1 << 20) + 1, 'x'), &parts));
  EXPECT_THAT(parts, ElementsAre("kept"));
}

TEST_F(DataPlaneTest, ClientsSendNoTensorsToSteps) {
  Connect();
  ASSERT_TRUE(client_.plane->Send(0, {5, 6, 0, false, Tensor::Scalar<float>(1)}).ok());
  EXPECT_THAT(client_.Hear(1), ElementsAre("rejected 5: PERMISSION_DENIED"));
}

TEST_F(DataPlaneTest, LossIsToldWithTheLife) {
  Connect();
  client_.plane->Stop(std::chrono::milliseconds(0));
  EXPECT_THAT(task_.Hear(1), ElementsAre(StrCat("lost ", ClientPeer(9), " 9")));
  EXPECT_FALSE(Send(&task_, ClientPeer(9), 9, "nobody is there"));
}

// What was on its way over the earlier one may not have come: its steps must not wait for it.
TEST_F(DataPlaneTest, AConnectionThatIsReplacedIsLost) {
  Connect();
  Process again{"client:9", 9, {{"/job:a/replica:0/task:0", 0}}};
  again.plane->Dial(0, "", 7, address_);
  again.AwaitConnection(0, 7);
  EXPECT_THAT(task_.Hear(1), ElementsAre(StrCat("lost ", ClientPeer(9), " 9")));
  task_.AwaitConnection(ClientPeer(9), 9);
  EXPECT_TRUE(Send(&task_, ClientPeer(9), 9, "hello"));
  EXPECT_THAT(again.Hear(1), ElementsAre("0: hello"));
  EXPECT_THAT(client_.Hear(1), ElementsAre("lost 0 7"));
}

/// Speaks the protocol, and does not keep to what it is used for.
class Rogue final : public TensorSink {
 public:
  void OnTensor(const std::shared_ptr<Peer>&, ReceivedTensor) override {}
  void OnPeerLost(const std::shared_ptr<Peer>&, const absl::Status&) override {}
};

class DataPlaneWireTest : public DataPlaneTest {
 protected:
  static constexpr uint64_t parts_step = ~uint64_t{0};

  DataPlaneWireTest() {
    TransportOptions options;
    options.task = "client:9";
    options.incarnation = 9;
    transport_ = *Transport::Create(options, &rogue_);
    peer = *transport_->Connect(StrCat("127.0.0.1:", *task_.plane->Listen("127.0.0.1", 0)));
  }
  std::string Said(const std::string& what) { return StrCat(ClientPeer(9), ": ", what); }

 private:
  Rogue rogue_;
  std::unique_ptr<Transport> transport_;

 protected:
  std::shared_ptr<Peer> peer;
};

TEST_F(DataPlaneWireTest, WhatStaysBehindWaitsForWhatIsOnItsWay) {
  ASSERT_TRUE(peer->SendMessage(2, 0, "behind nothing").ok());
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 1, 5, "a part").ok());
  ASSERT_TRUE(peer->SendMessage(2, 0, "behind the first").ok());
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 1, 6, "a second part").ok());
  ASSERT_TRUE(peer->SendMessage(2, 0, "behind the second").ok());
  ASSERT_TRUE(peer->SendMessage(1, 0, "overtakes").ok());
  ASSERT_TRUE(peer->Send({parts_step, 6, 0, false, Tensor::Vector<uint8_t>({'y'})}).ok());
  EXPECT_THAT(task_.Hear(3), ElementsAre(Said("behind nothing"), Said("overtakes"),
                                         Said("a second part + 1 of y")));
  ASSERT_TRUE(peer->Send({parts_step, 5, 0, false, Tensor::Vector<uint8_t>({'x'})}).ok());
  EXPECT_THAT(task_.Hear(6), ElementsAre(_, _, _, Said("a part + 1 of x"), Said("behind the first"),
                                         Said("behind the second")));
}

TEST_F(DataPlaneWireTest, WhatIsNotTakenIsNotWaitedFor) {
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 2, 5, "refused").ok());
  ASSERT_TRUE(peer->SendMessage(2, 0, "behind").ok());
  ASSERT_TRUE(peer->Send({parts_step, 5, 0, false, Tensor::Scalar<float>(1)}).ok());
  ASSERT_TRUE(peer->SendMessage(1, 0, "overtakes").ok());
  ASSERT_TRUE(peer->Send({parts_step, 5, 1, false, Tensor::Vector<uint8_t>({1})}).ok());
  EXPECT_THAT(task_.Hear(2), ElementsAre(Said("overtakes"), Said("behind")));
}

TEST_F(DataPlaneWireTest, PartsThatAreNotNumberedAsTheyShouldBe) {
  ASSERT_TRUE(peer->SendMessage(1 + 256 * 2, 5, "two parts").ok());
  for (uint64_t tag : {0, 5, 5}) {
    ASSERT_TRUE(peer->Send({parts_step, 5, tag, false, Tensor::Vector<uint8_t>({1})}).ok());
  }
  // Not bytes, dead, and too many: not admitted.
  ASSERT_TRUE(peer->Send({parts_step, 6, 0, false, Tensor::Scalar<float>(1)}).ok());
  ASSERT_TRUE(peer->Send({parts_step, 6, 0, true, Tensor()}).ok());
  ASSERT_TRUE(peer->Send({parts_step, 6, 1 << 20, false, Tensor::Vector<uint8_t>({1})}).ok());
  ASSERT_TRUE(peer->SendMessage(1 + 256 * (1 << 20), 7, "a million parts").ok());
  ASSERT_TRUE(peer->SendMessage(3, 8, "not a message of the control plane").ok());
  ASSERT_TRUE(peer->SendMessage(1, 0, "good").ok());
  EXPECT_THAT(task_.Hear(1), ElementsAre(Said("good")));
}

TEST_F(DataPlaneTest, StrangersAreRefused) {
  Process stranger("/job:b/replica:0/task:0", 1, {{"/job:a/replica:0/task:0", 0}});
  const int port = *task_.plane->Listen("127.0.0.1", 0);
  Connect();
  stranger.plane->Dial(0, "", 7, StrCat("127.0.0.1:", port));
  // Whoever comes later and is welcome is answered later.
  Process late("client:9", 10, {{"/job:a/replica:0/task:0", 0}});
  late.plane->Dial(0, "", 7, StrCat("127.0.0.1:", port));
  late.AwaitConnection(0, 7);
  EXPECT_FALSE(stranger.plane->Reaches(0, 7));
}

}  // namespace
}  // namespace troupe
