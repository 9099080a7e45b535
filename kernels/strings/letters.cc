// StringLower, StringUpper, StringStrip.
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <string>

#include "absl/strings/ascii.h"
#include "kernels/common/registration.h"
#include "kernels/strings/map_strings.h"

namespace troupe {
namespace {

enum class Case { kLower, kUpper };

/// As in TensorFlow a zero byte ends the text.
std::string ConvertUnicode(const std::string& text, Case to) {
  icu::UnicodeString characters = icu::UnicodeString::fromUTF8(text.c_str());
  const icu::Locale& root = icu::Locale::getRoot();
  to == Case::kLower ? characters.toLower(root) : characters.toUpper(root);
  std::string result;
  return characters.toUTF8String(result);
}

template <Case kTo>
class ChangeCase final : public Kernel {
 public:
  ChangeCase(KernelConstruction& c, absl::Status* status)
      : unicode_(c.Attr<std::string>("encoding") == "utf-8") {
    if (const std::string encoding = c.Attr<std::string>("encoding");
        !unicode_ && !encoding.empty()) {
      *status = InvalidArgument("encoding must be 'utf-8' or '', got '", encoding, "'");
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, 60,
                                   [this](const std::string& text, std::string* result) {
                                     if (unicode_) {
                                       *result = ConvertUnicode(text, kTo);
                                     } else if (kTo == Case::kLower) {
                                       *result = absl::AsciiStrToLower(text);
                                     } else {
                                       *result = absl::AsciiStrToUpper(text);
                                     }
                                     return true;
                                   })
        .status();
  }

 private:
  const bool unicode_;
};

absl::Status StringStrip(KernelContext& ctx) {
  return MapStrings<std::string>(ctx, 30,
                                 [](const std::string& text, std::string* result) {
                                   *result = std::string(absl::StripAsciiWhitespace(text));
                                   return true;
                                 })
      .status();
}

REGISTER_KERNEL(KernelSpec("StringLower"), MakeKernel<ChangeCase<Case::kLower>>);
REGISTER_KERNEL(KernelSpec("StringUpper"), MakeKernel<ChangeCase<Case::kUpper>>);
REGISTER_KERNEL(KernelSpec("StringStrip"), MakeKernel<StringStrip>);

}  // namespace
}  // namespace troupe
