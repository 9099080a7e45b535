// Thousands who connect to a task and mean no good, while clients do their work. TROUPE_STRANGERS=N
// makes N of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "net/frame.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"
#include "tests/how_many.h"
#include "tests/net/raw_socket.h"
#include "tests/resident_memory.h"

namespace troupe {
namespace {

using testing::StartsWith;

/// What a client may have to wait for, whoever else is there.
constexpr absl::Duration kService = absl::Seconds(1);

/// First bytes; after them nothing more is said.
std::string FirstBytes(int kind) {
  switch (kind % 6) {
    case 0:
      return "";
    case 1:
      return "T";
    case 2:
      return "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    case 3:
      return std::string(8 << 10, '\xff');
    case 4: {  // As much is to come as a number can say.
      FrameHeader hello;
      hello.kind = FrameKind::kHello;
      std::string bytes = EncodeFrame(hello, "");
      bytes.replace(16, 8, std::string(8, '\xff'));
      return bytes;
    }
    default: {  // So much is allowed, and does not come.
      FrameHeader hello;
      hello.kind = FrameKind::kHello;
      return EncodeFrame(hello, std::string(4000, 'x')).substr(0, kFrameHeaderBytes + 10);
    }
  }
}

class StrangersTest : public testing::Test {
 protected:
  explicit StrangersTest(const std::string& heartbeat_timeout = "5") {
    rlimit mine{};
    getrlimit(RLIMIT_NOFILE, &mine);
    mine.rlim_cur = mine.rlim_max;
    setrlimit(RLIMIT_NOFILE, &mine);
    port_ = FreePort();
    const std::string address = "127.0.0.1:" + std::to_string(port_);
    const std::string file =
        testing::TempDir() + "/strangers_" + std::to_string(getpid()) + ".json";
    std::ofstream(file) << "{\"worker\": [\"" << address << "\"]}";
    task_ = std::make_unique<TroupeProcess>(
        std::vector<std::string>{"worker", "--cluster", file, "--job", "worker", "--task", "0",
                                 "--threads", "1", "--heartbeat-timeout", heartbeat_timeout});
    EXPECT_THAT(task_->Line(), StartsWith("ready troupe://" + address));
    target_ = "troupe://" + address;
    Scope root = Scope::NewRoot();
    y_ = ops::Add(root, ops::Const(root, 40.0f), ops::Const(root, 2.0f));
    graph_ = root.graph();
  }
  /// How long a client took that comes, runs a step, and goes.
  absl::Duration Serve() {
    const absl::Time begin = absl::Now();
    auto session = Session::Create(graph_, {.target = target_});
    if (!session.ok()) {
      ADD_FAILURE() << session.status();
      return absl::InfiniteDuration();
    }
    const auto values = (*session)->Run({y_});
    EXPECT_TRUE(values.ok()) << values.status();
    if (values.ok()) {
      EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 42.0f);
    }
    (*session)->Close().IgnoreError();
    return absl::Now() - begin;
  }
  /// Strangers come, in waves, and stay; a client comes with each wave.
  void Besiege(int strangers, int64_t memory) {
    for (int i = 0; i < 20; ++i) Serve();  // What it needs at all it has now.
    const int64_t before = ResidentBytes(task_->pid());
    int64_t most = before;
    absl::Duration longest = Serve();
    std::vector<std::unique_ptr<RawSocket>> sockets;
    int connected = 0;
    for (int i = 0; i < strangers; ++i) {
      sockets.push_back(std::make_unique<RawSocket>(port_));
      connected += sockets.back()->connected() ? 1 : 0;
      sockets.back()->Write(FirstBytes(i));
      if (i % (strangers / 10) == 0) longest = std::max(longest, Serve());
      most = std::max(most, ResidentBytes(task_->pid()));
    }
    // All of them are there.
    for (int i = 0; i < 10; ++i) longest = std::max(longest, Serve());
    most = std::max(most, ResidentBytes(task_->pid()));
    EXPECT_EQ(connected, strangers);
    EXPECT_LT(longest, kService);
    EXPECT_LT(most - before, memory);
    std::printf("%d strangers: clients served within %s, memory %lld MiB, at most %lld KiB more\n",
                strangers, absl::FormatDuration(longest).c_str(),
                static_cast<long long>(before >> 20), static_cast<long long>(most - before) >> 10);
  }

  const int strangers_ = HowMany("TROUPE_STRANGERS", 2000, /*one_in=*/1);
  int port_ = 0;
  std::string target_;
  std::unique_ptr<TroupeProcess> task_;
  Output y_;
  std::shared_ptr<Graph> graph_;
};

TEST_F(StrangersTest, ClientsAreServedAmongThousands) { Besiege(strangers_, 32 << 20); }

TEST_F(StrangersTest, ClientsAreServedWithFewDescriptors) {
  const rlimit few{64, 64};
  ASSERT_EQ(prlimit(task_->pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  Besiege(strangers_, 32 << 20);
}

class RestingClientsTest : public StrangersTest {
 protected:
  RestingClientsTest() : StrangersTest("1") {}
};

// They have come in, as there is no secret.
TEST_F(RestingClientsTest, DoNotKeepTheirConnections) {
  std::vector<std::unique_ptr<RawPeer>> resting;
  for (uint64_t life = 11; life < 31; ++life) {
    resting.push_back(std::make_unique<RawPeer>(
        port_, Identity{.task = "client:" + std::to_string(life), .incarnation = life}));
    EXPECT_TRUE(resting.back()->connected);
  }
  const absl::Time begin = absl::Now();
  for (const auto& peer : resting) {
    for (RawSocket& lane : peer->lanes) lane.Read(1 << 20);
    ASSERT_LT(absl::Now() - begin, absl::Seconds(8));  // Reading gives up after ten.
  }
  Serve();
}

}  // namespace
}  // namespace troupe
