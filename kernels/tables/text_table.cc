#include "kernels/tables/text_table.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr size_t kMaxLine = size_t{16} << 20, kChunk = size_t{1} << 18;
/// Lines that are put into the table together.
constexpr int64_t kBatch = 1024;

/// The lines of a file, one after another, without their ends.
class Lines {
 public:
  Lines(const RandomAccessFile& file, const std::string& path) : file_(file), path_(path) {}

  /// False at the end. `*line` is valid until the next call.
  absl::StatusOr<bool> Next(std::string_view* line) {
    ++number_;
    size_t searched = 0;
    while (true) {
      const size_t end = buffer_.find('\n', begin_ + searched);
      if (end != std::string::npos) {
        *line = Trimmed(begin_, end);
        begin_ = end + 1;
        return true;
      }
      searched = buffer_.size() - begin_;
      if (searched > kMaxLine) {
        return InvalidArgument(path_, " line ", number_, ": longer than ", kMaxLine, " bytes");
      }
      TROUPE_ASSIGN_OR_RETURN(const bool more, Fill());
      if (more) continue;
      if (searched == 0) return false;
      *line = Trimmed(begin_, buffer_.size());
      begin_ = buffer_.size();
      return true;
    }
  }
  int64_t number() const { return number_; }  ///< Of the last line, from 1.

 private:
  /// Without a carriage return at the end.
  std::string_view Trimmed(size_t begin, size_t end) const {
    if (end > begin && buffer_[end - 1] == '\r') --end;
    return std::string_view(buffer_).substr(begin, end - begin);
  }

  absl::StatusOr<bool> Fill() {
    if (at_end_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t before = buffer_.size();
    buffer_.resize(before + kChunk);
    TROUPE_ASSIGN_OR_RETURN(const size_t read,
                            file_.Read(offset_, absl::MakeSpan(&buffer_[before], kChunk)));
    buffer_.resize(before + read);
    offset_ += read;
    at_end_ = read < kChunk;
    return read > 0;
  }

  const RandomAccessFile& file_;
  const std::string& path_;
  std::string buffer_;
  size_t begin_ = 0;  ///< Of what has not been given out.
  uint64_t offset_ = 0;
  bool at_end_ = false;
  int64_t number_ = 0;
};

bool Parse(std::string_view text, int32_t* to) {
  return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), to);
}
bool Parse(std::string_view text, int64_t* to) {
  return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), to);
}
bool Parse(std::string_view text, float* to) {
  return absl::SimpleAtof(absl::string_view(text.data(), text.size()), to);
}
bool Parse(std::string_view text, double* to) {
  return absl::SimpleAtod(absl::string_view(text.data(), text.size()), to);
}
bool Parse(std::string_view text, std::string* to) {
  to->assign(text);
  return true;
}

/// Element `i` of a tensor from a field. False: it is no such number.
bool ParseInto(std::string_view field, int64_t i, Tensor* to) {
  switch (to->type()) {
    case ElementType::kInt32:
      return Parse(field, to->mutable_data<int32_t>() + i);
    case ElementType::kInt64:
      return Parse(field, to->mutable_data<int64_t>() + i);
    case ElementType::kFloat:
      return Parse(field, to->mutable_data<float>() + i);
    case ElementType::kDouble:
      return Parse(field, to->mutable_data<double>() + i);
    default:
      return Parse(field, to->mutable_data<std::string>() + i);
  }
}

class Reader {
 public:
  Reader(const std::string& path, const TableOptions& table, const TextTableOptions& text)
      : path_(path), table_(table), text_(text) {}

  absl::StatusOr<std::unique_ptr<TableStore>> Read(const RandomAccessFile& file,
                                                   const std::function<bool()>& cancelled) {
    TROUPE_ASSIGN_OR_RETURN(store_, MakeTableStore(table_));
    TROUPE_ASSIGN_OR_RETURN(keys_, Tensor::Allocate(table_.key_type, Shape({kBatch})));
    TROUPE_ASSIGN_OR_RETURN(values_, Tensor::Allocate(table_.value_type, Shape({kBatch})));
    Lines lines(file, path_);
    int64_t count = 0;
    while (text_.vocab_size < 0 || count < text_.vocab_size) {
      std::string_view line;
      TROUPE_ASSIGN_OR_RETURN(const bool there, lines.Next(&line));
      if (!there) break;
      TROUPE_RETURN_IF_ERROR(Take(line, count));
      ++count;
      if (count % kBatch != 0) continue;
      TROUPE_RETURN_IF_ERROR(PutIn(count));
      if (cancelled()) return absl::CancelledError(StrCat("reading ", path_, " was cancelled"));
    }
    TROUPE_RETURN_IF_ERROR(PutIn(count));
    if (text_.vocab_size > 0 && count < text_.vocab_size) {
      return InvalidArgument(path_, ": expected vocab_size ", text_.vocab_size, " lines, got ",
                             count);
    }
    if (count == 0) return absl::OutOfRangeError(StrCat(path_, ": no lines for a table"));
    return std::move(store_);
  }

