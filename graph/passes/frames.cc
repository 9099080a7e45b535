#include "graph/passes/frames.h"

#include <map>
#include <utility>

#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

constexpr int32_t kUnknownFrame = -1;

class FrameFinder {
 public:
  explicit FrameFinder(const Subgraph& subgraph) : nodes_(subgraph.nodes), subgraph_(subgraph) {}

  absl::StatusOr<Frames> Run() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    flow_.resize(n, FlowOp::kNone);
    for (int32_t i = 0; i < n; ++i) {
      flow_[i] = FlowOpOf(nodes_[i]);
      result_.has_control_flow |= flow_[i] != FlowOp::kNone;
    }
    result_.frames.push_back(FrameInfo());
    result_.enters.assign(n, 0);
    result_.frame_of.assign(n, result_.has_control_flow ? kUnknownFrame : 0);
    if (!result_.has_control_flow) return std::move(result_);
    // Producers stand before consumers, but for back edges.
    for (int32_t i = 0; i < n; ++i) TROUPE_RETURN_IF_ERROR(PlaceNode(i));
    TROUPE_RETURN_IF_ERROR(CheckBackEdges());
    TROUPE_RETURN_IF_ERROR(CheckEnds());
    return std::move(result_);
  }

 private:
  bool IsWildConstant(int32_t node) const {
    return nodes_[node].kind == SubNode::Kind::kConstant && nodes_[node].control_inputs.empty();
  }
  const std::string& Name(int32_t node) const { return nodes_[node].original->name(); }
  std::string Place(int32_t frame) const {
    if (frame == 0) return "outside every loop";
    return StrCat("in frame '", result_.frames[frame].name, "'");
  }
  std::string Describe(int32_t node) const {
    return StrCat("node '", Name(node), "' (op ", nodes_[node].original->op(), ")");
  }

  absl::Status PlaceNode(int32_t i) {
    const SubNode& node = nodes_[i];
    int32_t frame = kUnknownFrame, because = -1;
    auto meet = [&](int32_t source) -> absl::Status {
      if (IsWildConstant(source)) return absl::OkStatus();
      if (result_.frame_of[source] == kUnknownFrame) return absl::OkStatus();  // A back edge.
      TROUPE_ASSIGN_OR_RETURN(const int32_t from, OutputFrame(source));
      if (frame == kUnknownFrame) {
        frame = from;
        because = source;
        return absl::OkStatus();
      }
      if (from == frame) return absl::OkStatus();
      return InvalidArgument(Describe(i), " has inputs from different frames: ", Name(because),
                             " is ", Place(frame), ", ", Name(source), " ", Place(from),
                             "; values go into a loop by Enter and out of it by Exit");
    };
    for (const SubOutput& input : node.inputs) TROUPE_RETURN_IF_ERROR(meet(input.node));
    for (int32_t control : node.control_inputs) TROUPE_RETURN_IF_ERROR(meet(control));
    if (frame == kUnknownFrame) frame = 0;
    result_.frame_of[i] = frame;
    if (frame == 0 && (flow_[i] == FlowOp::kExit || flow_[i] == FlowOp::kNextIteration)) {
      return InvalidArgument(Describe(i), " is outside every loop: no Enter leads to it");
    }
    if (flow_[i] == FlowOp::kLoopCond) {
      auto [it, first] = loop_conds_.emplace(frame, i);
      if (!first && frame != 0) {
        return InvalidArgument("the loop of frame '", result_.frames[frame].name,
                               "' has two conditions: ", Name(it->second), " and ", Name(i));
      }
    }
    if (flow_[i] == FlowOp::kEnter || flow_[i] == FlowOp::kConstantEnter) return AddEnter(i, frame);
    return absl::OkStatus();
  }

  absl::Status AddEnter(int32_t i, int32_t parent) {
    const AttrReader attrs = nodes_[i].original->attrs();
    TROUPE_ASSIGN_OR_RETURN(const std::string name, attrs.Get<std::string>("frame_name"));
    TROUPE_ASSIGN_OR_RETURN(const int64_t parallel, attrs.Get<int64_t>("parallel_iterations"));
    if (parallel < 1 || parallel > INT32_MAX) {
      return InvalidArgument(Describe(i), " of frame '", name, "' has parallel_iterations ",
                             parallel, ", expected a number from 1 on");
    }
    auto [it, first] = by_name_.emplace(name, static_cast<int32_t>(result_.frames.size()));
    if (first) {
      result_.frames.push_back({name, parent, static_cast<int32_t>(parallel), 0});
    } else if (result_.frames[it->second].parent != parent) {
      return InvalidArgument(Describe(i), " enters frame '", name, "' from ", Place(parent),
                             ", but another Enter does so from ",
                             Place(result_.frames[it->second].parent),
                             "; each loop needs a frame name of its own");
    }
    ++result_.frames[it->second].num_enters;
    result_.enters[i] = it->second;
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> OutputFrame(int32_t node) const {
    const int32_t frame = result_.frame_of[node];
    switch (flow_[node]) {
      case FlowOp::kEnter:
      case FlowOp::kConstantEnter:
        return result_.enters[node];
      case FlowOp::kExit:
        return result_.frames[frame].parent;
      default:
        return frame;
    }
  }

  absl::Status CheckBackEdges() const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const SubOutput& input : nodes_[i].inputs) {
        if (input.node < static_cast<int32_t>(i)) continue;
        const int32_t here = result_.frame_of[i], there = result_.frame_of[input.node];
        if (here == there && here != 0) continue;
        return InvalidArgument(Describe(static_cast<int32_t>(i)), " is ", Place(here),
                               ", but its back edge comes from ", Name(input.node), ", which is ",
                               Place(there));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckEnds() const {
    for (const SubOutput& fetch : subgraph_.fetches) {
      if (IsWildConstant(fetch.node)) continue;
      TROUPE_ASSIGN_OR_RETURN(const int32_t frame, OutputFrame(fetch.node));
      if (frame == 0) continue;
      return InvalidArgument("cannot fetch ", Name(fetch.node), ":", fetch.port, ": it is ",
                             Place(frame),
                             ", where it has a value per iteration; fetch the loop's "
                             "Exit, or collect the values in a TensorArray");
    }
    return absl::OkStatus();
  }

  const std::vector<SubNode>& nodes_;
  const Subgraph& subgraph_;
  std::vector<FlowOp> flow_;
  std::map<std::string, int32_t> by_name_;
  std::map<int32_t, int32_t> loop_conds_;  // Frame to its LoopCond.
  Frames result_;
};

}  // namespace

