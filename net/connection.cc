#include "net/connection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "net/frame_reader.h"
#include "net/lane.h"
#include "net/stall_watch.h"

namespace troupe {
namespace {

// What is read before others get their turn: while the I/O thread copies, it cannot answer.
constexpr uint64_t kTurnBytes = 256 << 10;

}  // namespace

std::string PeerInfo::ToString() const { return StrCat("task ", task, " at ", address); }

/// One of the two streams, and what comes over it.
class Connection::Stream final : public FrameReader::Handler {
 public:
  Stream(Connection* connection, int index, const TransportOptions& options, uint64_t send_window)
      : lane(std::make_shared<Lane>(connection->loop_, send_window)),
        receive_credits(Window(options, index)),
        reader(options.max_tensor_bytes, index == kBulkLane, &receive_credits, this,
               options.allocator),
        sending(LeastBytes(options), kTicks),
        receiving(LeastBytes(options), kTicks),
        connection_(connection),
        index_(index) {}

  absl::Status Admit(const IncomingTensor& info) override {
    return connection_->sink_->Admit(connection_->shared_from_this(), info);
  }
  void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) override {
    const auto self = connection_->shared_from_this();
    connection_->sink_->OnTensor(self, {info.step, info.key, info.tag, info.dead, std::move(tensor),
                                        CreditLease(self, index_, charge)});
  }
  void OnDropped(const IncomingTensor& info, uint64_t charge, const absl::Status& why) override {
    connection_->Release(index_, charge);
    connection_->sink_->OnDropped(connection_->shared_from_this(), info);
    connection_->QueueUrgent({.kind = FrameKind::kReject,
                              .step = info.step,
                              .key = info.key,
                              .tag = info.tag,
                              .total = static_cast<uint64_t>(why.code())},
                             std::string(why.message()).substr(0, kMaxFrameText));
  }
  absl::Status OnCredit(int lane, uint64_t bytes) override {
    Lane* const credited = connection_->streams_[lane]->lane.get();
    if (!credited->AddCredits(bytes)) {
      return InvalidArgument("credits come back that were not taken");
    }
    credited->Kick();
    return absl::OkStatus();
  }
  void OnReject(uint64_t step, uint64_t key, uint64_t tag, const absl::Status& why) override {
    connection_->sink_->OnRejected(connection_->shared_from_this(), step, key, tag, why);
  }
  void OnMessage(uint64_t type, uint64_t id, std::string body) override {
    connection_->sink_->OnMessage(connection_->shared_from_this(), type, id, std::move(body));
  }
  void OnGoodbye(const absl::Status& why) override { connection_->OnGoodbye(why); }

  const std::shared_ptr<Lane> lane;
  ReceiveCredits receive_credits;
  FrameReader reader;
  std::atomic<uint64_t> bytes_received{0}, tensor_bytes_received{0};
  StallWatch sending, receiving;

 private:
  /// What a peer must move from one tick to the next.
  static uint64_t LeastBytes(const TransportOptions& options) {
    const auto tick = options.stall_timeout / kTicks;
    return std::max<uint64_t>(1, kLeastBytesPerSecond * static_cast<uint64_t>(tick.count()) / 1000);
  }

  Connection* const connection_;
  const int index_;
};

Connection::Connection(std::shared_ptr<IoLoop> loop, TensorSink* sink, PeerInfo info,
                       const TransportOptions& options, const Openings& lanes,
                       std::function<void(const std::shared_ptr<Connection>&)> over)
    : loop_(std::move(loop)),
      sink_(sink),
      info_(std::move(info)),
      peer_max_tensor_bytes_(lanes[0]->role().peer_terms().max_tensor_bytes),
      over_(std::move(over)),
      close_timer_(loop_->context()) {
  for (int i = 0; i < kLanes; ++i) {
    streams_[i] = std::make_unique<Stream>(this, i, options, lanes[i]->role().peer_terms().window);
  }
}

Connection::~Connection() = default;

