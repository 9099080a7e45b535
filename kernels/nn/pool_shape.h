/// What poolings share: attributes and shapes.
#ifndef TROUPE_KERNELS_NN_POOL_SHAPE_H_
#define TROUPE_KERNELS_NN_POOL_SHAPE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

/// The sizes of one pooling.
struct PoolShape {
  int64_t batch = 0, depth = 0;
  Window rows, columns;
  int64_t depth_window = 1;
  bool channels_first = false;  ///< NCHW, else NHWC.

  Shape output_shape() const {
    const int64_t channels = depth / depth_window;
    return channels_first ? Shape({batch, channels, rows.output, columns.output})
                          : Shape({batch, rows.output, columns.output, channels});
  }
};

/// The windows of a pooling, from attributes, or from its last two inputs (the versions V2).
class PoolAttributes {
 public:
  /// For a node with so many inputs.
  explicit PoolAttributes(int num_inputs) : num_inputs_(num_inputs) {}

  /// InvalidArgument or Unimplemented for what no kernel takes, or another data format than
  /// NHWC, or NCHW if that is taken.
  absl::Status Read(const KernelConstruction& construction, bool takes_nchw);
  /// The sizes for an input of shape `input`; ksize and strides, if they are inputs, are on the
  /// host. InvalidArgument or Unimplemented if they do not fit.
  absl::StatusOr<PoolShape> Resolve(const KernelContext& ctx, const Shape& input,
                                    bool allows_depth) const;

 private:
  using Sizes = std::array<int64_t, 4>;  ///< Batch, rows, columns, depth.

  /// From the order of the data format.
  Sizes InOrder(const Sizes& sizes) const;
  static absl::Status Check(const Sizes& window, const Sizes& stride);

  const int num_inputs_;
  bool from_inputs_ = false, channels_first_ = false;
  Sizes window_ = {}, stride_ = {};
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> paddings_;
};

/// The elements of an int32 vector on the host, which must have 4; InvalidArgument.
absl::Status ReadPoolSizes(const Tensor& sizes, const char* name, std::array<int64_t, 4>* out);

/// InvalidArgument, which names the input, unless `got` is `want`.
absl::Status CheckPoolShape(const char* name, const Shape& got, const Shape& want);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_POOL_SHAPE_H_
