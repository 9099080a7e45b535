#include "api/training/variables.h"

#include <unordered_set>
#include <utility>

#include "api/ops.h"
#include "devices/status_macros.h"
#include "graph/collection_records.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {

ModelVariable::ModelVariable(const Scope& scope, const Output& initial_value, std::string_view name,
                             bool trainable) {
  Build(scope.NewSubScope(name), initial_value, trainable ? Kind::kTrainable : Kind::kGlobal);
}

ModelVariable::ModelVariable(const Scope& scope, const Shape& shape, const Initializer& initializer,
                             std::string_view name, bool trainable, ElementType type) {
  const Scope own = scope.NewSubScope(name);
  Build(own, initializer(own.NewSubScope("initial_value"), shape, type),
        trainable ? Kind::kTrainable : Kind::kGlobal);
}

ModelVariable ModelVariable::Slice(const Scope& scope, const Output& initial_value,
                                   std::string_view name, const SaveSliceInfo& slice,
                                   bool trainable) {
  ModelVariable variable;
  absl::Status status = slice.Check();
  if (status.ok() && initial_value.valid() &&
      !initial_value.shape().IsCompatibleWith(PartialShape(slice.extent))) {
    status = InvalidArgument("variable '", name, "' has the shape ",
                             initial_value.shape().ToString(), ", but is said to be the part '",
                             slice.ShapeAndSlice(), "' of '", slice.full_name, "'");
  }
  if (!status.ok()) {
    scope.UpdateStatus(status);
    return variable;
  }
  variable.Build(scope.NewSubScope(name), initial_value,
                 trainable ? Kind::kTrainable : Kind::kGlobal, &slice);
  return variable;
}

ModelVariable ModelVariable::Local(const Scope& scope, const Output& initial_value,
                                   std::string_view name) {
  ModelVariable variable;
  const std::string device = scope.DeviceOf("NoOp");
  variable.Build(scope.WithDevice("").WithDevice(device).NewSubScope(name), initial_value,
                 Kind::kLocal);
  return variable;
}

void ModelVariable::Build(const Scope& scope, const Output& initial_value, Kind kind,
                          const SaveSliceInfo* slice) {
  if (!scope.ok() || !initial_value.valid()) return;
  type_ = initial_value.type();
  shape_ = initial_value.shape();
  // The prefix is unique and so is the variable's name: all steps and sessions know it by that.
  name_ = scope.prefix();
  name_.pop_back();
  handle_ = Output(scope.WithOpName("handle").AddNode("VarHandleOp", [&](ScopedSpec& spec) {
    spec.Attr("dtype", type_).Attr("shape", shape_);
    spec.Attr("container", scope.container()).Attr("shared_name", name_);
    if (slice == nullptr) return;
    spec.Attr(kSliceOfAttr, slice->full_name).Attr(kShapeAndSliceAttr, slice->ShapeAndSlice());
  }));
  initializer_ = ops::AssignVariableOp(scope.WithOpName("assign"), handle_, initial_value);
  value_ =
      ops::ReadVariableOp(scope.WithOpName("read").WithNoControlDependencies(), handle_, type_);
  if (!scope.ok()) {
    handle_ = Output();
    return;
  }
  Graph* graph = scope.graph().get();
  VariableDef def;
  def.set_variable_name(handle_.name());
  def.set_initializer_name(initializer_->name());
  def.set_initial_value_name(initial_value.name());
  def.set_snapshot_name(value_.name());
  def.set_is_resource(true);
  def.set_trainable(kind == Kind::kTrainable);
  if (slice != nullptr) slice->ToProto(def.mutable_save_slice_info_def());
  SetVariableDef(graph, std::move(def));
  const bool local = kind == Kind::kLocal;
  graph->AddToCollection(local ? collections::kLocalVariables : collections::kVariables,
                         handle_.node->name());
  graph->AddToCollection(
      local ? collections::kLocalVariableInitializers : collections::kVariableInitializers,
      initializer_->name());
  if (kind == Kind::kTrainable) {
    graph->AddToCollection(collections::kTrainableVariables, handle_.node->name());
  }
}

ModelVariable ModelVariable::FromHandle(const Graph& graph, const std::string& name) {
  ModelVariable variable;
  const absl::StatusOr<VariableDef> def = DescribeVariable(graph, name);
  if (!def.ok()) return variable;
  Node* const handle = graph.FindNode(name);
  Node* const assign = graph.FindNode(def->initializer_name());
  const absl::StatusOr<Output> value = graph.FindOutput(def->snapshot_name());
  if (assign == nullptr || !value.ok()) return variable;
  constexpr std::string_view kHandle = "/handle";
  variable.name_ = name.ends_with(kHandle) ? name.substr(0, name.size() - kHandle.size()) : name;
  variable.handle_ = Output(handle);
  variable.value_ = *value;
  variable.initializer_ = assign;
  variable.type_ = value->type();
  variable.shape_ = value->shape();
  return variable;
}

std::vector<ModelVariable> ModelVariable::Trainable(const Graph& graph) {
  std::vector<ModelVariable> variables;
  for (const std::string& name : graph.Collection(collections::kTrainableVariables)) {
    ModelVariable variable = FromHandle(graph, name);
    if (variable.valid()) variables.push_back(variable);
  }
  return variables;
}

