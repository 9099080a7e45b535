// StringNGrams: runs of neighbouring strings.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/registration.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class StringNGrams final : public Kernel {
 public:
  StringNGrams(KernelConstruction& c, absl::Status* status)
      : separator_(c.Attr<std::string>("separator")),
        left_pad_(c.Attr<std::string>("left_pad")),
        right_pad_(c.Attr<std::string>("right_pad")),
        widths_(c.Attr<std::vector<int64_t>>("ngram_widths")),
        pad_width_(c.Attr<int64_t>("pad_width")),
        keep_short_(c.Attr<bool>("preserve_short_sequences")) {
    for (const int64_t width : widths_) {
      if (width <= 0 || width > INT32_MAX) {
        *status = InvalidArgument("ngram_widths must be positive int32 numbers, got ", width);
      }
    }
    if (pad_width_ > INT32_MAX) {
      *status = InvalidArgument("pad_width must be an int32 number, got ", pad_width_);
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    return SwitchType<int32_t, int64_t>(ctx.input(1).type(),
                                        [&]<typename T>() { return ComputeSplits<T>(ctx); });
  }

 private:
  /// N-grams hold no more strings than this in all: padding could ask for any number.
  static constexpr int64_t kMaxStrings = int64_t{1} << 31;

  int64_t Padding(int64_t width) const {
    return pad_width_ < 0 ? width - 1 : std::min(pad_width_, width - 1);
  }
  int64_t NumNGrams(int64_t length, int64_t width) const {
    return std::max<int64_t>(0, length + 2 * Padding(width) - width + 1);
  }
  /// The width of the only n-gram of a row that is too short for all others.
  int64_t ShortWidth(int64_t length) const { return length + 2 * pad_width_; }

  template <typename T>
  absl::Status CheckSplits(absl::Span<const T> splits, int64_t size) const {
    if (splits.empty()) return absl::OkStatus();
    if (splits.front() != 0 || splits.back() != size) {
      return InvalidArgument("data_splits must begin with 0 and end with the size of data, ", size,
                             ", but it goes from ", splits.front(), " to ", splits.back());
    }
    for (size_t i = 1; i < splits.size(); ++i) {
      if (splits[i] < splits[i - 1]) {
        return InvalidArgument("data_splits must not fall, but data_splits[", i, "] = ", splits[i],
                               " comes after ", splits[i - 1]);
      }
    }
    return absl::OkStatus();
  }

  /// How many n-grams a row makes.
  absl::StatusOr<int64_t> RowSize(int64_t length, int64_t* num_strings) const {
    int64_t count = 0;
    for (const int64_t width : widths_) {
      const int64_t more = NumNGrams(length, width);
      count += more;
      if (more > kMaxStrings / width || (*num_strings += more * width) > kMaxStrings) {
        return absl::ResourceExhaustedError(absl::StrCat("the n-grams would hold more than ",
                                                         kMaxStrings, " strings: ngram_widths has ",
                                                         width, ", pad_width is ", pad_width_));
      }
    }
    if (!keep_short_ || count > 0 || length == 0) return count;
    if (pad_width_ < 0) {
      return InvalidArgument(
          "pad_width must not be negative when short sequences are kept and "
          "there is no ngram_widths, got ",
          pad_width_);
    }
    if ((*num_strings += ShortWidth(length)) > kMaxStrings) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the n-grams would hold more than ", kMaxStrings, " strings: pad_width is ", pad_width_));
    }
    return 1;
  }

  /// N-gram `index` of `count` of one row and width.
  std::string NGram(const std::string* row, int64_t width, int64_t index, int64_t count) const {
    const int64_t padding = Padding(width);
    const int64_t left = std::max<int64_t>(0, padding - index);
    const int64_t right = std::max<int64_t>(0, padding - (count - (index + 1)));
    const int64_t first = std::max<int64_t>(0, index - padding);
    std::string text;
    for (int64_t i = 0; i < width; ++i) {
      if (i > 0) text += separator_;
      text += i < left ? left_pad_ : i < width - right ? row[first + i - left] : right_pad_;
    }
    return text;
  }

  template <typename T>
  absl::Status ComputeSplits(KernelContext& ctx) const {
    const Tensor &data = ctx.input(0), &splits_input = ctx.input(1);
    if (data.rank() != 1 || splits_input.rank() != 1) {
      return InvalidArgument("data and data_splits must be vectors, got shapes ",
                             data.shape().ToString(), " and ", splits_input.shape().ToString());
    }
    const auto splits = splits_input.unchecked_values<T>();
    TROUPE_RETURN_IF_ERROR(CheckSplits(splits, data.num_elements()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out_splits,
                            ctx.AllocateOutput(1, kElementType<T>, splits_input.shape()));
    T* ends = out_splits->mutable_data<T>();
    int64_t total = 0, num_strings = 0;
    for (size_t i = 0; i < splits.size(); ++i) {
      // As in TensorFlow rows of padding alone are made only if there is some data.
      if (i > 0 && data.num_elements() > 0) {
        TROUPE_ASSIGN_OR_RETURN(const int64_t size,
                                RowSize(splits[i] - splits[i - 1], &num_strings));
        total += size;
      }
      if (total > std::numeric_limits<T>::max()) {
        return InvalidArgument("the ", total, " n-grams are more than ",
                               ElementTypeName(kElementType<T>), " can count");
      }
      ends[i] = static_cast<T>(total);
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * ngrams,
                            ctx.AllocateOutput(0, ElementType::kString, Shape({total})));
    const std::string* strings = data.unchecked_data<std::string>();
    std::string* out = ngrams->mutable_data<std::string>();
    for (size_t i = 1; i < splits.size() && total > 0; ++i) {
      const std::string* row = strings + splits[i - 1];
      const int64_t length = splits[i] - splits[i - 1];
      const std::string* begin = out;
      for (const int64_t width : widths_) {
        const int64_t count = NumNGrams(length, width);
        for (int64_t k = 0; k < count; ++k) *out++ = NGram(row, width, k, count);
      }
      if (keep_short_ && out == begin && length > 0) *out++ = NGram(row, ShortWidth(length), 0, 1);
    }
    return absl::OkStatus();
  }

  const std::string separator_, left_pad_, right_pad_;
  const std::vector<int64_t> widths_;
  const int64_t pad_width_;
  const bool keep_short_;
};

REGISTER_KERNEL(KernelSpec("StringNGrams"), MakeKernel<StringNGrams>);

}  // namespace
}  // namespace troupe
