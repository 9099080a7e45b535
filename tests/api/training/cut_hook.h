/// A training that ends as though it had been killed.
#ifndef TROUPE_TESTS_API_TRAINING_CUT_HOOK_H_
#define TROUPE_TESTS_API_TRAINING_CUT_HOOK_H_

#include <cstdint>

#include "api/troupe.h"

namespace troupe {

/// Fails after so many steps, with Internal.
class CutHook final : public SessionRunHook {
 public:
  explicit CutHook(int64_t steps) : left_(steps) {}
  absl::Status AfterRun(SessionRunContext&, const SessionRunValues&) override {
    return --left_ == 0 ? absl::InternalError("cut") : absl::OkStatus();
  }

 private:
  int64_t left_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_TRAINING_CUT_HOOK_H_
