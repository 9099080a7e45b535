/// Queues of tuples of tensors.
#ifndef TROUPE_KERNELS_QUEUES_QUEUE_H_
#define TROUPE_KERNELS_QUEUES_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

class Device;

/// What a queue is like; fixed for its life.
struct QueueOptions {
  enum class Kind : uint8_t { kFifo, kPaddingFifo, kRandomShuffle, kPriority };
  Kind kind = Kind::kFifo;
  std::vector<ElementType> types;
  std::vector<PartialShape> shapes;  ///< Of the components; none: any.
  int64_t capacity = INT64_MAX;
  int64_t min_after_dequeue = 0;  ///< Elements that stay behind to be chosen from.
  int64_t seed = 0, seed2 = 0;
  /// Whose memory kernels leave elements in: for those of this device alone. nullptr: the host's.
  const Device* device = nullptr;
};

/// All that a queue knows: what another one, of another process say, needs to go on with the same
/// elements in the same order. A value; tensors are shared.
struct QueueState {
  bool closed = false;
  bool closing = false;         ///< It closes when all of `waiting` are in.
  std::string generator;        ///< Where that of a shuffling queue is.
  std::vector<Tuple> elements;  ///< In the order in which the kind keeps them.
  std::vector<Tuple> waiting;   ///< Stand before the full queue, the first one first.
  /// Of somebody who waits, a call with several tuples once; not restored.
  int64_t num_waiting_calls = 0;
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

  /// Fills `elements` and `generator`.
  virtual void Save(QueueState* state) const = 0;
  /// Replaces what is here. InvalidArgument, and nothing has changed: the generator is another
  /// one's.
  virtual absl::Status Restore(std::vector<Tuple> elements, const std::string& generator) = 0;
};
std::unique_ptr<QueueElements> MakeQueueElements(const QueueOptions& options);

/// A queue of tuples, one tensor for each component. Those who put in wait in one line while it is
/// full, those who take in another while it has not enough; a queue that is closed takes nothing
/// more in (Cancelled) and, drained, gives OutOfRange. Errors name the queue. Thread-safe.
class Queue : public WaitingResource {
  enum { kPuts, kTakes };

 public:
  static constexpr char kKind[] = "queue";

  /// Puts tuples in, or closes the queue when its turn comes.
  class PutCall : public Call {
   public:
    explicit PutCall(Queue* queue) : Call(queue, kPuts) {}

    enum class Close : uint8_t { kNo, kAfterPending, kNow };
    Close close = Close::kNo;
    bool many = false;  ///< Several tuples, stacked.
    Tuple components;

   private:
    friend class Queue;
    int64_t count() const { return many ? components[0].dim(0) : 1; }
    /// Tuple `i` of several.
    Tuple Row(int64_t i) const;
    absl::Status Check(bool* trivial) const override;
    void Arrive() noexcept override;
    absl::StatusOr<Progress> Serve() override;

    int64_t next_ = 0;        ///< So many are in.
    bool of_nobody_ = false;  ///< Its caller was in another process.
  };

  class TakeCall : public Call {
   public:
    explicit TakeCall(Queue* queue) : Call(queue, kTakes) {}

    bool many = false, up_to = false;
    int64_t n = 1;

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
    void Withdraw() override;

    std::vector<Tuple> taken_;  ///< Go back if the call fails.
  };

  Queue(std::string name, QueueOptions options);

  const QueueOptions& options() const { return options_; }
  std::string DebugString() const override;

  // `token`, which may be nullptr and outlives the call, ends its wait.

  /// Puts in one tuple. InvalidArgument if it is not what the queue holds.
  void Enqueue(Tuple tuple, CancellationToken* token, Done done) {
    Put(std::move(tuple), false, PutCall::Close::kNo, token, std::move(done));
  }
  /// Several tuples, stacked along dimension 0.
  void EnqueueMany(Tuple stacked, CancellationToken* token, Done done) {
    Put(std::move(stacked), true, PutCall::Close::kNo, token, std::move(done));
  }
  void Dequeue(CancellationToken* token, Done done) {
    Take(1, false, false, token, std::move(done));
  }
  /// `n` tuples, stacked; where `up_to`, those that are left of a closed queue if they are fewer,
  /// but at least one. InvalidArgument if the shapes of components have not been given.
  void DequeueMany(int64_t n, bool up_to, CancellationToken* token, Done done) {
    Take(n, true, up_to, token, std::move(done));
  }
  /// Closes the queue once those before have put in what they wait with; or at once
  /// (`cancel_pending`), when these are Cancelled. Cancelled if it is closed already.
  void Close(bool cancel_pending, Done done) {
    Put({}, false, cancel_pending ? PutCall::Close::kNow : PutCall::Close::kAfterPending, nullptr,
        std::move(done));
  }
  /// What the queue is now, all at once; nobody waits for it, and it changes nothing. Calls `done`
  /// as calls do.
  void Save(std::function<void(absl::StatusOr<QueueState>)> done);
  /// Replaces what the queue holds. Tuples that wait are put in when there is room, as though
  /// somebody had called. InvalidArgument: it is the state of a queue of another kind.
  void Restore(QueueState state, std::function<void(absl::Status)> done);

  int64_t Size() const { return size_.load(std::memory_order_acquire); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  class SaveCall;
  class RestoreCall;

  void Put(Tuple tuple, bool many, PutCall::Close close, CancellationToken* token, Done done);
  /// A put in the line, of nobody's.
  void PutLater(Tuple tuple, PutCall::Close close);
  absl::Status CheckTuple(const Tuple& tuple) const;
  void Take(int64_t n, bool many, bool up_to, CancellationToken* token, Done done);
  void Served() noexcept override { size_.store(elements_->size(), std::memory_order_release); }

  const QueueOptions options_;
  const std::unique_ptr<QueueElements> elements_;
  std::atomic<bool> closed_{false};
  std::atomic<int64_t> size_{0};  ///< Of `elements_`, for those who do not play.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_QUEUE_H_
