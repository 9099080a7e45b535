/// The frames of a connection. docs/transport.md describes every byte.
///
/// A stream between two tasks is a sequence of frames: a header of 64 bytes, for a tensor its
/// dimensions, and a body. Nothing of a header is believed before it has been checked as a whole,
/// and no memory is taken for a body before.
#ifndef TROUPE_NET_FRAME_H_
#define TROUPE_NET_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/element_type.h"
#include "devices/shape.h"

namespace troupe {

/// "TRPF", as a little-endian number.
inline constexpr uint32_t kFrameMagic = 0x46505254;
/// Changes whenever a byte of the protocol does; tasks of different versions refuse one another.
inline constexpr uint16_t kWireVersion = 5;
inline constexpr size_t kFrameHeaderBytes = 64;
inline constexpr size_t kMaxFrameHeadBytes = kFrameHeaderBytes + 8 * Shape::kMaxRank;

/// Texts in frames (reasons, refusals) are cut to this.
inline constexpr uint64_t kMaxFrameText = 1024;
/// Bodies of the frames that open a connection.
inline constexpr uint64_t kMaxHandshakeBody = 4096;
/// Bodies of messages and of the parts of tensors.
inline constexpr uint64_t kMaxFrameBody = 1 << 20;

enum class FrameKind : uint8_t {
  // Opening a stream, in this order; kRefuse ends it instead of any of the last three.
  kHello = 1,      ///< Who connects.
  kChallenge = 2,  ///< Who answers, and the proof that it knows the secret.
  kProof = 3,      ///< The same proof of who connects.
  kWelcome = 4,    ///< The stream is open.
  kRefuse = 5,     ///< It is not: a status. Understood across versions.
  // On an open stream.
  kTensor = 16,   ///< A tensor, or its first part.
  kChunk = 17,    ///< More of a tensor.
  kCredit = 19,   ///< Credits come back.
  kReject = 20,   ///< A tensor was not taken: a status.
  kMessage = 21,  ///< A small message of the user's.
  kGoodbye = 22,  ///< Nothing more will come on this stream: a status.
};

/// A frame's header, as its bytes lie on the wire. Fields that a kind does not use are 0.
struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint16_t version = kWireVersion;
  FrameKind kind = FrameKind::kMessage;
  bool dead = false;                         ///< kTensor: there is no value.
  uint32_t checksum = 0;                     ///< CRC-32 of header and dimensions, this being 0.
  ElementType type = ElementType::kInvalid;  ///< kTensor.
  uint8_t rank = 0;                          ///< kTensor.
  uint16_t reserved = 0;
  uint64_t length = 0;    ///< Bytes of the body.
  uint64_t transfer = 0;  ///< kTensor, kChunk: counts the stream's tensors from 1.
  uint64_t step = 0;      ///< kTensor, kReject.
  uint64_t key = 0;       ///< kTensor, kReject: the edge. kMessage: its type. kCredit: the lane.
  uint64_t tag = 0;       ///< kTensor, kReject: the iteration. kMessage: its id.
  /// kTensor: bytes of all parts. kCredit: the amount. kReject, kGoodbye: the status code.
  uint64_t total = 0;
};
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

/// Bytes of header and dimensions of the frame that begins with these 64 bytes. InvalidArgument if
/// no frame of ours begins so; FailedPrecondition, naming both versions, if it is of another
/// version.
absl::StatusOr<size_t> FrameHeadBytes(std::string_view header);

/// Checks and reads a frame's header and dimensions, as many bytes as `FrameHeadBytes` says.
/// InvalidArgument says what is wrong. `shape` is set for kTensor.
absl::Status DecodeFrameHead(std::string_view head, uint64_t max_tensor_bytes, FrameHeader* header,
                             Shape* shape);

/// Writes header and dimensions (kTensor only) to `out`, which has room for them.
void EncodeFrameHead(const FrameHeader& header, absl::Span<const int64_t> dims, char* out);

/// A whole frame without dimensions.
std::string EncodeFrame(const FrameHeader& header, std::string_view body);

/// If these first bytes of a frame's header are those of a kRefuse of any version.
bool IsRefusal(std::string_view header, uint64_t* length);

/// Short name of a kind, for messages.
const char* FrameKindName(FrameKind kind);

}  // namespace troupe

#endif  // TROUPE_NET_FRAME_H_
