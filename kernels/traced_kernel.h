/// What a traced step says beside the times of its nodes.
#ifndef TROUPE_KERNELS_TRACED_KERNEL_H_
#define TROUPE_KERNELS_TRACED_KERNEL_H_

namespace troupe {

class RunMetadata;

/// A kernel of something that works between steps, too.
class TracedKernel {
 public:
  virtual ~TracedKernel() = default;
  /// Adds a device to the step stats. Called after each step that is traced.
  virtual void AddStatsTo(RunMetadata* metadata) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_TRACED_KERNEL_H_
