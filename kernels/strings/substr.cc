// Substr, StringLength.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/common/broadcast.h"
#include "kernels/common/registration.h"
#include "kernels/strings/map_strings.h"
#include "kernels/strings/utf8.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

constexpr char kCharacters[] = "UTF8_CHAR";

/// False if `position` is not in [-length, length] of the text.
bool SubstrBytes(std::string_view text, int64_t position, int64_t length, std::string* result) {
  const auto size = static_cast<int64_t>(text.size());
  if (position < -size || position > size) return false;
  if (position < 0) position += size;
  // As in TensorFlow a negative length takes all that is left.
  const int64_t rest = size - position;
  *result = text.substr(position, length < 0 ? rest : std::min(length, rest));
  return true;
}

bool SubstrCharacters(std::string_view text, int64_t position, int64_t length,
                      std::string* result) {
  const int64_t size = NumCharacters(text);
  if (position < -size || position > size) return false;
  const size_t begin = SkipCharacters(text, 0, position < 0 ? position + size : position);
  *result = text.substr(begin, SkipCharacters(text, begin, length) - begin);
  return true;
}

absl::Status Substr(KernelContext& ctx, const std::string& unit) {
  const Tensor &input = ctx.input(0), &positions = ctx.input(1), &lengths = ctx.input(2);
  if (positions.shape() != lengths.shape()) {
    return InvalidArgument("pos and len must have one shape, got ", positions.shape().ToString(),
                           " and ", lengths.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(input.shape(), positions.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kString, shape));
  const BroadcastWalk walk(shape, {&input.shape(), &positions.shape()});
  const std::string* in = input.unchecked_data<std::string>();
  std::string* out = output->mutable_data<std::string>();
  const auto substr = unit == kCharacters ? SubstrCharacters : SubstrBytes;
  return SwitchType<int32_t, int64_t>(positions.type(), [&]<typename T>() {
    const T *from = positions.unchecked_data<T>(), *sizes = lengths.unchecked_data<T>();
    absl::Status status;
    walk.ForEach(0, walk.num_runs(), [&](int64_t first, const BroadcastWalk::Offsets& offsets) {
      for (int64_t i = 0; i < walk.run_length() && status.ok(); ++i) {
        const std::string& text = in[offsets[0] + i * walk.run_step(0)];
        const int64_t at = offsets[1] + i * walk.run_step(1);
        if (!substr(text, from[at], sizes[at], &out[first + i])) {
          status = InvalidArgument("pos ", from[at], " is out of range for the string '", text,
                                   "' (element ", first + i, " of ", shape.ToString(), ")");
        }
      }
    });
    return status;
  });
}

absl::Status StringLength(KernelContext& ctx, const std::string& unit) {
  const bool characters = unit == kCharacters;
  return MapStrings<int32_t>(
             ctx, 10,
             [characters](const std::string& text, int32_t* length) {
               *length = static_cast<int32_t>(characters ? NumCharacters(text) : text.size());
               return true;
             })
      .status();
}

REGISTER_KERNEL(KernelSpec("Substr"), (MakeAttrKernel<Substr, "unit">));
REGISTER_KERNEL(KernelSpec("StringLength"), (MakeAttrKernel<StringLength, "unit">));

}  // namespace
}  // namespace troupe
