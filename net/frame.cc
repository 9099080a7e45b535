#include "net/frame.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "absl/strings/escaping.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

// What a kind of frame has besides its length.
enum Field : unsigned { kTransfer = 1, kStep = 2, kKey = 4, kTag = 8, kTotal = 16, kValue = 32 };
struct Kind {
  FrameKind kind;
  const char* name;
  unsigned fields;
  uint64_t max_length;  ///< Of its body.
};
constexpr Kind kKinds[] = {
    {FrameKind::kHello, "hello", 0, kMaxHandshakeBody},
    {FrameKind::kChallenge, "challenge", 0, kMaxHandshakeBody},
    {FrameKind::kProof, "proof", 0, kMaxHandshakeBody},
    {FrameKind::kWelcome, "welcome", 0, kMaxHandshakeBody},
    {FrameKind::kRefuse, "refuse", 0, kMaxHandshakeBody},
    {FrameKind::kTensor, "tensor", kTransfer | kStep | kKey | kTag | kTotal | kValue,
     kMaxFrameBody},
    {FrameKind::kChunk, "chunk", kTransfer, kMaxFrameBody},
    {FrameKind::kCredit, "credit", kKey | kTotal, 0},
    {FrameKind::kReject, "reject", kStep | kKey | kTag | kTotal, kMaxFrameText},
    {FrameKind::kMessage, "message", kKey | kTag, kMaxFrameBody},
    {FrameKind::kGoodbye, "goodbye", kTotal, kMaxFrameText},
};

/// nullptr if there is no such kind.
const Kind* FindKind(FrameKind kind) {
  const Kind* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [kind](const Kind& each) { return each.kind == kind; });
  return found == std::end(kKinds) ? nullptr : found;
}

/// False if no frame begins so. Nothing else of it has been checked.
bool ReadHeader(std::string_view bytes, FrameHeader* header) {
  if (bytes.size() < kFrameHeaderBytes) return false;
  std::memcpy(header, bytes.data(), kFrameHeaderBytes);
  return header->magic == kFrameMagic;
}

uint32_t Checksum(FrameHeader header, const char* dims, size_t size) {
  header.checksum = 0;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(&header), sizeof(header));
  return static_cast<uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(dims), static_cast<uInt>(size)));
}

template <typename... Args>
absl::Status Wrong(const FrameHeader& header, const Args&... why) {
  return InvalidArgument(FrameKindName(header.kind), " frame: ", why...);
}

