#include "actors/state/resource_state.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/crc32c.h"
#include "devices/tensor_proto.h"
#include "graph/protos/training_state.pb.h"
#include "kernels/io/reader.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

template <typename State>
SaveDone<State> AsResourceState(SaveDone<ResourceState> done) {
  return [done = std::move(done)](absl::StatusOr<State> state) {
    if (!state.ok()) return done(state.status());
    done(ResourceState(*std::move(state)));
  };
}

void SetValue(Variable* variable, const Tensor& value, const RestoreDone& done) {
  if (variable->type() != value.type() || !variable->shape().IsCompatibleWith(value.shape())) {
    return done(InvalidArgument("the state is of another type or shape"));
  }
  variable->Lend([done, value](Variable::Lease lease) {
    lease.set_value(value);
    lease.Release();
    done(absl::OkStatus());
  });
}

/// Takes so many tuples from the front of others.
class TupleSource {
 public:
  explicit TupleSource(std::vector<Tuple> tuples) : tuples_(std::move(tuples)) {}

  bool Has(int64_t count) const {
    return count >= 0 && static_cast<uint64_t>(count) <= tuples_.size() - next_;
  }
  Tuple Next() { return std::move(tuples_[next_++]); }
  std::vector<Tuple> Next(int64_t count) {
    std::vector<Tuple> some;
    for (int64_t i = 0; i < count; ++i) some.push_back(Next());
    return some;
  }
  int64_t left() const { return static_cast<int64_t>(tuples_.size() - next_); }

 private:
  std::vector<Tuple> tuples_;
  size_t next_ = 0;
};

void Append(std::vector<Tuple> tuples, std::vector<Tuple>* all) {
  for (Tuple& tuple : tuples) all->push_back(std::move(tuple));
}

// Each kind as a message, with its tuples added to `all`, and back.

void ToDef(QueueState state, ResourceStateDef* to, std::vector<Tuple>* all) {
  QueueStateDef* def = to->mutable_queue();
  def->set_closed(state.closed);
  def->set_closing(state.closing);
  def->set_generator(state.generator);
  def->set_elements(static_cast<int64_t>(state.elements.size()));
  def->set_waiting(static_cast<int64_t>(state.waiting.size()));
  def->set_waiting_calls(state.num_waiting_calls);
  Append(std::move(state.elements), all);
  Append(std::move(state.waiting), all);
}

void ToDef(ReaderPosition state, ResourceStateDef* to, std::vector<Tuple>*) {
  to->set_reader(std::move(state.message));
}

void ToDef(VariableValue state, ResourceStateDef* to, std::vector<Tuple>* all) {
  to->set_variable(true);
  if (state.value.valid()) all->push_back({std::move(state.value)});
}

void ToDef(StagingAreaState state, ResourceStateDef* to, std::vector<Tuple>* all) {
  StagingAreaStateDef* def = to->mutable_staging_area();
  def->set_capacity(state.options.capacity);
  def->set_memory_limit(state.options.memory_limit);
  Append(std::move(state.tuples), all);
}

void ToDef(StagingMapState state, ResourceStateDef* to, std::vector<Tuple>* all) {
  StagingMapStateDef* def = to->mutable_staging_map();
  def->set_capacity(state.options.capacity);
  def->set_memory_limit(state.options.memory_limit);
  for (const ElementType type : state.types) def->add_type(static_cast<DataType>(type));
  for (auto& [key, tuple] : state.complete) {
    def->add_complete(key);
    all->push_back(std::move(tuple));
  }
  for (auto& [key, tuple] : state.incomplete) {
    def->add_incomplete(key);
    all->push_back(std::move(tuple));
  }
}

void ToDef(BarrierState state, ResourceStateDef* to, std::vector<Tuple>* all) {
  BarrierStateDef* def = to->mutable_barrier();
  def->set_next_index(state.next_index);
  def->set_closed(state.closed);
  def->set_cancelled(state.cancelled);
  def->set_ready(static_cast<int64_t>(state.ready.size()));
  for (auto* entries : {&state.ready, &state.incomplete}) {
    for (BarrierState::Entry& entry : *entries) {
      def->add_index(entry.index);
      def->add_key(std::move(entry.key));
      all->push_back(std::move(entry.values));
    }
  }
}

void ToDef(AccumulatorState state, ResourceStateDef* to, std::vector<Tuple>* all) {
  AccumulatorStateDef* def = to->mutable_accumulator();
  def->set_step(state.step);
  def->set_count(state.count);
  def->mutable_index()->Add(state.indices.begin(), state.indices.end());
  def->mutable_row_count()->Add(state.counts.begin(), state.counts.end());
  if (state.values.valid()) all->push_back({std::move(state.values)});
}

