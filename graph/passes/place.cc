#include "graph/passes/place.h"

#include <algorithm>
#include <queue>
#include <string_view>
#include <utility>

#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/place_groups.h"
#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

// To leave the device that a node would be on otherwise it must finish earlier by more than this:
// estimates are not so good.
constexpr double kLeastGainUs = 2.0;
constexpr double kLeastGain = 0.02;

absl::StatusOr<int> DefaultDevice(const PlacementInput& input) {
  if (input.devices.empty()) return InvalidArgument("there are no devices to place nodes on");
  for (const PlacementDevice& device : input.devices) {
    if (device.parsed.complete()) continue;
    return InvalidArgument("the device name '", device.name, "' is not complete");
  }
  if (input.default_device.empty()) return 0;
  TROUPE_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(input.default_device));
  for (size_t d = 0; d < input.devices.size(); ++d) {
    if (input.devices[d].parsed.Matches(name)) return static_cast<int>(d);
  }
  return InvalidArgument("the default device ", input.default_device, " does not exist");
}

std::string Microseconds(double us) {
  const auto tenths = static_cast<int64_t>(us * 10 + 0.5);
  return StrCat(tenths / 10, ".", tenths % 10, " us");
}

/// Chooses among the devices that each group may be on.
class Placer {
 public:
  Placer(const PlacementInput& input, int default_device, Subgraph* subgraph,
         PlacementReport* report)
      : input_(input),
        default_device_(default_device),
        nodes_(subgraph->nodes),
        subgraph_(*subgraph),
        report_(report),
        costs_(input.costs != nullptr ? input.costs : &no_measurements_) {
    for (const PlacementDevice& device : input.devices) {
      const auto first = std::find_if(
          input.devices.begin(), input.devices.end(), [&](const PlacementDevice& other) {
            return other.parsed.type == device.parsed.type && other.figures == device.figures;
          });
      kind_.push_back(first - input.devices.begin());
    }
  }

  absl::Status Run() {
    TROUPE_ASSIGN_OR_RETURN(groups_, FormPlacementGroups(input_, subgraph_));
    TROUPE_ASSIGN_OR_RETURN(frames_, FindFrames(subgraph_));
    chosen_.assign(groups_.groups.size(), -1);
    state_bytes_.assign(input_.devices.size(), 0);
    why_.resize(report_ != nullptr ? groups_.groups.size() : 0);
    bool any_free = false;
    for (size_t g = 0; g < groups_.groups.size(); ++g) any_free |= !ChooseForced(g);
    const bool spread = any_free || std::any_of(chosen_.begin(), chosen_.end(), [&](int device) {
                          return device != chosen_.front();
                        });
    if (input_.spread_seed) {
      for (size_t g = 0; g < groups_.groups.size(); ++g) Draw(g);
    } else if (spread) {
      Simulate();
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int32_t group = groups_.group_of[i];
      if (group >= 0 && chosen_[group] >= 0) nodes_[i].device = Name(chosen_[group]);
    }
    FollowConsumers();
    if (report_ != nullptr) WriteReport();
    return absl::OkStatus();
  }

 private:
  const std::string& Name(int device) const { return input_.devices[device].name; }
  void Why(int32_t group, std::string reason) {
    if (report_ != nullptr) why_[group] = std::move(reason);
  }

