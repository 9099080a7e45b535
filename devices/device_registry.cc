#include "devices/device_registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <typeinfo>

#include "absl/strings/str_join.h"
#include "devices/device_loader.h"
#include "devices/exceptions.h"
#include "devices/log.h"

namespace troupe {
namespace {

constexpr int kMostDevices = 1024;  // Of a type, in a process.

constinit std::atomic<absl::Status (*)(const std::string& type)> device_loader = nullptr;

/// The numbers of the machine's devices that become those of the process.
absl::StatusOr<std::vector<int>> Choose(const std::string& type, const DeviceOptions& options,
                                        int available) {
  if (options.count < 0 || options.count > kMostDevices) {
    return InvalidArgument("the number of ", type, " devices must be between 0 and ", kMostDevices,
                           ", not ", options.count);
  }
  if (options.memory_limit < 0) {
    return InvalidArgument("the memory limit of ", type, " devices must be 0 (none) or more, not ",
                           options.memory_limit);
  }
  if (!(options.memory_fraction >= 0 && options.memory_fraction <= 1)) {
    return InvalidArgument("the share of the memory of ", type,
                           " devices must be above 0, up to 1, or 0 (none), not ",
                           options.memory_fraction);
  }
  if (options.memory_limit > 0 && options.memory_fraction > 0) {
    return InvalidArgument("the memory of ", type,
                           " devices has a limit in bytes and one as a share: give one of them");
  }
  if (!options.allow_growth && options.memory_limit == 0 && options.memory_fraction == 0) {
    return InvalidArgument("the memory of ", type,
                           " devices is to be taken at once: say how much, by a limit or a share");
  }
  const std::vector<int>& visible = options.visible;
  for (auto it = visible.begin(); it != visible.end(); ++it) {
    if (*it < 0 || *it >= available) {
      return InvalidArgument("there is no ", type, " device number ", *it, ": the machine has ",
                             available, ", numbered from 0");
    }
    if (std::find(visible.begin(), it, *it) != it) {
      return InvalidArgument(type, " device number ", *it, " is named twice");
    }
  }
  const int most = visible.empty() ? available : static_cast<int>(visible.size());
  if (options.count > most) {
    return InvalidArgument("asked for ", options.count, " devices of type ", type,
                           ", but there are only ", most,
                           visible.empty() ? "" : " that are to be visible");
  }
  std::vector<int> numbers(static_cast<size_t>(options.count));
  for (int i = 0; i < options.count; ++i) {
    numbers[static_cast<size_t>(i)] = visible.empty() ? i : visible[static_cast<size_t>(i)];
  }
  return numbers;
}

/// The limit in bytes of number `number` of the machine's.
absl::StatusOr<int64_t> LimitOf(const std::string& type, DeviceFactory& factory, int number,
                                const DeviceOptions& options) {
  if (options.memory_fraction == 0) return options.memory_limit;
  const absl::StatusOr<int64_t> free = factory.FreeMemory(number);
  if (!free.ok()) {
    return WithContext(StrCat("a share of the memory of ", type, " device number ", number, ": "),
                       free.status());
  }
  const double bytes = options.memory_fraction * static_cast<double>(*free);
  return std::max<int64_t>(1, static_cast<int64_t>(bytes));
}

/// Takes what the limit allows from the system. The allocator keeps what is given back to it.
absl::Status TakeMemory(const Device& device) {
  if (device.memory_space() != MemorySpace::kDevice) {
    return InvalidArgument(device.name(), " has no memory of its own that could be taken at once");
  }
  Allocator* const memory = device.allocator(MemorySpace::kDevice);
  const AllocatorStats stats = memory->stats();
  const int64_t bytes = stats.bytes_limit - stats.bytes_in_use;
  if (bytes <= 0) return absl::OkStatus();  // Sessions before this one have it.
  void* const block = memory->Allocate(static_cast<size_t>(bytes));
  if (block == nullptr) {
    return absl::ResourceExhaustedError(StrCat(device.name(), " cannot take ", bytes,
                                               " bytes at once: ask for less, or let it grow"));
  }
  memory->Free(block, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

}  // namespace

void SetDeviceLoader(absl::Status (*load)(const std::string& type)) { device_loader.store(load); }

struct DeviceRegistry::Impl {
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<DeviceFactory>> factories;
};

DeviceRegistry::DeviceRegistry() : impl_(new Impl) {}

DeviceRegistry* DeviceRegistry::Global() {
  static auto* registry = new DeviceRegistry;
  return registry;
}

absl::Status DeviceRegistry::Check(const std::string& type, const DeviceFactory& factory) const {
  const absl::StatusOr<DeviceName> name = DeviceName::Parse("/device:" + type + ":0");
  if (!name.ok() || name->type != type) {
    return InvalidArgument("'", type, "' is no type of device: a name in upper case, such as GPU");
  }
  std::lock_guard<std::mutex> lock(impl_->mutex);
  const auto found = impl_->factories.find(type);
  if (found == impl_->factories.end()) return absl::OkStatus();
  const DeviceFactory& known = *found->second;
  if (typeid(known) == typeid(factory)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      StrCat("devices of type ", type, " are made by another factory already"));
}

absl::Status DeviceRegistry::Register(const std::string& type,
                                      std::shared_ptr<DeviceFactory> factory) {
  TROUPE_RETURN_IF_ERROR(Check(type, *factory));
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->factories.emplace(type, std::move(factory));
  return absl::OkStatus();
}

std::vector<std::string> DeviceRegistry::types() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<std::string> types;
  for (const auto& [type, factory] : impl_->factories) types.push_back(type);
  return types;
}

absl::StatusOr<std::shared_ptr<DeviceFactory>> DeviceRegistry::Find(const std::string& type) const {
  for (const bool load : {true, false}) {
    {
      std::lock_guard<std::mutex> lock(impl_->mutex);
      const auto found = impl_->factories.find(type);
      if (found != impl_->factories.end()) return found->second;
    }
    const auto loader = device_loader.load();
    if (load && loader != nullptr) TROUPE_RETURN_IF_ERROR(loader(type));
  }
  return InvalidArgument("there is no device type ", type, "; there are ",
                         absl::StrJoin(types(), ", "),
                         ". Load the library that has it before the session is made");
}

absl::StatusOr<int64_t> DeviceFactory::FreeMemory(int) {
  return absl::UnimplementedError("this type of device does not tell how much is free");
}

std::optional<DeviceFigures> DeviceFactory::Figures(const Device&) const { return std::nullopt; }

bool DeviceFactory::Connect(const Device&, const Device&) { return false; }

absl::StatusOr<int64_t> DeviceFactory::TotalMemory(int) {
  return absl::UnimplementedError("the type's factory does not know how much memory there is");
}

absl::StatusOr<int> DeviceRegistry::NumAvailable(const std::string& type) const {
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceFactory> factory, Find(type));
  return factory->NumAvailable();
}

absl::StatusOr<int64_t> DeviceRegistry::TotalMemory(const std::string& type, int number) const {
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceFactory> factory, Find(type));
  return factory->TotalMemory(number);
}

