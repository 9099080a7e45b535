/// Barriers: tuples whose components arrive one by one, each under a key.
#ifndef TROUPE_KERNELS_SYNC_BARRIER_H_
#define TROUPE_KERNELS_SYNC_BARRIER_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

class TupleBarrier;

/// What a barrier is like; fixed for its life.
struct BarrierOptions {
  using Machine = TupleBarrier;
  std::vector<ElementType> types;
  std::vector<Shape> shapes;  ///< Of the components, as many as types.
  bool operator==(const BarrierOptions&) const = default;
};

/// All that a barrier knows. A value; tensors are shared.
struct BarrierState {
  struct Entry {
    int64_t index = 0;
    std::string key;
    Tuple values;  ///< Those that are not there are invalid.
  };
  int64_t next_index = std::numeric_limits<int64_t>::min();
  bool closed = false, cancelled = false;
  std::vector<Entry> ready;       ///< The first to be taken first.
  std::vector<Entry> incomplete;  ///< Sorted by key.
};

/// Collects tuples. A key is incomplete until it has a value for every component; complete, it
/// stands in line to be taken, in the order in which keys were first seen: those of one insertion
/// share an index. Insertions never wait. A barrier that is closed takes no new key in (Cancelled);
/// what is incomplete may be completed unless it was closed with `cancel_pending`. Errors name the
/// barrier. Thread-safe.
class TupleBarrier : public WaitingResource {
  enum { kTakes, kChanges };

  struct Incomplete {
    int64_t index = 0;
    Tuple values;  ///< Those that are not there are invalid.
  };
  struct Ready {
    std::string key;
    Tuple values;
  };

 public:
  static constexpr char kKind[] = "barrier";

  /// Gives keys a value for one component: all of them, or, after an error, none.
  class InsertCall : public Call {
   public:
    explicit InsertCall(TupleBarrier* barrier) : Call(barrier, kChanges) {}

    int64_t component = 0;
    Tensor keys, values;  ///< Strings; one row for each.

   private:
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
    absl::Status CheckKeys(const TupleBarrier& barrier) const;
  };

  class CloseCall : public Call {
   public:
    explicit CloseCall(TupleBarrier* barrier) : Call(barrier, kChanges) {}

    bool cancel_pending = false;  ///< What is incomplete is dropped.

   private:
    absl::StatusOr<Progress> Serve() override;
  };

  /// Takes complete tuples: outputs are indices, keys, and the components, stacked.
  class TakeCall : public Call {
   public:
    explicit TakeCall(TupleBarrier* barrier) : Call(barrier, kTakes) {}

    int64_t n = 1;
    bool allow_small_batch = false;  ///< Of a closed barrier, what there is.

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
    void Withdraw() override;

    bool waited_ = false;
    std::vector<std::pair<int64_t, Ready>> taken_;  ///< Go back if the call fails.
  };

  TupleBarrier(std::string name, BarrierOptions options)
      : WaitingResource(std::move(name)), options_(std::move(options)) {}

  const BarrierOptions& options() const { return options_; }
  std::string DebugString() const override { return StrCat("barrier '", name(), "'"); }

  /// `keys` is a vector of strings, `values` has a row for each. InvalidArgument if they do not fit
  /// or a key has a value for the component already.
  void Insert(int64_t component, Tensor keys, Tensor values, CancellationToken* token, Done done);
  /// Indices, keys and components of `n` tuples, once as many are complete. OutOfRange if a closed
  /// barrier cannot have as many any more.
  void Take(int64_t n, bool allow_small_batch, CancellationToken* token, Done done);
  /// Cancelled if it is closed already; with `cancel_pending` it may be closed once more.
  void Close(bool cancel_pending, Done done);
  /// What the barrier is now; nobody waits for it, and it changes nothing.
  void Save(SaveDone<BarrierState> done);
  /// Replaces what it holds. InvalidArgument, and nothing has changed: it is the state of a barrier
  /// with other components, or of none.
  void Restore(BarrierState state, RestoreDone done);

  int64_t ReadySize() const { return ready_size_.load(std::memory_order_acquire); }
  int64_t IncompleteSize() const { return incomplete_size_.load(std::memory_order_acquire); }

 private:
  void Served() noexcept override;
  absl::Status CheckState(const BarrierState& state) const;

  const BarrierOptions options_;
  int64_t next_index_ = std::numeric_limits<int64_t>::min();
  absl::flat_hash_map<std::string, Incomplete> incomplete_;
  std::multimap<int64_t, Ready> ready_;  ///< By index; of one index, as they were completed.
  bool closed_ = false, cancelled_ = false;
  std::atomic<int64_t> ready_size_{0}, incomplete_size_{0};  ///< For those who do not play.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_SYNC_BARRIER_H_
