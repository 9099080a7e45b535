#include "net/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "devices/status_macros.h"
#include "net/tensor_codec.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

absl::Status StatusOf(uint64_t code, std::string_view text) {
  return absl::Status(static_cast<absl::StatusCode>(code),
                      absl::string_view(text.data(), text.size()));
}

}  // namespace

struct FrameReader::Transfer {
  uint64_t id = 0;
  IncomingTensor info;
  uint64_t charge = 0;
  uint64_t received = 0;
  Tensor memory;     ///< Where the bytes go: the tensor's own, or those of its serialized form.
  absl::Status why;  ///< Not OK: the bytes are skipped.
};

FrameReader::FrameReader(uint64_t max_tensor_bytes, bool bulk, ReceiveCredits* credits,
                         Handler* handler, Allocator* allocator)
    : max_tensor_bytes_(max_tensor_bytes),
      bulk_(bulk),
      credits_(credits),
      handler_(handler),
      allocator_(allocator),
      buffer_(kBufferBytes) {}

FrameReader::~FrameReader() = default;

void FrameReader::Abandon() {
  transfers_.clear();
  current_ = nullptr;
  buffer_ = {};
  text_ = {};
  begin_ = end_ = body_left_ = 0;
}

char* FrameReader::Destination() {
  if (current_ != nullptr) {
    if (!current_->why.ok()) return nullptr;
    return static_cast<char*>(current_->memory.mutable_raw_data()) + current_->received;
  }
  return text_.data() + (frame_.length - body_left_);
}

void FrameReader::Took(uint64_t bytes) {
  body_left_ -= bytes;
  if (current_ == nullptr) return;
  current_->received += bytes;
  tensor_bytes_ += bytes;
}

int FrameReader::NextBuffers(iovec buffers[2]) {
  direct_ = 0;
  int count = 0;
  char* destination = body_left_ > 0 ? Destination() : nullptr;
  if (destination != nullptr) {
    direct_ = body_left_;
    buffers[count++] = {destination, body_left_};
  }
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ + kMaxFrameHeadBytes > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  size_t room = buffer_.size() - end_;
  if (bulk_ && body_left_ == 0) {
    // No further than this frame's head: what follows goes to the tensor's memory.
    size_t head = kFrameHeaderBytes;
    if (end_ - begin_ >= head) {
      const auto size = FrameHeadBytes({buffer_.data() + begin_, end_ - begin_});
      head = size.ok() ? *size : kMaxFrameHeadBytes;
    }
    room = head - (end_ - begin_);
  } else if (bulk_ && destination != nullptr) {
    room = kFrameHeaderBytes;
  }
  buffers[count++] = {buffer_.data() + end_, room};
  return count;
}

absl::Status FrameReader::Consume(size_t bytes) {
  const uint64_t direct = std::min<uint64_t>(bytes, direct_);
  direct_ = 0;
  if (direct > 0) {
    Took(direct);
    if (body_left_ == 0) TROUPE_RETURN_IF_ERROR(FinishFrame());
  }
  end_ += bytes - direct;
  return Parse();
}

absl::Status FrameReader::Parse() {
  while (end_ > begin_) {
    const char* at = buffer_.data() + begin_;
    const size_t have = end_ - begin_;
    if (body_left_ > 0) {
      const uint64_t size = std::min<uint64_t>(have, body_left_);
      if (char* destination = Destination()) std::memcpy(destination, at, size);
      begin_ += size;
      Took(size);
      if (body_left_ == 0) TROUPE_RETURN_IF_ERROR(FinishFrame());
      continue;
    }
    if (ended_) return InvalidArgument("a frame after the last one");
    if (have < kFrameHeaderBytes) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const size_t head, FrameHeadBytes({at, have}));
    if (have < head) return absl::OkStatus();
    Shape shape;
    TROUPE_RETURN_IF_ERROR(DecodeFrameHead({at, head}, max_tensor_bytes_, &frame_, &shape));
    begin_ += head;
    TROUPE_RETURN_IF_ERROR(StartFrame(frame_, shape));
    body_left_ = frame_.length;
    if (body_left_ == 0) TROUPE_RETURN_IF_ERROR(FinishFrame());
  }
  return absl::OkStatus();
}

