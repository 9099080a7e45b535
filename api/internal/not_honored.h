/// Says which options of a message have no meaning here.
#ifndef TROUPE_API_INTERNAL_NOT_HONORED_H_
#define TROUPE_API_INTERNAL_NOT_HONORED_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The fields that are set in a message, and in those that it holds, as
/// "graph_options.timeline_step"; what a newer writer has set and this one does not know, as "field
/// 99". `honored`: those that are left out, with all that they hold.
std::vector<std::string> FieldsNotHonored(const google::protobuf::Message& message,
                                          const std::vector<std::string_view>& honored);

/// Logs them as one warning, each field once in the life of the process. `name`: what the message
/// is called; empty: as its type.
void SayNotHonored(const google::protobuf::Message& message,
                   const std::vector<std::string_view>& honored, std::string_view name = {});

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_NOT_HONORED_H_
