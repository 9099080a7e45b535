// DataFormatDimMap, DataFormatVecPermute.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status CheckFormats(const std::string& source, const std::string& target) {
  for (const std::string& format : {source, target}) {
    if (format.size() != 4 && format.size() != 5) {
      return InvalidArgument("a data format has 4 or 5 letters, got '", format, "'");
    }
  }
  std::string letters = source;
  std::sort(letters.begin(), letters.end());
  if (std::adjacent_find(letters.begin(), letters.end()) != letters.end() ||
      !std::is_permutation(source.begin(), source.end(), target.begin(), target.end())) {
    return InvalidArgument("'", source, "' and '", target,
                           "' must have the same letters, each of them once");
  }
  return absl::OkStatus();
}

absl::Status MapDims(KernelContext& ctx, const std::string& source, const std::string& target) {
  TROUPE_RETURN_IF_ERROR(CheckFormats(source, target));
  const auto count = static_cast<int64_t>(source.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
  return SwitchType<int32_t, int64_t>(y->type(), [&]<typename T>() {
    const T* from = ctx.input(0).unchecked_data<T>();
    T* to = y->mutable_data<T>();
    for (int64_t i = 0; i < y->num_elements(); ++i) {
      // Numbers of no dimension are not refused; what they give is TensorFlow's.
      const int64_t dim = (from[i] < 0 ? from[i] + count : from[i]) % count;
      const char letter = dim < 0 ? source.back() : source[dim];
      to[i] = static_cast<T>(target.find(letter));
    }
    return absl::OkStatus();
  });
}

/// The letters of a format that are dimensions of space.
std::string Space(const std::string& format) {
  std::string space;
  for (const char letter : format) {
    if (std::string_view("DHW").find(letter) != std::string_view::npos) space += letter;
  }
  return space;
}

absl::Status PermuteVector(KernelContext& ctx, std::string source, std::string target) {
  TROUPE_RETURN_IF_ERROR(CheckFormats(source, target));
  const Tensor& x = ctx.input(0);
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dim(1) != 2)) {
    return InvalidArgument("x must be a vector or a matrix of 2 columns, got shape ",
                           x.shape().ToString());
  }
  if (x.dim(0) + 2 == static_cast<int64_t>(source.size())) {
    source = Space(source);
    target = Space(target);
  }
  if (x.dim(0) != static_cast<int64_t>(source.size())) {
    return InvalidArgument(
        "x must have a row for each dimension of the data format, or for each "
        "one of space, got shape ",
        x.shape().ToString());
  }
  const int64_t columns = x.rank() == 1 ? 1 : 2;
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), x.shape()));
  return SwitchType<int32_t, int64_t>(x.type(), [&]<typename T>() {
    T* to = y->mutable_data<T>();
    for (const char letter : target) {
      const auto row = static_cast<int64_t>(source.find(letter));
      to = std::copy_n(x.unchecked_data<T>() + row * columns, columns, to);
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(Cheap("DataFormatDimMap").Types("T", IndexTypes()),
                (MakeAttrKernel<MapDims, "src_format", "dst_format">));
REGISTER_KERNEL(Cheap("DataFormatVecPermute").Types("T", IndexTypes()),
                (MakeAttrKernel<PermuteVector, "src_format", "dst_format">));

}  // namespace
}  // namespace troupe
