#include "kernels/queues/queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "devices/exceptions.h"
#include "kernels/data/element_memory.h"
#include "kernels/data/join.h"
#include "kernels/queues/stack_tuples.h"

namespace troupe {
namespace {

std::string Names(absl::Span<const ElementType> types) {
  return absl::StrJoin(
      types, ", ", [](std::string* out, ElementType type) { out->append(ElementTypeName(type)); });
}

std::vector<ElementType> TypesOf(const Tuple& tuple) {
  std::vector<ElementType> types;
  for (const Tensor& component : tuple) types.push_back(component.type());
  return types;
}

}  // namespace

Queue::Queue(std::string name, QueueOptions options)
    : WaitingResource(std::move(name)),
      options_(std::move(options)),
      elements_(MakeQueueElements(options_)) {}

std::string Queue::DebugString() const {
  return StrCat("queue '", name(), "' of ", Names(options_.types));
}

void Queue::Put(Tuple tuple, bool many, PutCall::Close close, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<PutCall>>(this, token, 0, std::move(done));
  call->components = std::move(tuple);
  call->many = many;
  call->close = close;
  Submit(std::move(call));
}

void Queue::Take(int64_t n, bool many, bool up_to, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<TakeCall>>(
      this, token, static_cast<int>(options_.types.size()), std::move(done));
  call->n = n;
  call->many = many;
  call->up_to = up_to;
  Submit(std::move(call));
}

// --- putting in ----------------------------------------------------------------------------------

absl::Status Queue::PutCall::Check(bool* trivial) const {
  if (close != Close::kNo) return absl::OkStatus();
  const QueueOptions& options = static_cast<Queue*>(resource())->options_;
  const auto wrong = [&](const auto&... what) {
    return InvalidArgument(resource()->DebugString(), ": ", what...);
  };
  if (const auto types = TypesOf(components); types != options.types) {
    return wrong("cannot hold a tuple of ", Names(types));
  }
  for (size_t i = 0; i < components.size(); ++i) {
    const Shape& shape = components[i].shape();
    if (many) {
      if (shape.rank() < 1) {
        return wrong("component ", i, " must have a dimension of tuples, but is a scalar");
      }
      if (shape.dim(0) != count()) {
        return wrong("all components must have the same size in dimension 0, got shapes ",
                     components[0].shape().ToString(), " and ", shape.ToString());
      }
    }
    if (options.shapes.empty()) continue;
    const Shape element = many ? WithoutFirst(shape) : shape;
    if (!options.shapes[i].IsCompatibleWith(element)) {
      return wrong("shape mismatch in component ", i, ": expected ", options.shapes[i].ToString(),
                   ", got ", element.ToString());
    }
  }
  *trivial = count() == 0;
  return absl::OkStatus();
}

void Queue::PutCall::Arrive() noexcept {
  if (close != Close::kNow) return;
  auto* queue = static_cast<Queue*>(resource());
  queue->closed_.store(true, std::memory_order_release);
  queue->FailAll(&queue->lines_[kPuts], CatchExceptions([&] {
    return absl::CancelledError(StrCat(queue->DebugString(),
                                       ": the enqueue operation was cancelled, for ",
                                       "the queue was closed"));
  }));
}

absl::StatusOr<WaitingResource::Call::Progress> Queue::PutCall::Serve() {
  auto* queue = static_cast<Queue*>(resource());
  if (queue->closed() && close != Close::kNow) {
    return absl::CancelledError(
        StrCat(queue->DebugString(), close == Close::kNo ? " is closed" : " is already closed"));
  }
  if (close != Close::kNo) {
    queue->closed_.store(true, std::memory_order_release);
    return Progress::kOver;
  }
  const int64_t before = next_, all = count();
  while (next_ < all && queue->elements_->size() < queue->options_.capacity) {
    queue->elements_->Put(many ? Row(next_) : std::move(components));
    ++next_;
  }
  if (next_ == all) return Progress::kOver;
  return next_ > before ? Progress::kSome : Progress::kNone;
}

Tuple Queue::PutCall::Row(int64_t i) const {
  Tuple tuple;
  tuple.reserve(components.size());
  for (const Tensor& component : components) {
    tuple.push_back(RowOf(component, WithoutFirst(component.shape()), i));
  }
  return tuple;
}

// --- taking out ----------------------------------------------------------------------------------

absl::Status Queue::TakeCall::Check(bool* trivial) const {
  if (n < 0) {
    return InvalidArgument(resource()->DebugString(), ": cannot take ", n,
                           " elements: n must be >= 0");
  }
  if (many && static_cast<Queue*>(resource())->options_.shapes.empty()) {
    return InvalidArgument(resource()->DebugString(), ": taking several elements at once requires ",
                           "the attribute shapes of the queue");
  }
  *trivial = n == 0;
  return absl::OkStatus();
}

absl::StatusOr<WaitingResource::Call::Progress> Queue::TakeCall::Serve() {
  auto* queue = static_cast<Queue*>(resource());
  const int64_t has = static_cast<int64_t>(taken_.size()), wanted = n - has;
  int64_t available = queue->elements_->size();
  if (!queue->closed()) {
    available = std::max<int64_t>(0, available - queue->options_.min_after_dequeue);
  }
  const bool too_few = queue->closed() && available < wanted;
  if (too_few && (!up_to || (available == 0 && has == 0))) {
    return absl::OutOfRangeError(StrCat(queue->DebugString(),
                                        " is closed and has insufficient elements (requested ", n,
                                        ", current size ", available + has, ")"));
  }
  const int64_t taking = std::min(available, wanted);
  // What has left the queue has a place before it does; room doubles, so that few grow slowly.
  if (const size_t room = static_cast<size_t>(has + taking); room > taken_.capacity()) {
    taken_.reserve(std::max(room, 2 * taken_.capacity()));
  }
  for (int64_t i = 0; i < taking; ++i) taken_.push_back(queue->elements_->Take());
  if (taking == wanted || too_few) return Progress::kOver;
  return taking > 0 ? Progress::kSome : Progress::kNone;
}

void Queue::TakeCall::Withdraw() {
  static_cast<Queue*>(resource())->elements_->PutBack(std::move(taken_));
  taken_.clear();
}

absl::Status Queue::TakeCall::Conclude(KernelContext& ctx) {
  if (many) return StackTuples(ctx, static_cast<Queue*>(resource())->options(), taken_);
  return PutElements(ctx, 0, std::move(taken_[0]));
}

// --- its state -----------------------------------------------------------------------------------

class Queue::SaveCall final : public Call {
 public:
  SaveCall(Queue* queue, std::function<void(absl::StatusOr<QueueState>)> done)
      : Call(queue, kNoLine), done_(std::move(done)) {
    KeepResource();
  }