absl::Status WrongCount() { return InvalidArgument("the state has not as many tuples as it says"); }

absl::StatusOr<ResourceState> FromDef(const QueueStateDef& def, TupleSource tuples) {
  QueueState state;
  state.closed = def.closed();
  state.closing = def.closing();
  state.generator = def.generator();
  state.num_waiting_calls = def.waiting_calls();
  if (!tuples.Has(def.elements())) return WrongCount();
  state.elements = tuples.Next(def.elements());
  if (def.waiting() != tuples.left()) return WrongCount();
  state.waiting = tuples.Next(def.waiting());
  return ResourceState(std::move(state));
}

absl::StatusOr<ResourceState> FromDef(const StagingMapStateDef& def, TupleSource tuples) {
  StagingMapState state;
  state.options = {def.capacity(), def.memory_limit()};
  for (const int type : def.type()) state.types.push_back(static_cast<ElementType>(type));
  if (tuples.left() != def.complete_size() + def.incomplete_size()) return WrongCount();
  for (const int64_t key : def.complete()) state.complete[key] = tuples.Next();
  for (const int64_t key : def.incomplete()) state.incomplete[key] = tuples.Next();
  return ResourceState(std::move(state));
}

absl::StatusOr<ResourceState> FromDef(const BarrierStateDef& def, TupleSource tuples) {
  BarrierState state;
  state.next_index = def.next_index();
  state.closed = def.closed();
  state.cancelled = def.cancelled();
  if (tuples.left() != def.index_size() || def.key_size() != def.index_size() ||
      !tuples.Has(def.ready())) {
    return WrongCount();
  }
  for (int i = 0; i < def.index_size(); ++i) {
    auto& entries = i < def.ready() ? state.ready : state.incomplete;
    entries.push_back({def.index(i), def.key(i), tuples.Next()});
  }
  return ResourceState(std::move(state));
}

/// The tensor of which the only tuple consists; an invalid one if there is no tuple.
absl::StatusOr<Tensor> OneTensor(TupleSource tuples) {
  if (tuples.left() == 0) return Tensor();
  if (tuples.left() > 1) return WrongCount();
  Tuple tuple = tuples.Next();
  if (tuple.size() != 1) return WrongCount();
  return std::move(tuple[0]);
}

absl::StatusOr<ResourceState> FromDef(const AccumulatorStateDef& def, TupleSource tuples) {
  AccumulatorState state{.step = def.step(), .count = def.count()};
  TROUPE_ASSIGN_OR_RETURN(state.values, OneTensor(std::move(tuples)));
  state.indices.assign(def.index().begin(), def.index().end());
  state.counts.assign(def.row_count().begin(), def.row_count().end());
  return ResourceState(std::move(state));
}

}  // namespace

std::vector<Tensor*> TensorsOf(ResourceState* state) {
  std::vector<Tensor*> tensors;
  const auto add = [&tensors](Tuple& tuple) {
    for (Tensor& tensor : tuple) tensors.push_back(&tensor);
  };
  if (auto* queue = std::get_if<QueueState>(state)) {
    for (auto* tuples : {&queue->elements, &queue->waiting}) {
      for (Tuple& tuple : *tuples) add(tuple);
    }
  } else if (auto* area = std::get_if<StagingAreaState>(state)) {
    for (Tuple& tuple : area->tuples) add(tuple);
  } else if (auto* map = std::get_if<StagingMapState>(state)) {
    for (auto* tuples : {&map->complete, &map->incomplete}) {
      for (auto& [key, tuple] : *tuples) add(tuple);
    }
  } else if (auto* variable = std::get_if<VariableValue>(state)) {
    tensors.push_back(&variable->value);
  } else if (auto* barrier = std::get_if<BarrierState>(state)) {
    for (auto* entries : {&barrier->ready, &barrier->incomplete}) {
      for (BarrierState::Entry& entry : *entries) add(entry.values);
    }
  } else if (auto* accumulator = std::get_if<AccumulatorState>(state)) {
    tensors.push_back(&accumulator->values);
  }
  return tensors;
}

