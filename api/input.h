/// Input pipelines of queues, as TensorFlow 1.x has them: producers of rows, and batches.
///
///     Output files = StringInputProducer(s, MatchFilenamesOnce(s, "*.tfrecord").value(),
///                                        {.num_epochs = 3});
///     auto [key, record, read] = ops::ReaderReadV2(s, ops::TFRecordReaderV2(s), files);
///     OutputList batch = ShuffleBatch(s, {Parse(s, record)}, 100,
///                                     {.capacity = 2000, .min_after_dequeue = 1000});
///
/// Each function adds a queue, the nodes that fill it, a QueueRunner in the collection
/// "queue_runners" and a summary of how full the queue is. Nothing moves before
/// `StartQueueRunners`, which MonitoredSession calls; after the end of the input, batches are
/// OutOfRange. Names of nodes, capacities and seeds are TensorFlow's. The scope's op name, if it
/// has one, is the prefix of all of a function's nodes. Errors go to the scope: InvalidArgument
/// for shapes, types or numbers that do not fit.
#ifndef TROUPE_API_INPUT_H_
#define TROUPE_API_INPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

// --- queues --------------------------------------------------------------------------------------

/// A tuple of a queue, which `queue` is the handle of, as the node that makes it gives it out: of
/// the types and shapes that the queue was made with. Unlike the op, which knows no shapes.
OutputList Dequeue(const Scope& scope, const Output& queue);
/// `n` tuples, stacked; with `up_to`, what is left of a closed queue if that is fewer.
OutputList DequeueMany(const Scope& scope, const Output& queue, const Input& n, bool up_to = false);

// --- rows, one by one ----------------------------------------------------------------------------

/// How rows are produced. A value.
struct ProducerOptions {
  /// How often all rows are given before OutOfRange; 0: without end. Counted by a local variable
  /// "epochs", so that `LocalVariablesInitializer` must have run.
  int64_t num_epochs = 0;
  /// In another order in each epoch.
  bool shuffle = true;
  std::optional<int64_t> seed;  ///< Of the order.
  int64_t capacity = 32;        ///< Rows that the queue holds.
  std::string shared_name;      ///< Of the queue; "": its node's name.
  /// Of `InputProducer`: what a row is like, where its shape does not follow from the tensor's.
  PartialShape element_shape;
  /// Of `InputProducer`: the summary of how full the queue is; "": none.
  std::string summary_name;
};

/// A queue of the rows of `rows`, of rank 1 or more: its handle.
Output InputProducer(const Scope& scope, const Input& rows, const ProducerOptions& options = {});
/// A queue of strings, mostly names of files, given as a vector; at least one, else
/// InvalidArgument when it runs.
Output StringInputProducer(const Scope& scope, const Input& strings,
                           const ProducerOptions& options = {});
/// A queue of the numbers below the int32 scalar `limit`.
Output RangeInputProducer(const Scope& scope, const Input& limit,
                          const ProducerOptions& options = {});
/// A row of each tensor, the same one; the tensors have the same size in dimension 0.
OutputList SliceInputProducer(const Scope& scope, const InputList& tensors,
                              const ProducerOptions& options = {});

/// The names of files that match a pattern, or a vector of patterns: a local variable, so that it
/// is the same list as long as the session lives.
ModelVariable MatchFilenamesOnce(const Scope& scope, const Input& patterns);
/// `tensor`, which can be taken `num_epochs` times; then OutOfRange. 0: any number of times.
Output LimitEpochs(const Scope& scope, const Input& tensor, int64_t num_epochs);

// --- batches -------------------------------------------------------------------------------------

/// How elements become batches. A value.
struct BatchOptions {
  /// Enqueues that are under way at once. With more than one the order is not the input's. Of the
  /// `Join`s there are as many as there are lists.
  int64_t num_threads = 1;
  int64_t capacity = 32;  ///< Elements that the queue holds.
  /// The tensors hold several elements each, along dimension 0.
  bool enqueue_many = false;
  /// Of elements, where they do not follow from the tensors'.
  std::vector<PartialShape> shapes;
  /// Elements vary in size where their shape does not say: batches are padded with zeros and "".
  bool dynamic_pad = false;
  /// The last batch holds what is left. Else what is left is dropped.
  bool allow_smaller_final_batch = false;
  std::string shared_name;  ///< Of the queue; "": its node's name.
};

