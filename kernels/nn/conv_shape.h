/// What the three kernels of a convolution share: attributes (of 2-D ones), shapes, and their
/// implementations.
#ifndef TROUPE_KERNELS_NN_CONV_SHAPE_H_
#define TROUPE_KERNELS_NN_CONV_SHAPE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

/// Sizes of a convolution of [batch, rows, columns, in_depth] with [rows, columns, in_depth /
/// groups, out_depth]; of volumes, which have planes before the rows, if `is_3d`.
struct ConvShape {
  int64_t batch = 0, in_depth = 0, out_depth = 0, groups = 1;
  Window planes = {.input = 1, .output = 1};
  Window rows, columns;
  bool is_3d = false;           ///< There is one group then.
  bool channels_first = false;  ///< Images are NCHW, else NHWC. Filters are the same in both.

  int64_t filter_depth() const { return in_depth / groups; }
  /// Of one image.
  int64_t input_pixels() const { return planes.input * rows.input * columns.input; }
  int64_t output_pixels() const { return planes.output * rows.output * columns.output; }
  int64_t window_pixels() const { return planes.size * rows.size * columns.size; }
  int64_t input_elements() const { return batch * input_pixels() * in_depth; }
  int64_t output_elements() const { return batch * output_pixels() * out_depth; }
  /// Multiplications of one image.
  double image_products() const {
    return static_cast<double>(output_pixels()) * static_cast<double>(window_pixels()) *
           static_cast<double>(filter_depth() * out_depth);
  }
  Shape filter_shape() const {
    Shape shape{rows.size, columns.size, filter_depth(), out_depth};
    if (is_3d) shape.InsertDim(0, planes.size);
    return shape;
  }
  Shape output_shape() const {
    Shape shape = {batch, rows.output, columns.output};
    if (is_3d) shape.InsertDim(1, planes.output);
    shape.InsertDim(channels_first ? 1 : shape.rank(), out_depth);
    return shape;
  }
};

/// Which of the three kernels.
enum class ConvOp { kForward, kBackwardInput, kBackwardFilter };

/// InvalidArgument unless `gradient`, of the rank of the input, has the shape of the convolution's
/// output.
absl::Status CheckConvGradient(const ConvShape& shape, const Shape& gradient);
/// The shape of the input, from the elements of `sizes`, an int32 or int64 vector on the host:
/// either all, or the rows and columns alone, to which the others are added. InvalidArgument.
absl::StatusOr<Shape> ReadConvInputSizes(const Tensor& sizes, const Shape& filter,
                                         const Shape& gradient, bool channels_first);

/// A piece of a convolution, which is a convolution itself: some images, or some rows (planes, if
/// it is 3-D) of one.
struct ConvPiece {
  ConvShape shape;
  int64_t input = 0, output = 0;  ///< Where its input and output begin, in elements.
};

/// Cuts a convolution into about `wanted` pieces: by images, or by rows of the result (of the
/// output for the filter's gradient) where there are fewer images than pieces wanted. Depends on
/// the arguments only, so that results are the same bits on any number of threads.
std::vector<ConvPiece> CutConv(ConvOp op, const ConvShape& shape, double wanted);

/// Runs `body(piece, its number)`, giving absl::Status, for all pieces; the first error.
template <typename Body>
absl::Status ForPieces(KernelContext& ctx, const std::vector<ConvPiece>& pieces, Body body) {
  std::vector<absl::Status> results(pieces.size());
  ctx.ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[i] = body(pieces[i], i);
  });
  for (absl::Status& status : results) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

/// A filter. If it is the same constant in every step, what is made of it may be kept.
struct ConvFilter {
  const Tensor& tensor;
  bool is_constant = false;
};

/// What a kernel makes of its filter, in one form for each Layout, kept if the filter is constant.
/// Thread-safe.
template <typename Layout>
class PackedFilters {
 public:
  /// The filter in `layout`, which `pack()` (giving absl::StatusOr<Tensor>) makes unless it was
  /// kept.
  template <typename Pack>
  absl::StatusOr<Tensor> Get(const ConvFilter& filter, const Layout& layout, Pack pack) {
    if (!filter.is_constant) return pack();
    std::lock_guard<std::mutex> lock(mutex_);
    if (!filter.tensor.SharesBufferWith(source_)) {
      kept_.clear();
      source_ = filter.tensor;
    }
    for (const auto& [kept_layout, packed] : kept_) {
      if (kept_layout == layout) return packed;
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor packed, pack());
    kept_.emplace_back(layout, packed);
    return packed;
  }

