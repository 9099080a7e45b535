#include "actors/session/memory_spaces.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/data/copy_kernels.h"
#include "kernels/data/element_memory.h"

namespace troupe {

namespace {

constexpr MemorySpace kHost = MemorySpace::kHost;
constexpr MemorySpace kDevice = MemorySpace::kDevice;

class SpaceMaker {
 public:
  SpaceMaker(Device* device, PlanSpec* spec)
      : device_(device), spec_(*spec), num_nodes_(static_cast<int>(spec->nodes.size())) {}

  absl::Status Make() {
    ChooseForMoves();
    for (int i = 0; i < num_nodes_; ++i) {
      for (size_t k = 0; k < spec_.nodes[i].inputs.size(); ++k) {
        const PlanSpec::Input input = spec_.nodes[i].inputs[k];
        const MemorySpace wanted = Wanted(i, static_cast<int>(k));
        if (input.reference || (SpaceOf(input) == wanted && PeerOf(input) == nullptr)) continue;
        TROUPE_ASSIGN_OR_RETURN(const int copy, Copy(input, wanted, i));
        spec_.nodes[i].inputs[k] = {copy, 0, false};
      }
    }
    for (size_t i = 0; i < spec_.fetches.size(); ++i) {
      PlanSpec::Input& fetch = spec_.fetches[i];
      const MemorySpace wanted = spec_.fetch_spaces.empty() ? kHost : spec_.fetch_spaces[i];
      if (SpaceOf(fetch) == wanted && PeerOf(fetch) == nullptr) continue;
      TROUPE_ASSIGN_OR_RETURN(const int copy, Copy(fetch, wanted, -1));
      fetch = {copy, 0, false};
    }
    return absl::OkStatus();
  }

 private:
  /// How many of a node's first inputs it only moves; 0: it is no such node.
  int NumMoved(int node) const {
    switch (spec_.nodes[node].flow) {
      case FlowOp::kMerge:
        return static_cast<int>(spec_.nodes[node].inputs.size());
      case FlowOp::kSwitch:
      case FlowOp::kEnter:
      case FlowOp::kConstantEnter:
      case FlowOp::kExit:
      case FlowOp::kNextIteration:
        return 1;
      default:
        return 0;
    }
  }
  /// Merge's other output says which input it was.
  bool IsMoved(int node, int port) const {
    return NumMoved(node) > 0 && (port == 0 || spec_.nodes[node].flow != FlowOp::kMerge);
  }

  int GroupOf(int node) {
    while (group_[node] != node) node = group_[node] = group_[group_[node]];
    return node;
  }

  /// Nodes that move values to one another have one space, with all that they move.
  void ChooseForMoves() {
    group_.resize(num_nodes_);
    std::iota(group_.begin(), group_.end(), 0);
    const auto for_each_edge = [this](auto what) {
      for (int i = 0; i < num_nodes_; ++i) {
        for (size_t k = 0; k < spec_.nodes[i].inputs.size(); ++k) {
          what(spec_.nodes[i].inputs[k], i, static_cast<int>(k));
        }
      }
    };
    for_each_edge([this](const PlanSpec::Input& from, int to, int k) {
      if (k < NumMoved(to) && IsMoved(from.node, from.port)) {
        group_[GroupOf(from.node)] = GroupOf(to);
      }
    });
    std::vector<bool> made_there(num_nodes_), made_here(num_nodes_), wanted_there(num_nodes_);
    for_each_edge([&](const PlanSpec::Input& from, int to, int k) {
      const bool moved = IsMoved(from.node, from.port), moves = k < NumMoved(to);
      if (moves && !moved && !from.snapshot) {
        const PlanSpec::Node& producer = spec_.nodes[from.node];
        const bool computes = producer.kernel != nullptr || producer.flow == FlowOp::kLoopCond ||
                              producer.flow == FlowOp::kMerge;
        if (computes) (SpaceOf(from) == kDevice ? made_there : made_here)[GroupOf(to)] = true;
      }
      if (moved && !moves && Wanted(to, k) == kDevice) wanted_there[GroupOf(from.node)] = true;
    });
    for (int i = 0; i < num_nodes_; ++i) {
      const int group = GroupOf(i);
      if (NumMoved(i) == 0 || !(made_there[group] || (wanted_there[group] && !made_here[group]))) {
        continue;
      }
      PlanSpec::Node& node = spec_.nodes[i];
      node.spaces.inputs.assign(node.inputs.size(), kHost);
      std::fill_n(node.spaces.inputs.begin(), NumMoved(i), kDevice);
      for (int port = 0; port < node.num_outputs; ++port) {
        node.spaces.outputs.push_back(IsMoved(i, port) ? kDevice : kHost);
      }
    }
  }

