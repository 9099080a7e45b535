// The control plane between actor systems in this process, on loopback.
#include "net/control_plane.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Handler final : public ControlHandler {
 public:
  void OnMessage(PeerId from, cluster::Message message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    heard_.insert(from);
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }
  void OnLinkDown(PeerId peer) override {
    std::lock_guard<std::mutex> lock(mutex_);
    down_.insert(peer);
    changed_.notify_all();
  }
  void OnTick() override {}

  bool AwaitHeard(PeerId peer, seconds patience = seconds(10)) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return heard_.count(peer) != 0; });
  }
  bool AwaitMessages(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, seconds(10), [&] { return messages_.size() >= count; });
  }
  size_t num_down() {
    std::lock_guard<std::mutex> lock(mutex_);
    return down_.size();
  }
  std::set<PeerId> heard() {
    std::lock_guard<std::mutex> lock(mutex_);
    return heard_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<PeerId> heard_, down_;
  std::vector<cluster::Message> messages_;
};

struct Node {
  explicit Node(const ControlOptions& options) : plane(*ControlPlane::Create(options)) {
    plane->Start(&handler);
  }
  ~Node() { plane->Stop(); }
  void Ping(PeerId to, const std::string& task, const std::string& address) {
    cluster::Message ping;
    ping.set_kind(cluster::PING);
    ping.set_task(task);
    ping.set_address(address);
    ping.set_incarnation(reinterpret_cast<uintptr_t>(this));
    plane->Send(to, ping);
  }
  Handler handler;
  std::unique_ptr<ControlPlane> plane;
};

ControlOptions ClientOf(const std::vector<std::string>& addresses) {
  ControlOptions options;
  options.addresses = addresses;
  options.threads = 2;
  return options;
}

std::string Local(int port) { return "127.0.0.1:" + std::to_string(port); }

TEST(ControlPlane, AConnectionThatEndsHarmsNoOtherUnderTls) {
  const std::string folder = testing::TempDir();
  const std::string make =
      "cd " + folder +
      " && (openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
      "/CN=authority -keyout cp_ca.key -out cp_ca.pem"
      " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=task -keyout "
      "cp.key -out cp.csr"
      " && openssl x509 -req -in cp.csr -CA cp_ca.pem -CAkey cp_ca.key -CAcreateserial -days 2 "
      "-out cp.pem) >/dev/null 2>&1";
  ASSERT_EQ(std::system(make.c_str()), 0);
  ControlOptions options;
  options.tls_certificate = folder + "/cp.pem";
  options.tls_key = folder + "/cp.key";
  options.tls_authority = folder + "/cp_ca.pem";
  Node server(options);
  const auto port = server.plane->Listen("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  options.addresses = {Local(*port)};
  options.threads = 2;
  Node client(options);
  size_t messages = 0;
  client.Ping(0, "", "");
  ASSERT_TRUE(server.handler.AwaitMessages(++messages));
  for (int i = 0; i < 5; ++i) {
    {
      Node other(options);
      other.Ping(0, "", "");
      ASSERT_TRUE(server.handler.AwaitMessages(++messages));
    }
    client.Ping(0, "", "");
    ASSERT_TRUE(server.handler.AwaitMessages(++messages)) << "the connection was closed";
  }
  EXPECT_EQ(client.handler.num_down(), 0u);
}

TEST(ControlPlane, AHostThatDoesNotAnswerHoldsUpNobodyForLong) {
  // A listener whose queue is full: the kernel drops what else comes.
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 0), 0);
  getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    // In progress, or done: either fills the queue.
    static_cast<void>(
        connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  }
  Node server(ControlOptions{});
  const auto port = server.plane->Listen("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  {
    Node client(ClientOf({Local(ntohs(address.sin_port)), Local(*port)}));
    client.Ping(0, "", "");
    client.Ping(1, "", "");
    EXPECT_TRUE(server.handler.AwaitMessages(1));
    client.Ping(0, "", "");
    const auto before = std::chrono::steady_clock::now();
    client.plane->Stop();
    EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(2));
  }
  for (int fd : fillers) close(fd);
  close(silent);
}

TEST(ControlPlane, WhoServesElsewhereIsNotTheTask) {
  ControlOptions options;
  options.tasks = {"/job:a/replica:0/task:0", "/job:b/replica:0/task:0"};
  options.task = options.tasks[1];
  options.addresses = {"127.0.0.1:1", "127.0.0.1:2"};
  Node server(options);
  const auto port = server.plane->Listen("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  Node real(ClientOf({Local(*port)})), other(ClientOf({Local(*port)}));
  other.Ping(0, "/job:a/replica:0/task:0", "127.0.0.1:3");
  ASSERT_TRUE(server.handler.AwaitMessages(1));
  EXPECT_EQ(server.handler.heard().count(0), 0u);
  real.Ping(0, "/job:a/replica:0/task:0", "localhost:1");
  EXPECT_TRUE(server.handler.AwaitHeard(0));
}

TEST(ControlPlane, APortInUse) {
  Node one(ControlOptions{}), other(ControlOptions{});
  const auto port = one.plane->Listen("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  const auto again = other.plane->Listen("127.0.0.1", *port);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace troupe
