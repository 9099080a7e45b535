#include "devices/device.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "devices/cpu/compute_pool.h"
#include "devices/exceptions.h"
#include "devices/peer_copy.h"
#include "devices/status_macros.h"
#include "devices/upload_ahead.h"

namespace troupe {

Device::Device(DeviceAttributes attributes) : attributes_(std::move(attributes)) {
  // A device's own name comes from DeviceName::ToString, so it parses.
  absl::StatusOr<DeviceName> name = DeviceName::Parse(attributes_.name);
  if (name.ok()) parsed_name_ = *std::move(name);
}

namespace {

/// From so many bytes on they go by way of pinned memory, from which a device copies while the host
/// goes on; of fewer the driver keeps a copy itself.
constexpr size_t kLeastStaged = 64 << 10;
/// In pieces, so that one is copied by the device while the next is copied on the host.
constexpr size_t kPieceBytes = 4 << 20;

/// Threads copy so much each: one alone is slower than a device.
constexpr int64_t kBytesPerThread = 512 << 10;

void CopyOnHost(ComputePool* pool, void* to, const void* from, size_t bytes) {
  const auto copy = [=](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  };
  if (pool == nullptr) return copy(0, static_cast<int64_t>(bytes));
  pool->ParallelFor(static_cast<int64_t>(bytes), kBytesPerThread, copy);
}

/// Bytes of a tensor, without a type.
Tensor Piece(const Tensor& tensor, size_t offset, size_t bytes) {
  return Tensor(ElementType::kUint8, Shape({static_cast<int64_t>(bytes)}), tensor.buffer(),
                static_cast<char*>(const_cast<void*>(tensor.raw_data())) + offset);
}

/// There is no memory for being told: nothing that the copies use may be freed before they are
/// made.
void WaitUntilDone(const Stream& stream) {
  while (!stream.Done()) std::this_thread::yield();
}

/// Enqueues copies of all bytes; `kept` must live until they have been made.
absl::Status EnqueueCopies(Device* device, const Tensor& from, const Tensor& to, Stream* stream,
                           std::vector<Tensor>* kept) {
  Allocator* const pinned = device->allocator(MemorySpace::kPinned);
  const size_t bytes = from.bytes();
  size_t done = 0;
  if (from.space() == MemorySpace::kHost && pinned->space() == MemorySpace::kPinned &&
      bytes >= kLeastStaged) {
    while (done < bytes) {
      const size_t next = std::min(kPieceBytes, bytes - done);
      const absl::StatusOr<Tensor> staged =
          Tensor::Allocate(ElementType::kUint8, Shape({static_cast<int64_t>(next)}), pinned);
      if (!staged.ok()) break;  // There is a limit to what is pinned. The rest takes longer.
      kept->push_back(*staged);
      CopyOnHost(device->compute_pool(), kept->back().mutable_raw_data(),
                 static_cast<const char*>(from.raw_data()) + done, next);
      TROUPE_RETURN_IF_ERROR(device->Copy(kept->back(), Piece(to, done, next), stream));
      done += next;
    }
  }
  if (done == bytes) return absl::OkStatus();
  kept->push_back(from);
  if (done == 0) return device->Copy(from, to, stream);
  return device->Copy(Piece(from, done, bytes - done), Piece(to, done, bytes - done), stream);
}

/// A copy in the device's memory, made once `ready` is reached. `there`: the moment when it is
/// made, which the caller has the compute stream wait for before it lets go of the copy; null: it
/// does so now.
absl::StatusOr<Tensor> CopyInto(Device* device, const Tensor& from,
                                const RefPtr<DeviceEvent>& ready,
                                RefPtr<DeviceEvent>* there = nullptr) {
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(from.type(), from.shape(),
                                                        device->allocator(MemorySpace::kDevice)));
  Stream* const compute = device->stream(StreamUse::kCompute);
  Stream* const upload = device->stream(StreamUse::kUpload);
  // Kernels that were enqueued before may still use the block.
  TROUPE_RETURN_IF_ERROR(upload->WaitFor(compute->Record()));
  if (ready) TROUPE_RETURN_IF_ERROR(upload->WaitFor(ready));
  const auto kept = std::make_shared<std::vector<Tensor>>();
  absl::Status copied, ordered;
  try {
    copied = EnqueueCopies(device, from, copy, upload, kept.get());
    // Whether it went well or not: the block is freed in the order of the compute stream.
    RefPtr<DeviceEvent> made = upload->Record();
    const bool later = there != nullptr && copied.ok();
    if (!later) ordered = compute->WaitFor(made);
    if (later) *there = std::move(made);
    upload->WhenDone([kept](const absl::Status&) {});  // Keeps it until then.
  } catch (...) {
    WaitUntilDone(*upload);
    throw;
  }
  TROUPE_RETURN_IF_ERROR(ordered);
  TROUPE_RETURN_IF_ERROR(copied);
  return copy;
}

/// Whether the device's kernels expect the elements elsewhere. InvalidArgument: they are no plain
/// bytes.
absl::StatusOr<bool> MustBeUploaded(Device* device, const Tensor& host) {
  if (device->memory_space() != MemorySpace::kDevice || host.space() == MemorySpace::kDevice) {
    return false;
  }
  if (IsPlain(host.type())) return true;
  return InvalidArgument("a tensor of type ", ElementTypeName(host.type()),
                         " cannot be copied to the memory of ", device->name());
}

}  // namespace

absl::StatusOr<Tensor> Upload(Device* device, const Tensor& host) {
  TROUPE_ASSIGN_OR_RETURN(const bool must, MustBeUploaded(device, host));
  return must ? CopyInto(device, host, nullptr) : host;
}

absl::StatusOr<UploadAhead> UploadAhead::Begin(Device* device, const Tensor& host) {
  TROUPE_ASSIGN_OR_RETURN(const bool must, MustBeUploaded(device, host));
  if (!must) return UploadAhead(device, host, nullptr);
  RefPtr<DeviceEvent> there;
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, CopyInto(device, host, nullptr, &there));
  return UploadAhead(device, std::move(copy), std::move(there));
}

UploadAhead::UploadAhead(Device* device, Tensor tensor, RefPtr<DeviceEvent> there)
    : device_(device), tensor_(std::move(tensor)), there_(std::move(there)) {}
UploadAhead::UploadAhead(UploadAhead&& other) noexcept
    : UploadAhead(other.device_, std::move(other.tensor_), std::move(other.there_)) {}
UploadAhead& UploadAhead::operator=(UploadAhead&& other) noexcept {
  if (this == &other) return *this;
  Wait().IgnoreError();
  device_ = other.device_;
  tensor_ = std::move(other.tensor_);
  there_ = std::move(other.there_);
  return *this;
}
UploadAhead::~UploadAhead() { Wait().IgnoreError(); }

absl::Status UploadAhead::Wait() {
  const RefPtr<DeviceEvent> there = std::move(there_);
  if (!there) return absl::OkStatus();
  return device_->stream(StreamUse::kCompute)->WaitFor(there);
}

absl::StatusOr<Tensor> UploadAhead::Take() && {
  TROUPE_RETURN_IF_ERROR(Wait());
  return std::move(tensor_);
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
  const auto finish = [transfer](absl::Status finished) {
    finished.Update(transfer->status);
    transfer->from.Reset();
    if (finished.ok()) {
      transfer->done(std::move(transfer->to));
    } else {
      transfer->done(std::move(finished));
    }
  };
  try {
    download->WhenDone(finish);
  } catch (...) {
    WaitUntilDone(*download);
    finish(StatusOfException());
  }
}

}  // namespace troupe
