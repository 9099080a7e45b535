#include "net/frame.h"

#include <zlib.h>

#include <cstring>

#include "devices/status_macros.h"

namespace troupe {
namespace {

// Offsets in the header.
constexpr size_t kVersionAt = 4, kKindAt = 6, kFlagsAt = 7, kChecksumAt = 8, kTypeAt = 12,
                 kRankAt = 13, kReservedAt = 14, kLengthAt = 16, kTransferAt = 24, kStepAt = 32,
                 kKeyAt = 40, kTagAt = 48, kTotalAt = 56;
constexpr uint8_t kDeadFlag = 1;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename T>
void Store(T value, char* at) {
  std::memcpy(at, &value, sizeof(value));
}

/// CRC-32 of header and dimensions, the checksum's own bytes taken as 0.
uint32_t Checksum(const char* head, size_t size) {
  static constexpr Bytef kZeros[4] = {};
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(head), kChecksumAt);
  crc = crc32(crc, kZeros, sizeof(kZeros));
  return static_cast<uint32_t>(crc32(crc, reinterpret_cast<const Bytef*>(head) + kTypeAt,
                                     static_cast<uInt>(size - kTypeAt)));
}

bool IsKind(uint8_t kind) { return (kind >= 1 && kind <= 5) || (kind >= 16 && kind <= 22); }

/// Which fields a kind uses.
struct Fields {
  bool transfer = false, step = false, key = false, tag = false, total = false;
};

Fields FieldsOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kTensor:
      return {true, true, true, true, true};
    case FrameKind::kChunk:
    case FrameKind::kAbort:
      return {.transfer = true};
    case FrameKind::kCredit:
      return {.key = true, .total = true};
    case FrameKind::kReject:
      return {.step = true, .key = true, .tag = true, .total = true};
    case FrameKind::kMessage:
      return {.key = true, .tag = true};
    case FrameKind::kGoodbye:
      return {.total = true};
    default:
      return {};
  }
}

uint64_t MaxLength(FrameKind kind, const FrameLimits& limits) {
  switch (kind) {
    case FrameKind::kTensor:
    case FrameKind::kChunk:
      return limits.max_frame_bytes;
    case FrameKind::kMessage:
      return limits.max_message_bytes;
    case FrameKind::kReject:
    case FrameKind::kGoodbye:
      return kMaxFrameText;
    case FrameKind::kAbort:
    case FrameKind::kCredit:
      return 0;
    default:
      return kMaxHandshakeBody;
  }
}

template <typename... Args>
absl::Status Wrong(const FrameHeader& header, const Args&... why) {
  return InvalidArgument(FrameKindName(header.kind), " frame: ", why...);
}

