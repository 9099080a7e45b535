/// Lines of CSV to columns.
#ifndef TROUPE_KERNELS_IO_CSV_H_
#define TROUPE_KERNELS_IO_CSV_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "devices/cpu/compute_pool.h"
#include "devices/tensor.h"

namespace troupe {

/// How lines are split (RFC 4180).
struct CsvOptions {
  char delimiter = ',';
  bool quotes = true;            ///< Fields may be in double quotes.
  std::string missing;           ///< Stands for a field that is not there, as an empty one does.
  std::vector<int64_t> columns;  ///< Those that are wanted, in ascending order; none: all.
};

/// Splits records, one after another. Thread-compatible.
class CsvSplitter {
 public:
  /// `options` outlives it. `fields`: how many a record must have (of the wanted columns).
  CsvSplitter(const CsvOptions& options, size_t fields);

  /// The wanted fields, valid until the next call or as long as the record. InvalidArgument, with
  /// the position, for quotes at wrong places or line ends outside of quotes.
  /// There may be more or fewer than expected; what is beyond is counted and not kept.
  absl::Status Split(std::string_view record);
  size_t count() const { return count_; }
  std::string_view field(size_t i) const { return fields_[i]; }

 private:
  absl::Status Unquoted(std::string_view record, size_t* at, std::string_view* field) const;
  absl::Status Quoted(std::string_view record, size_t* at, bool wanted, std::string_view* field);
  bool Wanted(size_t column) const {
    return options_.columns.empty() || (count_ < options_.columns.size() &&
                                        static_cast<size_t>(options_.columns[count_]) == column);
  }

  const CsvOptions& options_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> unescaped_;  ///< Fields in which quotes were doubled.
  size_t count_ = 0;
};

/// Fills `columns` (of float, double, int32, int64 or string), which have an element for each
/// record. `defaults[i]` has one element, or none: then the column is required. InvalidArgument,
/// which names record and field, for what is missing, too much, or no number of the type. Parallel
/// over records.
absl::Status ParseCsv(absl::Span<const std::string> records, absl::Span<const Tensor> defaults,
                      const CsvOptions& options, ComputePool* pool, absl::Span<Tensor> columns);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_CSV_H_
