// Needs a function that nobody has.
#include "api/extension.h"

absl::Status NobodyHasThis();

static absl::Status Register(troupe::Extension&) { return NobodyHasThis(); }

TROUPE_EXTENSION(Register)
