#include "net/connection.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

// What the I/O thread reads or writes before others get their turn: while it copies, it cannot
// answer.
constexpr uint64_t kTurnBytes = 256 << 10;
// What another thread writes before it leaves the rest to the I/O thread.
constexpr uint64_t kCallerBytes = 1 << 20;

/// What a thread has queued and not had written.
struct Together {
  int depth = 0;
  std::vector<std::pair<std::shared_ptr<Connection>, int>> lanes;
};
thread_local Together together;

}  // namespace

std::string PeerInfo::ToString() const { return StrCat("task ", task, " at ", address); }

/// One of the two streams.
class Connection::Lane final : public FrameReader::Handler {
 public:
  Lane(Connection* connection, int index)
      : connection_(connection),
        index(index),
        receive_credits(connection->options_.receive_windows[index]),
        reader(connection->options_.max_tensor_bytes, index == kBulkLane, &receive_credits, this,
               connection->options_.allocator),
        socket(connection->loop_->context()),
        queue(connection->options_.send_windows[index]) {}

  absl::Status Admit(const IncomingTensor& info) override {
    return connection_->sink_->Admit(connection_->shared_from_this(), info);
  }
  void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) override {
    const auto self = connection_->shared_from_this();
    connection_->sink_->OnTensor(self, {info.step, info.key, info.tag, info.dead, std::move(tensor),
                                        CreditLease(self, index, charge)});
  }
  void OnDropped(const IncomingTensor& info, uint64_t charge, const absl::Status& why) override {
    connection_->Release(index, charge);
    connection_->sink_->OnDropped(connection_->shared_from_this(), info);
    connection_->QueueUrgent({.kind = FrameKind::kReject,
                              .step = info.step,
                              .key = info.key,
                              .tag = info.tag,
                              .total = static_cast<uint64_t>(why.code())},
                             std::string(why.message()).substr(0, kMaxFrameText));
  }
  absl::Status OnCredit(int lane, uint64_t bytes) override {
    Lane* credited = connection_->lanes_[lane].get();
    {
      std::lock_guard<std::mutex> lock(credited->mutex);
      if (!credited->queue.AddCredits(bytes)) {
        return InvalidArgument("credits come back that were not taken");
      }
    }
    connection_->Kick(credited);
    return absl::OkStatus();
  }
  void OnReject(uint64_t step, uint64_t key, uint64_t tag, const absl::Status& why) override {
    connection_->sink_->OnRejected(connection_->shared_from_this(), step, key, tag, why);
  }
  void OnMessage(uint64_t type, uint64_t id, std::string body) override {
    connection_->sink_->OnMessage(connection_->shared_from_this(), type, id, std::move(body));
  }
  void OnGoodbye(const absl::Status& why) override { connection_->OnGoodbye(why); }

 private:
  Connection* const connection_;

 public:
  const int index;
  ReceiveCredits receive_credits;
  FrameReader reader;
  boost::asio::ip::tcp::socket socket;
  std::unique_ptr<ByteStream> stream;

  std::mutex mutex;
  // Guarded by the mutex.
  SendQueue queue;
  bool writing = false;  ///< Somebody holds the token.
  bool closed = false;   ///< Nothing more is sent.
  bool goodbye = false;  ///< The last frame has been queued.

  Batch batch;  ///< Of the token's holder.

  std::atomic<uint64_t> bytes_sent{0}, bytes_received{0};
  std::atomic<bool> blocked{false};  ///< The kernel takes no more.
  // Of `Tick`.
  uint64_t seen_sent = 0, seen_received = 0;
  int idle_sending = 0, idle_receiving = 0;
};

Connection::Connection(std::shared_ptr<IoLoop> loop, TensorSink* sink, PeerInfo info,
                       const Options& options,
                       std::function<void(const std::shared_ptr<Connection>&)> lost)
    : loop_(std::move(loop)),
      sink_(sink),
      info_(std::move(info)),
      options_(options),
      lost_callback_(std::move(lost)),
      close_timer_(loop_->context()) {
  for (int i = 0; i < kLanes; ++i) lanes_[i] = std::make_unique<Lane>(this, i);
}

Connection::~Connection() = default;

void Connection::Attach(int lane, const std::shared_ptr<Opening>& opening) {
  lanes_[lane]->socket = std::move(opening->socket);
  lanes_[lane]->stream = std::move(opening->stream);
}

