// The control plane between actor systems in this process, on loopback.
#include "api/program/child_process.h"
#include "net/control_plane.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
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

/// Options with certificates, made once; none if openssl is missing.
ControlOptions UnderTls() {
  static const std::string folder = [] {
    const std::string to = testing::TempDir();
    const std::string make =
        "cd " + to +
        " && (openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=authority -keyout cp_ca.key -out cp_ca.pem"
        " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=task -keyout "
        "cp.key -out cp.csr"
        " && openssl x509 -req -in cp.csr -CA cp_ca.pem -CAkey cp_ca.key -CAcreateserial -days 2 "
        "-out cp.pem) >/dev/null 2>&1";
    const auto made = RunProgram({.arguments = {"/bin/sh", "-c", make}});
    return made.ok() && made->status.ok() ? to : "";
  }();
  ControlOptions options;
  EXPECT_NE(folder, "") << "openssl made no certificates";
  options.tls_certificate = folder + "/cp.pem";
  options.tls_key = folder + "/cp.key";
  options.tls_authority = folder + "/cp_ca.pem";
  options.threads = 2;
  return options;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

/// Listens at a free port of this host.
int ListenAnywhere(int backlog, int* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd, backlog), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  return fd;
}

/// Accepts connections, as the kernel does, and says nothing; with `deaf`, its queue is full: the
/// kernel drops what else comes.
class Silent {
 public:
  explicit Silent(bool deaf) : socket_(ListenAnywhere(deaf ? 0 : 8, &port_)) {
    sockaddr_in address = Loopback(port_);
    for (int i = 0; deaf && i < 4; ++i) {
      fillers_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      // In progress, or done: either fills the queue.
      static_cast<void>(
          connect(fillers_.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
    }
  }
  ~Silent() {
    for (int fd : fillers_) close(fd);
    close(socket_);
  }
  int port() const { return port_; }
  /// True if somebody has connected.
  bool AwaitConnection() {
    pollfd ready{socket_, POLLIN, 0};
    return poll(&ready, 1, 10000) == 1;
  }

 private:
  int port_ = 0;  // Before the socket, whose making sets it.
  const int socket_;
  std::vector<int> fillers_;
};

/// Connected to a port of this host.
int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(port);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

/// Brings bytes to and fro between whoever connects and a port, until it pauses for good.
class Relay {
 public:
  explicit Relay(int to) : listener_(ListenAnywhere(1, &port_)) {
    thread_ = std::thread([this, to] {
      const int ends[2] = {accept(listener_, nullptr, nullptr), ConnectTo(to)};
      while (!paused_) {
        pollfd ready[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
        poll(ready, 2, 10);
        for (int i = 0; i < 2; ++i) {
          char bytes[4096];
          if (ready[i].revents == 0) continue;
          const ssize_t n = recv(ends[i], bytes, sizeof(bytes), 0);
          if (n > 0)
            static_cast<void>(send(ends[1 - i], bytes, static_cast<size_t>(n), MSG_NOSIGNAL));
        }
      }
      over_.wait(false);
      for (int end : ends) close(end);
    });
  }
  ~Relay() {
    paused_ = over_ = true;
    over_.notify_all();
    thread_.join();
    close(listener_);
  }
  int port() const { return port_; }
  void Pause() { paused_ = true; }

 private:
  int port_ = 0;  // Before the socket, as above.
  const int listener_;
  std::atomic<bool> paused_{false}, over_{false};
  std::thread thread_;
};

double SecondsToStop(Node* node) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(node->plane->Stop());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Takes some ms; the rest is for a machine that has other things to do.
constexpr double kAtOnce = 0.5;

TEST(ControlPlane, AConnectionThatEndsHarmsNoOtherUnderTls) {
  ControlOptions options = UnderTls();
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
  Silent deaf(true);
  Node server(ControlOptions{});
  const auto port = server.plane->Listen("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  Node client(ClientOf({Local(deaf.port()), Local(*port)}));
  client.Ping(0, "", "");
  client.Ping(1, "", "");
  EXPECT_TRUE(server.handler.AwaitMessages(1));
  client.Ping(0, "", "");
  // Nothing tells from outside that it has begun to connect.
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LT(SecondsToStop(&client), kAtOnce);
  EXPECT_LT(SecondsToStop(&server), kAtOnce);
}

TEST(ControlPlane, StopsAtOnceWhenAPeerAcceptsAndSaysNothing) {
  for (const bool tls : {false, true}) {
    Silent silent(false);
    ControlOptions options = tls ? UnderTls() : ControlOptions{};
    options.addresses = {Local(silent.port())};
    Node client(options);
    client.Ping(0, "", "");
    ASSERT_TRUE(silent.AwaitConnection());
    client.Ping(0, "", "");
    // For it to send its half of the handshake, and to wait for the other.
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_LT(SecondsToStop(&client), kAtOnce) << (tls ? "with TLS" : "plain");
  }
}

TEST(ControlPlane, StopsAtOnceWhileANameIsLookedUp) {
  Node client(ClientOf({"name.invalid:1"}));
  client.Ping(0, "", "");
  // For the resolver to be asked; it may take its time.
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_LT(SecondsToStop(&client), kAtOnce);
}

TEST(ControlPlane, AThreadOfOneThatSpeaksToAnotherDoesNotKeepIt) {
  Node one(ControlOptions{}), other(ControlOptions{});
  auto done = std::make_shared<std::atomic<bool>>(false);
  one.plane->Post([plane = other.plane.get(), done] {
    plane->Post([done] {
      *done = true;
      done->notify_all();
    });
  });
  done->wait(false);
  EXPECT_LT(SecondsToStop(&other), kAtOnce);
}

TEST(ControlPlane, SaysThatAJobGoesOn) {
  static Node* const node = new Node(ControlOptions{});  // Kept, as it must be.
  auto go_on = std::make_shared<std::atomic<bool>>(true);
  auto begun = std::make_shared<std::atomic<bool>>(false);
  node->plane->Post([go_on, begun] {
    *begun = true;
    begun->notify_all();
    go_on->wait(true);
  });
  begun->wait(false);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(node->plane->Stop());
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(1500));
  *go_on = false;
  go_on->notify_all();
}

TEST(ControlPlane, StopsAtOnceWithMoreToWriteThanAPeerTakes) {
  for (const bool tls : {false, true}) {
    ControlOptions options = tls ? UnderTls() : ControlOptions{};
    Node server(options);
    const auto port = server.plane->Listen("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.status();
    Relay relay(*port);
    options.addresses = {Local(relay.port())};
    Node client(options);
    client.Ping(0, "", "");
    ASSERT_TRUE(server.handler.AwaitMessages(1));
    relay.Pause();
    cluster::Message large;
    large.set_kind(cluster::PING);
    large.set_incarnation(1);
    large.set_error(std::string(16 << 20, 'x'));
    client.plane->Send(0, large);
    // For it to be in the midst of writing.
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_LT(SecondsToStop(&client), kAtOnce) << (tls ? "with TLS" : "plain");
    EXPECT_LT(SecondsToStop(&server), kAtOnce) << (tls ? "with TLS" : "plain");
  }
}

TEST(ControlPlane, AStrangerWhoSaysNothingHoldsUpNobody) {
  for (const bool tls : {false, true}) {
    ControlOptions options = tls ? UnderTls() : ControlOptions{};
    Node server(options);
    const auto port = server.plane->Listen("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.status();
    const int stranger = ConnectTo(*port);
    // A processor that waits for the stranger would be seen to be busy after some time only.
    const double before = ProcessorSeconds();
    // Time in which a processor could be kept busy.
    std::this_thread::sleep_for(milliseconds(500));
    EXPECT_LT(ProcessorSeconds() - before, 0.25) << (tls ? "with TLS" : "plain");
    options.addresses = {Local(*port)};
    Node client(options);
    client.Ping(0, "", "");
    EXPECT_TRUE(server.handler.AwaitMessages(1)) << (tls ? "with TLS" : "plain");
    // It is not kept for ever either. (Before, it is told who serves there, unless under TLS.)
    char bytes[4096];
    timeval patience{10, 0};
    setsockopt(stranger, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t size = 1;
    while (size > 0) size = recv(stranger, bytes, sizeof(bytes), 0);
    EXPECT_EQ(size, 0);
    // Who has spoken is.
    EXPECT_EQ(client.handler.num_down(), 0u);
    client.Ping(0, "", "");
    EXPECT_TRUE(server.handler.AwaitMessages(2));
    close(stranger);
    EXPECT_LT(SecondsToStop(&server), kAtOnce);
  }
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
