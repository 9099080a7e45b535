#include "net/dial.h"

#include <netdb.h>

#include <boost/asio/connect.hpp>
#include <thread>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {
namespace {

using boost::asio::ip::tcp;

/// Addresses that need no name service.
std::string Numeric(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return error ? "" : host;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveNow(const std::string& host) {
  if (const std::string numeric = Numeric(host); !numeric.empty()) {
    return std::vector<std::string>{numeric};
  }
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
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

Dial::Dial(std::shared_ptr<IoLoop> loop, HostPort address, const ConnectOptions& options,
           Streams streams)
    : loop_(std::move(loop)),
      address_(std::move(address)),
      options_(options),
      streams_(std::move(streams)),
      timer_(loop_->context()) {}

void Dial::Start(std::function<void(const absl::Status&)> done) {
  done_ = std::move(done);
  deadline_ = std::chrono::steady_clock::now() + options_.timeout;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error) return;
    self->Finish(absl::DeadlineExceededError(
        StrCat("no answer within ", self->options_.timeout.count(), " ms")));
  });
  if (!Numeric(address_.host).empty()) return ConnectAll(ResolveNow(address_.host));
  // The name service may take its time, and cannot be interrupted: neither the I/O thread nor a
  // stop waits for it.
  std::thread([self = shared_from_this(), host = address_.host] {
    auto hosts = ResolveNow(host);
    IoLoop* loop = self->loop_.get();
    loop->Post([self, hosts = std::move(hosts)] { self->ConnectAll(hosts); });
  }).detach();
}

void Dial::ConnectAll(const absl::StatusOr<std::vector<std::string>>& hosts) {
  if (!done_) return;
  if (!hosts.ok()) return Finish(hosts.status());
  auto endpoints = std::make_shared<Endpoints>();
  for (const std::string& host : *hosts) {
    boost::system::error_code error;
    const auto ip = boost::asio::ip::make_address(host, error);
    if (!error) endpoints->emplace_back(ip, static_cast<uint16_t>(address_.port));
  }
  openings_.resize(streams_.roles.size());
  for (size_t i = 0; i < streams_.roles.size(); ++i) {
    auto socket = std::make_shared<tcp::socket>(loop_->context());
    sockets_.push_back(socket);
    boost::asio::async_connect(*socket, *endpoints,
                               [self = shared_from_this(), socket, endpoints, i](
                                   const boost::system::error_code& error, const tcp::endpoint&) {
                                 if (!self->done_) return;
                                 if (error)
                                   return self->Finish(absl::UnavailableError(error.message()));
                                 self->Open(i, std::move(*socket));
                               });
  }
}

void Dial::Open(size_t index, tcp::socket socket) {
  const auto opening = std::make_shared<Opening>(loop_.get(), std::move(socket), streams_.tls,
                                                 address_.host, std::move(streams_.roles[index]));
  openings_[index] = opening;
  // Our own deadline comes first, with a better message.
  opening->Start(
      deadline_ + std::chrono::seconds(1),
      [self = shared_from_this()](const std::shared_ptr<Opening>& o, Opening::Event event) {
        if (event == Opening::Event::kFailed) return self->Finish(o->failure());
        if (++self->open_ == self->openings_.size()) self->Finish(absl::OkStatus());
      });
}

void Dial::Finish(const absl::Status& status) {
  const auto done = std::exchange(done_, nullptr);
  if (!done) return;
  absl::Status result = status;
  timer_.cancel();
  const auto who = [this] {
    const std::string& task = options_.expected_task;
    return StrCat(task.empty() ? "" : StrCat("task ", task, " at "), address_.ToString());
  };
  if (result.ok()) {
    // A restart between two streams would join halves of different lives.
    for (const auto& opening : openings_) {
      if (opening->role().peer().incarnation != openings_[0]->role().peer().incarnation) {
        result = absl::AbortedError("the task was restarted meanwhile");
      }
    }
  }
  if (!result.ok()) {
    boost::system::error_code ignored;
    for (const auto& socket : sockets_) socket->close(ignored);
    for (const auto& opening : openings_) {
      if (opening != nullptr && opening->failure().ok()) opening->Abandon();
    }
    result = absl::Status(result.code(),
                          StrCat("cannot connect to ", who(), ": ", std::string(result.message())));
  }
  done(result);
}

}  // namespace troupe