Output ModelVariable::Read(const Scope& scope) const {
  return is_resource() ? ops::ReadVariableOp(scope, handle_, type_) : ops::Identity(scope, handle_);
}
Node* ModelVariable::Assign(const Scope& scope, const Input& value) const {
  if (is_resource()) return ops::AssignVariableOp(scope, handle_, value);
  return ops::Assign(scope, handle_, value).node;
}
Node* ModelVariable::AssignAdd(const Scope& scope, const Input& value) const {
  if (is_resource()) return ops::AssignAddVariableOp(scope, handle_, value);
  return ops::AssignAdd(scope, handle_, value).node;
}
Node* ModelVariable::AssignSub(const Scope& scope, const Input& value) const {
  if (is_resource()) return ops::AssignSubVariableOp(scope, handle_, value);
  return ops::AssignSub(scope, handle_, value).node;
}
bool ModelVariable::is_resource() const {
  return !valid() || handle_.type() == ElementType::kResource;
}

std::vector<ModelVariable> PartitionedVariable(const Scope& scope, const Shape& shape, int parts,
                                               const Initializer& initializer,
                                               std::string_view name, int axis, bool trainable,
                                               ElementType type) {
  std::vector<ModelVariable> variables;
  if (axis < 0 || axis >= shape.rank() || parts < 1 || parts > shape.dim(axis)) {
    scope.UpdateStatus(InvalidArgument("variable '", name, "' of shape ", shape.ToString(),
                                       " cannot have ", parts, " parts along axis ", axis));
    return variables;
  }
  const Scope own = scope.NewSubScope(name);
  SaveSliceInfo slice;
  slice.full_name = own.prefix();
  slice.full_name.pop_back();
  slice.full_shape = shape;
  slice.offset.assign(static_cast<size_t>(shape.rank()), 0);
  slice.extent.assign(shape.dims().begin(), shape.dims().end());
  Output whole;
  if (!initializer.makes_parts()) {
    whole = initializer(own.NewSubScope("initial_value"), shape, type);
  }
  for (int part = 0; part < parts; ++part) {
    slice.extent[axis] = shape.dim(axis) / parts + (part < shape.dim(axis) % parts ? 1 : 0);
    const absl::StatusOr<Shape> part_shape = Shape::Create(slice.extent);
    if (!scope.ok() || !part_shape.ok()) break;  // Smaller than the whole: it can be created.
    const std::string part_name = StrCat("part_", part);
    const Scope initial_value = own.NewSubScope(part_name + "/initial_value");
    const Output initial =
        initializer.makes_parts()
            ? initializer.Part(initial_value, *part_shape, shape, type)
            : ops::Slice(initial_value, whole, Tensor::Vector<int64_t>(slice.offset),
                         Tensor::Vector<int64_t>(slice.extent));
    variables.push_back(ModelVariable::Slice(own, initial, part_name, slice, trainable));
    slice.offset[axis] += slice.extent[axis];
  }
  return variables;
}

namespace {

/// Those of a collection of initializers, and those of a collection of variables, which may have
/// come with a MetaGraph that lists no initializers.
Node* RunAll(const Scope& scope, const char* initializers, const char* variables) {
  const Graph& graph = *scope.graph();
  std::vector<Node*> nodes;
  std::unordered_set<Node*> seen;
  const auto add = [&](Node* node) {
    if (node != nullptr && seen.insert(node).second) nodes.push_back(node);
  };
  for (const std::string& name : graph.Collection(initializers)) add(graph.FindNode(name));
  for (const std::string& name : graph.Collection(variables)) {
    add(ModelVariable::FromHandle(graph, name).initializer());
  }
  return ops::NoOp(scope.WithControlDependencies(nodes));
}

}  // namespace

Node* GlobalVariablesInitializer(const Scope& scope) {
  return RunAll(scope.WithOpName("init"), collections::kVariableInitializers,
                collections::kVariables);
}

Node* LocalVariablesInitializer(const Scope& scope) {
  return RunAll(scope.WithOpName("init_local"), collections::kLocalVariableInitializers,
                collections::kLocalVariables);
}

Output ReportUninitializedVariables(const Scope& scope, absl::Span<const char* const> of) {
  const Scope own = scope.NewSubScope("report_uninitialized_variables");
  std::vector<std::string> names;
  std::vector<Output> missing;
  std::vector<std::string> handles;
  for (const char* collection : of) {
    const std::vector<std::string> more = scope.graph()->Collection(collection);
    handles.insert(handles.end(), more.begin(), more.end());
  }
  for (const std::string& handle : handles) {
    const ModelVariable variable = ModelVariable::FromHandle(*scope.graph(), handle);
    if (!variable.valid()) continue;
    names.push_back(variable.name());
    const Output there = variable.is_resource()
                             ? ops::VarIsInitializedOp(own, variable.handle())
                             : ops::IsVariableInitialized(own, variable.handle());
    missing.push_back(ops::LogicalNot(own, there));
    if (!own.ok()) return Output();
  }
  if (names.empty()) return Const(own, Tensor::Vector<std::string>({}));
  const Output rows = ops::Where(own, ops::Pack(own, missing));
  const Output all = Const(own, Tensor::Vector<std::string>(names));
  return ops::GatherNd(own.WithOpName("names"), all, rows);
}

ModelVariable GlobalStep(const Scope& scope) {
  Graph* graph = scope.graph().get();
  const std::vector<std::string> known = graph->Collection(collections::kGlobalStep);
  const Scope root = Scope(scope.graph()).WithDevicesOf(scope);
  if (known.empty()) {
    ModelVariable step(root, Const(root, int64_t{0}), "global_step", /*trainable=*/false);
    scope.UpdateStatus(root.status());
    if (step.valid()) graph->AddToCollection(collections::kGlobalStep, step.handle().node->name());
    return step;
  }
  return ModelVariable::FromHandle(*graph, known.front());
}

}  // namespace troupe
