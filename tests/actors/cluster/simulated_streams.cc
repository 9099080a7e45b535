#include "tests/actors/cluster/simulated_streams.h"

#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "devices/status_macros.h"
#include "net/handshake.h"
#include "net/send_queue.h"

namespace troupe {

namespace {
// What the kernels of both sides take before a writer has to wait.
constexpr size_t kSocketBytes = 256 << 10;
// As `Connection::Tick` has it: a peer that does not move for so many ticks is lost.
constexpr int kTicks = 4;
constexpr ClusterTime kStallTimeout = 5 * kSecond;
}  // namespace

/// One side of a connection.
class StreamEnd final : public Peer,
                        public CreditLease::Account,
                        public std::enable_shared_from_this<StreamEnd> {
 public:
  StreamEnd(SimulatedTransport* plane, int peer) : plane_(plane), peer_(peer) {
    for (int i = 0; i < kLanes; ++i) lanes_[i] = std::make_unique<Lane>(this, i);
  }

  static void Join(const std::shared_ptr<StreamEnd>& a, const std::shared_ptr<StreamEnd>& b) {
    a->other_ = b;
    b->other_ = a;
  }
  /// `done`: on the side that dials.
  void StartHandshake(const ConnectOptions& expected, ClusterTime deadline,
                      Transport::Connected done) {
    const bool dial = done != nullptr;
    done_ = std::move(done);
    const auto& options = plane_->options_;
    const Identity self = {options.name, options.incarnation, "secret",
                           options.serves ? std::to_string(options.process) : ""};
    const uint64_t connection = plane_->next_connection_++;
    auto terms = [connection, windows = std::to_array(options.windows)](int lane) {
      return StreamTerms{connection, lane, windows[lane], uint64_t{1} << 30};
    };
    for (int i = 0; i < kLanes; ++i) {
      lanes_[i]->handshake = dial ? Handshake::Connecting(self, terms(i), expected.expected_task,
                                                          expected.expected_incarnation)
                                  : Handshake::Answering(self, terms);
      FlushHandshake(i);
    }
    Later(deadline - plane_->network_->schedule->now(), [this] {
      if (!connected_) Fail();
    });
  }
  /// Unless it has failed by then.
  void Later(ClusterTime delay, Schedule::Event event) {
    plane_->later_(plane_->network_->schedule->now() + delay,
                   [self = shared_from_this(), event = std::move(event)]() mutable {
                     if (!self->failed_) event();
                   });
  }

  using Peer::Send;
  const PeerInfo& info() const override { return info_; }
  absl::Status Send(absl::Span<SendItem> items) override {
    if (failed_) return absl::UnavailableError("the connection is lost");
    for (SendItem& item : items) {
      TROUPE_ASSIGN_OR_RETURN(Outgoing outgoing,
                              Outgoing::ForTensor(item.step, item.key, item.tag, item.dead,
                                                  std::move(item.tensor), uint64_t{1} << 30));
      const int lane = outgoing.header.total <= Transport::kSmallBytes ? 0 : 1;
      lanes_[lane]->queue->PushTensor(std::move(outgoing));
      Write(lane);
    }
    return absl::OkStatus();
  }
  absl::Status SendMessage(uint64_t type, uint64_t id, std::string body) override {
    if (failed_) return absl::UnavailableError("the connection is lost");
    FrameHeader header;
    header.kind = FrameKind::kMessage;
    header.key = type;
    header.tag = id;
    lanes_[0]->queue->PushUrgent(header, std::move(body));
    Write(0);
    return absl::OkStatus();
  }
  void Close(const std::string&, std::chrono::milliseconds) override {
    if (!failed_) Later(0, [this] { Fail(); });
  }
  bool connected() const override { return connected_ && !failed_; }
  PeerStats stats() const override { return {.bytes_received = received_}; }
  void Release(int lane, uint64_t charge) override {
    const uint64_t told = lanes_[lane]->credits->Release(charge);
    if (told == 0 || failed_) return;
    FrameHeader header;
    header.kind = FrameKind::kCredit;
    header.key = static_cast<uint64_t>(lane);
    header.total = told;
    lanes_[0]->queue->PushUrgent(header, "");
    Write(0);
  }

  /// The connection is over on this side; the other one is told, unless nobody is there to tell.
  void Fail(bool silently = false) {
    if (std::exchange(failed_, true)) return;
    for (auto& lane : lanes_) {
      lane->arriving.clear();
      lane->batch.Clear();
      if (lane->queue) lane->queue->Clear();
      if (lane->reader) lane->reader->Abandon();
    }
    if (auto other = other_.lock(); other && !silently) other->FailSoon();
    SimulatedTransport* plane = std::exchange(plane_, nullptr);
    const auto self = shared_from_this();
    std::erase(plane->ends_, self);
    if (connected_) plane->sink_->OnPeerLost(self, absl::UnavailableError("lost"));
    if (done_) {
      const absl::Status refused = lanes_[0]->handshake->status();
      std::exchange(done_, nullptr)(refused.ok() ? absl::UnavailableError("no answer") : refused);
    }
  }
  void FailSoon() {
    if (failed_) return;
    auto& network = *plane_->network_;
    Later(network.latency(peer_, plane_->options_.process) + network.schedule->Between(0, 2000),
          [this] { Fail(); });
  }
  /// What is on its way is lost, and so is all that follows.
  void LoseWhatArrives() {
    deaf_ = true;
    for (auto& lane : lanes_) lane->arriving.clear();
  }
  bool unanswered() const { return lanes_[0]->in_flight + lanes_[1]->in_flight > 0; }
  int peer() const { return peer_; }

  void Tick() {
    for (auto& lane : lanes_) {
      const bool sending = lane->in_flight >= kSocketBytes;
      const bool receiving = lane->reader && lane->reader->midway();
      lane->idle_sending = sending && !lane->moved_out ? lane->idle_sending + 1 : 0;
      lane->idle_receiving = receiving && !lane->moved_in ? lane->idle_receiving + 1 : 0;
      lane->moved_in = lane->moved_out = false;
      if (lane->idle_sending >= kTicks || lane->idle_receiving >= kTicks) return Fail();
    }
  }
  void CheckNothingLeft() {
    for (int i = 0; i < kLanes; ++i) {
      Lane& lane = *lanes_[i];
      auto check = [&](bool bad, const char* what) {
        if (bad) {
          plane_->network_->schedule->Violation(
              StrCat(plane_->options_.name, ", connection to ", peer_, ", lane ", i, ": ", what));
        }
      };
      if (!lane.queue) continue;
      check(lane.queue->queued_bytes() > 0, "tensors wait to be sent");
      // The rest of a ping may be on its way.
      check(lane.reader->midway() && lane.arriving.empty(), "a frame has not ended");
      // What has been released and not been told yet is less than a quarter.
      check(lane.credits->taken() >= lane.credits->window() / 4, "credits have not come back");
    }
  }

 private:
  /// One of the two streams.
  struct Lane final : FrameReader::Handler {
    Lane(StreamEnd* end, int index) : end(end), index(index) {}

    TensorSink* sink() const { return end->plane_->sink_; }
    absl::Status Admit(const IncomingTensor& info) override {
      return sink()->Admit(end->shared_from_this(), info);
    }
    void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) override {
      sink()->OnTensor(end->shared_from_this(),
                       {info.step, info.key, info.tag, info.dead, std::move(tensor),
                        CreditLease(end->shared_from_this(), index, charge)});
    }
    void OnDropped(const IncomingTensor& info, uint64_t charge, const absl::Status&) override {
      end->Release(index, charge);
      sink()->OnDropped(end->shared_from_this(), info);
    }
    absl::Status OnCredit(int lane, uint64_t bytes) override {
      if (!end->lanes_[lane]->queue->AddCredits(bytes)) {
        return InvalidArgument("credits come back that were not taken");
      }
      end->Write(lane);
      return absl::OkStatus();
    }
    void OnReject(uint64_t, uint64_t, uint64_t, const absl::Status&) override {}
    void OnMessage(uint64_t type, uint64_t id, std::string body) override {
      sink()->OnMessage(end->shared_from_this(), type, id, std::move(body));
    }
    void OnGoodbye(const absl::Status&) override {}

    StreamEnd* const end;
    const int index;
    std::optional<Handshake> handshake;
    // From when both lanes are open.
    std::optional<SendQueue> queue;
    std::optional<ReceiveCredits> credits;
    std::optional<FrameReader> reader;
    Batch batch;
    bool writing = false;
    size_t in_flight = 0;              ///< Sent from here, not read there.
    std::deque<std::string> arriving;  ///< Sent there, not read here; in order.
    ClusterTime last_arrival = 0;
    std::string early;  ///< Read before both lanes were open.
    bool moved_in = false, moved_out = false;
    int idle_sending = 0, idle_receiving = 0;
  };

