#include "api/cli/draw.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

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

std::string Escape(std::string_view text, bool xml) {
  std::string out;
  for (char c : text) {
    if (xml && c == '&') {
      out += "&amp;";
    } else if (xml && c == '<') {
      out += "&lt;";
    } else if (xml && c == '>') {
      out += "&gt;";
    } else if (xml && static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else if (!xml && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

/// Each node's layer: one more than the largest of its producers'. Loops' back edges are cut where
/// they close.
std::vector<int> Layers(int n, const std::vector<Link>& links) {
  std::vector<int> layer(n, 0), waiting(n, 0);
  std::vector<std::vector<int>> consumers(n);
  for (const Link& link : links) {
    consumers[link.from].push_back(link.to);
    ++waiting[link.to];
  }
  std::vector<int> ready;
  std::vector<bool> done(n, false);
  for (int i = 0; i < n; ++i) {
    if (waiting[i] == 0) ready.push_back(i);
  }
  int next_stuck = 0;
  while (true) {
    if (ready.empty()) {
      while (next_stuck < n && done[next_stuck]) ++next_stuck;
      if (next_stuck == n) return layer;
      ready.push_back(next_stuck);
    }
    const int node = ready.back();
    ready.pop_back();
    if (done[node]) continue;
    done[node] = true;
    for (int consumer : consumers[node]) {
      if (done[consumer]) continue;
      layer[consumer] = std::max(layer[consumer], layer[node] + 1);
      if (--waiting[consumer] == 0) ready.push_back(consumer);
    }
  }
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

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

}  // namespace

std::string ToDot(const GraphDef& graph) {
  std::string out = "digraph graph_def {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (int i = 0; i < graph.node_size(); ++i) {
    const NodeDef& node = graph.node(i);
    out += StrCat("  n", i, " [label=\"", Escape(node.name(), false), "\\n",
                  Escape(node.op(), false), "\"];\n");
  }
  const std::vector<std::string> devices = DevicesOf(graph);
  for (size_t d = 0; d < devices.size(); ++d) {
    out += StrCat("  subgraph cluster_", d, " {\n    label=\"", Escape(devices[d], false),
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

std::string ToSvg(const GraphDef& graph) {
  constexpr double kWidth = 160, kHeight = 40, kGapX = 24, kGapY = 44, kMargin = 20;
  const int n = graph.node_size();
  const std::vector<Link> links = Links(graph);
  const std::vector<int> layer = Layers(n, links);
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < n; ++i) {
    if (static_cast<int>(rows.size()) <= layer[i]) rows.resize(layer[i] + 1);
    rows[layer[i]].push_back(i);
  }
  std::vector<double> position(n);
  auto place = [&](const std::vector<int>& row) {
    for (size_t k = 0; k < row.size(); ++k) {
      position[row[k]] = static_cast<double>(k) - 0.5 * static_cast<double>(row.size() - 1);
    }
  };
  for (const auto& row : rows) place(row);
  // Each row in the order of the mean of its neighbours in the row before (down), then after (up).
  for (const bool down : {true, false, true}) {
    std::vector<double> sum(n, 0);
    std::vector<int> count(n, 0);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<int>& row = rows[down ? r : rows.size() - 1 - r];
      std::stable_sort(row.begin(), row.end(), [&](int a, int b) {
        auto mean = [&](int i) { return count[i] > 0 ? sum[i] / count[i] : position[i]; };
        return mean(a) < mean(b);
      });
      place(row);
      for (const Link& link : links) {
        const int known = down ? link.from : link.to, open = down ? link.to : link.from;
        if (layer[known] == static_cast<int>(down ? r : rows.size() - 1 - r)) {
          sum[open] += position[known];
          ++count[open];
        }
      }
    }
  }
  size_t widest = 1;
  for (const auto& row : rows) widest = std::max(widest, row.size());
  const double width = 2 * kMargin + static_cast<double>(widest) * (kWidth + kGapX);
  const std::vector<std::string> devices = DevicesOf(graph);
  constexpr double kLegend = 18;  // The height of a line.
  const double top = kMargin + kLegend * static_cast<double>(devices.size());
  const double height = top + kMargin + static_cast<double>(rows.size()) * (kHeight + kGapY);
  auto x = [&](int i) { return width / 2 + position[i] * (kWidth + kGapX); };
  auto y = [&](int i) { return top + layer[i] * (kHeight + kGapY); };
  std::string out =
      StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Number(width), " ",
             Number(height), "\" font-family=\"sans-serif\" font-size=\"11\">\n");
  out +=
      "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (size_t d = 0; d < devices.size(); ++d) {
    const double at = kMargin / 2 + kLegend * static_cast<double>(d);
    out += StrCat("<rect x=\"", Number(kMargin / 2), "\" y=\"", Number(at),
                  "\" width=\"24\" height=\"14\" rx=\"3\" fill=\"", Colour(d),
                  "\" stroke=\"#456\"/><text x=\"", Number(kMargin / 2 + 30), "\" y=\"",
                  Number(at + 11), "\">", Escape(devices[d], true), "</text>\n");
  }
  for (const Link& link : links) {
    const double x1 = x(link.from), y1 = y(link.from) + kHeight, x2 = x(link.to), y2 = y(link.to);
    const double bend = std::max(kGapY / 2, (y2 - y1) / 2);
    out += StrCat("<path d=\"M", Number(x1), " ", Number(y1), "C", Number(x1), " ",
                  Number(y1 + bend), " ", Number(x2), " ", Number(y2 - bend), " ", Number(x2), " ",
                  Number(y2), "\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#a)\"",
                  link.control ? " stroke-dasharray=\"4 3\"" : "", "/>\n");
  }
  for (int i = 0; i < n; ++i) {
    const NodeDef& node = graph.node(i);
    std::string name = node.name();
    if (name.size() > 26) name = "..." + name.substr(name.size() - 23);
    const std::string cx = Number(x(i));
    const auto device = std::find(devices.begin(), devices.end(), node.device());
    const char* colour = Colour(device == devices.end() ? 0 : device - devices.begin());
    out +=
        StrCat("<g><title>", Escape(node.name(), true), "</title><rect x=\"",
               Number(x(i) - kWidth / 2), "\" y=\"", Number(y(i)), "\" width=\"", Number(kWidth),
               "\" height=\"", Number(kHeight), "\" rx=\"5\" fill=\"", colour,
               "\" stroke=\"#456\"/><text x=\"", cx, "\" y=\"", Number(y(i) + 16),
               "\" text-anchor=\"middle\">", Escape(name, true), "</text><text x=\"", cx, "\" y=\"",
               Number(y(i) + 31), "\" text-anchor=\"middle\" fill=\"#357\" font-weight=\"bold\">",
               Escape(node.op(), true), "</text></g>\n");
  }
  return out + "</svg>\n";
}

}  // namespace troupe::cli
