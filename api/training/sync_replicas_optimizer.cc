#include "api/training/sync_replicas_optimizer.h"

#include <algorithm>

#include "api/control_flow.h"
#include "api/ops.h"
#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// Where a variable is, and nowhere else.
Scope Beside(const Scope& scope, const ModelVariable& variable) {
  return scope.WithDevice("").WithDevice(variable.device());
}

Output AsInt64(const Scope& scope, const Output& x) {
  return !x.valid() || x.type() == ElementType::kInt64 ? x
                                                       : ops::Cast(scope, x, ElementType::kInt64);
}

/// The rows of a gradient by rising index, none twice: what accumulators merge.
Gradient SortRows(const Scope& scope, const Gradient& gradient) {
  const Gradient once = SumRepeatedRows(scope, gradient);
  const Output indices = AsInt64(scope, once.indices);
  const auto order =
      ops::TopKV2(scope, ops::Neg(scope, indices), ops::Size(scope, indices), {.sorted = true});
  const Output zero = Const(scope, int32_t{0});
  return Gradient(ops::GatherV2(scope, once.values, order.indices, zero),
                  ops::Neg(scope, order.values), once.dense_shape);
}

}  // namespace

SyncReplicasOptimizer::SyncReplicasOptimizer(std::unique_ptr<Optimizer> optimizer,
                                             SyncReplicasOptions options, std::string name)
    : Optimizer(std::move(name)), optimizer_(std::move(optimizer)), options_(options) {
  if (options_.total_num_replicas == 0) {
    options_.total_num_replicas = options_.replicas_to_aggregate;
  }
}

absl::Status SyncReplicasOptimizer::CheckOptions(const ModelVariable& global_step) const {
  if (optimizer_ == nullptr) {
    return InvalidArgument(name(), ": there is no optimizer to give the gradients to");
  }
  if (options_.replicas_to_aggregate < 1 || options_.total_num_replicas < 1) {
    return InvalidArgument(name(), ": replicas_to_aggregate and total_num_replicas must be at ",
                           "least 1, got ", options_.replicas_to_aggregate, " and ",
                           options_.total_num_replicas);
  }
  if (!global_step.valid()) {
    return InvalidArgument(name(), ": gradients are told from stale ones by the global step; give ",
                           "it one, GlobalStep(scope)");
  }
  return absl::OkStatus();
}

int SyncReplicasOptimizer::ReplicaOf(const Scope& scope) const {
  int replica = options_.replica;
  if (replica < 0) {
    const absl::StatusOr<DeviceName> device = DeviceName::Parse(scope.DeviceOf("NoOp"));
    replica = device.ok() ? device->task.value_or(0) : 0;
  }
  if (replica >= options_.total_num_replicas) {
    scope.UpdateStatus(InvalidArgument(name(), ": this is to be replica ", replica, " (from 0) of ",
                                       options_.total_num_replicas));
  }
  return replica;
}

Node* SyncReplicasOptimizer::ApplyGradients(const Scope& scope,
                                            const std::vector<GradientAndVariable>& gradients,
                                            const ModelVariable& global_step) {
  scope.UpdateStatus(CheckOptions(global_step));
  if (!scope.ok()) return nullptr;
  replica_ = ReplicaOf(scope);
  if (!scope.ok()) return nullptr;
  global_step_ = global_step;
  const Scope own = scope.NewSubScope(name());
  const Scope outside = Scope(scope.graph()).WithPrefix(own.prefix()).WithDevicesOf(own);
  local_step_ = ModelVariable::Local(outside, Const(outside, int64_t{0}), "local_step");
  scope.UpdateStatus(outside.status());
  if (!scope.ok()) return nullptr;
  std::vector<Node*> contributed, chief_init;
  std::vector<GradientAndVariable> means;
  for (const auto& [gradient, variable] : gradients) {
    if (!gradient.valid()) continue;
    const Collected collected =
        gradient.sparse() ? CollectRows(own, gradient, variable) : Collect(own, gradient, variable);
    if (!own.ok()) return nullptr;
    contributed.push_back(collected.apply);
    chief_init.push_back(collected.set_global_step);
    means.emplace_back(collected.mean, variable);
  }

  const Scope beside = Beside(own, global_step);
  tokens_.clear();
  for (int i = 0; i < options_.total_num_replicas; ++i) {
    const std::string queue = StrCat("sync_token_q_", i);
    tokens_.push_back(ops::FIFOQueueV2(beside.WithOpName(queue), {ElementType::kInt64},
                                       {.shapes = {PartialShape({})},
                                        .container = scope.container(),
                                        .shared_name = StrCat(own.prefix(), queue)}));
  }
  // Gradients that each replica is to give in a step.
  const int each = (options_.replicas_to_aggregate + options_.total_num_replicas - 1) /
                   options_.total_num_replicas;
  local_init_ = LocalInit(own, beside, each);
  const Output next = NextToken(beside, contributed);
  Node* train = local_step_.Assign(own.WithOpName("train"), next);

  // The wrapped optimizer's state has the names that it would have by itself.
  Node* update = optimizer_->ApplyGradients(Beside(scope, global_step), means, global_step);
  if (!own.ok()) return nullptr;
  sync_ = PutTokens(beside.WithControlDependencies({update}), Const(beside, each));

  // At the start every replica gives one without a token.
  const Output begun = ops::Greater(beside, global_step.Read(beside), int64_t{0});
  const Output count = ops::SelectV2(beside, begun, Const(beside, each), Const(beside, each - 1));
  chief_init.push_back(PutTokens(beside.WithControlDependencies(chief_init), count));
  if (!own.ok()) return nullptr;
  chief_init_ = ops::NoOp(own.WithOpName("chief_init").WithControlDependencies(chief_init));
  return train;
}

