#include "net/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "devices/status_macros.h"
#include "net/credits.h"
#include "net/frame.h"
#include "net/wire.h"

namespace troupe {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = 32;
constexpr size_t kMaxName = 500;
constexpr size_t kMaxOffer = 256;

std::string Nonce() {
  std::string nonce(kNonceBytes, '\0');
  RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size()));
  return nonce;
}

std::string Frame(FrameKind kind, std::string_view body) {
  return EncodeFrame({.kind = kind}, body);
}

std::string RefuseFrame(const absl::Status& why) {
  std::string body;
  WireWriter writer(&body);
  writer.Number(static_cast<uint8_t>(why.code()));
  const std::string text(why.message());
  writer.String(std::string_view(text).substr(0, kMaxFrameText));
  return Frame(FrameKind::kRefuse, body);
}

bool GoodTerms(const StreamTerms& terms) {
  return terms.window >= kMinWindow && terms.window <= kMaxWindow && terms.max_tensor_bytes > 0;
}

/// What stands where a frame of ours should, if it is something well known.
std::string Stranger(std::string_view bytes) {
  if (bytes.size() >= 3 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3) {
    return " (the peer speaks TLS; this task was started without)";
  }
  for (const char* word : {"GET ", "POST", "HEAD", "PRI ", "HTTP"}) {
    if (bytes.substr(0, 4) == word) return " (the peer speaks HTTP)";
  }
  return " (the peer is no task of Troupe)";
}

}  // namespace

Handshake Handshake::Connecting(Identity self, StreamTerms terms, std::string expected_task,
                                uint64_t expected_incarnation) {
  Handshake h;
  h.connecting_ = true;
  h.self_ = std::move(self);
  h.terms_ = terms;
  h.expected_task_ = std::move(expected_task);
  h.expected_incarnation_ = expected_incarnation;
  WireWriter writer(&h.hello_);
  writer.Raw(Nonce());
  writer.Number(terms.connection);
  writer.Number(static_cast<uint8_t>(terms.lane));
  writer.Number(h.self_.incarnation);
  writer.Number(terms.window);
  writer.Number(terms.max_tensor_bytes);
  writer.Number(expected_incarnation);
  writer.String(h.self_.task);
  writer.String(h.self_.address);
  writer.String(h.expected_task_);
  h.output_ = Frame(FrameKind::kHello, h.hello_);
  h.Expect(State::kAwaitChallenge);
  return h;
}

Handshake Handshake::Answering(Identity self, std::function<StreamTerms(int lane)> terms_for) {
  Handshake h;
  h.self_ = std::move(self);
  h.terms_for_ = std::move(terms_for);
  h.Expect(State::kAwaitHello);
  return h;
}

void Handshake::Expect(State state) {
  state_ = state;
  input_.clear();
  wanted_ = kFrameHeaderBytes;
}

void Handshake::Fail(const absl::Status& status) {
  status_ = status;
  state_ = State::kFailed;
  wanted_ = 0;
}

void Handshake::Refuse(const absl::Status& why) {
  output_ += RefuseFrame(why);
  Fail(why);
}

void Handshake::Welcome() {
  shared_ = !offer_.empty() && take_(offer_);
  output_ += Frame(FrameKind::kWelcome, shared_ ? "s" : "");
  state_ = State::kOpen;
  wanted_ = 0;
}

void Handshake::Consume(std::string_view bytes) {
  input_.append(bytes);
  wanted_ -= bytes.size();
  // A stranger may send less than a header and wait: its first bytes are enough to refuse it.
  if (input_.size() >= 4 && wanted_ > 0 && input_.size() < kFrameHeaderBytes) {
    uint32_t magic;
    std::memcpy(&magic, input_.data(), sizeof(magic));
    if (magic != kFrameMagic) {
      std::string padded = input_;
      padded.resize(kFrameHeaderBytes);
      Refuse(InvalidArgument(std::string(FrameHeadBytes(padded).status().message()),
                             Stranger(input_)));
    }
    return;
  }
  if (wanted_ > 0) return;
  if (input_.size() == kFrameHeaderBytes) {
    uint64_t length = 0;
    const bool refusal = IsRefusal(input_, &length);
    if (!refusal) {
      // Versions are told apart before anything else is read.
      const absl::StatusOr<size_t> head = FrameHeadBytes(input_);
      if (!head.ok()) {
        const bool version = absl::IsFailedPrecondition(head.status());
        return Refuse(
            version ? head.status()
                    : InvalidArgument(std::string(head.status().message()), Stranger(input_)));
      }
      FrameHeader header;
      Shape shape;
      const absl::Status decoded = DecodeFrameHead(input_, UINT64_MAX, &header, &shape);
      if (!decoded.ok()) return Refuse(decoded);
      if (header.kind > FrameKind::kRefuse) {
        return Refuse(InvalidArgument("a ", FrameKindName(header.kind),
                                      " frame before the handshake is over"));
      }
      length = header.length;
    }
    wanted_ = length;
    if (wanted_ > 0) return;
  }
  OnFrame();
}

void Handshake::OnFrame() {
  const auto kind = static_cast<FrameKind>(input_[6]);
  const std::string body = input_.substr(kFrameHeaderBytes);
  if (kind == FrameKind::kRefuse) {
    WireReader reader(body);
    uint8_t code = 0;
    std::string text;
    if (!reader.Number(&code) || !reader.String(&text, kMaxFrameText) || code < 1 || code > 16) {
      code = static_cast<uint8_t>(absl::StatusCode::kUnknown);
      text = "no reason is given";
    }
    return Fail(
        absl::Status(static_cast<absl::StatusCode>(code), StrCat("refused by the peer: ", text)));
  }
  if (state_ == State::kAwaitHello && kind == FrameKind::kHello) return OnHello(body);
  if (state_ == State::kAwaitChallenge && kind == FrameKind::kChallenge) return OnChallenge(body);
  if (state_ == State::kAwaitProof && kind == FrameKind::kProof) return OnProof(body);
  if (state_ == State::kAwaitWelcome && kind == FrameKind::kWelcome &&
      (body.empty() || (body == "s" && !offer_.empty()))) {
    shared_ = !body.empty();
    state_ = State::kOpen;
    return;
  }
  Refuse(InvalidArgument("a ", FrameKindName(kind), " frame out of order"));
}

