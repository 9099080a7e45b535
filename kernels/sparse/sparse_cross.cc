// SparseCross, SparseCrossV2, SparseCrossHashed.
#include <farmhash.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/strings/hashes.h"

namespace troupe {
namespace {

/// TensorFlow's way to make one fingerprint of two.
uint64_t CombineFingerprints(uint64_t a, uint64_t b) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t value) { return value ^ (value >> 47); };
  uint64_t result = a ^ kMultiplier;
  result ^= mix(b * kMultiplier) * kMultiplier;
  result *= kMultiplier;
  return mix(mix(result) * kMultiplier);
}

/// A column of features, sparse or dense: some values of int64 or string in each row.
class Column {
 public:
  static absl::StatusOr<Column> Sparse(const SparseTensor& tensor) {
    if (tensor.rank() != 2) {
      return InvalidArgument("columns must be matrices, got the shape ", tensor.shape.ToString());
    }
    TROUPE_RETURN_IF_ERROR(tensor.CheckBounds("column"));
    Column column(tensor.values, tensor.shape.dim(0), false);
    column.places_ = SortedRows(tensor);
    column.row_numbers_.reserve(tensor.size());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      column.row_numbers_.push_back(tensor.indices[column.places_[i]][0]);
    }
    return column;
  }
  static absl::StatusOr<Column> Dense(const Tensor& values) {
    if (values.rank() != 2) {
      return InvalidArgument("columns must be matrices, got the shape ", values.shape().ToString());
    }
    return Column(values, values.dim(0), true);
  }

  int64_t rows() const { return rows_; }
  bool dense() const { return dense_; }
  bool empty() const { return values_.num_elements() == 0; }
  /// Of a sparse column: the row of each element, in ascending order.
  const std::vector<int64_t>& row_numbers() const { return row_numbers_; }
  bool text() const { return values_.type() == ElementType::kString; }

  /// The features of row `row`, as a range for `Place`.
  std::pair<int64_t, int64_t> Row(int64_t row) const {
    if (dense_) return {row * values_.dim(1), (row + 1) * values_.dim(1)};
    const auto [begin, end] = std::equal_range(row_numbers_.begin(), row_numbers_.end(), row);
    return {begin - row_numbers_.begin(), end - row_numbers_.begin()};
  }
  const std::string& String(int64_t i) const {
    return values_.unchecked_data<std::string>()[Place(i)];
  }
  int64_t Number(int64_t i) const { return values_.unchecked_data<int64_t>()[Place(i)]; }
  void AppendText(int64_t i, std::string* to) const {
    if (text()) {
      *to += String(i);
    } else {
      absl::StrAppend(to, Number(i));
    }
  }

 private:
  Column(Tensor values, int64_t rows, bool dense)
      : values_(std::move(values)), rows_(rows), dense_(dense) {}

  static std::vector<int64_t> SortedRows(const SparseTensor& tensor) {
    std::vector<int64_t> places(tensor.size());
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
      return tensor.indices[a][0] < tensor.indices[b][0];
    });
    return places;
  }
  int64_t Place(int64_t i) const { return dense_ ? i : places_[i]; }

  Tensor values_;
  int64_t rows_;
  bool dense_;
  std::vector<int64_t> places_;       ///< Of a sparse column's elements, by rows.
  std::vector<int64_t> row_numbers_;  ///< The row of each of them, in ascending order.
};

