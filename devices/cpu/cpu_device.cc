#include "devices/cpu/cpu_device.h"

#include <cstring>
#include <random>
#include <utility>

#include "devices/cpu/compute_pool.h"
#include "devices/device_registry.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

/// Of a stream on which nothing is ever under way.
class CpuEvent final : public DeviceEvent {
 public:
  bool Reached() const override { return true; }
  double SecondsSince(const DeviceEvent&) const override { return 0; }
};

/// Everything is done when the call that asked for it returns.
class CpuStream final : public Stream {
 public:
  RefPtr<DeviceEvent> Record() override { return event_; }
  absl::Status WaitFor(const RefPtr<DeviceEvent>& event) override {
    if (event->Reached()) return absl::OkStatus();
    return absl::UnimplementedError(
        "A CPU stream cannot wait for work of another device; wait for the copy to the host");
  }
  bool Done() const override { return true; }
  void WhenDone(std::function<void(absl::Status)> done) override { done(absl::OkStatus()); }

 private:
  const RefPtr<DeviceEvent> event_ = MakeRef<CpuEvent>();
};

class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceAttributes attributes, std::shared_ptr<ComputePool> pool)
      : Device(std::move(attributes)), pool_(std::move(pool)) {}

  Allocator* allocator(MemorySpace) const override { return HostAllocator(); }
  MemorySpace memory_space() const override { return MemorySpace::kHost; }
  Stream* stream(StreamUse) const override { return &stream_; }
  ComputePool* compute_pool() const override { return pool_.get(); }
  absl::Status Copy(const Tensor& from, const Tensor& to, Stream*) override {
    // Nobody else looks at `to` before this returns.
    std::memcpy(const_cast<void*>(to.raw_data()), from.raw_data(), from.bytes());
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<ComputePool> pool_;
  mutable CpuStream stream_;
};

class CpuFactory final : public DeviceFactory {
 public:
  /// Names for one processor: as many as anybody may want.
  absl::StatusOr<int> NumAvailable() override { return 1024; }
  absl::StatusOr<std::unique_ptr<Device>> Create(
      const DeviceName& name, int, int64_t memory_limit,
      const std::shared_ptr<ComputePool>& pool) override {
    if (memory_limit > 0) {
      return InvalidArgument(
          "the memory of CPU devices, which is the process's, has no limit of "
          "its own: limit the process");
    }
    return MakeCpuDevice(name, pool);
  }
};
REGISTER_DEVICE("CPU", CpuFactory);

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(const DeviceName& name, std::shared_ptr<ComputePool> pool) {
  DeviceAttributes attributes;
  attributes.name = name.ToString();
  attributes.type = "CPU";
  attributes.memory_limit = HostAllocator()->stats().bytes_limit;
  std::random_device random;
  attributes.incarnation = (uint64_t{random()} << 32 | random()) | 1;  // never 0
  return std::make_unique<CpuDevice>(std::move(attributes), std::move(pool));
}

}  // namespace troupe
