// EncodeBase64, DecodeBase64.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "kernels/common/registration.h"
#include "kernels/strings/map_strings.h"

namespace troupe {
namespace {

absl::Status EncodeBase64(KernelContext& ctx, bool pad) {
  return MapStrings<std::string>(ctx, 60,
                                 [pad](const std::string& bytes, std::string* text) {
                                   absl::WebSafeBase64Escape(bytes, text);
                                   if (pad) text->append((4 - text->size() % 4) % 4, '=');
                                   return true;
                                 })
      .status();
}

bool Decode(absl::string_view text, std::string* bytes) {
  // Only a complete group of four may end in padding.
  if (!text.empty() && text.size() % 4 == 0) {
    for (int i = 0; i < 2 && text.back() == '='; ++i) text.remove_suffix(1);
  }
  // Abseil would skip white space and take other padding.
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
  return clean && text.size() % 4 != 1 && absl::WebSafeBase64Unescape(text, bytes);
}

absl::Status DecodeBase64(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t bad, MapStrings<std::string>(ctx, 60, Decode));
  if (bad < 0) return absl::OkStatus();
  return InvalidArgument("element ", bad, " of the strings of shape ",
                         ctx.input(0).shape().ToString(),
                         " is not in base 64 with the alphabet for web addresses");
}

REGISTER_KERNEL(KernelSpec("EncodeBase64"), (MakeAttrKernel<EncodeBase64, "pad">));
REGISTER_KERNEL(KernelSpec("DecodeBase64"), MakeKernel<DecodeBase64>);

}  // namespace
}  // namespace troupe
