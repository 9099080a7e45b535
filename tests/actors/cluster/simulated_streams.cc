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
constexpr int kLanes = 2;
// What the kernels of both sides take before a writer has to wait.
constexpr size_t kSocketBytes = 256 << 10;
// As `Connection::Tick` has it: a peer that does not move for so many ticks is lost.
constexpr int kTicks = 4;
constexpr ClusterTime kStallTimeout = 5 * kSecond;
}  // namespace

/// One side of a connection.
class StreamEnd final : public CreditLease::Account,
                        public std::enable_shared_from_this<StreamEnd> {
 public:
  StreamEnd(SimulatedDataPlane* plane, int peer) : plane_(plane), peer_(peer) {
    for (int i = 0; i < kLanes; ++i) lanes_[i] = std::make_unique<Lane>(this, i);
  }

  static void Join(const std::shared_ptr<StreamEnd>& a, const std::shared_ptr<StreamEnd>& b) {
    a->other_ = b;
    b->other_ = a;
  }
  void StartHandshake(bool dial, const std::string& expected_task, uint64_t expected_incarnation) {
    dialed_ = dial;
    const auto& options = plane_->options_;
    const Identity self = {"cluster", options.name, options.incarnation, "secret"};
    const uint64_t connection = plane_->next_connection_++;
    auto terms = [connection, windows = std::to_array(options.windows)](int lane) {
      return StreamTerms{connection, lane, windows[lane], uint64_t{1} << 30};
    };
    for (int i = 0; i < kLanes; ++i) {
      lanes_[i]->handshake =
          dial ? Handshake::Connecting(self, terms(i), expected_task, expected_incarnation)
               : Handshake::Answering(self, terms);
      FlushHandshake(i);
    }
    plane_->events_.later(plane_->network_->schedule->now() + kStallTimeout,
                          [self = shared_from_this()] {
                            if (!self->connected_) self->Fail();
                          });
  }

  absl::Status Send(SendItem item) {
    if (failed_) return absl::UnavailableError("the connection is lost");
    TROUPE_ASSIGN_OR_RETURN(Outgoing outgoing,
                            Outgoing::ForTensor(item.step, item.key, item.tag, item.dead,
                                                std::move(item.tensor), uint64_t{1} << 30));
    const int lane = outgoing.header.total <= Transport::kSmallBytes ? 0 : 1;
    lanes_[lane]->queue->PushTensor(std::move(outgoing));
    Write(lane);
    return absl::OkStatus();
  }
  bool SendMessage(std::string body) {
    if (failed_) return false;
    FrameHeader header;
    header.kind = FrameKind::kMessage;
    lanes_[0]->queue->PushUrgent(header, std::move(body));
    Write(0);
    return true;
  }
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
    SimulatedDataPlane* plane = std::exchange(plane_, nullptr);
    const auto self = shared_from_this();
    std::erase(plane->ends_, self);
    if (connected_) plane->Lost(this);
  }
  void FailSoon() {
    if (failed_) return;
    auto& network = *plane_->network_;
    plane_->events_.later(network.schedule->now() + network.latency(peer_, plane_->options_.task) +
                              network.schedule->Between(0, 2000),
                          [self = shared_from_this()] { self->Fail(); });
  }
  void LoseWhatArrives() {
    for (auto& lane : lanes_) lane->arriving.clear();
  }
  bool unanswered() const { return lanes_[0]->in_flight + lanes_[1]->in_flight > 0; }
  bool connected() const { return connected_; }
  int peer() const { return peer_; }
  uint64_t peer_incarnation() const { return lanes_[0]->handshake->peer().incarnation; }

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
      check(lane.reader->midway(), "a frame has not ended");
      // What has been released and not been told yet is less than a quarter.
      check(lane.credits->taken() >= lane.credits->window() / 4, "credits have not come back");
    }
  }

 private:
  /// One of the two streams.
  struct Lane final : FrameReader::Handler {
    Lane(StreamEnd* end, int index) : end(end), index(index) {}

    absl::Status Admit(const IncomingTensor&) override { return absl::OkStatus(); }
    void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) override {
      end->plane_->events_.tensor({info.step, info.key, info.tag, info.dead, std::move(tensor),
                                   CreditLease(end->shared_from_this(), index, charge)});
    }
    void OnDropped(const IncomingTensor&, uint64_t charge, const absl::Status&) override {
      end->Release(index, charge);
    }
    absl::Status OnCredit(int lane, uint64_t bytes) override {
      if (!end->lanes_[lane]->queue->AddCredits(bytes)) {
        return InvalidArgument("credits come back that were not taken");
      }
      end->Write(lane);
      return absl::OkStatus();
    }
    void OnReject(uint64_t, uint64_t, uint64_t, const absl::Status&) override {}
    void OnMessage(uint64_t, uint64_t, std::string body) override {
      end->plane_->events_.message(end->peer_, std::move(body));
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
                 network.schedule->now() + network.latency(plane_->options_.task, peer_));
    there.arriving.push_back(std::move(bytes));
    other->plane_->events_.later(there.last_arrival, [other, index] { other->Arrive(index); });
  }
  void Arrive(int index) {
    Lane& lane = *lanes_[index];
    if (failed_ || lane.arriving.empty()) return;
    const std::string bytes = std::move(lane.arriving.front());
    lane.arriving.pop_front();
    lane.moved_in = true;
    plane_->network_->schedule->Mark(bytes.size());
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
    if (!dialed_ && lanes_[0]->handshake->verified() && lanes_[1]->handshake->verified()) {
      for (int i = 0; i < kLanes; ++i) {
        lanes_[i]->handshake->Welcome();
        FlushHandshake(i);
      }
    }
    if (!lanes_[0]->handshake->open() || !lanes_[1]->handshake->open()) return;
    connected_ = true;
    FrameLimits limits;
    limits.max_tensor_bytes = 1 << 30;
    for (int i = 0; i < kLanes; ++i) {
      Lane& each = *lanes_[i];
      each.queue.emplace(each.handshake->peer_terms().window);
      each.credits.emplace(plane_->options_.windows[i]);
      each.reader.emplace(limits, i == 1, &*each.credits, &each);
    }
    plane_->Connected(shared_from_this());
    for (int i = 0; i < kLanes && !failed_; ++i) Read(i, std::exchange(lanes_[i]->early, {}));
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
      // The network cuts where it likes.
      if (schedule.Chance(0.2))
        bytes.resize(schedule.Between(1, static_cast<int64_t>(bytes.size())));
      lane.batch.Advance(bytes.size());
      Transmit(index, std::move(bytes));
    }
    lane.writing = false;
  }

  SimulatedDataPlane* plane_;  ///< Until it has failed.
  const int peer_;
  std::weak_ptr<StreamEnd> other_;
  std::unique_ptr<Lane> lanes_[kLanes];
  bool dialed_ = false, connected_ = false, failed_ = false;
};

