#include "graph/gradients/add_gradients.h"

#include <deque>
#include <utility>

#include "devices/status_macros.h"
#include "graph/gradients/aggregate.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

/// One run of AddSymbolicGradients. Nodes are dealt with in reverse topological order: when a
/// node's turn comes, all its consumers on paths from xs to ys have sent it their gradients.
/// Nothing recurses: graphs may be very deep.
class Differentiation {
 public:
  Differentiation(Graph* graph, absl::Span<const Output> ys, absl::Span<const Output> xs,
                  std::string prefix)
      : graph_(graph),
        ys_(ys),
        xs_(xs),
        prefix_(std::move(prefix)),
        slot_(graph->num_nodes(), kNotReached) {}

  absl::Status Run(absl::Span<const Output> grad_ys, std::vector<Gradient>* grads);

 private:
  static constexpr int kNotReached = -2;  // Does not depend on any x.
  static constexpr int kReached = -1;     // Depends on an x; not known to lead to a y.

  /// What is known of a node between xs and ys.
  struct Visit {
    Node* node = nullptr;
    int pending = 0;  ///< Uses of its outputs by nodes whose turn is still to come.
    bool is_y = false, is_x = false, done = false, differentiated = false;
    /// Gradients received: output, contribution.
    std::vector<std::pair<int, Gradient>> received;
    std::vector<Gradient> grads;  ///< Their sums per output, kept for xs.
  };

  /// The visit of the node that feeds input i; nullptr if it is not between xs and ys.
  Visit* Source(const Node* node, int i) {
    const Edge* edge = node->in_data_edge(i);
    return edge == nullptr ? nullptr : Find(edge->src);
  }
  Visit* Find(const Node* node) {
    // Nodes that this differentiation added have larger ids.
    if (node->id() >= static_cast<int>(slot_.size()) || slot_[node->id()] < 0) return nullptr;
    return &visits_[slot_[node->id()]];
  }
  void MarkReached();
  void CollectBetween();
  absl::Status SeedYs(absl::Span<const Output> grad_ys);
  absl::StatusOr<Output> OnesFor(Output y);
  absl::Status SumReceived(Visit& visit);
  absl::Status Differentiate(Visit& visit);
  absl::Status Send(Visit& visit, const GradientContext& context);
  std::string ScopeOf(const Node* node) const {
    return StrCat(prefix_, "/", node->name(), "_grad");
  }

  Graph* graph_;
  absl::Span<const Output> ys_, xs_;
  std::string prefix_;
  std::vector<int> slot_;  // By node id: index in `visits_`, or one of the constants.
  std::vector<Visit> visits_;
  std::deque<int> ready_;
};

void Differentiation::MarkReached() {
  std::vector<Node*> stack;
  auto reach = [&](Node* node) {
    if (slot_[node->id()] != kNotReached) return;
    slot_[node->id()] = kReached;
    stack.push_back(node);
  };
  for (const Output& x : xs_) reach(x.node);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge* edge : node->out_edges()) {
      if (edge->control() || !IsDifferentiable(node->output_type(edge->src_output))) continue;
      reach(edge->dst);
    }
  }
}

void Differentiation::CollectBetween() {
  auto collect = [&](Node* node) {
    if (slot_[node->id()] != kReached) return;
    slot_[node->id()] = static_cast<int>(visits_.size());
    visits_.emplace_back().node = node;
  };
  for (const Output& y : ys_) collect(y.node);
  for (size_t next = 0; next < visits_.size(); ++next) {
    const Node* node = visits_[next].node;
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (const Edge* edge = node->in_data_edge(i)) collect(edge->src);
    }
  }
  for (size_t v = 0; v < visits_.size(); ++v) {
    const Node* node = visits_[v].node;
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (Visit* source = Source(node, i)) ++source->pending;
    }
  }
  for (const Output& x : xs_) {
    if (Visit* visit = Find(x.node)) visit->is_x = true;
  }
}

absl::StatusOr<Output> Differentiation::OnesFor(Output y) {
  const ElementType type = y.type();
  if (IsComplex(type)) {
    return InvalidArgument("the gradient of ", y.name(), ", which is complex, needs a grad_y");
  }
  if (!IsFloating(type) && !IsInteger(type)) {
    return InvalidArgument("cannot differentiate ", y.name(), ": it is of type ",
                           ElementTypeName(type), ", expected numbers");
  }
  GradientBuilder g(graph_, prefix_);
  const PartialShape& shape = y.shape();
  Output ones;
  if (!shape.fully_known()) {
    ones = g.OnesLike(y);
  } else if (shape.rank() == 0) {
    ones = g.ScalarOfType(type, 1);
  } else {
    ones = g.Op("Fill", {g.Shape(y), g.ScalarOfType(type, 1)});
  }
  if (!g.status().ok()) return g.status();
  return ones;
}

