#include "net/opening.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "net/address.h"

namespace troupe {
namespace {

using boost::asio::ip::tcp;
// For the peer to read why it was refused, before a reset would take that away from it.
constexpr std::chrono::seconds kLinger(1);

}  // namespace

std::string RemoteAddress(const tcp::socket& socket) {
  boost::system::error_code error;
  const tcp::endpoint end = socket.remote_endpoint(error);
  if (error) return "an unknown address";
  return HostPort{end.address().to_string(), end.port()}.ToString();
}

Opening::Opening(IoLoop* loop, tcp::socket connected, const TlsContext* tls, bool share,
                 Handshake role)
    : socket(std::move(connected)),
      loop_(loop),
      role_(std::move(role)),
      address_(RemoteAddress(socket)),
      timer_(loop->context()) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const int fd = socket.native_handle();
  stream = tls != nullptr ? tls->MakeStream(fd, role_.connecting()) : MakePlainStream(fd);
  role_.set_may_be([this](const std::string& task) { return stream->CheckPeer(task); });
  if (share && tls == nullptr) OfferMemory();
}

void Opening::OfferMemory() {
  boost::system::error_code error;
  const auto here = socket.local_endpoint(error).address();
  if (error || here != socket.remote_endpoint(error).address() || error) return;
  const auto wanted = [this] { return role_.peer_terms().lane == kBulkLane; };
  role_.set_offer([this, wanted] {
    if (wanted()) memory_ = SharedMemory::Create();
    return memory_ == nullptr ? "" : memory_->Offer();
  });
  role_.set_take([this, wanted](const std::string& offer) {
    if (wanted()) memory_ = SharedMemory::Open(offer);
    return memory_ != nullptr;
  });
}

void Opening::Start(std::chrono::steady_clock::time_point deadline, Report report) {
  report_ = std::move(report);
  timer_.expires_at(deadline);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Fail(absl::DeadlineExceededError("the peer did not answer in time"));
  });
  Step();
}

void Opening::Welcome() {
  role_.Welcome();
  Step();
}

void Opening::Refuse(const absl::Status& why) {
  role_.Refuse(why);
  Step();
}

void Opening::Abandon() {
  report_ = nullptr;
  timer_.cancel();
  boost::system::error_code ignored;
  socket.close(ignored);
}

bool Opening::Stuck(const IoResult& result) {
  switch (result.state) {
    case IoResult::State::kDone:
      return false;
    case IoResult::State::kWantRead:
    case IoResult::State::kWantWrite:
      WaitFor(&socket, result, [self = shared_from_this()](bool ok) {
        if (ok) self->Step();
      });
      return true;
    case IoResult::State::kEnd:
      Fail(absl::UnavailableError("the peer closed the connection during the handshake"));
      return true;
    case IoResult::State::kFailed:
      Fail(result.status);
      return true;
  }
  return true;
}

void Opening::Abandon(const absl::Status& why) {
  if (secured_) {
    role_.Refuse(why);
    output_ += role_.TakeOutput();
    const iovec piece = {output_.data(), output_.size()};
    (void)stream->Write(&piece, 1);
  }
  Abandon();
}

void Opening::Step() {
  if (lingering_) return Linger();
  if (!report_) return;
  if (!secured_) {
    if (Stuck(stream->Handshake())) return;
    secured_ = true;
  }
  while (report_) {
    output_ += role_.TakeOutput();
    if (!output_.empty()) {
      const iovec piece = {output_.data(), output_.size()};
      const IoResult result = stream->Write(&piece, 1);
      if (Stuck(result)) return;
      output_.erase(0, result.bytes);
      continue;
    }
    if (!role_.status().ok()) return Fail(role_.status());
    if (role_.open()) {
      timer_.cancel();
      if (role_.shared()) {
        stream = MakeSharedStream(std::move(stream), std::move(memory_), role_.connecting());
      }
      return std::exchange(report_, nullptr)(shared_from_this(), Event::kOpen);
    }
    if (role_.verified()) {
      if (std::exchange(told_verified_, true)) return;
      const Report report = report_;  // `Welcome`, called from within, may be the end of it.
      return report(shared_from_this(), Event::kVerified);
    }
    char bytes[1024];
    const iovec piece = {bytes, std::min(sizeof(bytes), role_.wanted())};
    const IoResult result = stream->Read(&piece, 1);
    if (Stuck(result)) return;
    role_.Consume({bytes, result.bytes});
  }
}

void Opening::Fail(const absl::Status& why) {
  if (lingering_ || !report_) return Close();
  failure_ = why;
  if (!secured_ && absl::IsFailedPrecondition(why)) {
    // The peer speaks no TLS: tell it in plain words.
    role_.TakeOutput();
    role_.Refuse(absl::FailedPreconditionError(
        "this task speaks TLS; start all tasks with certificates or none"));
    const std::string words = role_.TakeOutput();
    const iovec piece = {const_cast<char*>(words.data()), words.size()};
    (void)MakePlainStream(socket.native_handle())->Write(&piece, 1);
  }
  // Reading on until the peer closes, for a moment, lets it read what it was told.
  if (secured_) {
    stream->CloseWrite();
  } else {
    boost::system::error_code ignored;
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }
  lingering_ = true;
  timer_.expires_after(kLinger);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Close();
  });
  const Report report = report_;
  report(shared_from_this(), Event::kFailed);
  if (report_) Linger();  // It has not been abandoned from within.
}

void Opening::Close() {
  timer_.cancel();
  boost::system::error_code ignored;
  socket.close(ignored);
  if (const Report report = std::exchange(report_, nullptr)) {
    report(shared_from_this(), Event::kClosed);
  }
}

void Opening::Linger() {
  // Below TLS: what comes is not looked at.
  char bytes[4096];
  for (int i = 0; i < 64 && socket.is_open(); ++i) {
    const iovec piece = {bytes, sizeof(bytes)};
    const IoResult result = MakePlainStream(socket.native_handle())->Read(&piece, 1);
    if (result.state == IoResult::State::kDone) continue;
    if (result.state == IoResult::State::kWantRead) {
      WaitFor(&socket, result, [self = shared_from_this()](bool ok) {
        if (ok) self->Linger();
      });
      return;
    }
    break;
  }
  Close();
}

}  // namespace troupe
