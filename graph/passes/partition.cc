#include "graph/passes/partition.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "devices/device_name.h"
#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/partition_nodes.h"
#include "graph/passes/partition_reads.h"
#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

constexpr int32_t kControl = -1;  // The port of a control edge.

class Partitioner {
 public:
  Partitioner(Subgraph subgraph, const PartitionOptions& options)
      : subgraph_(std::move(subgraph)),
        nodes_(subgraph_.nodes),
        options_(options),
        added_(options) {}

  absl::StatusOr<PartitionedGraph> Run() {
    TROUPE_RETURN_IF_ERROR(FindHomes());
    if (result_.partitions.size() <= 1) {
      if (!result_.partitions.empty()) Whole();
      return std::move(result_);
    }
    TROUPE_ASSIGN_OR_RETURN(frames_, FindFrames(subgraph_));
    if (frames_.has_control_flow) TROUPE_RETURN_IF_ERROR(KeepBackEdges());
    copied_.assign(nodes_.size(), 0);
    for (size_t i = 0; i < nodes_.size(); ++i) copied_[i] = IsCopied(static_cast<int32_t>(i));
    read_order_ = FindReadOrder(subgraph_, homes_, copied_);
    FindPlaces();
    TROUPE_RETURN_IF_ERROR(FindLoops());
    at_.assign(nodes_.size(), -1);
    nothing_.assign(result_.partitions.size(), -1);
    for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) {
      TROUPE_RETURN_IF_ERROR(EmitEverywhere(i));
    }
    TROUPE_RETURN_IF_ERROR(EndLoops());
    for (const BackEdge& edge : back_edges_) {
      NodesOf(edge.partition)[edge.node].inputs[edge.input].node = At(edge.from, edge.partition);
    }
    EmitEnds();
    DropEmpty();
    result_.added = added_.graph();
    return std::move(result_);
  }

 private:
  struct BackEdge {
    int32_t partition, node, input, from;
  };
  /// The control loop of a frame in a partition.
  struct ControlLoop {
    int32_t merge = -1;
    bool complete = false;
  };
  using TransferKey = std::tuple<int32_t, int32_t, int32_t, std::vector<int32_t>>;

  std::vector<SubNode>& NodesOf(int32_t partition) {
    return result_.partitions[partition].subgraph.nodes;
  }
  const std::string& DeviceOf(int32_t partition) const {
    return result_.partitions[partition].device;
  }
  std::string Describe(int32_t i) const {
    return StrCat("node '", nodes_[i].original->name(), "' (op ", nodes_[i].original->op(), ")");
  }

  // --- who is where
  // --------------------------------------------------------------------------------

  absl::Status FindHomes() {
    std::unordered_map<std::string, int32_t> partitions;
    homes_.reserve(nodes_.size());
    for (const SubNode& node : nodes_) {
      if (node.device.empty()) {
        return InvalidArgument("node '", node.original->name(), "' (op ", node.original->op(),
                               ") has no device: partition what has been placed");
      }
      if (!homes_.empty() && node.device == DeviceOf(homes_.back())) {
        homes_.push_back(homes_.back());
        continue;
      }
      auto [it, first] =
          partitions.emplace(node.device, static_cast<int32_t>(result_.partitions.size()));
      if (first) {
        result_.partitions.emplace_back();
        result_.partitions.back().device = node.device;
      }
      homes_.push_back(it->second);
    }
    return absl::OkStatus();
  }

  void Whole() {
    DevicePartition& only = result_.partitions.front();
    only.subgraph = std::move(subgraph_);
    for (size_t i = 0; i < only.subgraph.feeds.size(); ++i) {
      only.feeds.push_back(static_cast<int32_t>(i));
      result_.feeds.push_back({{0, static_cast<int32_t>(i)}});
    }
    for (size_t i = 0; i < only.subgraph.fetches.size(); ++i) {
      only.fetches.push_back(static_cast<int32_t>(i));
      result_.fetches.push_back({0, static_cast<int32_t>(i)});
    }
  }

  FlowOp Flow(int32_t i) const {
    return nodes_[i].kind == SubNode::Kind::kOp ? FlowOpOf(*nodes_[i].original) : FlowOp::kNone;
  }

  /// A value for the next iteration would have no partner in the first one: a back edge must not
  /// cross, so NextIteration goes with its Merge.
  absl::Status KeepBackEdges() {
    std::unordered_map<int32_t, int32_t> moved;
    for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) {
      for (const SubOutput& input : nodes_[i].inputs) {
        if (input.node < i) continue;
        auto [it, first] = moved.emplace(input.node, homes_[i]);
        if (!first && it->second != homes_[i]) {
          return InvalidArgument(Describe(input.node), " goes back to Merges on two devices, ",
                                 DeviceOf(it->second), " and ", DeviceOf(homes_[i]));
        }
        homes_[input.node] = homes_[i];
      }
    }
    return absl::OkStatus();
  }

  /// True for nodes that are copied to where they are needed instead of being sent.
  bool IsCopied(int32_t i) const {
    const SubNode& node = nodes_[i];
    switch (node.kind) {
      case SubNode::Kind::kFeed:
        return true;
      case SubNode::Kind::kConstant:
        return node.control_inputs.empty();
      case SubNode::Kind::kOp:
        break;
    }
    if (node.original->op() == "Const") return node.control_inputs.empty();
    const FlowOp flow = FlowOpOf(*node.original);
    if (flow != FlowOp::kEnter && flow != FlowOp::kConstantEnter) return false;
    const ElementType type = node.original->input_type(0);
    return !IsRefType(type) && type != ElementType::kResource;
  }

  void FindPlaces() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    places_.resize(n);
    auto need = [&](int32_t i, const std::vector<int32_t>& where) {
      if (!copied_[i]) return;
      places_[i].insert(places_[i].end(), where.begin(), where.end());
    };
    for (const SubOutput& fetch : subgraph_.fetches) need(fetch.node, {homes_[fetch.node]});
    for (int32_t target : subgraph_.targets) need(target, {homes_[target]});
    for (const auto& [input, waits] : read_order_) {
      const int32_t from = nodes_[input.first].inputs[input.second].node;
      for (int32_t wait : waits) need(wait, {homes_[from]});
    }
    // Consumers before producers: a copied Enter needs its input wherever it is copied to.
    for (int32_t i = n - 1; i >= 0; --i) {
      if (!copied_[i]) {
        places_[i] = {homes_[i]};
      } else {
        SortUnique(&places_[i]);
      }
      for (const SubOutput& input : nodes_[i].inputs) need(input.node, places_[i]);
      for (int32_t control : nodes_[i].control_inputs) need(control, places_[i]);
    }
  }

  // --- loops
  // ---------------------------------------------------------------------------------------

  /// Which partitions take part in each loop.
  absl::Status FindLoops() {
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

  /// The node that begins each iteration of a frame in a partition: the Merge of its control loop.
  absl::StatusOr<int32_t> BeginLoop(int32_t frame, int32_t q) {
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

  absl::Status CompleteLoop(int32_t frame, int32_t q) {
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

  /// Where the condition itself is computed a control loop is needed only for Recvs and inner
  /// loops, which have asked for it, or if nothing else there would begin an iteration.
  absl::Status EndLoops() {
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

  /// The frame in which the outputs of a node are.
  int32_t OutputFrame(int32_t i) const {
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

  // --- nodes
  // ---------------------------------------------------------------------------------------

  int32_t Add(int32_t q, const Node* original, std::vector<SubOutput> inputs,
              std::vector<int32_t> control_inputs = {}) {
    SubNode& node = NodesOf(q).emplace_back();
    node.original = original;
    node.inputs = std::move(inputs);
    node.control_inputs = std::move(control_inputs);
    node.device = DeviceOf(q);
    return static_cast<int32_t>(NodesOf(q).size()) - 1;
  }

  /// A constant without elements in a partition.
  absl::StatusOr<int32_t> Nothing(int32_t q) {
    if (nothing_[q] < 0) {
      TROUPE_ASSIGN_OR_RETURN(const Node* original, added_.Nothing());
      nothing_[q] = Add(q, original, {});
      SubNode& node = NodesOf(q).back();
      node.kind = SubNode::Kind::kConstant;
      node.values = {PartitionNodes::NoElements()};
    }
    return nothing_[q];
  }

  /// Node i in a partition; -1 if it is not there (yet).
  int32_t At(int32_t i, int32_t q) const {
    if (!copied_[i]) return homes_[i] == q ? at_[i] : -1;
    auto found = copies_.find({i, q});
    return found == copies_.end() ? -1 : found->second;
  }

  absl::Status EmitEverywhere(int32_t i) {
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

  absl::Status Emit(int32_t i, int32_t q) {
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

  absl::Status CheckCrosses(int32_t i, int k) const {
    const SubOutput input = nodes_[i].inputs[k];
    const ElementType type = nodes_[i].original->input_type(k);
    if (!IsRefType(type) && type != ElementType::kResource) return CheckEnter(input.node);
    return InvalidArgument(Describe(i), " on ", DeviceOf(homes_[i]), " takes a ",
                           IsRefType(type) ? "reference" : "resource", " from ",
                           Describe(input.node), " on ", DeviceOf(homes_[input.node]),
                           "; they must be on one device");
  }

  /// What enters the first iteration only would have a partner waiting in all the others.
  absl::Status CheckEnter(int32_t i) const {
    if (Flow(i) != FlowOp::kEnter) return absl::OkStatus();
    return InvalidArgument(Describe(i), " on ", DeviceOf(homes_[i]),
                           " passes a reference or resource into a loop, but has consumers on "
                           "other devices; they must be on one device");
  }

  /// What to wait for in partition q instead of node i.
  absl::StatusOr<int32_t> Order(int32_t i, int32_t q) {
    const int32_t local = At(i, q);
    if (local >= 0) return local;
    TROUPE_RETURN_IF_ERROR(CheckEnter(i));
    return Receive(i, kControl, q, {});
  }

  // --- transfers
  // -----------------------------------------------------------------------------------

  /// The Recv in partition q of an output of node i, sent once the nodes `waits` have finished.
  absl::StatusOr<int32_t> Receive(int32_t i, int32_t port, int32_t q, std::vector<int32_t> waits) {
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

  PartitionNodes::Ends EndsOf(int32_t i, int32_t port, int32_t p, int32_t q) const {
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

  static bool BetweenTasks(const std::string& from, const std::string& to) {
    const absl::StatusOr<DeviceName> a = DeviceName::Parse(from), b = DeviceName::Parse(to);
    return a.ok() && b.ok() && (a->job != b->job || a->replica != b->replica || a->task != b->task);
  }

  // --- ends
  // ----------------------------------------------------------------------------------------

  void EmitEnds() {
    for (size_t f = 0; f < subgraph_.feeds.size(); ++f) {
      std::vector<PartitionPlace>& places = result_.feeds.emplace_back();
      for (int32_t q : places_[subgraph_.feeds[f]]) {
        DevicePartition& partition = result_.partitions[q];
        places.push_back({q, static_cast<int32_t>(partition.subgraph.feeds.size())});
        partition.subgraph.feeds.push_back(At(subgraph_.feeds[f], q));
        partition.feeds.push_back(static_cast<int32_t>(f));
      }
    }
    for (size_t f = 0; f < subgraph_.fetches.size(); ++f) {
      const SubOutput fetch = subgraph_.fetches[f];
      const int32_t q = homes_[fetch.node];
      DevicePartition& partition = result_.partitions[q];
      result_.fetches.push_back({q, static_cast<int32_t>(partition.subgraph.fetches.size())});
      partition.subgraph.fetches.push_back({At(fetch.node, q), fetch.port});
      partition.fetches.push_back(static_cast<int32_t>(f));
    }
    for (int32_t target : subgraph_.targets) {
      const int32_t q = homes_[target];
      result_.partitions[q].subgraph.targets.push_back(At(target, q));
    }
  }

  /// A device whose constants are all needed elsewhere has nothing to do.
  void DropEmpty() {
    std::vector<int32_t> number(result_.partitions.size(), -1);
    int32_t kept = 0;
    for (size_t p = 0; p < result_.partitions.size(); ++p) {
      if (result_.partitions[p].subgraph.nodes.empty()) continue;
      if (kept != static_cast<int32_t>(p)) {
        result_.partitions[kept] = std::move(result_.partitions[p]);
      }
      number[p] = kept++;
    }
    if (kept == static_cast<int32_t>(number.size())) return;
    result_.partitions.resize(kept);
    for (auto& places : result_.feeds) {
      for (PartitionPlace& place : places) place.partition = number[place.partition];
    }
    for (PartitionPlace& place : result_.fetches) place.partition = number[place.partition];
    for (Transfer& transfer : result_.transfers) {
      transfer.from = number[transfer.from];
      transfer.to = number[transfer.to];
    }
  }

  Subgraph subgraph_;
  std::vector<SubNode>& nodes_;
  const PartitionOptions& options_;
  PartitionNodes added_;
  PartitionedGraph result_;
  std::vector<int32_t> homes_;  // Per node: its partition.
  Frames frames_;
  std::map<SubInput, std::vector<int32_t>> read_order_;
  std::vector<char> copied_;
  std::vector<std::vector<int32_t>> places_;   // Per node: the partitions that have it.
  std::vector<std::vector<int32_t>> members_;  // Per frame: the partitions that take part.
  std::vector<int32_t> loop_conds_;            // Per frame; -1: none.
  std::vector<char> repeats_;                  // Per frame: it has a NextIteration.
  std::vector<int32_t> at_;                    // Per node: where it is in its home; -1: not yet.
  std::map<std::pair<int32_t, int32_t>, int32_t> copies_;
  std::map<std::pair<int32_t, int32_t>, ControlLoop> loops_;  // By frame and partition.
  std::map<TransferKey, int32_t> recvs_;
  std::vector<int32_t> nothing_;  // Per partition.
  std::vector<BackEdge> back_edges_;
};

}  // namespace

absl::StatusOr<PartitionedGraph> Partition(Subgraph subgraph, const PartitionOptions& options) {
  return Partitioner(std::move(subgraph), options).Run();
}

}  // namespace troupe