  MemorySpace SpaceOf(const PlanSpec::Input& input) const {
    return spec_.nodes[input.node].spaces.output(input.port);
  }
  MemorySpace Wanted(int node, int input) const {
    const PlanSpec::Node& consumer = spec_.nodes[node];
    // A connected device fetches the value from where it is.
    if (consumer.flow == FlowOp::kSend && consumer.peer != nullptr) {
      return SpaceOf(consumer.inputs[input]);
    }
    return consumer.spaces.input(input);
  }
  /// Which connected device has sent a value: it is in that one's memory, or on the host.
  Device* PeerOf(const PlanSpec::Input& input) const {
    const PlanSpec::Node& producer = spec_.nodes[input.node];
    return producer.flow == FlowOp::kRecv ? producer.peer : nullptr;
  }
  /// A node with the same value in `space`, for `consumer` (-1: a fetch).
  absl::StatusOr<int> Copy(const PlanSpec::Input& input, MemorySpace space, int consumer) {
    const auto place = std::make_tuple(input.node, input.port, space);
    if (!input.snapshot) {
      if (auto found = copies_.find(place); found != copies_.end()) return found->second;
    }
    PlanSpec::Node copy;
    copy.name = spec_.nodes[input.node].name;
    copy.op = space == kDevice ? "_Upload" : "_Download";
    copy.num_outputs = 1;
    copy.spaces.outputs = {space};
    if (const std::vector<Tensor>& values = spec_.nodes[input.node].constants; !values.empty()) {
      const Tensor& value = values[input.port];
      absl::StatusOr<Tensor> there =
          value.type() == ElementType::kVariant ? value : Upload(device_, value);
      if (!there.ok()) return WithContext(StrCat("constant ", copy.name, ": "), there.status());
      copy.constants = {*std::move(there)};
    } else {
      copy.inputs = {input};
      copy.spaces.inputs = {SpaceOf(input)};
      copy.kernel = MakeCopyKernel(space, PeerOf(input));
      copy.cost = KernelCost::kCheap;
      copy.frame = consumer < 0 ? 0 : spec_.nodes[consumer].frame;
      // A variable is read when its consumer could start.
      if (input.snapshot && consumer >= 0 && NumMoved(consumer) == 0) {
        copy.control_inputs = Before(consumer, input);
      }
    }
    const int index = static_cast<int>(spec_.nodes.size());
    spec_.nodes.push_back(std::move(copy));
    if (!input.snapshot) copies_[place] = index;
    return index;
  }

  /// What `node` waits for but `input`.
  std::vector<int> Before(int node, const PlanSpec::Input& input) const {
    std::vector<int> before = spec_.nodes[node].control_inputs;
    for (const PlanSpec::Input& other : spec_.nodes[node].inputs) {
      if (other.node != input.node) before.push_back(other.node);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    return before;
  }

  Device* const device_;
  PlanSpec& spec_;
  const int num_nodes_;     ///< Without copies.
  std::vector<int> group_;  ///< Union-find over nodes that move values.
  std::map<std::tuple<int, int, MemorySpace>, int> copies_;
};

}  // namespace

absl::Status MakeSpacesAgree(Device* device, PlanSpec* spec) {
  return SpaceMaker(device, spec).Make();
}

}  // namespace troupe
