#include "api/input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/input/queues.h"
#include "api/ops.h"
#include "api/training/queue_runner.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

using namespace input;  // NOLINT(google-build-using-namespace)

namespace {

/// What all of the functions for batches are given.
struct Wanted {
  const char* name;  ///< Of the scope, by default.
  std::vector<InputList> lists;
  Input batch_size;
  Input keep_input = true;
  BatchOptions options;
  /// A queue that shuffles.
  bool shuffle = false;
  int64_t min_after_dequeue = 0;
  std::optional<int64_t> seed;
};

Wanted Shuffled(Wanted wanted, const ShuffleBatchOptions& options) {
  wanted.shuffle = true;
  wanted.min_after_dequeue = options.min_after_dequeue;
  wanted.seed = options.seed;
  wanted.options = {.num_threads = options.num_threads,
                    .capacity = options.capacity,
                    .enqueue_many = options.enqueue_many,
                    .shapes = options.shapes,
                    .dynamic_pad = false,
                    .allow_smaller_final_batch = options.allow_smaller_final_batch,
                    .shared_name = options.shared_name};
  return wanted;
}

absl::Status CheckKeepInput(const Output& keep, bool enqueue_many) {
  if (!keep.valid() || keep.type() != ElementType::kBool) {
    return InvalidArgument("`keep_input` must be of type bool");
  }
  const PartialShape& shape = keep.shape();
  if (!shape.unknown_rank() && shape.rank() <= (enqueue_many ? 1 : 0)) return absl::OkStatus();
  return InvalidArgument("`keep_input` has the shape ", shape.ToString(), ", but must be a scalar",
                         enqueue_many ? " or a vector" : "");
}

/// Puts the elements into the queue that `keep` asks for.
Node* EnqueueKept(const Scope& own, const Output& queue, const std::vector<Output>& tensors,
                  const Output& keep, bool many) {
  if (keep.shape().rank() == 0) {
    return If(own, keep, [&](const Scope& s) { return Enqueue(s, queue, tensors, many); });
  }
  const Output part = ops::Cast(own, keep, ElementType::kInt32);
  std::vector<Output> kept;
  for (const Output& tensor : tensors)
    kept.push_back(ops::DynamicPartition(own, tensor, part, 2)[1]);
  return Enqueue(own, queue, kept, many);
}

/// The lists' tensors, which must be alike.
std::vector<std::vector<Output>> AllTensors(const Scope& own, const std::vector<InputList>& lists) {
  std::vector<std::vector<Output>> all;
  if (lists.empty()) Refuse(own, "there are no lists of tensors");
  for (const InputList& list : lists) {
    all.push_back(TensorsOf(own, list));
    if (own.ok() && TypesOf(all.back()) != TypesOf(all[0])) {
      Refuse(own, "list ", all.size() - 1, " has other types than list 0");
    }
  }
  return all;
}

Output MakeQueue(const Scope& own, const Wanted& wanted, const std::vector<ElementType>& types,
                 const std::vector<PartialShape>& shapes) {
  const BatchOptions& options = wanted.options;
  if (wanted.shuffle) {
    const OpSeed seed = QueueSeed(own, wanted.seed, options.shared_name);
    return ops::RandomShuffleQueueV2(ForQueue(own, "random_shuffle_queue"), types,
                                     {.shapes = shapes,
                                      .capacity = options.capacity,
                                      .min_after_dequeue = wanted.min_after_dequeue,
                                      .seed = seed.seed,
                                      .seed2 = seed.seed2,
                                      .container = own.container(),
                                      .shared_name = options.shared_name});
  }
  if (options.dynamic_pad) {
    return ops::PaddingFIFOQueueV2(ForQueue(own, "padding_fifo_queue"), types,
                                   {.shapes = shapes,
                                    .capacity = options.capacity,
                                    .container = own.container(),
                                    .shared_name = options.shared_name});
  }
  return ops::FIFOQueueV2(ForQueue(own, "fifo_queue"), types,
                          {.shapes = shapes,
                           .capacity = options.capacity,
                           .container = own.container(),
                           .shared_name = options.shared_name});
}

void SummarizeQueue(const Scope& own, const Output& queue, const Wanted& wanted) {
  const int64_t capacity = wanted.options.capacity, behind = wanted.min_after_dequeue;
  const Output size = QueueSize(own, queue);
  if (!wanted.shuffle) return SummarizeFullness(own, FullnessName(capacity), size, capacity);
  const Output over = ops::Sub(own.WithOpName("sub"), size,
                               Const(own.WithOpName("sub/y"), static_cast<int32_t>(behind)));
  const Output ready = ops::Maximum(own, Const(own.WithOpName("Maximum/x"), int32_t{0}), over);
  SummarizeFullness(own, StrCat("fraction_over_", behind, "_of_", capacity - behind, "_full"),
                    ready, capacity - behind);
}

absl::Status CheckNumbers(const Wanted& wanted) {
  const BatchOptions& options = wanted.options;
  if (options.num_threads < 1) {
    return InvalidArgument("`num_threads` is ", options.num_threads, ", but must be at least 1");
  }
  if (wanted.min_after_dequeue < 0 || options.capacity <= wanted.min_after_dequeue ||
      options.capacity > INT32_MAX) {
    return InvalidArgument("`capacity` is ", options.capacity,
                           ", but must be larger than `min_after_dequeue`, ",
                           wanted.min_after_dequeue, ", and fit into 32 bits");
  }
  return absl::OkStatus();
}

OutputList MakeBatch(const Scope& scope, const Wanted& wanted) {
  OutputList none(wanted.lists.empty() ? 0 : wanted.lists[0].size());
  if (!scope.ok()) return none;
  const Scope own = OwnScope(scope, wanted.name);
  const BatchOptions& options = wanted.options;
  const std::vector<std::vector<Output>> lists = AllTensors(own, wanted.lists);
  const Output keep = wanted.keep_input.ToOutput(own);
  const auto check = [&](const absl::Status& status) {
    if (!status.ok()) own.UpdateStatus(WithContext(StrCat(NameOf(own), ": "), status));
    return own.ok();
  };
  if (!own.ok() || !check(CheckKeepInput(keep, options.enqueue_many)) ||
      !check(CheckNumbers(wanted))) {
    return none;
  }
  const auto shapes =
      ElementShapes(lists, options.shapes, options.enqueue_many, options.dynamic_pad);
  if (!check(shapes.status())) return none;

  const Output queue = MakeQueue(own, wanted, TypesOf(lists[0]), *shapes);
  std::vector<Node*> enqueues;
  for (const std::vector<Output>& list : lists) {
    enqueues.push_back(EnqueueKept(own, queue, list, keep, options.enqueue_many));
  }
  if (lists.size() == 1) enqueues.resize(options.num_threads, enqueues[0]);
  const QueueRunner runner(own, queue, std::move(enqueues));
  SummarizeQueue(own, queue, wanted);
  if (!own.ok()) return none;
  OutputList batch = TakeBatch(own, queue, wanted.batch_size, options.allow_smaller_final_batch);
  return own.ok() ? batch : none;
}

}  // namespace

