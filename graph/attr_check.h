/// Attributes of a node against the op's definition.
#ifndef TROUPE_GRAPH_ATTR_CHECK_H_
#define TROUPE_GRAPH_ATTR_CHECK_H_

#include "absl/status/status.h"
#include "devices/export.h"

namespace troupe {

class NodeDef;
class OpDef;

/// Adds the attributes that are missing and have defaults.
TROUPE_EXPORT void FillDefaultAttrs(const OpDef& op_def, NodeDef* def);

/// Checks that every attribute of the definition is there, is of its kind and allowed. Attributes
/// that the definition does not have are accepted. InvalidArgument names node, op, attribute, and
/// what was expected.
absl::Status CheckAttrs(const OpDef& op_def, const NodeDef& def);

}  // namespace troupe

#endif  // TROUPE_GRAPH_ATTR_CHECK_H_
