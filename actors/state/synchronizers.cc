// Mutexes, barriers, staging areas, tables and readers as actors.
#include <utility>
#include <variant>

#include "actors/state/waiting_role.h"
#include "devices/status_macros.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {

absl::StatusOr<RefPtr<Resource>> MakeSynchronizer(std::string name,
                                                  const SynchronizerOptions& options) {
  using Made = absl::StatusOr<RefPtr<Resource>>;
  return std::visit(
      [&]<typename Options>(const Options& of) -> Made {
        using Machine = typename Options::Machine;
        if constexpr (requires { Machine::MakeState(of); }) {
          TROUPE_ASSIGN_OR_RETURN(auto state, Machine::MakeState(of));
          return RefPtr<Resource>(
              MakeRef<WaitingRole<Machine>>(std::move(name), of, std::move(state)));
        } else {
          return RefPtr<Resource>(MakeRef<WaitingRole<Machine>>(std::move(name), of));
        }
      },
      options.of);
}

}  // namespace troupe
