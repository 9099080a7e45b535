#include "kernels/nn/volume_windows.h"

#include <algorithm>
#include <string>

namespace troupe {

absl::Status VolumeAttributes::Read(const KernelConstruction& construction, const char* ksize,
                                    bool only_ndhwc) {
  channels_first_ = construction.attrs().GetOr<std::string>("data_format", "NDHWC") != "NDHWC";
  if (channels_first_ && only_ndhwc) {
    return InvalidArgument(construction.op(), " takes the data format NDHWC only on this device");
  }
  std::vector<int64_t> paddings;
  TROUPE_RETURN_IF_ERROR(ReadPadding(construction, &padding_, &paddings));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr(ksize, &sizes_));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides_));
  if (sizes_.size() != 5 || strides_.size() != 5) {
    return InvalidArgument(ksize, " and strides must have 5 elements, got ", sizes_.size(), " and ",
                           strides_.size());
  }
  for (int d = 0; d < 5; ++d) {
    if (sizes_[d] <= 0 || strides_[d] <= 0) {
      return InvalidArgument(ksize, " and strides must be positive, got ", sizes_[d], " and ",
                             strides_[d]);
    }
  }
  if (channels_first_) {
    for (std::vector<int64_t>* of : {&sizes_, &strides_}) {
      std::rotate(of->begin() + 1, of->begin() + 2, of->end());
    }
  }
  for (const int d : {0, 4}) {
    if (sizes_[d] == 1 && strides_[d] == 1) continue;
    return absl::UnimplementedError(
        "windows over the batch or the channels of volumes are not supported");
  }
  return absl::OkStatus();
}

absl::StatusOr<VolumeWindows> VolumeAttributes::Resolve(const Shape& input) const {
  if (input.rank() != 5) {
    return InvalidArgument("the input must be of rank 5, got shape ", input.ToString());
  }
  VolumeWindows w;
  w.channels_first = channels_first_;
  w.batch = input.dim(0);
  w.channels = input.dim(channels_first_ ? 1 : 4);
  Window* windows[] = {&w.planes, &w.rows, &w.columns};
  for (int d = 0; d < 3; ++d) {
    *windows[d] = {.input = input.dim(d + (channels_first_ ? 2 : 1)),
                   .size = sizes_[d + 1],
                   .stride = strides_[d + 1]};
  }
  TROUPE_RETURN_IF_ERROR(
      SlideAll(padding_, {}, w.batch, w.channels, {&w.planes, &w.rows, &w.columns}));
  return w;
}

}  // namespace troupe
