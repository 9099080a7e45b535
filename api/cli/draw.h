// Pictures of graphs.

#ifndef TROUPE_API_CLI_DRAW_H_
#define TROUPE_API_CLI_DRAW_H_

#include <string>

#include "absl/status/status.h"

namespace troupe {
class GraphDef;
}

namespace troupe::cli {

/// Graphviz's language: data edges solid, control edges dashed; nodes with their op, in a box for
/// each device that is named.
std::string ToDot(const GraphDef& graph);

/// Has Graphviz's `dot` draw a graph in its language as an SVG file. FailedPrecondition: it is not
/// there.
absl::Status DrawSvg(const std::string& dot, const std::string& file);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_DRAW_H_
