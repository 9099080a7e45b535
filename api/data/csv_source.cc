// Rows of comma-separated values (RFC 4180).
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "api/data/file_bytes.h"
#include "api/data/stages.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *value);
  if (error == std::errc() && rest == end) return true;
  // With spaces around it, or a plus sign.
  const absl::string_view view(text.data(), text.size());
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(view, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(view, value);
  } else {
    return absl::SimpleAtoi(view, value);
  }
}

class CsvStage final : public FilesStage {
 public:
  CsvStage(const Place& place, std::vector<std::string> files, DatasetCsvOptions options)
      : FilesStage(place, "Csv", std::move(files), options.compression),
        options_(std::move(options)),
        columns_(options_.columns.size()) {
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i].fallback = options_.columns[i];
    for (const int column : options_.required) columns_[column].required = true;
    if (options_.select.empty()) {
      for (size_t i = 0; i < columns_.size(); ++i) selected_.push_back(static_cast<int>(i));
    } else {
      selected_ = options_.select;
    }
    for (const int column : selected_) columns_[column].selected = true;
  }

 private:
  struct Column {
    Tensor fallback;
    bool required = false, selected = false;
    Tensor values;  ///< Of the rows that are being read: their scalars are views of it.
  };

  absl::Status Wrong(const FileBytes& file, std::string_view what) const {
    return InvalidArgument(path(), ", row at byte ", file.offset(), ": ", what);
  }

  absl::StatusOr<bool> Read(FileBytes* file, size_t limit, Block* out) override {
    const auto most = static_cast<int64_t>(std::min<size_t>(limit, 256));
    if (options_.header && file->offset() == 0) {
      TROUPE_ASSIGN_OR_RETURN(const size_t size, FindRow(file, /*must_end=*/true));
      file->Consume(size);
    }
    TROUPE_ASSIGN_OR_RETURN(size_t n, file->Need(1));
    if (n == 0) return false;
    for (Column& column : columns_) {
      if (!column.selected) continue;
      TROUPE_ASSIGN_OR_RETURN(column.values,
                              Tensor::Allocate(column.fallback.type(), Shape({most})));
    }
    int64_t rows = 0;
    absl::Status status;
    while (rows < most) {
      const absl::StatusOr<size_t> size = FindRow(file, options_.skip_bad == 0);
      status = size.status();
      if (!status.ok() || *size == 0) break;
      std::string_view row(file->data(), *size);
      if (row.back() == '\n') row.remove_suffix(1);
      if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
      if (!row.empty()) {  // An empty line is no row.
        status = ParseRow(*file, row, rows);
        if (status.ok()) {
          ++rows;
        } else {
          status = CountBad(status, options_.skip_bad, &bad_, meter());
          if (!status.ok()) break;
        }
      }
      file->Consume(*size);
    }
    for (int64_t row = 0; row < rows; ++row) {
      Element& element = out->emplace_back();
      element.of_block = true;
      for (const int i : selected_) {
        const Tensor& values = columns_[i].values;
        const size_t at = static_cast<size_t>(row) * ElementSize(values.type());
        element.components.emplace_back(
            values.type(), Shape(), values.buffer(),
            static_cast<char*>(const_cast<void*>(values.raw_data())) + at);
      }
    }
    for (Column& column : columns_) column.values.Reset();
    if (!status.ok()) return status;
    return true;
  }

  /// Bytes of the next row, with its end; 0 if there is none. Line ends in quotes are no ends.
  /// InvalidArgument: its last quote has no end, and `must_end`; else it is a bad row.
  absl::StatusOr<size_t> FindRow(FileBytes* file, bool must_end) {
    size_t searched = 0;
    bool quoted = false;
    TROUPE_ASSIGN_OR_RETURN(size_t n, file->Need(1));
    while (n > searched) {
      const char* const data = file->data();
      while (searched < n) {
        const auto* end =
            static_cast<const char*>(std::memchr(data + searched, '\n', n - searched));
        const size_t line = end != nullptr ? static_cast<size_t>(end - data) : n;
        // Quotes within quotes are doubled: an odd number leaves or enters.
        for (size_t at = searched; at < line; ++at) {
          const auto* quote = static_cast<const char*>(std::memchr(data + at, '"', line - at));
          if (quote == nullptr) break;
          quoted = !quoted;
          at = static_cast<size_t>(quote - data);
        }
        searched = end != nullptr ? line + 1 : n;
        if (end != nullptr && !quoted) return searched;
      }
      if (searched > static_cast<size_t>(options_.max_row_bytes)) {
        return absl::ResourceExhaustedError(StrCat(path(), ", row at byte ", file->offset(),
                                                   ": it has more than ", options_.max_row_bytes,
                                                   " bytes"));
      }
      TROUPE_ASSIGN_OR_RETURN(n, file->NeedMore(static_cast<size_t>(options_.max_row_bytes)));
    }
    if (quoted && must_end) return Wrong(*file, "a quoted field does not end");
    return searched;
  }

  absl::Status ParseRow(const FileBytes& file, std::string_view row, int64_t r) {
    const bool quotes = std::memchr(row.data(), '"', row.size()) != nullptr;
    size_t column = 0;
    bool more = true;
    while (more) {
      if (column == columns_.size()) {
        return Wrong(file, StrCat("it has more than ", columns_.size(), " fields"));
      }
      std::string_view field;
      if (quotes && !row.empty() && row.front() == '"') {
        TROUPE_RETURN_IF_ERROR(TakeQuoted(file, &row));
        field = unquoted_;
        more = !row.empty();
        if (more) row.remove_prefix(1);
      } else {
        const auto* const end =
            row.empty()
                ? nullptr
                : static_cast<const char*>(std::memchr(row.data(), options_.delimiter, row.size()));
        more = end != nullptr;
        field = more ? row.substr(0, static_cast<size_t>(end - row.data())) : row;
        row.remove_prefix(field.size() + (more ? 1 : 0));
        if (quotes && field.find('"') != std::string_view::npos) {
          return Wrong(file, StrCat("field ", column, " has a quote but is not quoted"));
        }
      }
      if (columns_[column].selected) TROUPE_RETURN_IF_ERROR(Set(file, column, field, r));
      ++column;
    }
    if (column == columns_.size()) return absl::OkStatus();
    return Wrong(file, StrCat("it has ", column, " fields, not ", columns_.size()));
  }

  /// Takes a quoted field, up to the delimiter or the end.
  absl::Status TakeQuoted(const FileBytes& file, std::string_view* row) {
    unquoted_.clear();
    row->remove_prefix(1);
    while (true) {
      const size_t quote = row->find('"');
      if (quote == std::string_view::npos) return Wrong(file, "a quoted field does not end");
      unquoted_.append(row->substr(0, quote));
      row->remove_prefix(quote + 1);
      if (row->empty() || row->front() == options_.delimiter) return absl::OkStatus();
      if (row->front() != '"') return Wrong(file, "something follows the end of a quoted field");
      unquoted_.push_back('"');
      row->remove_prefix(1);
    }
  }

  absl::Status Set(const FileBytes& file, size_t i, std::string_view field, int64_t row) {
    Column& column = columns_[i];
    if (field.empty() && column.required) {
      return Wrong(file, StrCat("field ", i, " is required but empty"));
    }
    switch (column.fallback.type()) {
      case ElementType::kString:
        column.values.mutable_data<std::string>()[row] =
            field.empty() ? column.fallback.unchecked_scalar<std::string>() : std::string(field);
        return absl::OkStatus();
      case ElementType::kInt32:
        return SetNumber<int32_t>(file, i, field, row);
      case ElementType::kInt64:
        return SetNumber<int64_t>(file, i, field, row);
      case ElementType::kDouble:
        return SetNumber<double>(file, i, field, row);
      default:  // It was checked.
        return SetNumber<float>(file, i, field, row);
    }
  }

  template <typename T>
  absl::Status SetNumber(const FileBytes& file, size_t i, std::string_view field, int64_t row) {
    Column& column = columns_[i];
    T* const value = column.values.mutable_data<T>() + row;
    if (field.empty()) {
      *value = column.fallback.unchecked_scalar<T>();
    } else if (!ParseNumber(field, value)) {
      return Wrong(file, StrCat("field ", i, " is no ", ElementTypeName(kElementType<T>), ": ",
                                field.substr(0, 40)));
    }
    return absl::OkStatus();
  }

  absl::Status Save(PositionWriter* to) override {
    if (options_.skip_bad > 0) to->Number(static_cast<uint64_t>(bad_));
    return FilesStage::Save(to);
  }
  void Restore(PositionReader* from) override {
    if (options_.skip_bad > 0) bad_ = static_cast<int64_t>(from->Number(INT64_MAX));
    FilesStage::Restore(from);
  }

  const DatasetCsvOptions options_;
  int64_t bad_ = 0;
  std::vector<Column> columns_;
  std::vector<int> selected_;
  std::string unquoted_;
};

}  // namespace

PlanPtr CsvPlan(std::vector<std::string> files, DatasetCsvOptions options) {
  return MakePlan([files = std::move(files), options = std::move(options)](
                      const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    return std::make_unique<CsvStage>(place, files, options);
  });
}

}  // namespace troupe::data