void Connection::Start() {
  for (const auto& lane : lanes_) Read(lane.get());
}

// ---- Sending ----

absl::Status Connection::LossStatus() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return loss_.ok()
             ? absl::UnavailableError(StrCat("connection to ", info_.ToString(), " is closed"))
             : loss_;
}

absl::Status Connection::Send(absl::Span<SendItem> items) {
  std::vector<Outgoing> outgoing[kLanes];
  for (SendItem& item : items) {
    TROUPE_ASSIGN_OR_RETURN(
        Outgoing made, Outgoing::ForTensor(item.step, item.key, item.tag, item.dead, item.tensor,
                                           options_.peer_max_tensor_bytes));
    const int lane = made.header.total <= Transport::kSmallBytes ? kSmallLane : kBulkLane;
    outgoing[lane].push_back(std::move(made));
  }
  for (SendItem& item : items) item.tensor = Tensor();
  for (int i = 0; i < kLanes; ++i) {
    if (outgoing[i].empty()) continue;
    Lane* lane = lanes_[i].get();
    {
      std::lock_guard<std::mutex> lock(lane->mutex);
      if (!lane->closed && !lane->goodbye) {
        for (Outgoing& tensor : outgoing[i]) lane->queue.PushTensor(std::move(tensor));
        outgoing[i].clear();
      }
    }
    if (!outgoing[i].empty()) return LossStatus();
    Kick(lane);
  }
  return absl::OkStatus();
}

absl::Status Connection::SendMessage(uint64_t type, uint64_t id, std::string body) {
  if (body.size() > Transport::kMaxMessageBytes) {
    return InvalidArgument("a message of ", body.size(), " bytes; at most ",
                           Transport::kMaxMessageBytes, " can be sent");
  }
  const bool queued =
      QueueUrgent({.kind = FrameKind::kMessage, .key = type, .tag = id}, std::move(body));
  return queued ? absl::OkStatus() : LossStatus();
}

bool Connection::QueueUrgent(const FrameHeader& header, std::string body) {
  Lane* lane = lanes_[kSmallLane].get();
  {
    std::lock_guard<std::mutex> lock(lane->mutex);
    if (lane->closed || lane->goodbye) return false;
    lane->queue.PushUrgent(header, std::move(body));
  }
  Kick(lane);
  return true;
}

void Connection::Release(int lane, uint64_t charge) {
  const uint64_t told = lanes_[lane]->receive_credits.Release(charge);
  if (told == 0) return;
  QueueUrgent({.kind = FrameKind::kCredit, .key = static_cast<uint64_t>(lane), .total = told}, "");
}

void Connection::Kick(Lane* lane) {
  if (together.depth == 0) return KickNow(lane);
  for (const auto& [connection, index] : together.lanes) {
    if (connection.get() == this && index == lane->index) return;
  }
  together.lanes.emplace_back(shared_from_this(), lane->index);
}

SendTogether::SendTogether() { ++together.depth; }

SendTogether::~SendTogether() {
  if (--together.depth > 0) return;
  for (auto& [connection, index] : std::exchange(together.lanes, {})) {
    connection->KickNow(connection->lanes_[index].get());
  }
}

void Connection::KickNow(Lane* lane) {
  {
    std::lock_guard<std::mutex> lock(lane->mutex);
    if (lane->writing || lane->closed) return;
    lane->writing = true;
  }
  Write(lane);
}

void Connection::Write(Lane* lane) noexcept {
  try {
    WriteAll(lane);
  } catch (...) {
    const absl::Status why = StatusOfException();
    KeepGoing(
        [&] { loop_->Post([self = shared_from_this(), why] { self->Fail(self->Lost(why)); }); });
    KeepGoing([&] { EndWriting(lane); });
  }
}