  void Transmit(int index, std::string bytes) {
    lanes_[index]->in_flight += bytes.size();
    auto other = other_.lock();
    auto& network = *plane_->network_;
    if (other == nullptr || other->failed_) {
      // Nobody has this connection any more: who is there answers with a reset.
      if (network.find(peer_) != nullptr) FailSoon();
      return;
    }
    Lane& there = *other->lanes_[index];
    there.last_arrival =
        std::max(there.last_arrival,
                 network.schedule->now() + network.latency(plane_->options_.process, peer_));
    there.arriving.push_back(std::move(bytes));
    other->plane_->later_(there.last_arrival, [other, index] { other->Arrive(index); });
  }
  void Arrive(int index) {
    Lane& lane = *lanes_[index];
    if (failed_ || deaf_ || lane.arriving.empty()) return;
    const std::string bytes = std::move(lane.arriving.front());
    lane.arriving.pop_front();
    lane.moved_in = true;
    received_ += bytes.size();
    plane_->network_->schedule->Mark(index);  // Sizes vary: messages say what kernels took.
    if (auto other = other_.lock(); other && !other->failed_) {
      Lane& there = *other->lanes_[index];
      there.in_flight -= bytes.size();
      there.moved_out = true;
      if (there.queue) other->Write(index);
    }
    if (connected_) {
      Read(index, bytes);
    } else {
      ReadHandshake(index, bytes);
    }
  }

