// Built for a version that is not this one. Its function and its static objects must not matter.
#include "api/extension.h"

absl::Status Register(troupe::Extension& extension) {
  extension.Op("FromWrongVersion").Output("y: float");
  return absl::OkStatus();
}

extern "C" const troupe::ExtensionInfo troupe_extension_info = {
    troupe::ExtensionInfo::kMagic, troupe::BuiltFor<0, 0, 9, troupe::LayoutCode()>, Register};

namespace troupe {
REGISTER_OP("StaticFromWrongVersion").Output("y: float");
}
