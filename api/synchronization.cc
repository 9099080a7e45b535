#include "api/synchronization.h"

#include <numeric>

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

// --- critical sections ---------------------------------------------------------------------------

CriticalSection::CriticalSection(const Scope& scope, Options options)
    : handle_(ops::MutexV2(scope.WithOpName(options.name),
                           {.container = scope.container(), .shared_name = options.shared_name})) {}

std::vector<Output> CriticalSection::Execute(
    const Scope& scope, const std::function<std::vector<Output>(const Scope& locked)>& body) const {
  std::vector<Output> given;
  Node* const back = ExecuteNodes(scope, [&](const Scope& locked) {
    given = body(locked);
    std::vector<Node*> nodes;
    for (const Output& output : given) nodes.push_back(output.node);
    return nodes;
  });
  if (back == nullptr) return given;
  const Scope after = scope.WithControlDependencies({&back, 1});
  for (Output& output : given) output = ops::Identity(after, output);
  return given;
}

Node* CriticalSection::ExecuteNodes(
    const Scope& scope, const std::function<std::vector<Node*>(const Scope& locked)>& body) const {
  const Output lock = ops::MutexLock(scope, handle_);
  if (!scope.ok()) return nullptr;
  const std::vector<Node*> nodes = body(scope.WithControlDependencies({lock}));
  if (!scope.ok()) return nullptr;
  return ops::ConsumeMutexLock(scope.WithControlDependencies(nodes), lock);
}

// --- barriers ------------------------------------------------------------------------------------

Barrier::Barrier(const Scope& scope, const std::vector<ElementType>& types,
                 const std::vector<Shape>& shapes, Options options)
    : types_(types) {
  if (scope.ok() && shapes.size() != types.size()) {
    scope.UpdateStatus(InvalidArgument("a barrier of ", types.size(), " components needs as many ",
                                       "shapes, got ", shapes.size()));
  }
  handle_ = ops::Barrier(scope.WithOpName(options.name), types,
                         {.shapes = std::vector<PartialShape>(shapes.begin(), shapes.end()),
                          .container = scope.container(),
                          .shared_name = options.shared_name});
}

Node* Barrier::InsertMany(const Scope& scope, int64_t component_index, const Input& keys,
                          const Input& values) const {
  return ops::BarrierInsertMany(scope, handle_, keys, values, component_index);
}

Barrier::Batch Barrier::TakeMany(const Scope& scope, const Input& n, bool allow_small_batch) const {
  auto taken =
      ops::BarrierTakeMany(scope, handle_, n, types_, {.allow_small_batch = allow_small_batch});
  return {taken.indices, taken.keys, std::move(taken.values)};
}

Node* Barrier::Close(const Scope& scope, bool cancel_pending_enqueues) const {
  return ops::BarrierClose(scope, handle_, {.cancel_pending_enqueues = cancel_pending_enqueues});
}

Output Barrier::ReadySize(const Scope& scope) const {
  return ops::BarrierReadySize(scope, handle_);
}

Output Barrier::IncompleteSize(const Scope& scope) const {
  return ops::BarrierIncompleteSize(scope, handle_);
}

// --- staging areas -------------------------------------------------------------------------------

namespace {

/// The attributes that all nodes of an area have.
template <typename Attrs>
Attrs AttrsOf(const Scope& scope, const StagingLimits& limits) {
  Attrs attrs;
  attrs.capacity = limits.capacity;
  attrs.memory_limit = limits.memory_limit;
  attrs.container = scope.container();
  attrs.shared_name = limits.shared_name;
  return attrs;
}

}  // namespace

StagingArea::StagingArea(const Scope& scope, std::vector<ElementType> types, StagingLimits limits)
    : types_(std::move(types)), limits_(std::move(limits)) {
  if (limits_.shared_name.empty()) limits_.shared_name = scope.UniqueName("StagingArea");
}

Node* StagingArea::Put(const Scope& scope, const InputList& values) const {
  const std::vector<Output> tensors = values.ToOutputs(scope);
  if (!scope.ok()) return nullptr;
  bool fits = tensors.size() == types_.size();
  for (size_t i = 0; fits && i < types_.size(); ++i) fits = tensors[i].type() == types_[i];
  if (!fits) {
    scope.UpdateStatus(InvalidArgument("the values are not of the types of staging area '",
                                       limits_.shared_name, "'"));
    return nullptr;
  }
  return ops::Stage(scope, tensors, AttrsOf<ops::StageAttrs>(scope, limits_));
}

OutputList StagingArea::Get(const Scope& scope) const {
  return ops::Unstage(scope, types_, AttrsOf<ops::UnstageAttrs>(scope, limits_));
}

OutputList StagingArea::Peek(const Scope& scope, const Input& index) const {
  return ops::StagePeek(scope, index, types_, AttrsOf<ops::StagePeekAttrs>(scope, limits_));
}

Output StagingArea::Size(const Scope& scope) const {
  return ops::StageSize(scope, types_, AttrsOf<ops::StageSizeAttrs>(scope, limits_));
}

