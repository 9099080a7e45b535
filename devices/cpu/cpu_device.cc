#include "devices/cpu/cpu_device.h"

#include <random>
#include <utility>

#include "devices/cpu/compute_pool.h"

namespace troupe {
namespace {

/// Everything is done when the call that asked for it returns.
class CpuStream : public Stream {
 public:
  bool Done() const override { return true; }
  void WhenDone(std::function<void(absl::Status)> done) override { done(absl::OkStatus()); }
  absl::Status WaitFor(Stream* other) override {
    if (other->Done()) return absl::OkStatus();
    return absl::UnimplementedError(
        "A CPU stream cannot wait for work of another device; wait for the copy to the host");
  }
};

class CpuDevice : public Device {
 public:
  CpuDevice(DeviceAttributes attributes, std::shared_ptr<ComputePool> pool)
      : Device(std::move(attributes)), pool_(std::move(pool)) {}

  Allocator* allocator(MemorySpace) const override { return HostAllocator(); }
  MemorySpace memory_space() const override { return MemorySpace::kHost; }
  Stream* stream(int) const override { return &stream_; }
  ComputePool* compute_pool() const override { return pool_.get(); }

  void CopyToHost(const Tensor& tensor, Stream*,
                  std::function<void(absl::StatusOr<Tensor>)> done) override {
    done(tensor);
  }
  void CopyFromHost(const Tensor& tensor, Stream*,
                    std::function<void(absl::StatusOr<Tensor>)> done) override {
    done(tensor);
  }

 private:
  std::shared_ptr<ComputePool> pool_;
  mutable CpuStream stream_;
};

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
