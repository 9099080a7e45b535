#include "graph/passes/partition_nodes.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {
namespace {

void AddEndAttrs(const PartitionNodes::Ends& ends, uint64_t incarnation, NodeSpec* spec) {
  spec->Attr("tensor_name", ends.tensor_name)
      .Attr("send_device", ends.from)
      .Attr("send_device_incarnation", static_cast<int64_t>(incarnation))
      .Attr("recv_device", ends.to);
  if (ends.lossy) spec->Attr("_lossy_16bit", true);
}

}  // namespace

PartitionNodes::PartitionNodes(const PartitionOptions& options)
    : options_(options), graph_(std::make_shared<Graph>()) {}

absl::StatusOr<Node*> PartitionNodes::Source(ElementType type) {
  Node*& source = sources_[type];
  if (source == nullptr) {
    NodeSpec spec("_Arg", StrCat("source_", static_cast<int>(type)));
    spec.Attr("T", type).Attr("index", 0);
    TROUPE_ASSIGN_OR_RETURN(source, graph_->AddNode(spec));
  }
  return source;
}

absl::StatusOr<const Node*> PartitionNodes::Send(const Ends& ends) {
  TROUPE_ASSIGN_OR_RETURN(Node * source, Source(ends.type));
  NodeSpec spec("_Send", graph_->UniqueName(StrCat(ends.node_prefix, "/send")));
  spec.Input(source).Attr("T", ends.type).Device(ends.from);
  AddEndAttrs(ends, options_.incarnation ? options_.incarnation(ends.from) : 0, &spec);
  return graph_->AddNode(spec);
}

absl::StatusOr<const Node*> PartitionNodes::Recv(const Ends& ends) {
  NodeSpec spec("_Recv", graph_->UniqueName(StrCat(ends.node_prefix, "/recv")));
  spec.Attr("tensor_type", ends.type).Device(ends.to);
  AddEndAttrs(ends, options_.incarnation ? options_.incarnation(ends.from) : 0, &spec);
  TROUPE_ASSIGN_OR_RETURN(Node * recv, graph_->AddNode(spec));
  TROUPE_RETURN_IF_ERROR(graph_->RefineShape(recv, ends.shape));
  return recv;
}

absl::StatusOr<const Node*> PartitionNodes::Cast(const Ends& ends, const char* name,
                                                 const std::string& device, ElementType from,
                                                 ElementType to) {
  TROUPE_ASSIGN_OR_RETURN(Node * source, Source(from));
  NodeSpec spec("Cast", graph_->UniqueName(StrCat(ends.node_prefix, name)));
  spec.Input(source).Attr("SrcT", from).Attr("DstT", to).Attr("Truncate", true).Device(device);
  TROUPE_ASSIGN_OR_RETURN(Node * cast, graph_->AddNode(spec));
  TROUPE_RETURN_IF_ERROR(graph_->RefineShape(cast, ends.shape));
  return cast;
}

absl::StatusOr<const Node*> PartitionNodes::Shorten(const Ends& ends) {
  return Cast(ends, "/shorten", ends.from, ElementType::kFloat, ends.type);
}

absl::StatusOr<const Node*> PartitionNodes::Lengthen(const Ends& ends) {
  return Cast(ends, "/lengthen", ends.to, ends.type, ElementType::kFloat);
}

Tensor PartitionNodes::NoElements() { return Tensor::Vector<float>({}); }

absl::StatusOr<const Node*> PartitionNodes::Nothing() {
  if (nothing_ == nullptr) {
    NodeSpec spec("Const", "nothing");
    spec.Attr("value", NoElements()).Attr("dtype", ElementType::kFloat);
    TROUPE_ASSIGN_OR_RETURN(nothing_, graph_->AddNode(spec));
  }
  return nothing_;
}

absl::StatusOr<PartitionNodes::Loop> PartitionNodes::ControlLoop(const FrameInfo& frame) {
  Loop& loop = loops_[frame.name];
  if (loop.next != nullptr) return loop;
  const std::string prefix = StrCat("control_loop_", loops_.size());
  TROUPE_ASSIGN_OR_RETURN(Node * data, Source(ElementType::kFloat));
  TROUPE_ASSIGN_OR_RETURN(Node * pred, Source(ElementType::kBool));
  NodeSpec enter_spec("Enter", StrCat(prefix, "/enter"));
  enter_spec.Input(data)
      .Attr("frame_name", frame.name)
      .Attr("parallel_iterations", int64_t{frame.parallel_iterations});
  TROUPE_ASSIGN_OR_RETURN(Node * enter, graph_->AddNode(enter_spec));
  const Output inputs[] = {enter, Output()};
  NodeSpec merge_spec("Merge", StrCat(prefix, "/merge"));
  merge_spec.Input(absl::MakeConstSpan(inputs));
  TROUPE_ASSIGN_OR_RETURN(Node * merge, graph_->AddNode(merge_spec));
  NodeSpec switch_spec("Switch", StrCat(prefix, "/switch"));
  switch_spec.Input(merge).Input(pred);
  TROUPE_ASSIGN_OR_RETURN(Node * switch_node, graph_->AddNode(switch_spec));
  NodeSpec next_spec("NextIteration", StrCat(prefix, "/next_iteration"));
  next_spec.Input(Output(switch_node, 1));
  TROUPE_ASSIGN_OR_RETURN(Node * next, graph_->AddNode(next_spec));
  TROUPE_RETURN_IF_ERROR(graph_->AddBackEdge(next, merge, 1));
  loop = {enter, merge, switch_node, next};
  return loop;
}

}  // namespace troupe
