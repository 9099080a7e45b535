/// Puts messages together again of which parts travel beside them.
#ifndef TROUPE_NET_MESSAGE_ASSEMBLER_H_
#define TROUPE_NET_MESSAGE_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "net/frame_reader.h"
#include "net/shared_budget.h"

namespace troupe {

/// How a message says what comes beside it (docs/transport.md, "Frames").
struct MessageFormat {
  // Types: one of these, and above it the number of parts, which are tensors of the message's id
  // and of the step `kStep`, tagged 0, 1 and so on.
  static constexpr uint64_t kMessage = 1;
  static constexpr uint64_t kMessageInPart = 2;  ///< The first part is the message's body.
  static constexpr uint64_t kFrame = 3;
  static constexpr uint64_t kFrameInPart = 4;
  static constexpr uint64_t kPartsUnit = 256;
  static constexpr uint64_t kStep = ~uint64_t{0};
  /// In the id: it is a frame, of this number on its connection.
  static constexpr uint64_t kFrameNumber = uint64_t{1} << 63;
  static constexpr size_t kMaxParts = 4096;
};

/// The messages that one peer sends over one connection. Memory for those that are incomplete is
/// counted against the peer, from when it is promised. What it returns is why the connection is to
/// end, unless it says otherwise. Thread-compatible; `done` is called from within.
class MessageAssembler {
 public:
  struct Message {
    bool frame = false;
    std::string body;
    std::vector<Tensor> parts;
    absl::Status whole;  ///< ResourceExhausted: there was no memory for the parts.
  };
  using Done = std::function<void(Message)>;

  /// `budget` is all peers', and outlives this.
  MessageAssembler(SharedBudget* budget, Done done) : budget_(budget), done_(std::move(done)) {}
  MessageAssembler(const MessageAssembler&) = delete;
  MessageAssembler& operator=(const MessageAssembler&) = delete;
  ~MessageAssembler() { budget_->Return(held_, &held_); }

  /// A part is about to come. Not OK: it is not taken, and `OnDropped` follows.
  absl::Status Admit(const IncomingTensor& part);
  absl::Status OnPart(uint64_t number, uint64_t index, Tensor part);
  absl::Status OnDropped(uint64_t number);
  absl::Status OnMessage(uint64_t type, uint64_t id, std::string body);

  /// Something has come, and the rest of it has not.
  bool waits() const { return !incomplete_.empty() || !early_.empty(); }
  /// Memory that is counted.
  uint64_t held() const { return held_; }

 private:
  struct Incomplete {
    bool has_body = false;
    bool body_is_part = false;
    bool refused = false;  ///< A part of it was not taken, so none of it is.
    std::string body;
    uint64_t missing = 0;  ///< Parts; modulo 2^64 while the body has not come.
    std::vector<Tensor> parts;
    uint64_t bytes = 0;
  };

  Incomplete* Find(uint64_t number);
  void Charge(uint64_t bytes, Incomplete* message);
  void Refuse(Incomplete* message);
  /// ResourceExhausted if the peer has gone too far.
  absl::Status Check() const;
  /// Hands the message on if it is complete.
  absl::Status Complete(uint64_t number);
  absl::Status HandOn(Incomplete message, bool frame);

  SharedBudget* const budget_;
  const Done done_;
  std::map<uint64_t, Incomplete> incomplete_;
  std::map<uint64_t, Incomplete> early_;  ///< Frames that have come before others.
  uint64_t next_frame_ = 0;
  uint64_t held_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_NET_MESSAGE_ASSEMBLER_H_
