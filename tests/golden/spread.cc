#include "tests/golden/spread.h"

#include <map>
#include <numeric>
#include <random>

#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/tensor.pb.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace troupe::golden {
namespace {

/// Nodes of a GraphDef that must be together.
class Groups {
 public:
  explicit Groups(const GraphDef& def) : parent_(def.node_size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (int i = 0; i < def.node_size(); ++i) index_[def.node(i).name()] = i;
  }
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Join(const std::string& a, const std::string& b) {
    const int i = IndexOf(a), j = IndexOf(b);
    if (i >= 0 && j >= 0) parent_[Find(i)] = Find(j);
  }

 private:
  /// A node, or the call whose body it comes from.
  int IndexOf(std::string name) const {
    while (true) {
      if (auto found = index_.find(name); found != index_.end()) return found->second;
      const size_t slash = name.rfind('/');
      if (slash == std::string::npos) return -1;
      name.resize(slash);
    }
  }
  std::vector<int> parent_;
  std::map<std::string, int> index_;
};

bool MustStay(ElementType type) { return IsRefType(type) || type == ElementType::kResource; }

}  // namespace

Spread& CurrentSpread() {
  static Spread spread;
  return spread;
}

void UseSimulatedDevices(uint64_t seed, bool fast) {
  testing::BorrowKernels();
  testing::SimulatedOptions options{.seed = seed};
  if (fast) options.figures = DeviceFigures{1e8, 1e7, 0.01, 0.1, 1e6};
  testing::UseSimulatedDevices(options);
}

void SpreadGraph(const std::string& case_name, bool keep_named, GraphDef* def) {
  const Spread& spread = CurrentSpread();
  if (spread.devices.empty()) return;
  GraphDef placeless = *def;
  for (NodeDef& node : *placeless.mutable_node()) {
    if (!keep_named) node.clear_device();
  }
  Graph graph;
  if (!ImportGraphDef(placeless, ImportOptions(), &graph).ok()) return;
  Groups groups(placeless);
  for (const Node* node : graph.nodes()) {
    for (const Edge* edge : node->in_edges()) {
      if (!edge->control() && !edge->src->IsSource() &&
          MustStay(edge->src->output_type(edge->src_output))) {
        groups.Join(node->name(), edge->src->name());
      }
    }
    std::vector<std::string> together;
    if (!node->attrs().Get("_class", &together).ok()) continue;
    for (const std::string& name : together) {
      if (name.starts_with("loc:@")) groups.Join(node->name(), name.substr(5));
    }
  }
  std::seed_seq seeds{static_cast<uint32_t>(spread.seed), static_cast<uint32_t>(spread.seed >> 32),
                      static_cast<uint32_t>(std::hash<std::string>()(case_name))};
  std::mt19937 random(seeds);
  // State of one name is one resource, which is on one device; without a name it has its node's.
  std::map<std::string, std::string> by_name;
  for (const NodeDef& node : placeless.node()) {
    auto name = node.attr().find("shared_name");
    if (name == node.attr().end()) continue;
    const std::string& own = name->second.s().empty() ? node.name() : name->second.s();
    auto [it, first] = by_name.emplace(own, node.name());
    if (!first) groups.Join(node.name(), it->second);
  }
  std::map<int, std::string> devices;
  for (int i = 0; i < placeless.node_size(); ++i) {
    NodeDef* node = placeless.mutable_node(i);
    auto [it, first] = devices.emplace(groups.Find(i), "");
    if (first) it->second = spread.devices[random() % spread.devices.size()];
    if (node->device().empty()) node->set_device(it->second);
  }
  // The device that a RemoteCall names is one of those that there are, too.
  if (!keep_named) {
    for (const NodeDef& call : placeless.node()) {
      if (call.op() != "RemoteCall" || call.input_size() == 0) continue;
      for (NodeDef& node : *placeless.mutable_node()) {
        if (node.op() != "Const" || node.name() != call.input(0)) continue;
        TensorProto* target = (*node.mutable_attr())["value"].mutable_tensor();
        target->clear_string_val();
        target->add_string_val(spread.devices[random() % spread.devices.size()]);
      }
    }
  }
  *def = std::move(placeless);
}

}  // namespace troupe::golden
