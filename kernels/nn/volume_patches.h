/// ExtractVolumePatches, for every type of device: what it takes and what it refuses is the same
/// everywhere; each type of devices with a memory of its own has its own `FillVolumePatches`.
#ifndef TROUPE_KERNELS_NN_VOLUME_PATCHES_H_
#define TROUPE_KERNELS_NN_VOLUME_PATCHES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/volume_windows.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<Kernel>> ExtractVolumePatches(KernelConstruction& construction);

/// Fills `out`, of shape [batch, planes, rows, columns, pixels of a window * channels], with the
/// windows over `in` [batch, planes, rows, columns, channels]; with zeros where those reach beyond
/// the volume. `out` has elements.
absl::Status FillVolumePatches(KernelContext& ctx, const VolumeWindows& windows, const Tensor& in,
                               Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_VOLUME_PATCHES_H_