/// How elements become shuffled batches. A value.
struct ShuffleBatchOptions {
  int64_t capacity = 0;           ///< As above; larger than `min_after_dequeue`.
  int64_t min_after_dequeue = 0;  ///< Elements that stay to be chosen from.
  std::optional<int64_t> seed;
  int64_t num_threads = 1;
  bool enqueue_many = false;
  std::vector<PartialShape> shapes;
  bool allow_smaller_final_batch = false;
  std::string shared_name;
};

// `batch_size` is an int32 scalar. `keep_input` says which elements are put in at all: a scalar
// bool, or with `enqueue_many` also a vector, one for each element. All give a batch of each
// tensor. The `Join`s take several lists, mostly each from a reader of its own, and put in
// elements of all of them side by side.

OutputList Batch(const Scope& scope, const InputList& tensors, const Input& batch_size,
                 const BatchOptions& options = {});
OutputList MaybeBatch(const Scope& scope, const InputList& tensors, const Input& keep_input,
                      const Input& batch_size, const BatchOptions& options = {});
OutputList BatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                     const Input& batch_size, const BatchOptions& options = {});
OutputList MaybeBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                          const Input& keep_input, const Input& batch_size,
                          const BatchOptions& options = {});

OutputList ShuffleBatch(const Scope& scope, const InputList& tensors, const Input& batch_size,
                        const ShuffleBatchOptions& options);
OutputList MaybeShuffleBatch(const Scope& scope, const InputList& tensors, const Input& keep_input,
                             const Input& batch_size, const ShuffleBatchOptions& options);
OutputList ShuffleBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                            const Input& batch_size, const ShuffleBatchOptions& options);
OutputList MaybeShuffleBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                                 const Input& keep_input, const Input& batch_size,
                                 const ShuffleBatchOptions& options);

// --- batches of things that are alike ------------------------------------------------------------

/// A value.
struct BucketOptions {
  int64_t num_threads = 1;
  int64_t capacity = 32;  ///< Batches that wait, and elements of a bucket.
  /// Elements of each bucket, where they differ.
  std::vector<int64_t> bucket_capacities;
  std::vector<PartialShape> shapes;
  bool dynamic_pad = false;
  bool allow_smaller_final_batch = false;
  std::optional<Input> keep_input;  ///< A scalar bool.
  std::string shared_name;  ///< Of the queue of batches; those of buckets: NAME_0 and so on.
};

/// What `Bucket` gives.
struct BucketBatch {
  Output bucket;       ///< Which bucket the batch comes from, an int32 scalar.
  OutputList tensors;  ///< A batch of each tensor.
};

/// Collects elements in `num_buckets` queues, and gives a batch as soon as a bucket has one.
/// `which_bucket`: an int32 scalar in [0, num_buckets), else InvalidArgument stops the runner.
/// `batch_sizes`: one for all buckets, or one for each.
///
/// When the input ends, what is in the buckets is still given, in whole batches or, with
/// `allow_smaller_final_batch`, to the last element. (TensorFlow closes the queue of batches at
/// once and loses what is in the buckets.)
BucketBatch Bucket(const Scope& scope, const InputList& tensors, const Input& which_bucket,
                   const std::vector<int32_t>& batch_sizes, int64_t num_buckets,
                   const BucketOptions& options = {});

/// What `BucketByLength` gives.
struct LengthBatch {
  Output lengths;      ///< int32 [n].
  OutputList tensors;  ///< A batch of each tensor.
};

/// Buckets by `length`, an int32 scalar: below `boundaries[0]`, from there to below
/// `boundaries[1]`, ..., and all that is longer; TensorFlow's `bucket_by_sequence_length`.
/// Boundaries increase. Mostly with `dynamic_pad`: a batch is as wide as its longest element.
LengthBatch BucketByLength(const Scope& scope, const Input& length, const InputList& tensors,
                           const std::vector<int32_t>& batch_sizes,
                           const std::vector<int32_t>& boundaries,
                           const BucketOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_INPUT_H_
