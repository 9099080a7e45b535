#include "kernels/data/copy_kernels.h"

#include <utility>

#include "devices/peer_copy.h"
#include "devices/status_macros.h"
#include "kernels/data/element_memory.h"

namespace troupe {

namespace {

/// On the host to on the device. What a variant holds is copied by whoever wants it.
class UploadKernel final : public Kernel {
  absl::Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).type() == ElementType::kVariant) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor there, Upload(ctx.step().device, ctx.input(0)));
    ctx.set_output(0, std::move(there));
    return absl::OkStatus();
  }
};

void FetchFrom(Device* device, KernelContext& ctx, KernelDone done) {
  DownloadValue(device, ctx.input(0), [&ctx, done](absl::StatusOr<Tensor> here) {
    absl::Status status = here.status();
    if (status.ok()) ctx.set_output(0, *std::move(here));
    done(std::move(status));
  });
}

/// The other way.
class DownloadKernel final : public AsyncKernel {
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    FetchFrom(ctx.step().device, ctx, done);
  }
  bool WaitsForNodes() const override { return false; }
};

/// What a connected device has sent, wherever that is, to this device.
class PeerUploadKernel final : public Kernel {
 public:
  explicit PeerUploadKernel(Device* peer) : peer_(peer) {}
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(Tensor here, CopyFromPeer(ctx.step().device, peer_, ctx.input(0)));
    ctx.set_output(0, std::move(here));
    return absl::OkStatus();
  }

 private:
  Device* const peer_;
};

/// Or to the host.
class PeerDownloadKernel final : public AsyncKernel {
 public:
  explicit PeerDownloadKernel(Device* peer) : peer_(peer) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override { FetchFrom(peer_, ctx, done); }
  bool WaitsForNodes() const override { return false; }

 private:
  Device* const peer_;
};

}  // namespace

std::shared_ptr<Kernel> MakeCopyKernel(MemorySpace to, Device* peer) {
  const bool there = to == MemorySpace::kDevice;
  if (peer == nullptr) {
    if (there) return std::make_shared<UploadKernel>();
    return std::make_shared<DownloadKernel>();
  }
  if (there) return std::make_shared<PeerUploadKernel>(peer);
  return std::make_shared<PeerDownloadKernel>(peer);
}

}  // namespace troupe
