// Pictures of graphs.

#ifndef TROUPE_API_CLI_DRAW_H_
#define TROUPE_API_CLI_DRAW_H_

#include <string>

namespace troupe {
class GraphDef;
}

namespace troupe::cli {

/// Graphviz's language: data edges solid, control edges dashed; nodes with their op, in a box for
/// each device that is named.
std::string ToDot(const GraphDef& graph);

/// A picture drawn here: layers by longest path from the inputs, each ordered to keep edges short
/// (Sugiyama et al. 1981, barycentre rule, two sweeps). A colour for each device.
std::string ToSvg(const GraphDef& graph);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_DRAW_H_
