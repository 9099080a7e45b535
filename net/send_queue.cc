#include "net/send_queue.h"

#include <algorithm>
#include <cstring>

#include "devices/status_macros.h"
#include "net/tensor_codec.h"

namespace troupe {
namespace {

// A body this small is copied next to its header: cheaper than one more vector for the kernel.
constexpr size_t kCopiedBytes = 256;
// The kernel takes up to 1024 vectors.
constexpr size_t kMaxFramesInBatch = 128;

}  // namespace

absl::StatusOr<Outgoing> Outgoing::ForTensor(uint64_t step, uint64_t key, uint64_t tag, bool dead,
                                             Tensor tensor, uint64_t max_bytes) {
  Outgoing out;
  FrameHeader& header = out.header;
  header = {.kind = FrameKind::kTensor, .dead = dead, .step = step, .key = key, .tag = tag};
  if (dead) return out;
  if (!tensor.valid()) return InvalidArgument("there is no tensor to send");
  if (tensor.space() == MemorySpace::kDevice) {
    return InvalidArgument("a tensor in a GPU's memory must be copied to the host's");
  }
  header.type = tensor.type();
  header.rank = static_cast<uint8_t>(tensor.rank());
  out.shape = tensor.shape();
  uint64_t bytes = tensor.bytes();
  if (IsPlain(tensor.type())) {
    out.body = std::move(tensor);
    header.total = bytes;
  } else {
    std::string encoded;
    TROUPE_RETURN_IF_ERROR(EncodeElements(tensor, &encoded));
    header.total = encoded.size();
    bytes = std::max<uint64_t>(bytes, header.total);
    out.body = AsTensor(std::move(encoded));
  }
  if (bytes > max_bytes) {
    return InvalidArgument("a tensor of ", bytes, " bytes; the peer takes at most ", max_bytes);
  }
  return out;
}

uint64_t Outgoing::needed() const { return DecodedBytes(header.type, shape, header.total); }

void Batch::Advance(size_t bytes) {
  while (bytes > 0) {
    iovec& front = vectors_[next_];
    if (bytes < front.iov_len) {
      front.iov_base = static_cast<char*>(front.iov_base) + bytes;
      front.iov_len -= bytes;
      return;
    }
    bytes -= front.iov_len;
    ++next_;
  }
}

void Batch::Clear() {
  heads_.clear();
  parts_.clear();
  vectors_.clear();
  next_ = 0;
  tensors_.clear();
  strings_.clear();
}

void Batch::AddHead(const FrameHeader& header, absl::Span<const int64_t> dims) {
  const size_t size = kFrameHeaderBytes + 8 * dims.size(), at = heads_.size();
  heads_.resize(at + size);
  EncodeFrameHead(header, dims, heads_.data() + at);
  // Neighbours in the same memory are one vector.
  if (!parts_.empty() && parts_.back().data == nullptr) {
    parts_.back().size += size;
  } else {
    parts_.push_back({nullptr, at, size});
  }
}

void Batch::AddBody(const char* data, size_t size) {
  if (size == 0) return;
  if (size > kCopiedBytes) {
    parts_.push_back({data, 0, size});
    return;
  }
  heads_.insert(heads_.end(), data, data + size);
  parts_.back().size += size;
}

void Batch::Finish() {
  vectors_.clear();
  next_ = 0;
  for (const Part& part : parts_) {
    const char* data = part.data == nullptr ? heads_.data() + part.offset : part.data;
    vectors_.push_back({const_cast<char*>(data), part.size});
  }
}

void SendQueue::PushTensor(Outgoing tensor) {
  queued_bytes_ += tensor.header.total;
  waiting_.push_back(std::move(tensor));
}

bool SendQueue::PushUrgent(const FrameHeader& header, std::string body) {
  const uint64_t bytes = body.size() + kUrgentFrameBytes;
  if (bytes > kMaxUrgentBytes - urgent_bytes_) return false;
  urgent_bytes_ += bytes;
  urgent_.emplace_back(header, std::move(body));
  urgent_.back().first.length = urgent_.back().second.size();
  return true;
}

void SendQueue::PushLast(const FrameHeader& header, std::string body) {
  last_.emplace(header, std::move(body));
  last_->first.length = last_->second.size();
}

std::vector<Outgoing> SendQueue::Clear() {
  std::vector<Outgoing> dropped;
  for (std::deque<Outgoing>* queue : {&active_, &waiting_}) {
    for (Outgoing& tensor : *queue) dropped.push_back(std::move(tensor));
    queue->clear();
  }
  urgent_.clear();
  urgent_bytes_ = 0;
  last_.reset();
  queued_bytes_ = 0;
  return dropped;
}

bool SendQueue::AddPart(Outgoing* tensor, Batch* batch, uint64_t* budget) {
  const uint64_t size = std::min(tensor->left(), kChunkBytes);
  FrameHeader& header = tensor->header;
  if (header.transfer == 0) {
    header.transfer = next_transfer_++;
    header.length = size;
    batch->AddHead(header, tensor->shape.dims());
  } else {
    batch->AddHead({.kind = FrameKind::kChunk, .length = size, .transfer = header.transfer}, {});
  }
  if (size > 0) {
    batch->AddBody(static_cast<const char*>(tensor->body.raw_data()) + tensor->sent, size);
  }
  if (size > kCopiedBytes) batch->tensors_.push_back(tensor->body);
  tensor->sent += size;
  queued_bytes_ -= size;
  *budget -= std::min(*budget, size + kFrameHeaderBytes);
  return tensor->left() == 0;
}

void SendQueue::AddUrgent(std::pair<FrameHeader, std::string>* frame, Batch* batch,
                          uint64_t* budget) {
  batch->AddHead(frame->first, {});
  *budget -= std::min<uint64_t>(*budget, frame->second.size() + kFrameHeaderBytes);
  batch->strings_.push_back(std::move(frame->second));
  batch->AddBody(batch->strings_.back().data(), batch->strings_.back().size());
}

bool SendQueue::NextBatch(Batch* batch) {
  uint64_t budget = kChunkBytes;
  size_t frames = 0;
  for (; !urgent_.empty() && frames < kMaxFramesInBatch && budget > 0; ++frames) {
    urgent_bytes_ -= urgent_.front().second.size() + kUrgentFrameBytes;
    AddUrgent(&urgent_.front(), batch, &budget);
    urgent_.pop_front();
  }
  while (frames < kMaxFramesInBatch && budget > 0) {
    // A new tensor goes before those that have had a turn.
    if (!waiting_.empty() && active_.size() < kMaxActive &&
        credits_.TryTake(waiting_.front().needed())) {
      active_.push_front(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    if (active_.empty()) break;
    ++frames;
    Outgoing current = std::move(active_.front());
    active_.pop_front();
    if (!AddPart(&current, batch, &budget)) active_.push_back(std::move(current));
  }
  if (last_ && frames == 0 && waiting_.empty()) {
    AddUrgent(&*last_, batch, &budget);
    last_.reset();
    finished_ = true;
    ++frames;
  }
  batch->Finish();
  return frames > 0;
}

}  // namespace troupe
