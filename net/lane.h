/// One of the two streams of a connection: its socket, and what is sent over it. Includes Asio.
#ifndef TROUPE_NET_LANE_H_
#define TROUPE_NET_LANE_H_

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "net/byte_stream.h"
#include "net/io_loop.h"
#include "net/send_queue.h"

namespace troupe {

/// A queue and a token, as a mailbox has. Whoever queues something and finds the token free writes,
/// outside of the lock, until the queue is empty or the kernel takes no more; then the I/O thread
/// goes on. What others queue meanwhile goes with the writer's next batch. Reading belongs to the
/// I/O thread.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  /// Called on the I/O thread when what is sent does not arrive any more.
  using Failed = std::function<void(const absl::Status& why)>;

  /// `window`: the peer's credits.
  Lane(std::shared_ptr<IoLoop> loop, uint64_t window)
      : loop_(std::move(loop)), socket_(loop_->context()), queue_(window) {}
  /// Before anything else.
  void Attach(boost::asio::ip::tcp::socket socket, std::unique_ptr<ByteStream> stream,
              Failed failed);

  // Any thread.
  /// Calls `push(SendQueue*)`; false, and it is not called, if nothing more is to be sent.
  template <typename F>
  bool Queue(F push) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (state_ == State::kCutOff || state_ == State::kSilent || queue_.ended()) return false;
    push(&queue_);
    return true;
  }
  /// Writes, if the token is free, what has been queued. Within a `SendTogether`: at its end.
  void Kick();
  void KickNow();
  /// False if that is more than was taken.
  bool AddCredits(uint64_t bytes);
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  /// The kernel takes no more.
  bool blocked() const { return blocked_.load(std::memory_order_relaxed); }
  uint64_t queued_bytes() const;
  /// Nothing is sent or received any more; the socket stays one. Not after `End` has begun.
  void ShutDown();

  // On the I/O thread.
  IoResult Read(const iovec* buffers, int count) { return stream_->Read(buffers, count); }
  bool short_read_is_last() const { return stream_->short_read_is_last(); }
  /// What has been read from the socket may have been the word that more can be written.
  void LetWriterLook() {
    boost::system::error_code ignored;
    if (blocked()) socket_.cancel(ignored);
  }
  /// Calls `again(bool ok)` when reading can go on.
  template <typename F>
  void WaitToRead(const IoResult& result, F again) {
    LetWriterLook();
    WaitFor(&socket_, result, std::move(again));
  }
  /// What is queued is dropped, and the socket closed as soon as nobody writes to it.
  void End();

 private:
  /// Whose concern sending is. kWriting ends when the queue is empty, so that nothing queued is
  /// ever nobody's.
  ///
  ///     kIdle <--> kWriting --(End, error)--> kCutOff --> kSilent <--(End)-- kIdle
  enum class State {
    kIdle,     ///< Nobody writes: whoever queues something does.
    kWriting,  ///< Somebody has the token.
    kCutOff,   ///< Nothing more is to be sent; who has the token has not noticed yet.
    kSilent,   ///< Nothing more is sent, and the socket can be closed.
  };

  /// For the holder of the token. An exception out of it is the lane's failure.
  void Write() noexcept;
  void WriteAll();
  /// Writes on as soon as the kernel takes more.
  void WriteLater(const IoResult& result);
  /// Gives the token back for good.
  void LetGo();
  /// Has the owner told, unless the loop has ended.
  void Fail(const absl::Status& why);

  const std::shared_ptr<IoLoop> loop_;
  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<ByteStream> stream_;
  Failed failed_;
  bool over_ = false;  ///< Of the I/O thread: `End` has been called.

  mutable std::mutex mutex_;
  SendQueue queue_;             ///< Guarded by the mutex.
  State state_ = State::kIdle;  ///< Guarded by the mutex.

  Batch batch_;  ///< Of the token's holder.
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<bool> blocked_{false};
};

}  // namespace troupe

#endif  // TROUPE_NET_LANE_H_
