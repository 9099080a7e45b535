/// How the arguments of an op definition become the inputs and outputs of a node, and kinds of
/// attribute values.
#ifndef TROUPE_GRAPH_OP_ARGS_H_
#define TROUPE_GRAPH_OP_ARGS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "devices/element_type.h"
#include "graph/attr_reader.h"

namespace troupe {

class AttrValue;
class OpDef;

/// True for the numbers that TensorFlow's DataType has, DT_INVALID excepted, references included.
bool IsElementTypeNumber(int number);

/// "string", "int", "list(type)", "list" (empty), "placeholder", "nothing"...
std::string AttrKind(const AttrValue& value);

/// Which of a definition's arguments.
enum class ArgSide { kInputs, kOutputs };

/// Types of all inputs or outputs of a node, references marked. InvalidArgument if an attribute
/// that is needed is missing or of the wrong kind, or if there would be more than a million.
absl::Status ArgTypes(const OpDef& op_def, ArgSide side, const AttrReader& attrs,
                      std::vector<ElementType>* types);

/// The inputs or outputs [begin, end) of the argument `name`; {-1,-1} if there is no such argument.
std::pair<int, int> ArgRange(const OpDef& op_def, ArgSide side, const AttrReader& attrs,
                             std::string_view name);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OP_ARGS_H_
