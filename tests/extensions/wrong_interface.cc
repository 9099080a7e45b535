// Built for an extension interface of the future.
#include "api/extension.h"

absl::Status Register(troupe::Extension&) { return absl::OkStatus(); }

constexpr troupe::ExtensionInfo Future() {
  troupe::ExtensionInfo info = troupe::MakeExtensionInfo(Register, "7.1.0");
  info.interface = 99;
  return info;
}

extern "C" const troupe::ExtensionInfo troupe_extension = Future();
