/// What containers can make besides variables, queues and accumulators.
#ifndef TROUPE_KERNELS_SYNC_SYNCHRONIZER_OPTIONS_H_
#define TROUPE_KERNELS_SYNC_SYNCHRONIZER_OPTIONS_H_

#include <string>
#include <variant>

#include "kernels/io/reader.h"
#include "kernels/sync/barrier.h"
#include "kernels/sync/mutex.h"
#include "kernels/sync/staging_area.h"
#include "kernels/sync/staging_map.h"
#include "kernels/tables/lookup_table.h"

namespace troupe {

/// Of one kind of machine, `Machine`, which is made with them.
struct SynchronizerOptions {
  std::variant<MutexOptions, BarrierOptions, StagingAreaOptions, StagingMapOptions, TableOptions,
               ReaderOptions>
      of;
};

/// A new machine for the options, behind a mailbox. What `LookupTable::MakeState` says if the
/// options cannot be met. Defined in actors/state, where mailboxes are.
absl::StatusOr<RefPtr<Resource>> MakeSynchronizer(std::string name,
                                                  const SynchronizerOptions& options);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SYNC_SYNCHRONIZER_OPTIONS_H_
