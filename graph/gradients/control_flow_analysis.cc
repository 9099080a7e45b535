#include "graph/gradients/control_flow_analysis.h"

#include <algorithm>

#include "devices/status_macros.h"

namespace troupe::gradients {

bool IsSwitch(const Node* node) {
  const std::string& op = node->op();
  return op == "Switch" || op == "RefSwitch" || op == "_SwitchN";
}
bool IsMerge(const Node* node) { return node->op() == "Merge" || node->op() == "RefMerge"; }
bool IsEnter(const Node* node) { return node->op() == "Enter" || node->op() == "RefEnter"; }
bool IsExit(const Node* node) { return node->op() == "Exit" || node->op() == "RefExit"; }
bool IsNextIteration(const Node* node) {
  return node->op() == "NextIteration" || node->op() == "RefNextIteration";
}
bool IsConstantEnter(const Node* node) {
  return IsEnter(node) && node->attrs().GetOr<bool>("is_constant", false);
}

Path Difference(const Path& inner, const Path& outer) {
  Path rest;
  for (const Branch& branch : inner) {
    if (std::find(outer.begin(), outer.end(), branch) == outer.end()) rest.push_back(branch);
  }
  return rest;
}

Path ControlFlowAnalysis::WithoutCondition(Path path, int frame) const {
  std::erase_if(path, [condition = frames_[frame].loop_cond](const Branch& branch) {
    return branch.pred.node == condition;
  });
  return path;
}

int ControlFlowAnalysis::Intern(const Path& path) {
  int id = 0;  // Paths are found by their last member: a tree whose root is the empty path.
  for (size_t i = 0; i < path.size(); ++i) {
    const Branch& branch = path[i];
    auto [found, added] =
        extended_.try_emplace({id, {{branch.pred.node->id(), branch.pred.index}, branch.index}}, 0);
    if (added) {
      Path extended(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      paths_.push_back(std::move(extended));
      found->second = static_cast<int>(paths_.size()) - 1;
    }
    id = found->second;
  }
  return id;
}

int ControlFlowAnalysis::Union(int a, int b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  auto [found, added] = unions_.try_emplace({a, b}, 0);
  if (added) {
    Path joined = paths_[a];
    for (const Branch& branch : Difference(paths_[b], paths_[a])) joined.push_back(branch);
    // The same branches in another order are the same path.
    int id = Intern(joined);
    if (joined.size() == paths_[b].size()) id = b;
    if (joined.size() == paths_[a].size()) id = a;
    unions_[{a, b}] = id;
    return id;
  }
  return found->second;
}

int ControlFlowAnalysis::Intersection(int a, int b) {
  if (a == b) return a;
  Path common;
  for (const Branch& branch : paths_[a]) {
    const Path& other = paths_[b];
    if (std::find(other.begin(), other.end(), branch) != other.end()) common.push_back(branch);
  }
  return Intern(common);
}

int ControlFlowAnalysis::OutputPath(Output output) const {
  const Node* node = output.node;
  const Place& place = places_[node->id()];
  if (!IsSwitch(node) || place.path < 0) return place.path;
  const Edge* pred = node->in_data_edge(1);
  const Branch branch{Origin(Output(pred->src, pred->src_output)), output.index,
                      node->num_outputs()};
  const Path& path = paths_[place.path];
  if (std::find(path.begin(), path.end(), branch) != path.end()) return place.path;
  auto found =
      extended_.find({place.path, {{branch.pred.node->id(), branch.pred.index}, branch.index}});
  return found == extended_.end() ? place.path : found->second;
}

Output ControlFlowAnalysis::Origin(Output tensor) const {
  while (tensor.node->op() == "Identity") {
    const Edge* edge = tensor.node->in_data_edge(0);
    const Place &here = places_[tensor.node->id()], &there = places_[edge->src->id()];
    if (here.frame != there.frame) break;
    const Output source(edge->src, edge->src_output);
    if (OutputPath(source) != here.path) break;
    tensor = source;
  }
  return tensor;
}

int ControlFlowAnalysis::ChildTowards(int ancestor, int frame) const {
  while (frame >= 0 && frames_[frame].parent != ancestor) frame = frames_[frame].parent;
  return frame;
}

int ControlFlowAnalysis::CommonFrame(int a, int b) const {
  while (a != b) {
    if (frames_[a].depth >= frames_[b].depth) {
      a = frames_[a].parent;
    } else {
      b = frames_[b].parent;
    }
  }
  return a;
}

const LoopVariable* ControlFlowAnalysis::VariableOf(const Node* node) const {
  auto found = variables_.find(node);
  if (found == variables_.end()) return nullptr;
  return &frames_[found->second.first].variables[found->second.second];
}

absl::Status ControlFlowAnalysis::Check(const Node* node) const {
  auto found = mixed_.find(node);
  if (found == mixed_.end()) return absl::OkStatus();
  const auto [a, b] = found->second;
  return InvalidArgument("node '", node->name(), "' (op ", node->op(), ") ",
                         a == b ? "leaves a loop but is in none" : "has inputs from loop '",
                         a == b ? "" : frames_[a].name, a == b ? "" : "' and from loop '",
                         a == b ? "" : frames_[b].name,
                         a == b ? "" : "', neither of which is in the other");
}

void ControlFlowAnalysis::Visit(Node* node) {
  Place place;
  bool first = true;
  const bool merge = IsMerge(node);
  for (const Edge* edge : node->in_edges()) {
    if (merge && IsNextIteration(edge->src)) continue;
    // Control edges that were added later may come from nodes that were: these say nothing.
    if (edge->src->id() >= node->id()) continue;
    const Place& source = places_[edge->src->id()];
    const Output output(edge->src, std::max(edge->src_output, 0));
    const int path = edge->control() ? source.path : OutputPath(output);
    if (first) {
      place.frame = source.frame;
      place.path = path;
    } else if (source.frame != place.frame) {
      // Constants without inputs may be in the root frame and used in every other.
      const int inner =
          frames_[source.frame].depth > frames_[place.frame].depth ? source.frame : place.frame;
      const int common = CommonFrame(source.frame, place.frame);
      if (common != source.frame && common != place.frame) {
        mixed_[node] = {place.frame, source.frame};
      }
      if (inner == source.frame) place.path = path;
      place.frame = inner;
    } else if (merge && !edge->control()) {
      place.path = Intersection(place.path, path);
    } else {
      place.path = Union(place.path, path);
    }
    first = false;
  }
  place.loop = place.frame;
  if (IsEnter(node)) {
    const std::string name = node->attrs().GetOr<std::string>("frame_name", "");
    auto [found, added] = frame_ids_.try_emplace({place.frame, name}, num_frames());
    if (added) {
      LoopFrame& frame = frames_.emplace_back();
      frame.name = name;
      frame.parent = place.frame;
      frame.depth = frames_[place.frame].depth + 1;
      frame.parallel_iterations = node->attrs().GetOr<int64_t>("parallel_iterations", 10);
    }
    LoopFrame& frame = frames_[found->second];
    frame.path = Union(frame.path, place.path);
    frame.enters.push_back(node);
    place = Place{found->second, found->second, 0};
  } else if (IsExit(node)) {
    if (place.frame == 0) {
      mixed_[node] = {0, 0};
      places_[node->id()] = place;
      return;
    }
    const LoopFrame& frame = frames_[place.frame];
    place = Place{frame.parent, place.frame, frame.path};
  } else if (node->op() == "LoopCond") {
    frames_[place.frame].loop_cond = node;
  } else if (merge && place.frame != 0) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Edge* edge = node->in_data_edge(i);
      if (edge == nullptr || IsNextIteration(edge->src)) {
        merges_.push_back(node);
        place.path = 0;
        break;
      }
    }
  }
  places_[node->id()] = place;
  if (IsSwitch(node)) {
    const Edge* pred = node->in_data_edge(1);
    for (int i = 0; i < node->num_outputs(); ++i) {
      Path path = paths_[place.path];
      const Branch branch{Origin(Output(pred->src, pred->src_output)), i, node->num_outputs()};
      if (std::find(path.begin(), path.end(), branch) != path.end()) continue;
      path.push_back(branch);
      Intern(path);
    }
  }
}