void Connection::Attach(const Openings& lanes) {
  const auto failed = [weak = weak_from_this()](const absl::Status& why) {
    if (const auto self = weak.lock()) self->OnWriteFailed(why);
  };
  for (int i = 0; i < kLanes; ++i) {
    streams_[i]->lane->Attach(std::move(lanes[i]->socket), std::move(lanes[i]->stream), failed);
  }
}

void Connection::Start() {
  for (const auto& stream : streams_) Read(stream.get());
}

// ---- Sending ----

absl::Status Connection::EndStatus() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return end_.ok()
             ? absl::UnavailableError(StrCat("connection to ", info_.ToString(), " is closed"))
             : end_;
}

absl::Status Connection::Send(absl::Span<SendItem> items) {
  std::vector<Outgoing> outgoing[kLanes];
  for (SendItem& item : items) {
    TROUPE_ASSIGN_OR_RETURN(
        Outgoing made, Outgoing::ForTensor(item.step, item.key, item.tag, item.dead, item.tensor,
                                           peer_max_tensor_bytes_));
    const int lane = made.header.total <= Transport::kSmallBytes ? kSmallLane : kBulkLane;
    outgoing[lane].push_back(std::move(made));
  }
  for (SendItem& item : items) item.tensor = Tensor();
  for (int i = 0; i < kLanes; ++i) {
    if (outgoing[i].empty()) continue;
    const bool queued = streams_[i]->lane->Queue([&](SendQueue* queue) {
      for (Outgoing& tensor : outgoing[i]) queue->PushTensor(std::move(tensor));
    });
    if (!queued) return EndStatus();
    streams_[i]->lane->Kick();
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
  return queued ? absl::OkStatus() : EndStatus();
}

bool Connection::QueueUrgent(const FrameHeader& header, std::string body) {
  Lane* const lane = streams_[kSmallLane]->lane.get();
  bool fits = true;
  const bool queued =
      lane->Queue([&](SendQueue* queue) { fits = queue->PushUrgent(header, std::move(body)); });
  if (!fits) {
    loop_->Post([self = shared_from_this()] {
      self->Lose(absl::ResourceExhaustedError("the peer does not read what it is told"));
    });
  }
  if (!queued || !fits) return false;
  lane->Kick();
  return true;
}

void Connection::Release(int lane, uint64_t charge) {
  const uint64_t told = streams_[lane]->receive_credits.Release(charge);
  if (told == 0) return;
  QueueUrgent({.kind = FrameKind::kCredit, .key = static_cast<uint64_t>(lane), .total = told}, "");
}

// ---- Receiving ----

void Connection::Read(Stream* stream) noexcept {
  try {
    ReadAll(stream);
  } catch (...) {
    const absl::Status why = StatusOfException();
    KeepGoing([&] { Lose(why); });
  }
}

void Connection::ReadAll(Stream* stream) {
  uint64_t budget = kTurnBytes;
  while (life_ != Life::kOver) {
    iovec buffers[2];
    int count = stream->reader.NextBuffers(buffers);
    if (buffers[0].iov_len > kTurnBytes) {
      buffers[0].iov_len = kTurnBytes;
      count = 1;
    }
    const size_t wanted = buffers[0].iov_len + (count > 1 ? buffers[1].iov_len : 0);
    IoResult result = stream->lane->Read(buffers, count);
    if (result.state == IoResult::State::kDone) {
      stream->bytes_received.fetch_add(result.bytes, std::memory_order_relaxed);
      const absl::Status status = stream->reader.Consume(result.bytes);
      stream->tensor_bytes_received.store(stream->reader.tensor_bytes(), std::memory_order_relaxed);
      if (!status.ok()) {
        return Fail(
            WithContext(StrCat("connection to ", info_.ToString(), " is given up: "), status));
      }
      budget -= std::min<uint64_t>(budget, result.bytes);
      if (budget == 0) {
        stream->lane->LetWriterLook();
        loop_->Post([self = shared_from_this(), stream] { self->Read(stream); });
        return;
      }
      if (result.bytes == wanted || !stream->lane->short_read_is_last()) continue;
      result.state = IoResult::State::kWantRead;
    }
    if (result.state == IoResult::State::kFailed) return Lose(result.status);
    if (result.state == IoResult::State::kEnd) {
      const bool both = streams_[0]->reader.ended() && streams_[1]->reader.ended();
      if (both || life_ == Life::kClosing) return Lose(goodbye_);
      if (stream->reader.ended()) return;  // The other stream is still to end.
      return Lose(absl::UnavailableError("the peer closed it without a word"));
    }
    stream->lane->WaitToRead(result, [self = shared_from_this(), stream](bool ok) {
      if (ok) self->Read(stream);
    });
    return;
  }
}

// ---- Ending ----

void Connection::OnWriteFailed(const absl::Status& why) {
  // The peer may have said why, and that is still to be read.
  for (const auto& stream : streams_) Read(stream.get());
  Lose(why);
}

void Connection::OnGoodbye(const absl::Status& why) {
  goodbye_ = absl::UnavailableError("the peer closed it: " + std::string(why.message()));
  if (!streams_[0]->reader.ended() || !streams_[1]->reader.ended()) return;
  // From within `Consume`, which must not find the world changed.
  loop_->Post([self = shared_from_this()] { self->Lose(self->goodbye_); });
}

void Connection::Close(const std::string& reason, std::chrono::milliseconds drain) {
  loop_->Post([self = shared_from_this(), reason, drain] { self->StartClose(reason, drain); });
}

void Connection::StartClose(const std::string& reason, std::chrono::milliseconds drain) {
  if (life_ != Life::kOpen) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    life_ = Life::kClosing;
    end_ = absl::CancelledError(
        StrCat("connection to ", info_.ToString(), " was closed here: ", reason));
  }
  close_timer_.expires_after(drain);
  close_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Fail(self->EndStatus());
  });
  const FrameHeader header{.kind = FrameKind::kGoodbye,
                           .total = static_cast<uint64_t>(absl::StatusCode::kCancelled)};
  for (const auto& stream : streams_) {
    stream->lane->Queue(
        [&](SendQueue* queue) { queue->PushLast(header, reason.substr(0, kMaxFrameText)); });
    stream->lane->Kick();
  }
}

