#include "net/lane.h"

#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "devices/exceptions.h"
#include "net/transport.h"

namespace troupe {
namespace {

// What the I/O thread writes before others get their turn: while it copies, it cannot answer.
constexpr uint64_t kTurnBytes = 256 << 10;
// What another thread writes before it leaves the rest to the I/O thread.
constexpr uint64_t kCallerBytes = 1 << 20;

/// What a thread has queued and not had written.
struct Together {
  int depth = 0;
  std::vector<std::shared_ptr<Lane>> lanes;
};
thread_local Together together;

}  // namespace

SendTogether::SendTogether() { ++together.depth; }

SendTogether::~SendTogether() {
  if (--together.depth > 0) return;
  for (const auto& lane : std::exchange(together.lanes, {})) lane->KickNow();
}

void Lane::Attach(boost::asio::ip::tcp::socket socket, std::unique_ptr<ByteStream> stream,
                  Failed failed) {
  socket_ = std::move(socket);
  stream_ = std::move(stream);
  failed_ = std::move(failed);
}

void Lane::Kick() {
  if (together.depth == 0) return KickNow();
  for (const auto& lane : together.lanes) {
    if (lane.get() == this) return;
  }
  together.lanes.push_back(shared_from_this());
}

void Lane::KickNow() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::kIdle) return;
    state_ = State::kWriting;
  }
  Write();
}

bool Lane::AddCredits(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return queue_.AddCredits(bytes);
}

uint64_t Lane::queued_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return queue_.queued_bytes();
}

void Lane::Write() noexcept {
  try {
    WriteAll();
  } catch (...) {
    const absl::Status why = StatusOfException();
    KeepGoing([&] { Fail(why); });
    KeepGoing([&] { LetGo(); });
  }
}

void Lane::WriteAll() {
  uint64_t budget = loop_->OnThread() ? kTurnBytes : kCallerBytes;
  while (true) {
    if (batch_.done()) {
      batch_.Clear();  // Outside of the lock: it may free tensors.
      std::unique_lock<std::mutex> lock(mutex_);
      if (state_ == State::kCutOff) break;
      if (!queue_.NextBatch(&batch_)) {
        state_ = State::kIdle;
        const bool finished = queue_.finished();
        lock.unlock();
        if (!finished) return;
        // Nobody writes any more. The peer, when it has read the last frames of both lanes, closes.
        loop_->Post([self = shared_from_this()] {
          if (!self->over_) self->stream_->CloseWrite();
        });
        return;
      }
    }
    if (budget == 0) {
      if (loop_->Post([self = shared_from_this()] { self->Write(); })) return;
      break;
    }
    const absl::Span<const iovec> rest = batch_.rest();
    const IoResult result = stream_->Write(rest.data(), static_cast<int>(rest.size()));
    if (result.state == IoResult::State::kDone) {
      batch_.Advance(result.bytes);
      bytes_sent_.fetch_add(result.bytes, std::memory_order_relaxed);
      budget -= std::min<uint64_t>(budget, result.bytes);
      continue;
    }
    if (result.state != IoResult::State::kFailed && result.state != IoResult::State::kEnd) {
      return WriteLater(result);
    }
    Fail(result.status.ok() ? absl::UnavailableError("the peer is gone") : result.status);
    break;
  }
  LetGo();
}

void Lane::WriteLater(const IoResult& result) {
  if (!loop_->OnThread()) {
    // Only there nothing is read between the attempt and the wait.
    if (!loop_->Post([self = shared_from_this()] { self->Write(); })) LetGo();
    return;
  }
  // A socket says so by itself, memory does not.
  if (over_) return LetGo();
  blocked_.store(true, std::memory_order_relaxed);
  WaitFor(&socket_, result, [self = shared_from_this()](bool) {
    self->blocked_.store(false, std::memory_order_relaxed);
    self->Write();  // If the wait was cancelled: the lane has been cut off, or may go on.
  });
}

void Lane::LetGo() {
  batch_.Clear();
  std::vector<Outgoing> dropped;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state_ = State::kSilent;
    dropped = queue_.Clear();
  }
  // Only now may the socket's number be used again.
  loop_->Post([self = shared_from_this()] {
    boost::system::error_code ignored;
    if (self->over_) self->socket_.close(ignored);
  });
}

void Lane::Fail(const absl::Status& why) {
  loop_->Post([self = shared_from_this(), why] { self->failed_(why); });
}

void Lane::End() {
  over_ = true;
  std::vector<Outgoing> dropped;
  bool writing = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    writing = state_ == State::kWriting || state_ == State::kCutOff;
    state_ = writing ? State::kCutOff : State::kSilent;
    dropped = queue_.Clear();
  }
  boost::system::error_code ignored;
  // A thread may be writing: its socket stays a socket, of no use, until it is done.
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.cancel(ignored);
  if (!writing) socket_.close(ignored);
}

void Lane::ShutDown() { ::shutdown(socket_.native_handle(), SHUT_RDWR); }

}  // namespace troupe
