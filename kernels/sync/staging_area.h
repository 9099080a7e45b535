/// Staging areas: tuples that one step leaves for another.
#ifndef TROUPE_KERNELS_SYNC_STAGING_AREA_H_
#define TROUPE_KERNELS_SYNC_STAGING_AREA_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

class TupleStage;

/// What limits a staging area or map, `Stage`; fixed for its life. 0: nothing.
template <typename Stage>
struct StageLimits {
  using Machine = Stage;
  int64_t capacity = 0;      ///< Complete tuples.
  int64_t memory_limit = 0;  ///< Bytes of all tensors, those of incomplete tuples included.
};
using StagingAreaOptions = StageLimits<TupleStage>;

/// All that a staging area holds. A value; tensors are shared.
struct StagingAreaState {
  StagingAreaOptions options;
  std::vector<Tuple> tuples;  ///< The first one first.
};

/// Bytes that the elements of tensors take, those of strings included.
int64_t TupleBytes(const Tuple& tuple);
/// InvalidArgument if the tensors are not of these types; `what` says whose they are.
absl::Status CheckTypes(const std::string& what, const Tuple& tuple,
                        const std::vector<ElementType>& types);

/// Tuples of any types in the order in which they came. Who puts in waits for room, in order; who
/// takes out waits for a tuple. It is never closed. Thread-safe.
class TupleStage : public WaitingResource {
  enum { kPuts, kTakes };

 public:
  static constexpr char kKind[] = "staging area";

  class PutCall : public Call {
   public:
    explicit PutCall(TupleStage* area) : Call(area, kPuts) {}

    Tuple tuple;

   private:
    /// ResourceExhausted if it never has room.
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
  };

  /// Takes the first tuple, or looks at one, or drops them all.
  class TakeCall : public Call {
   public:
    explicit TakeCall(TupleStage* area) : Call(area, kTakes) {}

    enum class What : uint8_t { kFirst, kLookAt, kClear };
    What what = What::kFirst;
    int64_t index = 0;               ///< To look at.
    std::vector<ElementType> types;  ///< That are expected; a tuple of others stays.

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;

    Tuple taken_;
  };

  TupleStage(std::string name, const StagingAreaOptions& options)
      : WaitingResource(std::move(name), Order::kInOrder, Order::kAny), options_(options) {}

  const StagingAreaOptions& options() const { return options_; }
  std::string DebugString() const override { return StrCat(kKind, " '", name(), "'"); }
  int64_t Size() const { return size_.load(std::memory_order_acquire); }

  void Put(Tuple tuple, CancellationToken* token, Done done);
  void Take(std::vector<ElementType> types, CancellationToken* token, Done done) {
    Ask(TakeCall::What::kFirst, 0, std::move(types), token, std::move(done));
  }
  /// The tuple that has `index` before it, once it is there. It stays.
  void LookAt(int64_t index, std::vector<ElementType> types, CancellationToken* token, Done done) {
    Ask(TakeCall::What::kLookAt, index, std::move(types), token, std::move(done));
  }
  void Clear(Done done) { Ask(TakeCall::What::kClear, 0, {}, nullptr, std::move(done)); }
  /// What the area holds now; nobody waits for it, and it changes nothing.
  void Save(SaveDone<StagingAreaState> done);
  /// Replaces what it holds. The limits stay as they are: what is above them stays, and who puts in
  /// waits. InvalidArgument, and nothing has changed: a component of a tuple is not there.
  void Restore(StagingAreaState state, RestoreDone done);

 private:
  void Ask(TakeCall::What what, int64_t index, std::vector<ElementType> types,
           CancellationToken* token, Done done);
  void Served() noexcept override {
    size_.store(static_cast<int64_t>(tuples_.size()), std::memory_order_release);
  }

  struct Staged {
    Tuple tuple;
    int64_t bytes;
  };
  const StagingAreaOptions options_;
  std::deque<Staged> tuples_;
  int64_t bytes_ = 0;
  std::atomic<int64_t> size_{0};  ///< Of `tuples_`, for those who do not play.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_SYNC_STAGING_AREA_H_
