#include "api/variable_scope.h"

#include <algorithm>
#include <utility>

#include "api/control_flow.h"
#include "api/embedding.h"
#include "api/nn.h"
#include "api/ops.h"
#include "devices/status_macros.h"
#include "graph/collection_records.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {

namespace {

/// A scope at the top of the graph, of the same device, container and status.
Scope Outside(const Scope& scope) { return scope.WithFlowContext(nullptr); }

/// The norms of vectors along `axes`, which stay as axes of size 1.
Output Norms(const Scope& scope, const Output& w, const std::vector<int32_t>& axes) {
  return ops::Sqrt(scope, ops::Sum(scope, ops::Square(scope, w), Tensor::Vector<int32_t>(axes),
                                   {.keep_dims = true}));
}

/// An existing variable is of this shape and type.
absl::Status CheckSame(const ModelVariable& variable, const Shape& shape, ElementType type) {
  if (variable.type() == type && variable.shape().IsCompatibleWith(PartialShape(shape))) {
    return absl::OkStatus();
  }
  return InvalidArgument("variable '", variable.name(), "' is ", ElementTypeName(variable.type()),
                         " of shape ", variable.shape().ToString(), ", but is asked for as ",
                         ElementTypeName(type), " of shape ", shape.ToString());
}

/// The variable of that name, whose handle has it, too, in a graph that TensorFlow wrote.
ModelVariable Named(const Graph& graph, const std::string& name) {
  ModelVariable variable = ModelVariable::FromHandle(graph, name + "/handle");
  return variable.valid() ? variable : ModelVariable::FromHandle(graph, name);
}

/// Of what is asked for with `options`, what is there; OK and invalid: nothing, and it may be made.
absl::Status Find(const Scope& scope, const std::string& name, const Shape& shape, ElementType type,
                  ModelVariable* found) {
  const Reuse reuse = scope.variables()->reuse;
  const ModelVariable there = Named(*scope.graph(), name);
  if (!there.valid()) {
    if (reuse != Reuse::kYes) return absl::OkStatus();
    return absl::NotFoundError(StrCat("variable '", name, "' does not exist, and its variable ",
                                      "scope reuses variables only"));
  }
  if (reuse == Reuse::kNo) {
    return absl::AlreadyExistsError(
        StrCat("variable '", name,
               "' exists already; use Reuse::kYes or kAuto to share it, or a variable ",
               "scope of another name to make another one"));
  }
  TROUPE_RETURN_IF_ERROR(CheckSame(there, shape, type));
  *found = there;
  return absl::OkStatus();
}

/// Unset options as the settings say.
VariableOptions Complete(const VariableSettings& settings, VariableOptions options) {
  if (!options.type) options.type = settings.type;
  if (options.initializer == nullptr) options.initializer = settings.initializer;
  if (options.initializer == nullptr) {
    options.initializer =
        IsFloating(*options.type) ? GlorotUniformInitializer() : ZerosInitializer();
  }
  if (options.regularizer == nullptr) options.regularizer = settings.regularizer;
  if (options.constraint == nullptr) options.constraint = settings.constraint;
  return options;
}

/// Unless it has a constraint; a variable of an imported graph has none.
void Constrain(const Scope& scope, const ModelVariable& variable, const Constraint& constraint) {
  VariableStore& store = scope.variable_store();
  if (constraint == nullptr || store.ConstraintOf(variable) != nullptr) return;
  store.constraints.emplace_back(variable.handle().node, constraint);
}

/// What a new variable brings along.
void Register(const Scope& scope, const ModelVariable& variable, const VariableOptions& options) {
  if (!variable.valid()) return;
  Constrain(scope, variable, options.constraint);
  if (options.regularizer == nullptr) return;
  const Output loss = options.regularizer(
      Outside(scope).WithPrefix(variable.name() + "/").NewSubScope("Regularizer"),
      variable.value());
  if (loss.valid()) scope.graph()->AddToCollection(collections::kRegularizationLosses, loss.name());
}

absl::Status CheckName(std::string_view name) {
  if (!name.empty() && !name.starts_with('/') && !name.ends_with('/') &&
      name.find("//") == std::string_view::npos) {
    return absl::OkStatus();
  }
  return InvalidArgument("'", name, "' is no name of variables or variable scopes");
}

ModelVariable MakeOrFind(const Scope& scope, const VariableRequest& request) {
  const VariableSettings& settings = *scope.variables();
  const std::string name = settings.prefix + request.name;
  const VariableOptions& options = request.options;
  ModelVariable variable;
  absl::Status status = CheckName(request.name);
  if (status.ok()) status = Find(scope, name, request.shape, *options.type, &variable);
  if (status.ok() && variable.valid()) {
    Constrain(scope, variable, options.constraint);
    return variable;
  }
  if (!status.ok() || !scope.ok()) {
    scope.UpdateStatus(status);
    return ModelVariable();
  }
  const Scope outside = Outside(scope).WithPrefix(settings.prefix);
  if (options.local) {
    const Output initial = options.initializer(outside.NewSubScope(request.name + "/initial_value"),
                                               request.shape, *options.type);
    variable = ModelVariable::Local(outside.WithPrefix(settings.prefix), initial, request.name);
  } else {
    variable = ModelVariable(outside, request.shape, options.initializer, request.name,
                             options.trainable, *options.type);
  }
  if (variable.valid() && variable.name() != name) {
    scope.UpdateStatus(InvalidArgument("variable '", name, "' cannot have that name: a node has"));
    return ModelVariable();
  }
  Register(scope, variable, options);
  return variable;
}

/// Asks the getters, from the last of `count` to the first, then makes or finds.
ModelVariable Ask(const Scope& scope, const VariableRequest& request,
                  const std::vector<VariableGetter>& getters, size_t count) {
  if (count == 0) return MakeOrFind(scope, request);
  return getters[count - 1](scope, request,
                            [&getters, count](const Scope& next, const VariableRequest& changed) {
                              return Ask(next, changed, getters, count - 1);
                            });
}

Scope Within(const Scope& scope, const Scope& nodes, std::string prefix,
             const VariableScopeOptions& options) {
  auto settings = std::make_shared<VariableSettings>(*scope.variables());
  settings->prefix = std::move(prefix);
  settings->opened = std::make_shared<std::set<std::string>>();
  if (options.reuse && *options.reuse != Reuse::kNo) settings->reuse = *options.reuse;
  if (options.initializer != nullptr) settings->initializer = options.initializer;
  if (options.regularizer != nullptr) settings->regularizer = options.regularizer;
  if (options.constraint != nullptr) settings->constraint = options.constraint;
  if (options.partitioner != nullptr) settings->partitioner = options.partitioner;
  if (options.type) settings->type = *options.type;
  if (options.getter != nullptr) settings->getters.push_back(options.getter);
  return nodes.WithVariables(std::move(settings));
}

/// A variable scope of a name that neither nodes nor variable scopes have.
Scope WithUniqueName(const Scope& scope, std::string_view base,
                     const VariableScopeOptions& options) {
  scope.UpdateStatus(CheckName(base));
  const VariableSettings& settings = *scope.variables();
  const Scope top = Outside(scope).WithPrefix(settings.prefix);
  std::string unique = top.UniqueName(base);
  while (!settings.opened->insert(unique.substr(settings.prefix.size())).second) {
    unique = top.UniqueName(base);
  }
  // Nodes and variables of one layer have one name where the prefixes are the same.
  const bool same = settings.prefix == scope.prefix();
  Scope nodes = same ? scope.WithPrefix(unique + "/") : scope.NewSubScope(base);
  return Within(scope, nodes, unique + "/", options);
}

}  // namespace