absl::Status Differentiation::SeedYs(absl::Span<const Output> grad_ys) {
  for (size_t i = 0; i < ys_.size(); ++i) {
    const Output y = ys_[i];
    Output grad = i < grad_ys.size() ? grad_ys[i] : Output();
    if (grad.valid()) {
      if (grad.type() != y.type()) {
        return InvalidArgument("grad_y ", grad.name(), " is of type ", ElementTypeName(grad.type()),
                               ", expected the type of ", y.name(), ", ",
                               ElementTypeName(y.type()));
      }
      if (!grad.shape().IsCompatibleWith(y.shape())) {
        return InvalidArgument("grad_y ", grad.name(), " has shape ", grad.shape().ToString(),
                               ", expected that of ", y.name(), ", ", y.shape().ToString());
      }
    }
    Visit* visit = Find(y.node);
    if (!grad.valid() && (visit != nullptr || IsComplex(y.type()))) {
      TROUPE_ASSIGN_OR_RETURN(grad, OnesFor(y));
    }
    if (visit == nullptr) continue;
    visit->received.emplace_back(y.index, Gradient(grad));
    if (visit->pending == 0 && !visit->is_y) ready_.push_back(slot_[y.node->id()]);
    visit->is_y = true;
  }
  return absl::OkStatus();
}

absl::Status Differentiation::SumReceived(Visit& visit) {
  visit.grads.assign(visit.node->num_outputs(), Gradient());
  for (int i = 0; i < visit.node->num_outputs(); ++i) {
    std::vector<Gradient> parts;
    for (const auto& [output, grad] : visit.received) {
      if (output == i) parts.push_back(grad);
    }
    GradientBuilder g(graph_, prefix_);
    visit.grads[i] = gradients::SumGradients(g, parts);
    TROUPE_RETURN_IF_ERROR(g.status());
  }
  std::vector<std::pair<int, Gradient>>().swap(visit.received);
  return absl::OkStatus();
}

absl::Status Differentiation::Differentiate(Visit& visit) {
  Node* node = visit.node;
  TROUPE_RETURN_IF_ERROR(SumReceived(visit));
  bool has_gradient = false, leads_on = false;
  for (const Gradient& grad : visit.grads) has_gradient |= grad.valid();
  std::vector<bool> wanted(node->num_inputs());
  for (int i = 0; i < node->num_inputs(); ++i) {
    const bool between = Source(node, i) != nullptr;
    leads_on |= between;
    wanted[i] = between && IsDifferentiable(node->input_type(i));
  }
  if (!has_gradient || !leads_on) return absl::OkStatus();
  absl::StatusOr<GradientFn> function = GradientRegistry::Global()->LookUp(node->op());
  if (!function.ok()) {
    return absl::Status(function.status().code(),
                        StrCat("cannot differentiate through node '", node->name(), "': ",
                               std::string_view(function.status().message().data(),
                                                function.status().message().size()),
                               ", or cut the path with StopGradient"));
  }
  if (*function == nullptr) return absl::OkStatus();
  visit.differentiated = true;
  GradientContext context(node, visit.grads, ScopeOf(node), std::move(wanted));
  absl::Status status = (*function)(context);
  if (status.ok()) status = context.status();
  if (!status.ok()) {
    return absl::Status(status.code(),
                        StrCat("gradient of node '", node->name(), "' (op ", node->op(), "): ",
                               std::string_view(status.message().data(), status.message().size())));
  }
  return Send(visit, context);
}

absl::Status Differentiation::Send(Visit& visit, const GradientContext& context) {
  const Node* node = visit.node;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Gradient& result = context.results()[i];
    const Output grad = result.values;
    Visit* source = grad.valid() ? Source(node, i) : nullptr;
    if (source == nullptr) continue;
    const Output input = node->input(i);
    if (input.type() != ElementType::kResource) {
      if (grad.type() != input.type()) {
        return absl::InternalError(StrCat("gradient of op ", node->op(), " (node '", node->name(),
                                          "') for input ", i, " is of type ",
                                          ElementTypeName(grad.type()), ", expected ",
                                          ElementTypeName(input.type())));
      }
      // Shapes known better in the forward graph keep shape arithmetic out of the backward one.
      if (!result.sparse() && !grad.shape().fully_known() && !(input.shape() == grad.shape())) {
        absl::Status status = graph_->RefineShape(grad, input.shape());
        if (!status.ok()) {
          return InvalidArgument("gradient of op ", node->op(), " (node '", node->name(),
                                 "') for input ", i, " has shape ", grad.shape().ToString(),
                                 ", expected ", input.shape().ToString());
        }
      }
    }
    source->received.emplace_back(input.index, result);
  }
  return absl::OkStatus();
}

