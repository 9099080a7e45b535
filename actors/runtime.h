/// What sessions of one process run on: devices, threads, containers.
#ifndef TROUPE_ACTORS_RUNTIME_H_
#define TROUPE_ACTORS_RUNTIME_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/state/containers.h"
#include "devices/cpu/compute_pool.h"
#include "devices/cpu/deadline_timer.h"
#include "devices/device.h"
#include "devices/device_registry.h"
#include "devices/time_source.h"

namespace troupe {

/// A device as an actor: the processor, the containers of the state that lives on it, and the clock
/// by which its steps are measured. Thread-safe.
struct DeviceRole {
  std::unique_ptr<Device> device;
  Containers containers;
  TimeSource* clock = nullptr;
};

/// The threads, clock, devices and state that sessions run on. Each local session makes its own
/// unless it is given one to share; sessions that share one see each other's variables by name.
/// Thread-safe.
class Runtime {
 public:
  struct Options {
    int threads = 0;                ///< That compute, the caller included; 0: one per core.
    int num_cpu_devices = 1;        ///< Named /device:CPU:0, CPU:1, ...
    std::string job = "localhost";  ///< Of the task that this process is.
    int task = 0;
    /// Devices of other types; and "CPU" in place of `num_cpu_devices`.
    DeviceOptionsByType devices;
    TimeSource* clock = TimeSource::System();  ///< Outlives the runtime.
  };

  /// InvalidArgument: threads; what `DeviceRegistry::MakeDevices` says.
  static absl::StatusOr<std::shared_ptr<Runtime>> Create(const Options& options);
  ~Runtime();

  ComputePool* pool() const { return pool_.get(); }
  /// For what users want called although the workers are busy. Its thread starts with the first.
  ComputePool* spare_thread() { return &spare_thread_; }
  TimeSource* clock() const { return clock_; }
  DeadlineTimer* timer() { return &timer_; }
  const std::vector<std::unique_ptr<DeviceRole>>& devices() const { return devices_; }
  /// nullptr if there is none of that complete name.
  DeviceRole* FindDevice(std::string_view name) const;
  /// Empties containers on all devices; none named: the default container.
  void ResetContainers(absl::Span<const std::string> containers) const;

 private:
  explicit Runtime(TimeSource* clock) : clock_(clock) {}

  TimeSource* const clock_;
  ComputePool spare_thread_{/*threads=*/1, /*spin_microseconds=*/0};
  std::shared_ptr<ComputePool> pool_;
  std::vector<std::unique_ptr<DeviceRole>> devices_;
  DeadlineTimer timer_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_RUNTIME_H_
