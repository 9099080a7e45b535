// StringFormat: tensors as text for people.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"

namespace troupe {
namespace {

/// The shortest of two precisions that reads back as the same number.
template <typename T>
std::string NumberText(T value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", std::numeric_limits<T>::digits10, double{value});
  const T back = std::is_same_v<T, float> ? std::strtof(text, nullptr)
                                          : static_cast<T>(std::strtod(text, nullptr));
  if (back != value && value == value) {
    std::snprintf(text, sizeof text, "%.*g", std::numeric_limits<T>::max_digits10, double{value});
  }
  return text;
}

template <typename T>
std::string ElementText(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return absl::StrCat("\"", absl::Utf8SafeCEscape(value), "\"");
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return absl::StrCat(
        static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return NumberText(value);
  } else {
    return NumberText(static_cast<float>(value));
  }
}

/// Writes a tensor with `ends` elements at both ends of each dimension.
template <typename T>
class Summary {
 public:
  Summary(const Tensor& tensor, int64_t ends, std::string* text)
      : shape_(tensor.shape()), data_(tensor.unchecked_data<T>()), ends_(ends), text_(text) {}

  /// Dimensions from `dim` on of what begins at element `at`, of which there are `count`.
  void Write(int dim, int64_t at, int64_t count) {
    if (dim == shape_.rank()) {
      absl::StrAppend(text_, ElementText(data_[at]));
      return;
    }
    const int64_t size = shape_.dim(dim);
    const int64_t part = size == 0 ? 0 : count / size;
    *text_ += '[';
    for (int64_t i = 0; i < std::min(ends_, size); ++i) {
      if (i > 0) WriteSpace(dim);
      Write(dim + 1, at + i * part, part);
    }
    if (size / 2 > ends_ || (size / 2 == ends_ && size % 2 != 0)) {
      WriteSpace(dim);
      *text_ += "...";
    }
    for (int64_t i = size - ends_ > ends_ ? size - ends_ : ends_; i < size; ++i) {
      WriteSpace(dim);
      Write(dim + 1, at + i * part, part);
    }
    *text_ += ']';
  }

 private:
  /// Between two elements of a dimension.
  void WriteSpace(int dim) {
    const int inner = shape_.rank() - 1 - dim;
    text_->append(inner, '\n');
    text_->append(inner == 0 ? 1 : dim + 1, ' ');
  }

  const Shape& shape_;
  const T* const data_;
  const int64_t ends_;
  std::string* const text_;
};

/// Elements of these types are shown as question marks, without their dimensions.
void AppendUnknown(const Tensor& tensor, int64_t most, std::string* text) {
  const bool brackets = tensor.rank() > 0;
  if (brackets) *text += '[';
  for (int64_t i = 0; i < most; ++i) *text += i > 0 ? " ?" : "?";
  if (most < tensor.num_elements()) *text += "...";
  if (brackets) *text += ']';
}

void AppendTensor(const Tensor& tensor, int64_t summarize, std::string* text) {
  const int64_t count = tensor.num_elements();
  if (count == 0 && tensor.type() == ElementType::kBool) return;  // As in TensorFlow.
  const int64_t ends = summarize < 0 ? count : std::min(summarize, count);
  const absl::Status status = SwitchReal<bool, std::string>(tensor.type(), [&]<typename T>() {
    Summary<T>(tensor, ends, text).Write(0, 0, count);
    return absl::OkStatus();
  });
  if (!status.ok()) AppendUnknown(tensor, ends, text);
}

absl::Status StringFormat(KernelContext& ctx, const std::string& pattern,
                          const std::string& placeholder, int64_t summarize) {
  if (placeholder.empty()) return InvalidArgument("`placeholder` is empty");
  std::string text;
  size_t at = 0;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const size_t place = pattern.find(placeholder, at);
    if (place == std::string::npos) {
      return InvalidArgument("the template has ", i, " placeholders, but there are ",
                             ctx.num_inputs(), " inputs");
    }
    text.append(pattern, at, place - at);
    AppendTensor(ctx.input(i), summarize, &text);
    at = place + placeholder.size();
  }
  text.append(pattern, at, std::string::npos);
  return ctx.SetScalar(0, std::move(text));
}

REGISTER_KERNEL(KernelSpec("StringFormat"),
                (MakeAttrKernel<StringFormat, "template", "placeholder", "summarize">));

}  // namespace
}  // namespace troupe
