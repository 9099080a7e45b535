#include "net/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// So many names that do not answer do not hold up the others.
constexpr int kMaxThreads = 8;

Hosts Ask(const std::string& host, int flags) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  const int rc = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (rc != 0) {
    return absl::UnavailableError(
        StrCat("host \"", host, "\" cannot be resolved: ", gai_strerror(rc)));
  }
  std::vector<std::string> result;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      result.push_back(text);
    }
  }
  freeaddrinfo(found);
  if (result.empty()) return absl::UnavailableError(StrCat("host \"", host, "\" has no address"));
  return result;
}

using Done = std::function<void(const Hosts& hosts)>;

/// Names in line, and the threads that ask for them. Never destroyed.
class NameService {
 public:
  static NameService& Get() {
    static auto* service = new NameService;
    return *service;
  }
  /// A name that is being asked for is not asked for again.
  void Ask(const std::string& host, Done done) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (idle_ <= line_.size() && threads_.size() < kMaxThreads) {
      try {
        const ScopedBlockSignals blocked;
        threads_.emplace_back([this] { Run(); });
      } catch (...) {  // Those that are there have more to do.
        if (threads_.empty()) throw;
      }
    }
    std::vector<Done>& waiting = waiting_[host];
    waiting.reserve(waiting.size() + 1);
    if (waiting.empty()) line_.push_back(host);
    waiting.push_back(std::move(done));
    changed_.notify_one();
  }

 private:
  [[noreturn]] void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [this] { return !line_.empty(); });
      --idle_;
      const std::string host = std::move(line_.front());
      line_.pop_front();
      lock.unlock();
      const Hosts hosts = CatchExceptions([&] { return troupe::Ask(host, 0); });
      lock.lock();
      const std::vector<Done> waiting = std::move(waiting_.extract(host).mapped());
      lock.unlock();
      for (const Done& done : waiting) KeepGoing([&] { done(hosts); });
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> line_;
  std::map<std::string, std::vector<Done>> waiting_;
  size_t idle_ = 0;
  std::vector<std::thread> threads_;
};

/// What needs no name service.
Hosts Numeric(const std::string& host) {
  return Ask(host == "localhost" ? "127.0.0.1" : host, AI_NUMERICHOST);
}

}  // namespace

Hosts ResolveNow(const std::string& host) {
  const Hosts numeric = Numeric(host);
  return numeric.ok() ? numeric : Ask(host, 0);
}

void Resolve(const std::string& host, std::function<void(const Hosts& hosts)> done) {
  const Hosts numeric = Numeric(host);
  if (numeric.ok()) return done(numeric);
  NameService::Get().Ask(host, std::move(done));
}

}  // namespace troupe