void SaveResource(Resource* resource, SaveDone<ResourceState> done) {
  if (auto* queue = dynamic_cast<Queue*>(resource)) {
    return queue->Save(AsResourceState<QueueState>(std::move(done)));
  }
  if (auto* area = dynamic_cast<TupleStage*>(resource)) {
    return area->Save(AsResourceState<StagingAreaState>(std::move(done)));
  }
  if (auto* map = dynamic_cast<StagingMap*>(resource)) {
    return map->Save(AsResourceState<StagingMapState>(std::move(done)));
  }
  if (auto* barrier = dynamic_cast<TupleBarrier*>(resource)) {
    return barrier->Save(AsResourceState<BarrierState>(std::move(done)));
  }
  if (auto* accumulator = dynamic_cast<Accumulator*>(resource)) {
    return accumulator->Save(AsResourceState<AccumulatorState>(std::move(done)));
  }
  if (auto* reader = dynamic_cast<Reader*>(resource)) {
    return reader->SaveState([done = std::move(done)](absl::StatusOr<Tuple> saved) {
      if (!saved.ok()) return done(saved.status());
      done(ResourceState(ReaderPosition{(*saved)[0].unchecked_scalar<std::string>()}));
    });
  }
  if (auto* variable = dynamic_cast<Variable*>(resource)) {
    return variable->Lend([done = std::move(done)](Variable::Lease lease) {
      done(ResourceState(VariableValue{lease.value()}));
    });
  }
  done(
      absl::UnimplementedError(StrCat("what ", resource->DebugString(), " holds cannot be saved")));
}

void RestoreResource(Resource* resource, ResourceState state, RestoreDone done) {
  auto* const queue = dynamic_cast<Queue*>(resource);
  auto* const area = dynamic_cast<TupleStage*>(resource);
  auto* const map = dynamic_cast<StagingMap*>(resource);
  auto* const barrier = dynamic_cast<TupleBarrier*>(resource);
  auto* const accumulator = dynamic_cast<Accumulator*>(resource);
  auto* const reader = dynamic_cast<Reader*>(resource);
  auto* const variable = dynamic_cast<Variable*>(resource);
  if (auto* of = std::get_if<QueueState>(&state); of != nullptr && queue != nullptr) {
    queue->Restore(std::move(*of), std::move(done));
  } else if (auto* of = std::get_if<StagingAreaState>(&state); of != nullptr && area != nullptr) {
    area->Restore(std::move(*of), std::move(done));
  } else if (auto* of = std::get_if<StagingMapState>(&state); of != nullptr && map != nullptr) {
    map->Restore(std::move(*of), std::move(done));
  } else if (auto* of = std::get_if<BarrierState>(&state); of != nullptr && barrier != nullptr) {
    barrier->Restore(std::move(*of), std::move(done));
  } else if (auto* of = std::get_if<AccumulatorState>(&state);
             of != nullptr && accumulator != nullptr) {
    accumulator->Restore(std::move(*of), std::move(done));
  } else if (auto* of = std::get_if<ReaderPosition>(&state); of != nullptr && reader != nullptr) {
    reader->RestoreState(std::move(of->message),
                         [done = std::move(done)](const auto& result) { done(result.status()); });
  } else if (auto* of = std::get_if<VariableValue>(&state); of != nullptr && variable != nullptr) {
    SetValue(variable, of->value, done);
  } else {
    done(InvalidArgument("the state is not one of ", resource->DebugString()));
  }
}

void PlaceToDef(const ResourcePlace& place, ResourceStateDef* def) {
  def->set_node(place.node);
  def->set_device(place.device);
  def->set_container(place.container);
  def->set_name(place.name);
}

ResourcePlace PlaceFromDef(const ResourceStateDef& def) {
  return {def.node(), def.device(), def.container(), def.name()};
}

std::vector<Tuple> StateToDef(ResourceState state, ResourceStateDef* def) {
  std::vector<Tuple> tuples;
  std::visit([&](auto& of) { ToDef(std::move(of), def, &tuples); }, state);
  return tuples;
}

absl::StatusOr<ResourceState> StateFromDef(const ResourceStateDef& def, std::vector<Tuple> tuples) {
  TupleSource source(std::move(tuples));
  switch (def.of_case()) {
    case ResourceStateDef::kQueue:
      return FromDef(def.queue(), std::move(source));
    case ResourceStateDef::kReader:
      if (source.left() > 0) return WrongCount();
      return ResourceState(ReaderPosition{def.reader()});
    case ResourceStateDef::kVariable: {
      TROUPE_ASSIGN_OR_RETURN(Tensor value, OneTensor(std::move(source)));
      return ResourceState(VariableValue{std::move(value)});
    }
    case ResourceStateDef::kStagingArea: {
      const StagingAreaStateDef& area = def.staging_area();
      StagingAreaState state{{area.capacity(), area.memory_limit()}, source.Next(source.left())};
      return ResourceState(std::move(state));
    }
    case ResourceStateDef::kStagingMap:
      return FromDef(def.staging_map(), std::move(source));
    case ResourceStateDef::kBarrier:
      return FromDef(def.barrier(), std::move(source));
    case ResourceStateDef::kAccumulator:
      return FromDef(def.accumulator(), std::move(source));
    case ResourceStateDef::OF_NOT_SET:
      break;
  }
  return InvalidArgument("the state is of a kind that this version does not know");
}