/// The columns: `n` sparse ones, then dense ones up to `others` inputs before the last.
absl::StatusOr<std::vector<Column>> ReadColumns(KernelContext& ctx, int64_t n, int64_t others) {
  const int64_t num_dense = ctx.num_inputs() - others - 3 * n;
  if (num_dense < 0 || n + num_dense == 0) {
    return InvalidArgument("there must be as many lists of values as of indices, and a column at ",
                           "least");
  }
  std::vector<Column> columns;
  for (int64_t i = 0; i < n + num_dense; ++i) {
    const int at = static_cast<int>(i);
    if (i < n) {
      const int size = static_cast<int>(n);
      TROUPE_ASSIGN_OR_RETURN(const SparseTensor tensor,
                              ReadSparse(ctx.input(at), ctx.input(size + at),
                                         ctx.input(2 * size + at), StrCat("column ", i)));
      TROUPE_ASSIGN_OR_RETURN(Column column, Column::Sparse(tensor));
      columns.push_back(std::move(column));
    } else {
      TROUPE_ASSIGN_OR_RETURN(Column column,
                              Column::Dense(ctx.input(at + 2 * static_cast<int>(n))));
      columns.push_back(std::move(column));
    }
    if (columns.back().rows() != columns.front().rows()) {
      return InvalidArgument("columns must have as many rows, but column 0 has ",
                             columns.front().rows(), " and column ", i, " has ",
                             columns.back().rows());
    }
  }
  return columns;
}

/// The rows that may have crosses: so many that a sparse shape claims are not gone through.
std::vector<int64_t> RowsToCross(absl::Span<const Column> columns) {
  std::vector<int64_t> rows;
  for (const Column& column : columns) {
    if (column.empty()) return {};
  }
  const auto sparse = std::find_if(columns.begin(), columns.end(),
                                   [](const Column& column) { return !column.dense(); });
  if (sparse != columns.end()) {
    rows = sparse->row_numbers();
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  } else {
    rows.resize(columns[0].rows());
    std::iota(rows.begin(), rows.end(), 0);
  }
  return rows;
}

/// How many crosses row `row` has; -1 if they are too many to be counted.
int64_t NumCrosses(absl::Span<const Column> columns, int64_t row) {
  int64_t count = 1;
  for (const Column& column : columns) {
    const auto [begin, end] = column.Row(row);
    if (begin == end) return 0;
    if (count >= 0) count = MultiplyWithoutOverflow(count, end - begin);
  }
  return count;
}

/// Makes outputs 0 to 2. `cross(features)` makes a value of a feature from each column.
template <typename T, typename F>
absl::Status PutCrosses(KernelContext& ctx, absl::Span<const Column> columns, F cross) {
  const std::vector<int64_t> rows = RowsToCross(columns);
  int64_t total = 0, widest = 0;
  for (const int64_t row : rows) {
    const int64_t count = NumCrosses(columns, row);
    if (count < 0 || __builtin_add_overflow(total, count, &total)) {
      return InvalidArgument("row ", row, " has too many crosses");
    }
    widest = std::max(widest, count);
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({total, 2}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, ElementType::kInt64, shape));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, kElementType<T>, Shape({total})));
  ctx.set_output(2, Tensor::Vector<int64_t>({columns[0].rows(), widest}));
  int64_t* index = indices->mutable_data<int64_t>();
  T* value = values->mutable_data<T>();
  std::vector<int64_t> features(columns.size());
  std::vector<std::pair<int64_t, int64_t>> ranges(columns.size());
  for (const int64_t row : rows) {
    const int64_t count = NumCrosses(columns, row);
    if (count == 0) continue;
    for (size_t i = 0; i < columns.size(); ++i) {
      ranges[i] = columns[i].Row(row);
      features[i] = ranges[i].first;
    }
    for (int64_t k = 0; k < count; ++k) {
      *index++ = row;
      *index++ = k;
      *value++ = cross(features);
      for (size_t i = columns.size(); i-- > 0 && ++features[i] == ranges[i].second;) {
        features[i] = ranges[i].first;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PutTexts(KernelContext& ctx, absl::Span<const Column> columns,
                      const std::string& separator) {
  return PutCrosses<std::string>(ctx, columns, [&](absl::Span<const int64_t> features) {
    std::string text;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) text += separator;
      columns[i].AppendText(features[i], &text);
    }
    return text;
  });
}

/// Without buckets a number that is not negative.
int64_t ToBucket(uint64_t hash, int64_t num_buckets) {
  return static_cast<int64_t>(
      hash %
      static_cast<uint64_t>(num_buckets > 0 ? num_buckets : std::numeric_limits<int64_t>::max()));
}

uint64_t Fingerprint(std::string_view bytes) {
  return util::Fingerprint64(bytes.data(), bytes.size());
}

class SparseCross final : public Kernel {
 public:
  SparseCross(KernelConstruction& c, absl::Status* status)
      : n_(c.Attr<int64_t>("N")),
        hashed_(c.Attr<bool>("hashed_output")),
        num_buckets_(c.Attr<int64_t>("num_buckets")),
        hash_key_(static_cast<uint64_t>(c.Attr<int64_t>("hash_key"))) {
    if (hashed_ != (c.output_type(1) == ElementType::kInt64)) {
      *status = InvalidArgument("out_type must be int64 for hashed_output and string otherwise");
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Column> columns, ReadColumns(ctx, n_, 0));
    if (!hashed_) return PutTexts(ctx, columns, "_X_");
    return PutCrosses<int64_t>(ctx, columns, [&](absl::Span<const int64_t> features) {
      uint64_t hash = hash_key_;
      for (size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        hash = CombineFingerprints(hash, column.text()
                                             ? Fingerprint(column.String(features[i]))
                                             : static_cast<uint64_t>(column.Number(features[i])));
      }
      return ToBucket(hash, num_buckets_);
    });
  }

 private:
  const int64_t n_;
  const bool hashed_;
  const int64_t num_buckets_;
  const uint64_t hash_key_;
};

absl::Status SparseCrossV2(KernelContext& ctx, int64_t n) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Column> columns, ReadColumns(ctx, n, 1));
  const Tensor& separator = ctx.input(ctx.num_inputs() - 1);
  if (separator.rank() != 0) {
    return InvalidArgument("sep must be a scalar, got shape ", separator.shape().ToString());
  }
  return PutTexts(ctx, columns, separator.unchecked_scalar<std::string>());
}

