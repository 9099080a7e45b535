// Defines an op of its own, and one that exists, in another way: neither must be there afterwards.
#include "api/extension.h"

static absl::Status Register(troupe::Extension& extension) {
  extension.Op("FromClash").Output("y: float");
  extension.Op("MatMul").Input("x: float").Output("y: float");
  return absl::OkStatus();
}

TROUPE_EXTENSION(Register)
