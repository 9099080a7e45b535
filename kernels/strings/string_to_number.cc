// StringToNumber.
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "kernels/common/registration.h"
#include "kernels/strings/map_strings.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// "-0x1.8p3" and the like.
template <typename T>
bool ParseHexadecimal(absl::string_view text, T* number) {
  text = absl::StripAsciiWhitespace(text);
  const bool negative = absl::ConsumePrefix(&text, "-");
  if (!negative) absl::ConsumePrefix(&text, "+");
  if (!absl::ConsumePrefix(&text, "0x") && !absl::ConsumePrefix(&text, "0X")) return false;
  // from_chars would take a second sign.
  if (absl::StartsWith(text, "-")) return false;
  const char* end = text.data() + text.size();
  const auto result = absl::from_chars(text.data(), end, *number, absl::chars_format::hex);
  if (result.ec == std::errc::invalid_argument || result.ptr != end) return false;
  if (result.ec == std::errc::result_out_of_range && *number > 1) {
    *number = std::numeric_limits<T>::infinity();
  }
  if (negative) *number = -*number;
  return true;
}

/// A decimal number without white space around it, which most are; false does not say that it is
/// none.
template <typename T>
bool ParseDecimal(const std::string& text, T* number) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  if (text.size() == sign || !(absl::ascii_isdigit(text[sign]) || text[sign] == '.')) return false;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *number);
  return result.ec == std::errc() && result.ptr == end;
}

template <typename T>
bool ParseNumber(const std::string& text, T* number) {
  if (ParseDecimal(text, number)) return true;
  if constexpr (std::is_integral_v<T>) {
    return absl::SimpleAtoi(text, number);
  } else if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(text, number) || ParseHexadecimal(text, number);
  } else {
    return absl::SimpleAtod(text, number) || ParseHexadecimal(text, number);
  }
}

absl::Status StringToNumber(KernelContext& ctx, ElementType type) {
  return SwitchType<float, double, int32_t, int64_t, uint32_t, uint64_t>(
      type, [&]<typename T>() -> absl::Status {
        TROUPE_ASSIGN_OR_RETURN(const int64_t bad, MapStrings<T>(ctx, 40, ParseNumber<T>));
        if (bad < 0) return absl::OkStatus();
        return InvalidArgument("'", ctx.input(0).unchecked_data<std::string>()[bad], "' (element ",
                               bad, " of ", ctx.input(0).shape().ToString(), ") is no number of ",
                               ElementTypeName(type));
      });
}

REGISTER_KERNEL(KernelSpec("StringToNumber"), (MakeAttrKernel<StringToNumber, "out_type">));

}  // namespace
}  // namespace troupe
