/// An accelerator of which everything goes wrong that can: type "SIM".
///
/// Its memory has two addresses. At those that tensors have nobody may touch it, so that a host
/// that does crashes there and then; the device's own work uses the others. Its streams run late,
/// on a thread of the device's, in an order that is drawn by a seed where no event orders them. A
/// block is overwritten, in the order of the compute stream, when it is freed. Those of
/// neighbouring numbers are connected, so that values go between others by way of the host.
#ifndef TROUPE_TESTS_DEVICES_SIMULATED_SIMULATED_DEVICE_H_
#define TROUPE_TESTS_DEVICES_SIMULATED_SIMULATED_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "devices/device.h"
#include "devices/device_registry.h"

namespace troupe::testing {

/// How devices are that are made from then on.
struct SimulatedOptions {
  uint64_t seed = 1;
  /// What is done takes up to so long; most of it takes no time.
  int max_delay_us = 100;
  int64_t memory = 64 << 20;  ///< Bytes of each, up to 1 GiB.
  /// While true nothing that is enqueued runs.
  bool stopped = false;
  /// There is no memory for `WhenDone`.
  bool cannot_tell = false;
  /// What the placement is told; nullopt: nothing is placed there that does not ask for it.
  std::optional<DeviceFigures> figures;
};

/// Registers the type, of which there are eight. Thread-safe.
void UseSimulatedDevices(const SimulatedOptions& options = {});
/// Lets those run that were made with `stopped`.
void StartSimulatedDevices();

/// What makes such devices, for who shows them as another type.
std::shared_ptr<DeviceFactory> SimulatedDevices(const SimulatedOptions& options);

/// A stream of such a device. Thread-safe.
class SimulatedStream : public Stream {
 public:
  /// Has the device call `work`, which must not throw.
  virtual void Enqueue(std::function<void()> work) = 0;
};

/// Where the device's work finds what tensors have at `address`; nullptr if that is no address of
/// a simulated device.
void* Reach(const void* address);

/// Of all devices, since the process began.
int64_t NumSimulatedTasks();
/// How often the host has asked to be told when a stream is done (`WhenDone`): what it can wait
/// for.
int64_t NumSimulatedWaits();
/// Copies from and to the host, and within devices.
int64_t NumSimulatedCopies();

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_DEVICES_SIMULATED_SIMULATED_DEVICE_H_