 private:
  absl::Status Take(std::string_view line, int64_t row) {
    const int64_t i = row % kBatch;
    const auto wrong = [&](const auto&... what) {
      return InvalidArgument(path_, " line ", row + 1, ": ", what...);
    };
    if (line.empty()) return wrong("an empty line");
    const int64_t columns = std::max(text_.key_index, text_.value_index) + 1;
    fields_.clear();
    for (std::string_view rest = line; static_cast<int64_t>(fields_.size()) < columns;) {
      const size_t end = rest.find(text_.delimiter[0]);
      fields_.push_back(rest.substr(0, end));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
    if (static_cast<int64_t>(fields_.size()) < columns) {
      return wrong("expected at least ", columns, " columns, got ", fields_.size());
    }
    const auto put = [&](int64_t index, const char* what, Tensor* to) {
      if (index == TextTableOptions::kLineNumber) {
        // Past the end it goes on from the beginning.
        to->mutable_data<int64_t>()[i] =
            static_cast<int64_t>(static_cast<uint64_t>(row) + static_cast<uint64_t>(text_.offset));
        return absl::OkStatus();
      }
      const std::string_view field = index == TextTableOptions::kWholeLine ? line : fields_[index];
      if (ParseInto(field, i, to)) return absl::OkStatus();
      constexpr size_t kShown = 64;
      const std::string_view shown = field.substr(0, kShown);
      return wrong(what, " \"", absl::CEscape(absl::string_view(shown.data(), shown.size())),
                   "\" is not a valid ", ElementTypeName(to->type()));
    };
    TROUPE_RETURN_IF_ERROR(put(text_.key_index, "key", &keys_));
    return put(text_.value_index, "value", &values_);
  }

  /// Those of the first `count` lines that are not in the table yet.
  absl::Status PutIn(int64_t count) {
    const int64_t first = put_in_, rows = count - first;
    if (rows == 0) return absl::OkStatus();
    put_in_ = count;
    int64_t at = 0;
    absl::Status status = store_->InsertNew(keys_.Slice(0, rows), values_.Slice(0, rows), &at);
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(path_, " line ", first + at + 1, ": ", status.message()));
  }

  const std::string& path_;
  const TableOptions& table_;
  const TextTableOptions& text_;
  std::unique_ptr<TableStore> store_;
  Tensor keys_, values_;
  std::vector<std::string_view> fields_;
  int64_t put_in_ = 0;
};

}  // namespace

absl::Status CheckTextTable(const TableOptions& table, const TextTableOptions& text) {
  if (table.kind != TableOptions::Kind::kImmutable) {
    return InvalidArgument("only an immutable table can be initialized from a text file");
  }
  if (text.delimiter.size() != 1) {
    return InvalidArgument("delimiter must be one character, got \"", absl::CEscape(text.delimiter),
                           "\"");
  }
  const auto check = [](const char* what, int64_t index, ElementType type) {
    if (index < TextTableOptions::kWholeLine) {
      return InvalidArgument(what, "_index must be at least -2, got ", index);
    }
    if (index == TextTableOptions::kLineNumber && type != ElementType::kInt64) {
      return InvalidArgument(what, "_index -1, the number of a line, requires type int64, got ",
                             ElementTypeName(type));
    }
    if (type == ElementType::kBool) {
      return InvalidArgument("a ", what, " of type bool cannot be read from text");
    }
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(check("key", text.key_index, table.key_type));
  return check("value", text.value_index, table.value_type);
}

absl::StatusOr<std::unique_ptr<TableStore>> ReadTextTable(const RandomAccessFile& file,
                                                          const std::string& path,
                                                          const TableOptions& table,
                                                          const TextTableOptions& text,
                                                          const std::function<bool()>& cancelled) {
  TROUPE_RETURN_IF_ERROR(CheckTextTable(table, text));
  return Reader(path, table, text).Read(file, cancelled);
}

}  // namespace troupe
