#include "graph/passes/partition.h"

#include <unordered_map>
#include <utility>

#include "graph/passes/partitioner.h"
#include "graph/passes/rewrite.h"

namespace troupe {

absl::StatusOr<PartitionedGraph> Partitioner::Run() {
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

absl::Status Partitioner::FindHomes() {
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

void Partitioner::Whole() {
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

absl::Status Partitioner::KeepBackEdges() {
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

bool Partitioner::IsCopied(int32_t i) const {
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

void Partitioner::FindPlaces() {
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

void Partitioner::EmitEnds() {
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

void Partitioner::DropEmpty() {
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

absl::StatusOr<PartitionedGraph> Partition(Subgraph subgraph, const PartitionOptions& options) {
  return Partitioner(std::move(subgraph), options).Run();
}

}  // namespace troupe
