#include "kernels/queues/queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/data/join.h"
#include "kernels/queues/stack_tuples.h"

namespace troupe {
namespace {

std::string Names(absl::Span<const ElementType> types) {
  return absl::StrJoin(
      types, ", ", [](std::string* out, ElementType type) { out->append(ElementTypeName(type)); });
}

}  // namespace

/// Puts tuples in, or closes the queue when its turn comes.
struct Queue::EnqueueCall : Call {
  using Call::Call;
  Tuple NextTuple() {
    if (!many) return std::move(components);
    Tuple tuple;
    tuple.reserve(components.size());
    for (const Tensor& component : components) {
      tuple.push_back(RowOf(component, WithoutFirst(component.shape()), next));
    }
    return tuple;
  }

  bool close = false, many = false;
  Tuple components;
  int64_t count = 1, next = 0;  ///< Tuples, and those that are in.
};

struct Queue::DequeueCall : Call {
  DequeueCall(KernelContext& ctx, KernelDone done, const QueueOptions* queue)
      : Call(ctx, done), options(queue) {}
  absl::Status Finish() override {
    if (many) return StackTuples(*ctx, *options, taken);
    for (size_t i = 0; i < taken[0].size(); ++i) {
      ctx->set_output(static_cast<int>(i), std::move(taken[0][i]));
    }
    return absl::OkStatus();
  }
  int64_t wanted() const { return n - static_cast<int64_t>(taken.size()); }

  const QueueOptions* options;
  bool many = false, up_to = false;
  int64_t n = 1;
  std::vector<Tuple> taken;  ///< Go back if the call fails.
};

Queue::Queue(std::string name, QueueOptions options)
    : WaitingResource(std::move(name), 2),
      options_(std::move(options)),
      elements_(MakeQueueElements(options_)) {}

std::string Queue::DebugString() const {
  return StrCat("queue '", name(), "' of ", Names(options_.types));
}

absl::Status Queue::CheckInputs(const KernelContext& ctx, bool many, int64_t* count) const {
  const auto wrong = [&](const auto&... what) {
    return InvalidArgument(DebugString(), ": ", what...);
  };
  const int components = ctx.num_inputs() - 1;
  std::vector<ElementType> types;
  for (int i = 0; i < components; ++i) types.push_back(ctx.input(1 + i).type());
  if (types != options_.types) return wrong("cannot hold a tuple of ", Names(types));
  for (int i = 0; i < components; ++i) {
    const Shape& shape = ctx.input(1 + i).shape();
    if (many) {
      if (shape.rank() < 1) {
        return wrong("component ", i, " must have a dimension of tuples, but is a scalar");
      }
      if (shape.dim(0) != ctx.input(1).dim(0)) {
        return wrong("all components must have the same size in dimension 0, got shapes ",
                     ctx.input(1).shape().ToString(), " and ", shape.ToString());
      }
    }
    if (options_.shapes.empty()) continue;
    const Shape element = many ? WithoutFirst(shape) : shape;
    if (!options_.shapes[i].IsCompatibleWith(element)) {
      return wrong("shape mismatch in component ", i, ": expected ", options_.shapes[i].ToString(),
                   ", got ", element.ToString());
    }
  }
  *count = many ? ctx.input(1).dim(0) : 1;
  return absl::OkStatus();
}

void Queue::Enqueue(KernelContext& ctx, KernelDone done, bool many) {
  auto call = std::make_unique<EnqueueCall>(ctx, done);
  call->many = many;
  if (absl::Status status = CheckInputs(ctx, many, &call->count); !status.ok()) {
    return done(std::move(status));
  }
  if (call->count == 0) return done(absl::OkStatus());
  for (int i = 1; i < ctx.num_inputs(); ++i) call->components.push_back(ctx.TakeInput(i));
  Submit(kEnqueues, std::move(call));
}

void Queue::Dequeue(KernelContext& ctx, KernelDone done) {
  Submit(kDequeues, std::make_unique<DequeueCall>(ctx, done, &options_));
}

void Queue::DequeueMany(KernelContext& ctx, KernelDone done, int64_t n, bool up_to) {
  if (n < 0) {
    return done(InvalidArgument(DebugString(), ": cannot take ", n, " elements: n must be >= 0"));
  }
  if (options_.shapes.empty()) {
    return done(InvalidArgument(DebugString(), ": taking several elements at once requires the ",
                                "attribute shapes of the queue"));
  }
  if (n == 0) return done(StackTuples(ctx, options_, {}));
  auto call = std::make_unique<DequeueCall>(ctx, done, &options_);
  call->many = true;
  call->up_to = up_to;
  call->n = n;
  Submit(kDequeues, std::move(call));
}

void Queue::Close(KernelContext& ctx, KernelDone done, bool cancel_pending) {
  if (!cancel_pending) {
    auto call = std::make_unique<EnqueueCall>(ctx, done);
    call->close = true;
    return Submit(kEnqueues, std::move(call));
  }
  const absl::Status cancelled = absl::CancelledError(
      StrCat(DebugString(), ": the enqueue operation was cancelled, for the queue was closed"));
  Change([&] {
    closed_ = true;
    FailAll(&lines_[kEnqueues], cancelled);
  });
  done(absl::OkStatus());
}

int64_t Queue::Size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return elements_->size();
}