void Connection::WriteAll(Lane* lane) {
  uint64_t budget = loop_->OnThread() ? kTurnBytes : kCallerBytes;
  while (true) {
    if (lane->batch.done()) {
      lane->batch.Clear();  // Outside of the lock: it may free tensors.
      std::unique_lock<std::mutex> lock(lane->mutex);
      if (lane->closed) {
        lock.unlock();
        return EndWriting(lane);
      }
      if (!lane->queue.NextBatch(&lane->batch)) {
        lane->writing = false;
        const bool finished = lane->queue.finished();
        lock.unlock();
        // Nobody writes to this lane any more. The peer, when it has read the last frames of both,
        // closes.
        if (finished) {
          loop_->Post([self = shared_from_this(), lane] {
            if (!self->failed_) lane->stream->CloseWrite();
          });
        }
        return;
      }
    }
    if (budget == 0) {
      if (!loop_->Post([self = shared_from_this(), lane] { self->Write(lane); })) EndWriting(lane);
      return;
    }
    const absl::Span<const iovec> rest = lane->batch.rest();
    const IoResult result = lane->stream->Write(rest.data(), static_cast<int>(rest.size()));
    if (result.state == IoResult::State::kDone) {
      lane->batch.Advance(result.bytes);
      lane->bytes_sent.fetch_add(result.bytes, std::memory_order_relaxed);
      budget -= std::min<uint64_t>(budget, result.bytes);
      continue;
    }
    if (result.state == IoResult::State::kFailed || result.state == IoResult::State::kEnd) {
      // Reading finds out as well, and may find what the peer had to say before.
      {
        std::lock_guard<std::mutex> lock(lane->mutex);
        lane->closed = true;
      }
      loop_->Post([self = shared_from_this(), why = result.status] {
        // After what there is to read.
        for (const auto& each : self->lanes_) self->Read(each.get());
        self->Fail(self->Lost(why.ok() ? absl::UnavailableError("the peer is gone") : why));
      });
      return EndWriting(lane);
    }
    lane->blocked.store(true, std::memory_order_relaxed);
    const auto wait = [self = shared_from_this(), lane, result] {
      WaitFor(&lane->socket, result, [self, lane](bool) {
        lane->blocked.store(false, std::memory_order_relaxed);
        self->Write(lane);  // If the wait was cancelled, the lane is closed.
      });
    };
    if (loop_->OnThread()) {
      wait();
    } else if (!loop_->Post(wait)) {
      EndWriting(lane);
    }
    return;
  }
}

void Connection::EndWriting(Lane* lane) {
  lane->batch.Clear();
  std::vector<Outgoing> dropped;
  {
    std::lock_guard<std::mutex> lock(lane->mutex);
    lane->closed = true;
    lane->writing = false;
    dropped = lane->queue.Clear();
  }
  // Only now may the socket's number be used again.
  loop_->Post([self = shared_from_this(), lane] {
    boost::system::error_code ignored;
    if (self->failed_) lane->socket.close(ignored);
  });
}

// ---- Receiving ----

void Connection::Read(Lane* lane) noexcept {
  try {
    ReadAll(lane);
  } catch (...) {
    const absl::Status why = StatusOfException();
    KeepGoing([&] { Fail(Lost(why)); });
  }
}

void Connection::ReadAll(Lane* lane) {
  uint64_t budget = kTurnBytes;
  while (!failed_) {
    iovec buffers[2];
    int count = lane->reader.NextBuffers(buffers);
    if (buffers[0].iov_len > kTurnBytes) {
      buffers[0].iov_len = kTurnBytes;
      count = 1;
    }
    const size_t wanted = buffers[0].iov_len + (count > 1 ? buffers[1].iov_len : 0);
    IoResult result = lane->stream->Read(buffers, count);
    if (result.state == IoResult::State::kDone) {
      lane->bytes_received.fetch_add(result.bytes, std::memory_order_relaxed);
      const absl::Status status = lane->reader.Consume(result.bytes);
      if (!status.ok()) {
        return Fail(
            WithContext(StrCat("connection to ", info_.ToString(), " is given up: "), status));
      }
      budget -= std::min<uint64_t>(budget, result.bytes);
      if (budget == 0) {
        loop_->Post([self = shared_from_this(), lane] { self->Read(lane); });
        return;
      }
      if (result.bytes == wanted || !lane->stream->short_read_is_last()) continue;
      result.state = IoResult::State::kWantRead;
    }
    if (result.state == IoResult::State::kEnd) {
      if (closing_ || (lanes_[0]->reader.ended() && lanes_[1]->reader.ended())) {
        return Fail(Lost(goodbye_));
      }
      if (lane->reader.ended()) return;  // The other lane is still to end.
      return Fail(Lost(absl::UnavailableError("the peer closed it without a word")));
    }
    if (result.state == IoResult::State::kFailed) return Fail(Lost(result.status));
    WaitFor(&lane->socket, result, [self = shared_from_this(), lane](bool ok) {
      if (ok) self->Read(lane);
    });
    return;
  }
}

