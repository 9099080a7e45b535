/// Windows that slide over volumes: attributes and shapes.
#ifndef TROUPE_KERNELS_NN_VOLUME_WINDOWS_H_
#define TROUPE_KERNELS_NN_VOLUME_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

/// The sizes of one pooling of volumes.
struct VolumeWindows {
  int64_t batch = 0, channels = 0;
  Window planes, rows, columns;
  bool channels_first = false;  ///< NCDHW, else NDHWC.

  int64_t in_pixels() const { return planes.input * rows.input * columns.input; }
  int64_t out_pixels() const { return planes.output * rows.output * columns.output; }
  int64_t window_pixels() const { return planes.size * rows.size * columns.size; }
  Shape output_shape(int64_t depth) const {
    return channels_first ? Shape({batch, depth, planes.output, rows.output, columns.output})
                          : Shape({batch, planes.output, rows.output, columns.output, depth});
  }
};

/// The windows of a kernel, from its attributes.
class VolumeAttributes {
 public:
  /// `ksize`: the attribute with the windows' sizes. InvalidArgument or Unimplemented for what no
  /// kernel takes, or, if `only_ndhwc`, for NCDHW.
  absl::Status Read(const KernelConstruction& construction, const char* ksize, bool only_ndhwc);
  /// The sizes for an input of this shape. InvalidArgument if they do not fit.
  absl::StatusOr<VolumeWindows> Resolve(const Shape& input) const;

 private:
  bool channels_first_ = false;
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> sizes_, strides_;  ///< In the order of NDHWC.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_VOLUME_WINDOWS_H_
