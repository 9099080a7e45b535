/// How cuDNN computes a convolution: what its heuristics suggest, of what computes with the
/// accuracy of sums of floats and gives the same bits every time.
#ifndef TROUPE_KERNELS_CUDA_CONV_PLAN_H_
#define TROUPE_KERNELS_CUDA_CONV_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/element_type.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/nn/conv_shape.h"

namespace troupe::cuda {

/// A convolution or one of its gradients, none of whose tensors is empty. The filter, or its
/// gradient, is [out_depth, rows, columns, filter_depth] for NHWC and [out_depth, filter_depth,
/// rows, columns] for NCHW; of volumes, planes come before the rows.
struct ConvProblem {
  ConvOp op;
  ElementType type;  ///< half, bfloat16, float or double.
  ConvShape shape;
  bool tf32;               ///< Float may be rounded to TF32.
  int64_t most_workspace;  ///< Bytes; more only if there is no other way.
};

/// Elements that an input lacks at the ends of a dimension.
struct Border {
  int64_t before = 0, after = 0;

  bool operator==(const Border&) const = default;
};
/// Makes the padding the same at both ends, for an input that gets the border, of zeros; for many
/// windows there is none.
Border MakePaddingEven(Window* window);

/// The card that a plan is for: a handle's, or one that a descriptor of device properties tells of,
/// which need not be there; such a plan cannot be executed.
struct ConvTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

/// Immutable.
class ConvPlan {
 public:
  /// What the addresses of tensors must be multiples of.
  static constexpr int64_t kAlignment = 16;

  /// Up to `most`, one at least; those that cuDNN's heuristics like best come first. Unimplemented
  /// if it knows no way.
  static absl::StatusOr<std::vector<ConvPlan>> Make(const Cudnn& cudnn, const ConvTarget& target,
                                                    const ConvProblem& problem, size_t most);

  int64_t workspace() const { return workspace_; }
  /// Enqueues on the handle's stream; one thread at a time may use a handle.
  absl::Status Execute(const Cudnn& cudnn, cudnnHandle_t handle, const void* input,
                       const void* filter, const void* output, void* workspace) const;

 private:
  using Kept = std::shared_ptr<const std::vector<CudnnDescriptor>>;

  ConvPlan(Kept graph, CudnnDescriptor configuration, CudnnDescriptor plan, int64_t workspace)
      : graph_(std::move(graph)),
        configuration_(std::move(configuration)),
        plan_(std::move(plan)),
        workspace_(workspace) {}

  Kept graph_;  ///< What it was made of, with the configuration.
  CudnnDescriptor configuration_, plan_;
  int64_t workspace_;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CONV_PLAN_H_
