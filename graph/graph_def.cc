#include "graph/graph_def.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph_impl.h"
#include "graph/passes/frames.h"
#include "graph/passes/inline_functions.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

constexpr std::string_view kColocation = "loc:@";

bool IsMerge(const std::string& op) { return op == "Merge" || op == "RefMerge"; }
bool IsNextIteration(const std::string& op) {
  return op == "NextIteration" || op == "RefNextIteration";
}

}  // namespace

/// One import. Nodes are added in an order in which producers come first; it holds the graph's
/// lock, and takes everything back on failure.
class GraphDefImporter : GraphImporter {
 public:
  GraphDefImporter(const GraphDef& def, const ImportOptions& options, Graph* graph)
      : def_(def), options_(options), impl_(Inside(*graph)) {}

  absl::Status Run() {
    std::lock_guard lock(impl_->mutex);
    if (impl_->finalized) {
      return absl::FailedPreconditionError("cannot import: the graph is finalized");
    }
    const size_t num_nodes = impl_->nodes.size();
    const size_t num_edges = impl_->edges.size();
    const int num_functions = impl_->library.function_size();
    const int num_gradients = impl_->library.gradient_size();
    absl::Status status = CheckVersions();
    if (status.ok()) status = FindControlDependencies();
    if (status.ok()) status = impl_->AddLibrary(def_.library());
    if (status.ok()) status = ChooseNames();
    if (status.ok()) status = ResolveInputs();
    if (status.ok()) status = AddAll();
    if (status.ok()) status = JoinBackEdges();
    if (!status.ok()) {
      impl_->Truncate(num_nodes, num_edges);
      impl_->TruncateLibrary(num_functions, num_gradients);
      return status;
    }
    const bool was_empty = num_nodes == 2;
    impl_->producer = was_empty ? producer_ : std::min(impl_->producer, producer_);
    return status;
  }

 private:
  /// Where an input comes from: a node of the definition, or one that the graph has already.
  struct Source {
    int index = -1;  // of the definition; -1: `outside`
    int port = 0;    // kControlSlot: a control input
    Output outside;
  };
  struct Pending {
    std::vector<Source> inputs;
    std::vector<int> consumers;
    int waits_for = 0;
    bool has_inside_input = false;
    Node* added = nullptr;
  };

  absl::Status CheckVersions() {
    const VersionDef& versions = def_.versions();
    producer_ = versions.producer();  // without versions 0: before any op was removed
    if (versions.min_consumer() > kGraphDefVersion) {
      return InvalidArgument("the graph needs a reader of GraphDef version ",
                             versions.min_consumer(), " or later; this one has version ",
                             kGraphDefVersion);
    }
    for (int bad : versions.bad_consumers()) {
      if (bad == kGraphDefVersion) {
        return InvalidArgument("the graph refuses readers of GraphDef version ", bad);
      }
    }
    if (producer_ < 0) return InvalidArgument("GraphDef version ", producer_, " is negative");
    return absl::OkStatus();
  }

  absl::Status FindControlDependencies() {
    for (const std::string& name : options_.control_dependencies) {
      Node* node = impl_->FindNode(name);
      if (node == nullptr) {
        return InvalidArgument("control dependency '", name, "' names no node of the graph");
      }
      dependencies_.push_back(node);
    }
    return absl::OkStatus();
  }

