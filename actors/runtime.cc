#include "actors/runtime.h"

#include <utility>

#include "devices/cpu/instruction_set.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<std::shared_ptr<Runtime>> Runtime::Create(const Options& options) {
  if (options.threads < 0 || options.threads > 4096) {
    return InvalidArgument("threads must be between 0 (one per core) and 4096, not ",
                           options.threads);
  }
  TROUPE_RETURN_IF_ERROR(ChosenInstructionSet().status());
  // There may be no memory, or no threads.
  return CatchExceptions([&]() -> absl::StatusOr<std::shared_ptr<Runtime>> {
    auto runtime = std::shared_ptr<Runtime>(new Runtime(options.clock));
    runtime->pool_ = std::make_shared<ComputePool>(options.threads);
    DeviceOptionsByType wanted = options.devices;
    wanted.try_emplace("CPU", DeviceOptions{.count = options.num_cpu_devices});
    TROUPE_ASSIGN_OR_RETURN(
        std::vector<std::unique_ptr<Device>> devices,
        DeviceRegistry::Global()->MakeDevices(options.job, options.task, wanted, runtime->pool_));
    for (std::unique_ptr<Device>& device : devices) {
      auto role = std::make_unique<DeviceRole>();
      role->device = std::move(device);
      role->clock = options.clock;
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

void Runtime::ResetContainers(absl::Span<const std::string> containers) const {
  for (const auto& role : devices_) {
    if (containers.empty()) role->containers.Reset("");
    for (const std::string& container : containers) role->containers.Reset(container);
  }
}

}  // namespace troupe
