#include "kernels/queues/accumulator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// to[i] = to[i] + from[i].
absl::Status AddTo(ElementType type, const void* from, int64_t count, void* to) {
  return SwitchType<float, double, half>(type, [&]<typename T>() -> absl::Status {
    const T* in = static_cast<const T*>(from);
    T* out = static_cast<T*>(to);
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(static_cast<Wide>(out[i]) + static_cast<Wide>(in[i]));
    }
    return absl::OkStatus();
  });
}

/// values[i] = values[i] / by.
absl::Status Divide(ElementType type, int64_t by, int64_t count, void* values) {
  return SwitchType<float, double, half>(type, [&]<typename T>() -> absl::Status {
    T* out = static_cast<T*>(values);
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(static_cast<Wide>(out[i]) / static_cast<Wide>(by));
    }
    return absl::OkStatus();
  });
}

}  // namespace

// --- calls ---------------------------------------------------------------------------------------

void Accumulator::ApplyGradient(int64_t local_step, Tuple gradient, CancellationToken* token,
                                Done done) {
  auto call = std::make_unique<CallbackCall<ApplyCall>>(this, token, 0, std::move(done));
  call->local_step = local_step;
  call->owned = std::move(gradient);
  for (const Tensor& part : call->owned) call->gradient.push_back(&part);
  Submit(std::move(call));
}

void Accumulator::TakeGradient(int64_t required, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<TakeCall>>(this, token, options_.sparse ? 3 : 1,
                                                       std::move(done));
  call->required = required;
  Submit(std::move(call));
}

absl::StatusOr<WaitingResource::Call::Progress> Accumulator::ApplyCall::Serve() {
  auto* to = static_cast<Accumulator*>(resource());
  // Whoever waits for the sum as it is comes first.
  const auto* take = static_cast<TakeCall*>(to->lines_[kTakes].front());
  if (to->sum_is_lent_.load(std::memory_order_acquire) || (take != nullptr && take->HasEnough())) {
    return Progress::kNone;
  }
  if (local_step < to->step_.load(std::memory_order_acquire)) return Progress::kOver;  // Stale.
  size_t bytes = 0;
  for (const Tensor* part : gradient) bytes += part->bytes();
  has_sum_ = bytes >= kMinBytesHandedOn;
  if (has_sum_) {
    to->sum_is_lent_.store(true, std::memory_order_relaxed);
  } else {
    TROUPE_RETURN_IF_ERROR(to->Add(*this));
  }
  return Progress::kOver;
}

absl::Status Accumulator::ApplyCall::Conclude(KernelContext&) {
  return has_sum_ ? static_cast<Accumulator*>(resource())->Add(*this) : absl::OkStatus();
}

Accumulator::ApplyCall::~ApplyCall() {
  if (!has_sum_) return;
  auto* to = static_cast<Accumulator*>(resource());
  to->sum_is_lent_.store(false, std::memory_order_release);
  to->LookAgain();
}

absl::Status Accumulator::TakeCall::Check(bool*) const {
  if (required > 0) return absl::OkStatus();
  return InvalidArgument(resource()->DebugString(),
                         ": the number of gradients required must be > 0, got ", required);
}

bool Accumulator::TakeCall::HasEnough() const {
  const auto& from = static_cast<const Accumulator&>(*resource());
  return !from.sum_is_lent_.load(std::memory_order_acquire) && from.sum_.count >= required;
}

absl::StatusOr<WaitingResource::Call::Progress> Accumulator::TakeCall::Serve() {
  auto* from = static_cast<Accumulator*>(resource());
  if (!HasEnough()) return Progress::kNone;
  sum_ = std::exchange(from->sum_, {});
  from->count_.store(0, std::memory_order_release);
  from->step_.fetch_add(1, std::memory_order_acq_rel);
  return Progress::kOver;
}

absl::Status Accumulator::TakeCall::Conclude(KernelContext& ctx) {
  return static_cast<Accumulator*>(resource())->PutOut(std::move(sum_), ctx);
}

// --- its state -----------------------------------------------------------------------------------