  void FlushHandshake(int index) {
    std::string output = lanes_[index]->handshake->TakeOutput();
    if (!output.empty()) Transmit(index, std::move(output));
  }
  void ReadHandshake(int index, std::string_view bytes) {
    Lane& lane = *lanes_[index];
    Handshake& handshake = *lane.handshake;
    while (!bytes.empty() && handshake.wanted() > 0) {
      const size_t size = std::min(bytes.size(), handshake.wanted());
      handshake.Consume(bytes.substr(0, size));
      bytes.remove_prefix(size);
      FlushHandshake(index);
    }
    lane.early.append(bytes);
    if (!handshake.status().ok()) return Fail();  // A life that is over, for instance.
    if (lanes_[0]->handshake->verified() && lanes_[1]->handshake->verified()) {
      SetInfo(true);
      const absl::Status status = plane_->sink_->OnHello(info_);
      for (int i = 0; i < kLanes; ++i) {
        if (status.ok()) {
          lanes_[i]->handshake->Welcome();
        } else {
          lanes_[i]->handshake->Refuse(status);
        }
        FlushHandshake(i);
      }
      // The other one is told by these words.
      if (!status.ok()) return Fail(/*silently=*/true);
    }
    if (!lanes_[0]->handshake->open() || !lanes_[1]->handshake->open()) return;
    connected_ = true;
    for (int i = 0; i < kLanes; ++i) {
      Lane& each = *lanes_[i];
      each.queue.emplace(each.handshake->peer_terms().window);
      each.credits.emplace(plane_->options_.windows[i]);
      each.reader.emplace(uint64_t{1} << 30, i == 1, &*each.credits, &each);
    }
    if (done_) SetInfo(false);
    plane_->sink_->OnPeerConnected(shared_from_this());
    if (done_) std::exchange(done_, nullptr)(std::shared_ptr<Peer>(shared_from_this()));
    for (int i = 0; i < kLanes && !failed_; ++i) Read(i, std::exchange(lanes_[i]->early, {}));
  }

  void SetInfo(bool answered) {
    const Identity& peer = lanes_[0]->handshake->peer();
    info_ = {peer.task, peer.incarnation, std::to_string(peer_), peer.address, answered};
  }

  void Read(int index, std::string_view bytes) {
    FrameReader& reader = *lanes_[index]->reader;
    while (!bytes.empty() && !failed_) {
      iovec buffers[2];
      const int count = reader.NextBuffers(buffers);
      size_t put = 0;
      for (int i = 0; i < count && put < bytes.size(); ++i) {
        const size_t size = std::min(bytes.size() - put, buffers[i].iov_len);
        std::memcpy(buffers[i].iov_base, bytes.data() + put, size);
        put += size;
      }
      bytes.remove_prefix(put);
      if (const absl::Status status = reader.Consume(put); !status.ok()) {
        plane_->network_->schedule->Violation(
            StrCat("honest tasks misunderstand each other: ", std::string(status.message())));
        return Fail();
      }
    }
  }

