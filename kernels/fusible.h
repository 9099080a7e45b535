/// Kernels that can be computed together, by one kernel.
#ifndef TROUPE_KERNELS_FUSIBLE_H_
#define TROUPE_KERNELS_FUSIBLE_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace troupe {

class FusibleKernel;

/// What a fused kernel computes. Its values are numbered: first its inputs, then what each call
/// gives.
struct FusedCalls {
  struct Call {
    std::string node;  ///< For messages: its name, with its op.
    std::shared_ptr<const FusibleKernel> kernel;
    std::vector<int> operands;  ///< Values.
  };
  int num_inputs = 0;
  std::vector<Call> calls;   ///< Each after those that give its operands.
  std::vector<int> outputs;  ///< Of the fused kernel: values, without duplicates.
};

/// What a kernel is, besides, if each element of its only output is a function of one element of
/// each input, which are broadcast.
class FusibleKernel {
 public:
  virtual ~FusibleKernel() = default;
  /// Kernels can be fused with those that say the same. nullptr: with none.
  virtual const void* family() const = 0;
  /// A kernel that computes what `calls`, all of this family, compute one after the other: the same
  /// bits, and the same errors with the call's node before the message. nullptr: these are too many
  /// for one.
  virtual std::shared_ptr<Kernel> Fuse(const FusedCalls& calls) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_FUSIBLE_H_
