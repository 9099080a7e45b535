/// Which loop frame each node of a subgraph runs in.
#ifndef TROUPE_GRAPH_PASSES_FRAMES_H_
#define TROUPE_GRAPH_PASSES_FRAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/passes/subgraph.h"

namespace troupe {

class NodeDef;

/// What a node does to control flow; the reference forms are like the others.
enum class FlowOp : uint8_t {
  kNone,
  kSwitch,
  kMerge,
  kEnter,
  kConstantEnter,  ///< Enter with `is_constant`: a loop invariant.
  kExit,
  kNextIteration,
  kLoopCond,
  kControlTrigger,
  kSend,  ///< In a partition: to, and
  kRecv,  ///< from another one. Never said by `FlowOpOf`.
};
FlowOp FlowOpOf(const Node& node);
FlowOp FlowOpOf(const SubNode& node);  ///< kNone for feeds and constants.

/// The name of the frame that an Enter leads to, to be changed; nullptr: `node` has none.
std::string* FrameName(NodeDef* node);

/// A loop, as it stands in the graph.
struct FrameInfo {
  std::string name;  ///< The `frame_name` of its Enters; "" for the root.
  int32_t parent = -1;
  int32_t parallel_iterations = 1;
  int32_t num_enters = 0;
};

struct Frames {
  std::vector<FrameInfo> frames;  ///< 0 is the root; a parent stands before its children.
  std::vector<int32_t>
      frame_of;  ///< Per node: where it runs (Enter: around its loop; Exit: in it).

  std::vector<int32_t> enters;    ///< Per node: the frame that an Enter leads into, 0 for others.
  bool has_control_flow = false;  ///< False: no node is of control flow, all are in the root.
};

/// Finds the frames. Constants (kConstant) without control inputs belong to every frame; they are
/// said to be in the root. InvalidArgument names the node and the frames: inputs from different
/// frames, an Exit or NextIteration outside every loop, one frame name within two parents, a frame
/// with two LoopConds, a back edge from another frame, a fetch or feed inside a loop.
absl::StatusOr<Frames> FindFrames(const Subgraph& subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_FRAMES_H_
