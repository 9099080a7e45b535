// AsString: numbers as text.
#include <complex>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"

namespace troupe {
namespace {

using IntegerFormat = absl::ParsedFormat<absl::FormatConversionCharSet::kIntegral>;
using FloatingFormat = absl::ParsedFormat<absl::FormatConversionCharSet::kFloating>;

template <typename T>
auto Widest(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return static_cast<double>(value);
  }
}

class AsString final : public Kernel {
 public:
  AsString(KernelConstruction& c, absl::Status* status) : type_(c.input_type(0)) {
    *status = Init(c.Attr<int64_t>("precision"), c.Attr<bool>("scientific"),
                   c.Attr<bool>("shortest"), c.Attr<int64_t>("width"), c.Attr<std::string>("fill"));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (type_ == ElementType::kString) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, ElementType::kString, input.shape()));
    std::string* out = output->mutable_data<std::string>();
    return SwitchNumber<bool, Variant>(type_, [&]<typename T>() {
      const T* in = input.unchecked_data<T>();
      ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(200),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) out[i] = Text(in[i]);
                      });
      return absl::OkStatus();
    });
  }

 private:
  /// Wider text is a mistake that would take all memory.
  static constexpr int64_t kMaxWidth = 1 << 20;

  absl::Status Init(int64_t precision, bool scientific, bool shortest, int64_t width,
                    const std::string& fill) {
    const bool real = IsFloating(type_) || IsComplex(type_);
    if (!real && type_ != ElementType::kString && (scientific || shortest || precision >= 0)) {
      return InvalidArgument("numbers of type ", ElementTypeName(type_),
                             " have no precision and no scientific or shortest notation");
    }
    if (scientific && shortest) {
      return InvalidArgument("the notation cannot be both scientific and shortest");
    }
    if (fill.size() > 1) {
      return InvalidArgument("fill must be one character at most, got '", fill, "'");
    }
    if (!fill.empty() && std::string(" +-0#").find(fill[0]) == std::string::npos) {
      return InvalidArgument("fill must be one of ' ', '+', '-', '0', '#', got '", fill, "'");
    }
    if (width > kMaxWidth || precision > kMaxWidth) {
      return InvalidArgument("width ", width, " and precision ", precision, " must not exceed ",
                             kMaxWidth);
    }
    std::string format = absl::StrCat("%", fill);
    if (width > -1) absl::StrAppend(&format, width);
    if (precision > -1) absl::StrAppend(&format, ".", precision);
    if (real) {
      floating_ = FloatingFormat::New(format + (shortest ? "g" : scientific ? "e" : "f"));
    } else if (IsInteger(type_)) {
      const bool is_unsigned = type_ == ElementType::kUint8 || type_ == ElementType::kUint16 ||
                               type_ == ElementType::kUint32 || type_ == ElementType::kUint64;
      integer_ = IntegerFormat::New(format + (is_unsigned ? "u" : "d"));
    }
    if (real ? floating_ == nullptr : IsInteger(type_) && integer_ == nullptr) {
      return InvalidArgument("'", format, "' is no format");
    }
    return absl::OkStatus();
  }

  template <typename T>
  std::string Text(const T& value) const {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, Variant>) {
      return value.empty() ? "Variant<type: <empty>>" : "Variant<>";
    } else if constexpr (std::is_integral_v<T>) {
      return absl::StrFormat(*integer_, value);
    } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      return absl::StrCat("(", absl::StrFormat(*floating_, value.real()), ",",
                          absl::StrFormat(*floating_, value.imag()), ")");
    } else {
      return absl::StrFormat(*floating_, Widest(value));
    }
  }

  const ElementType type_;
  std::unique_ptr<IntegerFormat> integer_;
  std::unique_ptr<FloatingFormat> floating_;
};

REGISTER_KERNEL(KernelSpec("AsString"), MakeKernel<AsString>);

}  // namespace
}  // namespace troupe