// ---- Ending ----

absl::Status Connection::Lost(const absl::Status& why) const {
  if (closing_) return absl::CancelledError(close_reason_);
  return absl::UnavailableError(
      StrCat("connection to ", info_.ToString(), " is lost: ", std::string(why.message())));
}

void Connection::OnGoodbye(const absl::Status& why) {
  goodbye_ = absl::UnavailableError("the peer closed it: " + std::string(why.message()));
  if (!lanes_[0]->reader.ended() || !lanes_[1]->reader.ended()) return;
  // From within `Consume`, which must not find the world changed.
  loop_->Post([self = shared_from_this()] { self->Fail(self->Lost(self->goodbye_)); });
}

void Connection::Close(const std::string& reason, std::chrono::milliseconds drain) {
  loop_->Post([self = shared_from_this(), reason, drain] { self->StartClose(reason, drain); });
}

void Connection::StartClose(const std::string& reason, std::chrono::milliseconds drain) {
  if (failed_ || closing_) return;
  closing_ = true;
  close_reason_ = StrCat("connection to ", info_.ToString(), " was closed here: ", reason);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    loss_ = absl::CancelledError(close_reason_);
  }
  const FrameHeader header{.kind = FrameKind::kGoodbye,
                           .total = static_cast<uint64_t>(absl::StatusCode::kCancelled)};
  close_timer_.expires_after(drain);
  close_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Fail(absl::CancelledError(self->close_reason_));
  });
  for (const auto& lane : lanes_) {
    {
      std::lock_guard<std::mutex> lock(lane->mutex);
      lane->goodbye = true;
      lane->queue.PushLast(header, reason.substr(0, kMaxFrameText));
    }
    Kick(lane.get());
  }
}

void Connection::Fail(const absl::Status& why) {
  if (failed_) return;
  failed_ = true;
  lost_.store(true, std::memory_order_release);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    loss_ = why;
  }
  boost::system::error_code ignored;
  close_timer_.cancel();
  for (const auto& lane : lanes_) {
    std::vector<Outgoing> dropped;
    bool writing = false;
    {
      std::lock_guard<std::mutex> lock(lane->mutex);
      lane->closed = true;
      writing = lane->writing;
      dropped = lane->queue.Clear();
    }
    // A thread may be writing: its socket stays a socket, of no use, until it is done.
    lane->socket.shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
    lane->socket.cancel(ignored);
    if (!writing) lane->socket.close(ignored);
    // The user may keep the peer; its memory must not wait for that.
    lane->reader.Abandon();
  }
  const auto self = shared_from_this();
  sink_->OnPeerLost(self, why);
  if (auto callback = std::move(lost_callback_)) callback(self);
}

void Connection::Tick() {
  for (const auto& lane : lanes_) {
    const uint64_t sent = lane->bytes_sent.load(std::memory_order_relaxed);
    const uint64_t received = lane->bytes_received.load(std::memory_order_relaxed);
    const bool sending = lane->blocked.load(std::memory_order_relaxed);
    lane->idle_sending = sending && sent == lane->seen_sent ? lane->idle_sending + 1 : 0;
    lane->idle_receiving =
        lane->reader.midway() && received == lane->seen_received ? lane->idle_receiving + 1 : 0;
    lane->seen_sent = sent;
    lane->seen_received = received;
    if (lane->idle_sending >= kTicks || lane->idle_receiving >= kTicks) {
      return Fail(Lost(absl::DeadlineExceededError(
          lane->idle_sending >= kTicks ? "the peer has stopped reading"
                                       : "the peer has stopped in the middle of a tensor")));
    }
  }
}

PeerStats Connection::stats() const {
  PeerStats stats;
  for (const auto& lane : lanes_) {
    stats.bytes_sent += lane->bytes_sent.load(std::memory_order_relaxed);
    stats.bytes_received += lane->bytes_received.load(std::memory_order_relaxed);
    stats.unreturned_bytes += lane->receive_credits.taken();
    std::lock_guard<std::mutex> lock(lane->mutex);
    stats.queued_bytes += lane->queue.queued_bytes();
  }
  return stats;
}

}  // namespace troupe