SyncReplicasOptimizer::Collected SyncReplicasOptimizer::Collect(const Scope& scope,
                                                                const Gradient& gradient,
                                                                const ModelVariable& variable) {
  const std::string name = StrCat(variable.name(), "/grad_accum");
  const Scope s = Beside(scope.NewSubScope(name), variable);
  const Output accumulator = ops::ResourceConditionalAccumulator(
      s, variable.type(), variable.shape(),
      {.container = scope.container(), .shared_name = StrCat(scope.prefix(), name)});
  Collected collected;
  collected.apply =
      ops::ResourceAccumulatorApplyGradient(s, accumulator, local_step_.value(), gradient.values);
  const Output mean = ops::ResourceAccumulatorTakeGradient(
      s, accumulator, options_.replicas_to_aggregate, variable.type());
  if (s.ok()) s.UpdateStatus(s.graph()->RefineShape(mean, variable.shape()));
  collected.mean = Gradient(mean);
  collected.set_global_step =
      ops::ResourceAccumulatorSetGlobalStep(s, accumulator, global_step_.Read(s));
  return collected;
}

SyncReplicasOptimizer::Collected SyncReplicasOptimizer::CollectRows(const Scope& scope,
                                                                    const Gradient& gradient,
                                                                    const ModelVariable& variable) {
  Collected collected;
  const std::string name = StrCat(variable.name(), "/grad_accum");
  const Scope sub = scope.NewSubScope(name), s = Beside(sub, variable);
  absl::StatusOr<Shape> shape = variable.shape().ToShape();
  if (!shape.ok()) {
    scope.UpdateStatus(InvalidArgument(this->name(), ": rows of the variable '", variable.name(),
                                       "' can be collected only if its shape is known, but it is ",
                                       variable.shape().ToString()));
    return collected;
  }
  const Output accumulator = ops::SparseConditionalAccumulator(
      s, variable.type(), variable.shape(),
      {.container = scope.container(), .shared_name = StrCat(scope.prefix(), name)});
  const Gradient rows = SortRows(sub, gradient);
  const Output sizes = Const(s, Tensor::Vector<int64_t>(shape->dims()));
  collected.apply =
      ops::SparseAccumulatorApplyGradient(s, accumulator, local_step_.value(), rows.indices,
                                          rows.values, sizes, /*has_known_shape=*/true);
  const auto mean = ops::SparseAccumulatorTakeGradient(
      s, accumulator, options_.replicas_to_aggregate, variable.type());
  collected.mean = Gradient(mean.values, mean.indices, mean.shape);
  collected.set_global_step = ops::AccumulatorSetGlobalStep(s, accumulator, global_step_.Read(s));
  return collected;
}

Node* SyncReplicasOptimizer::LocalInit(const Scope& scope, const Scope& beside, int each) const {
  std::vector<Node*> emptied;
  if (each == 1) {
    // Nothing is in the queue but what an earlier life of this replica has left: with that, this
    // one would give two gradients of the step that is current. Before the step is read: a token
    // that comes later may be needed.
    const Output queue = tokens_[replica_];
    const std::vector<Output> left = ops::QueueDequeueManyV2(
        beside, queue, ops::QueueSizeV2(beside, queue), {ElementType::kInt64});
    if (!left.empty() && left[0].valid()) emptied.push_back(left[0].node);
  }
  const Output step = global_step_.Read(beside.WithControlDependencies(emptied));
  return local_step_.Assign(scope.WithOpName("local_init"), step);
}

Output SyncReplicasOptimizer::NextToken(const Scope& scope,
                                        const std::vector<Node*>& contributed) const {
  const auto take = [this](const Scope& s) {
    const std::vector<Output> taken =
        ops::QueueDequeueV2(s, tokens_[replica_], {ElementType::kInt64});
    return taken.empty() ? Output() : taken[0];
  };
  const Output first = take(scope.WithControlDependencies(contributed));
  if (!scope.ok()) return Output();
  const std::vector<Output> fresh = WhileLoop(
      scope, {first},
      [&](const Scope& s, absl::Span<const Output> token) {
        return ops::Less(s, token[0], global_step_.Read(s.WithControlDependencies({token[0]})));
      },
      [&](const Scope& s, absl::Span<const Output> token) {
        return std::vector<Output>{take(s.WithControlDependencies({token[0]}))};
      },
      {.parallel_iterations = 1});
  return fresh.empty() ? Output() : fresh[0];
}

Node* SyncReplicasOptimizer::PutTokens(const Scope& scope, const Output& count) const {
  const Output step = global_step_.Read(scope);
  const Output tokens = ops::Fill(scope, ops::Reshape(scope, count, {1}), step);
  std::vector<Node*> put;
  for (const Output& queue : tokens_) {
    put.push_back(ops::QueueEnqueueManyV2(scope, queue, {tokens}));
  }
  return ops::NoOp(scope.WithControlDependencies(put));
}

ModelVariable SyncReplicasOptimizer::GetSlot(const ModelVariable& variable,
                                             const std::string& slot) const {
  return optimizer_ == nullptr ? ModelVariable() : optimizer_->GetSlot(variable, slot);
}

std::vector<std::string> SyncReplicasOptimizer::SlotNames() const {
  return optimizer_ == nullptr ? std::vector<std::string>() : optimizer_->SlotNames();
}

}  // namespace troupe
