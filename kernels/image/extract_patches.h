/// ExtractImagePatches, for every type of device: what it takes and what it refuses is the same
/// everywhere; each type of devices with a memory of its own has its own `FillPatches`.
#ifndef TROUPE_KERNELS_IMAGE_EXTRACT_PATCHES_H_
#define TROUPE_KERNELS_IMAGE_EXTRACT_PATCHES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<Kernel>> ExtractImagePatches(KernelConstruction& construction);

/// Fills `out`, of shape [batch, rows.output, columns.output, rows.size * columns.size * channels],
/// with the windows over `images` [batch, rows.input, columns.input, channels]; with zeros where
/// those reach beyond the image. `out` has elements.
absl::Status FillPatches(KernelContext& ctx, const Window& rows, const Window& columns,
                         const Tensor& images, Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_EXTRACT_PATCHES_H_
