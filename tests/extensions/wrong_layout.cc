// Built with headers in which a tensor is larger.
#include "api/extension.h"

absl::Status Register(troupe::Extension&) { return absl::OkStatus(); }

constexpr troupe::ExtensionInfo LargerTensor() {
  troupe::ExtensionInfo info = troupe::MakeExtensionInfo(Register);
  info.layout[8] += 8;
  return info;
}

extern "C" const troupe::ExtensionInfo troupe_extension = LargerTensor();