absl::Status TupleToDef(const Tuple& tuple, TupleDef* def) {
  for (const Tensor& component : tuple) {
    TensorProto* to = def->add_component();
    if (!component.valid()) continue;
    const bool plain = IsPlain(component.type()) || component.type() == ElementType::kString;
    if (!plain || component.space() == MemorySpace::kDevice) {
      return absl::UnimplementedError(
          "it holds tensors of types, or in a memory, from which they cannot be saved");
    }
    TensorToProto(component, to);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tuple> TupleFromDef(TupleDef* def) {
  Tuple tuple;
  for (TensorProto& component : *def->mutable_component()) {
    if (component.dtype() == DT_INVALID) {
      tuple.emplace_back();
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor tensor, TakeWholeTensorFromProto(&component));
    if (!IsPlain(tensor.type()) && tensor.type() != ElementType::kString) {
      return InvalidArgument("it has a tensor of type ", ElementTypeName(tensor.type()));
    }
    tuple.push_back(std::move(tensor));
  }
  def->Clear();
  return tuple;
}

ResourceParts::ResourceParts(KeptResource resource)
    : place_(std::move(resource.place)), kind_(std::make_unique<ResourceStateDef>()) {
  // What is handed over as it came is known again by its buffers: as long as it is there, nothing
  // else has their addresses. Accumulators make the tensors anew; their kind counts what comes.
  const bool by_buffers = !std::holds_alternative<AccumulatorState>(resource.state);
  tuples_ = StateToDef(std::move(resource.state), kind_.get());
  std::string kind = kind_->SerializeAsString();
  for (const Tuple& tuple : tuples_) {
    if (!by_buffers) break;
    for (const Tensor& component : tuple) {
      if (component.valid()) absl::StrAppend(&kind, "\n", absl::Hex(component.raw_data()));
    }
  }
  kind_crc_ = Crc32c(kind);
}
ResourceParts::~ResourceParts() = default;

absl::Status ResourceParts::Get(int64_t first, int64_t max_bytes, ResourceStateDef* part) const {
  if (first == 0) *part = *kind_;
  PlaceToDef(place_, part);
  part->set_tuples(size());
  part->set_first(first);
  part->set_kind_crc(kind_crc_);
  for (int64_t i = first; i >= 0 && i < size(); ++i) {
    if (max_bytes <= 0) break;
    const absl::Status status = TupleToDef(tuples_[static_cast<size_t>(i)], part->add_tuple());
    if (!status.ok()) return WithContext(StrCat("'", place_.node, "': "), status);
    const auto bytes = static_cast<int64_t>(part->tuple().rbegin()->ByteSizeLong());
    if (bytes > max_bytes && i > first) {
      part->mutable_tuple()->RemoveLast();
      break;
    }
    max_bytes -= bytes;
  }
  return absl::OkStatus();
}

JoinedResource::JoinedResource() = default;
JoinedResource::~JoinedResource() = default;
JoinedResource::JoinedResource(JoinedResource&&) noexcept = default;
JoinedResource& JoinedResource::operator=(JoinedResource&&) noexcept = default;

bool JoinedResource::IsNext(const ResourceStateDef& part) const {
  if (first_ == nullptr) return part.first() == 0;
  return part.first() == size() && part.kind_crc() == first_->kind_crc() &&
         part.tuples() == first_->tuples();
}

absl::Status JoinedResource::Add(ResourceStateDef* part) {
  if (!IsNext(*part)) return InvalidArgument("it is not the next part of the state");
  for (TupleDef& tuple : *part->mutable_tuple()) {
    TROUPE_ASSIGN_OR_RETURN(tuples_.emplace_back(), TupleFromDef(&tuple));
  }
  part->clear_tuple();
  if (first_ == nullptr) first_ = std::make_unique<ResourceStateDef>(std::move(*part));
  return absl::OkStatus();
}

bool JoinedResource::complete() const { return first_ != nullptr && size() >= first_->tuples(); }

absl::StatusOr<KeptResource> JoinedResource::Take() {
  TROUPE_ASSIGN_OR_RETURN(ResourceState state, StateFromDef(*first_, std::move(tuples_)));
  return KeptResource{PlaceFromDef(*first_), std::move(state)};
}

}  // namespace troupe
