/// Containers: named sets of resources that outlive steps, and sessions where these share a
/// runtime.
#ifndef TROUPE_ACTORS_STATE_CONTAINERS_H_
#define TROUPE_ACTORS_STATE_CONTAINERS_H_

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "kernels/variable.h"

namespace troupe {

/// All containers of a device. "" names the default container. Thread-safe.
class Containers final : public ResourceProvider {
 public:
  static constexpr std::string_view kDefault = "localhost";

  ~Containers() override;

  absl::StatusOr<RefPtr<Variable>> FindOrCreateVariable(std::string_view container,
                                                        std::string_view name, ElementType type,
                                                        const PartialShape& shape) override;
  absl::StatusOr<RefPtr<Resource>> FindOrCreate(
      std::string_view container, std::string_view name,
      const std::function<absl::StatusOr<RefPtr<Resource>>()>& make) override;
  RefPtr<Resource> MakeQueue(std::string name, const QueueOptions& options) override;
  RefPtr<Resource> MakeAccumulator(std::string name, const AccumulatorOptions& options) override;
  absl::Status Destroy(std::string_view container, std::string_view name) override;

  /// Removes everything in a container; "" the default one. Handles that are still around see
  /// destroyed variables.
  void Reset(std::string_view container);
  void ResetAll();
  /// False: nothing was ever put in since the last `ResetAll`. Costs one relaxed load.
  bool used() const { return used_.load(std::memory_order_relaxed); }

  /// Those of all containers; `what` does not use containers.
  void ForEachVariable(absl::FunctionRef<void(Variable*)> what) const;
  /// "container/name: description" of everything, sorted.
  std::vector<std::string> List() const;

 private:
  using Container = std::map<std::string, RefPtr<Resource>, std::less<>>;
  /// Tells resources that they are gone; without the lock, for they tell others.
  static void LetGo(const Container& removed);
  Container* FindContainer(std::string_view name);

  std::atomic<bool> used_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Container, std::less<>> containers_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_STATE_CONTAINERS_H_
