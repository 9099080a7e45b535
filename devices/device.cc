#include "devices/device.h"

#include <memory>
#include <utility>

#include "devices/peer_copy.h"
#include "devices/status_macros.h"

namespace troupe {

Device::Device(DeviceAttributes attributes) : attributes_(std::move(attributes)) {
  // A device's own name comes from DeviceName::ToString, so it parses.
  absl::StatusOr<DeviceName> name = DeviceName::Parse(attributes_.name);
  if (name.ok()) parsed_name_ = *std::move(name);
}

namespace {

/// A copy in the device's memory, made once `ready` is reached.
absl::StatusOr<Tensor> CopyInto(Device* device, const Tensor& from,
                                const RefPtr<DeviceEvent>& ready) {
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(from.type(), from.shape(),
                                                        device->allocator(MemorySpace::kDevice)));
  Stream* const compute = device->stream(StreamUse::kCompute);
  Stream* const upload = device->stream(StreamUse::kUpload);
  // Kernels that were enqueued before may still use the block.
  TROUPE_RETURN_IF_ERROR(upload->WaitFor(compute->Record()));
  if (ready) TROUPE_RETURN_IF_ERROR(upload->WaitFor(ready));
  const absl::Status copied = device->Copy(from, copy, upload);
  // Whether it went well or not: the block is freed in the order of the compute stream.
  TROUPE_RETURN_IF_ERROR(compute->WaitFor(upload->Record()));
  TROUPE_RETURN_IF_ERROR(copied);
  upload->WhenDone([from](const absl::Status&) {});  // Keeps it until then.
  return copy;
}

}  // namespace

absl::StatusOr<Tensor> Upload(Device* device, const Tensor& host) {
  if (device->memory_space() != MemorySpace::kDevice || host.space() == MemorySpace::kDevice) {
    return host;
  }
  if (!IsPlain(host.type())) {
    return InvalidArgument("a tensor of type ", ElementTypeName(host.type()),
                           " cannot be copied to the memory of ", device->name());
  }
  return CopyInto(device, host, nullptr);
}

absl::StatusOr<Tensor> CopyFromPeer(Device* device, Device* peer, const Tensor& there) {
  if (there.space() != MemorySpace::kDevice) return Upload(device, there);
  return CopyInto(device, there, peer->stream(StreamUse::kCompute)->Record());
}

void Download(Device* device, const Tensor& tensor,
              std::function<void(absl::StatusOr<Tensor>)> done) {
  if (tensor.space() != MemorySpace::kDevice) return done(tensor);
  absl::StatusOr<Tensor> host =
      Tensor::Allocate(tensor.type(), tensor.shape(), device->allocator(MemorySpace::kPinned));
  if (!host.ok()) return done(host.status());
  struct Transfer {
    Tensor from, to;
    absl::Status status;
    std::function<void(absl::StatusOr<Tensor>)> done;
  };
  // Made before the copy is: nobody may free what it uses, also after an error.
  auto transfer =
      std::make_shared<Transfer>(Transfer{tensor, *std::move(host), {}, std::move(done)});
  Stream* const download = device->stream(StreamUse::kDownload);
  transfer->status = download->WaitFor(device->stream(StreamUse::kCompute)->Record());
  if (transfer->status.ok()) transfer->status = device->Copy(tensor, transfer->to, download);
  download->WhenDone([transfer](absl::Status finished) {
    finished.Update(transfer->status);
    transfer->from.Reset();
    if (finished.ok()) {
      transfer->done(std::move(transfer->to));
    } else {
      transfer->done(std::move(finished));
    }
  });
}

}  // namespace troupe