absl::Status SparseCrossHashed(KernelContext& ctx, int64_t n) {
  const int last = ctx.num_inputs() - 1;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Column> columns, ReadColumns(ctx, n, 3));
  TROUPE_ASSIGN_OR_RETURN(const int64_t num_buckets,
                          ReadIntegerScalar(ctx.input(last - 2), "num_buckets"));
  if (ctx.input(last - 1).rank() != 0) {
    return InvalidArgument("strong_hash must be a scalar, got shape ",
                           ctx.input(last - 1).shape().ToString());
  }
  const bool strong = ctx.input(last - 1).unchecked_scalar<bool>();
  TROUPE_ASSIGN_OR_RETURN(const DimVector salt, ReadIntegerVector(ctx.input(last), "salt"));
  if (salt.size() != 2) return InvalidArgument("salt must have two numbers, got ", salt.size());
  const uint64_t key[2] = {static_cast<uint64_t>(salt[0]), static_cast<uint64_t>(salt[1])};
  const auto hash_bytes = [&](std::string_view bytes) {
    return strong ? SipHash(bytes, key) : Fingerprint(bytes);
  };
  const auto hash_feature = [&](const Column& column, int64_t feature) {
    if (column.text()) return hash_bytes(column.String(feature));
    const int64_t number = column.Number(feature);
    if (column.dense() && !strong) return static_cast<uint64_t>(number);
    // As TensorFlow has it the lower four bytes stand for a number.
    const auto low = static_cast<uint32_t>(number);
    return hash_bytes({reinterpret_cast<const char*>(&low), sizeof low});
  };
  return PutCrosses<int64_t>(ctx, columns, [&](absl::Span<const int64_t> features) {
    uint64_t hash = hash_feature(columns[0], features[0]);
    for (size_t i = 1; i < columns.size(); ++i) {
      hash = CombineFingerprints(hash, hash_feature(columns[i], features[i]));
    }
    return ToBucket(hash, num_buckets);
  });
}

REGISTER_KERNEL(KernelSpec("SparseCross"), MakeKernel<SparseCross>);
REGISTER_KERNEL(KernelSpec("SparseCrossV2"), (MakeAttrKernel<SparseCrossV2, "N">));
REGISTER_KERNEL(KernelSpec("SparseCrossHashed"), (MakeAttrKernel<SparseCrossHashed, "N">));

}  // namespace
}  // namespace troupe
