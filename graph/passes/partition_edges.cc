// Partition: nodes with their edges; those that cross become transfers.
#include "devices/device_name.h"
#include "graph/passes/partitioner.h"
#include "graph/passes/rewrite.h"

namespace troupe {

namespace {

constexpr int32_t kControl = -1;  // The port of a control edge.

bool BetweenTasks(const std::string& from, const std::string& to) {
  const absl::StatusOr<DeviceName> a = DeviceName::Parse(from), b = DeviceName::Parse(to);
  return a.ok() && b.ok() && (a->job != b->job || a->replica != b->replica || a->task != b->task);
}

}  // namespace

int32_t Partitioner::Add(int32_t q, const Node* original, std::vector<SubOutput> inputs,
                         std::vector<int32_t> control_inputs) {
  SubNode& node = NodesOf(q).emplace_back();
  node.original = original;
  node.inputs = std::move(inputs);
  node.control_inputs = std::move(control_inputs);
  node.device = DeviceOf(q);
  return static_cast<int32_t>(NodesOf(q).size()) - 1;
}

absl::StatusOr<int32_t> Partitioner::Nothing(int32_t q) {
  if (nothing_[q] < 0) {
    TROUPE_ASSIGN_OR_RETURN(const Node* original, added_.Nothing());
    nothing_[q] = Add(q, original, {});
    SubNode& node = NodesOf(q).back();
    node.kind = SubNode::Kind::kConstant;
    node.values = {PartitionNodes::NoElements()};
  }
  return nothing_[q];
}

int32_t Partitioner::At(int32_t i, int32_t q) const {
  if (!copied_[i]) return homes_[i] == q ? at_[i] : -1;
  auto found = copies_.find({i, q});
  return found == copies_.end() ? -1 : found->second;
}

absl::Status Partitioner::EmitEverywhere(int32_t i) {
  for (int32_t q : places_[i]) TROUPE_RETURN_IF_ERROR(Emit(i, q));
  if (frames_.frame_of[i] == 0 || Flow(i) != FlowOp::kLoopCond) return absl::OkStatus();
  const int32_t frame = frames_.frame_of[i];
  if (loop_conds_[frame] != i || members_[frame].size() < 2) return absl::OkStatus();
  for (int32_t q : members_[frame]) {
    if (q == homes_[i] && loops_.find({frame, q}) == loops_.end()) continue;
    TROUPE_RETURN_IF_ERROR(BeginLoop(frame, q).status());
    TROUPE_RETURN_IF_ERROR(CompleteLoop(frame, q));
  }
  return absl::OkStatus();
}

absl::Status Partitioner::Emit(int32_t i, int32_t q) {
  const SubNode& from = nodes_[i];
  std::vector<SubOutput> inputs;
  inputs.reserve(from.inputs.size());
  std::vector<int32_t> back;
  for (size_t k = 0; k < from.inputs.size(); ++k) {
    const SubOutput& input = from.inputs[k];
    if (input.node > i) {
      back.push_back(static_cast<int32_t>(k));
      inputs.push_back(input);
      continue;
    }
    const int32_t local = At(input.node, q);
    if (local >= 0) {
      inputs.push_back({local, input.port});
      continue;
    }
    TROUPE_RETURN_IF_ERROR(CheckCrosses(i, static_cast<int>(k)));
    const auto waits = read_order_.find({i, static_cast<int32_t>(k)});
    TROUPE_ASSIGN_OR_RETURN(
        const int32_t recv,
        Receive(input.node, input.port, q,
                waits == read_order_.end() ? std::vector<int32_t>() : waits->second));
    inputs.push_back({recv, 0});
  }
  std::vector<int32_t> controls;
  controls.reserve(from.control_inputs.size());
  for (int32_t control : from.control_inputs) {
    TROUPE_ASSIGN_OR_RETURN(const int32_t local, Order(control, q));
    controls.push_back(local);
  }
  SortUnique(&controls);
  const int32_t at = Add(q, from.original, std::move(inputs), std::move(controls));
  SubNode& to = NodesOf(q)[at];
  to.kind = from.kind;
  to.fed_port = from.fed_port;
  to.values = from.values;
  for (int32_t k : back) back_edges_.push_back({q, at, k, from.inputs[k].node});
  if (copied_[i]) {
    copies_[{i, q}] = at;
  } else {
    at_[i] = at;
  }
  return absl::OkStatus();
}

absl::Status Partitioner::CheckCrosses(int32_t i, int k) const {
  const SubOutput input = nodes_[i].inputs[k];
  const ElementType type = nodes_[i].original->input_type(k);
  if (!IsRefType(type) && type != ElementType::kResource) return CheckEnter(input.node);
  return InvalidArgument(Describe(i), " on ", DeviceOf(homes_[i]), " takes a ",
                         IsRefType(type) ? "reference" : "resource", " from ", Describe(input.node),
                         " on ", DeviceOf(homes_[input.node]), "; they must be on one device");
}

absl::Status Partitioner::CheckEnter(int32_t i) const {
  if (Flow(i) != FlowOp::kEnter) return absl::OkStatus();
  return InvalidArgument(Describe(i), " on ", DeviceOf(homes_[i]),
                         " passes a reference or resource into a loop, but has consumers on "
                         "other devices; they must be on one device");
}

absl::StatusOr<int32_t> Partitioner::Order(int32_t i, int32_t q) {
  const int32_t local = At(i, q);
  if (local >= 0) return local;
  TROUPE_RETURN_IF_ERROR(CheckEnter(i));
  return Receive(i, kControl, q, {});
}

absl::StatusOr<int32_t> Partitioner::Receive(int32_t i, int32_t port, int32_t q,
                                             std::vector<int32_t> waits) {
  TransferKey key(i, port, q, std::move(waits));
  auto found = recvs_.find(key);
  if (found != recvs_.end()) return found->second;
  std::vector<int32_t> recv_controls;
  const int32_t frame = OutputFrame(i);
  if (frame != 0) {
    TROUPE_ASSIGN_OR_RETURN(const int32_t merge, BeginLoop(frame, q));
    recv_controls.push_back(merge);
    found = recvs_.find(key);  // Of a condition: to complete the loop it was received.
    if (found != recvs_.end()) return found->second;
  }
  const int32_t p = homes_[i];
  std::vector<int32_t> send_controls;
  for (int32_t wait : std::get<3>(key)) {
    TROUPE_ASSIGN_OR_RETURN(const int32_t local, Order(wait, p));
    send_controls.push_back(local);
  }
  SubOutput value{at_[i], port};
  if (port == kControl) {
    send_controls.push_back(at_[i]);
    TROUPE_ASSIGN_OR_RETURN(const int32_t nothing, Nothing(p));
    value = {nothing, 0};
  }
  SortUnique(&send_controls);

  PartitionNodes::Ends ends = EndsOf(i, port, p, q);
  if (ends.lossy) {  // What is read is read by the Cast: so it waits for what precedes the read.
    TROUPE_ASSIGN_OR_RETURN(const Node* shorten, added_.Shorten(ends));
    value = {Add(p, shorten, {value}, std::move(send_controls)), 0};
    send_controls.clear();
  }
  TROUPE_ASSIGN_OR_RETURN(const Node* send, added_.Send(ends));
  TROUPE_ASSIGN_OR_RETURN(const Node* recv, added_.Recv(ends));
  Transfer& transfer = result_.transfers.emplace_back();
  transfer.name = ends.tensor_name;
  transfer.control = port == kControl;
  transfer.lossy = ends.lossy;
  transfer.from = p;
  transfer.send = Add(p, send, {value}, std::move(send_controls));
  transfer.to = q;
  transfer.recv = Add(q, recv, {}, std::move(recv_controls));
  int32_t received = transfer.recv;
  if (transfer.lossy) {
    TROUPE_ASSIGN_OR_RETURN(const Node* lengthen, added_.Lengthen(ends));
    received = Add(q, lengthen, {{received, 0}}, {});
  }
  recvs_.emplace(std::move(key), received);
  return received;
}

PartitionNodes::Ends Partitioner::EndsOf(int32_t i, int32_t port, int32_t p, int32_t q) const {
  const Node& original = *nodes_[i].original;
  PartitionNodes::Ends ends;
  ends.node_prefix = original.name();
  ends.from = DeviceOf(p);
  ends.to = DeviceOf(q);
  const std::string number = StrCat("edge_", result_.transfers.size(), "_");
  if (port == kControl) {
    ends.tensor_name = StrCat(number, "^", original.name());
    ends.type = ElementType::kFloat;
    ends.shape = PartialShape({0});
    return ends;
  }
  ends.tensor_name = StrCat(number, original.name(), ":", port);
  ends.type = RemoveRef(nodes_[i].output_type(port));
  ends.shape = original.output_shape(port);
  ends.lossy =
      ends.type == ElementType::kFloat && BetweenTasks(ends.from, ends.to) &&
      (options_.lossy_between_tasks || original.attrs().GetOr<bool>("_lossy_16bit", false));
  if (ends.lossy) ends.type = ElementType::kBfloat16;
  return ends;
}

}  // namespace troupe