absl::Status Differentiation::Run(absl::Span<const Output> grad_ys, std::vector<Gradient>* grads) {
  MarkReached();
  CollectBetween();
  TROUPE_RETURN_IF_ERROR(SeedYs(grad_ys));
  while (!ready_.empty()) {
    Visit& visit = visits_[ready_.front()];
    ready_.pop_front();
    TROUPE_RETURN_IF_ERROR(Differentiate(visit));
    visit.done = true;
    if (!visit.is_x) std::vector<Gradient>().swap(visit.grads);
    for (int i = 0; i < visit.node->num_inputs(); ++i) {
      Visit* source = Source(visit.node, i);
      if (source != nullptr && --source->pending == 0) ready_.push_back(slot_[source->node->id()]);
    }
  }
  for (const Visit& visit : visits_) {
    if (!visit.done) {
      return absl::UnimplementedError(StrCat("cannot differentiate through node '",
                                             visit.node->name(), "' (op ", visit.node->op(),
                                             "): it is part of a loop"));
    }
  }
  grads->assign(xs_.size(), Gradient());
  GradientBuilder g(graph_, prefix_);
  for (size_t i = 0; i < xs_.size(); ++i) {
    Visit* visit = Find(xs_[i].node);
    if (visit == nullptr) continue;
    Gradient& grad = visit->grads[xs_[i].index];
    // A node that was differentiated counts as connected as a whole, as in TensorFlow.
    if (!grad.valid() && visit->differentiated && IsDifferentiable(xs_[i].type())) {
      grad = g.ZerosLike(xs_[i]);
    }
    (*grads)[i] = grad;
  }
  return g.status();
}

absl::Status CheckTensors(const Graph* graph, absl::Span<const Output> tensors,
                          std::string_view what, bool may_be_invalid) {
  for (const Output& tensor : tensors) {
    if (!tensor.valid()) {
      if (may_be_invalid) continue;
      return InvalidArgument("one of the ", what, " is no tensor");
    }
    if (tensor.node->graph() != graph) {
      return InvalidArgument(what, ": tensor ", tensor.name(), " is of another graph");
    }
    if (tensor.index < 0 || tensor.index >= tensor.node->num_outputs()) {
      return InvalidArgument(what, ": node '", tensor.node->name(), "' (op ", tensor.node->op(),
                             ") has no output ", tensor.index, ", it has ",
                             tensor.node->num_outputs());
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDifferentiable(ElementType type) {
  type = RemoveRef(type);
  return IsFloating(type) || IsComplex(type) || type == ElementType::kResource ||
         type == ElementType::kVariant;
}

absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Gradient>* grads,
                                  const GradientOptions& options) {
  grads->assign(xs.size(), Gradient());
  if (ys.empty() || xs.empty()) return absl::OkStatus();
  if (!ys[0].valid()) return InvalidArgument("one of the ys is no tensor");
  Graph* graph = ys[0].node->graph();
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, ys, "ys", false));
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, xs, "xs", false));
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, grad_ys, "grad_ys", true));
  if (!grad_ys.empty() && grad_ys.size() != ys.size()) {
    return InvalidArgument("got ", grad_ys.size(), " grad_ys for ", ys.size(),
                           " ys; give none, or one for each (an invalid Output stands for ones)");
  }
  Differentiation differentiation(graph, ys, xs, graph->UniqueName(options.prefix));
  return differentiation.Run(grad_ys, grads);
}

absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  const GradientOptions& options) {
  std::vector<Gradient> found;
  grads->assign(xs.size(), Output());
  TROUPE_RETURN_IF_ERROR(AddSymbolicGradients(ys, xs, grad_ys, &found, options));
  for (size_t i = 0; i < found.size(); ++i) {
    GradientBuilder g(xs[i].node->graph(), options.prefix);
    (*grads)[i] = g.Dense(found[i]);
    TROUPE_RETURN_IF_ERROR(g.status());
  }
  return absl::OkStatus();
}

absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  std::string_view prefix) {
  GradientOptions options;
  options.prefix = std::string(prefix);
  return AddSymbolicGradients(ys, xs, grad_ys, grads, options);
}

}  // namespace troupe
