/// Queues of tuples of tensors.
#ifndef TROUPE_KERNELS_QUEUES_QUEUE_H_
#define TROUPE_KERNELS_QUEUES_QUEUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

/// An element of a queue: one tensor for each component.
using Tuple = std::vector<Tensor>;

/// What a queue is like; fixed for its life.
struct QueueOptions {
  enum class Kind : uint8_t { kFifo, kPaddingFifo, kRandomShuffle, kPriority };
  Kind kind = Kind::kFifo;
  std::vector<ElementType> types;
  std::vector<PartialShape> shapes;  ///< Of the components; none: any.
  int64_t capacity = INT64_MAX;
  int64_t min_after_dequeue = 0;  ///< Elements that stay behind to be chosen from.
  int64_t seed = 0, seed2 = 0;
};

/// The elements of a queue, in the order that its kind gives them out. Thread-compatible.
class QueueElements {
 public:
  virtual ~QueueElements() = default;
  virtual void Put(Tuple tuple) = 0;
  /// There must be one.
  virtual Tuple Take() = 0;
  /// Elements that were just taken, in that order, come first again.
  virtual void PutBack(std::vector<Tuple> tuples) = 0;
  virtual int64_t size() const = 0;
};
std::unique_ptr<QueueElements> MakeQueueElements(const QueueOptions& options);

/// A queue. Those who put in wait in one line while it is full, those who take in another while it
/// has not enough; a queue that is closed takes nothing more in (Cancelled) and, drained, gives
/// OutOfRange. Each of the calls ends with `done`, maybe later and on another thread. Errors name
/// the queue. Thread-safe.
class Queue final : public WaitingResource {
 public:
  static constexpr char kKind[] = "queue";

  Queue(std::string name, QueueOptions options);

  const QueueOptions& options() const { return options_; }
  std::string DebugString() const override;

  /// Inputs [1, ...) of the kernel are the components of one tuple, or of several that are stacked
  /// (`many`). InvalidArgument if they are not what the queue holds.
  void Enqueue(KernelContext& ctx, KernelDone done, bool many);
  /// Puts out one tuple.
  void Dequeue(KernelContext& ctx, KernelDone done);
  /// Puts out `n` tuples, stacked; where `up_to`, those that are left of a closed queue if they are
  /// fewer, but at least one. The shapes of components must have been given.
  void DequeueMany(KernelContext& ctx, KernelDone done, int64_t n, bool up_to);
  /// Closes the queue once those before have put in what they wait with; or at once
  /// (`cancel_pending`), when these are Cancelled. Cancelled if it is closed already.
  void Close(KernelContext& ctx, KernelDone done, bool cancel_pending);
  int64_t Size() const;
  bool closed() const;

 private:
  struct EnqueueCall;
  struct DequeueCall;
  enum { kEnqueues, kDequeues };

  absl::Status CheckInputs(const KernelContext& ctx, bool many, int64_t* count) const;

  void Serve() override;
  void Withdraw(Call* call) override;
  /// True if the call is over or has made progress.
  bool ServeEnqueue(Line* line);
  bool ServeDequeue(Line* line);

  QueueOptions options_;
  std::unique_ptr<QueueElements> elements_;
  bool closed_ = false;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_QUEUE_H_
