#include "kernels/sync/staging_area.h"

#include <utility>

#include "devices/status_macros.h"
#include "kernels/data/element_memory.h"

namespace troupe {

int64_t TupleBytes(const Tuple& tuple) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tuple) {
    if (!tensor.valid()) continue;
    bytes += static_cast<int64_t>(tensor.bytes());
    if (tensor.type() != ElementType::kString) continue;
    for (const std::string& value : tensor.unchecked_values<std::string>()) {
      bytes += static_cast<int64_t>(value.size());
    }
  }
  return bytes;
}

absl::Status CheckTypes(const std::string& what, const Tuple& tuple,
                        const std::vector<ElementType>& types) {
  if (tuple.size() != types.size()) {
    return InvalidArgument(what, ": there are ", tuple.size(), " tensors, but ", types.size(),
                           " are expected");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (tuple[i].type() == types[i]) continue;
    return InvalidArgument(what, ": tensor ", i, " is of type ", ElementTypeName(tuple[i].type()),
                           ", but ", ElementTypeName(types[i]), " is expected");
  }
  return absl::OkStatus();
}

void TupleStage::Put(Tuple tuple, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<PutCall>>(this, token, 0, std::move(done));
  call->tuple = std::move(tuple);
  Submit(std::move(call));
}

void TupleStage::Ask(TakeCall::What what, int64_t index, std::vector<ElementType> types,
                     CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<TakeCall>>(this, token, static_cast<int>(types.size()),
                                                       std::move(done));
  call->what = what;
  call->index = index;
  call->types = std::move(types);
  Submit(std::move(call));
}

absl::Status TupleStage::PutCall::Check(bool*) const {
  const auto* area = static_cast<TupleStage*>(resource());
  const int64_t bytes = TupleBytes(tuple), limit = area->options_.memory_limit;
  if (limit == 0 || bytes <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat(area->DebugString(), ": tensors of ", bytes,
                                             " bytes do not fit its memory limit of ", limit,
                                             " bytes"));
}

absl::StatusOr<WaitingResource::Call::Progress> TupleStage::PutCall::Serve() {
  auto* area = static_cast<TupleStage*>(resource());
  const StagingAreaOptions& options = area->options_;
  const int64_t bytes = TupleBytes(tuple);
  if (options.capacity > 0 && static_cast<int64_t>(area->tuples_.size()) >= options.capacity) {
    return Progress::kNone;
  }
  if (options.memory_limit > 0 && area->bytes_ + bytes > options.memory_limit) {
    return Progress::kNone;
  }
  area->tuples_.push_back({{}, bytes});
  area->tuples_.back().tuple = std::move(tuple);
  area->bytes_ += bytes;
  return Progress::kOver;
}

absl::Status TupleStage::TakeCall::Check(bool*) const {
  if (index >= 0) return absl::OkStatus();
  return InvalidArgument(resource()->DebugString(), ": there is no tuple of index ", index);
}

absl::StatusOr<WaitingResource::Call::Progress> TupleStage::TakeCall::Serve() {
  auto* area = static_cast<TupleStage*>(resource());
  if (what == What::kClear) {
    area->tuples_.clear();
    area->bytes_ = 0;
    return Progress::kOver;
  }
  const int64_t at = what == What::kLookAt ? index : 0;
  if (at >= static_cast<int64_t>(area->tuples_.size())) return Progress::kNone;
  Staged& staged = area->tuples_[static_cast<size_t>(at)];
  TROUPE_RETURN_IF_ERROR(CheckTypes(area->DebugString(), staged.tuple, types));
  if (what == What::kLookAt) {
    taken_ = staged.tuple;
  } else {
    taken_ = std::move(staged.tuple);
    area->bytes_ -= staged.bytes;
    area->tuples_.pop_front();
  }
  return Progress::kOver;
}

absl::Status TupleStage::TakeCall::Conclude(KernelContext& ctx) {
  return PutElements(ctx, 0, std::move(taken_));
}

void TupleStage::Save(SaveDone<StagingAreaState> done) {
  const auto state = std::make_shared<StagingAreaState>();
  AtOnce(
      [this, state] {
        state->options = options_;
        for (const Staged& staged : tuples_) state->tuples.push_back(staged.tuple);
        return absl::OkStatus();
      },
      [state, done = std::move(done)](absl::Status status) {
        done(status.ok() ? absl::StatusOr<StagingAreaState>(std::move(*state)) : status);
      });
}

void TupleStage::Restore(StagingAreaState state, RestoreDone done) {
  AtOnce(
      [this, tuples = std::move(state.tuples)]() -> absl::Status {
        for (const Tuple& tuple : tuples) {
          for (const Tensor& component : tuple) {
            if (component.valid()) continue;
            return InvalidArgument(DebugString(), ": a tuple of the state lacks a component");
          }
        }
        tuples_.clear();
        bytes_ = 0;
        for (const Tuple& tuple : tuples) {
          tuples_.push_back({tuple, TupleBytes(tuple)});
          bytes_ += tuples_.back().bytes;
        }
        return absl::OkStatus();
      },
      std::move(done));
}

}  // namespace troupe
