/// Devices: where kernels run and tensors live.
#ifndef TROUPE_DEVICES_DEVICE_H_
#define TROUPE_DEVICES_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/allocator.h"
#include "devices/device_name.h"
#include "devices/export.h"
#include "devices/ref_counted.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class ComputePool;

/// A moment in the work of a stream. Thread-safe.
class DeviceEvent : public RefCounted {
 public:
  /// True once all that its stream held at that moment has finished, well or badly.
  virtual bool Reached() const = 0;
  /// Seconds from `earlier`, an event of the same device, to this one. Both have been reached.
  virtual double SecondsSince(const DeviceEvent& earlier) const = 0;
};

/// An ordered queue of work on a device. Work that is enqueued on one stream runs in order; nothing
/// orders two streams but events. On the CPU everything is done when the call returns. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  /// The moment at which all that has been enqueued so far has finished.
  virtual RefPtr<DeviceEvent> Record() = 0;
  /// What is enqueued after the call waits for `event`, which may be another device's.
  virtual absl::Status WaitFor(const RefPtr<DeviceEvent>& event) = 0;
  /// True if everything enqueued so far has finished.
  virtual bool Done() const = 0;
  /// Calls `done` once, when all that was enqueued before has finished, on whatever thread notices;
  /// at once on a CPU stream. Not OK: the device failed, and what it was to compute is lost. `done`
  /// must not throw or wait for the device.
  virtual void WhenDone(std::function<void(absl::Status)> done) = 0;
  /// The native handle (a CUDA stream), nullptr on the CPU.
  virtual void* native() const { return nullptr; }
};

/// What a device's stream is for. A device may have one stream for several uses.
enum class StreamUse : uint8_t {
  kCompute,   ///< Kernels: one for each device, so that the order of calls is that of the work.
  kUpload,    ///< Copies from the host.
  kDownload,  ///< Copies to the host.
};

/// What `ListDevices` tells.
struct DeviceAttributes {
  std::string name;  ///< Complete: /job:localhost/replica:0/task:0/device:CPU:0
  std::string type;  ///< "CPU", "GPU"
  int64_t memory_limit = 0;
  uint64_t incarnation = 0;  ///< Differs from one start of the device to the next.
  std::string description;
};

/// A processor with its memory. Immutable after construction but for what streams and allocators
/// do inside. Thread-safe.
class Device {
 public:
  explicit Device(DeviceAttributes attributes);
  virtual ~Device() = default;

  const DeviceAttributes& attributes() const { return attributes_; }
  const std::string& name() const { return attributes_.name; }
  const std::string& type() const { return attributes_.type; }
  const DeviceName& parsed_name() const { return parsed_name_; }

  /// Memory in the device's own space (`kDevice`), for what it copies from and to (`kPinned`), or
  /// for arguments and results that kernels want on the host (`kHost`). It outlives the device for
  /// as long as buffers do.
  virtual Allocator* allocator(MemorySpace space) const = 0;
  /// The space in which kernels of this device expect their tensors: `kHost` or `kDevice`.
  virtual MemorySpace memory_space() const = 0;
  virtual Stream* stream(StreamUse use = StreamUse::kCompute) const = 0;
  /// Threads for host kernels; nullptr if the device has none.
  virtual ComputePool* compute_pool() const { return nullptr; }

  /// Enqueues on `stream`, one of this device's, a copy of the bytes of `from` to those of `to`, of
  /// the same plain type and as many elements. At least one of them lives in this device's memory;
  /// the caller keeps both until the copy has been made. `Upload` and `Download` are easier.
  virtual absl::Status Copy(const Tensor& from, const Tensor& to, Stream* stream) = 0;

 private:
  DeviceAttributes attributes_;
  DeviceName parsed_name_;
};

/// A tensor with the elements of `host` in the memory in which kernels of `device` expect them,
/// which is `host` itself if it is there already. The elements are there for whatever is enqueued
/// on the compute stream afterwards; nobody waits. InvalidArgument: elements that are no plain
/// bytes; ResourceExhausted; or what the device says.
absl::StatusOr<Tensor> Upload(Device* device, const Tensor& host);

/// Calls `done` once with a tensor on the host that has the elements which `tensor` has when all
/// that is on the compute stream now has finished; at once, with `tensor` itself, if it is on the
/// host already. On whatever thread notices; `done` must not throw or wait for the device.
void Download(Device* device, const Tensor& tensor,
              std::function<void(absl::StatusOr<Tensor>)> done);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_DEVICE_H_
