// Counts how often its function is called, for the test to see.
#include <atomic>

#include "api/extension.h"
#include "devices/export.h"

extern "C" {
TROUPE_EXPORT std::atomic<int> troupe_test_calls;
}

static absl::Status Register(troupe::Extension& extension) {
  ++troupe_test_calls;
  extension.Op("FromCounting").Output("y: float").SetShapeFn(troupe::ScalarShape);
  extension.Gradient("FromCounting", nullptr);
  return absl::OkStatus();
}

TROUPE_EXTENSION(Register)
