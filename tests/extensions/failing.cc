// Its function refuses at first.
#include "api/extension.h"

static absl::Status Register(troupe::Extension& extension) {
  static int calls = 0;
  extension.Op("FromFailing").Output("y: float");
  if (++calls == 1) return absl::UnavailableError("not now");
  return absl::OkStatus();
}

TROUPE_EXTENSION(Register)
