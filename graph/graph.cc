#include "graph/graph.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "devices/status_macros.h"
#include "graph/attr_check.h"
#include "graph/graph_impl.h"
#include "graph/op_args.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

NodeEvaluator& GlobalEvaluator() {
  static auto* evaluator = new NodeEvaluator;
  return *evaluator;
}

/// The registration that `_SOURCE` and `_SINK` share: a NoOp, whatever the registry holds.
const OpRegistration* EndOp() {
  static const OpRegistration* registration = [] {
    auto* r = new OpRegistration;
    r->def = std::make_unique<OpDef>();
    r->def->set_name("NoOp");
    return r;
  }();
  return registration;
}

/// True if both lists name the same tensors: "a" is "a:0".
bool SameInputs(const google::protobuf::RepeatedPtrField<std::string>& a,
                const google::protobuf::RepeatedPtrField<std::string>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const std::string& x, const std::string& y) {
        std::string_view x_node, y_node;
        int x_port, y_port;
        return ParseTensorName(x, &x_node, &x_port) && ParseTensorName(y, &y_node, &y_port) &&
               x_node == y_node && x_port == y_port;
      });
}

}  // namespace

// --- Output and Node ---

std::string Output::name() const {
  return node == nullptr ? "<none>" : StrCat(node->name(), ":", index);
}

ElementType Output::type() const {
  const bool there = node != nullptr && index >= 0 && index < node->num_outputs();
  return there ? RemoveRef(node->output_type(index)) : ElementType::kInvalid;
}

const PartialShape& Output::shape() const {
  static const auto* const unknown = new PartialShape;
  const bool there = node != nullptr && index >= 0 && index < node->num_outputs();
  return there ? node->output_shape(index) : *unknown;
}

Node::~Node() = default;
const std::string& Node::name() const { return def_->name(); }
const std::string& Node::op() const { return def_->op(); }
const std::string& Node::requested_device() const { return def_->device(); }
bool Node::stateful() const { return registration_->def->is_stateful(); }

std::vector<Node*> Node::control_inputs() const {
  std::vector<Node*> nodes;
  for (const Edge* edge : in_edges_) {
    if (edge->control()) nodes.push_back(edge->src);
  }
  return nodes;
}

std::pair<int, int> Node::OutputRange(std::string_view name) const {
  return ArgRange(op_def(), ArgSide::kOutputs, attrs(), name);
}

std::pair<int, int> Node::InputRange(std::string_view name) const {
  return ArgRange(op_def(), ArgSide::kInputs, attrs(), name);
}

// --- Graph ---

Graph::Graph(const OpRegistry* ops) : ops_(ops), impl_(std::make_unique<Impl>(this, ops)) {}
Graph::~Graph() = default;

void Graph::SetEvaluator(NodeEvaluator evaluator) { GlobalEvaluator() = std::move(evaluator); }
const NodeEvaluator& Graph::evaluator() { return GlobalEvaluator(); }

Graph::Impl::Impl(Graph* owner, const OpRegistry* registry) : graph(owner), ops(registry) {
  for (const char* name : {"_SOURCE", "_SINK"}) {
    auto node = std::unique_ptr<Node>(new Node);
    node->id_ = static_cast<int>(nodes.size());
    node->graph_ = owner;
    node->def_ = std::make_unique<NodeDef>();
    node->def_->set_name(name);
    node->def_->set_op("NoOp");
    node->registration_ = EndOp();
    by_name.emplace(node->def_->name(), node.get());
    nodes.push_back(std::move(node));
  }
}

Graph::Impl::~Impl() = default;

absl::Status Graph::AddBackEdge(Output src, Node* dst, int dst_input) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->finalized) return absl::FailedPreconditionError("the graph is finalized");
  return impl_->JoinBackEdge(src, dst, dst_input);
}

absl::Status Graph::AddControlEdge(Node* src, Node* dst) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->finalized) return absl::FailedPreconditionError("the graph is finalized");
  if (src == nullptr || dst == nullptr || src->graph_ != this || dst->graph_ != this) {
    return InvalidArgument("both ends of a control edge must be nodes of this graph");
  }
  if (src == dst) {
    return InvalidArgument("node '", src->name(), "' cannot be its own control input");
  }
  impl_->AddControlEdge(src, dst);
  return absl::OkStatus();
}

std::string Graph::UniqueName(std::string_view prefix) {
  std::lock_guard lock(impl_->mutex);
  std::string name(prefix);
  auto taken = [this](const std::string& n) {
    return impl_->by_name.count(n) > 0 || impl_->given_names.count(n) > 0;
  };
  if (taken(name)) {
    int& number = impl_->used_names[name];
    do {
      name = StrCat(prefix, "_", ++number);
    } while (taken(name));
  }
  impl_->given_names.insert(name);
  return name;
}

Node* Graph::FindNode(std::string_view name) const {
  std::lock_guard lock(impl_->mutex);
  return impl_->FindNode(name);
}

absl::StatusOr<Output> Graph::FindOutput(std::string_view tensor_name) const {
  std::lock_guard lock(impl_->mutex);
  return impl_->FindOutput(tensor_name);
}

std::vector<Node*> Graph::nodes() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<Node*> nodes;
  nodes.reserve(impl_->nodes.size());
  for (const auto& node : impl_->nodes) nodes.push_back(node.get());
  return nodes;
}

int Graph::num_nodes() const {
  std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->nodes.size());
}

Node* Graph::source() const {
  std::lock_guard lock(impl_->mutex);
  impl_->ConnectSourceAndSink();
  return impl_->nodes[0].get();
}

