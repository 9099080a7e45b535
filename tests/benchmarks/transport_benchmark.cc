// The link against a raw TCP stream, in one run: two processes on loopback.
//
//   transport_benchmark [--seconds S] [--json FILE]
//
// Prints, for tensors of 1 KiB to 64 MiB, the throughput of the transport with a few tensors under
// way, that of a raw TCP stream (one thread writes, one reads, into a reused buffer), both as the
// best of alternating rounds, and their ratio; then the round trip of a small message at rest and
// while tensors of 64 MiB are under way, and of a raw TCP socket.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "net/transport.h"
#include "tests/net/connect_now.h"

namespace {

using namespace troupe;  // NOLINT: a short program
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Types of messages.
constexpr uint64_t kPing = 1, kReceived = 2;

/// Answers pings, and every tensor of step 1 with a message.
class Echo : public TensorSink {
 public:
  void OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) override {
    (void)peer->SendMessage(kReceived, received.key, "");
  }
  void OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                 std::string body) override {
    (void)peer->SendMessage(type, id, std::move(body));
  }
  void OnPeerLost(const std::shared_ptr<Peer>&, const absl::Status&) override { lost = true; }

  std::atomic<bool> lost{false};
};

class Client : public TensorSink {
 public:
  void OnTensor(const std::shared_ptr<Peer>&, ReceivedTensor) override {}
  void OnMessage(const std::shared_ptr<Peer>&, uint64_t type, uint64_t, std::string) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_[type];
    changed_.notify_all();
  }
  void OnPeerLost(const std::shared_ptr<Peer>&, const absl::Status&) override {}

  void Await(uint64_t type, uint64_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return count_[type] >= count; });
  }
  uint64_t count(uint64_t type) {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_[type];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, uint64_t> count_;
};

TransportOptions Options(const char* task) {
  TransportOptions options;
  options.task = task;
  return options;
}

// ---- Raw TCP ----

int RawListen(int* port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 1) != 0) {
    std::exit(1);
  }
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  return fd;
}

void NoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool ReadAll(int fd, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = ::recv(fd, to, size, 0);
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, const char* from, size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, from, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    from += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

/// Reads blocks, each after its size, and answers each with a byte.
void RawEcho(int listener) {
  const int fd = ::accept(listener, nullptr, nullptr);
  NoDelay(fd);
  std::vector<char> buffer;
  uint64_t size = 0;
  while (ReadAll(fd, reinterpret_cast<char*>(&size), sizeof(size))) {
    if (buffer.size() < size) buffer.resize(size);
    if (!ReadAll(fd, buffer.data(), size) || !WriteAll(fd, "x", 1)) return;
  }
}

/// Bytes a second, with `depth` blocks under way.
double RawThroughput(int fd, const char* data, uint64_t size, int depth, double seconds) {
  const Clock::time_point start = Clock::now();
  uint64_t sent = 0, answered = 0;
  char byte;
  while (SecondsSince(start) < seconds || answered < sent) {
    while (sent < answered + static_cast<uint64_t>(depth) && SecondsSince(start) < seconds) {
      if (!WriteAll(fd, reinterpret_cast<const char*>(&size), sizeof(size)) ||
          !WriteAll(fd, data, size)) {
        std::exit(1);
      }
      ++sent;
    }
    if (answered < sent && ReadAll(fd, &byte, 1)) ++answered;
  }
  return static_cast<double>(answered * size) / SecondsSince(start);
}

double Throughput(Peer* peer, Client* client, const Tensor& tensor, int depth, double seconds) {
  const Clock::time_point start = Clock::now();
  const uint64_t before = client->count(kReceived);
  uint64_t sent = 0;
  while (SecondsSince(start) < seconds) {
    if (!peer->Send({1, sent, 0, false, tensor}).ok()) std::exit(1);
    ++sent;
    if (sent >= static_cast<uint64_t>(depth)) {
      client->Await(kReceived, before + sent - static_cast<uint64_t>(depth) + 1);
    }
  }
  client->Await(kReceived, before + sent);
  return static_cast<double>(sent * tensor.bytes()) / SecondsSince(start);
}

struct Latency {
  double best, median, p99;
};

Latency Summary(std::vector<double> micros) {
  std::sort(micros.begin(), micros.end());
  const size_t n = micros.size();
  return {micros[0], micros[n / 2], micros[std::min(n - 1, n * 99 / 100)]};
}

Latency Pings(Peer* peer, Client* client, double seconds) {
  std::vector<double> micros;
  const Clock::time_point start = Clock::now();
  uint64_t count = client->count(kPing);
  while (SecondsSince(start) < seconds) {
    const Clock::time_point before = Clock::now();
    (void)peer->SendMessage(kPing, ++count, "");
    client->Await(kPing, count);
    micros.push_back(SecondsSince(before) * 1e6);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return Summary(std::move(micros));
}

Latency RawPings(int fd, double seconds) {
  std::vector<double> micros;
  const Clock::time_point start = Clock::now();
  const uint64_t size = 0;
  char byte;
  while (SecondsSince(start) < seconds) {
    const Clock::time_point before = Clock::now();
    WriteAll(fd, reinterpret_cast<const char*>(&size), sizeof(size));
    ReadAll(fd, &byte, 1);
    micros.push_back(SecondsSince(before) * 1e6);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return Summary(std::move(micros));
}

/// Writes its ports to standard output.
int Serve() {
  Echo echo;
  auto transport = Transport::Create(Options("/job:ps/replica:0/task:0"), &echo);
  if (!transport.ok()) return 1;
  int ports[2] = {(*transport)->Listen("127.0.0.1", 0).value_or(0), 0};
  const int listener = RawListen(&ports[1]);
  std::printf("%d %d\n", ports[0], ports[1]);
  std::fflush(stdout);
  RawEcho(listener);
  while (!echo.lost) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0.5;
  std::string json;
  CommandLine line("transport_benchmark", "The link against a raw TCP stream.");
  AddValue(&line, "--seconds S", &seconds, "Time of a row")->check(Number(0, 1e6));
  AddValue(&line, "--json FILE", &json, "Writes the rows, too");
  if (const auto status = line.Read(argc, argv)) return *status;
  auto child = ChildProcess::Fork(Serve, {.output = true});
  int ports[2];
  if (!child.ok() ||
      std::sscanf(child->Line().value_or("").c_str(), "%d %d", &ports[0], &ports[1]) != 2) {
    std::fprintf(stderr, "the other process does not start\n");
    return 1;
  }

  Client client;
  auto transport = Transport::Create(Options("/job:worker/replica:0/task:0"), &client);
  if (!transport.ok()) return 1;
  auto peer = ConnectNow(**transport, "127.0.0.1:" + std::to_string(ports[0]));
  if (!peer.ok()) {
    std::fprintf(stderr, "%s\n", peer.status().ToString().c_str());
    return 1;
  }
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(ports[1]));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return 1;
  NoDelay(raw);

  std::string rows;
  const auto row = [&](const std::string& name, double ours, double theirs) {
    char text[200];
    std::snprintf(text, sizeof(text),
                  "%s{\"row\": \"%s\", \"troupe\": %.4g, \"raw_tcp\": %.4g, \"ratio\": %.3f}",
                  rows.empty() ? "" : ",\n ", name.c_str(), ours, theirs, ours / theirs);
    rows += text;
  };
  std::printf("%-34s %10s %10s %8s\n", "throughput, GB/s", "troupe", "raw TCP", "ratio");
  for (const uint64_t size : {uint64_t{1} << 10, uint64_t{64} << 10, uint64_t{1} << 20,
                              uint64_t{16} << 20, uint64_t{64} << 20}) {
    for (const int depth : {1, 2}) {
      Tensor tensor =
          Tensor::Uninitialized(ElementType::kUint8, Shape({static_cast<int64_t>(size)}));
      std::memset(tensor.mutable_raw_data(), 1, size);
      double ours = 0, theirs = 0;
      for (int round = 0; round < 4; ++round) {
        ours = std::max(ours, Throughput(peer->get(), &client, tensor, depth, seconds / 4));
        theirs = std::max(theirs, RawThroughput(raw, static_cast<const char*>(tensor.raw_data()),
                                                size, depth, seconds / 4));
      }
      const std::string name =
          std::to_string(size >> 10) + " KiB, " + std::to_string(depth) + " under way";
      std::printf("%-34s %10.3f %10.3f %8.2f\n", name.c_str(), ours / 1e9, theirs / 1e9,
                  ours / theirs);
      row("bytes a second, " + name, ours, theirs);
    }
  }
  std::printf("%-34s %10s %10s %8s\n", "round trip, us", "best", "median", "p99");
  const auto print = [&](const char* name, const Latency& l) {
    std::printf("%-34s %10.1f %10.1f %8.1f\n", name, l.best, l.median, l.p99);
  };
  const Latency rest = Pings(peer->get(), &client, seconds), raw_rest = RawPings(raw, seconds);
  print("message", rest);
  print("raw TCP, 8 bytes", raw_rest);
  row("round trip at rest, us", rest.median, raw_rest.median);
  Tensor large = Tensor::Uninitialized(ElementType::kUint8, Shape({64 << 20}));
  std::memset(large.mutable_raw_data(), 1, 64 << 20);
  std::atomic<bool> over{false};
  double loaded_rate = 0;
  std::thread load([&] {
    while (!over) loaded_rate = Throughput(peer->get(), &client, large, 2, 0.2);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Latency loaded = Pings(peer->get(), &client, 4 * seconds);
  over = true;
  load.join();
  print("message, 64 MiB under way", loaded);
  std::printf("%-34s %10.3f GB/s\n", "  meanwhile", loaded_rate / 1e9);
  row("round trip with 64 MiB under way, us", loaded.median, raw_rest.median);
  if (!json.empty()) {
    if (std::FILE* out = std::fopen(json.c_str(), "w")) {
      std::fprintf(out, "[%s]\n", rows.c_str());
      std::fclose(out);
    }
  }
  ::close(raw);
  (void)(*transport)->Stop();
  child->Wait();
  return 0;
}