SimulatedDataPlane::SimulatedDataPlane(Options options, Events events, Network* network)
    : options_(std::move(options)), events_(std::move(events)), network_(network) {
  Tick();
}

SimulatedDataPlane::~SimulatedDataPlane() { Die(true); }

void SimulatedDataPlane::Tick() {
  events_.later(network_->schedule->now() + kStallTimeout / kTicks, [this] {
    const auto ends = ends_;
    for (const auto& end : ends) end->Tick();
    Tick();
  });
}

std::shared_ptr<StreamEnd> SimulatedDataPlane::AddEnd(int peer) {
  return ends_.emplace_back(std::make_shared<StreamEnd>(this, peer));
}

void SimulatedDataPlane::TaskUp(int task, const std::string& name, uint64_t incarnation,
                                bool dial) {
  auto it = peers_.find(task);
  if (!dial || (it != peers_.end() && it->second->peer_incarnation() == incarnation)) return;
  // Who listens is found by a packet of its own.
  events_.later(network_->schedule->now() + network_->latency(options_.task, task),
                [this, task, name, incarnation] {
                  SimulatedDataPlane* there = network_->find(task);
                  if (there == nullptr) return;
                  const auto end = AddEnd(task), answer = there->AddEnd(options_.task);
                  StreamEnd::Join(end, answer);
                  end->StartHandshake(true, name, incarnation);
                  answer->StartHandshake(false, "", 0);
                });
}

void SimulatedDataPlane::Heard(int task, uint64_t incarnation) {
  auto it = peers_.find(task);
  if (it != peers_.end() && it->second->peer_incarnation() != incarnation) Drop(task);
}

void SimulatedDataPlane::Drop(int task) {
  auto it = peers_.find(task);
  if (it == peers_.end()) return;
  const auto end = std::move(it->second);
  peers_.erase(it);
  end->Fail();
}

absl::Status SimulatedDataPlane::Send(int task, SendItem item) {
  auto it = peers_.find(task);
  if (it == peers_.end()) return absl::NotFoundError("there is no connection");
  return it->second->Send(std::move(item));
}

bool SimulatedDataPlane::SendMessage(int task, uint64_t incarnation, std::string body) {
  auto it = peers_.find(task);
  return it != peers_.end() && it->second->peer_incarnation() == incarnation &&
         body.size() <= Transport::kMaxMessageBytes && it->second->SendMessage(std::move(body));
}

void SimulatedDataPlane::Connected(const std::shared_ptr<StreamEnd>& end) {
  // As in `DataPlane::OnPeerConnected`.
  if (auto it = peers_.find(end->peer()); it != peers_.end() && it->second != end) {
    it->second->Fail();
  }
  peers_[end->peer()] = end;
}

void SimulatedDataPlane::Lost(StreamEnd* end) {
  auto it = peers_.find(end->peer());
  if (it == peers_.end() || it->second.get() != end) return;
  peers_.erase(it);
  events_.lost(end->peer(), end->peer_incarnation());
}

void SimulatedDataPlane::Die(bool silently) {
  peers_.clear();  // Nobody is told.
  const auto ends = std::move(ends_);
  for (const auto& end : ends) end->Fail(silently);
}

void SimulatedDataPlane::Break(int task) {
  const auto ends = ends_;
  for (const auto& end : ends) {
    if (end->peer() != task) continue;
    end->LoseWhatArrives();
    end->FailSoon();
  }
}

void SimulatedDataPlane::Reset(int task) {
  for (const auto& end : ends_) {
    // Whoever repeats what was not answered learns so after a while.
    if (end->peer() == task && end->unanswered()) {
      events_.later(network_->schedule->now() + network_->schedule->Between(100, kSecond),
                    [end] { end->Fail(); });
    }
  }
}

void SimulatedDataPlane::CheckNothingLeft() {
  for (const auto& end : ends_) end->CheckNothingLeft();
}

}  // namespace troupe
