/// Windows that slide over volumes.
#ifndef TROUPE_KERNELS_NN_VOLUME_WINDOWS_H_
#define TROUPE_KERNELS_NN_VOLUME_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

/// The sizes of one pooling of volumes, or of patches of them.
struct VolumeWindows {
  int64_t batch = 0, channels = 0;
  Window planes, rows, columns;

  int64_t in_pixels() const { return planes.input * rows.input * columns.input; }
  int64_t out_pixels() const { return planes.output * rows.output * columns.output; }
  int64_t window_pixels() const { return planes.size * rows.size * columns.size; }
  Shape output_shape(int64_t depth) const {
    return {batch, planes.output, rows.output, columns.output, depth};
  }
  /// Nanoseconds that one output pixel takes.
  double pixel_ns() const {
    return 0.3 * static_cast<double>(channels) * static_cast<double>(window_pixels());
  }
};

/// The windows of a kernel, from its attributes.
class VolumeAttributes {
 public:
  /// `ksize`: the name of the attribute with the sizes.
  absl::Status Read(const KernelConstruction& construction, const char* ksize) {
    if (construction.attrs().GetOr<std::string>("data_format", "NDHWC") != "NDHWC") {
      return InvalidArgument(construction.op(), " takes the data format NDHWC only on this device");
    }
    std::vector<int64_t> paddings;
    TROUPE_RETURN_IF_ERROR(ReadPadding(construction, &padding_, &paddings));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr(ksize, &sizes_));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides_));
    if (sizes_.size() != 5 || strides_.size() != 5) {
      return InvalidArgument(ksize, " and strides must have 5 elements, got ", sizes_.size(),
                             " and ", strides_.size());
    }
    for (int d = 0; d < 5; ++d) {
      if (sizes_[d] <= 0 || strides_[d] <= 0) {
        return InvalidArgument(ksize, " and strides must be positive, got ", sizes_[d], " and ",
                               strides_[d]);
      }
    }
    for (const int d : {0, 4}) {
      if (sizes_[d] == 1 && strides_[d] == 1) continue;
      return absl::UnimplementedError(
          "windows over the batch or the channels of volumes are not supported");
    }
    return absl::OkStatus();
  }

  /// For an input of this shape. InvalidArgument if the windows do not fit.
  absl::StatusOr<VolumeWindows> Resolve(const Shape& input) const {
    if (input.rank() != 5) {
      return InvalidArgument("the input must be of rank 5, got shape ", input.ToString());
    }
    VolumeWindows w;
    w.batch = input.dim(0);
    w.channels = input.dim(4);
    Window* windows[] = {&w.planes, &w.rows, &w.columns};
    for (int d = 0; d < 3; ++d) {
      *windows[d] = {.input = input.dim(d + 1), .size = sizes_[d + 1], .stride = strides_[d + 1]};
    }
    TROUPE_RETURN_IF_ERROR(
        SlideAll(padding_, {}, w.batch, w.channels, {&w.planes, &w.rows, &w.columns}));
    return w;
  }

 private:
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> sizes_, strides_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_VOLUME_WINDOWS_H_
