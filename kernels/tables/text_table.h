/// Tables from text files: a key and a value in each line.
#ifndef TROUPE_KERNELS_TABLES_TEXT_TABLE_H_
#define TROUPE_KERNELS_TABLES_TEXT_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/file_system.h"
#include "kernels/tables/lookup_table.h"

namespace troupe {

/// Where keys and values are in a file's lines.
struct TextTableOptions {
  static constexpr int64_t kWholeLine = -2, kLineNumber = -1;
  /// Columns, from 0, or one of the above.
  int64_t key_index = kWholeLine, value_index = kLineNumber;
  int64_t vocab_size = -1;       ///< Lines that are read, which must be there; -1: all.
  std::string delimiter = "\t";  ///< Of columns; one character.
  int64_t offset = 0;            ///< Of the first line's number.
};

/// InvalidArgument if a table of these types cannot be made of such lines.
absl::Status CheckTextTable(const TableOptions& table, const TextTableOptions& text);

/// What an immutable table for `table` holds. Lines end with "\n" or "\r\n". Errors name `path`
/// and, counted from 1, the line: InvalidArgument for one that is empty, too long (16 MiB), has too
/// few columns or a field that is no number of the type; FailedPrecondition for a key that has
/// another value above; OutOfRange if there are no lines. Cancelled once `cancelled` says so.
absl::StatusOr<std::unique_ptr<TableStore>> ReadTextTable(const RandomAccessFile& file,
                                                          const std::string& path,
                                                          const TableOptions& table,
                                                          const TextTableOptions& text,
                                                          const std::function<bool()>& cancelled);

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_TEXT_TABLE_H_
