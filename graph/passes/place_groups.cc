#include "graph/passes/place_groups.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "devices/status_macros.h"
#include "graph/passes/colocation.h"
#include "graph/passes/frames.h"

namespace troupe {
namespace {

constexpr int kMostListed = 24;  // Members that an error names.

/// Why two nodes must be together.
enum class Join { kReference, kResource, kBackEdge };

/// Calls `join(j, why)` for every node j that node i must be with because of an edge between them.
template <typename F>
void ForEachJoin(const Subgraph& subgraph, int32_t i, F join) {
  const SubNode& node = subgraph.nodes[i];
  const Node& original = *node.original;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const SubOutput input = node.inputs[k];
    if (subgraph.nodes[input.node].kind != SubNode::Kind::kOp) continue;
    const ElementType type = original.input_type(static_cast<int>(k));
    if (IsRefType(type)) {
      join(input.node, Join::kReference);
    } else if (TakesHandle(original, static_cast<int>(k))) {
      join(input.node, Join::kResource);
    } else if (input.node > i) {
      join(input.node, Join::kBackEdge);
    }
  }
}

bool NeedsNoKernel(const Node& node) {
  return node.op() == "NoOp" || FlowOpOf(node) != FlowOp::kNone;
}

bool HoldsState(const Node& node) {
  // What has a name and no handle is found by its name, by nodes of other steps as well.
  if (node.attrs().Has("shared_name")) return true;
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ElementType type = node.output_type(i);
    if (IsRefType(type) || type == ElementType::kResource) return true;
  }
  return false;
}

/// Says of what holds state whether it is numbers, and how much of them is known to be.
void NoteState(const Node& node, PlacementGroup* group) {
  group->state = true;
  ElementType type = ElementType::kInvalid;
  if (!node.attrs().Get(node.attrs().Has("dtype") ? "dtype" : "elem_type", &type).ok() ||
      !IsPlain(type) || type == ElementType::kInt32) {
    return;
  }
  group->keeps_numbers = true;
  PartialShape shape;
  if (!node.attrs().Has("shape") || !node.attrs().Get("shape", &shape).ok()) return;
  if (const absl::StatusOr<Shape> known = shape.ToShape(); known.ok()) {
    group->state_bytes += known->num_elements() * static_cast<int64_t>(ElementSize(type));
  }
}

class Grouper {
 public:
  Grouper(const PlacementInput& input, const Subgraph& subgraph)
      : input_(input),
        subgraph_(subgraph),
        nodes_(subgraph.nodes),
        num_nodes_(static_cast<int32_t>(subgraph.nodes.size())) {
    result_.sets = DeviceSets(static_cast<int>(input.devices.size()));
    for (size_t d = 0; d < input.devices.size(); ++d) {
      by_name_.emplace(input.devices[d].name, static_cast<int>(d));
      const std::string& type = *input.devices[d].parsed.type;
      if (std::find(types_.begin(), types_.end(), type) == types_.end()) types_.push_back(type);
    }
  }

  absl::StatusOr<PlacementGroups> Run() {
    TROUPE_RETURN_IF_ERROR(Unite());
    TROUPE_RETURN_IF_ERROR(FindSets());
    return std::move(result_);
  }

 private:
  /// The request of a node: the devices that meet it, exactly or softly.
  struct Request {
    int set = 0;
    int soft_set = 0;
    absl::Status status;
  };

  // --- union-find; past the nodes stand the nodes outside the subgraph that are named ----------