Regularizer L1Regularizer(double scale) { return L1L2Regularizer(scale, 0.0); }
Regularizer L2Regularizer(double scale) { return L1L2Regularizer(0.0, scale); }
Regularizer L1L2Regularizer(double l1, double l2) {
  return [l1, l2](const Scope& scope, const Output& w) -> Output {
    if (!(l1 >= 0) || !(l2 >= 0)) {
      scope.UpdateStatus(
          InvalidArgument("regularizer: scales must not be negative: ", l1, ", ", l2));
    }
    if (!scope.ok()) return Output();
    Output first, second;
    if (l1 > 0) first = ops::Mul(scope, ReduceSum(scope, ops::Abs(scope, w)), l1);
    if (l2 > 0) second = ops::Mul(scope, ops::L2Loss(scope, w), l2);
    if (!first.valid() || !second.valid()) return first.valid() ? first : second;
    return ops::Add(scope, first, second);
  };
}

Constraint NonNegative() {
  return [](const Scope& scope, const Output& w) { return ops::Maximum(scope, w, 0.0); };
}
Constraint MaxNorm(double maximum, std::vector<int32_t> axes) {
  return [maximum, axes](const Scope& scope, const Output& w) {
    const Output norms = Norms(scope, w, axes);
    const Output wanted = ops::Minimum(scope, norms, maximum);
    return ops::Mul(scope, w, ops::DivNoNan(scope, wanted, norms));
  };
}
Constraint UnitNorm(std::vector<int32_t> axes) {
  return [axes](const Scope& scope, const Output& w) {
    return ops::DivNoNan(scope, w, Norms(scope, w, axes));
  };
}

