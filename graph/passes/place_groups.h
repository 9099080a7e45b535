/// The constraints of a placement: which nodes must be together, and where they may be. For the
/// sources of `graph/passes/` only.
#ifndef TROUPE_GRAPH_PASSES_PLACE_GROUPS_H_
#define TROUPE_GRAPH_PASSES_PLACE_GROUPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/passes/place.h"

namespace troupe {

/// Sets of devices, each kept once and known by its number. Set 0 is all of them.
class DeviceSets {
 public:
  explicit DeviceSets(int num_devices);
  int Intern(std::vector<int> devices);  ///< Ascending device numbers.
  int Intersect(int a, int b);
  const std::vector<int>& devices(int set) const { return sets_[set]; }
  bool empty(int set) const { return sets_[set].empty(); }
  bool Contains(int set, int device) const;

 private:
  std::vector<std::vector<int>> sets_;
  std::map<std::vector<int>, int> ids_;
  std::map<std::pair<int, int>, int> intersections_;
};

/// Nodes that must be on one device.
struct PlacementGroup {
  int32_t first = -1;  ///< The member with the smallest index.
  int32_t size = 0;
  int set = 0;             ///< Where it may be; never empty.
  bool fixed = false;      ///< An earlier step has placed a member.
  bool requested = false;  ///< A member asks for a device.
  bool softened = false;   ///< ... and does not get what it asked for.
  bool state = false;      ///< A member gives a reference or a resource handle, or shares by name.
  /// ... to tensors whose elements a device with a memory of its own keeps there: numbers, but not
  /// int32.
  bool keeps_numbers = false;
  int64_t state_bytes = 0;  ///< What is known of the size of those.
};

struct PlacementGroups {
  DeviceSets sets{0};
  std::vector<PlacementGroup> groups;
  std::vector<int32_t> group_of;  ///< Per node; -1 for feeds and constants.
};

/// Forms the groups. Errors as documented at `Place`.
absl::StatusOr<PlacementGroups> FormPlacementGroups(const PlacementInput& input,
                                                    const Subgraph& subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PLACE_GROUPS_H_