bool Queue::closed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

void Queue::Serve() {
  bool progress = true;
  while (progress) {
    progress = false;
    for (const auto serve : {&Queue::ServeEnqueue, &Queue::ServeDequeue}) {
      Line& line = lines_[serve == &Queue::ServeEnqueue ? kEnqueues : kDequeues];
      serving_ = &line;
      while (!line.empty() && (this->*serve)(&line)) progress = true;
    }
  }
}

bool Queue::ServeEnqueue(Line* line) {
  auto* call = static_cast<EnqueueCall*>(line->front().get());
  if (closed_) {
    Complete(line, absl::CancelledError(
                       StrCat(DebugString(), call->close ? " is already closed" : " is closed")));
    return true;
  }
  if (call->close) {
    closed_ = true;
    Complete(line, absl::OkStatus());
    return true;
  }
  const int64_t before = call->next;
  while (call->next < call->count && elements_->size() < options_.capacity) {
    elements_->Put(call->NextTuple());
    ++call->next;
  }
  const bool progress = call->next > before;
  if (call->next == call->count) Complete(line, absl::OkStatus());
  return progress;
}

bool Queue::ServeDequeue(Line* line) {
  auto* call = static_cast<DequeueCall*>(line->front().get());
  int64_t available = elements_->size();
  if (!closed_) available = std::max<int64_t>(0, available - options_.min_after_dequeue);
  const bool too_few = closed_ && available < call->wanted();
  if (too_few && (!call->up_to || (available == 0 && call->taken.empty()))) {
    const int64_t left = available + static_cast<int64_t>(call->taken.size());
    Withdraw(call);
    Complete(line, absl::OutOfRangeError(StrCat(DebugString(), " is closed and has insufficient ",
                                                "elements (requested ", call->n, ", current size ",
                                                left, ")")));
    return true;
  }
  const int64_t taking = std::min(available, call->wanted());
  // What has left the queue has a place before it does; room doubles, so that few grow slowly.
  if (const size_t room = call->taken.size() + static_cast<size_t>(taking);
      room > call->taken.capacity()) {
    call->taken.reserve(std::max(room, 2 * call->taken.capacity()));
  }
  for (int64_t i = 0; i < taking; ++i) call->taken.push_back(elements_->Take());
  if (call->wanted() > 0 && !too_few) return taking > 0;
  Complete(line, absl::OkStatus());
  return true;
}

void Queue::Withdraw(Call* call) {
  if (auto* dequeue = dynamic_cast<DequeueCall*>(call)) {
    elements_->PutBack(std::move(dequeue->taken));
    dequeue->taken.clear();
  }
}

}  // namespace troupe
