/// Takes the bytes of a stream apart into tensors and messages.
#ifndef TROUPE_NET_FRAME_READER_H_
#define TROUPE_NET_FRAME_READER_H_

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "devices/allocator.h"
#include "devices/tensor.h"
#include "net/credits.h"
#include "net/frame.h"

namespace troupe {

/// What a peer says about a tensor before any of its elements come.
struct IncomingTensor {
  uint64_t step = 0;
  uint64_t key = 0;
  uint64_t tag = 0;
  bool dead = false;
  ElementType type = ElementType::kInvalid;  ///< kInvalid if dead.
  Shape shape;
  uint64_t bytes = 0;  ///< On the wire.
};

/// The reading side of one stream, as a role: it says where the next bytes are to be put and is
/// told how many came. A large tensor's elements are put straight into its own memory. Every error
/// of the peer ends the stream; memory is taken only after a frame has been checked, the peer has
/// credit for it, and the handler has admitted it. Thread-compatible.
class FrameReader {
 public:
  /// Who is told what came, from within `Consume`.
  class Handler {
   public:
    virtual ~Handler() = default;
    /// Not OK: the tensor is not wanted; its bytes are skipped.
    virtual absl::Status Admit(const IncomingTensor& info) = 0;
    /// `charge` is to be released when the user is done with the tensor.
    virtual void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) = 0;
    /// A tensor that was not admitted, or for which there was no memory. The charge is to be
    /// released.
    virtual void OnDropped(const IncomingTensor& info, uint64_t charge,
                           const absl::Status& why) = 0;
    /// Credits for what was sent on a lane. An error ends the stream.
    virtual absl::Status OnCredit(int lane, uint64_t bytes) = 0;
    /// The peer did not take a tensor.
    virtual void OnReject(uint64_t step, uint64_t key, uint64_t tag, const absl::Status& why) = 0;
    virtual void OnMessage(uint64_t type, uint64_t id, std::string body) = 0;
    virtual void OnGoodbye(const absl::Status& why) = 0;
  };

  /// Tensors that may be under way at once: more than a sender of ours ever has.
  static constexpr size_t kMaxTransfers = 16;

  /// `bulk`: a stream of large tensors, of which as little as possible is copied; else one of small
  /// frames, which are read many at a time.
  FrameReader(uint64_t max_tensor_bytes, bool bulk, ReceiveCredits* credits, Handler* handler,
              Allocator* allocator = HostAllocator());
  ~FrameReader();

  /// Where the next bytes go: one or two vectors, in this order.
  int NextBuffers(iovec buffers[2]);
  /// So many bytes were put there. InvalidArgument, FailedPrecondition: the stream is of no use any
  /// more.
  absl::Status Consume(size_t bytes);

  /// Lets go of the memory of tensors that will not be finished. The last call.
  void Abandon();
  /// A frame or a tensor has begun and not ended.
  bool midway() const { return body_left_ > 0 || end_ > begin_ || !transfers_.empty(); }
  /// Bytes of tensors that have come.
  uint64_t tensor_bytes() const { return tensor_bytes_; }
  /// The peer has said that nothing more will come.
  bool ended() const { return ended_; }

 private:
  struct Transfer;

  absl::Status Parse();
  absl::Status StartFrame(const FrameHeader& header, const Shape& shape);
  absl::Status StartTensor(const FrameHeader& header, const Shape& shape);
  absl::Status FinishFrame();
  absl::Status FinishTensor();
  Transfer* Find(uint64_t id);
  /// Where the rest of the current body goes; nullptr if it is skipped.
  char* Destination();
  void Took(uint64_t bytes);

  const uint64_t max_tensor_bytes_;
  const bool bulk_;
  ReceiveCredits* const credits_;
  Handler* const handler_;
  Allocator* const allocator_;

  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  ///< What of the buffer has been read and not taken.
  uint64_t direct_ = 0;  ///< Size of the first vector that `NextBuffers` gave out, if direct.

  FrameHeader frame_;  ///< The current one, while its body comes.
  uint64_t body_left_ = 0;
  Transfer* current_ = nullptr;
  std::string text_;  ///< Body of frames that are no tensors.
  std::vector<std::unique_ptr<Transfer>> transfers_;
  uint64_t last_transfer_ = 0;
  uint64_t tensor_bytes_ = 0;
  bool ended_ = false;
};

}  // namespace troupe

#endif  // TROUPE_NET_FRAME_READER_H_