  /// Groups that have no choice, and those that hold state: a first step (the initializers) knows
  /// nothing of the steps for which it places the variables. A card gets what it has kernels for.
  bool ChooseForced(size_t g) {
    const PlacementGroup& group = groups_.groups[g];
    const std::vector<int>& devices = groups_.sets.devices(group.set);
    if (devices.size() > 1 && !group.state) return false;
    const bool may_stay = devices.size() > 1 && groups_.sets.Contains(group.set, default_device_);
    chosen_[g] = may_stay ? default_device_ : devices.front();
    const int card = group.state ? CardFor(group) : -1;
    if (card >= 0) {
      chosen_[g] = card;
      state_bytes_[card] += group.state_bytes;
    }
    if (report_ == nullptr) return true;
    const int32_t at = static_cast<int32_t>(g);
    if (group.fixed) {
      Why(at, "placed by an earlier step");
    } else if (group.softened) {
      Why(at, "soft placement: what is asked for does not exist");
    } else if (devices.size() == 1 && group.requested) {
      Why(at, "requested");
    } else if (devices.size() == 1) {
      Why(at, "the only device with a kernel");
    } else if (card >= 0) {
      Why(at, "holds state, and all that must be with it has kernels there");
    } else {
      Why(at, "holds state: the default device");
    }
    return true;
  }

  /// The first device that says how fast it is, beside the default one, for the variables and
  /// arrays of numbers of a group that could be there, as long as its memory has room; -1: none.
  /// Steps that train are to be there, and the first one places what all of them use.
  int CardFor(const PlacementGroup& group) const {
    if (!group.keeps_numbers || group.softened || group.fixed || !input_.default_device.empty()) {
      return -1;
    }
    const DeviceName& here = input_.devices[default_device_].parsed;
    for (const int d : groups_.sets.devices(group.set)) {
      const PlacementDevice& device = input_.devices[d];
      if (!device.figures.has_value() || device.parsed.job != here.job ||
          device.parsed.replica != here.replica || device.parsed.task != here.task) {
        continue;
      }
      if (device.memory == 0 || state_bytes_[d] + group.state_bytes <= device.memory) return d;
    }
    return -1;
  }

  /// The same device for the same name, whatever else the step has.
  void Draw(size_t g) {
    const PlacementGroup& group = groups_.groups[g];
    const std::vector<int>& devices = groups_.sets.devices(group.set);
    if (group.fixed || devices.size() == 1) return;
    uint64_t hash = 0xcbf29ce484222325u ^ *input_.spread_seed;
    for (char c : nodes_[group.first].original->name()) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    chosen_[g] = devices[hash % devices.size()];
    Why(static_cast<int32_t>(g), "drawn at random");
  }

  // --- simulation --------------------------------------------------------------------------------

  /// A constant that can be wherever it is needed.
  bool IsAnywhere(int32_t i) const {
    const SubNode& node = nodes_[i];
    if (node.kind != SubNode::Kind::kOp) return true;
    return node.original->op() == "Const" && node.control_inputs.empty() &&
           groups_.groups[groups_.group_of[i]].size == 1;
  }

  TransferCost Link(int from, int to) const {
    const DeviceName& a = input_.devices[from].parsed;
    const DeviceName& b = input_.devices[to].parsed;
    if (a.job != b.job || a.replica != b.replica || a.task != b.task) return input_.between_tasks;
    // By way of the host.
    TransferCost link = input_.between_types;
    link.latency_us = 0;
    double us_per_byte = 0;
    for (const int end : {from, to}) {
      if (const std::optional<DeviceFigures>& figures = input_.devices[end].figures) {
        link.latency_us += figures->transfer_us;
        us_per_byte += 1 / figures->transfer_bytes_per_us;
      }
    }
    if (us_per_byte == 0) return a.type == b.type ? input_.within_process : input_.between_types;
    link.bytes_per_us = 1 / us_per_byte;
    return link;
  }

  /// What a node costs on a device; the same for all of a kind, so asked once for each.
  double TimeOn(int32_t i, int device) {
    if (i != timed_) {
      timed_ = i;
      times_.assign(input_.devices.size(), -1);
    }
    const PlacementDevice& on = input_.devices[device];
    double& time = times_[kind_[device]];
    if (time < 0) {
      // DefaultDevice has seen that names are complete.
      time = costs_->TimeUs(nodes_[i], *on.parsed.type, on.figures.value_or(DeviceFigures()));
    }
    return time / on.speed;
  }