Partitioner FixedSizePartitioner(int64_t parts, int axis) {
  return [parts, axis](const Shape& shape, ElementType) {
    std::vector<int64_t> result(static_cast<size_t>(shape.rank()), 1);
    if (axis >= 0 && axis < shape.rank()) {
      result[static_cast<size_t>(axis)] = std::max<int64_t>(1, std::min(parts, shape.dim(axis)));
    }
    return result;
  };
}
Partitioner BySizePartitioner(int64_t max_bytes, int axis, int64_t max_parts) {
  return [=](const Shape& shape, ElementType type) {
    std::vector<int64_t> result(static_cast<size_t>(shape.rank()), 1);
    if (axis < 0 || axis >= shape.rank() || shape.dim(axis) == 0) return result;
    const int64_t element =
        type == ElementType::kString ? 16 : static_cast<int64_t>(ElementSize(type));
    const int64_t row = shape.num_elements() / shape.dim(axis) * element;
    const int64_t rows = std::max<int64_t>(1, row == 0 ? shape.dim(axis) : max_bytes / row);
    int64_t parts = (shape.dim(axis) + rows - 1) / rows;
    if (max_parts > 0) parts = std::min(parts, max_parts);
    result[static_cast<size_t>(axis)] = parts;
    return result;
  };
}

Scope VariableScope(const Scope& scope, std::string_view name,
                    const VariableScopeOptions& options) {
  scope.UpdateStatus(CheckName(name));
  const VariableSettings& settings = *scope.variables();
  settings.opened->emplace(name);
  return Within(scope, scope.NewSubScope(name), StrCat(settings.prefix, name, "/"), options);
}

Scope DefaultVariableScope(const Scope& scope, std::string_view base,
                           const VariableScopeOptions& options) {
  const VariableSettings& settings = *scope.variables();
  // There variables may be those of other roots, or of an imported graph.
  if (settings.prefix.empty()) return WithUniqueName(scope, base, options);
  std::string name(base);
  for (int i = 1; settings.opened->contains(name); ++i) name = StrCat(base, "_", i);
  return VariableScope(scope, name, options);
}

Scope UniqueVariableScope(const Scope& scope, std::string_view base,
                          const VariableScopeOptions& options) {
  auto nobody = std::make_shared<VariableSettings>(*scope.variables());
  nobody->reuse = Reuse::kNo;
  return WithUniqueName(scope.WithVariables(std::move(nobody)), base, options);
}

Scope VariableOwner::CallScope(const Scope& scope, std::string_view name) const {
  std::shared_ptr<const VariableSettings>& first = scope.variable_store().owners[identity_];
  if (first == nullptr) {
    Scope own = VariableScope(scope, name);
    first = own.variables();
    return own;
  }
  const Scope again = scope.WithVariables(first);
  return Within(again, again.NewSubScope(name), first->prefix, {.reuse = Reuse::kYes});
}

ModelVariable GetVariable(const Scope& scope, std::string_view name, const Shape& shape,
                          const VariableOptions& options) {
  if (!scope.ok()) return ModelVariable();
  const std::shared_ptr<const VariableSettings>& settings = scope.variables();
  return Ask(scope, {std::string(name), shape, Complete(*settings, options)}, settings->getters,
             settings->getters.size());
}

Constraint VariableStore::ConstraintOf(const ModelVariable& variable) const {
  for (const auto& [handle, constraint] : constraints) {
    if (handle == variable.handle().node) return constraint;
  }
  return nullptr;
}

Output PartitionedModelVariable::Value(const Scope& scope) const {
  if (parts_.empty()) return Output();
  if (parts_.size() == 1) return parts_[0].value();
  std::vector<Output> values;
  for (const ModelVariable& part : parts_) values.push_back(part.value());
  return ops::ConcatV2(scope, values, axis_);
}

Output PartitionedModelVariable::Lookup(const Scope& scope, const Input& ids) const {
  if (axis_ != 0) {
    scope.UpdateStatus(
        InvalidArgument("rows of a variable in parts along axis ", axis_, " cannot be looked up"));
  }
  return scope.ok() ? EmbeddingLookup(scope, parts_, ids, PartitionStrategy::kDiv) : Output();
}