void ControlFlowAnalysis::Update() {
  const std::vector<Node*> nodes = graph_->nodes();
  const size_t begin = places_.size();
  places_.resize(nodes.size());
  for (size_t id = std::max<size_t>(begin, 2); id < nodes.size(); ++id) {
    Visit(nodes[id]);
  }
  FindVariables();
}

void ControlFlowAnalysis::FindVariables() {
  for (Node* merge : merges_) {
    LoopVariable variable;
    variable.merge = merge;
    for (int i = 0; i < merge->num_inputs(); ++i) {
      const Edge* edge = merge->in_data_edge(i);
      if (edge == nullptr) continue;
      if (IsNextIteration(edge->src)) {
        variable.next = edge->src;
        variable.back_input = i;
      } else if (IsEnter(edge->src)) {
        variable.enter = edge->src;
      }
    }
    const int id = FrameOf(merge);
    LoopFrame& frame = frames_[id];
    for (const Edge* edge : merge->out_edges()) {
      if (edge->control() || !IsSwitch(edge->dst) || edge->dst_input != 0) continue;
      if (Origin(edge->dst->input(1)).node == frame.loop_cond) variable.loop_switch = edge->dst;
    }
    if (variable.loop_switch != nullptr) {
      for (const Edge* edge : variable.loop_switch->out_edges()) {
        if (!edge->control() && edge->src_output == 0 && IsExit(edge->dst)) {
          variable.exit = edge->dst;
        }
      }
      if (variable.next != nullptr) {
        const Output passed = Origin(variable.next->input(0));
        variable.invariant =
            passed == Output(variable.loop_switch, 1) || passed == Output(merge, 0);
      }
      variables_[variable.loop_switch] = {id, static_cast<int>(frame.variables.size())};
    }
    variables_[merge] = {id, static_cast<int>(frame.variables.size())};
    frame.variables.push_back(variable);
  }
  merges_.clear();
}

}  // namespace troupe::gradients
