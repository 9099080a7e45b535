/// Looking up rows of tables: words' vectors and the like.
#ifndef TROUPE_API_EMBEDDING_H_
#define TROUPE_API_EMBEDDING_H_

#include <vector>

#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// How the rows of one table are spread over several variables: kMod: row i is row i / n of
/// variable i % n. kDiv: contiguous blocks of rows; the first `rows % n` variables hold one row
/// more.
enum class PartitionStrategy { kMod, kDiv };

/// The rows of `table` [rows, ...] that `ids` (int32 or int64, any shape) name: of shape ids.shape
/// + table.shape[1:]. The gradient is sparse: an optimizer changes the rows that were looked up and
/// leaves the table alone. With `max_norm` above 0 rows longer than that (L2) are scaled down to
/// it. An id out of range is an error of the step.
Output EmbeddingLookup(const Scope& scope, const ModelVariable& table, const Input& ids,
                       double max_norm = 0.0);
/// The same in a tensor.
Output EmbeddingLookup(const Scope& scope, const Output& table, const Input& ids,
                       double max_norm = 0.0);
/// The same in a table that is spread over several variables of equal row shapes.
Output EmbeddingLookup(const Scope& scope, const std::vector<ModelVariable>& tables,
                       const Input& ids, PartitionStrategy strategy = PartitionStrategy::kMod,
                       double max_norm = 0.0);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_EMBEDDING_H_