void Connection::Lose(const absl::Status& why) {
  if (life_ == Life::kClosing) return Fail(EndStatus());
  Fail(absl::UnavailableError(
      StrCat("connection to ", info_.ToString(), " is lost: ", std::string(why.message()))));
}

void Connection::Fail(const absl::Status& why) {
  if (life_ == Life::kOver) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    life_ = Life::kOver;
    end_ = why;
  }
  close_timer_.cancel();
  for (const auto& stream : streams_) {
    stream->lane->End();
    // The user may keep the peer; its memory must not wait for that.
    stream->reader.Abandon();
  }
  const auto self = shared_from_this();
  sink_->OnPeerLost(self, why);
  if (auto callback = std::move(over_)) callback(self);
}

void Connection::ShutDown() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (life_ == Life::kOver) return;  // The sockets' numbers may be others'.
  for (const auto& stream : streams_) stream->lane->ShutDown();
}

void Connection::Tick() {
  for (const auto& stream : streams_) {
    if (stream->sending.Look(stream->lane->blocked(), stream->lane->bytes_sent())) {
      return Lose(absl::DeadlineExceededError("the peer has stopped reading"));
    }
    if (stream->receiving.Look(stream->reader.midway(), stream->bytes_received)) {
      return Lose(absl::DeadlineExceededError("the peer has stopped in the middle of a tensor"));
    }
  }
}

PeerStats Connection::stats() const {
  PeerStats stats;
  for (const auto& stream : streams_) {
    stats.bytes_sent += stream->lane->bytes_sent();
    stats.bytes_received += stream->bytes_received.load(std::memory_order_relaxed);
    stats.tensor_bytes_received += stream->tensor_bytes_received.load(std::memory_order_relaxed);
    stats.queued_bytes += stream->lane->queued_bytes();
    // A charge is at most three quarters of a window.
    const ReceiveCredits& credits = stream->receive_credits;
    stats.unreturned_bytes += credits.taken();
    stats.short_of_credits |= credits.taken() > credits.window() / 4;
  }
  return stats;
}

}  // namespace troupe