/// Stands behind the gradients that wait for room, so that it sees no sum that is lent.
class Accumulator::SaveCall final : public Call {
 public:
  SaveCall(Accumulator* from, SaveDone<AccumulatorState> done)
      : Call(from, kApplies), done_(std::move(done)) {
    KeepResource();
  }

 private:
  absl::StatusOr<Progress> Serve() override {
    const auto* from = static_cast<Accumulator*>(resource());
    if (from->sum_is_lent_.load(std::memory_order_acquire)) return Progress::kNone;
    const Sum& sum = from->sum_;
    state_ = {from->step_.load(std::memory_order_acquire), sum.count, sum.values, sum.indices,
              sum.counts};
    return Progress::kOver;
  }
  void Over(std::unique_ptr<Call>) noexcept override {
    done_(status.ok() ? absl::StatusOr<AccumulatorState>(std::move(state_)) : status);
  }

  AccumulatorState state_;
  const SaveDone<AccumulatorState> done_;
};

class Accumulator::RestoreCall final : public Call {
 public:
  RestoreCall(Accumulator* to, AccumulatorState state, RestoreDone done)
      : Call(to, kApplies), state_(std::move(state)), done_(std::move(done)) {
    KeepResource();
  }

 private:
  absl::Status Check(bool*) const override {
    return static_cast<const Accumulator*>(resource())->CheckState(state_);
  }
  absl::StatusOr<Progress> Serve() override {
    auto* to = static_cast<Accumulator*>(resource());
    if (to->sum_is_lent_.load(std::memory_order_acquire)) return Progress::kNone;
    to->step_.store(state_.step, std::memory_order_release);
    to->count_.store(state_.count, std::memory_order_release);
    to->sum_ = {state_.count, std::move(state_.values), std::move(state_.indices),
                std::move(state_.counts)};
    return Progress::kOver;
  }
  void Over(std::unique_ptr<Call>) noexcept override { done_(status); }

  AccumulatorState state_;
  const RestoreDone done_;
};

void Accumulator::Save(SaveDone<AccumulatorState> done) {
  Submit(std::make_unique<SaveCall>(this, std::move(done)));
}

void Accumulator::Restore(AccumulatorState state, RestoreDone done) {
  Submit(std::make_unique<RestoreCall>(this, std::move(state), std::move(done)));
}

absl::Status Accumulator::CheckState(const AccumulatorState& state) const {
  // Nothing overflows when gradients are added.
  constexpr int64_t kMaxCount = int64_t{1} << 62;
  const Tensor& values = state.values;
  bool fits = state.count >= 0 && state.count <= kMaxCount && values.valid() == (state.count > 0);
  if (fits && values.valid()) {
    fits = values.type() == options_.type &&
           (options_.sparse ? AreRows(values) : options_.shape.IsCompatibleWith(values.shape()));
  }
  const size_t rows =
      fits && options_.sparse && values.valid() ? static_cast<size_t>(values.dim(0)) : 0;
  fits = fits && state.indices.size() == rows && state.counts.size() == rows &&
         std::all_of(state.counts.begin(), state.counts.end(),
                     [&](int64_t count) { return count > 0 && count <= state.count; });
  if (fits) return absl::OkStatus();
  return InvalidArgument("the state is not one of ", DebugString());
}

// --- arithmetic ----------------------------------------------------------------------------------

std::string Accumulator::DebugString() const {
  return StrCat(options_.sparse ? "sparse " : "", kKind, " '", name(), "' of ",
                ElementTypeName(options_.type), " ", options_.shape.ToString());
}

