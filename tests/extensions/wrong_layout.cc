// Built with headers in which a tensor is larger. Its static objects must not matter.
#include "api/extension.h"

absl::Status Register(troupe::Extension&) { return absl::OkStatus(); }

constexpr std::array<uint32_t, 22> LargerTensor() {
  auto layout = troupe::kExtensionLayout;
  layout[8] += 8;
  return layout;
}

extern "C" const troupe::ExtensionInfo troupe_extension_info = {
    troupe::ExtensionInfo::kMagic,
    troupe::BuiltFor<troupe::VersionPart(0), troupe::VersionPart(1), troupe::VersionPart(2),
                     troupe::LayoutCode(LargerTensor())>,
    Register};

namespace troupe {
REGISTER_OP("StaticFromWrongLayout").Output("y: float");
}
