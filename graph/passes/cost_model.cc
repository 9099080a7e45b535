#include "graph/passes/cost_model.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

constexpr double kUnknownElements = 1024;
constexpr double kMostBytes = 1e15;
constexpr int64_t kMemory = 16;  // Measurements that an average remembers.

double Dim(const PartialShape& shape, int i) {
  if (i < 0 || i >= shape.rank()) return StaticCost::kAssumedDim;
  const int64_t dim = shape.dim(i);
  return static_cast<double>(dim < 0 ? StaticCost::kAssumedDim : dim);
}

double Elements(const PartialShape& shape) {
  if (shape.unknown_rank()) return kUnknownElements;
  double elements = 1;
  for (int i = 0; i < shape.rank(); ++i) elements *= Dim(shape, i);
  return elements;
}

double Bytes(const PartialShape& shape, ElementType type) {
  // Strings and the like have no fixed size; 16 bytes are typical.
  const size_t size = ElementSize(RemoveRef(type));
  const double bytes = Elements(shape) * static_cast<double>(size > 0 ? size : 16);
  return std::min(bytes, kMostBytes);
}

const PartialShape& InputShape(const Node& node, int i) {
  static const PartialShape* const unknown = new PartialShape;
  if (i >= node.num_inputs() || node.in_data_edge(i) == nullptr) return *unknown;
  return node.input(i).shape();
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// Multiplications and additions per element of the convolution's result: the filter's window and
/// input channels.
double Window(const PartialShape& filter, bool depthwise) {
  if (filter.unknown_rank() || filter.rank() < 3) return 2 * 9 * StaticCost::kAssumedDim;
  double window = 2;
  for (int i = 0; i < filter.rank() - (depthwise ? 2 : 1); ++i) window *= Dim(filter, i);
  return window;
}

double MatMulFlops(const Node& node) {
  const PartialShape& a = InputShape(node, 0);
  if (a.unknown_rank() || a.rank() < 2) return 2 * Elements(node.output_shape(0)) * 32;
  const bool transposed =
      node.attrs().GetOr<bool>("transpose_a", false) || node.attrs().GetOr<bool>("adj_x", false);
  return 2 * Elements(node.output_shape(0)) * Dim(a, a.rank() - (transposed ? 2 : 1));
}

/// Flops per element that is read or written, for what is more than an addition.
double FlopsPerElement(std::string_view op) {
  static const auto* const costly = new std::unordered_set<std::string_view>{
      "Exp",      "Expm1", "Log",  "Log1p", "Sin",    "Cos",     "Tan",     "Tanh",
      "Sigmoid",  "Pow",   "Erf",  "Erfc",  "Lgamma", "Digamma", "Softmax", "LogSoftmax",
      "Softplus", "Elu",   "Selu", "Atan2", "Igamma", "Igammac", "Zeta",    "Polygamma"};
  if (costly->count(op) > 0) return 15;
  if (StartsWith(op, "Random") || StartsWith(op, "SparseSoftmax") ||
      StartsWith(op, "SoftmaxCross") || op == "TruncatedNormal") {
    return 20;
  }
  if (StartsWith(op, "MaxPool") || StartsWith(op, "AvgPool")) return 8;
  return 1;
}

bool IsConvolution(std::string_view op) {
  return StartsWith(op, "Conv2D") || StartsWith(op, "Conv3D") || StartsWith(op, "DepthwiseConv2d");
}

bool IsMatMul(std::string_view op) {
  return op == "MatMul" || StartsWith(op, "BatchMatMul") || op == "SparseMatMul" ||
         op == "_FusedMatMul";
}

bool IsDecomposition(std::string_view op) {
  for (std::string_view name : {"MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant",
                                "Cholesky", "MatrixSolve", "MatrixTriangularSolve", "Qr", "Svd",
                                "SelfAdjointEigV2", "CholeskyGrad", "MatrixSolveLs"}) {
    if (op == name) return true;
  }
  return false;
}

}  // namespace

double StaticCost::work_us(const DeviceFigures& figures) const {
  return std::max(flops / figures.flops_per_us, bytes / figures.bytes_per_us);
}

bool IsTrivialOp(const Node& node) {
  static const auto* const trivial =
      new std::unordered_set<std::string_view>{"Identity",
                                               "IdentityN",
                                               "StopGradient",
                                               "PreventGradient",
                                               "Reshape",
                                               "Squeeze",
                                               "ExpandDims",
                                               "Shape",
                                               "ShapeN",
                                               "Rank",
                                               "Size",
                                               "NoOp",
                                               "Const",
                                               "Placeholder",
                                               "PlaceholderV2",
                                               "PlaceholderWithDefault",
                                               "VariableV2",
                                               "Variable",
                                               "VarHandleOp",
                                               "ReadVariableOp",
                                               "TemporaryVariable",
                                               "RefIdentity",
                                               "Snapshot",
                                               "_Send",
                                               "_Recv",
                                               "_Arg",
                                               "_Retval",
                                               "IsVariableInitialized",
                                               "VarIsInitializedOp"};
  return IsControlFlow(node.op()) || trivial->count(node.op()) > 0;
}