OutputList Batch(const Scope& scope, const InputList& tensors, const Input& batch_size,
                 const BatchOptions& options) {
  return MakeBatch(
      scope, {.name = "batch", .lists = {tensors}, .batch_size = batch_size, .options = options});
}

OutputList MaybeBatch(const Scope& scope, const InputList& tensors, const Input& keep_input,
                      const Input& batch_size, const BatchOptions& options) {
  return MakeBatch(scope, {.name = "batch",
                           .lists = {tensors},
                           .batch_size = batch_size,
                           .keep_input = keep_input,
                           .options = options});
}

OutputList BatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                     const Input& batch_size, const BatchOptions& options) {
  return MaybeBatchJoin(scope, lists, true, batch_size, options);
}

OutputList MaybeBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                          const Input& keep_input, const Input& batch_size,
                          const BatchOptions& options) {
  return MakeBatch(scope, {.name = "batch_join",
                           .lists = lists,
                           .batch_size = batch_size,
                           .keep_input = keep_input,
                           .options = options});
}

OutputList ShuffleBatch(const Scope& scope, const InputList& tensors, const Input& batch_size,
                        const ShuffleBatchOptions& options) {
  return MaybeShuffleBatch(scope, tensors, true, batch_size, options);
}

OutputList MaybeShuffleBatch(const Scope& scope, const InputList& tensors, const Input& keep_input,
                             const Input& batch_size, const ShuffleBatchOptions& options) {
  return MakeBatch(scope, Shuffled({.name = "shuffle_batch",
                                    .lists = {tensors},
                                    .batch_size = batch_size,
                                    .keep_input = keep_input},
                                   options));
}

OutputList ShuffleBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                            const Input& batch_size, const ShuffleBatchOptions& options) {
  return MaybeShuffleBatchJoin(scope, lists, true, batch_size, options);
}

OutputList MaybeShuffleBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                                 const Input& keep_input, const Input& batch_size,
                                 const ShuffleBatchOptions& options) {
  return MakeBatch(scope, Shuffled({.name = "shuffle_batch_join",
                                    .lists = lists,
                                    .batch_size = batch_size,
                                    .keep_input = keep_input},
                                   options));
}

}  // namespace troupe
