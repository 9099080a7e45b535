#include "net/transport.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "net/address.h"
#include "net/connection.h"
#include "net/credits.h"
#include "net/dial.h"
#include "net/handshake.h"
#include "net/io_loop.h"
#include "net/keep_for_good.h"
#include "net/opening.h"

namespace troupe {
namespace {

using boost::asio::ip::tcp;

// Until the next attempt to accept, when the process has no descriptors left.
constexpr std::chrono::milliseconds kAcceptPause(100);
// For the I/O thread to come out of the sink's functions, which are short, when it is to end.
constexpr std::chrono::seconds kStopPatience(5);

/// Has a connection end if its path dies without a word, or its peer's machine does: within
/// `patience` what has been sent is acknowledged, and one that rests is probed. What the kernel has
/// taken from us is not seen to stall: it would be sent again and again for a quarter of an hour.
void WatchPath(int socket, std::chrono::milliseconds patience) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));
  };
  const int seconds = static_cast<int>(patience / std::chrono::seconds(1));
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(patience.count()));
  set(IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 2));
  set(IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 5));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace

uint64_t NewIncarnation() {
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32) | random();
  return number == 0 ? 1 : number;
}

class Transport::Impl : public std::enable_shared_from_this<Transport::Impl> {
 public:
  Impl(TransportOptions options, TensorSink* sink)
      : options_(std::move(options)),
        sink_(sink),
        loop_(std::make_shared<IoLoop>()),
        watch_(loop_->context()),
        tick_(loop_->context()),
        accept_pause_(loop_->context()) {}

  void Start() {
    loop_->Post([self = shared_from_this()] {
      self->Watch();
      self->Tick();
    });
  }

  const TransportOptions& options() const { return options_; }

  absl::StatusOr<int> Listen(const std::string& host, int port);
  void Connect(const std::string& address, const ConnectOptions& options, Connected done);
  absl::Status Stop(std::chrono::milliseconds drain);

 private:
  using Acceptor = std::shared_ptr<tcp::acceptor>;
  using Link = std::shared_ptr<Connection>;

  /// The streams of a connection that a peer opens.
  struct Pair {
    Connection::Openings lanes;
    int open = 0;
  };
  using PairKey = std::pair<std::string, std::pair<uint64_t, uint64_t>>;

  Identity Self() const {
    return {options_.task, options_.incarnation, options_.secret, options_.address};
  }
  StreamTerms Terms(uint64_t connection, int lane) const {
    return {connection, lane, Connection::Window(options_, lane), options_.max_tensor_bytes};
  }
  static PairKey KeyOf(const Opening& opening) {
    const Handshake& role = opening.role();
    return {role.peer().task, {role.peer().incarnation, role.peer_terms().connection}};
  }
  static PeerInfo InfoOf(const Opening& opening, bool answered) {
    const Handshake& role = opening.role();
    const Identity& peer = role.peer();
    return {peer.task, peer.incarnation, opening.address(), peer.address, answered, role.shared()};
  }

  void Accept(const Acceptor& acceptor);
  void Answer(tcp::socket socket);
  void OnAnswered(const std::shared_ptr<Opening>& opening, Opening::Event event);
  /// There is no connection to be made of an opening: the other stream of it ends.
  void Part(const std::shared_ptr<Opening>& opening);
  /// Ends what has begun first of the handshakes and refusals under way; false if there is none.
  bool EndOldest(const std::string& why);
  void Join(const std::shared_ptr<Opening>& opening);
  /// A dial has failed: the peer may be reading why.
  void Linger(const Dial& dial);
  Link Establish(const Connection::Openings& lanes, bool answered);
  std::set<Link> links() {
    std::lock_guard<std::mutex> lock(mutex_);
    return links_;
  }
  void Watch();
  void Tick();
  void StartStop(std::chrono::milliseconds drain);
  /// Nothing is accepted, sent or received any more, whatever the I/O thread does. With `mutex_`.
  void ShutDown();

  TransportOptions options_;
  TensorSink* const sink_;
  const std::shared_ptr<IoLoop> loop_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by `mutex_`.
  std::set<Acceptor> acceptors_;
  std::set<Link> links_;
  bool stopping_ = false, closing_ = false, stopped_ = false;
  absl::Status stop_status_;

