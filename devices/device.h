/// Devices: where kernels run and tensors live.
#ifndef TROUPE_DEVICES_DEVICE_H_
#define TROUPE_DEVICES_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "devices/allocator.h"
#include "devices/device_name.h"
#include "devices/export.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class ComputePool;

/// An ordered queue of work on a device. Work enqueued on one stream runs in order; kernels of a
/// GPU only enqueue and return. On the CPU everything is done when the call returns. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  /// True if everything enqueued so far has finished.
  virtual bool Done() const = 0;
  /// Runs `done` once all that was enqueued before has finished, on whatever thread notices; at
  /// once on a CPU stream.
  virtual void WhenDone(std::function<void(absl::Status)> done) = 0;
  /// Enqueued work of this stream after the call waits for what `other` holds now.
  virtual absl::Status WaitFor(Stream* other) = 0;
  /// The native handle (a CUDA stream), nullptr on the CPU.
  virtual void* native() const { return nullptr; }
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

  /// Memory in the device's own space, or for arguments and results that kernels want on the host.
  virtual Allocator* allocator(MemorySpace space) const = 0;
  /// The space in which kernels of this device expect their tensors.
  virtual MemorySpace memory_space() const = 0;
  virtual int num_streams() const { return 1; }
  virtual Stream* stream(int index) const = 0;
  /// Threads for host kernels; nullptr if the device has none.
  virtual ComputePool* compute_pool() const { return nullptr; }

  /// Copies to / from host memory, in the order of `stream`; `done` as in Stream::WhenDone. On the
  /// CPU the result shares the buffer.
  virtual void CopyToHost(const Tensor& tensor, Stream* stream,
                          std::function<void(absl::StatusOr<Tensor>)> done) = 0;
  virtual void CopyFromHost(const Tensor& tensor, Stream* stream,
                            std::function<void(absl::StatusOr<Tensor>)> done) = 0;

 private:
  DeviceAttributes attributes_;
  DeviceName parsed_name_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_DEVICE_H_