PartitionedModelVariable GetPartitionedVariable(const Scope& scope, std::string_view name,
                                                const Shape& shape,
                                                const VariableOptions& options) {
  PartitionedModelVariable whole;
  whole.shape_ = shape;
  const VariableSettings& settings = *scope.variables();
  if (!scope.ok() || settings.partitioner == nullptr || options.local) {
    const ModelVariable variable = GetVariable(scope, name, shape, options);
    if (variable.valid()) whole.parts_ = {variable};
    return whole;
  }
  const VariableOptions complete = Complete(settings, options);
  const std::vector<int64_t> counts = settings.partitioner(shape, *complete.type);
  int64_t parts = 1;
  bool is_valid = counts.size() == static_cast<size_t>(shape.rank());
  for (size_t i = 0; i < counts.size() && is_valid; ++i) {
    if (counts[i] == 1) continue;
    is_valid = parts == 1 && counts[i] > 1;
    parts = counts[i];
    whole.axis_ = static_cast<int>(i);
  }
  absl::Status status = CheckName(name);
  if (status.ok() && (!is_valid || parts > INT32_MAX)) {
    status = InvalidArgument("the partitioner of variable '", settings.prefix, name, "' of shape ",
                             shape.ToString(), " must give a number of parts for each axis, all ",
                             "but one of them 1");
  }
  const std::string full = StrCat(settings.prefix, name);
  for (int64_t i = 0; i < parts && status.ok(); ++i) {
    ModelVariable part;
    Shape part_shape = shape;
    if (shape.rank() > 0) {
      const int64_t size = shape.dim(whole.axis_);
      part_shape.set_dim(whole.axis_, size / parts + (i < size % parts ? 1 : 0));
    }
    status = Find(scope, StrCat(full, "/part_", i), part_shape, *complete.type, &part);
    if (!part.valid()) break;
    Constrain(scope, part, complete.constraint);
    whole.parts_.push_back(part);
  }
  if (status.ok() && whole.parts_.size() == static_cast<size_t>(parts)) return whole;
  if (status.ok() && !whole.parts_.empty()) {
    status =
        InvalidArgument("variable '", full, "' has ", whole.parts_.size(), " parts, not ", parts);
  }
  whole.parts_.clear();
  scope.UpdateStatus(status);
  if (!scope.ok()) return whole;
  whole.parts_ = PartitionedVariable(Outside(scope).WithPrefix(settings.prefix), shape,
                                     static_cast<int>(parts), complete.initializer, name,
                                     whole.axis_, complete.trainable, *complete.type);
  for (const ModelVariable& part : whole.parts_) Register(scope, part, complete);
  return whole;
}

std::vector<Output> RegularizationLosses(const Scope& scope) {
  std::vector<Output> losses;
  for (const std::string& name : scope.graph()->Collection(collections::kRegularizationLosses)) {
    const absl::StatusOr<Output> loss = scope.graph()->FindOutput(name);
    scope.UpdateStatus(loss.status());
    if (loss.ok()) losses.push_back(*loss);
  }
  return losses;
}

Output RegularizationLoss(const Scope& scope) {
  const std::vector<Output> losses = RegularizationLosses(scope);
  if (losses.empty()) return Const(scope, 0.0f);
  return losses.size() == 1 ? losses[0] : ops::AddN(scope, losses);
}

std::vector<Node*> UpdateOps(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const std::string& name : graph.Collection(collections::kUpdateOps)) {
    if (Node* node = graph.FindNode(name)) nodes.push_back(node);
  }
  return nodes;
}

Output InitializedValue(const Scope& scope, const ModelVariable& variable) {
  if (!scope.ok() || !variable.valid()) return Output();
  const auto def = DescribeVariable(*scope.graph(), variable.handle().node->name());
  const auto initial = def.ok() ? scope.graph()->FindOutput(def->initial_value_name())
                                : absl::StatusOr<Output>(def.status());
  scope.UpdateStatus(initial.status());
  if (!scope.ok()) return Output();
  const Output there = variable.is_resource()
                           ? ops::VarIsInitializedOp(scope, variable.handle())
                           : ops::IsVariableInitialized(scope, variable.handle());
  return Cond(
      scope, there, [&](const Scope& s) { return variable.Read(s); },
      [&](const Scope& s) { return ops::Identity(s, *initial); });
}

}  // namespace troupe