StaticCost EstimateCost(const Node& node) {
  StaticCost cost;
  if (IsTrivialOp(node)) return cost;
  const std::string_view op = node.op();
  double elements = 0;
  for (int i = 0; i < node.num_inputs(); ++i) {
    cost.bytes += Bytes(InputShape(node, i), node.input_type(i));
    elements = std::max(elements, Elements(InputShape(node, i)));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    cost.bytes += Bytes(node.output_shape(i), node.output_type(i));
    elements = std::max(elements, Elements(node.output_shape(i)));
  }
  if (IsMatMul(op) && node.num_outputs() > 0) {
    cost.flops = MatMulFlops(node);
  } else if (IsConvolution(op) && node.num_outputs() > 0) {
    const bool depthwise = StartsWith(op, "Depthwise");
    const bool to_filter = op.find("BackpropFilter") != std::string_view::npos;
    const bool to_input = op.find("BackpropInput") != std::string_view::npos;
    const PartialShape& filter = to_filter ? node.output_shape(0) : InputShape(node, 1);
    // All three do one multiplication and addition per result of the forward one and window place.
    const PartialShape& result = to_filter || to_input ? InputShape(node, 2) : node.output_shape(0);
    cost.flops = Elements(result) * Window(filter, depthwise);
  } else if (IsDecomposition(op)) {
    const PartialShape& a = InputShape(node, 0);
    cost.flops = 4 * Elements(a) * Dim(a, a.rank() - 1);
  } else {
    cost.flops = elements * FlopsPerElement(op);
  }
  return cost;
}

int64_t EstimateOutputBytes(const Node& node, int port) {
  if (node.op() == "VarHandleOp") {  // What it stands for.
    return static_cast<int64_t>(
        Bytes(node.attrs().GetOr<PartialShape>("shape", PartialShape()),
              node.attrs().GetOr<ElementType>("dtype", ElementType::kFloat)));
  }
  return static_cast<int64_t>(Bytes(node.output_shape(port), node.output_type(port)));
}

void CostModel::Record(const std::string& node, double time_us,
                       absl::Span<const int64_t> output_bytes, const std::string& device_type) {
  if (!std::isfinite(time_us) || time_us < 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  Measured& known = nodes_[node];
  if (known.device_type != device_type) {
    if (known.times > 0) known.elsewhere[known.device_type] = known.time_us;
    const auto before = known.elsewhere.extract(device_type);
    known.device_type = device_type;
    known.times = before.empty() ? 0 : 1;
    known.time_us = before.empty() ? 0 : before.mapped();
  }
  known.times = std::min(known.times + 1, kMemory);
  known.time_us += (time_us - known.time_us) / static_cast<double>(known.times);
  if (known.output_bytes.size() < output_bytes.size()) {
    known.output_bytes.resize(output_bytes.size(), -1);
  }
  for (size_t i = 0; i < output_bytes.size(); ++i) {
    if (output_bytes[i] < 0) continue;
    int64_t& average = known.output_bytes[i];
    average = average < 0 ? output_bytes[i] : average + (output_bytes[i] - average) / known.times;
  }
}

bool CostModel::Lookup(const std::string& node, Measured* measured) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  *measured = found->second;
  return true;
}

double CostModel::TimeUs(const SubNode& node) const {
  if (node.kind != SubNode::Kind::kOp) return 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = nodes_.find(node.original->name());
    if (found != nodes_.end()) return found->second.time_us;
  }
  return EstimateCost(*node.original).time_us();
}

double CostModel::TimeUs(const SubNode& node, const std::string& device_type,
                         const DeviceFigures& figures) const {
  if (node.kind != SubNode::Kind::kOp) return 0;
  const StaticCost estimate = EstimateCost(*node.original);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = nodes_.find(node.original->name());
  if (found == nodes_.end()) return estimate.time_us(figures);
  const Measured& known = found->second;
  if (known.device_type == device_type) return known.time_us;
  const auto elsewhere = known.elsewhere.find(device_type);
  if (elsewhere != known.elsewhere.end()) return elsewhere->second;
  const auto on_cpu = known.elsewhere.find("CPU");
  if (known.device_type != "CPU" && on_cpu == known.elsewhere.end()) {
    return estimate.time_us(figures);
  }
  const double cpu_us = known.device_type == "CPU" ? known.time_us : on_cpu->second;
  const double estimated_us = estimate.work_us();
  if (estimated_us <= 0) return figures.node_us;
  const double work_us = std::max(0.0, cpu_us - DeviceFigures().node_us);
  return figures.node_us + work_us * estimate.work_us(figures) / estimated_us;
}

int64_t CostModel::OutputBytes(const SubNode& node, int port) const {
  if (node.kind == SubNode::Kind::kConstant) {
    return static_cast<int64_t>(node.values[port].bytes());
  }
  const int original_port = node.kind == SubNode::Kind::kFeed ? node.fed_port : port;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = nodes_.find(node.original->name());
    if (found != nodes_.end() &&
        original_port < static_cast<int>(found->second.output_bytes.size()) &&
        found->second.output_bytes[original_port] >= 0) {
      return found->second.output_bytes[original_port];
    }
  }
  return EstimateOutputBytes(*node.original, original_port);
}

void CostModel::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  nodes_.clear();
}

void CostModel::Forget(const std::string& node) {
  std::lock_guard<std::mutex> lock(mutex_);
  nodes_.erase(node);
}

int64_t CostModel::num_measured() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(nodes_.size());
}

}  // namespace troupe
