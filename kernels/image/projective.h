/// What kernels of ImageProjectiveTransform share: attributes, shapes, and the formulas, for
/// processors and cards.
#ifndef TROUPE_KERNELS_IMAGE_PROJECTIVE_H_
#define TROUPE_KERNELS_IMAGE_PROJECTIVE_H_

#include "kernels/image/projective_formulas.h"
#include "kernels/kernel.h"

namespace troupe {

/// Reads the attributes and the shapes; `Project` fills the output.
class ProjectiveKernel : public Kernel {
 public:
  ProjectiveKernel(KernelConstruction& construction, absl::Status* status);
  absl::Status Compute(KernelContext& ctx) final;

 protected:
  struct Sizes {
    int64_t height, width;  ///< Of the new images.
    bool one_transform;     ///< For all images, else one for each.
    float fill_value;       ///< Of what is outside, if outside_ is kConstant.
  };
  /// Output 0 has been allocated, and is not empty.
  virtual absl::Status Project(KernelContext& ctx, const Sizes& sizes, Tensor* out) = 0;

  bool bilinear_ = false;
  Outside outside_ = Outside::kConstant;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_PROJECTIVE_H_
