// StringSplit, StringSplitV2: strings to a sparse matrix of their parts.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

using Parts = std::vector<std::string_view>;

/// Appends to the parts of all strings before it.
using Splitter = absl::FunctionRef<void(std::string_view, Parts*)>;

absl::Status Split(KernelContext& ctx, Splitter split) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 1) {
    return InvalidArgument("input must be a vector, got shape ", input.shape().ToString());
  }
  Parts parts;
  std::vector<size_t> ends;
  ends.reserve(input.num_elements());
  for (const std::string& text : input.unchecked_values<std::string>()) {
    split(text, &parts);
    ends.push_back(parts.size());
  }
  const auto count = static_cast<int64_t>(parts.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, 2})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values,
                          ctx.AllocateOutput(1, ElementType::kString, Shape({count})));
  std::copy(parts.begin(), parts.end(), values->mutable_data<std::string>());
  int64_t* index = indices->mutable_data<int64_t>();
  int64_t widest = 0;
  size_t begin = 0;
  for (size_t row = 0; row < ends.size(); ++row) {
    const auto width = static_cast<int64_t>(ends[row] - begin);
    for (int64_t column = 0; column < width; ++column) {
      *index++ = static_cast<int64_t>(row);
      *index++ = column;
    }
    widest = std::max(widest, width);
    begin = ends[row];
  }
  ctx.set_output(2, Tensor::Vector<int64_t>({input.dim(0), widest}));
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> Separator(KernelContext& ctx, std::string_view what) {
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument(what, " must be a scalar, got shape ", ctx.input(1).shape().ToString());
  }
  return ctx.input(1).unchecked_scalar<std::string>();
}

absl::Status StringSplit(KernelContext& ctx, bool skip_empty) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view delimiters, Separator(ctx, "delimiter"));
  return Split(ctx, [=](std::string_view text, Parts* parts) {
    if (delimiters.empty()) {
      for (size_t i = 0; i < text.size(); ++i) parts->push_back(text.substr(i, 1));
      return;
    }
    if (text.empty()) return;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find_first_of(delimiters, begin), text.size());
      if (end > begin || !skip_empty) parts->push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  });
}

void SkipWhitespace(std::string_view* text) {
  size_t begin = 0;
  while (begin < text->size() && absl::ascii_isspace(static_cast<unsigned char>((*text)[begin]))) {
    ++begin;
  }
  text->remove_prefix(begin);
}

/// A negative number of splits is no limit.
void SplitAtWhitespace(std::string_view text, int64_t max_splits, Parts* parts) {
  SkipWhitespace(&text);
  for (int64_t splits = 0; !text.empty();) {
    size_t end = 0;
    while (end < text.size() && !absl::ascii_isspace(static_cast<unsigned char>(text[end]))) {
      ++end;
    }
    parts->push_back(text.substr(0, end));
    text.remove_prefix(end);
    SkipWhitespace(&text);
    if (++splits == max_splits) {
      parts->push_back(text);
      return;
    }
  }
}

void SplitAt(std::string_view separator, std::string_view text, int64_t max_splits, Parts* parts) {
  for (int64_t splits = 0; splits != max_splits; ++splits) {
    const size_t end = text.find(separator);
    if (end == std::string_view::npos) break;
    parts->push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts->push_back(text);
}

absl::Status StringSplitV2(KernelContext& ctx, int64_t max_splits) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view separator, Separator(ctx, "sep"));
  return Split(ctx, [=](std::string_view text, Parts* parts) {
    if (max_splits == 0) {
      parts->push_back(text);
    } else if (separator.empty()) {
      SplitAtWhitespace(text, max_splits, parts);
    } else {
      SplitAt(separator, text, max_splits, parts);
    }
  });
}

REGISTER_KERNEL(KernelSpec("StringSplit"), (MakeAttrKernel<StringSplit, "skip_empty">));
REGISTER_KERNEL(KernelSpec("StringSplitV2"), (MakeAttrKernel<StringSplitV2, "maxsplit">));

}  // namespace
}  // namespace troupe