  absl::Status ChooseNames() {
    pending_.resize(def_.node_size());
    names_.resize(def_.node_size());
    by_name_.reserve(def_.node_size());
    const std::string prefix = options_.prefix.empty() || options_.prefix.back() == '/'
                                   ? options_.prefix
                                   : options_.prefix + "/";
    for (int i = 0; i < def_.node_size(); ++i) {
      const NodeDef& node = def_.node(i);
      if (!IsNodeName(node.name())) {
        return InvalidArgument("node ", i, " (op ", node.op(), ") has the malformed name '",
                               node.name(), "'");
      }
      if (node.op().empty()) {
        return InvalidArgument("node '", node.name(), "' does not specify an op");
      }
      if (!by_name_.emplace(node.name(), i).second) {
        return InvalidArgument("node name '", node.name(), "' is not unique in the definition");
      }
      names_[i] = prefix + node.name();
    }
    std::unordered_set<std::string> chosen;
    if (options_.uniquify_names) chosen.insert(names_.begin(), names_.end());
    for (std::string& name : names_) {
      if (impl_->FindNode(name) == nullptr) continue;
      if (!options_.uniquify_names) {
        return InvalidArgument("node name '", name, "' already exists in the graph");
      }
      std::string unique;
      int number = 0;
      do {
        unique = StrCat(name, "_", ++number);
      } while (impl_->FindNode(unique) != nullptr || chosen.count(unique) > 0);
      chosen.insert(unique);
      name = std::move(unique);
      renamed_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status FindMapped(std::string_view name, int port, Source* source, bool* found) {
    *found = false;
    if (options_.input_map.empty()) return absl::OkStatus();
    std::string key = port == Edge::kControlSlot ? StrCat("^", name) : StrCat(name, ":", port);
    auto mapped = options_.input_map.find(key);
    if (mapped == options_.input_map.end() && port == 0) {
      mapped = options_.input_map.find(std::string(name));
    }
    if (mapped == options_.input_map.end()) return absl::OkStatus();
    if (!mapped->second.valid()) {
      return InvalidArgument("input map: '", mapped->first, "' is mapped to nothing");
    }
    source->outside = mapped->second;
    source->port = port == Edge::kControlSlot ? port : 0;
    *found = true;
    return absl::OkStatus();
  }

  absl::Status ResolveInputs() {
    for (int i = 0; i < def_.node_size(); ++i) {
      const NodeDef& node = def_.node(i);
      Pending& pending = pending_[i];
      pending.inputs.reserve(node.input_size());
      bool control_seen = false;
      for (const std::string& input : node.input()) {
        std::string_view name;
        Source source;
        if (!ParseTensorName(input, &name, &source.port)) {
          return InvalidArgument("node '", node.name(), "': malformed input '", input, "'");
        }
        const bool control = source.port == Edge::kControlSlot;
        if (!control && control_seen) {
          return InvalidArgument("node '", node.name(), "': data input '", input,
                                 "' comes after control inputs");
        }
        control_seen |= control;
        bool mapped;
        TROUPE_RETURN_IF_ERROR(FindMapped(name, source.port, &source, &mapped));
        if (!mapped) {
          auto found = by_name_.find(name);
          if (found == by_name_.end()) {
            return InvalidArgument("node '", node.name(), "': unknown input node '", name, "'");
          }
          source.index = found->second;
          pending.has_inside_input = true;
          const std::string& op = def_.node(source.index).op();
          if (!(IsMerge(node.op()) && IsNextIteration(op) && !control)) {
            pending_[source.index].consumers.push_back(i);
            ++pending.waits_for;
          }
        }
        pending.inputs.push_back(source);
      }
      TROUPE_RETURN_IF_ERROR(CheckColocation(node));
    }
    return absl::OkStatus();
  }

  absl::Status CheckColocation(const NodeDef& node) {
    auto found = node.attr().find("_class");
    if (found == node.attr().end()) return absl::OkStatus();
    for (const std::string& text : found->second.list().s()) {
      std::string_view group = text;
      if (group.substr(0, kColocation.size()) != kColocation) continue;
      group.remove_prefix(kColocation.size());
      if (by_name_.count(group) == 0) {
        return InvalidArgument("node '", node.name(),
                               "' expects to be colocated with the unknown node '", group, "'");
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddAll() {
    // Smallest index first: what is in order already keeps its order.
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    int added = 0;
    int next = 0;
    const int size = def_.node_size();
    auto add = [&](int i) {
      TROUPE_RETURN_IF_ERROR(AddOne(i));
      ++added;
      for (int consumer : pending_[i].consumers) {
        // A consumer that the scan has not reached is found there.
        if (--pending_[consumer].waits_for == 0 && consumer < next) ready.push(consumer);
      }
      return absl::OkStatus();
    };
    while (true) {
      if (!ready.empty()) {
        const int i = ready.top();
        ready.pop();
        TROUPE_RETURN_IF_ERROR(add(i));
      } else if (next < size) {
        const int i = next++;
        if (pending_[i].waits_for == 0) TROUPE_RETURN_IF_ERROR(add(i));
      } else {
        break;
      }
    }
    if (added == size) return absl::OkStatus();
    for (int i = 0; i < size; ++i) {
      if (pending_[i].added == nullptr) {
        return InvalidArgument(size - added,
                               " nodes are in a cycle or depend on one, the first is '",
                               def_.node(i).name(), "' (op ", def_.node(i).op(), ")");
      }
    }
    return absl::OkStatus();
  }

  /// Checks that an input's port exists, with TensorFlow's words.
  static absl::Status CheckPort(const NodeDef& node, const Output& input) {
    if (Impl::MayHave(input)) return absl::OkStatus();
    return InvalidArgument("node '", node.name(), "': connecting to invalid output ", input.index,
                           " of source node '", input.node->name(), "', which has ",
                           input.node->num_outputs(), " outputs");
  }

  absl::Status AddOne(int i) {
    const NodeDef& node = def_.node(i);
    Pending& pending = pending_[i];
    auto registration = impl_->LookUp(node.op(), producer_);
    const bool known = !absl::IsNotFound(registration.status());
    if (!known) registration = impl_->Unknown(node.op());
    if (!registration.ok()) {
      return WithContext(StrCat("node '", node.name(), "': "), registration.status());
    }
    inputs_.clear();
    controls_.clear();
    for (const Source& source : pending.inputs) {
      const bool control = source.port == Edge::kControlSlot;
      Node* from = source.index < 0 ? source.outside.node : pending_[source.index].added;
      if (control) {
        controls_.push_back(from);
      } else if (from == nullptr) {
        back_edges_.push_back({i, static_cast<int>(inputs_.size()), source});
        inputs_.emplace_back();
      } else {
        inputs_.push_back(source.index < 0 ? source.outside : Output(from, source.port));
        TROUPE_RETURN_IF_ERROR(CheckPort(node, inputs_.back()));
      }
    }
    if (IsMerge(node.op()) && !inputs_.empty() &&
        std::none_of(inputs_.begin(), inputs_.end(), [](Output o) { return o.valid(); })) {
      return InvalidArgument("node '", node.name(), "' (op ", node.op(),
                             ") has no input but back edges: its loop cannot be entered");
    }
    if (!pending.has_inside_input) {
      controls_.insert(controls_.end(), dependencies_.begin(), dependencies_.end());
    }
    Impl::NewNode added;
    added.def = std::make_unique<NodeDef>();
    if (known) {
      added.def->set_op(node.op());
      *added.def->mutable_attr() = node.attr();
      added.def->mutable_attr()->erase("_output_shapes");
    } else {
      *added.def = node;
    }
    added.def->set_name(names_[i]);
    added.def->set_device(node.device().empty() ? options_.default_device : node.device());
    added.op_known = known;
    RenameColocation(added.def.get());
    RenameFrame(added.def.get());
    added.registration = *registration;
    added.inputs = inputs_;
    added.control_inputs = controls_;
    added.producer = producer_;
    TROUPE_ASSIGN_OR_RETURN(pending.added, impl_->Add(std::move(added)));
    return known ? RefineByAttribute(node, pending.added) : absl::OkStatus();
  }

  void RenameColocation(NodeDef* def) {
    if (options_.prefix.empty() && !renamed_) return;
    auto found = def->mutable_attr()->find("_class");
    if (found == def->mutable_attr()->end()) return;
    for (std::string& group : *found->second.mutable_list()->mutable_s()) {
      if (group.compare(0, kColocation.size(), kColocation) != 0) continue;
      auto index = by_name_.find(std::string_view(group).substr(kColocation.size()));
      if (index != by_name_.end()) group = StrCat(kColocation, names_[index->second]);
    }
  }

  /// Loops that are imported twice are two.
  void RenameFrame(NodeDef* def) {
    if (options_.prefix.empty() && !renamed_) return;
    std::string* const name = FrameName(def);
    if (name == nullptr) return;
    if (frames_.empty()) {  // No Enter of this definition has been added yet.
      for (const std::unique_ptr<Node>& node : impl_->nodes) {
        if (FlowOpOf(*node) != FlowOp::kEnter && FlowOpOf(*node) != FlowOp::kConstantEnter)
          continue;
        taken_frames_.insert(node->attrs().GetOr<std::string>("frame_name", ""));
      }
    }
    const auto [frame, is_new] = frames_.try_emplace(*name);
    if (is_new) {
      const std::string wanted =
          options_.prefix.empty() ? *name : StrCat(options_.prefix, "/", *name);
      frame->second = wanted;
      for (int i = 1; !taken_frames_.insert(frame->second).second; ++i) {
        frame->second = StrCat(wanted, "_", i);
      }
    }
    *name = frame->second;
  }

  /// Shapes that whoever wrote the graph has noted add to what is inferred.
  absl::Status RefineByAttribute(const NodeDef& def, Node* node) {
    auto found = def.attr().find("_output_shapes");
    if (found == def.attr().end()) return absl::OkStatus();
    const auto& shapes = found->second.list().shape();
    if (shapes.size() != node->num_outputs()) return absl::OkStatus();
    for (int i = 0; i < shapes.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::FromProto(shapes[i]));
      if (!node->output_shape(i).IsCompatibleWith(shape)) {
        return InvalidArgument("node '", def.name(), "' has an _output_shapes attribute (",
                               shape.ToString(),
                               ") inconsistent with the shape inferred for output ", i, " (",
                               node->output_shape(i).ToString(), ")");
      }
      TROUPE_RETURN_IF_ERROR(impl_->Refine(Output(node, i), shape));
    }
    return absl::OkStatus();
  }

  absl::Status JoinBackEdges() {
    for (const BackEdge& edge : back_edges_) {
      const Output from(pending_[edge.source.index].added, edge.source.port);
      TROUPE_RETURN_IF_ERROR(CheckPort(def_.node(edge.node), from));
      TROUPE_RETURN_IF_ERROR(impl_->JoinBackEdge(from, pending_[edge.node].added, edge.input));
    }
    return absl::OkStatus();
  }

  struct BackEdge {
    int node;
    int input;
    Source source;
  };

  const GraphDef& def_;
  const ImportOptions& options_;
  Impl* impl_;
  int producer_ = 0;
  bool renamed_ = false;
  std::vector<Node*> dependencies_;
  std::vector<std::string> names_;                       // by index: the name in the graph
  std::unordered_map<std::string_view, int> by_name_;    // names of the definition
  std::unordered_map<std::string, std::string> frames_;  // names of frames: in the graph
  std::unordered_set<std::string> taken_frames_;
  std::vector<Pending> pending_;
  std::vector<BackEdge> back_edges_;
  std::vector<Output> inputs_;  // of the node being added
  std::vector<Node*> controls_;
};

absl::Status ImportGraphDef(const GraphDef& def, const ImportOptions& options, Graph* graph) {
  if (!CallsFunctions(def)) return GraphDefImporter(def, options, graph).Run();
  TROUPE_ASSIGN_OR_RETURN(const GraphDef inlined, InlineFunctionCalls(def, *graph->ops()));
  return GraphDefImporter(inlined, options, graph).Run();
}

}  // namespace troupe