 private:
  absl::StatusOr<Progress> Serve() override {
    auto* queue = static_cast<Queue*>(resource());
    state_.closed = queue->closed();
    queue->elements_->Save(&state_);
    for (Message* message = queue->lines_[kPuts].front(); message != nullptr;
         message = message->next) {
      const auto& put = *static_cast<PutCall*>(message);
      if (put.close != PutCall::Close::kNo) {
        state_.closing = true;
        continue;
      }
      state_.num_waiting_calls += put.of_nobody_ ? 0 : 1;
      if (state_.closing) continue;  // It will be Cancelled.
      for (int64_t i = put.next_; i < put.count(); ++i) {
        state_.waiting.push_back(put.many ? put.Row(i) : put.components);
      }
    }
    return Progress::kOver;
  }
  void Over(std::unique_ptr<Call>) noexcept override {
    done_(status.ok() ? absl::StatusOr<QueueState>(std::move(state_)) : status);
  }

  QueueState state_;
  const std::function<void(absl::StatusOr<QueueState>)> done_;
};

class Queue::RestoreCall final : public Call {
 public:
  RestoreCall(Queue* queue, QueueState state, std::function<void(absl::Status)> done)
      : Call(queue, kNoLine), state_(std::move(state)), done_(std::move(done)) {
    KeepResource();
  }

 private:
  absl::Status Check(bool*) const override {
    const auto* queue = static_cast<const Queue*>(resource());
    for (const auto* tuples : {&state_.elements, &state_.waiting}) {
      for (const Tuple& tuple : *tuples) TROUPE_RETURN_IF_ERROR(queue->CheckTuple(tuple));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Progress> Serve() override {
    auto* queue = static_cast<Queue*>(resource());
    const absl::Status restored =
        queue->elements_->Restore(std::move(state_.elements), state_.generator);
    if (!restored.ok()) return WithContext(StrCat(queue->DebugString(), ": "), restored);
    queue->closed_.store(state_.closed, std::memory_order_release);
    for (Tuple& tuple : state_.waiting) queue->PutLater(std::move(tuple), PutCall::Close::kNo);
    if (state_.closing) queue->PutLater({}, PutCall::Close::kAfterPending);
    return Progress::kOver;
  }
  void Over(std::unique_ptr<Call>) noexcept override { done_(status); }

  QueueState state_;
  const std::function<void(absl::Status)> done_;
};

void Queue::Save(std::function<void(absl::StatusOr<QueueState>)> done) {
  Submit(std::make_unique<SaveCall>(this, std::move(done)));
}

void Queue::Restore(QueueState state, std::function<void(absl::Status)> done) {
  Submit(std::make_unique<RestoreCall>(this, std::move(state), std::move(done)));
}

void Queue::PutLater(Tuple tuple, PutCall::Close close) {
  auto call = std::make_unique<CallbackCall<PutCall>>(this, nullptr, 0, [](const auto&) {});
  call->components = std::move(tuple);
  call->close = close;
  call->of_nobody_ = true;
  lines_[kPuts].Push(call.release());
}

absl::Status Queue::CheckTuple(const Tuple& tuple) const {
  const std::vector<ElementType> types = TypesOf(tuple);
  if (types != options_.types) {
    return InvalidArgument(DebugString(), " cannot hold a tuple of ", Names(types));
  }
  for (size_t i = 0; i < options_.shapes.size(); ++i) {
    if (!options_.shapes[i].IsCompatibleWith(tuple[i].shape())) {
      return InvalidArgument(DebugString(), " cannot hold a component of shape ",
                             tuple[i].shape().ToString());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