absl::Status Accumulator::Add(const ApplyCall& call) {
  TROUPE_RETURN_IF_ERROR(options_.sparse ? AddSparse(call) : AddDense(call));
  count_.store(++sum_.count, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Accumulator::WrongType(const ApplyCall& call, size_t part) const {
  const bool there = part < call.gradient.size();
  return InvalidArgument(
      DebugString(), " cannot take a gradient of type ",
      ElementTypeName(there ? call.gradient[part]->type() : ElementType::kInvalid));
}

absl::Status Accumulator::AddDense(const ApplyCall& call) {
  if (call.gradient.size() != 1 || call.gradient[0]->type() != options_.type) {
    return WrongType(call, 0);
  }
  const Tensor& added = *call.gradient[0];
  Tensor& values = sum_.values;
  if (!options_.shape.IsCompatibleWith(added.shape()) ||
      (sum_.count > 0 && added.shape() != values.shape())) {
    return InvalidArgument(DebugString(), ": shape mismatch: expected ",
                           sum_.count > 0 ? values.shape().ToString() : options_.shape.ToString(),
                           ", got ", added.shape().ToString());
  }
  if (sum_.count == 0) {
    values = added;
    return absl::OkStatus();
  }
  if (!values.unique()) {
    TROUPE_ASSIGN_OR_RETURN(values, values.Clone());
  }
  return AddTo(values.type(), added.raw_data(), values.num_elements(), values.mutable_raw_data());
}

absl::Status Accumulator::AddSparse(const ApplyCall& call) {
  TROUPE_RETURN_IF_ERROR(CheckSparse(call));
  const absl::Span<const int64_t> indices = call.gradient[0]->unchecked_values<int64_t>();
  if (sum_.count > 0) return Merge(indices, *call.gradient[1]);
  std::vector<int64_t> counts(indices.size(), 1);
  sum_.indices.assign(indices.begin(), indices.end());
  sum_.counts = std::move(counts);
  sum_.values = *call.gradient[1];
  return absl::OkStatus();
}

absl::Status Accumulator::CheckSparse(const ApplyCall& call) const {
  const auto wrong = [&](const auto&... what) {
    return InvalidArgument(DebugString(), ": ", what...);
  };
  const auto& parts = call.gradient;
  if (parts.size() != 3 || parts[1]->type() != options_.type) return WrongType(call, 1);
  for (int i : {0, 2}) {
    if (parts[i]->type() != ElementType::kInt64) return WrongType(call, i);
  }
  const Tensor &indices = *parts[0], &values = *parts[1], &shape = *parts[2];
  if (indices.rank() != 1) {
    return wrong("indices must be a vector, got shape ", indices.shape().ToString());
  }
  if (values.rank() < 1 || values.dim(0) != indices.dim(0)) {
    return wrong("there are ", indices.dim(0), " indices, but values have shape ",
                 values.shape().ToString());
  }
  const PartialShape& expected = options_.shape;
  int64_t limit = expected.rank() > 0 ? expected.dim(0) : -1;
  if (call.has_shape) {
    if (shape.rank() != 1 || shape.num_elements() < expected.rank()) {
      return wrong("the gradient's shape must be a vector of at least ",
                   std::max(0, expected.rank()), " sizes, got shape ", shape.shape().ToString());
    }
    const absl::Span<const int64_t> sizes = shape.unchecked_values<int64_t>();
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int d = static_cast<int>(i);
      if (sizes[i] >= 0 && d < expected.rank() && expected.dim(d) >= 0 &&
          sizes[i] != expected.dim(d)) {
        return wrong("shape mismatch: expected size ", expected.dim(d), " of dimension ", d,
                     ", got ", sizes[i]);
      }
    }
    if (limit < 0 && !sizes.empty()) limit = sizes[0];
  }
  return CheckRows(indices, values, limit);
}

bool Accumulator::AreRows(const Tensor& values) const {
  const PartialShape& expected = options_.shape;
  if (values.rank() < 1) return false;
  if (!expected.unknown_rank() && values.rank() != std::max(1, expected.rank())) return false;
  for (int d = 1; d < expected.rank(); ++d) {
    if (expected.dim(d) >= 0 && expected.dim(d) != values.dim(d)) return false;
  }
  return true;
}

absl::Status Accumulator::CheckRows(const Tensor& indices, const Tensor& values,
                                    int64_t limit) const {
  bool fits = AreRows(values);
  if (sum_.count > 0) {
    fits = fits && values.rank() == sum_.values.rank();
    for (int d = 1; fits && d < values.rank(); ++d) fits = values.dim(d) == sum_.values.dim(d);
  }
  if (!fits) {
    return InvalidArgument(DebugString(), ": shape mismatch: values of shape ",
                           values.shape().ToString(), " cannot be added",
                           sum_.count > 0 ? " to " + sum_.values.shape().ToString() : "");
  }
  if (limit < 0) return absl::OkStatus();
  for (const int64_t index : indices.unchecked_values<int64_t>()) {
    if (index >= limit) {
      return InvalidArgument(DebugString(), ": index ", index, " exceeds the limit ", limit);
    }
  }
  return absl::OkStatus();
}

/// Walks along both lists of indices, the smaller one first, as if they were sorted.
absl::Status Accumulator::Merge(absl::Span<const int64_t> indices, const Tensor& values) {
  struct Source {
    int64_t mine, other;  // Rows; -1: none.
  };
  std::vector<Source> sources;
  std::vector<int64_t> merged, counts;
  size_t i = 0, j = 0;
  const std::vector<int64_t>& old = sum_.indices;
  while (i < old.size() || j < indices.size()) {
    const bool mine = i < old.size() && (j >= indices.size() || old[i] <= indices[j]);
    const bool other = j < indices.size() && (i >= old.size() || indices[j] <= old[i]);
    sources.push_back({mine ? static_cast<int64_t>(i) : -1, other ? static_cast<int64_t>(j) : -1});
    merged.push_back(mine ? old[i] : indices[j]);
    counts.push_back((mine ? sum_.counts[i] : 0) + (other ? 1 : 0));
    i += mine;
    j += other;
  }
  Shape shape = values.shape();
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  sizes[0] = static_cast<int64_t>(merged.size());
  TROUPE_ASSIGN_OR_RETURN(shape, Shape::Create(sizes));
  TROUPE_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(values.type(), shape));
  const int64_t row = merged.empty() ? 0 : shape.num_elements() / sizes[0];
  const size_t bytes = static_cast<size_t>(row) * ElementSize(values.type());
  for (size_t k = 0; k < sources.size(); ++k) {
    char* to = static_cast<char*>(result.mutable_raw_data()) + k * bytes;
    const auto row_of = [&](const Tensor& tensor, int64_t r) {
      return static_cast<const char*>(tensor.raw_data()) + static_cast<size_t>(r) * bytes;
    };
    const Source& source = sources[k];
    const bool both = source.mine >= 0 && source.other >= 0;
    std::copy_n(source.mine >= 0 ? row_of(sum_.values, source.mine) : row_of(values, source.other),
                bytes, to);
    if (both) TROUPE_RETURN_IF_ERROR(AddTo(result.type(), row_of(values, source.other), row, to));
  }
  sum_.indices = std::move(merged);
  sum_.counts = std::move(counts);
  sum_.values = std::move(result);
  return absl::OkStatus();
}

