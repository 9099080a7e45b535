#include "kernels/sync/staging_map.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/data/element_memory.h"

namespace troupe {
namespace {

absl::Status CheckIncreasing(const std::string& what, const std::vector<int64_t>& indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || (i > 0 && indices[i] <= indices[i - 1])) {
      return InvalidArgument(what, ": indices of components must be >= 0 and increase, got ",
                             indices[i], i > 0 ? StrCat(" after ", indices[i - 1]) : "");
    }
  }
  return absl::OkStatus();
}

}  // namespace

void StagingMap::Put(int64_t key, std::vector<ElementType> types, std::vector<int64_t> indices,
                     Tuple values, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<PutCall>>(this, token, 0, std::move(done));
  call->key = key;
  call->types = std::move(types);
  call->indices = std::move(indices);
  call->values = std::move(values);
  Submit(std::move(call));
}

void StagingMap::Ask(TakeCall::What what, int64_t key, std::vector<int64_t> indices,
                     std::vector<ElementType> types, CancellationToken* token, Done done) {
  const int outputs = static_cast<int>(types.size()) + (what == TakeCall::What::kFirstKey ? 1 : 0);
  auto call = std::make_unique<CallbackCall<TakeCall>>(this, token, outputs, std::move(done));
  call->what = what;
  call->key = key;
  call->indices = std::move(indices);
  call->types = std::move(types);
  Submit(std::move(call));
}

// --- putting in ----------------------------------------------------------------------------------

absl::Status StagingMap::PutCall::Check(bool*) const {
  const auto* map = static_cast<StagingMap*>(resource());
  const std::string name = map->DebugString();
  TROUPE_RETURN_IF_ERROR(CheckIncreasing(name, indices));
  std::vector<ElementType> expected;
  for (const int64_t index : indices) {
    if (index >= static_cast<int64_t>(types.size())) {
      return InvalidArgument(name, ": index ", index, " of key ", key,
                             " is out of bounds: a tuple has ", types.size(), " components");
    }
    expected.push_back(types[index]);
  }
  TROUPE_RETURN_IF_ERROR(CheckTypes(name, values, expected));
  const int64_t bytes = TupleBytes(values), limit = map->options_.memory_limit;
  if (limit == 0 || bytes <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat(
      name, ": tensors of ", bytes, " bytes do not fit its memory limit of ", limit, " bytes"));
}

absl::Status StagingMap::PutCall::AlreadyThere(const StagingMap& map) const {
  return InvalidArgument(map.DebugString(), ": key ", key, " is there already");
}

absl::StatusOr<WaitingResource::Call::Progress> StagingMap::PutCall::Serve() {
  auto* map = static_cast<StagingMap*>(resource());
  if (map->complete_.empty() && map->incomplete_.empty()) map->types_ = types;
  if (map->types_ != types) {
    return InvalidArgument(map->DebugString(), ": its tuples have ", map->types_.size(),
                           " components of other types than the ", types.size(),
                           " of what is put in");
  }
  const int64_t bytes = TupleBytes(values);
  if (indices.size() != types.size()) return PutPart(map, bytes);
  if (map->complete_.contains(key)) return AlreadyThere(*map);
  const auto size = static_cast<int64_t>(map->complete_.size());
  if (map->options_.capacity > 0 && size >= map->options_.capacity) return Progress::kNone;
  if (!map->HasRoomFor(bytes)) return Progress::kNone;
  map->complete_.emplace(key, Tuple()).first->second = std::move(values);
  map->bytes_ += bytes;
  return Progress::kOver;
}

absl::StatusOr<WaitingResource::Call::Progress> StagingMap::PutCall::PutPart(StagingMap* map,
                                                                             int64_t bytes) {
  auto known = map->incomplete_.find(key);
  size_t parts = indices.size();
  if (known != map->incomplete_.end()) {
    const Tuple& tuple = known->second;
    for (const int64_t index : indices) {
      if (!tuple[index].valid()) continue;
      return InvalidArgument(map->DebugString(), ": component ", index, " of key ", key,
                             " is there already");
    }
    parts += static_cast<size_t>(std::count_if(tuple.begin(), tuple.end(),
                                               [](const Tensor& value) { return value.valid(); }));
  }
  if (!map->HasRoomFor(bytes)) return Progress::kNone;
  const bool completes = parts == types.size();
  if (completes && map->complete_.contains(key)) return AlreadyThere(*map);
  if (known == map->incomplete_.end()) {
    known = map->incomplete_.emplace(key, Tuple(types.size())).first;
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    known->second[indices[i]] = std::move(values[i]);
  }
  map->bytes_ += bytes;
  // Whoever completes a tuple does not wait for room: others may wait for this very tuple.
  if (completes) map->complete_.insert(map->incomplete_.extract(known));
  return Progress::kOver;
}

// --- taking out ----------------------------------------------------------------------------------

