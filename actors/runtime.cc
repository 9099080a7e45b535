#include "actors/runtime.h"

#include <random>
#include <utility>

#include "devices/cpu/cpu_device.h"
#include "devices/cpu/instruction_set.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<std::shared_ptr<Runtime>> Runtime::Create(const Options& options) {
  if (options.threads < 0 || options.threads > 4096) {
    return InvalidArgument("threads must be between 0 (one per core) and 4096, not ",
                           options.threads);
  }
  if (options.num_cpu_devices < 1 || options.num_cpu_devices > 1024) {
    return InvalidArgument("the number of CPU devices must be between 1 and 1024, not ",
                           options.num_cpu_devices);
  }
  TROUPE_RETURN_IF_ERROR(ChosenInstructionSet().status());
  // There may be no memory, or no threads.
  return CatchExceptions([&]() -> absl::StatusOr<std::shared_ptr<Runtime>> {
    auto runtime = std::shared_ptr<Runtime>(new Runtime);
    runtime->pool_ = std::make_shared<ComputePool>(options.threads);
    for (int i = 0; i < options.num_cpu_devices; ++i) {
      auto role = std::make_unique<DeviceRole>();
      role->device = MakeCpuDevice({options.job, 0, options.task, "CPU", i}, runtime->pool_);
      runtime->devices_.push_back(std::move(role));
    }
    return runtime;
  });
}

Runtime::~Runtime() = default;

DeviceRole* Runtime::FindDevice(std::string_view name) const {
  for (const auto& role : devices_) {
    if (role->device->name() == name) return role.get();
  }
  return nullptr;
}

}  // namespace troupe
