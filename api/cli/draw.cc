#include "api/cli/draw.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "api/program/child_process.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe::cli {

namespace {

struct Link {
  int from;
  int to;
  bool control;
};

/// The edges between the nodes that are there.
std::vector<Link> Links(const GraphDef& graph) {
  std::map<std::string, int, std::less<>> index;
  for (int i = 0; i < graph.node_size(); ++i) index.emplace(graph.node(i).name(), i);
  std::vector<Link> links;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& input : graph.node(i).input()) {
      std::string_view name = input;
      const bool control = !name.empty() && name[0] == '^';
      if (control) name.remove_prefix(1);
      name = name.substr(0, name.find(':'));
      auto it = index.find(name);
      if (it != index.end()) links.push_back({it->second, i, control});
    }
  }
  return links;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// The devices that nodes name, in the order in which they come.
std::vector<std::string> DevicesOf(const GraphDef& graph) {
  std::vector<std::string> devices;
  for (const NodeDef& node : graph.node()) {
    if (!node.device().empty() &&
        std::find(devices.begin(), devices.end(), node.device()) == devices.end()) {
      devices.push_back(node.device());
    }
  }
  return devices;
}

/// For the background of a device's nodes.
const char* Colour(size_t device) {
  constexpr const char* kColours[] = {"#eef3fb", "#fdf0e0", "#e8f6e9", "#fbe9ee",
                                      "#f0ebfa", "#f7f6dc", "#e3f4f4", "#eeeeee"};
  return kColours[device % std::size(kColours)];
}

}  // namespace

std::string ToDot(const GraphDef& graph) {
  std::string out = "digraph graph_def {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (int i = 0; i < graph.node_size(); ++i) {
    const NodeDef& node = graph.node(i);
    out += StrCat("  n", i, " [label=\"", Escape(node.name()), "\\n", Escape(node.op()), "\"];\n");
  }
  const std::vector<std::string> devices = DevicesOf(graph);
  for (size_t d = 0; d < devices.size(); ++d) {
    out += StrCat("  subgraph cluster_", d, " {\n    label=\"", Escape(devices[d]),
                  "\"; style=filled; color=\"", Colour(d), "\";\n   ");
    for (int i = 0; i < graph.node_size(); ++i) {
      if (graph.node(i).device() == devices[d]) out += StrCat(" n", i, ";");
    }
    out += "\n  }\n";
  }
  for (const Link& link : Links(graph)) {
    out += StrCat("  n", link.from, " -> n", link.to, link.control ? " [style=dashed]" : "", ";\n");
  }
  return out + "}\n";
}

absl::Status DrawSvg(const std::string& dot, const std::string& file) {
  TROUPE_ASSIGN_OR_RETURN(
      ChildProcess program,
      ChildProcess::Start({.arguments = {"/usr/bin/env", "dot", "-Tsvg", "-o", file},
                           .input = true,
                           .errors = true}));
  program.Say(dot);
  program.CloseInput();
  const std::string said = program.Rest();
  const ExitStatus status = program.Wait().value();
  if (status.ok()) return absl::OkStatus();
  if (status.code == 127) {
    return absl::FailedPreconditionError(
        StrCat("cannot draw ", file,
               ": Graphviz's program dot is not there; install graphviz, or take --dot"));
  }
  return absl::InternalError(StrCat("cannot draw ", file, ": dot ", status.ToString(), ": ", said));
}

}  // namespace troupe::cli
