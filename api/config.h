/// TensorFlow's ConfigProto, RunOptions and ServerDef: as messages, as text, or in files.
///
///     absl::StatusOr<config::ConfigProto> config = ReadConfigProto("allow_soft_placement: true");
///     absl::StatusOr<SessionOptions> options = SessionOptionsFrom(*config);
///     auto session = Session::Create(graph, *options);
///
/// What is set there and has no meaning here is logged as a warning, by its name, once in the life
/// of the process; docs/saved-models.md has the whole list.
#ifndef TROUPE_API_CONFIG_H_
#define TROUPE_API_CONFIG_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "api/cluster.h"
#include "api/session.h"
#include "devices/export.h"
#include "graph/protos/config.pb.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The message in a file of that name (binary or text, told by the content), else the message that
/// the text itself is. InvalidArgument: neither; a field that the text sets and that the message
/// does not have. Errors name the file.
absl::StatusOr<config::ConfigProto> ReadConfigProto(std::string_view file_or_text);
absl::StatusOr<config::RunOptions> ReadRunOptions(std::string_view file_or_text);
absl::StatusOr<config::ServerDef> ReadServerDef(std::string_view file_or_text);

/// `base`, with what the message sets in place of what is there. Devices that the machine does not
/// have are left out, as `device_count` is the most that may be used. InvalidArgument: values that
/// no session can have.
absl::StatusOr<SessionOptions> SessionOptionsFrom(const config::ConfigProto& config,
                                                  SessionOptions base = {});
absl::StatusOr<RunOptions> RunOptionsFrom(const config::RunOptions& options, RunOptions base = {});
/// The task that the message describes. `default_session_config` says which devices and how many
/// threads the task has. InvalidArgument: tasks with gaps, a task or a port that the cluster does
/// not have.
absl::StatusOr<ServerOptions> ServerOptionsFrom(const config::ServerDef& server,
                                                ServerOptions base = {});
/// Only devices and threads: of a server that has a cluster.
absl::Status ApplyConfig(const config::ConfigProto& config, ServerOptions* options);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_CONFIG_H_
