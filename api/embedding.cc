#include "api/embedding.h"

#include "api/ops.h"
#include "api/training/clipping.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// Rows [ids.shape, row shape] no longer than `max_norm`.
Output LimitNorm(const Scope& s, const Output& rows, const Output& ids, double max_norm) {
  if (!(max_norm > 0) || !rows.valid()) return rows;
  if (ids.shape().unknown_rank() || rows.shape().unknown_rank()) {
    s.UpdateStatus(InvalidArgument("EmbeddingLookup: max_norm needs the ranks of ids and table"));
    return Output();
  }
  std::vector<int32_t> axes;
  for (int i = ids.shape().rank(); i < rows.shape().rank(); ++i) axes.push_back(i);
  return ClipByNorm(s, rows, max_norm, axes);
}

/// Which table an id's row is in, and which row it is there.
struct Place {
  Output table, row;
};

Place FindPlaces(const Scope& s, const std::vector<ModelVariable>& tables, const Output& ids,
                 PartitionStrategy strategy) {
  auto number = [&](int64_t value) {
    const Output wide = Const(s, value);
    return ids.type() == ElementType::kInt64 ? wide : ops::Cast(s, wide, ids.type());
  };
  const int64_t n = static_cast<int64_t>(tables.size());
  if (strategy == PartitionStrategy::kMod) {
    return {ops::FloorMod(s, ids, number(n)), ops::FloorDiv(s, ids, number(n))};
  }
  int64_t total = 0;
  for (const ModelVariable& table : tables) {
    const int64_t rows =
        table.shape().unknown_rank() || table.shape().rank() == 0 ? -1 : table.shape().dim(0);
    if (rows < 0) {
      s.UpdateStatus(InvalidArgument("EmbeddingLookup: to divide the rows over '", table.name(),
                                     "' and the others, their numbers of rows must be known; its ",
                                     "shape is ", table.shape().ToString()));
      return {};
    }
    total += rows;
  }
  // The first `extra` tables have `each` + 1 rows.
  const int64_t each = total / n, extra = total % n;
  if (each == 0) {
    s.UpdateStatus(
        InvalidArgument("EmbeddingLookup: ", total, " rows cannot be divided over ", n, " tables"));
    return {};
  }
  const Output past = ops::Sub(s, ids, number(extra));
  Place place;
  place.table = ops::Maximum(s, ops::FloorDiv(s, ids, number(each + 1)),
                             ops::FloorDiv(s, past, number(each)));
  place.row =
      ops::SelectV2(s, ops::Less(s, place.table, number(extra)),
                    ops::FloorMod(s, ids, number(each + 1)), ops::FloorMod(s, past, number(each)));
  return place;
}

}  // namespace

Output EmbeddingLookup(const Scope& scope, const ModelVariable& table, const Input& ids,
                       double max_norm) {
  return EmbeddingLookup(scope, std::vector<ModelVariable>{table}, ids, PartitionStrategy::kMod,
                         max_norm);
}

Output EmbeddingLookup(const Scope& scope, const Output& table, const Input& ids, double max_norm) {
  const Scope s = scope.NewSubScope("embedding_lookup");
  const Output which = ids.ToOutput(s);
  if (!s.ok() || !table.valid() || !which.valid()) return Output();
  return LimitNorm(s, ops::GatherV2(s, table, which, 0), which, max_norm);
}

Output EmbeddingLookup(const Scope& scope, const std::vector<ModelVariable>& tables,
                       const Input& ids, PartitionStrategy strategy, double max_norm) {
  const Scope s = scope.NewSubScope("embedding_lookup");
  if (tables.empty()) s.UpdateStatus(InvalidArgument("EmbeddingLookup: there is no table"));
  for (const ModelVariable& table : tables) {
    if (!table.valid()) s.UpdateStatus(InvalidArgument("EmbeddingLookup: a table is no variable"));
  }
  const Output which = ids.ToOutput(s);
  if (!s.ok() || !which.valid()) return Output();
  if (tables.size() == 1) {
    return LimitNorm(s, ops::ResourceGather(s, tables[0].handle(), which, tables[0].type()), which,
                     max_norm);
  }
  const int64_t n = static_cast<int64_t>(tables.size());
  const Output flat = ops::Reshape(s, which, {-1});
  const Place place = FindPlaces(s, tables, flat, strategy);
  if (!s.ok()) return Output();
  // Each table's part is looked up there, and put back to where its ids were.
  const Output table = ops::Cast(s, place.table, ElementType::kInt32);
  const Output positions = ops::Range(s, 0, ops::Size(s, flat), 1);
  const std::vector<Output> rows_of = ops::DynamicPartition(s, place.row, table, n);
  const std::vector<Output> positions_of = ops::DynamicPartition(s, positions, table, n);
  if (!s.ok()) return Output();
  std::vector<Output> found;
  for (int64_t i = 0; i < n; ++i)
    found.push_back(ops::ResourceGather(s, tables[i].handle(), rows_of[i], tables[i].type()));
  if (!s.ok()) return Output();
  const Output stitched = ops::DynamicStitch(s, positions_of, found);
  const Output row_shape = ops::Slice(s, ops::Shape(s, stitched), {1}, {-1});
  const std::vector<Output> shape = {ops::Shape(s, which), row_shape};
  const Output result = ops::Reshape(s, stitched, ops::ConcatV2(s, shape, 0));
  return LimitNorm(s, result, which, max_norm);
}

}  // namespace troupe
