/// What the three kernels of a 2-D convolution share: attributes, shapes, and their
/// implementations.
#ifndef TROUPE_KERNELS_NN_CONV_SHAPE_H_
#define TROUPE_KERNELS_NN_CONV_SHAPE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

/// Sizes of a convolution of [batch, rows, columns, in_depth] with [rows, columns, in_depth /
/// groups, out_depth].
struct ConvShape {
  int64_t batch = 0, in_depth = 0, out_depth = 0, groups = 1;
  Window rows, columns;

  int64_t filter_depth() const { return in_depth / groups; }
  /// Multiplications of one image.
  double image_products() const {
    return static_cast<double>(rows.output * columns.output) *
           static_cast<double>(rows.size * columns.size) *
           static_cast<double>(filter_depth() * out_depth);
  }
  Shape input_shape() const { return {batch, rows.input, columns.input, in_depth}; }
  Shape filter_shape() const { return {rows.size, columns.size, filter_depth(), out_depth}; }
  Shape output_shape() const { return {batch, rows.output, columns.output, out_depth}; }
};

/// Which of the three kernels.
enum class ConvOp { kForward, kBackwardInput, kBackwardFilter };

/// The attributes of a convolution. Only NHWC is implemented on the CPU, as in TensorFlow.
class ConvAttributes {
 public:
  /// InvalidArgument or Unimplemented for what TensorFlow's kernel of `op` does not accept.
  absl::Status Read(const KernelConstruction& construction, ConvOp op);
  /// The sizes for shapes of full rank. InvalidArgument if they do not fit each other.
  absl::StatusOr<ConvShape> Resolve(const Shape& input, const Shape& filter) const;

 private:
  int64_t row_stride_ = 1, column_stride_ = 1, row_dilation_ = 1, column_dilation_ = 1;
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> paddings_;
};

/// Float, by oneDNN. Images, filters and results are dense; none of the sizes is 0.
class OneDnnConv {
 public:
  OneDnnConv();
  ~OneDnnConv();
  absl::Status Forward(KernelContext& ctx, const ConvShape& shape, const float* input,
                       const float* filter, float* output);
  absl::Status BackwardInput(KernelContext& ctx, const ConvShape& shape, const float* filter,
                             const float* output_gradient, float* input_gradient);
  absl::Status BackwardFilter(KernelContext& ctx, const ConvShape& shape, const float* input,
                              const float* output_gradient, float* filter_gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Float, for images of few channels, where oneDNN leaves most lanes of its vectors empty.
bool NarrowConvPays(ConvOp op, const ConvShape& shape);
absl::Status NarrowConvForward(KernelContext& ctx, const ConvShape& shape, const float* input,
                               const float* filter, float* output);
absl::Status NarrowConvBackwardInput(KernelContext& ctx, const ConvShape& shape,
                                     const float* filter, const float* output_gradient,
                                     float* input_gradient);
absl::Status NarrowConvBackwardFilter(KernelContext& ctx, const ConvShape& shape,
                                      const float* input, const float* output_gradient,
                                      float* filter_gradient);

/// Any type, by loops. T is double or int32_t.
template <typename T>
void DirectConvForward(KernelContext& ctx, const ConvShape& shape, const T* input, const T* filter,
                       T* output);
template <typename T>
void DirectConvBackwardInput(KernelContext& ctx, const ConvShape& shape, const T* filter,
                             const T* output_gradient, T* input_gradient);
template <typename T>
void DirectConvBackwardFilter(KernelContext& ctx, const ConvShape& shape, const T* input,
                              const T* output_gradient, T* filter_gradient);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CONV_SHAPE_H_