absl::Status Accumulator::PutOut(Sum sum, KernelContext& ctx) const {
  Tensor& values = sum.values;
  if (options_.mean && (options_.sparse || sum.count > 1)) {
    if (!values.unique()) {
      TROUPE_ASSIGN_OR_RETURN(values, values.Clone());
    }
    // The rows, of which all have the same count if they are not sparse.
    const int64_t rows = options_.sparse ? values.dim(0) : 1;
    const int64_t row = rows == 0 ? 0 : values.num_elements() / rows;
    for (int64_t k = 0; k < rows; ++k) {
      char* at = static_cast<char*>(values.mutable_raw_data()) +
                 static_cast<size_t>(k * row) * ElementSize(values.type());
      TROUPE_RETURN_IF_ERROR(
          Divide(values.type(), options_.sparse ? sum.counts[k] : sum.count, row, at));
    }
  }
  if (!options_.sparse) {
    ctx.set_output(0, std::move(values));
    return absl::OkStatus();
  }
  std::vector<int64_t> shape(values.shape().dims().begin(), values.shape().dims().end());
  shape[0] = options_.shape.rank() > 0 ? options_.shape.dim(0) : -1;
  ctx.set_output(0, Tensor::Vector<int64_t>(absl::MakeConstSpan(sum.indices)));
  ctx.set_output(1, std::move(values));
  ctx.set_output(2, Tensor::Vector<int64_t>(absl::MakeConstSpan(shape)));
  return absl::OkStatus();
}

}  // namespace troupe
