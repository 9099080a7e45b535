/// What the libraries of CUDA prepare for some shapes is kept, for all nodes and sessions.
#ifndef TROUPE_KERNELS_CUDA_PLAN_CACHE_H_
#define TROUPE_KERNELS_CUDA_PLAN_CACHE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "devices/status_macros.h"

namespace troupe::cuda {

/// The plans that were used last, `limit` at most. Key is hashed by Abseil. Thread-safe.
template <typename Key, typename Plan>
class PlanCache {
 public:
  explicit PlanCache(size_t limit) : limit_(limit) {}

  /// The plan for `key`, which `make()` (giving absl::StatusOr<std::shared_ptr<const Plan>>) makes
  /// if there is none: one at a time. Errors are its own and are not kept.
  template <typename Make>
  absl::StatusOr<std::shared_ptr<const Plan>> Get(const Key& key, Make make) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = plans_.find(key);
    if (found != plans_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, make());
    order_.emplace_front(key, plan);
    plans_.emplace(key, order_.begin());
    if (order_.size() > limit_) {
      plans_.erase(order_.back().first);
      order_.pop_back();
    }
    return plan;
  }

 private:
  using Order = std::list<std::pair<Key, std::shared_ptr<const Plan>>>;

  const size_t limit_;
  std::mutex mutex_;
  Order order_;  ///< The last used first.
  absl::flat_hash_map<Key, typename Order::iterator> plans_;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_PLAN_CACHE_H_