  void Simulate() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    int processors = 0;
    for (const PlacementDevice& device : input_.devices) {
      processors = std::max(processors, device.processor + 1);
    }
    for (const PlacementDevice& device : input_.devices) {
      processor_.push_back(device.processor >= 0 ? device.processor : processors++);
    }
    free_at_.assign(processors, 0);
    finish_.assign(n, 0);
    device_.assign(n, -1);
    in_use_.assign(input_.devices.size(), 0);
    held_.assign(n, {});
    limited_ = std::any_of(input_.devices.begin(), input_.devices.end(),
                           [](const PlacementDevice& device) { return device.memory > 0; });
    PrepareFrames();

    std::vector<int32_t> waits_for(n, 0), first_consumer(n + 1, 0), consumers;
    for (int32_t i = 0; i < n; ++i) {
      ForEachInput(i, [&](int32_t from, int) {
        ++waits_for[i];
        ++first_consumer[from + 1];
      });
    }
    for (int32_t i = 0; i < n; ++i) first_consumer[i + 1] += first_consumer[i];
    consumers.resize(first_consumer[n]);
    std::vector<int32_t> next(first_consumer.begin(), first_consumer.end() - 1);
    uses_left_.resize(n);
    for (int32_t i = 0; i < n; ++i) uses_left_[i] = first_consumer[i + 1] - first_consumer[i];
    fetched_.assign(n, false);
    for (const SubOutput& fetch : subgraph_.fetches) {
      ++uses_left_[fetch.node];
      fetched_[fetch.node] = true;
    }
    using Ready = std::pair<double, int32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
    for (int32_t i = 0; i < n; ++i) {
      ForEachInput(i, [&](int32_t from, int) { consumers[next[from]++] = i; });
      if (waits_for[i] == 0) ready.emplace(0.0, i);
    }
    std::vector<double> ready_at(n, 0);
    while (!ready.empty()) {
      const int32_t i = ready.top().second;
      ready.pop();
      Run(i);
      if (limited_) LetGo(i);
      for (int32_t k = first_consumer[i]; k < first_consumer[i + 1]; ++k) {
        const int32_t to = consumers[k];
        ready_at[to] = std::max(ready_at[to], finish_[i]);
        if (--waits_for[to] == 0) ready.emplace(ready_at[to], to);
      }
    }
    if (report_ != nullptr && n > 0) {
      report_->predicted_us = *std::max_element(finish_.begin(), finish_.end());
    }
  }

  /// Calls `f(node, port)` for the inputs that come before node i; port -1: control.
  template <typename F>
  void ForEachInput(int32_t i, F f) const {
    for (const SubOutput& input : nodes_[i].inputs) {
      if (input.node < i) f(input.node, input.port);
    }
    for (int32_t control : nodes_[i].control_inputs) {
      if (control < i) f(control, -1);
    }
  }

  void Run(int32_t i) {
    if (IsAnywhere(i)) return;
    const int32_t group = groups_.group_of[i];
    if (chosen_[group] < 0) Choose(i, group);
    const int device = chosen_[group];
    device_[i] = device;
    if (limited_) Hold(i, device);
    const int processor = processor_[device];
    double start = 0;
    ForEachInput(i, [&](int32_t from, int port) {
      const Arrival arrival = ArrivalOf(from, port, device);
      start = std::max(start, arrival.at);
      if (!arrival.is_copy) return;
      arrivals_.emplace(Key(from, device), arrival.at);
      if (device_[from] >= 0) free_at_[processor_[device_[from]]] += arrival.overhead_us;
      free_at_[processor] += arrival.overhead_us;
    });
    start = std::max(start, free_at_[processor]);
    finish_[i] = start + TimeOn(i, device);
    free_at_[processor] = finish_[i];
  }

  static uint64_t Key(int32_t node, int device) {
    return static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(device);
  }

  double TransferUs(const TransferCost& link, int32_t from, int port) const {
    double us = link.latency_us;
    if (port >= 0 && link.bytes_per_us > 0) {
      us += static_cast<double>(costs_->OutputBytes(nodes_[from], port)) / link.bytes_per_us;
    }
    return us;
  }

  struct Arrival {
    double at = 0;
    double overhead_us = 0;  ///< For the devices at both ends.
    bool is_copy = false;    ///< A new one.
  };
  /// When an input is on a device.
  Arrival ArrivalOf(int32_t from, int port, int device) const {
    if (device_[from] == device) return {finish_[from]};
    const auto known = arrivals_.find(Key(from, device));
    if (known != arrivals_.end()) return {known->second};
    if (device_[from] >= 0) {
      const TransferCost link = Link(device_[from], device);
      return {finish_[from] + TransferUs(link, from, port), link.overhead_us, true};
    }
    // Constants are wherever they are wanted, what is fed is on the host.
    const bool fed = nodes_[from].kind == SubNode::Kind::kFeed;
    return {fed ? ByHostUs(costs_->OutputBytes(nodes_[from], std::max(port, 0)), device) : 0, 0,
            fed};
  }
  /// To a device's own memory from the host, or back.
  double ByHostUs(int64_t bytes, int device) const {
    const std::optional<DeviceFigures>& figures = input_.devices[device].figures;
    if (!figures.has_value()) return 0;
    return figures->transfer_us + static_cast<double>(bytes) / figures->transfer_bytes_per_us;
  }

  /// When node i would be finished on a device, and fetched if it is.
  double FinishOn(int32_t i, int device) {
    double start = 0, overhead = 0;
    ForEachInput(i, [&](int32_t from, int port) {
      const Arrival arrival = ArrivalOf(from, port, device);
      start = std::max(start, arrival.at);
      overhead += arrival.overhead_us;
    });
    return std::max(start, free_at_[processor_[device]] + overhead) + TimeOn(i, device) +
           (fetched_[i] ? ByHostUs(OutputBytes(i), device) : 0);
  }

  // --- memory: what is placed on a device, or copied there, and will still be used ---

  int64_t OutputBytes(int32_t i) const {
    if (nodes_[i].kind == SubNode::Kind::kOp && IsTrivialOp(*nodes_[i].original) &&
        !nodes_[i].original->stateful()) {
      return 0;  // It passes on what is there, or makes little.
    }
    int64_t bytes = 0;
    for (int port = 0; port < nodes_[i].num_outputs(); ++port) {
      bytes += costs_->OutputBytes(nodes_[i], port);
    }
    return bytes;
  }

  /// What an input takes up on a device that it must be copied to; 0: it is there.
  int64_t CopyBytes(int32_t from, int port, int device) const {
    if (port < 0 || device_[from] == device) return 0;
    for (const auto& [holder, bytes] : held_[from]) {
      if (holder == device) return 0;
    }
    return costs_->OutputBytes(nodes_[from], port);
  }

  bool Fits(int32_t i, int device) const {
    if (input_.devices[device].memory == 0) return true;
    int64_t bytes = OutputBytes(i);
    std::vector<int32_t> copied;
    ForEachInput(i, [&](int32_t from, int port) {
      if (std::find(copied.begin(), copied.end(), from) != copied.end()) return;
      const int64_t copy = CopyBytes(from, port, device);
      if (copy > 0) copied.push_back(from);
      bytes += copy;
    });
    return bytes == 0 || bytes <= input_.devices[device].memory - in_use_[device];
  }

  void Hold(int32_t i, int device, int64_t bytes) {
    if (bytes == 0) return;
    in_use_[device] += bytes;
    held_[i].emplace_back(device, bytes);
  }
  void Hold(int32_t i, int device) {
    ForEachInput(
        i, [&](int32_t from, int port) { Hold(from, device, CopyBytes(from, port, device)); });
    Hold(i, device, OutputBytes(i));
  }
  /// Constants and variables are there in every step.
  bool Stays(int32_t i) const {
    if (nodes_[i].kind != SubNode::Kind::kOp) return nodes_[i].kind == SubNode::Kind::kConstant;
    return IsAnywhere(i) || groups_.groups[groups_.group_of[i]].state;
  }
  /// Node i has run: what nobody uses any more is free.
  void LetGo(int32_t i) {
    ForEachInput(i, [&](int32_t from, int) {
      if (--uses_left_[from] > 0 || Stays(from)) return;
      for (const auto& [device, bytes] : held_[from]) in_use_[device] -= bytes;
      held_[from].clear();
    });
  }

  void Choose(int32_t i, int32_t group) {
    const int set = groups_.groups[group].set;
    const int32_t with = LargestInput(i);
    const auto can_go = [&](int device) {
      return groups_.sets.Contains(set, device) && Fits(i, device);
    };
    if (with >= 0 && IsTrivialOp(*nodes_[i].original) && can_go(device_[with])) {
      chosen_[group] = device_[with];
      Why(group, StrCat("with its input ", nodes_[with].original->name()));
      return;
    }
    const int32_t loop = outermost_.empty() ? 0 : outermost_[i];
    if (loop > 0 && loop_device_[loop] >= 0 && can_go(loop_device_[loop])) {
      chosen_[group] = loop_device_[loop];
      Why(group, StrCat("with the loop ", frames_.frames[loop].name));
      return;
    }
    // Nearest first, so that nothing moves without a reason.
    int best = -1;
    const std::vector<int>& devices = groups_.sets.devices(set);
    if (with >= 0 && can_go(device_[with])) best = device_[with];
    if (best < 0 && can_go(default_device_)) best = default_device_;
    if (best < 0) {
      const auto first = std::find_if(devices.begin(), devices.end(), can_go);
      best = first == devices.end() ? devices.front() : *first;
    }
    const int stay = best;
    const double stay_us = FinishOn(i, stay);
    double best_us = stay_us - std::max(kLeastGainUs, kLeastGain * stay_us);
    int too_small = -1;
    for (int device : devices) {
      if (device == stay) continue;
      if (!Fits(i, device)) {
        too_small = device;
        continue;
      }
      const double us = FinishOn(i, device);
      if (us >= best_us) continue;
      best_us = us;
      best = device;
    }
    chosen_[group] = best;
    if (loop > 0 && loop_device_[loop] < 0) loop_device_[loop] = best;
    if (report_ == nullptr) return;
    if (best != stay) {
      Why(group, StrCat("finishes first: after ", Microseconds(best_us), ", on ", Name(stay),
                        " after ", Microseconds(stay_us)));
    } else {
      Why(group, StrCat(stay == default_device_ ? "the default device" : "with its input",
                        ": nothing is faster than ", Microseconds(stay_us),
                        too_small < 0 ? "" : ", with memory for it: not ",
                        too_small < 0 ? "" : Name(too_small)));
    }
  }

  /// The placed producer of the largest data input; -1 if there is none.
  int32_t LargestInput(int32_t i) const {
    int32_t largest = -1;
    int64_t most = -1;
    for (const SubOutput& input : nodes_[i].inputs) {
      if (input.node >= i || device_[input.node] < 0) continue;
      const int64_t bytes = costs_->OutputBytes(nodes_[input.node], input.port);
      if (bytes <= most) continue;
      most = bytes;
      largest = input.node;
    }
    return largest;
  }

  /// A loop whose nodes are partly bound goes to where most of its work is bound to; the others go
  /// where their first node goes. Every edge between devices costs a message per iteration.
  void PrepareFrames() {
    if (frames_.frames.size() < 2) return;
    const size_t num_frames = frames_.frames.size();
    std::vector<int32_t> outer(num_frames, 0);
    for (size_t f = 1; f < num_frames; ++f) {
      const int32_t parent = frames_.frames[f].parent;
      outer[f] = parent == 0 ? static_cast<int32_t>(f) : outer[parent];
    }
    loop_device_.assign(num_frames, -1);
    outermost_.assign(nodes_.size(), 0);
    std::vector<std::vector<double>> bound(num_frames);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int32_t inside = frames_.frame_of[i] != 0 ? frames_.frame_of[i] : frames_.enters[i];
      const int32_t loop = outermost_[i] = outer[inside];
      if (loop == 0 || groups_.group_of[i] < 0) continue;
      const int device = chosen_[groups_.group_of[i]];
      if (device < 0) continue;
      if (bound[loop].empty()) bound[loop].resize(input_.devices.size());
      bound[loop][device] += 0.01 + TimeOn(static_cast<int32_t>(i), device);
    }
    for (size_t f = 1; f < num_frames; ++f) {
      if (bound[f].empty()) continue;
      loop_device_[f] =
          static_cast<int>(std::max_element(bound[f].begin(), bound[f].end()) - bound[f].begin());
    }
  }

  // --- what is left ------------------------------------------------------------------------------

  void FollowConsumers() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      for (const SubOutput& input : nodes_[i].inputs) Follow(input.node, nodes_[i].device);
      for (int32_t control : nodes_[i].control_inputs) Follow(control, nodes_[i].device);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].device.empty()) continue;
      const int set = groups_.group_of[i] < 0 ? 0 : groups_.groups[groups_.group_of[i]].set;
      nodes_[i].device =
          Name(groups_.sets.Contains(set, default_device_) ? default_device_
                                                           : groups_.sets.devices(set).front());
    }
  }

  /// Walking backwards, the consumer that comes first writes last.
  void Follow(int32_t i, const std::string& device) {
    const int32_t group = groups_.group_of[i];
    if ((group >= 0 && chosen_[group] >= 0) || device.empty()) return;
    if (group >= 0) {
      const std::vector<int>& devices = groups_.sets.devices(groups_.groups[group].set);
      if (std::none_of(devices.begin(), devices.end(), [&](int d) { return Name(d) == device; })) {
        return;
      }
    }
    nodes_[i].device = device;
  }

  /// Where it is.
  double CostOf(int32_t i) {
    for (size_t d = 0; d < input_.devices.size(); ++d) {
      if (Name(static_cast<int>(d)) == nodes_[i].device) return TimeOn(i, static_cast<int>(d));
    }
    return costs_->TimeUs(nodes_[i]);
  }

  void WriteReport() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      PlacementReport::Entry& entry = report_->entries.emplace_back();
      const SubNode& node = nodes_[i];
      entry.node = node.original->name();
      entry.op = node.original->op();
      entry.device = node.device;
      entry.cost_us = CostOf(static_cast<int32_t>(i));
      const int32_t group = groups_.group_of[i];
      if (node.kind == SubNode::Kind::kFeed) {
        entry.reason = "fed: with its consumer";
      } else if (group < 0 || chosen_[group] < 0) {
        entry.reason = "a constant: with its consumer";
      } else {
        entry.reason = why_[group];
        const int32_t first = groups_.groups[group].first;
        if (first != static_cast<int32_t>(i)) {
          entry.reason =
              StrCat("together with ", nodes_[first].original->name(), ": ", entry.reason);
        }
      }
    }
  }

  const PlacementInput& input_;
  const int default_device_;
  std::vector<SubNode>& nodes_;
  const Subgraph& subgraph_;
  PlacementReport* const report_;
  const CostModel no_measurements_;
  const CostModel* const costs_;
  PlacementGroups groups_;
  Frames frames_;
  std::vector<int> chosen_;           // Per group; -1: open.
  std::vector<int64_t> state_bytes_;  // Per device: of state that goes there unasked.
  std::vector<std::string> why_;      // Per group.
  std::vector<size_t> kind_;          // Per device: the first that is like it.
  int32_t timed_ = -1;
  std::vector<double> times_;  // Of node `timed_`, per kind; -1: not asked for yet.
  // The simulation.
  std::vector<int> processor_;      // Per device.
  std::vector<double> free_at_;     // Per processor.
  std::vector<double> finish_;      // Per node.
  std::vector<bool> fetched_;       // Per node.
  std::vector<int> device_;         // Per node; -1: not yet, or anywhere.
  std::vector<int32_t> outermost_;  // Per node: its outermost loop.
  std::vector<int> loop_device_;    // Per frame.
  std::unordered_map<uint64_t, double> arrivals_;
  bool limited_ = false;                                    // Some device's memory is.
  std::vector<int64_t> in_use_;                             // Per device.
  std::vector<int32_t> uses_left_;                          // Per node.
  std::vector<std::vector<std::pair<int, int64_t>>> held_;  // Per node: device, bytes there.
};