FlowOp FlowOpOf(const Node& node) {
  std::string_view op = node.op();
  if (op.substr(0, 3) == "Ref") op.remove_prefix(3);
  if (op == "Switch") return FlowOp::kSwitch;
  if (op == "Merge") return FlowOp::kMerge;
  if (op == "Enter") {
    return node.attrs().GetOr<bool>("is_constant", false) ? FlowOp::kConstantEnter : FlowOp::kEnter;
  }
  if (op == "Exit") return FlowOp::kExit;
  if (op == "NextIteration") return FlowOp::kNextIteration;
  if (op == "LoopCond") return FlowOp::kLoopCond;
  if (op == "ControlTrigger") return FlowOp::kControlTrigger;
  return FlowOp::kNone;
}

std::string* FrameName(NodeDef* node) {
  if (node->op() != "Enter" && node->op() != "RefEnter") return nullptr;
  const auto name = node->mutable_attr()->find("frame_name");
  const bool is_there =
      name != node->mutable_attr()->end() && name->second.value_case() == AttrValue::kS;
  return is_there ? name->second.mutable_s() : nullptr;
}

absl::StatusOr<Frames> FindFrames(const Subgraph& subgraph) { return FrameFinder(subgraph).Run(); }

FlowOp FlowOpOf(const SubNode& node) {
  return node.kind == SubNode::Kind::kOp ? FlowOpOf(*node.original) : FlowOp::kNone;
}

}  // namespace troupe