Node* Graph::sink() const {
  std::lock_guard lock(impl_->mutex);
  impl_->ConnectSourceAndSink();
  return impl_->nodes[1].get();
}

Tensor Graph::ConstantValue(Output tensor) const {
  if (!tensor.valid() || tensor.index < 0 || tensor.index >= tensor.node->num_outputs()) return {};
  std::lock_guard lock(impl_->mutex);
  return impl_->constants.Value(tensor);
}

absl::Status Graph::RefineShape(Output tensor, const PartialShape& shape) {
  std::lock_guard lock(impl_->mutex);
  if (!tensor.valid() || tensor.node->graph_ != this || tensor.index < 0 ||
      tensor.index >= tensor.node->num_outputs()) {
    return InvalidArgument("the tensor does not belong to this graph");
  }
  return impl_->Refine(tensor, shape);
}

absl::Status Graph::Replace(Node* node, Node* replacement) {
  std::lock_guard lock(impl_->mutex);
  if (node->graph() != this || replacement->graph() != this || node == replacement ||
      node->output_types_ != replacement->output_types_) {
    return InvalidArgument("node '", node->name(), "' (op ", node->op(),
                           ") cannot be replaced by node '", replacement->name(), "' (op ",
                           replacement->op(),
                           "): they must be of this graph and have equal outputs");
  }
  node->replacement_.store(replacement, std::memory_order_release);
  return absl::OkStatus();
}

void Graph::Finalize() {
  std::lock_guard lock(impl_->mutex);
  impl_->finalized = true;
}

bool Graph::finalized() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->finalized;
}

void Graph::AddToCollection(std::string_view key, std::string value) {
  std::lock_guard lock(impl_->mutex);
  impl_->collections[std::string(key)].push_back(std::move(value));
}

std::vector<std::string> Graph::Collection(std::string_view key) const {
  std::lock_guard lock(impl_->mutex);
  auto found = impl_->collections.find(key);
  return found == impl_->collections.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> Graph::CollectionKeys() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<std::string> keys;
  for (const auto& [key, values] : impl_->collections) keys.push_back(key);
  return keys;
}

void Graph::ClearCollection(std::string_view key) {
  std::lock_guard lock(impl_->mutex);
  auto found = impl_->collections.find(key);
  if (found == impl_->collections.end()) return;
  impl_->collection_kinds.erase(found->first);
  impl_->collections.erase(found);
}

void Graph::set_seed(int64_t seed) {
  std::lock_guard lock(impl_->mutex);
  impl_->seed = seed;
}

std::pair<int64_t, int64_t> Graph::OpSeeds(const int64_t* op_seed) const {
  constexpr int64_t kDefaultGraphSeed = 87654321;
  constexpr int64_t kMaxInt32 = INT32_MAX;
  std::lock_guard lock(impl_->mutex);
  int64_t seed, seed2;
  if (impl_->seed.has_value()) {
    seed = *impl_->seed;
    // TensorFlow takes the number of the last node. Its nodes count from 1, ours from 2 (after
    // source and sink).
    seed2 = op_seed != nullptr ? *op_seed : static_cast<int64_t>(impl_->nodes.size()) - 2;
  } else if (op_seed != nullptr) {
    seed = kDefaultGraphSeed;
    seed2 = *op_seed;
  } else {
    return {0, 0};
  }
  // As tf.get_seed does: 32 bits, and {0, 0}, which would mean random, is avoided.
  auto wrap = [](int64_t s) { return ((s % kMaxInt32) + kMaxInt32) % kMaxInt32; };
  seed = wrap(seed);
  seed2 = wrap(seed2);
  if (seed == 0 && seed2 == 0) seed2 = kMaxInt32;
  return {seed, seed2};
}

int Graph::producer() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->producer;
}

void Graph::set_producer(int version) {
  std::lock_guard lock(impl_->mutex);
  impl_->producer = version;
}

const FunctionDefLibrary& Graph::library() const { return impl_->library; }

absl::Status Graph::AddLibrary(const FunctionDefLibrary& library) {
  std::lock_guard lock(impl_->mutex);
  return impl_->AddLibrary(library);
}

void Graph::ToGraphDef(GraphDef* def) const {
  std::lock_guard lock(impl_->mutex);
  def->Clear();
  def->mutable_versions()->set_producer(impl_->producer);
  for (size_t id = 2; id < impl_->nodes.size(); ++id) {
    const Node& node = *impl_->nodes[id];
    NodeDef* out = def->add_node();
    *out = *node.def_;
    const google::protobuf::RepeatedPtrField<std::string> spelling = out->input();
    out->clear_input();
    // Whoever reads the definition gets what runs here: a node's replacement is used in its stead.
    auto source = [](const Edge* edge) {
      const Node* src = edge->src;
      while (const Node* replacement = src->replacement()) src = replacement;
      return src->name();
    };
    for (const Edge* edge : node.in_data_) {
      if (edge == nullptr) continue;
      out->add_input(edge->src_output == 0 ? source(edge)
                                           : StrCat(source(edge), ":", edge->src_output));
    }
    for (const Edge* edge : node.in_edges_) {
      if (edge->control()) out->add_input(StrCat("^", source(edge)));
    }
    // What is not understood is written as it came.
    if (SameInputs(spelling, out->input())) *out->mutable_input() = spelling;
  }
  if (impl_->library.function_size() > 0 || impl_->library.gradient_size() > 0) {
    *def->mutable_library() = impl_->library;
  }
}

}  // namespace troupe