absl::Status CheckTensor(const FrameHeader& h, uint64_t max_tensor_bytes, const Shape& shape) {
  if (h.transfer == 0) return Wrong(h, "transfer 0");
  if (h.total > max_tensor_bytes) {
    return Wrong(h, "a tensor of ", h.total, " bytes; at most ", max_tensor_bytes, " are taken");
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
      static_cast<uint64_t>(bytes) > max_tensor_bytes) {
    return Wrong(h, h.total, " bytes for ", ElementTypeName(h.type), shape.ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const FrameHeader& h, uint64_t max_tensor_bytes, const Shape& shape) {
  const Kind& kind = *FindKind(h.kind);
  const auto if_set = [](bool set, Field field) { return set ? field : 0u; };
  const unsigned set = if_set(h.transfer != 0, kTransfer) | if_set(h.step != 0, kStep) |
                       if_set(h.key != 0, kKey) | if_set(h.tag != 0, kTag) |
                       if_set(h.total != 0, kTotal) |
                       if_set(h.dead || h.rank != 0 || h.type != ElementType::kInvalid, kValue);
  if ((set & ~kind.fields) != 0) return Wrong(h, "a field that it does not have is set");
  if (h.length > kind.max_length) {
    return Wrong(h, "a body of ", h.length, " bytes; at most ", kind.max_length, " are taken");
  }
  const auto check = [&h](bool good, const auto&... why) {
    return good ? absl::OkStatus() : Wrong(h, why...);
  };
  switch (h.kind) {
    case FrameKind::kTensor:
      return CheckTensor(h, max_tensor_bytes, shape);
    case FrameKind::kChunk:
      return check(h.length > 0 && h.transfer > 0, "it is empty, or of transfer 0");
    case FrameKind::kCredit:
      return check(h.key <= 1 && h.total > 0, "lane ", h.key, ", ", h.total, " bytes");
    case FrameKind::kReject:
      return check(h.total >= 1 && h.total <= 16, "status code ", h.total);
    case FrameKind::kGoodbye:
      return check(h.total <= 16, "status code ", h.total);
    default:
      return absl::OkStatus();
  }
}

}  // namespace

const char* FrameKindName(FrameKind kind) {
  const Kind* known = FindKind(kind);
  return known == nullptr ? "unknown" : known->name;
}

absl::StatusOr<size_t> FrameHeadBytes(std::string_view header) {
  FrameHeader h;
  if (!ReadHeader(header, &h)) {
    const std::string first(header.substr(0, 8));
    return InvalidArgument("bytes that begin no frame: ", absl::BytesToHexString(first), "...");
  }
  if (h.version != kWireVersion) {
    return absl::FailedPreconditionError(StrCat("the peer speaks version ", h.version,
                                                " of the protocol, this task ", kWireVersion,
                                                "; run the same release of Troupe on all tasks"));
  }
  if (h.kind != FrameKind::kTensor) return kFrameHeaderBytes;
  if (h.rank > Shape::kMaxRank) {
    return InvalidArgument("tensor frame: rank ", static_cast<int>(h.rank));
  }
  return kFrameHeaderBytes + 8u * h.rank;
}

absl::Status DecodeFrameHead(std::string_view head, uint64_t max_tensor_bytes, FrameHeader* header,
                             Shape* shape) {
  TROUPE_ASSIGN_OR_RETURN(const size_t size, FrameHeadBytes(head));
  if (head.size() < size) return InvalidArgument("a frame's header is cut off");
  FrameHeader h;
  ReadHeader(head, &h);
  const char* const at = head.data() + kFrameHeaderBytes;
  if (h.checksum != Checksum(h, at, size - kFrameHeaderBytes)) {
    return InvalidArgument("a frame's checksum is wrong");
  }
  // A byte that is neither 0 nor 1 must not be read as a bool.
  const auto flags = static_cast<unsigned char>(head[offsetof(FrameHeader, dead)]);
  if (FindKind(h.kind) == nullptr || flags > 1 || h.reserved != 0) {
    return InvalidArgument("a frame of kind ", static_cast<int>(h.kind), ", flags ",
                           static_cast<int>(flags), ", which does not exist");
  }
  if (h.kind == FrameKind::kTensor) {
    int64_t dims[Shape::kMaxRank];
    std::memcpy(dims, at, 8u * h.rank);
    absl::StatusOr<Shape> created = Shape::Create(absl::MakeConstSpan(dims, h.rank));
    if (!created.ok()) return Wrong(h, std::string(created.status().message()));
    *shape = *std::move(created);
  }
  TROUPE_RETURN_IF_ERROR(CheckFields(h, max_tensor_bytes, *shape));
  *header = h;
  return absl::OkStatus();
}

void EncodeFrameHead(const FrameHeader& header, absl::Span<const int64_t> dims, char* out) {
  FrameHeader h = header;
  char* const at = out + kFrameHeaderBytes;
  if (!dims.empty()) std::memcpy(at, dims.data(), 8 * dims.size());
  h.checksum = Checksum(h, at, 8 * dims.size());
  std::memcpy(out, &h, kFrameHeaderBytes);
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
  FrameHeader h;
  if (!ReadHeader(header, &h) || h.kind != FrameKind::kRefuse) return false;
  *length = h.length;
  return *length <= kMaxHandshakeBody;
}

}  // namespace troupe