absl::Status FrameReader::StartFrame(const FrameHeader& header, const Shape& shape) {
  current_ = nullptr;
  switch (header.kind) {
    case FrameKind::kTensor:
      return StartTensor(header, shape);
    case FrameKind::kChunk:
      current_ = Find(header.transfer);
      if (current_ == nullptr) {
        return InvalidArgument("a chunk of transfer ", header.transfer, ", which is not under way");
      }
      if (header.length > current_->info.bytes - current_->received) {
        return InvalidArgument("a chunk of ", header.length, " bytes, where only ",
                               current_->info.bytes - current_->received, " are missing");
      }
      return absl::OkStatus();
    case FrameKind::kCredit:
      return absl::OkStatus();
    case FrameKind::kReject:
    case FrameKind::kMessage:
    case FrameKind::kGoodbye:
      text_.resize(header.length);
      return absl::OkStatus();
    default:
      return InvalidArgument("a ", FrameKindName(header.kind),
                             " frame on a stream that is open already");
  }
}

absl::Status FrameReader::StartTensor(const FrameHeader& header, const Shape& shape) {
  if (header.transfer <= last_transfer_) {
    return InvalidArgument("transfer ", header.transfer, " after ", last_transfer_,
                           "; frames are out of order");
  }
  last_transfer_ = header.transfer;
  if (transfers_.size() >= kMaxTransfers) {
    return InvalidArgument("more than ", kMaxTransfers, " tensors under way at once");
  }
  auto transfer = std::make_unique<Transfer>();
  transfer->id = header.transfer;
  transfer->info = {header.step, header.key, header.tag,  header.dead,
                    header.type, shape,      header.total};
  const uint64_t needed = DecodedBytes(header.type, shape, header.total);
  if (!credits_->Take(needed, &transfer->charge)) {
    return InvalidArgument("a tensor of ", needed, " bytes for which the peer has no credit (",
                           credits_->taken(), " of ", credits_->window(), " bytes are taken)");
  }
  transfer->why = handler_->Admit(transfer->info);
  if (transfer->why.ok() && !header.dead) {
    const bool plain = IsPlain(header.type);
    absl::StatusOr<Tensor> memory =
        plain ? Tensor::Allocate(header.type, shape, allocator_)
              : Tensor::Allocate(ElementType::kUint8, Shape({static_cast<int64_t>(header.total)}),
                                 HostAllocator());
    if (memory.ok()) {
      transfer->memory = *std::move(memory);
    } else {
      transfer->why = memory.status();
    }
  }
  current_ = transfer.get();
  transfers_.push_back(std::move(transfer));
  return absl::OkStatus();
}

absl::Status FrameReader::FinishFrame() {
  switch (frame_.kind) {
    case FrameKind::kTensor:
    case FrameKind::kChunk:
      return current_->received == current_->info.bytes ? FinishTensor() : absl::OkStatus();
    case FrameKind::kCredit:
      return handler_->OnCredit(static_cast<int>(frame_.key), frame_.total);
    case FrameKind::kReject:
      handler_->OnReject(frame_.step, frame_.key, frame_.tag, StatusOf(frame_.total, text_));
      return absl::OkStatus();
    case FrameKind::kMessage:
      handler_->OnMessage(frame_.key, frame_.tag, std::move(text_));
      text_.clear();
      return absl::OkStatus();
    default:
      ended_ = true;
      handler_->OnGoodbye(StatusOf(frame_.total, text_));
      return absl::OkStatus();
  }
}

absl::Status FrameReader::FinishTensor() {
  const auto at = std::find_if(transfers_.begin(), transfers_.end(),
                               [this](const auto& transfer) { return transfer.get() == current_; });
  const std::unique_ptr<Transfer> done = std::move(*at);
  transfers_.erase(at);
  current_ = nullptr;
  const IncomingTensor& info = done->info;
  if (!done->why.ok()) {
    handler_->OnDropped(info, done->charge, done->why);
    return absl::OkStatus();
  }
  Tensor& memory = done->memory;
  if (!info.dead && !IsPlain(info.type)) {
    TROUPE_ASSIGN_OR_RETURN(
        memory,
        DecodeElements(info.type, info.shape,
                       {static_cast<const char*>(memory.raw_data()), info.bytes}, allocator_));
  } else if (info.type == ElementType::kBool) {
    // Any other byte in a bool would be undefined behaviour for whoever reads it.
    uint8_t* at = static_cast<uint8_t*>(memory.mutable_raw_data());
    for (uint64_t i = 0; i < info.bytes; ++i) at[i] = at[i] != 0;
  }
  handler_->OnTensor(info, std::move(memory), done->charge);
  return absl::OkStatus();
}

FrameReader::Transfer* FrameReader::Find(uint64_t id) {
  for (const auto& transfer : transfers_) {
    if (transfer->id == id) return transfer.get();
  }
  return nullptr;
}

}  // namespace troupe