Node* StagingArea::Clear(const Scope& scope) const {
  return ops::StageClear(scope, types_, AttrsOf<ops::StageClearAttrs>(scope, limits_));
}

MapStagingArea::MapStagingArea(const Scope& scope, std::vector<ElementType> types, bool ordered,
                               StagingLimits limits)
    : types_(std::move(types)), ordered_(ordered), limits_(std::move(limits)) {
  if (limits_.shared_name.empty()) limits_.shared_name = scope.UniqueName("MapStagingArea");
}

std::vector<ElementType> MapStagingArea::TypesOf(const Scope& scope,
                                                 std::vector<int32_t>* indices) const {
  if (indices->empty()) {
    indices->resize(types_.size());
    std::iota(indices->begin(), indices->end(), 0);
  }
  std::vector<ElementType> types;
  for (const int32_t index : *indices) {
    if (index < 0 || index >= static_cast<int32_t>(types_.size())) {
      scope.UpdateStatus(InvalidArgument("staging area '", limits_.shared_name, "' has ",
                                         types_.size(), " components, and none of index ", index));
      return types_;
    }
    types.push_back(types_[index]);
  }
  return types;
}

namespace {

Tensor ToTensor(const std::vector<int32_t>& indices) {
  return Tensor::Vector<int32_t>(absl::MakeConstSpan(indices));
}

}  // namespace

Node* MapStagingArea::Put(const Scope& scope, const Input& key, const InputList& values,
                          const std::vector<int32_t>& indices) const {
  std::vector<int32_t> at = indices;
  TypesOf(scope, &at);
  return ordered_ ? ops::OrderedMapStage(scope, key, ToTensor(at), values, types_,
                                         AttrsOf<ops::OrderedMapStageAttrs>(scope, limits_))
                  : ops::MapStage(scope, key, ToTensor(at), values, types_,
                                  AttrsOf<ops::MapStageAttrs>(scope, limits_));
}

OutputList MapStagingArea::Get(const Scope& scope, const Input& key,
                               const std::vector<int32_t>& indices) const {
  std::vector<int32_t> at = indices;
  const std::vector<ElementType> types = TypesOf(scope, &at);
  return ordered_ ? ops::OrderedMapUnstage(scope, key, ToTensor(at), types,
                                           AttrsOf<ops::OrderedMapUnstageAttrs>(scope, limits_))
                  : ops::MapUnstage(scope, key, ToTensor(at), types,
                                    AttrsOf<ops::MapUnstageAttrs>(scope, limits_));
}

MapStagingArea::KeyAndValues MapStagingArea::GetAny(const Scope& scope,
                                                    const std::vector<int32_t>& indices) const {
  std::vector<int32_t> at = indices;
  const std::vector<ElementType> types = TypesOf(scope, &at);
  if (ordered_) {
    auto taken = ops::OrderedMapUnstageNoKey(
        scope, ToTensor(at), types, AttrsOf<ops::OrderedMapUnstageNoKeyAttrs>(scope, limits_));
    return {taken.key, std::move(taken.values)};
  }
  auto taken = ops::MapUnstageNoKey(scope, ToTensor(at), types,
                                    AttrsOf<ops::MapUnstageNoKeyAttrs>(scope, limits_));
  return {taken.key, std::move(taken.values)};
}

OutputList MapStagingArea::Peek(const Scope& scope, const Input& key,
                                const std::vector<int32_t>& indices) const {
  std::vector<int32_t> at = indices;
  const std::vector<ElementType> types = TypesOf(scope, &at);
  return ordered_ ? ops::OrderedMapPeek(scope, key, ToTensor(at), types,
                                        AttrsOf<ops::OrderedMapPeekAttrs>(scope, limits_))
                  : ops::MapPeek(scope, key, ToTensor(at), types,
                                 AttrsOf<ops::MapPeekAttrs>(scope, limits_));
}

Output MapStagingArea::Size(const Scope& scope) const {
  return ordered_
             ? ops::OrderedMapSize(scope, types_, AttrsOf<ops::OrderedMapSizeAttrs>(scope, limits_))
             : ops::MapSize(scope, types_, AttrsOf<ops::MapSizeAttrs>(scope, limits_));
}

Output MapStagingArea::IncompleteSize(const Scope& scope) const {
  return ordered_ ? ops::OrderedMapIncompleteSize(
                        scope, types_, AttrsOf<ops::OrderedMapIncompleteSizeAttrs>(scope, limits_))
                  : ops::MapIncompleteSize(scope, types_,
                                           AttrsOf<ops::MapIncompleteSizeAttrs>(scope, limits_));
}

Node* MapStagingArea::Clear(const Scope& scope) const {
  return ordered_ ? ops::OrderedMapClear(scope, types_,
                                         AttrsOf<ops::OrderedMapClearAttrs>(scope, limits_))
                  : ops::MapClear(scope, types_, AttrsOf<ops::MapClearAttrs>(scope, limits_));
}

}  // namespace troupe
