#include "kernels/argument_spaces.h"

#include <algorithm>

#include "devices/status_macros.h"
#include "graph/op_args.h"

namespace troupe {

bool ArgumentSpaces::AnyOnDevice() const {
  const auto any = [](const std::vector<MemorySpace>& spaces) {
    return std::find(spaces.begin(), spaces.end(), MemorySpace::kDevice) != spaces.end();
  };
  return any(inputs) || any(outputs);
}

absl::StatusOr<ArgumentSpaces> FindArgumentSpaces(const OpDef& op, const AttrReader& attrs,
                                                  const KernelSpec& kernel) {
  const auto find = [&](ArgSide side, std::vector<MemorySpace>* spaces) {
    std::vector<ElementType> types;
    TROUPE_RETURN_IF_ERROR(ArgTypes(op, side, attrs, &types));
    for (const ElementType type : types) {
      const bool there =
          kernel.device_type == kAnyDeviceType ? MayBeOnDevice(type) : IsPlain(RemoveRef(type));
      spaces->push_back(there ? MemorySpace::kDevice : MemorySpace::kHost);
    }
    for (const std::string& name : kernel.host_arguments) {
      if (name == kAllArguments) std::fill(spaces->begin(), spaces->end(), MemorySpace::kHost);
      const auto [begin, end] = ArgRange(op, side, attrs, name);
      if (begin >= 0) std::fill(spaces->begin() + begin, spaces->begin() + end, MemorySpace::kHost);
    }
    return absl::OkStatus();
  };
  ArgumentSpaces spaces;
  TROUPE_RETURN_IF_ERROR(find(ArgSide::kInputs, &spaces.inputs));
  TROUPE_RETURN_IF_ERROR(find(ArgSide::kOutputs, &spaces.outputs));
  return spaces;
}

}  // namespace troupe