 private:
  std::mutex mutex_;
  Tensor source_;
  std::vector<std::pair<Layout, Tensor>> kept_;
};

/// The attributes of a convolution.
class ConvAttributes {
 public:
  /// InvalidArgument or Unimplemented for what TensorFlow's kernel of `op` does not accept; for the
  /// CPU (`only_nhwc`) that is NCHW, too, and dilations in gradients.
  absl::Status Read(const KernelConstruction& construction, ConvOp op, bool only_nhwc);
  /// The sizes for shapes of full rank. InvalidArgument if they do not fit each other.
  absl::StatusOr<ConvShape> Resolve(const Shape& input, const Shape& filter) const;
  bool channels_first() const { return channels_first_; }

 private:
  bool channels_first_ = false;
  int64_t row_stride_ = 1, column_stride_ = 1, row_dilation_ = 1, column_dilation_ = 1;
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> paddings_;
};

/// Half, bfloat16 and float, by oneDNN. Tensors are of one type and have the sizes that the shape
/// says, none of them 0. Bfloat16 is multiplied as it is where oneDNN can (`OneDnnHasBfloat16`);
/// else 16-bit types are widened piece by piece. All sums are float.
class OneDnnConv {
 public:
  OneDnnConv();
  ~OneDnnConv();
  absl::Status Forward(KernelContext& ctx, const ConvShape& shape, const Tensor& input,
                       const ConvFilter& filter, Tensor* output);
  absl::Status BackwardInput(KernelContext& ctx, const ConvShape& shape, const ConvFilter& filter,
                             const Tensor& output_gradient, Tensor* input_gradient);
  absl::Status BackwardFilter(KernelContext& ctx, const ConvShape& shape, const Tensor& input,
                              const Tensor& output_gradient, Tensor* filter_gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Float, for images of few channels, where oneDNN leaves most lanes of its vectors empty.
bool NarrowConvPays(ConvOp op, const ConvShape& shape);
struct NarrowLayout {
  bool operator==(const NarrowLayout&) const = default;
};
absl::Status NarrowConvForward(KernelContext& ctx, const ConvShape& shape, const float* input,
                               const ConvFilter& filter, PackedFilters<NarrowLayout>* packed,
                               float* output);
absl::Status NarrowConvBackwardInput(KernelContext& ctx, const ConvShape& shape,
                                     const float* filter, const float* output_gradient,
                                     float* input_gradient);
absl::Status NarrowConvBackwardFilter(KernelContext& ctx, const ConvShape& shape,
                                      const float* input, const float* output_gradient,
                                      float* filter_gradient);

/// Half, bfloat16 and float, for one window of each channel: forward, and the gradient of the
/// input. `in` is the input, or the output's gradient. Sums are float.
bool DepthwiseConvPays(ConvOp op, const ConvShape& shape, ElementType type);
absl::Status DepthwiseConv(KernelContext& ctx, ConvOp op, const ConvShape& shape, const Tensor& in,
                           const Tensor& filter, Tensor* out);

/// By loops. T is double or int32_t, for these and the next three.
template <typename T>
void DirectConvForward(KernelContext& ctx, const ConvShape& shape, const T* input, const T* filter,
                       T* output);
template <typename T>
void DirectConvBackwardInput(KernelContext& ctx, const ConvShape& shape, const T* filter,
                             const T* output_gradient, T* input_gradient);
template <typename T>
void DirectConvBackwardFilter(KernelContext& ctx, const ConvShape& shape, const T* input,
                              const T* output_gradient, T* filter_gradient);

/// One group, by products of the matrix of what the windows see, made a block at a time.
template <typename T>
void PatchConvForward(KernelContext& ctx, const ConvShape& shape, const T* input, const T* filter,
                      T* output);
template <typename T>
void PatchConvBackwardInput(KernelContext& ctx, const ConvShape& shape, const T* filter,
                            const T* output_gradient, T* input_gradient);
template <typename T>
void PatchConvBackwardFilter(KernelContext& ctx, const ConvShape& shape, const T* input,
                             const T* output_gradient, T* filter_gradient);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CONV_SHAPE_H_