  void Write(int index) {
    Lane& lane = *lanes_[index];
    if (std::exchange(lane.writing, true)) return;
    Schedule& schedule = *plane_->network_->schedule;
    while (!failed_ && lane.in_flight < kSocketBytes) {
      if (lane.batch.done()) {
        lane.batch.Clear();
        if (!lane.queue->NextBatch(&lane.batch)) break;
      }
      std::string bytes;
      for (const iovec& piece : lane.batch.rest()) {
        bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
      }
      lane.batch.Advance(bytes.size());
      // The network cuts where it likes; into how many pieces does not depend on the number of
      // bytes, as messages say what kernels took.
      if (schedule.Chance(0.2) && bytes.size() > 1) {
        const uint64_t part = static_cast<uint64_t>(schedule.Between(0, 999));
        const size_t first = 1 + (bytes.size() - 2) * part / 999;
        Transmit(index, bytes.substr(0, first));
        bytes.erase(0, first);
      }
      Transmit(index, std::move(bytes));
    }
    lane.writing = false;
  }

  SimulatedTransport* plane_;  ///< Until it has failed.
  const int peer_;
  std::weak_ptr<StreamEnd> other_;
  std::unique_ptr<Lane> lanes_[kLanes];
  bool connected_ = false, failed_ = false, deaf_ = false;
  uint64_t received_ = 0;
  PeerInfo info_;
  Transport::Connected done_;  ///< On the side that dials, until the handshake is over.
};

SimulatedTransport::SimulatedTransport(Options options, Later later, Network* network)
    : options_(std::move(options)), later_(std::move(later)), network_(network) {
  Tick();
}

SimulatedTransport::~SimulatedTransport() { Die(true); }

void SimulatedTransport::Tick() {
  later_(network_->schedule->now() + kStallTimeout / kTicks, [this] {
    const auto ends = ends_;
    for (const auto& end : ends) end->Tick();
    Tick();
  });
}

std::shared_ptr<StreamEnd> SimulatedTransport::AddEnd(int peer) {
  return ends_.emplace_back(std::make_shared<StreamEnd>(this, peer));
}

void SimulatedTransport::Connect(const std::string& address, const ConnectOptions& options,
                                 Transport::Connected done) {
  const ClusterTime deadline =
      network_->schedule->now() + std::chrono::microseconds(options.timeout).count();
  Knock(std::stoi(address), options, deadline, std::move(done));
}

void SimulatedTransport::Knock(int process, const ConnectOptions& options, ClusterTime deadline,
                               Transport::Connected done) {
  Schedule& schedule = *network_->schedule;
  // Who listens is found by a packet of its own.
  later_(schedule.now() + network_->latency(options_.process, process),
         [this, &schedule, process, options, deadline, done = std::move(done)]() mutable {
           if (SimulatedTransport* there = network_->find(process)) {
             const auto end = AddEnd(process), answer = there->AddEnd(options_.process);
             StreamEnd::Join(end, answer);
             end->StartHandshake(options, deadline, std::move(done));
             answer->StartHandshake({}, schedule.now() + kStallTimeout, nullptr);
           } else if (schedule.now() >= deadline || schedule.Chance(0.5)) {
             done(absl::UnavailableError("nobody is there"));
           } else {
             // The machine is gone as well, and may come back.
             later_(schedule.now() + kSecond / 2,
                    [this, process, options, deadline, done = std::move(done)]() mutable {
                      Knock(process, options, deadline, std::move(done));
                    });
           }
         });
}

void SimulatedTransport::Die(bool silently) {
  const auto ends = std::move(ends_);
  for (const auto& end : ends) end->Fail(silently);
}

void SimulatedTransport::Break(int process) {
  const auto ends = ends_;
  for (const auto& end : ends) {
    if (end->peer() != process) continue;
    end->LoseWhatArrives();
    end->FailSoon();
  }
}

void SimulatedTransport::Reset(int process) {
  for (const auto& end : ends_) {
    // Whoever repeats what was not answered learns so after a while.
    if (end->peer() == process && end->unanswered()) {
      end->Later(network_->schedule->Between(100, kSecond), [end = end.get()] { end->Fail(); });
    }
  }
}

void SimulatedTransport::CheckNothingLeft() {
  for (const auto& end : ends_) end->CheckNothingLeft();
}

}  // namespace troupe
