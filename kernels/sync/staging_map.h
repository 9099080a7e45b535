/// Staging maps: tuples under keys, put in and taken out by parts.
#ifndef TROUPE_KERNELS_SYNC_STAGING_MAP_H_
#define TROUPE_KERNELS_SYNC_STAGING_MAP_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/sync/staging_area.h"

namespace troupe {

class StagingMap;
using StagingMapOptions = StageLimits<StagingMap>;

/// All that a staging map holds. A value; tensors are shared.
struct StagingMapState {
  StagingMapOptions options;
  std::vector<ElementType> types;  ///< Of the components; none if there are no tuples.
  // By key; components that have been taken, or have not come, are invalid.
  std::map<int64_t, Tuple> complete, incomplete;
};

/// Tuples of tensors under int64 keys. A tuple whose components come one by one is incomplete until
/// it has them all; only complete ones are given out, whole or by parts, and one of which nothing
/// is left is gone. The components' types are those of the tuples that are there. Who puts in waits
/// for room, who takes out for the key; nobody waits for somebody else's. Thread-safe.
class StagingMap : public WaitingResource {
  enum { kPuts, kTakes };

 public:
  static constexpr char kKind[] = "staging map";

  class PutCall : public Call {
   public:
    explicit PutCall(StagingMap* map) : Call(map, kPuts) {}

    int64_t key = 0;
    std::vector<ElementType> types;  ///< Of all components.
    std::vector<int64_t> indices;    ///< Of those that are put in, increasing.
    Tuple values;

   private:
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
    absl::StatusOr<Progress> PutPart(StagingMap* map, int64_t bytes);
    absl::Status AlreadyThere(const StagingMap& map) const;
  };

  /// Takes components of a key, or looks at them, or drops everything.
  class TakeCall : public Call {
   public:
    explicit TakeCall(StagingMap* map) : Call(map, kTakes) {}

    enum class What : uint8_t { kKey, kFirstKey, kLookAt, kClear };
    What what = What::kKey;
    int64_t key = 0;
    std::vector<int64_t> indices;    ///< Increasing.
    std::vector<ElementType> types;  ///< That are expected of them; else they stay.

   protected:
    /// Where the first key is asked for, output 0 is the key.
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;

    Tuple taken_;
  };

  StagingMap(std::string name, const StagingMapOptions& options)
      : WaitingResource(std::move(name), Order::kAny, Order::kAny), options_(options) {}

  const StagingMapOptions& options() const { return options_; }
  std::string DebugString() const override { return StrCat(kKind, " '", name(), "'"); }
  int64_t Size() const { return size_.load(std::memory_order_acquire); }
  int64_t IncompleteSize() const { return incomplete_size_.load(std::memory_order_acquire); }

  /// `indices` of all components, whose `types` are those of `values` then, or of some.
  void Put(int64_t key, std::vector<ElementType> types, std::vector<int64_t> indices, Tuple values,
           CancellationToken* token, Done done);
  void Take(int64_t key, std::vector<int64_t> indices, std::vector<ElementType> types,
            CancellationToken* token, Done done) {
    Ask(TakeCall::What::kKey, key, std::move(indices), std::move(types), token, std::move(done));
  }
  /// Of the smallest key, which comes before the components.
  void TakeFirst(std::vector<int64_t> indices, std::vector<ElementType> types,
                 CancellationToken* token, Done done) {
    Ask(TakeCall::What::kFirstKey, 0, std::move(indices), std::move(types), token, std::move(done));
  }
  void LookAt(int64_t key, std::vector<int64_t> indices, std::vector<ElementType> types,
              CancellationToken* token, Done done) {
    Ask(TakeCall::What::kLookAt, key, std::move(indices), std::move(types), token, std::move(done));
  }
  void Clear(Done done) { Ask(TakeCall::What::kClear, 0, {}, {}, nullptr, std::move(done)); }
  /// What the map holds now; nobody waits for it, and it changes nothing.
  void Save(SaveDone<StagingMapState> done);
  /// Replaces what it holds; the limits stay as they are. InvalidArgument, and nothing has changed:
  /// it is no state of a map.
  void Restore(StagingMapState state, RestoreDone done);

 private:
  void Ask(TakeCall::What what, int64_t key, std::vector<int64_t> indices,
           std::vector<ElementType> types, CancellationToken* token, Done done);
  bool HasRoomFor(int64_t bytes) const {
    return options_.memory_limit == 0 || bytes_ + bytes <= options_.memory_limit;
  }
  void Served() noexcept override {
    size_.store(static_cast<int64_t>(complete_.size()), std::memory_order_release);
    incomplete_size_.store(static_cast<int64_t>(incomplete_.size()), std::memory_order_release);
  }

  const StagingMapOptions options_;
  std::vector<ElementType> types_;       ///< Of the components, while there are tuples.
  std::map<int64_t, Tuple> complete_;    ///< What has been taken of one is invalid.
  std::map<int64_t, Tuple> incomplete_;  ///< What is missing of one is invalid.
  int64_t bytes_ = 0;
  std::atomic<int64_t> size_{0}, incomplete_size_{0};  ///< For those who do not play.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_SYNC_STAGING_MAP_H_