/// With one device there is nothing to choose, only to check; most nodes ask for nothing.
bool TriviallyPossible(const PlacementInput& input, const Subgraph& subgraph) {
  if (input.devices.size() != 1) return false;
  const DeviceName& only = input.devices[0].parsed;
  const std::string* last = nullptr;
  for (const SubNode& node : subgraph.nodes) {
    if (node.kind != SubNode::Kind::kOp) continue;
    const std::string& request = node.original->requested_device();
    if (!request.empty() && !input.spread_seed && (last == nullptr || *last != request)) {
      absl::StatusOr<DeviceName> name = DeviceName::Parse(request);
      if (!name.ok() || !only.Matches(*name)) return false;
      last = &request;
    }
    if (input.fixed != nullptr && !input.fixed->empty() && node.original->stateful()) {
      auto found = input.fixed->find(node.original->name());
      if (found != input.fixed->end() && found->second != input.devices[0].name) return false;
    }
  }
  return true;
}

}  // namespace

absl::Status Place(const PlacementInput& input, Subgraph* subgraph, PlacementReport* report) {
  TROUPE_ASSIGN_OR_RETURN(const int default_device, DefaultDevice(input));
  if (report != nullptr) *report = PlacementReport();
  if (report == nullptr && TriviallyPossible(input, *subgraph)) {
    for (SubNode& node : subgraph->nodes) node.device = input.devices[0].name;
    return absl::OkStatus();
  }
  return Placer(input, default_device, subgraph, report).Run();
}