  // I/O thread.
  bool ending_ = false;
  boost::asio::steady_timer watch_, tick_, accept_pause_;
  std::map<uint64_t, std::shared_ptr<Opening>> openings_;  ///< By number, oldest first.
  uint64_t next_opening_ = 1;
  std::map<PairKey, Pair> pairs_;
  std::set<std::shared_ptr<Dial>> dials_;
  std::vector<std::weak_ptr<Opening>> lingering_;
};

// ---- Answering ----

absl::StatusOr<int> Transport::Impl::Listen(const std::string& host, int port) {
  const std::string where = HostPort{host, port}.ToString();
  if (port < 0 || port > 65535) return InvalidArgument("there is no port ", port);
  if (!IsLoopback(host) && options_.tls == nullptr && !options_.insecure) {
    return absl::FailedPreconditionError(
        StrCat(where, " can be reached from other machines; give certificates ",
               "(--tls-cert, --tls-key, --tls-ca) or allow it with --insecure"));
  }
  const Hosts hosts = ResolveNow(host);
  if (!hosts.ok()) return hosts.status();
  const tcp::endpoint end(boost::asio::ip::make_address(hosts->front()),
                          static_cast<uint16_t>(port));
  boost::system::error_code error;
  auto acceptor = std::make_shared<tcp::acceptor>(loop_->context());
  acceptor->open(end.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(end, error);
  if (!error) acceptor->listen(boost::asio::socket_base::max_listen_connections, error);
  const tcp::endpoint bound = error ? tcp::endpoint() : acceptor->local_endpoint(error);
  if (error) {
    return absl::UnavailableError(StrCat("cannot listen at ", where, ": ", error.message()));
  }
  // Nothing has connected yet to where nobody knew.
  if (port == 0 && options_.address == where) {
    options_.address = HostPort{host, bound.port()}.ToString();
  }
  const bool posted = loop_->Post([self = shared_from_this(), acceptor] {
    if (self->ending_) return;
    {
      std::lock_guard<std::mutex> lock(self->mutex_);
      self->acceptors_.insert(acceptor);
    }
    self->Accept(acceptor);
  });
  if (!posted) return absl::CancelledError("the transport has been stopped");
  return bound.port();
}

void Transport::Impl::Accept(const Acceptor& acceptor) {
  acceptor->async_accept([self = shared_from_this(), acceptor](
                             const boost::system::error_code& error, tcp::socket socket) {
    if (self->ending_) return;
    if (!error) {
      self->Answer(std::move(socket));
      return self->Accept(acceptor);
    }
    if (self->EndOldest(error.message())) return self->Accept(acceptor);
    self->accept_pause_.expires_after(kAcceptPause);
    self->accept_pause_.async_wait([self, acceptor](const boost::system::error_code&) {
      if (!self->ending_) self->Accept(acceptor);
    });
  });
}

void Transport::Impl::Answer(tcp::socket socket) {
  if (openings_.size() >= options_.max_handshakes) {
    EndOldest(StrCat(options_.max_handshakes, " later handshakes are under way"));
  }
  const auto opening = std::make_shared<Opening>(
      loop_.get(), std::move(socket), options_.tls.get(), options_.share_memory,
      Handshake::Answering(Self(), [this](int lane) { return Terms(0, lane); }));
  opening->number = next_opening_++;
  openings_[opening->number] = opening;
  opening->Start(std::chrono::steady_clock::now() + options_.handshake_timeout,
                 [self = shared_from_this()](const std::shared_ptr<Opening>& o,
                                             Opening::Event event) { self->OnAnswered(o, event); });
}

void Transport::Impl::OnAnswered(const std::shared_ptr<Opening>& opening, Opening::Event event) {
  if (ending_) return;
  if (event == Opening::Event::kVerified) return Join(opening);
  if (event == Opening::Event::kFailed) {
    Part(opening);
    sink_->OnStranger(opening->address(), opening->failure());
    return;
  }
  openings_.erase(opening->number);
  if (event == Opening::Event::kClosed) return;
  const auto found = pairs_.find(KeyOf(*opening));
  if (found == pairs_.end() || found->second.lanes[opening->role().peer_terms().lane] != opening) {
    return opening->Abandon();  // The other stream has failed meanwhile.
  }
  if (++found->second.open < kLanes) return;
  const Pair pair = found->second;
  pairs_.erase(found);
  Establish(pair.lanes, true);
}

void Transport::Impl::Part(const std::shared_ptr<Opening>& opening) {
  const auto found = pairs_.find(KeyOf(*opening));
  const int lane = opening->role().peer_terms().lane;
  if (found == pairs_.end() || found->second.lanes[lane] != opening) return;
  const std::shared_ptr<Opening> other = found->second.lanes[1 - lane];
  pairs_.erase(found);
  if (other != nullptr && openings_.erase(other->number) > 0) other->Abandon();
}

bool Transport::Impl::EndOldest(const std::string& why) {
  if (openings_.empty()) return false;
  const std::shared_ptr<Opening> oldest = openings_.begin()->second;
  openings_.erase(openings_.begin());
  const bool told = !oldest->failure().ok();
  const absl::Status status = absl::ResourceExhaustedError(why);
  told ? oldest->Abandon() : oldest->Abandon(status);
  if (told) return true;
  Part(oldest);
  sink_->OnStranger(oldest->address(), status);
  return true;
}

void Transport::Impl::Join(const std::shared_ptr<Opening>& opening) {
  const int lane = opening->role().peer_terms().lane;
  Pair& pair = pairs_[KeyOf(*opening)];
  if (pair.lanes[lane] != nullptr) {
    return opening->Refuse(InvalidArgument("this stream is open already"));
  }
  pair.lanes[lane] = opening;
  if (pair.lanes[1 - lane] == nullptr) return;
  const Pair both = pair;  // What follows may change the map.
  const absl::Status status = sink_->OnHello(InfoOf(*opening, true));
  if (!status.ok()) pairs_.erase(KeyOf(*opening));
  for (const auto& each : both.lanes) status.ok() ? each->Welcome() : each->Refuse(status);
}

// ---- Connecting ----

void Transport::Impl::Connect(const std::string& address, const ConnectOptions& options,
                              Connected done) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return done(parsed.status());
  Dial::Streams streams;
  streams.tls = options_.tls.get();
  streams.share = options_.share_memory;
  const uint64_t id = NewIncarnation();
  for (int lane = 0; lane < kLanes; ++lane) {
    streams.roles.push_back(Handshake::Connecting(Self(), Terms(id, lane), options.expected_task,
                                                  options.expected_incarnation));
  }
  const auto dial = std::make_shared<Dial>(loop_, *parsed, options, std::move(streams));
  const auto shared_done = std::make_shared<Connected>(std::move(done));
  const bool posted = loop_->Post([self = shared_from_this(), dial, shared_done] {
    if (self->ending_) {
      return (*shared_done)(absl::CancelledError("the transport has been stopped"));
    }
    self->dials_.insert(dial);
    dial->Start([self, dial, shared_done](const absl::Status& status) {
      self->dials_.erase(dial);
      if (!status.ok()) {
        self->Linger(*dial);
        return (*shared_done)(status);
      }
      const Connection::Openings lanes = {dial->openings()[0], dial->openings()[1]};
      (*shared_done)(std::shared_ptr<Peer>(self->Establish(lanes, false)));
    });
  });
  if (!posted) {
    (*shared_done)(absl::CancelledError("the transport has been stopped"));
  }
}

