// Partition: each partition of a loop gets a control loop, which begins and ends its iterations
// with the others.
#include "graph/passes/partitioner.h"
#include "graph/passes/rewrite.h"

namespace troupe {

absl::Status Partitioner::FindLoops() {
  const size_t num_frames = frames_.frames.size();
  members_.resize(num_frames);
  loop_conds_.assign(num_frames, -1);
  repeats_.assign(num_frames, 0);
  if (num_frames < 2) return absl::OkStatus();
  for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) {
    const int32_t frame = frames_.frame_of[i];
    // Of a reference that enters, the value may be sent from inside.
    if (frames_.enters[i] != 0 && !copied_[i]) members_[frames_.enters[i]].push_back(homes_[i]);
    if (frame == 0) continue;
    members_[frame].insert(members_[frame].end(), places_[i].begin(), places_[i].end());
    if (members_[frame].size() > 1000) SortUnique(&members_[frame]);
    if (Flow(i) == FlowOp::kLoopCond) loop_conds_[frame] = i;
    if (Flow(i) == FlowOp::kNextIteration) repeats_[frame] = 1;
  }
  for (size_t f = num_frames - 1; f > 0; --f) {
    SortUnique(&members_[f]);
    if (members_[f].size() < 2) continue;
    if (loop_conds_[f] < 0 && repeats_[f]) {
      return InvalidArgument("the loop of frame '", frames_.frames[f].name,
                             "' spans devices, among them ", DeviceOf(members_[f][0]), " and ",
                             DeviceOf(members_[f][1]),
                             ", but has no LoopCond to tell them all "
                             "when it ends; place it on one device, or add a LoopCond");
    }
    // The control loop is entered from the one around.
    const int32_t parent = frames_.frames[f].parent;
    if (parent == 0) continue;
    members_[parent].insert(members_[parent].end(), members_[f].begin(), members_[f].end());
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> Partitioner::BeginLoop(int32_t frame, int32_t q) {
  auto found = loops_.find({frame, q});
  if (found != loops_.end()) return found->second.merge;
  const FrameInfo& info = frames_.frames[frame];
  SubOutput data;
  if (info.parent == 0) {
    TROUPE_ASSIGN_OR_RETURN(data.node, Nothing(q));
  } else {
    TROUPE_ASSIGN_OR_RETURN(data.node, BeginLoop(info.parent, q));
  }
  TROUPE_ASSIGN_OR_RETURN(const PartitionNodes::Loop loop, added_.ControlLoop(info));
  const int32_t enter = Add(q, loop.enter, {data});
  const int32_t cond = loop_conds_[frame];
  if (cond < 0) {  // There is one iteration, which begins with what enters.
    loops_[{frame, q}] = {enter, true};
    return enter;
  }
  const int32_t merge = Add(q, loop.merge, {{enter, 0}, {-1, 0}});
  loops_[{frame, q}].merge = merge;
  // What comes before the condition may need the loop, and what comes after.
  if (at_[cond] >= 0) TROUPE_RETURN_IF_ERROR(CompleteLoop(frame, q));
  return merge;
}

absl::Status Partitioner::CompleteLoop(int32_t frame, int32_t q) {
  ControlLoop& loop = loops_[{frame, q}];
  if (loop.complete) return absl::OkStatus();
  loop.complete = true;
  const int32_t merge = loop.merge;
  const int32_t cond = loop_conds_[frame];
  SubOutput pred;
  if (homes_[cond] == q) {
    pred = {at_[cond], 0};
  } else {
    TROUPE_ASSIGN_OR_RETURN(pred.node, Receive(cond, 0, q, {}));
  }
  TROUPE_ASSIGN_OR_RETURN(const PartitionNodes::Loop nodes,
                          added_.ControlLoop(frames_.frames[frame]));
  const int32_t at = Add(q, nodes.switch_node, {{merge, 0}, pred});
  const int32_t next = Add(q, nodes.next, {{at, 1}});
  NodesOf(q)[merge].inputs[1].node = next;
  return absl::OkStatus();
}

absl::Status Partitioner::EndLoops() {
  std::vector<char> goes_on(frames_.frames.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int32_t frame = frames_.frame_of[i];
    if (frame == 0 || Flow(static_cast<int32_t>(i)) != FlowOp::kNextIteration) continue;
    if (loop_conds_[frame] >= 0 && homes_[i] == homes_[loop_conds_[frame]]) goes_on[frame] = 1;
  }
  for (int32_t f = static_cast<int32_t>(frames_.frames.size()) - 1; f > 0; --f) {
    if (members_[f].size() < 2 || goes_on[f] || loop_conds_[f] < 0) continue;
    TROUPE_RETURN_IF_ERROR(BeginLoop(f, homes_[loop_conds_[f]]).status());
  }
  return absl::OkStatus();
}

int32_t Partitioner::OutputFrame(int32_t i) const {
  const int32_t frame = frames_.frame_of[i];
  switch (Flow(i)) {
    case FlowOp::kEnter:
    case FlowOp::kConstantEnter:
      return frames_.enters[i];
    case FlowOp::kExit:
      return frames_.frames[frame].parent;
    default:
      return frame;
  }
}

}  // namespace troupe