void Handshake::OnHello(std::string_view body) {
  WireReader reader(body);
  std::string_view nonce;
  std::string wanted_task;
  uint8_t lane = 0;
  uint64_t wanted_incarnation = 0;
  if (!reader.Raw(kNonceBytes, &nonce) || !reader.Number(&peer_terms_.connection) ||
      !reader.Number(&lane) || !reader.Number(&peer_.incarnation) ||
      !reader.Number(&peer_terms_.window) || !reader.Number(&peer_terms_.max_tensor_bytes) ||
      !reader.Number(&wanted_incarnation) || !reader.String(&peer_.task, kMaxName) ||
      !reader.String(&peer_.address, kMaxName) || !reader.String(&wanted_task, kMaxName) ||
      !reader.done() || lane > 1 || !GoodTerms(peer_terms_)) {
    return Refuse(InvalidArgument("a malformed hello frame"));
  }
  peer_terms_.lane = lane;
  if (!wanted_task.empty() && wanted_task != self_.task) {
    return Refuse(absl::FailedPreconditionError(
        StrCat("this is task ", self_.task, ", not ", wanted_task, ", which ", peer_.task,
               " is looking for here; is the cluster described alike everywhere?")));
  }
  if (wanted_incarnation != 0 && wanted_incarnation != self_.incarnation) {
    return Refuse(
        absl::AbortedError(StrCat("task ", self_.task, " has been restarted: its incarnation is ",
                                  self_.incarnation, ", not ", wanted_incarnation)));
  }
  hello_ = std::string(body);
  terms_ = terms_for_(lane);
  WireWriter writer(&challenge_);
  writer.Raw(Nonce());
  writer.Number(self_.incarnation);
  writer.Number(terms_.window);
  writer.Number(terms_.max_tensor_bytes);
  writer.String(self_.task);
  writer.String(self_.address);
  output_ += Frame(FrameKind::kChallenge, challenge_ + Proof(false, self_.secret));
  Expect(State::kAwaitProof);
}

void Handshake::OnChallenge(std::string_view body) {
  if (body.size() < kProofBytes) {
    return Refuse(InvalidArgument("a malformed challenge frame"));
  }
  challenge_ = std::string(body.substr(0, body.size() - kProofBytes));
  WireReader reader(challenge_);
  std::string_view nonce;
  if (!reader.Raw(kNonceBytes, &nonce) || !reader.Number(&peer_.incarnation) ||
      !reader.Number(&peer_terms_.window) || !reader.Number(&peer_terms_.max_tensor_bytes) ||
      !reader.String(&peer_.task, kMaxName) || !reader.String(&peer_.address, kMaxName) ||
      !reader.done() || !GoodTerms(peer_terms_)) {
    return Refuse(InvalidArgument("a malformed challenge frame"));
  }
  peer_terms_.connection = terms_.connection;
  peer_terms_.lane = terms_.lane;
  const absl::Status proven = CheckPeer(body.substr(challenge_.size()));
  if (!proven.ok()) return Refuse(proven);
  // These were asked for, so an answer that is otherwise would be another task's mistake.
  if (!expected_task_.empty() && peer_.task != expected_task_) {
    return Refuse(absl::FailedPreconditionError(
        StrCat("task ", peer_.task, " answers instead of ", expected_task_)));
  }
  offer_ = make_offer_();
  output_ += Frame(FrameKind::kProof, Proof(true, self_.secret) + offer_);
  Expect(State::kAwaitWelcome);
}

void Handshake::OnProof(std::string_view body) {
  if (body.size() > kProofBytes + kMaxOffer) {
    return Refuse(InvalidArgument("a malformed proof frame"));
  }
  const std::string_view proof = body.substr(0, kProofBytes);
  offer_ = std::string(body.substr(proof.size()));
  const absl::Status proven = CheckPeer(proof);
  if (!proven.ok()) return Refuse(proven);
  state_ = State::kVerified;
  wanted_ = 0;
}

absl::Status Handshake::CheckPeer(std::string_view proof) const {
  TROUPE_RETURN_IF_ERROR(may_be_(peer_.task));
  const auto shows = [&](const std::string& secret) {
    const std::string expected = Proof(!connecting_, secret);
    return proof.size() == kProofBytes &&
           CRYPTO_memcmp(proof.data(), expected.data(), kProofBytes) == 0;
  };
  if (shows(self_.secret)) return absl::OkStatus();
  std::string why = StrCat(" has another secret than ", self_.task);
  if (self_.secret.empty()) why = StrCat(" wants a secret, and ", self_.task, " has none");
  if (shows("")) why = StrCat(" has no secret, and ", self_.task, " has one");
  return absl::PermissionDeniedError(
      StrCat(peer_.task, why, "; both need the same one (--secret-file)"));
}

std::string Handshake::Proof(bool connecting, const std::string& secret) const {
  std::string said(connecting ? "troupe connecting" : "troupe answering");
  WireWriter writer(&said);
  writer.String(hello_);
  writer.String(challenge_);
  if (connecting) writer.String(offer_);
  std::string proof(kProofBytes, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(said.data()), said.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &size);
  return proof;
}

}  // namespace troupe
