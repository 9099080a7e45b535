/// From an element type known at run time to a C++ type, and a result of any kind.
#ifndef TROUPE_DEVICES_MATCH_TYPE_H_
#define TROUPE_DEVICES_MATCH_TYPE_H_

#include <utility>

#include "devices/element_type.h"

namespace troupe {

/// What `f.template operator()<T>()` gives for the T of `Types` that is `type`, else `otherwise`:
///
///     return MatchType<int32_t, int64_t>(type, -1, [&]<typename T>() { return int(sizeof(T)); });
template <typename... Types, typename R, typename F>
R MatchType(ElementType type, R otherwise, F&& f) {
  (void)((type == kElementType<Types> && (otherwise = f.template operator()<Types>(), true)) ||
         ...);
  return otherwise;
}

}  // namespace troupe

#endif  // TROUPE_DEVICES_MATCH_TYPE_H_
