/// Tensors that are on their way to a device before anybody works on them.
#ifndef TROUPE_DEVICES_UPLOAD_AHEAD_H_
#define TROUPE_DEVICES_UPLOAD_AHEAD_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/device.h"

namespace troupe {

/// A copy that is being made. Unlike that of `Upload`, nothing waits for it until it is taken: what
/// the compute stream has meanwhile goes on beside it. Lets go of its memory in the order of the
/// compute stream, taken or not. The device outlives it.
class UploadAhead {
 public:
  /// What `Upload` says. Of a tensor that is there already, or of a device without a memory of its
  /// own, it is that tensor.
  static absl::StatusOr<UploadAhead> Begin(Device* device, const Tensor& host);

  UploadAhead(UploadAhead&&) noexcept;
  UploadAhead& operator=(UploadAhead&&) noexcept;
  ~UploadAhead();

  /// The elements are there for whatever is enqueued on the compute stream from now on.
  absl::StatusOr<Tensor> Take() &&;

 private:
  UploadAhead(Device* device, Tensor tensor, RefPtr<DeviceEvent> there);
  /// Orders the compute stream after the copy, once.
  absl::Status Wait();

  Device* device_;
  Tensor tensor_;
  RefPtr<DeviceEvent> there_;  ///< Null: nothing is under way.
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_UPLOAD_AHEAD_H_
