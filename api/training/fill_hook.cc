#include "api/training/fill_hook.h"

#include "api/session.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<int32_t> FillHook::Size(Session& session) const {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run({size_}));
  if (values[0].type() != ElementType::kInt32 || values[0].rank() != 0) {
    return InvalidArgument("'", size_.name(), "' is no int32 scalar");
  }
  return values[0].unchecked_scalar<int32_t>();
}

absl::Status FillHook::AfterCreateSession(Session& session, Coordinator&) {
  TROUPE_ASSIGN_OR_RETURN(int32_t size, Size(session));
  while (size < wanted_) {
    TROUPE_RETURN_IF_ERROR(session.RunTargets(put_));
    const int32_t before = size;
    TROUPE_ASSIGN_OR_RETURN(size, Size(session));
    if (size <= before) {
      return absl::FailedPreconditionError(StrCat("a step that fills has left '", size_.name(),
                                                  "' at ", size, ", wanted ", wanted_));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