absl::Status StagingMap::TakeCall::Check(bool*) const {
  const std::string name = resource()->DebugString();
  if (indices.size() != types.size()) {
    return InvalidArgument(name, ": there are ", indices.size(), " indices for ", types.size(),
                           " components");
  }
  return CheckIncreasing(name, indices);
}

absl::StatusOr<WaitingResource::Call::Progress> StagingMap::TakeCall::Serve() {
  auto* map = static_cast<StagingMap*>(resource());
  if (what == What::kClear) {
    map->complete_.clear();
    map->incomplete_.clear();
    map->bytes_ = 0;
    return Progress::kOver;
  }
  const auto found = what == What::kFirstKey ? map->complete_.begin() : map->complete_.find(key);
  if (found == map->complete_.end()) return Progress::kNone;
  Tuple& tuple = found->second;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto wrong = [&](const auto&... how) {
      return InvalidArgument(map->DebugString(), ": component ", indices[i], " of key ",
                             found->first, how...);
    };
    if (indices[i] >= static_cast<int64_t>(tuple.size())) {
      return wrong(" is out of bounds: a tuple has ", tuple.size(), " components");
    }
    const Tensor& value = tuple[indices[i]];
    if (!value.valid()) return wrong(" has been taken already");
    if (value.type() != types[i]) {
      return wrong(" is of type ", ElementTypeName(value.type()), ", but ",
                   ElementTypeName(types[i]), " is expected");
    }
  }
  key = found->first;
  taken_.reserve(indices.size());
  for (const int64_t index : indices) {
    if (what == What::kLookAt) {
      taken_.push_back(tuple[index]);
    } else {
      taken_.push_back(std::move(tuple[index]));
      tuple[index].Reset();
    }
  }
  if (what == What::kLookAt) return Progress::kOver;
  map->bytes_ -= TupleBytes(taken_);
  if (std::none_of(tuple.begin(), tuple.end(), [](const Tensor& t) { return t.valid(); })) {
    map->complete_.erase(found);
  }
  return Progress::kOver;
}

absl::Status StagingMap::TakeCall::Conclude(KernelContext& ctx) {
  if (what == What::kFirstKey) ctx.set_output(0, Tensor::Scalar(key));
  return PutElements(ctx, what == What::kFirstKey ? 1 : 0, std::move(taken_));
}

// --- its state -----------------------------------------------------------------------------------

namespace {

/// Tuples of a state have a component or more of the types; `may_be_whole`: all of them.
absl::Status CheckState(const std::string& what, const std::vector<ElementType>& types,
                        const std::map<int64_t, Tuple>& tuples, bool may_be_whole) {
  for (const auto& [key, tuple] : tuples) {
    if (tuple.size() != types.size()) {
      return InvalidArgument(what, ": the state has a tuple of ", tuple.size(),
                             " components under key ", key, ", not of ", types.size());
    }
    size_t there = 0;
    for (size_t i = 0; i < types.size(); ++i) {
      if (!tuple[i].valid()) continue;
      ++there;
      if (tuple[i].type() == types[i]) continue;
      return InvalidArgument(what, ": component ", i, " of key ", key, " of the state is of type ",
                             ElementTypeName(tuple[i].type()), ", not ", ElementTypeName(types[i]));
    }
    if (there > 0 && (may_be_whole || there < types.size())) continue;
    return InvalidArgument(what, ": key ", key, " of the state has ", there, " of ", types.size(),
                           " components");
  }
  return absl::OkStatus();
}

}  // namespace

void StagingMap::Save(SaveDone<StagingMapState> done) {
  const auto state = std::make_shared<StagingMapState>();
  AtOnce(
      [this, state] {
        state->options = options_;
        if (!complete_.empty() || !incomplete_.empty()) state->types = types_;
        state->complete = complete_;
        state->incomplete = incomplete_;
        return absl::OkStatus();
      },
      [state, done = std::move(done)](absl::Status status) {
        done(status.ok() ? absl::StatusOr<StagingMapState>(std::move(*state)) : status);
      });
}

void StagingMap::Restore(StagingMapState state, RestoreDone done) {
  AtOnce(
      [this, state = std::move(state)]() -> absl::Status {
        TROUPE_RETURN_IF_ERROR(CheckState(DebugString(), state.types, state.complete, true));
        TROUPE_RETURN_IF_ERROR(CheckState(DebugString(), state.types, state.incomplete, false));
        std::map<int64_t, Tuple> complete = state.complete, incomplete = state.incomplete;
        types_ = state.types;
        complete_.swap(complete);
        incomplete_.swap(incomplete);
        bytes_ = 0;
        for (const auto* tuples : {&complete_, &incomplete_}) {
          for (const auto& [key, tuple] : *tuples) bytes_ += TupleBytes(tuple);
        }
        return absl::OkStatus();
      },
      std::move(done));
}

}  // namespace troupe