void Transport::Impl::Linger(const Dial& dial) {
  std::erase_if(lingering_, [](const auto& opening) { return opening.expired(); });
  lingering_.insert(lingering_.end(), dial.openings().begin(), dial.openings().end());
}

Transport::Impl::Link Transport::Impl::Establish(const Connection::Openings& lanes, bool answered) {
  const auto over = [weak = weak_from_this()](const Link& lost) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    std::lock_guard<std::mutex> lock(self->mutex_);
    self->links_.erase(lost);
    self->changed_.notify_all();
  };
  Link link = std::make_shared<Connection>(loop_, sink_, InfoOf(*lanes[kBulkLane], answered),
                                           options_, lanes, over);
  for (const auto& lane : lanes) WatchPath(lane->socket.native_handle(), options_.stall_timeout);
  link->Attach(lanes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    links_.insert(link);
  }
  sink_->OnPeerConnected(link);
  link->Start();
  return link;
}

// ---- Watching and stopping ----

void Transport::Impl::Tick() {
  if (ending_) return;
  // First of all, so that an exception is not the end of time.
  tick_.expires_after(options_.tick);
  tick_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Tick();
  });
  sink_->OnTick();
}

void Transport::Impl::Watch() {
  if (ending_) return;
  watch_.expires_after(options_.stall_timeout / Connection::kTicks);
  watch_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Watch();
  });
  for (const Link& link : links()) link->Tick();
}

