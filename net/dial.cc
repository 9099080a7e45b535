#include "net/dial.h"

#include <boost/asio/connect.hpp>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using boost::asio::ip::tcp;

}  // namespace

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
  // Numbers come at once, names on another thread.
  Resolve(address_.host, [self = shared_from_this()](const Hosts& hosts) {
    self->loop_->Post([self, hosts] { self->ConnectAll(hosts); });
  });
}

void Dial::ConnectAll(const Hosts& hosts) {
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
                                                 streams_.share, std::move(streams_.roles[index]));
  openings_[index] = opening;
  // Our own deadline comes first, with a better message.
  opening->Start(
      deadline_ + std::chrono::seconds(1),
      [self = shared_from_this()](const std::shared_ptr<Opening>& o, Opening::Event event) {
        if (event == Opening::Event::kFailed) return self->Finish(o->failure());
        if (event != Opening::Event::kOpen) return;
        if (++self->open_ == self->openings_.size()) self->Finish(absl::OkStatus());
      });
}

void Dial::Finish(const absl::Status& status) {
  const auto done = std::exchange(done_, nullptr);
  if (!done) return;
  absl::Status result = status;
  timer_.cancel();
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
    const std::string& task = options_.expected_task;
    result =
        WithContext(StrCat("cannot connect to ", task.empty() ? "" : StrCat("task ", task, " at "),
                           address_.ToString(), ": "),
                    result);
  }
  done(result);
}

}  // namespace troupe
