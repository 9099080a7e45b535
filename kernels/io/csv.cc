#include "kernels/io/csv.h"

#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "devices/status_macros.h"
#include "kernels/io/for_rows.h"
#include "kernels/kernel.h"

namespace troupe {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && absl::ascii_isspace(static_cast<uint8_t>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && absl::ascii_isspace(static_cast<uint8_t>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

/// The usual form of a number, without a detour.
template <typename T>
bool FromChars(std::string_view text, T* to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to);
  return error == std::errc() && end == text.data() + text.size();
}

bool Parse(std::string_view text, std::string* to) {
  to->assign(text);
  return true;
}
template <typename T>
bool Parse(std::string_view text, T* to) {
  text = Trimmed(text);
  if (FromChars(text, to)) return true;
  const absl::string_view other(text.data(), text.size());
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(other, to);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(other, to);
  } else {
    return absl::SimpleAtoi(other, to);
  }
}

/// Calls f.operator()<T>() for the type of a column.
template <typename F>
bool WithColumn(ElementType type, F f) {
  switch (type) {
    case ElementType::kFloat:
      return f.template operator()<float>();
    case ElementType::kDouble:
      return f.template operator()<double>();
    case ElementType::kInt32:
      return f.template operator()<int32_t>();
    case ElementType::kInt64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<std::string>();
  }
}

/// What an error shows of a field.
std::string Shown(std::string_view field) {
  constexpr size_t kShown = 64;
  const std::string_view part = field.substr(0, kShown);
  return StrCat("\"", absl::CEscape(absl::string_view(part.data(), part.size())),
                part.size() < field.size() ? "...\"" : "\"");
}

absl::Status ParseRecord(int64_t row, std::string_view record, absl::Span<const Tensor> defaults,
                         const CsvOptions& options, CsvSplitter* splitter,
                         absl::Span<Tensor> columns) {
  const auto wrong = [&](const auto&... what) {
    return InvalidArgument("record ", row, ": ", what...);
  };
  if (const absl::Status status = splitter->Split(record); !status.ok()) {
    return wrong(status.message());
  }
  if (splitter->count() != columns.size()) {
    return wrong("expected ", columns.size(), " fields, got ", splitter->count());
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string_view field = splitter->field(i);
    const bool missing = field.empty() || field == options.missing;
    if (missing && defaults[i].num_elements() == 0) {
      return wrong("field ", i, " is required, but missing");
    }
    const bool right = WithColumn(columns[i].type(), [&]<typename T>() {
      T* const to = columns[i].mutable_data<T>() + row;
      if (!missing) return Parse(field, to);
      *to = defaults[i].unchecked_scalar<T>();
      return true;
    });
    if (right) continue;
    return wrong("field ", i, " is no ", ElementTypeName(columns[i].type()), ": ", Shown(field));
  }
  return absl::OkStatus();
}

}  // namespace

CsvSplitter::CsvSplitter(const CsvOptions& options, size_t fields)
    : options_(options), fields_(fields), unescaped_(fields) {}

absl::Status CsvSplitter::Split(std::string_view record) {
  count_ = 0;
  size_t at = 0, column = 0;
  while (at < record.size()) {
    if (record[at] == '\n' || record[at] == '\r') {  // Before a field they are skipped.
      ++at;
      continue;
    }
    const bool wanted = Wanted(column++);
    std::string_view field;
    if (options_.quotes && record[at] == '"') {
      TROUPE_RETURN_IF_ERROR(Quoted(record, &at, wanted, &field));
    } else {
      TROUPE_RETURN_IF_ERROR(Unquoted(record, &at, &field));
    }
    if (!wanted) continue;
    if (count_ < fields_.size()) fields_[count_] = field;
    ++count_;
    if (count_ == options_.columns.size()) return absl::OkStatus();
  }
  // A delimiter came last, line ends aside: behind it is a field that is empty.
  if (column > 0 && at == record.size() && Wanted(column)) {
    if (count_ < fields_.size()) fields_[count_] = {};
    ++count_;
  }
  return absl::OkStatus();
}

absl::Status CsvSplitter::Unquoted(std::string_view record, size_t* at,
                                   std::string_view* field) const {
  size_t end = *at;
  for (; end < record.size() && record[end] != options_.delimiter; ++end) {
    const char byte = record[end];
    if ((byte == '"' && options_.quotes) || byte == '\n' || byte == '\r') {
      return InvalidArgument("a quote or a line end at byte ", end,
                             ", inside a field without quotes");
    }
  }
  *field = record.substr(*at, end - *at);
  *at = end + 1;
  return absl::OkStatus();
}

absl::Status CsvSplitter::Quoted(std::string_view record, size_t* at, bool wanted,
                                 std::string_view* field) {
  const size_t begin = *at + 1;
  std::string* text = nullptr;  // Only if a quote was doubled.
  size_t copied = begin;
  for (size_t i = begin;;) {
    i = record.find('"', i);
    if (i == std::string_view::npos) {
      return InvalidArgument("the quote at byte ", begin - 1, " has no end");
    }
    if (i + 1 == record.size() || record[i + 1] == options_.delimiter) {
      *field = record.substr(begin, i - begin);
      if (text != nullptr) *field = text->append(record.substr(copied, i - copied));
      *at = i + 2;
      return absl::OkStatus();
    }
    if (record[i + 1] != '"') {
      return InvalidArgument("a quote at byte ", i, ", inside a field with quotes, is neither ",
                             "doubled nor before the delimiter or the end");
    }
    if (wanted && count_ < unescaped_.size()) {
      if (text == nullptr) {
        text = &unescaped_[count_];
        text->clear();
      }
      text->append(record.substr(copied, i + 1 - copied));
      copied = i + 2;
    }
    i += 2;
  }
}

absl::Status ParseCsv(absl::Span<const std::string> records, absl::Span<const Tensor> defaults,
                      const CsvOptions& options, ComputePool* pool, absl::Span<Tensor> columns) {
  size_t bytes = 0;
  for (const std::string& record : records) bytes += record.size();
  const auto rows = static_cast<int64_t>(records.size());
  constexpr double kField = 30, kByte = 1;  // ns
  const double mean = static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, rows));
  const int64_t grain =
      KernelContext::GrainFor(kField * static_cast<double>(columns.size()) + kByte * mean);
  return ForRows(pool, rows, grain, [&](int64_t begin, int64_t end, RowFailed failed) {
    CsvSplitter splitter(options, columns.size());
    for (int64_t row = begin; row < end; ++row) {
      absl::Status status = ParseRecord(row, records[static_cast<size_t>(row)], defaults, options,
                                        &splitter, columns);
      if (!status.ok()) return failed(row, std::move(status));
    }
  });
}

}  // namespace troupe
