/// A hook for trainings whose steps work on what earlier ones have left for them.
#ifndef TROUPE_API_TRAINING_FILL_HOOK_H_
#define TROUPE_API_TRAINING_FILL_HOOK_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "api/training/session_run_hook.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Fills what the first step takes from, when a session has been made: a staging area, a barrier,
/// an accumulator. What a restored training has there already counts.
///
///     Node* const put = ops::Stage(s, batch, {.shared_name = "area"});
///     const Output size = ops::StageSize(s, types, {.shared_name = "area"});
///     hooks.push_back(std::make_shared<FillHook>(std::vector<Node*>{put}, size, 2));
class FillHook final : public SessionRunHook {
 public:
  /// Runs `put`, step by step, until `size`, an int32 scalar, is `wanted` or more.
  FillHook(std::vector<Node*> put, Output size, int32_t wanted)
      : put_(std::move(put)), size_(size), wanted_(wanted) {}

  /// FailedPrecondition: a step has not made it more.
  absl::Status AfterCreateSession(Session& session, Coordinator& coordinator) override;

 private:
  absl::StatusOr<int32_t> Size(Session& session) const;

  const std::vector<Node*> put_;
  const Output size_;
  const int32_t wanted_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_FILL_HOOK_H_