std::shared_ptr<DeviceFactory> DeviceRegistry::FactoryOf(const Device& device) const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  const auto found = impl_->factories.find(device.type());
  return found == impl_->factories.end() ? nullptr : found->second;
}

std::optional<DeviceFigures> DeviceRegistry::Figures(const Device& device) const {
  const std::shared_ptr<DeviceFactory> factory = FactoryOf(device);
  if (factory == nullptr) return std::nullopt;
  const std::optional<DeviceFigures> figures = factory->Figures(device);
  return figures.has_value() && MakeSense(*figures) ? figures : std::nullopt;
}

bool DeviceRegistry::Connect(const Device& from, const Device& to) const {
  if (&from == &to || from.type() != to.type() || to.memory_space() != MemorySpace::kDevice ||
      from.memory_space() != MemorySpace::kDevice) {
    return false;
  }
  const std::shared_ptr<DeviceFactory> factory = FactoryOf(to);
  return factory != nullptr && factory->Connect(from, to);
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> DeviceRegistry::MakeDevices(
    const std::string& job, int task, const DeviceOptionsByType& options,
    const std::shared_ptr<ComputePool>& pool) const {
  std::vector<std::string> types = {"CPU"};
  for (const auto& [type, wanted] : options) {
    if (type != "CPU") types.push_back(type);
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (const std::string& type : types) {
    const auto found = options.find(type);
    const DeviceOptions& wanted = found == options.end() ? DeviceOptions() : found->second;
    TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceFactory> factory, Find(type));
    if (wanted.count == 0 && type != "CPU") continue;
    TROUPE_ASSIGN_OR_RETURN(const int available, factory->NumAvailable());
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> numbers, Choose(type, wanted, available));
    if (numbers.empty()) return InvalidArgument("a process needs a CPU device at least");
    for (size_t i = 0; i < numbers.size(); ++i) {
      const DeviceName name{job, 0, task, type, static_cast<int>(i)};
      TROUPE_ASSIGN_OR_RETURN(const int64_t limit, LimitOf(type, *factory, numbers[i], wanted));
      TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                              factory->Create(name, numbers[i], limit, pool));
      if (device == nullptr || device->name() != name.ToString() || device->type() != type) {
        return absl::InternalError(
            StrCat("the factory of ", type, " did not make the device ", name.ToString()));
      }
      if (!wanted.allow_growth) TROUPE_RETURN_IF_ERROR(TakeMemory(*device));
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

namespace internal {

DeviceRegistrar::DeviceRegistrar(const char* type, std::shared_ptr<DeviceFactory> factory) {
  const absl::Status registered = DeviceRegistry::Global()->Register(type, std::move(factory));
  if (registered.ok()) return;
  WriteLog(LogLevel::kError, "", {"device type", type}, "cannot register the device type ", type,
           ": ", registered.ToString());
}

}  // namespace internal
}  // namespace troupe
