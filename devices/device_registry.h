/// Device types: who makes the devices of a process.
///
///     class TwinFactory : public DeviceFactory { ... };
///     REGISTER_DEVICE("TWIN", TwinFactory);
#ifndef TROUPE_DEVICES_DEVICE_REGISTRY_H_
#define TROUPE_DEVICES_DEVICE_REGISTRY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/device.h"
#include "devices/device_figures.h"
#include "devices/export.h"
#include "devices/status_macros.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Which devices of a type a process shows. A value.
struct DeviceOptions {
  int count = 1;
  int64_t memory_limit = 0;  ///< Bytes of each; 0: all that it has.
  /// The limit as a share of what each has free when it is made, up to 1; 0: `memory_limit` says.
  double memory_fraction = 0;
  /// False: each takes all that its limit allows when it is made, and keeps it, so that no other
  /// process can have it meanwhile. There must be a limit then, or a fraction.
  bool allow_growth = true;
  /// Which of the machine's they are, by their numbers from 0 on; empty: the first ones.
  std::vector<int> visible;
};

/// By type: {"GPU", {.count = 2}}. "CPU" is a type like others.
using DeviceOptionsByType = std::map<std::string, DeviceOptions>;

/// Makes the devices of a type. Thread-safe; never destroyed once it is registered.
class DeviceFactory {
 public:
  virtual ~DeviceFactory() = default;
  /// How many the machine has. An error says why there can be none: no driver, say.
  virtual absl::StatusOr<int> NumAvailable() = 0;
  /// The bytes that number `number` of the machine's has free. Unimplemented, as here: there are no
  /// fractions of its memory.
  virtual absl::StatusOr<int64_t> FreeMemory(int number);
  /// Makes a device. `name` is complete; `number`: which of the machine's; `memory_limit` as in
  /// `DeviceOptions`; `pool`: the threads of the process.
  virtual absl::StatusOr<std::unique_ptr<Device>> Create(
      const DeviceName& name, int number, int64_t memory_limit,
      const std::shared_ptr<ComputePool>& pool) = 0;
  /// How fast one of its devices is. nullopt, as here: nothing is placed there because of it.
  virtual std::optional<DeviceFigures> Figures(const Device& device) const;
  /// Whether `to`, one of its devices, can copy from the memory of `from`, another one of them: its
  /// `Copy` takes tensors of both, and its streams wait for events of both. Makes it so, if need
  /// be.
  virtual bool Connect(const Device& from, const Device& to);
  /// Bytes that the machine's device has in all. Unimplemented, as here: nobody can tell.
  virtual absl::StatusOr<int64_t> TotalMemory(int number);
};

/// Thread-safe.
class DeviceRegistry {
 public:
  static DeviceRegistry* Global();
  /// InvalidArgument: the type is not a name in upper case; AlreadyExists: another factory makes
  /// that type. One of the same class is left as it is.
  absl::Status Register(const std::string& type, std::shared_ptr<DeviceFactory> factory);
  /// The same checks, without registering.
  absl::Status Check(const std::string& type, const DeviceFactory& factory) const;
  /// In order.
  std::vector<std::string> types() const;
  /// The devices of a task, those of each type numbered from 0 on: the CPU's first, then the types
  /// in order. InvalidArgument: a type that is not registered (the message lists those that are),
  /// no CPU, more devices than there are, a number that is named twice or is not there, a limit
  /// that is negative, a fraction that is none; ResourceExhausted: memory that is to be taken at
  /// once and is not there; or what a factory says.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> MakeDevices(
      const std::string& job, int task, const DeviceOptionsByType& options,
      const std::shared_ptr<ComputePool>& pool) const;
  /// What the factory of a type says. InvalidArgument: there is none.
  absl::StatusOr<int> NumAvailable(const std::string& type) const;
  absl::StatusOr<int64_t> TotalMemory(const std::string& type, int number) const;
  /// What the factory of its type says of a device, if it makes sense.
  std::optional<DeviceFigures> Figures(const Device& device) const;
  /// Whether values go from one device of this process to another one without the host.
  bool Connect(const Device& from, const Device& to) const;

 private:
  DeviceRegistry();
  /// nullptr: there is none.
  std::shared_ptr<DeviceFactory> FactoryOf(const Device& device) const;
  absl::StatusOr<std::shared_ptr<DeviceFactory>> Find(const std::string& type) const;
  struct TROUPE_LOCAL Impl;
  Impl* impl_;
};

namespace internal {
/// Registers when a program starts; a type that cannot be registered is logged.
struct DeviceRegistrar {
  DeviceRegistrar(const char* type, std::shared_ptr<DeviceFactory> factory);
};
}  // namespace internal

#define REGISTER_DEVICE(TYPE, FACTORY)                                             \
  [[maybe_unused]] static const ::troupe::internal::DeviceRegistrar TROUPE_CONCAT( \
      troupe_device_registrar_, __COUNTER__)(TYPE, std::make_shared<FACTORY>())

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_DEVICE_REGISTRY_H_
