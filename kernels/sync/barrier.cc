#include "kernels/sync/barrier.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/data/join.h"

namespace troupe {

void TupleBarrier::Insert(int64_t component, Tensor keys, Tensor values, CancellationToken* token,
                          Done done) {
  auto call = std::make_unique<CallbackCall<InsertCall>>(this, token, 0, std::move(done));
  call->component = component;
  call->keys = std::move(keys);
  call->values = std::move(values);
  Submit(std::move(call));
}

void TupleBarrier::Take(int64_t n, bool allow_small_batch, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<TakeCall>>(
      this, token, static_cast<int>(options_.types.size()) + 2, std::move(done));
  call->n = n;
  call->allow_small_batch = allow_small_batch;
  Submit(std::move(call));
}

void TupleBarrier::Close(bool cancel_pending, Done done) {
  auto call = std::make_unique<CallbackCall<CloseCall>>(this, nullptr, 0, std::move(done));
  call->cancel_pending = cancel_pending;
  Submit(std::move(call));
}

void TupleBarrier::Served() noexcept {
  ready_size_.store(static_cast<int64_t>(ready_.size()), std::memory_order_release);
  incomplete_size_.store(static_cast<int64_t>(incomplete_.size()), std::memory_order_release);
}

// --- insertions ----------------------------------------------------------------------------------

absl::Status TupleBarrier::InsertCall::Check(bool*) const {
  const BarrierOptions& options = static_cast<TupleBarrier*>(resource())->options_;
  const auto wrong = [&](const auto&... what) {
    return InvalidArgument(resource()->DebugString(), ": ", what...);
  };
  const auto count = static_cast<int64_t>(options.types.size());
  if (component < 0 || component >= count) {
    return wrong("there are ", count, " components, so there is none of index ", component);
  }
  if (keys.type() != ElementType::kString || keys.rank() != 1) {
    return wrong("keys must be a vector of strings, got ", ElementTypeName(keys.type()), " ",
                 keys.shape().ToString());
  }
  if (values.type() != options.types[component]) {
    return wrong("component ", component, " is of type ", ElementTypeName(options.types[component]),
                 ", got ", ElementTypeName(values.type()));
  }
  if (values.rank() < 1 || values.dim(0) != keys.dim(0)) {
    return wrong("there are ", keys.dim(0), " keys, but values have shape ",
                 values.shape().ToString());
  }
  if (keys.dim(0) > 0 && values.num_elements() == 0) {
    return wrong("values without elements are not supported: they have shape ",
                 values.shape().ToString());
  }
  const Shape row = WithoutFirst(values.shape());
  if (keys.dim(0) > 0 && row != options.shapes[component]) {
    return wrong("shape mismatch in component ", component, ": expected ",
                 options.shapes[component].ToString(), ", got ", row.ToString());
  }
  return absl::OkStatus();
}

/// What could go wrong half-way is looked for first.
absl::Status TupleBarrier::InsertCall::CheckKeys(const TupleBarrier& barrier) const {
  absl::flat_hash_set<std::string_view> seen;
  for (const std::string& key : keys.unchecked_values<std::string>()) {
    const auto known = barrier.incomplete_.find(key);
    if (known == barrier.incomplete_.end() && barrier.closed_) {
      return absl::CancelledError(
          StrCat(barrier.DebugString(), " is closed: it takes no new key '", key, "'"));
    }
    const bool has_value =
        known != barrier.incomplete_.end() && known->second.values[component].valid();
    if (has_value || !seen.insert(key).second) {
      return InvalidArgument(barrier.DebugString(), ": key '", key,
                             "' already has a value for component ", component);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<WaitingResource::Call::Progress> TupleBarrier::InsertCall::Serve() {
  auto* barrier = static_cast<TupleBarrier*>(resource());
  const absl::Span<const std::string> names = keys.unchecked_values<std::string>();
  if (barrier->closed_ &&
      (barrier->cancelled_ || (!names.empty() && barrier->incomplete_.empty()))) {
    return absl::CancelledError(StrCat(barrier->DebugString(), " is closed"));
  }
  TROUPE_RETURN_IF_ERROR(CheckKeys(*barrier));
  const Shape row = barrier->options_.shapes[component];
  const int64_t index = barrier->next_index_;
  bool new_keys = false;
  for (size_t i = 0; i < names.size(); ++i) {
    auto it = barrier->incomplete_.find(names[i]);
    if (it == barrier->incomplete_.end()) {
      Incomplete fresh{index, Tuple(barrier->options_.types.size())};
      it = barrier->incomplete_.emplace(names[i], std::move(fresh)).first;
      new_keys = true;
    }
    Incomplete& tuple = it->second;
    tuple.values[component] = RowOf(values, row, static_cast<int64_t>(i));
    const bool complete = std::all_of(tuple.values.begin(), tuple.values.end(),
                                      [](const Tensor& value) { return value.valid(); });
    if (!complete) continue;
    const auto ready = barrier->ready_.emplace(tuple.index, Ready{names[i], {}});
    ready->second.values = std::move(tuple.values);
    barrier->incomplete_.erase(it);
  }
  if (new_keys) ++barrier->next_index_;
  return Progress::kOver;
}

absl::StatusOr<WaitingResource::Call::Progress> TupleBarrier::CloseCall::Serve() {
  auto* barrier = static_cast<TupleBarrier*>(resource());
  if (barrier->closed_ && (barrier->cancelled_ || !cancel_pending)) {
    return absl::CancelledError(StrCat(barrier->DebugString(), " is already closed"));
  }
  barrier->closed_ = true;
  barrier->cancelled_ = cancel_pending;
  if (cancel_pending) barrier->incomplete_.clear();
  return Progress::kOver;
}

// --- taking out ----------------------------------------------------------------------------------

absl::Status TupleBarrier::TakeCall::Check(bool*) const {
  if (n >= 0) return absl::OkStatus();
  return InvalidArgument(resource()->DebugString(), ": cannot take ", n,
                         " elements: num_elements must be >= 0");
}

absl::StatusOr<WaitingResource::Call::Progress> TupleBarrier::TakeCall::Serve() {
  auto* barrier = static_cast<TupleBarrier*>(resource());
  const auto ready = static_cast<int64_t>(barrier->ready_.size());
  int64_t taking = n;
  if (barrier->closed_) {
    // Those who wait already get what is still completed; who comes later gets what there is.
    const bool to_come = !allow_small_batch || waited_;
    const int64_t available =
        ready + (to_come ? static_cast<int64_t>(barrier->incomplete_.size()) : 0);
    if (allow_small_batch) taking = std::min(taking, ready);
    if (available < std::max<int64_t>(taking, 1)) {
      return absl::OutOfRangeError(StrCat(barrier->DebugString(),
                                          " is closed and has insufficient elements (requested ", n,
                                          ", total size ", available, ")"));
    }
    if (taking == 0 && n > 0) taking = 1;  // It has to wait for that.
  }
  if (ready < taking) {
    waited_ = true;
    return Progress::kNone;
  }
  taken_.reserve(static_cast<size_t>(taking));
  for (int64_t i = 0; i < taking; ++i) {
    const auto first = barrier->ready_.begin();
    taken_.emplace_back(first->first, std::move(first->second));
    barrier->ready_.erase(first);
  }
  return Progress::kOver;
}

void TupleBarrier::TakeCall::Withdraw() {
  auto* barrier = static_cast<TupleBarrier*>(resource());
  // Before those of the same index that were completed later.
  for (auto it = taken_.rbegin(); it != taken_.rend(); ++it) {
    barrier->ready_.emplace_hint(barrier->ready_.lower_bound(it->first), it->first,
                                 std::move(it->second));
  }
  taken_.clear();
}

absl::Status TupleBarrier::TakeCall::Conclude(KernelContext& ctx) {
  const BarrierOptions& options = static_cast<TupleBarrier*>(resource())->options_;
  const auto count = static_cast<int64_t>(taken_.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * keys,
                          ctx.AllocateOutput(1, ElementType::kString, Shape({count})));
  for (int64_t i = 0; i < count; ++i) {
    indices->mutable_data<int64_t>()[i] = taken_[i].first;
    keys->mutable_data<std::string>()[i] = std::move(taken_[i].second.key);
  }
  std::vector<Piece> pieces;
  for (size_t c = 0; c < options.types.size(); ++c) {
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(count, options.shapes[c]));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(static_cast<int>(c) + 2, options.types[c], shape));
    pieces.clear();
    for (const auto& [index, tuple] : taken_) {
      pieces.push_back({tuple.values[c].raw_data(), tuple.values[c].num_elements()});
    }
    WritePieces(ctx, pieces, out);
  }
  return absl::OkStatus();
}

// --- its state -----------------------------------------------------------------------------------

void TupleBarrier::Save(SaveDone<BarrierState> done) {
  const auto state = std::make_shared<BarrierState>();
  AtOnce(
      [this, state] {
        state->next_index = next_index_;
        state->closed = closed_;
        state->cancelled = cancelled_;
        for (const auto& [index, ready] : ready_) {
          state->ready.push_back({index, ready.key, ready.values});
        }
        for (const auto& [key, tuple] : incomplete_) {
          state->incomplete.push_back({tuple.index, key, tuple.values});
        }
        std::sort(state->incomplete.begin(), state->incomplete.end(),
                  [](const auto& a, const auto& b) { return a.key < b.key; });
        return absl::OkStatus();
      },
      [state, done = std::move(done)](absl::Status status) {
        done(status.ok() ? absl::StatusOr<BarrierState>(std::move(*state)) : status);
      });
}

absl::Status TupleBarrier::CheckState(const BarrierState& state) const {
  const size_t count = options_.types.size();
  // The first one is the least, and nobody has inserted so often: the next ones do not overflow.
  if (state.next_index > 0) {
    return InvalidArgument(DebugString(), ": the state has an index of ", state.next_index);
  }
  absl::flat_hash_set<std::string_view> keys;
  for (const auto* entries : {&state.ready, &state.incomplete}) {
    for (const BarrierState::Entry& entry : *entries) {
      const auto wrong = [&](const auto&... what) {
        return InvalidArgument(DebugString(), ": key '", entry.key, "' of the state ", what...);
      };
      if (entry.values.size() != count) {
        return wrong("has ", entry.values.size(), " components, not ", count);
      }
      size_t there = 0;
      for (size_t i = 0; i < count; ++i) {
        const Tensor& value = entry.values[i];
        if (!value.valid()) continue;
        ++there;
        if (value.type() == options_.types[i] && value.shape() == options_.shapes[i]) continue;
        return wrong("has ", ElementTypeName(value.type()), " ", value.shape().ToString(),
                     " for component ", i, ", not ", ElementTypeName(options_.types[i]), " ",
                     options_.shapes[i].ToString());
      }
      const bool ready = entries == &state.ready;
      if (there == 0 || (there == count) != ready) {
        return wrong("has ", there, " of ", count, " components");
      }
      if (entry.index >= state.next_index) return wrong("has an index that is not given out yet");
      if (!ready && !keys.insert(entry.key).second) return wrong("is there twice");
    }
  }
  return absl::OkStatus();
}

void TupleBarrier::Restore(BarrierState state, RestoreDone done) {
  AtOnce(
      [this, state = std::move(state)]() -> absl::Status {
        TROUPE_RETURN_IF_ERROR(CheckState(state));
        absl::flat_hash_map<std::string, Incomplete> incomplete;
        for (const auto& entry : state.incomplete) {
          incomplete.emplace(entry.key, Incomplete{entry.index, entry.values});
        }
        std::multimap<int64_t, Ready> ready;
        for (const auto& entry : state.ready) {
          ready.emplace(entry.index, Ready{entry.key, entry.values});
        }
        next_index_ = state.next_index;
        closed_ = state.closed;
        cancelled_ = state.cancelled;
        incomplete_.swap(incomplete);
        ready_.swap(ready);
        return absl::OkStatus();
      },
      std::move(done));
}

}  // namespace troupe
