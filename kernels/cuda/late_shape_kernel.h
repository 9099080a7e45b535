/// Base of kernels of GPUs whose outputs have shapes that depend on values.
#ifndef TROUPE_KERNELS_CUDA_LATE_SHAPE_KERNEL_H_
#define TROUPE_KERNELS_CUDA_LATE_SHAPE_KERNEL_H_

#include <any>
#include <memory>
#include <utility>

#include "devices/device.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {

/// A kernel in two parts: the first one enqueues what finds the sizes; when they have come to the
/// host, the second one allocates and enqueues the rest. No thread waits in between.
class LateShapeKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone done) final {
    absl::StatusOr<Search> search = Begin(ctx);
    if (!search.ok() || !search->found.valid()) return done(search.status());
    auto call = std::make_unique<Call>();
    call->kernel = this;
    call->ctx = &ctx;
    call->keep = std::move(search->keep);
    // std::function copies what it holds.
    Download(ctx.step().device, search->found,
             [call = call.release(), done](absl::StatusOr<Tensor> found) {
               std::unique_ptr<Call> own(call);
               if (!found.ok()) return done(found.status());
               own->found = *std::move(found);
               done(absl::OkStatus(), Player::kHandsOn, std::move(own));
             });
  }
  bool WaitsForNodes() const override { return false; }

 protected:
  struct Search {
    Tensor found;   ///< On the device, of int64; no tensor if the outputs have been made.
    std::any keep;  ///< For the second part.
  };
  virtual absl::StatusOr<Search> Begin(KernelContext& ctx) = 0;
  /// `found` is on the host by now.
  virtual absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& keep) = 0;

 private:
  struct Call final : KernelRest {
    absl::Status Finish() override {
      // Sizes made of what an earlier kernel has left after an error mean nothing.
      if (ctx->step().late_errors->any()) return absl::CancelledError("a kernel has failed");
      return kernel->End(*ctx, found.unchecked_data<int64_t>(), keep);
    }
    LateShapeKernel* kernel = nullptr;
    KernelContext* ctx = nullptr;
    Tensor found;
    std::any keep;
  };
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_LATE_SHAPE_KERNEL_H_
