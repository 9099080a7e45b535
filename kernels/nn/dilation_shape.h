/// Attributes and shapes of Dilation2D and its gradients.
#ifndef TROUPE_KERNELS_NN_DILATION_SHAPE_H_
#define TROUPE_KERNELS_NN_DILATION_SHAPE_H_

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/window.h"

namespace troupe {

struct DilationShape {
  int64_t batch = 0, depth = 0;
  Window rows, columns;

  Shape output_shape() const { return {batch, rows.output, columns.output, depth}; }
};

class DilationAttributes {
 public:
  /// InvalidArgument or Unimplemented.
  absl::Status Read(const KernelConstruction& construction);
  /// The sizes for an input and a filter [rows, columns, depth]. InvalidArgument if they do not fit
  /// each other.
  absl::StatusOr<DilationShape> Resolve(const Shape& input, const Shape& filter) const;
  /// The same for a gradient kernel, whose inputs are input, filter and the output's gradient.
  absl::StatusOr<DilationShape> ResolveGradient(const KernelContext& ctx) const;

 private:
  PaddingMode padding_ = PaddingMode::kValid;
  Window rows_, columns_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_DILATION_SHAPE_H_