absl::Status CheckPlacement(const PlacementInput& input, const Subgraph& subgraph) {
  TROUPE_RETURN_IF_ERROR(DefaultDevice(input).status());
  if (TriviallyPossible(input, subgraph)) return absl::OkStatus();
  return FormPlacementGroups(input, subgraph).status();
}

std::string PlacementReport::ToString() const {
  size_t widths[4] = {4, 2, 6, 5};
  std::vector<std::string> costs;
  for (const Entry& entry : entries) {
    costs.push_back(entry.cost_us > 0 ? Microseconds(entry.cost_us) : "-");
    widths[0] = std::max(widths[0], entry.node.size());
    widths[1] = std::max(widths[1], entry.op.size());
    widths[2] = std::max(widths[2], entry.device.size());
    widths[3] = std::max(widths[3], costs.back().size());
  }
  std::string text;
  auto row = [&](const std::string& node, const std::string& op, const std::string& device,
                 const std::string& cost, const std::string& reason) {
    auto column = [&](const std::string& value, size_t width) {
      text += value;
      text.append(width - value.size() + 2, ' ');
    };
    column(node, widths[0]);
    column(op, widths[1]);
    column(device, widths[2]);
    column(cost, widths[3]);
    text += reason;
    text += '\n';
  };
  row("node", "op", "device", "takes", "why");
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    row(entry.node, entry.op, entry.device, costs[i], entry.reason);
  }
  if (predicted_us > 0) text += StrCat("predicted: ", Microseconds(predicted_us), " a step\n");
  return text;
}

}  // namespace troupe