absl::Status CheckTensor(const FrameHeader& h, const FrameLimits& limits, const Shape& shape) {
  if (h.transfer == 0) return Wrong(h, "transfer 0");
  if (h.total > limits.max_tensor_bytes) {
    return Wrong(h, "a tensor of ", h.total, " bytes; at most ", limits.max_tensor_bytes,
                 " are taken");
  }
  if (h.length > h.total || (h.length == 0 && h.total > 0)) {
    return Wrong(h, h.length, " of ", h.total, " bytes in the first part");
  }
  if (h.dead) {
    if (h.type != ElementType::kInvalid || h.rank != 0 || h.total != 0) {
      return Wrong(h, "a dead tensor with a value");
    }
    return absl::OkStatus();
  }
  const uint64_t size = ElementSize(h.type);
  if (size == 0) return Wrong(h, "element type ", static_cast<int>(h.type), " holds no tensors");
  const int64_t bytes = MultiplyWithoutOverflow(shape.num_elements(), static_cast<int64_t>(size));
  if (IsPlain(h.type)) {
    if (bytes < 0 || static_cast<uint64_t>(bytes) != h.total) {
      return Wrong(h, h.total, " bytes for ", ElementTypeName(h.type), shape.ToString());
    }
    return absl::OkStatus();
  }
  // Each element takes at least a byte of the serialized form, and an object here.
  if (bytes < 0 || static_cast<uint64_t>(shape.num_elements()) > h.total ||
      static_cast<uint64_t>(bytes) > limits.max_tensor_bytes) {
    return Wrong(h, h.total, " bytes for ", ElementTypeName(h.type), shape.ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const FrameHeader& h, const FrameLimits& limits, const Shape& shape) {
  const Fields fields = FieldsOf(h.kind);
  if ((!fields.transfer && h.transfer != 0) || (!fields.step && h.step != 0) ||
      (!fields.key && h.key != 0) || (!fields.tag && h.tag != 0) ||
      (!fields.total && h.total != 0)) {
    return Wrong(h, "a field that it does not have is set");
  }
  if (h.kind != FrameKind::kTensor && (h.dead || h.rank != 0 || h.type != ElementType::kInvalid)) {
    return Wrong(h, "a field that it does not have is set");
  }
  if (h.length > MaxLength(h.kind, limits)) {
    return Wrong(h, "a body of ", h.length, " bytes; at most ", MaxLength(h.kind, limits),
                 " are taken");
  }
  switch (h.kind) {
    case FrameKind::kTensor:
      return CheckTensor(h, limits, shape);
    case FrameKind::kChunk:
      if (h.length == 0) return Wrong(h, "it is empty");
      [[fallthrough]];
    case FrameKind::kAbort:
      return h.transfer == 0 ? Wrong(h, "transfer 0") : absl::OkStatus();
    case FrameKind::kCredit:
      return h.key > 1 || h.total == 0 ? Wrong(h, "lane ", h.key, ", ", h.total, " bytes")
                                       : absl::OkStatus();
    case FrameKind::kReject:
      return h.total < 1 || h.total > 16 ? Wrong(h, "status code ", h.total) : absl::OkStatus();
    case FrameKind::kGoodbye:
      return h.total > 16 ? Wrong(h, "status code ", h.total) : absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace

const char* FrameKindName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello:
      return "hello";
    case FrameKind::kChallenge:
      return "challenge";
    case FrameKind::kProof:
      return "proof";
    case FrameKind::kWelcome:
      return "welcome";
    case FrameKind::kRefuse:
      return "refuse";
    case FrameKind::kTensor:
      return "tensor";
    case FrameKind::kChunk:
      return "chunk";
    case FrameKind::kAbort:
      return "abort";
    case FrameKind::kCredit:
      return "credit";
    case FrameKind::kReject:
      return "reject";
    case FrameKind::kMessage:
      return "message";
    case FrameKind::kGoodbye:
      return "goodbye";
  }
  return "unknown";
}

absl::StatusOr<size_t> FrameHeadBytes(std::string_view header) {
  const char* at = header.data();
  if (header.size() < kFrameHeaderBytes || Load<uint32_t>(at) != kFrameMagic) {
    std::string hex;
    static constexpr char kDigits[] = "0123456789abcdef";
    for (char c : header.substr(0, 8)) {
      const uint8_t byte = static_cast<uint8_t>(c);
      hex += {kDigits[byte >> 4], kDigits[byte & 15], ' '};
    }
    return InvalidArgument("bytes that begin no frame: ", hex, "...");
  }
  const uint16_t version = Load<uint16_t>(at + kVersionAt);
  if (version != kWireVersion) {
    return absl::FailedPreconditionError(StrCat("the peer speaks version ", version,
                                                " of the protocol, this task ", kWireVersion,
                                                "; run the same release of Troupe on all tasks"));
  }
  const bool tensor = Load<uint8_t>(at + kKindAt) == static_cast<uint8_t>(FrameKind::kTensor);
  const uint8_t rank = Load<uint8_t>(at + kRankAt);
  if (tensor && rank > Shape::kMaxRank) {
    return InvalidArgument("tensor frame: rank ", static_cast<int>(rank));
  }
  return kFrameHeaderBytes + (tensor ? 8u * rank : 0u);
}

absl::Status DecodeFrameHead(std::string_view head, const FrameLimits& limits, FrameHeader* header,
                             Shape* shape) {
  TROUPE_ASSIGN_OR_RETURN(const size_t size, FrameHeadBytes(head));
  if (head.size() < size) return InvalidArgument("a frame's header is cut off");
  const char* at = head.data();
  if (Load<uint32_t>(at + kChecksumAt) != Checksum(at, size)) {
    return InvalidArgument("a frame's checksum is wrong");
  }
  const uint8_t kind = Load<uint8_t>(at + kKindAt);
  const uint8_t flags = Load<uint8_t>(at + kFlagsAt);
  if (!IsKind(kind) || (flags & ~kDeadFlag) != 0 || Load<uint16_t>(at + kReservedAt) != 0) {
    return InvalidArgument("a frame of kind ", static_cast<int>(kind), ", flags ",
                           static_cast<int>(flags), ", which does not exist");
  }
  FrameHeader h;
  h.kind = static_cast<FrameKind>(kind);
  h.dead = flags & kDeadFlag;
  h.type = static_cast<ElementType>(Load<uint8_t>(at + kTypeAt));
  h.rank = Load<uint8_t>(at + kRankAt);
  h.length = Load<uint64_t>(at + kLengthAt);
  h.transfer = Load<uint64_t>(at + kTransferAt);
  h.step = Load<uint64_t>(at + kStepAt);
  h.key = Load<uint64_t>(at + kKeyAt);
  h.tag = Load<uint64_t>(at + kTagAt);
  h.total = Load<uint64_t>(at + kTotalAt);
  if (h.kind == FrameKind::kTensor) {
    int64_t dims[Shape::kMaxRank];
    std::memcpy(dims, at + kFrameHeaderBytes, 8u * h.rank);
    absl::StatusOr<Shape> created = Shape::Create(absl::MakeConstSpan(dims, h.rank));
    if (!created.ok()) return Wrong(h, std::string(created.status().message()));
    *shape = *std::move(created);
  }
  TROUPE_RETURN_IF_ERROR(CheckFields(h, limits, *shape));
  *header = h;
  return absl::OkStatus();
}

void EncodeFrameHead(const FrameHeader& h, absl::Span<const int64_t> dims, char* out) {
  Store(kFrameMagic, out);
  Store(kWireVersion, out + kVersionAt);
  Store(static_cast<uint8_t>(h.kind), out + kKindAt);
  Store<uint8_t>(h.dead ? kDeadFlag : 0, out + kFlagsAt);
  Store(static_cast<uint8_t>(h.type), out + kTypeAt);
  Store(h.rank, out + kRankAt);
  Store<uint16_t>(0, out + kReservedAt);
  Store(h.length, out + kLengthAt);
  Store(h.transfer, out + kTransferAt);
  Store(h.step, out + kStepAt);
  Store(h.key, out + kKeyAt);
  Store(h.tag, out + kTagAt);
  Store(h.total, out + kTotalAt);
  if (!dims.empty()) std::memcpy(out + kFrameHeaderBytes, dims.data(), 8 * dims.size());
  Store(Checksum(out, kFrameHeaderBytes + 8 * dims.size()), out + kChecksumAt);
}

std::string EncodeFrame(const FrameHeader& header, std::string_view body) {
  std::string out(kFrameHeaderBytes, '\0');
  FrameHeader with_length = header;
  with_length.length = body.size();
  EncodeFrameHead(with_length, {}, out.data());
  out.append(body);
  return out;
}

bool IsRefusal(std::string_view header, uint64_t* length) {
  const char* at = header.data();
  if (header.size() < kFrameHeaderBytes || Load<uint32_t>(at) != kFrameMagic ||
      Load<uint8_t>(at + kKindAt) != static_cast<uint8_t>(FrameKind::kRefuse)) {
    return false;
  }
  *length = Load<uint64_t>(at + kLengthAt);
  return *length <= kMaxHandshakeBody;
}

}  // namespace troupe
