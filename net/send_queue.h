/// What waits to be written to one stream, and in which order it goes.
///
/// Tensors start in the order in which they were queued, as credits allow. A large one goes in
/// chunks, in turn with up to three others, so that a tensor of a megabyte does not wait for one of
/// a gigabyte. Credits, refusals, messages and the like need no credits and go first.
#ifndef TROUPE_NET_SEND_QUEUE_H_
#define TROUPE_NET_SEND_QUEUE_H_

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/tensor.h"
#include "net/credits.h"
#include "net/frame.h"

namespace troupe {

/// A tensor under way: its header and the memory that is sent, the tensor's own or its serialized
/// form.
struct Outgoing {
  FrameHeader header;
  Shape shape;
  Tensor body;
  uint64_t sent = 0;

  uint64_t left() const { return header.total - sent; }
  /// Memory that it takes where it is received.
  uint64_t needed() const;

  /// A tensor to send. Unimplemented for variants without a form; InvalidArgument for tensors that
  /// are invalid (and not dead), larger than `max_bytes`, or not in the host's memory.
  static absl::StatusOr<Outgoing> ForTensor(uint64_t step, uint64_t key, uint64_t tag, bool dead,
                                            Tensor tensor, uint64_t max_bytes);
};

/// Frames that are being written: one gathered write, or several until all is written. Keeps alive
/// what it points to. Thread-compatible.
class Batch {
 public:
  bool done() const { return next_ == vectors_.size(); }
  /// What is left to write.
  absl::Span<const iovec> rest() const { return absl::MakeConstSpan(vectors_).subspan(next_); }
  /// So many bytes of it were written.
  void Advance(size_t bytes);
  /// Lets go of everything.
  void Clear();

 private:
  friend class SendQueue;
  struct Part {
    const char* data;  ///< nullptr: in `heads_`, at `offset`.
    size_t offset;
    size_t size;
  };

  void AddHead(const FrameHeader& header, absl::Span<const int64_t> dims);
  void AddBody(const char* data, size_t size);
  void Finish();

  std::vector<char> heads_;  ///< Headers, and bodies too small to be worth a vector.
  std::vector<Part> parts_;
  std::vector<iovec> vectors_;
  size_t next_ = 0;
  std::vector<Tensor> tensors_;
  std::deque<std::string> strings_;
};

/// Thread-compatible: the stream's owner guards it.
class SendQueue {
 public:
  static constexpr uint64_t kChunkBytes = 256 << 10;
  static constexpr size_t kMaxActive = 4;

  explicit SendQueue(uint64_t window) : credits_(window) {}

  /// Frames that need no credits, and what is kept of each besides its body.
  static constexpr uint64_t kMaxUrgentBytes = uint64_t{256} << 20;
  static constexpr uint64_t kUrgentFrameBytes = 128;

  void PushTensor(Outgoing tensor);
  /// A frame that needs no credits; `header.length` is set here. False, and it is dropped, if more
  /// than `kMaxUrgentBytes` would wait: the peer does not read what it is told.
  bool PushUrgent(const FrameHeader& header, std::string body);
  /// The last frame of the stream, after all that is queued.
  void PushLast(const FrameHeader& header, std::string body);
  /// Nothing may be pushed after the last frame.
  bool ended() const { return last_.has_value() || finished_; }
  /// The last frame has been taken into a batch.
  bool finished() const { return finished_; }
  /// False if that is more than was taken.
  bool AddCredits(uint64_t bytes) { return credits_.Give(bytes); }
  /// Drops everything. The result is what was dropped, to be destroyed outside of locks.
  std::vector<Outgoing> Clear();

  /// Fills `batch` (which is clear) with what is to be written next; false if there is nothing, or
  /// no credit for it.
  bool NextBatch(Batch* batch);

  /// Bytes of tensors not yet taken into a batch.
  uint64_t queued_bytes() const { return queued_bytes_; }

 private:
  void AddUrgent(std::pair<FrameHeader, std::string>* frame, Batch* batch, uint64_t* budget);
  /// Adds the next part of `tensor` to the batch; true if that was the last one.
  bool AddPart(Outgoing* tensor, Batch* batch, uint64_t* budget);

  SendCredits credits_;
  uint64_t next_transfer_ = 1;
  uint64_t queued_bytes_ = 0;
  std::deque<std::pair<FrameHeader, std::string>> urgent_;
  uint64_t urgent_bytes_ = 0;
  std::deque<Outgoing> active_;  ///< Sent in part; whose turn it is comes first.
  std::deque<Outgoing> waiting_;
  std::optional<std::pair<FrameHeader, std::string>> last_;
  bool finished_ = false;
};

}  // namespace troupe

#endif  // TROUPE_NET_SEND_QUEUE_H_
