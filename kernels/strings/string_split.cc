// StringSplit, StringSplitV2: strings to a sparse matrix of their parts.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

/// A growing array of parts of strings, in memory of the step: what malloc would give for that many
/// goes back to the system after each step.
class Parts {
 public:
  explicit Parts(KernelContext* ctx) : ctx_(ctx) {}

  void push_back(std::string_view part) {
    if (size_ == capacity_ && !Grow()) return;
    data()[size_++] = part;
  }
  int64_t size() const { return size_; }
  const std::string_view& operator[](int64_t i) const {
    return static_cast<const std::string_view*>(space_.raw_data())[i];
  }
  /// Not OK if there was no memory: parts are missing then.
  const absl::Status& status() const { return status_; }

 private:
  std::string_view* data() { return static_cast<std::string_view*>(space_.mutable_raw_data()); }
  bool Grow() {
    if (!status_.ok()) return false;
    const int64_t capacity = std::max<int64_t>(64, 2 * capacity_);
    const auto bytes = static_cast<int64_t>(sizeof(std::string_view));
    absl::StatusOr<Tensor> more =
        ctx_->AllocateTemp(ElementType::kUint8, Shape({capacity * bytes}));
    if (!more.ok()) {
      status_ = more.status();
      return false;
    }
    if (size_ > 0) std::memcpy(more->mutable_raw_data(), space_.raw_data(), size_ * bytes);
    space_ = *std::move(more);
    capacity_ = capacity;
    return true;
  }

  KernelContext* ctx_;
  Tensor space_;
  int64_t size_ = 0, capacity_ = 0;
  absl::Status status_;
};

/// Appends to the parts of all strings before it.
using Splitter = absl::FunctionRef<void(std::string_view, Parts*)>;

/// Some strings after each other, and what became of them.
struct Piece {
  Parts parts;
  std::vector<int64_t> ends;  ///< Of the parts of each string.
  int64_t first_part = 0;     ///< Its number among the parts of all pieces.
};

absl::Status Split(KernelContext& ctx, Splitter split) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 1) {
    return InvalidArgument("input must be a vector, got shape ", input.shape().ToString());
  }
  const absl::Span<const std::string> texts = input.unchecked_values<std::string>();
  constexpr size_t kTexts = 512;  // of a piece
  std::vector<Piece> pieces((texts.size() + kTexts - 1) / kTexts, Piece{.parts = Parts(&ctx)});
  const auto num_pieces = static_cast<int64_t>(pieces.size());
  ctx.ParallelFor(num_pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (const std::string& text : texts.subspan(p * kTexts, kTexts)) {
        split(text, &pieces[p].parts);
        pieces[p].ends.push_back(pieces[p].parts.size());
      }
    }
  });
  int64_t count = 0;
  for (Piece& piece : pieces) {
    TROUPE_RETURN_IF_ERROR(piece.parts.status());
    piece.first_part = count;
    count += piece.parts.size();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, 2})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values,
                          ctx.AllocateOutput(1, ElementType::kString, Shape({count})));
  std::vector<int64_t> widest(pieces.size());
  ctx.ParallelFor(num_pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const Piece& piece = pieces[p];
      std::string* value = values->mutable_data<std::string>() + piece.first_part;
      int64_t* index = indices->mutable_data<int64_t>() + 2 * piece.first_part;
      int64_t part = 0, row = p * static_cast<int64_t>(kTexts);
      for (const int64_t last : piece.ends) {
        widest[p] = std::max(widest[p], last - part);
        for (int64_t column = 0; part < last; ++part, ++column) {
          *value++ = piece.parts[part];
          *index++ = row;
          *index++ = column;
        }
        ++row;
      }
    }
  });
  const int64_t columns = widest.empty() ? 0 : *std::max_element(widest.begin(), widest.end());
  ctx.set_output(2, Tensor::Vector<int64_t>({input.dim(0), columns}));
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

/// Where `what`, which is not empty, begins in `text` first, npos if nowhere. Two characters are
/// compared as one number where the first one has been found: it may be frequent, and calls to
/// find it cost more than looking at the next places.
size_t Find(std::string_view text, std::string_view what) {
  if (what.size() != 2) return text.find(what);
  constexpr size_t kPlaces = 64;
  const auto pair_at = [](const char* at) {
    uint16_t pair;
    std::memcpy(&pair, at, sizeof(pair));
    return pair;
  };
  const uint16_t wanted = pair_at(what.data());
  for (size_t i = text.find(what[0]); i < text.size(); i = text.find(what[0], i)) {
    for (const size_t end = std::min(i + kPlaces, text.size() - 1); i < end; ++i) {
      if (pair_at(text.data() + i) == wanted) return i;
    }
    if (i + 1 == text.size()) break;
  }
  return std::string_view::npos;
}

void SplitAt(std::string_view separator, std::string_view text, int64_t max_splits, Parts* parts) {
  for (int64_t splits = 0; splits != max_splits; ++splits) {
    const size_t end = Find(text, separator);
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
