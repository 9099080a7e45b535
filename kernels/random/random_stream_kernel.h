/// Base of the kernels that draw random numbers one after the other.
#ifndef TROUPE_KERNELS_RANDOM_RANDOM_STREAM_KERNEL_H_
#define TROUPE_KERNELS_RANDOM_RANDOM_STREAM_KERNEL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/common/philox.h"
#include "kernels/kernel.h"
#include "kernels/kernel_state.h"

namespace troupe {

/// The stream is that of the attributes `seed` and `seed2`. Its state are key, stream and position;
/// a kernel that has more saves them first.
class RandomStreamKernel : public Kernel, public ResumableKernel {
 public:
  std::string SaveState() const override { return stream_.Save(); }
  absl::Status RestoreState(std::string_view state) override;

 protected:
  explicit RandomStreamKernel(KernelConstruction& construction)
      : stream_(construction.Attr<int64_t>("seed"), construction.Attr<int64_t>("seed2")) {}

  PhiloxStream stream_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_RANDOM_STREAM_KERNEL_H_
