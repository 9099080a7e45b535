// StringToHashBucket, StringToHashBucketStrong.
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/strings/hashes.h"
#include "kernels/strings/map_strings.h"

namespace troupe {
namespace {

template <typename Hash>
absl::Status ToBuckets(KernelContext& ctx, int64_t num_buckets, Hash hash) {
  const auto count = static_cast<uint64_t>(num_buckets);
  return MapStrings<int64_t>(ctx, 25,
                             [=](const std::string& text, int64_t* bucket) {
                               *bucket = static_cast<int64_t>(hash(text) % count);
                               return true;
                             })
      .status();
}

absl::Status StringToHashBucket(KernelContext& ctx, int64_t num_buckets) {
  return ToBuckets(ctx, num_buckets, [](const std::string& text) { return MurmurHash64(text); });
}

absl::Status StringToHashBucketStrong(KernelContext& ctx, int64_t num_buckets,
                                      const std::vector<int64_t>& key) {
  if (key.size() != 2) {
    return InvalidArgument("key must have two numbers, got ", key.size());
  }
  return ToBuckets(ctx, num_buckets, [&](const std::string& text) {
    return SipHash(text, {static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])});
  });
}

REGISTER_KERNEL(KernelSpec("StringToHashBucket"),
                (MakeAttrKernel<StringToHashBucket, "num_buckets">));
REGISTER_KERNEL(KernelSpec("StringToHashBucketStrong"),
                (MakeAttrKernel<StringToHashBucketStrong, "num_buckets", "key">));

}  // namespace
}  // namespace troupe
