#include "kernels/tables/table_store.h"

#include "devices/status_macros.h"
#include "kernels/tables/lookup_table.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<TableStore>> MakeTableStore(const TableOptions& options) {
  switch (options.kind) {
    case TableOptions::Kind::kOfTensors:
      if (options.value_shape.rank() != 1) {
        return InvalidArgument("value_shape must be that of a vector, got ",
                               options.value_shape.ToString());
      }
      return MakeRowStore(options.key_type, options.value_type, options.value_shape.num_elements());
    case TableOptions::Kind::kDense:
      return MakeDenseStore(options);
    case TableOptions::Kind::kImmutable:
    case TableOptions::Kind::kMutable:
      break;
  }
  return MakeScalarStore(options.key_type, options.value_type);
}

}  // namespace troupe
