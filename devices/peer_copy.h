/// From the memory of one device to that of another.
#ifndef TROUPE_DEVICES_PEER_COPY_H_
#define TROUPE_DEVICES_PEER_COPY_H_

#include "absl/status/statusor.h"
#include "devices/device.h"

namespace troupe {

/// A tensor in the memory of `device` with the elements of one in that of `peer`, which is
/// connected with it (`DeviceRegistry::Connect`), or of one on the host. The elements are those
/// which it has when all that is on the peer's compute stream now has finished, and they are there
/// for whatever is enqueued on the compute stream of `device` afterwards; nobody waits.
/// InvalidArgument: elements that are no plain bytes; ResourceExhausted; or what the device says.
absl::StatusOr<Tensor> CopyFromPeer(Device* device, Device* peer, const Tensor& there);

}  // namespace troupe

#endif  // TROUPE_DEVICES_PEER_COPY_H_
