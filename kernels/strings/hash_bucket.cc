// Strings to buckets.
#include <farmhash.h>

#include <string>

#include "kernels/common/registration.h"

namespace troupe {
namespace {

absl::Status StringToHashBucketFast(KernelContext& ctx, int64_t num_buckets) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kInt64, input.shape()));
  const std::string* strings = input.unchecked_data<std::string>();
  int64_t* buckets = output->mutable_data<int64_t>();
  const auto count = static_cast<uint64_t>(num_buckets);
  ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(15.0),
                  [=](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      buckets[i] = static_cast<int64_t>(
                          util::Fingerprint64(strings[i].data(), strings[i].size()) % count);
                    }
                  });
  return absl::OkStatus();
}

REGISTER_KERNEL(KernelSpec("StringToHashBucketFast"),
                (MakeAttrKernel<StringToHashBucketFast, "num_buckets">));

}  // namespace
}  // namespace troupe
