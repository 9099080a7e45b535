/// The language of op definitions: texts to OpDef messages.
#ifndef TROUPE_GRAPH_OP_DEF_PARSER_H_
#define TROUPE_GRAPH_OP_DEF_PARSER_H_

#include <string_view>

#include "absl/status/status.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

/// "name: kind >= minimum = default"; InvalidArgument quotes the text.
absl::Status ParseAttrSpec(std::string_view spec, OpDef::AttrDef* attr);

/// "name: type", "name: N * type", "name: attr", each possibly in `Ref(...)`. The attributes must
/// have been parsed before; a list that has no minimum gets 1, as TensorFlow does.
absl::Status ParseArgSpec(std::string_view spec, OpDef* op_def, OpDef::ArgDef* arg);

/// A value as an attribute specification or a test writes it: `3`, `0.5`, `true`, `DT_FLOAT`,
/// `'text'`,
/// `[1, 2]`, `{ unknown_rank: true }`. `kind` is the attribute's ("int", "list(type)").
absl::Status ParseAttrText(std::string_view kind, std::string_view text, AttrValue* value);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OP_DEF_PARSER_H_
