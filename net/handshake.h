/// How two tasks come to trust a stream: who they are, that they speak the same version and belong
/// to the same cluster, and that both know its secret.
#ifndef TROUPE_NET_HANDSHAKE_H_
#define TROUPE_NET_HANDSHAKE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace troupe {

/// What the names begin with by which clients are known to tasks.
inline constexpr std::string_view kClientTask = "client:";

/// The two streams of a connection.
inline constexpr int kLanes = 2;
inline constexpr int kSmallLane = 0;  ///< Messages and small tensors.
inline constexpr int kBulkLane = 1;   ///< Large tensors.

/// What a task tells of itself.
struct Identity {
  std::string task;  ///< "/job:worker/replica:0/task:0", or a client's.
  uint64_t incarnation = 0;
  std::string secret;   ///< Is proven to the peer, never sent; empty: there is none.
  std::string address;  ///< Where the task serves; empty: it does not.
};

/// What two tasks agree on for one stream.
struct StreamTerms {
  uint64_t connection = 0;  ///< Drawn by who connects: streams that belong together.
  int lane = 0;             ///< Which of a connection's two streams this is.
  uint64_t window = 0;      ///< Credits that the teller grants on it.
  uint64_t max_tensor_bytes = 0;
};

/// One side of the handshake, as a role: bytes in, bytes out, no sockets, no clock.
/// Hello, challenge, proof, welcome; docs/transport.md has their fields. Both sides prove that they
/// know the secret by an HMAC (RFC 2104, with SHA-256) over everything that was said, random
/// numbers of both sides included. Thread-compatible.
class Handshake {
 public:
  /// The side that connects. `expected_task` and `expected_incarnation`, unless empty or 0, are
  /// what the other must be.
  static Handshake Connecting(Identity self, StreamTerms terms, std::string expected_task,
                              uint64_t expected_incarnation);
  /// The side that answers; `terms_for` gives its terms for a lane (window, max_tensor_bytes).
  static Handshake Answering(Identity self, std::function<StreamTerms(int lane)> terms_for);

  bool connecting() const { return connecting_; }
  /// Whether the peer may be that task; if not, it is refused.
  using MayBe = std::function<absl::Status(const std::string& task)>;
  void set_may_be(MayBe may_be) { may_be_ = std::move(may_be); }

  /// Memory for the two to share: what the connecting side, once it knows that the other has the
  /// secret, says of it (empty: nothing), and whether the answering side, welcoming, takes it.
  void set_offer(std::function<std::string()> offer) { make_offer_ = std::move(offer); }
  void set_take(std::function<bool(const std::string& offer)> take) { take_ = std::move(take); }
  /// It was offered and taken; known from when `open`.
  bool shared() const { return shared_; }

  /// Bytes to send now; taken away.
  std::string TakeOutput() { return std::exchange(output_, {}); }
  /// How many bytes can be consumed now; 0: none are expected.
  size_t wanted() const { return wanted_; }
  /// `bytes.size() <= wanted()`. Errors are kept in `status()`; what is to be told to the peer
  /// about it is in the output.
  void Consume(std::string_view bytes);

  /// Why the stream is refused, by this side or the other.
  const absl::Status& status() const { return status_; }
  /// The answering side knows who connects, and is to call `Welcome` or `Refuse`.
  bool verified() const { return state_ == State::kVerified; }
  void Welcome();
  void Refuse(const absl::Status& why);
  /// The stream is open as soon as the output has been sent.
  bool open() const { return state_ == State::kOpen; }

  /// Who the peer is; known from when `verified` or `open`. The secret is not set.
  const Identity& peer() const { return peer_; }
  const StreamTerms& peer_terms() const { return peer_terms_; }

 private:
  enum class State {
    kAwaitHello,
    kAwaitChallenge,
    kAwaitProof,
    kVerified,
    kAwaitWelcome,
    kOpen,
    kFailed
  };

  void OnFrame();
  void OnHello(std::string_view body);
  void OnChallenge(std::string_view body);
  void OnProof(std::string_view body);
  void Fail(const absl::Status& status);
  void Expect(State state);
  std::string Proof(bool connecting, const std::string& secret) const;
  /// OK if the peer may be who it says, and has proven that it knows the same secret.
  absl::Status CheckPeer(std::string_view proof) const;

  bool connecting_ = false;
  State state_ = State::kFailed;
  Identity self_, peer_;
  StreamTerms terms_, peer_terms_;
  std::function<StreamTerms(int)> terms_for_;
  MayBe may_be_ = [](const std::string&) { return absl::OkStatus(); };
  std::function<std::string()> make_offer_ = [] { return std::string(); };
  std::function<bool(const std::string&)> take_ = [](const std::string&) { return false; };
  std::string offer_;
  bool shared_ = false;
  std::string expected_task_;
  uint64_t expected_incarnation_ = 0;
  std::string hello_, challenge_;  ///< Bodies, as they were sent; what the proofs are over.
  std::string input_, output_;
  size_t wanted_ = 0;
  absl::Status status_;
};

}  // namespace troupe

#endif  // TROUPE_NET_HANDSHAKE_H_