void Transport::Impl::StartStop(std::chrono::milliseconds drain) {
  ending_ = true;
  boost::system::error_code ignored;
  watch_.cancel();
  tick_.cancel();
  accept_pause_.cancel();
  std::set<Acceptor> acceptors;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    acceptors.swap(acceptors_);
  }
  for (const Acceptor& acceptor : acceptors) acceptor->close(ignored);
  for (const auto& [number, opening] : std::exchange(openings_, {})) opening->Abandon();
  pairs_.clear();
  for (const auto& dial : std::exchange(dials_, {})) {
    dial->Cancel(absl::CancelledError("the transport has been stopped"));
  }
  for (const auto& weak : std::exchange(lingering_, {})) {
    if (const auto opening = weak.lock()) opening->Abandon();
  }
  for (const Link& link : links()) link->StartClose("the task stops", drain);
  std::lock_guard<std::mutex> lock(mutex_);
  closing_ = true;
  changed_.notify_all();
}

void Transport::Impl::ShutDown() {
  // What is in these sets has not been closed: the numbers are those of our sockets.
  for (const Acceptor& acceptor : acceptors_) ::shutdown(acceptor->native_handle(), SHUT_RDWR);
  for (const Link& link : links_) link->ShutDown();
}

absl::Status Transport::Impl::Stop(std::chrono::milliseconds drain) {
  if (loop_->OnThread()) {
    return absl::FailedPreconditionError("the I/O thread cannot stop itself");
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_) {
    changed_.wait(lock, [this] { return stopped_; });
    return stop_status_;
  }
  stopping_ = true;
  lock.unlock();
  loop_->Post([self = shared_from_this(), drain] { self->StartStop(drain); });
  // The connections close by themselves, at the latest when the time to drain is over.
  lock.lock();
  if (changed_.wait_for(lock, drain + kStopPatience,
                        [this] { return closing_ && links_.empty(); })) {
    lock.unlock();
    loop_->Stop();
    lock.lock();
  } else {
    ShutDown();
    stop_status_ = absl::DeadlineExceededError("the I/O thread is held by a function of the sink");
  }
  stopped_ = true;
  changed_.notify_all();
  return stop_status_;
}

// ---- The public face ----

Transport::Transport(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Transport::~Transport() {
  // A thread that goes on needs what it uses.
  if (!Stop().ok()) KeepForGood(std::move(impl_));
}

absl::StatusOr<std::unique_ptr<Transport>> Transport::Create(const TransportOptions& options,
                                                             TensorSink* sink) {
  if (options.task.empty() || options.task.size() > 500) {
    return InvalidArgument("a task needs a name of at most 500 bytes");
  }
  for (const uint64_t window : {options.window_bytes, options.small_window_bytes}) {
    if (window < kMinWindow || window > kMaxWindow) {
      return InvalidArgument("a window of ", window, " bytes; expected ", kMinWindow, " to ",
                             kMaxWindow);
    }
  }
  if (options.max_tensor_bytes == 0 || options.allocator == nullptr || sink == nullptr ||
      options.allocator->space() == MemorySpace::kDevice || options.stall_timeout.count() < 4) {
    return InvalidArgument(
        "a sink, an allocator of the host's memory, and a positive limit and stall "
        "timeout are needed");
  }
  TransportOptions complete = options;
  if (complete.incarnation == 0) complete.incarnation = NewIncarnation();
  auto impl = std::make_shared<Impl>(std::move(complete), sink);
  impl->Start();
  return std::unique_ptr<Transport>(new Transport(std::move(impl)));
}

absl::StatusOr<int> Transport::Listen(const std::string& host, int port) {
  return impl_->Listen(host, port);
}

void Transport::Connect(const std::string& address, const ConnectOptions& options, Connected done) {
  impl_->Connect(address, options, std::move(done));
}

const TransportOptions& Transport::options() const { return impl_->options(); }

absl::Status Transport::Stop(std::chrono::milliseconds drain) { return impl_->Stop(drain); }

}  // namespace troupe
