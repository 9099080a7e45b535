// A type of device: the host under another name, with one kernel. Of four that there are.

#include "api/extension.h"

#include <cstring>
#include <utility>

namespace {

using troupe::Tensor;

class TwinEvent final : public troupe::DeviceEvent {
 public:
  bool Reached() const override { return true; }
  double SecondsSince(const troupe::DeviceEvent&) const override { return 0; }
};

class TwinStream final : public troupe::Stream {
 public:
  troupe::RefPtr<troupe::DeviceEvent> Record() override { return event_; }
  absl::Status WaitFor(const troupe::RefPtr<troupe::DeviceEvent>&) override {
    return absl::OkStatus();
  }
  bool Done() const override { return true; }
  void WhenDone(std::function<void(absl::Status)> done) override { done(absl::OkStatus()); }

 private:
  const troupe::RefPtr<troupe::DeviceEvent> event_ = troupe::MakeRef<TwinEvent>();
};

class TwinDevice final : public troupe::Device {
 public:
  using Device::Device;
  troupe::Allocator* allocator(troupe::MemorySpace) const override {
    return troupe::HostAllocator();
  }
  troupe::MemorySpace memory_space() const override { return troupe::MemorySpace::kHost; }
  troupe::Stream* stream(troupe::StreamUse) const override { return &stream_; }
  absl::Status Copy(const Tensor& from, const Tensor& to, troupe::Stream*) override {
    std::memcpy(const_cast<void*>(to.raw_data()), from.raw_data(), from.bytes());
    return absl::OkStatus();
  }

 private:
  mutable TwinStream stream_;
};

class TwinFactory final : public troupe::DeviceFactory {
 public:
  absl::StatusOr<int> NumAvailable() override { return 4; }
  absl::StatusOr<std::unique_ptr<troupe::Device>> Create(
      const troupe::DeviceName& name, int number, int64_t memory_limit,
      const std::shared_ptr<troupe::ComputePool>&) override {
    troupe::DeviceAttributes attributes;
    attributes.name = name.ToString();
    attributes.type = "TWIN";
    attributes.memory_limit = memory_limit;
    attributes.incarnation = 1;
    attributes.description = "twin number " + std::to_string(number);
    return std::make_unique<TwinDevice>(std::move(attributes));
  }
};

/// The name of the device that runs it.
absl::Status WhereAmI(troupe::KernelContext& context) {
  return context.SetScalar(0, context.step().device->name());
}

absl::Status Register(troupe::Extension& extension) {
  extension.DeviceType("TWIN", std::make_shared<TwinFactory>());
  extension.Op("WhereAmI")
      .Signature("-> name: string")
      .SetIsStateful()
      .SetShapeFn(troupe::ScalarShape);
  for (const char* type : {"CPU", "TWIN"}) {
    extension.Kernel(troupe::KernelSpec("WhereAmI").Device(type), troupe::MakeKernel<WhereAmI>);
  }
  return absl::OkStatus();
}

}  // namespace

TROUPE_EXTENSION(Register)