  int32_t Find(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void UniteTwo(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

  absl::Status Unite() {
    parent_.resize(num_nodes_);
    std::iota(parent_.begin(), parent_.end(), 0);
    for (int32_t i = 0; i < num_nodes_; ++i) {
      if (nodes_[i].kind != SubNode::Kind::kOp) continue;
      ForEachJoin(subgraph_, i, [&](int32_t j, Join) { UniteTwo(i, j); });
      TROUPE_RETURN_IF_ERROR(UniteNamed(i, *nodes_[i].original));
      // State of one name is one.
      const std::string name = SharedNameOf(*nodes_[i].original);
      if (name.empty()) continue;
      if (const auto [it, first] = shared_.try_emplace(name, i); !first) UniteTwo(i, it->second);
    }
    // A node that is named may name others.
    for (size_t k = 0; k < outside_.size(); ++k) {
      if (outside_[k] == nullptr) continue;
      TROUPE_RETURN_IF_ERROR(UniteNamed(num_nodes_ + static_cast<int32_t>(k), *outside_[k]));
    }
    return absl::OkStatus();
  }

  absl::Status UniteNamed(int32_t i, const Node& node) {
    const bool at = !node.requested_device().empty() && node.requested_device()[0] == '@';
    if (!at && !node.attrs().Has("_class")) return absl::OkStatus();
    for (const std::string& name : ColocationNames(node)) {
      if (index_of_.empty()) {
        index_of_.reserve(nodes_.size());
        for (int32_t k = 0; k < num_nodes_; ++k) {
          if (nodes_[k].kind == SubNode::Kind::kOp) {
            index_of_.emplace(nodes_[k].original->name(), k);
          }
        }
      }
      auto [it, first] =
          index_of_.emplace(name, num_nodes_ + static_cast<int32_t>(outside_.size()));
      if (first) {
        outside_.push_back(node.graph()->FindNode(name));
        parent_.push_back(it->second);
      }
      if (it->second >= num_nodes_ && outside_[it->second - num_nodes_] == nullptr && at &&
          node.requested_device().compare(1, std::string::npos, name) == 0) {
        return InvalidArgument("node '", node.name(), "' (op ", node.op(), ") asks for device '",
                               node.requested_device(), "', but the graph has no node '", name,
                               "'");
      }
      UniteTwo(i, it->second);
    }
    return absl::OkStatus();
  }

  // --- feasible sets -----------------------------------------------------------------------------

  const Request& RequestOf(const std::string& text) {
    auto [it, first] = requests_.try_emplace(text);
    Request& request = it->second;
    if (!first || text.empty() || text[0] == '@' || input_.spread_seed) return request;
    absl::StatusOr<DeviceName> name = DeviceName::Parse(text);
    if (!name.ok()) {
      request.status = name.status();
      return request;
    }
    request.set = Matching(*name);
    name->type.reset();
    name->index.reset();
    request.soft_set = Matching(*name);
    return request;
  }

  int Matching(const DeviceName& pattern) {
    std::vector<int> devices;
    for (size_t d = 0; d < input_.devices.size(); ++d) {
      if (input_.devices[d].parsed.Matches(pattern)) devices.push_back(static_cast<int>(d));
    }
    return result_.sets.Intern(std::move(devices));
  }

  /// Where there are kernels for a node.
  int KernelSet(const Node& node) {
    if (types_.size() == 1 || !input_.lacks_kernel || NeedsNoKernel(node)) return 0;
    uint64_t has = 0;
    for (size_t t = 0; t < types_.size() && t < 64; ++t) {
      if (input_.lacks_kernel(node, types_[t]) == nullptr) has |= uint64_t{1} << t;
    }
    auto [it, first] = kernel_sets_.try_emplace(has, 0);
    if (first) {
      std::vector<int> devices;
      for (size_t d = 0; d < input_.devices.size(); ++d) {
        const auto type = std::find(types_.begin(), types_.end(), *input_.devices[d].parsed.type);
        if (has >> (type - types_.begin()) & 1) devices.push_back(static_cast<int>(d));
      }
      it->second = result_.sets.Intern(std::move(devices));
    }
    return it->second;
  }

  /// The device that an earlier step gave the node, as a set; 0 if none did.
  absl::StatusOr<int> FixedSet(const Node& node, bool* fixed) {
    if (input_.fixed == nullptr || input_.fixed->empty()) return 0;
    auto found = input_.fixed->find(node.name());
    if (found == input_.fixed->end()) return 0;
    auto device = by_name_.find(found->second);
    if (device == by_name_.end()) {
      return absl::UnavailableError(
          StrCat("node '", node.name(), "' (op ", node.op(), ") was placed on ", found->second,
                 " by an earlier step, but that device is gone; there are ", Available()));
    }
    *fixed = true;
    return result_.sets.Intern({device->second});
  }

  absl::Status FindSets() {
    std::vector<int32_t> group_of_root(parent_.size(), -1);
    std::vector<PlacementGroup>& groups = result_.groups;
    result_.group_of.assign(num_nodes_, -1);
    const int32_t all = static_cast<int32_t>(parent_.size());
    for (int32_t i = 0; i < num_nodes_; ++i) {
      if (nodes_[i].kind != SubNode::Kind::kOp) continue;
      int32_t& group = group_of_root[Find(i)];
      if (group < 0) {
        group = static_cast<int32_t>(groups.size());
        groups.emplace_back();
        groups.back().first = i;
      }
      result_.group_of[i] = group;
      ++groups[group].size;
    }
    std::vector<int> kernels(groups.size(), 0);
    for (int32_t i = 0; i < all; ++i) {
      const Node* node = NodeAt(i);
      if (node == nullptr) continue;
      const int32_t at = group_of_root[Find(i)];
      if (at < 0) continue;  // Only nodes outside.
      PlacementGroup& group = groups[at];
      const std::string& device = node->requested_device();
      // A NextIteration goes where its Merge is, whatever scope the loop's body was written in.
      if (!device.empty() && !node->op().ends_with("NextIteration")) {
        const Request& request = RequestOf(device);
        if (!request.status.ok()) {
          return InvalidArgument("node '", node->name(), "' (op ", node->op(),
                                 "): ", request.status.message());
        }
        if (device[0] != '@') group.requested = true;
        group.set = result_.sets.Intersect(group.set, request.set);
      }
      TROUPE_ASSIGN_OR_RETURN(const int fixed, FixedSet(*node, &group.fixed));
      int own = fixed;
      if (i < num_nodes_) {
        own = result_.sets.Intersect(own, KernelSet(*node));
        if (HoldsState(*node)) NoteState(*node, &group);
      }
      kernels[at] = result_.sets.Intersect(kernels[at], own);
      group.set = result_.sets.Intersect(group.set, own);
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      if (!result_.sets.empty(groups[g].set)) continue;
      if (input_.allow_soft_placement) Soften(static_cast<int32_t>(g), kernels[g]);
      if (result_.sets.empty(groups[g].set)) return Impossible(static_cast<int32_t>(g));
    }
    return absl::OkStatus();
  }

  const Node* NodeAt(int32_t i) const {
    if (i >= num_nodes_) return outside_[i - num_nodes_];
    return nodes_[i].kind == SubNode::Kind::kOp ? nodes_[i].original : nullptr;
  }

  std::vector<const Node*> Members(int32_t group, std::vector<int32_t>* indices = nullptr) {
    const int32_t root = Find(result_.groups[group].first);
    std::vector<const Node*> members;
    for (int32_t i = 0; i < static_cast<int32_t>(parent_.size()); ++i) {
      const Node* node = NodeAt(i);
      if (node == nullptr || Find(i) != root) continue;
      members.push_back(node);
      if (indices != nullptr) indices->push_back(i);
    }
    return members;
  }

  /// First only the members whose own request cannot be met give way, then all do.
  void Soften(int32_t index, int possible) {
    PlacementGroup& group = result_.groups[index];
    DeviceSets& sets = result_.sets;
    const std::vector<const Node*> members = Members(index);
    for (const bool all : {false, true}) {
      int set = possible;
      for (const Node* node : members) {
        const Request& request = RequestOf(node->requested_device());
        const bool soft = all || sets.empty(sets.Intersect(request.set, possible));
        set = sets.Intersect(set, soft ? request.soft_set : request.set);
      }
      if (sets.empty(set)) continue;
      // What does not get its device is safest on a CPU.
      std::vector<int> cpus;
      for (int d : sets.devices(set)) {
        if (*input_.devices[d].parsed.type == "CPU") cpus.push_back(d);
      }
      group.set = cpus.empty() ? set : sets.Intern(std::move(cpus));
      group.softened = true;
      return;
    }
  }

  // --- errors
  // --------------------------------------------------------------------------------------

  std::string Available() const {
    std::string text;
    for (const PlacementDevice& device : input_.devices) {
      if (!text.empty()) text += ", ";
      text += device.name;
    }
    return text;
  }

  std::string Constraint(int32_t i) {
    const Node& node = *NodeAt(i);
    std::string text;
    auto add = [&](const std::string& part) { text += text.empty() ? part : StrCat(", ", part); };
    const std::string& device = node.requested_device();
    if (!device.empty() && device[0] != '@') {
      const bool none = result_.sets.empty(RequestOf(device).set);
      add(StrCat("asks for device ", device, none ? ", which does not exist" : ""));
    }
    for (const std::string& name : ColocationNames(node)) {
      if (name != node.name()) add(StrCat("is colocated with '", name, "'"));
    }
    if (i < num_nodes_) {
      ForEachJoin(subgraph_, i, [&](int32_t j, Join why) {
        const std::string& other = nodes_[j].original->name();
        if (why == Join::kReference) add(StrCat("takes a reference from '", other, "'"));
        if (why == Join::kResource) add(StrCat("takes a resource from '", other, "'"));
        if (why == Join::kBackEdge) add(StrCat("closes a loop with '", other, "'"));
      });
      if (types_.size() > 1 && input_.lacks_kernel && !NeedsNoKernel(node)) {
        for (const std::string& type : types_) {
          const Node* const lacking = input_.lacks_kernel(node, type);
          if (lacking == nullptr) continue;
          const bool itself = lacking->name() == node.name();
          add(StrCat(itself ? ""
                            : StrCat("must be with '", lacking->name(), "' (op ", lacking->op(),
                                     "), which "),
                     "has no kernel on ", type));
          if (input_.explain_lack) text += StrCat(" (", input_.explain_lack(*lacking, type), ")");
        }
      }
    }
    if (input_.fixed != nullptr) {
      auto found = input_.fixed->find(node.name());
      if (found != input_.fixed->end()) {
        add(StrCat("was placed on ", found->second, " by an earlier step"));
      }
    }
    return StrCat("node '", node.name(), "' (op ", node.op(), ") ",
                  text.empty() ? "has no constraint of its own" : text);
  }

  absl::Status Impossible(int32_t group) {
    std::vector<int32_t> indices;
    Members(group, &indices);
    const std::string remedy = input_.allow_soft_placement ? "" : ", or allow soft placement";
    if (indices.size() == 1) {
      return InvalidArgument("cannot place ", Constraint(indices[0]), "; there are ", Available(),
                             "; name one of them", remedy);
    }
    std::string list;
    for (size_t k = 0; k < indices.size() && k < kMostListed; ++k) {
      list += StrCat(k == 0 ? "" : "; ", Constraint(indices[k]));
    }
    if (indices.size() > kMostListed) {
      list += StrCat("; and ", indices.size() - kMostListed, " more");
    }
    return InvalidArgument("cannot place ", indices.size(),
                           " nodes that must be together, because no device suits them all: ", list,
                           "; there are ", Available(), "; change what they ask for", remedy);
  }

  const PlacementInput& input_;
  const Subgraph& subgraph_;
  const std::vector<SubNode>& nodes_;
  const int32_t num_nodes_;
  std::vector<int32_t> parent_;
  std::vector<const Node*> outside_;  // Named, but not in the subgraph; nullptr: nor in the graph.
  std::unordered_map<std::string, int32_t> index_of_;
  std::unordered_map<std::string, Request> requests_;
  std::unordered_map<std::string, int> by_name_;
  std::vector<std::string> types_;
  std::map<uint64_t, int> kernel_sets_;
  std::map<std::string, int32_t> shared_;  // By shared name: the first node.
  PlacementGroups result_;
};

}  // namespace

DeviceSets::DeviceSets(int num_devices) {
  std::vector<int> all(num_devices);
  std::iota(all.begin(), all.end(), 0);
  Intern(std::move(all));
}

int DeviceSets::Intern(std::vector<int> devices) {
  auto [it, first] = ids_.try_emplace(devices, static_cast<int>(sets_.size()));
  if (first) sets_.push_back(std::move(devices));
  return it->second;
}

int DeviceSets::Intersect(int a, int b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a > b) std::swap(a, b);
  auto found = intersections_.find({a, b});
  if (found != intersections_.end()) return found->second;
  std::vector<int> both;
  std::set_intersection(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                        std::back_inserter(both));
  const int set = Intern(std::move(both));
  intersections_[{a, b}] = set;
  return set;
}

bool DeviceSets::Contains(int set, int device) const {
  return std::binary_search(sets_[set].begin(), sets_[set].end(), device);
}

absl::StatusOr<PlacementGroups> FormPlacementGroups(const PlacementInput& input,
                                                    const Subgraph& subgraph) {
  return Grouper(input, subgraph).Run();
}

}  // namespace troupe
