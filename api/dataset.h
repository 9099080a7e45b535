/// Datasets: where elements come from, and what is done with them before a model sees them.
///
///     Dataset train = Dataset::Records({"/data/train.tfrecord"})
///                         .Shuffle({.window = 10000, .seed = 1})
///                         .Repeat()
///                         .Batch(100)
///                         .Map(parse, {.parallel = kAuto})
///                         .Prefetch();
///     std::unique_ptr<DatasetIterator> iterator = *train.MakeIterator();
///     Tensors batch;
///     while (*iterator->Next(&batch)) { ... }
///
/// docs/dataset.md has the stages, and how they run.
#ifndef TROUPE_API_DATASET_H_
#define TROUPE_API_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "api/functions.h"
#include "api/publication.h"
#include "devices/export.h"
#include "devices/storage/record_writer.h"
#include "devices/tensor.h"

namespace troupe::data {
class Plan;
class Root;
}  // namespace troupe::data

TROUPE_EXPORT_BEGIN
namespace troupe {

class Graph;
class RunMetadata;

/// An element of a dataset.
using Tensors = std::vector<Tensor>;

/// Functions of the application. They are called by threads of the iterator, several at once where
/// a stage is parallel. What they throw becomes an error.
using ElementFunction = std::function<absl::StatusOr<Tensors>(Tensors)>;
using ElementPredicate = std::function<absl::StatusOr<bool>(const Tensors&)>;
/// The length by which elements are put into buckets.
using ElementLength = std::function<absl::StatusOr<int64_t>(const Tensors&)>;
/// Gives the next element; false: there is none.
using ElementGenerator = std::function<absl::StatusOr<bool>(Tensors* element)>;

/// A number that Troupe chooses, and changes as it learns.
inline constexpr int kAuto = 0;

struct DatasetRecordOptions {
  FileCompression compression = FileCompression::kNone;
  int64_t max_record_bytes = int64_t{1} << 31;  ///< Longer ones are bad.
  /// So many bad records are left out, counted and logged; one more is an error. A record whose
  /// length is damaged ends its file.
  int64_t skip_bad = 0;
};

struct DatasetTextOptions {
  FileCompression compression = FileCompression::kNone;
  int64_t max_line_bytes = int64_t{1} << 26;  ///< Longer ones are ResourceExhausted.
};

struct DatasetCsvOptions {
  /// A scalar for each column that the file has: its type (int32, int64, float, double, string),
  /// and the value of an empty field. `Required` gives columns without one.
  Tensors columns;
  std::vector<int> required;  ///< Columns whose fields must not be empty.
  std::vector<int> select;    ///< The columns that elements have, in this order; none: all.
  char delimiter = ',';
  bool header = false;  ///< The first line of each file is none of its rows.
  FileCompression compression = FileCompression::kNone;
  int64_t max_row_bytes = int64_t{1} << 26;  ///< Longer ones are ResourceExhausted.
  /// So many rows that do not fit the columns, or quote wrongly, are left out, counted and logged;
  /// one more is an error.
  int64_t skip_bad = 0;
};

struct DatasetActorSourceOptions {
  int in_flight = 8;  ///< So many elements are asked for at once.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct DatasetMapOptions {
  /// Calls at once. 1: by the thread that plays the stages around it. kAuto: as many as there is
  /// use for, up to the threads of the iterator.
  int parallel = 1;
  /// Results come in the order of their inputs. False: as they get ready, another order each time.
  bool ordered = true;
  /// So many elements whose call fails are left out, counted and logged.
  int64_t skip_bad = 0;
};

struct DatasetShuffleOptions {
  int64_t window = 0;  ///< Elements of which the next one is drawn.
  uint64_t seed = 0;
  bool reshuffle = true;  ///< Another order in each pass (`Repeat`).
};

struct DatasetPaddingOptions {
  /// For each component the shape that it is padded to, unknown sizes to the largest of the batch;
  /// none: all are unknown.
  std::vector<PartialShape> shapes;
  /// For each component a scalar of its type; none, or an invalid tensor: zero, or "".
  Tensors values;
};

struct DatasetBatchOptions {
  bool drop_remainder = false;  ///< The last batch is left out if it is smaller.
};
struct DatasetPaddedBatchOptions {
  bool drop_remainder = false;
  DatasetPaddingOptions padding;
};

struct DatasetBucketOptions {
  ElementLength length;
  /// Ascending: bucket i has lengths less than boundaries[i], the last bucket all others.
  std::vector<int64_t> boundaries;
  /// Of each bucket, one more than boundaries; a single one counts for all.
  std::vector<int64_t> batch_sizes;
  DatasetPaddingOptions padding;
  /// What is left of the buckets at the end, the shortest first, is left out.
  bool drop_remainder = false;
};

struct DatasetInterleaveOptions {
  int cycle = 4;          ///< Datasets that are open at once.
  int block = 1;          ///< Elements of one before it is the next one's turn.
  bool parallel = false;  ///< Each is read ahead, by any thread. The order stays the same.
  int ahead = 64;         ///< So many elements of each, then.
};

struct DatasetCacheOptions {
  /// A position holds the elements of the cache, and until that is complete where the stages before
  /// it are, if all that takes no more bytes: who is restored from it does not ask these for
  /// elements again. Else, or if their position cannot be saved, they are asked again for all
  /// elements. If they give another order each time, their position is saved whatever it takes; the
  /// cache's is Unimplemented if its elements take more, or theirs cannot be saved.
  int64_t position_bytes = int64_t{64} << 20;
};

struct DatasetIteratorOptions {
  /// Threads that play the stages which are actors; 0: one per core. An iterator without such
  /// stages has none. Elements and their order are the same for any number.
  int threads = 0;
  std::string name = "dataset";  ///< In the log and the metadata.
  /// How often statistics are logged, at level info.
  absl::Duration log_every = absl::Minutes(1);
};

/// What a stage has done so far. A value.
struct StageStats {
  std::string name;         ///< "Shuffle(10000)"; stages follow those that they pull from.
  int depth = 0;            ///< Stages between it and the consumer.
  int64_t elements = 0;     ///< That it has given.
  double busy_seconds = 0;  ///< Of its own work, stages before it not counted; estimated.
  int64_t starved = 0;      ///< Actors: how often there was nothing ready for the consumer.
  int64_t held = 0;         ///< Actors: elements that are ready,
  int64_t capacity = 0;     ///< of so many at most; 0: no actor.
  int parallel = 0;         ///< Calls at once that are allowed just now.
  int64_t bad = 0;          ///< Elements that were left out as bad.
};

/// The elements of a dataset, one after another. Thread-safe: several consumers share the elements.
///
/// The first error ends it: `Next` then gives this error again. It names stage, file and offset.
class DatasetIterator {
 public:
  /// Waits for what of the application's functions is being called. Not from such a function.
  ~DatasetIterator();
  DatasetIterator(const DatasetIterator&) = delete;
  DatasetIterator& operator=(const DatasetIterator&) = delete;

  /// The next element; false at the end. Waits until it is there.
  absl::StatusOr<bool> Next(Tensors* element);
  /// The same without waiting: `done` is called once, on this thread or one of the iterator's, and
  /// must not wait. Calls are answered in order.
  using Done = std::function<void(absl::StatusOr<bool> more, Tensors element)>;
  void NextAsync(Done done);
  /// Calls that wait, and those to come, end with Cancelled. Does not wait.
  void Cancel();

  /// Where it is, as bytes: elements that were given before are not given again by an iterator of
  /// the same stages that has been restored. Unimplemented: elements of resources or variants.
  absl::StatusOr<std::string> Save();
  /// Before the first `Next`. InvalidArgument: damaged, or of other stages.
  absl::Status Restore(std::string_view position);

  /// The stages, that which is nearest to the consumer first.
  std::vector<StageStats> Stats() const;
  /// A line for each stage: rate, time, fullness.
  std::string StatsText() const;
  /// As a device of its own in the step stats: a node for each stage, with the time that an element
  /// takes. Traced steps do it for the iterators of their graphs.
  void AddStatsTo(RunMetadata* metadata) const;

 private:
  friend class Dataset;
  explicit DatasetIterator(std::shared_ptr<data::Root> root);
  std::shared_ptr<data::Root> root_;
};

/// A description of elements: a source and stages. A value; copies share what they describe.
/// Thread-compatible; any number of iterators may be made of it.
class Dataset {
 public:
  /// No elements.
  Dataset();

  // ---- Sources ----

  /// Rows of tensors of the same first dimension; they are not copied.
  static Dataset FromTensors(Tensors components);
  /// begin, begin + step, ... before `end`: int64 scalars.
  static Dataset Range(int64_t begin, int64_t end, int64_t step = 1);
  /// Names of the files that match a pattern when an iterator is made, sorted. NotFound: none.
  static Dataset Files(std::string pattern);
  /// The records of TFRecord files, one file after another: string scalars.
  static Dataset Records(std::vector<std::string> files, DatasetRecordOptions options = {});
  /// The lines of text files, without their ends ("\n" or "\r\n").
  static Dataset TextLines(std::vector<std::string> files, DatasetTextOptions options = {});
  /// The rows of files of comma-separated values (RFC 4180): a scalar for each column.
  static Dataset Csv(std::vector<std::string> files, DatasetCsvOptions options);
  /// What a function gives; `make` makes one for each pass. A restored iterator calls it as often
  /// as before, so it should give the same again. It returns in bounded time.
  static Dataset Generate(std::function<ElementGenerator(uint64_t pass)> make);
  /// What the actor answers that is published under this name (api/actors.h), in this process or
  /// the cluster: it is asked with int64 scalars, the pass and the element's number, and answers
  /// the element; an error OutOfRange is the end.
  static Dataset FromActor(std::string name, DatasetActorSourceOptions options = {});
  /// Elements of several datasets side by side, until one ends.
  static Dataset Zip(std::vector<Dataset> datasets);

  // ---- Stages ----

  Dataset Map(ElementFunction function, DatasetMapOptions options = {}) const;
  /// A function of a graph's library, which gets the components as arguments. It is run by a
  /// session of its own, on one thread a call. A position has the states of its kernels, such as
  /// those of seeded random ops, unless calls are parallel.
  Dataset Map(std::shared_ptr<Graph> graph, Function function,
              DatasetMapOptions options = {}) const;
  Dataset Filter(ElementPredicate function) const;
  Dataset Shuffle(DatasetShuffleOptions options) const;
  /// Elements of the same shapes, stacked.
  Dataset Batch(int64_t size, DatasetBatchOptions options = {}) const;
  /// Elements whose shapes differ in size, padded.
  Dataset PaddedBatch(int64_t size, DatasetPaddedBatchOptions options = {}) const;
  /// Padded batches of elements of about one length: each is given when it is full.
  Dataset Bucket(DatasetBucketOptions options) const;
  /// `function` makes a dataset for each element.
  Dataset Interleave(std::function<absl::StatusOr<Dataset>(const Tensors&)> function,
                     DatasetInterleaveOptions options = {}) const;
  /// So many passes; -1: without end (unless a pass has no elements).
  Dataset Repeat(int64_t passes = -1) const;
  Dataset Take(int64_t n) const;
  Dataset Skip(int64_t n) const;
  /// Elements `index`, `index + of`, `index + 2 of`, ...: what one worker of several takes. Of many
  /// files it is better to shard their names, before an `Interleave`.
  Dataset Shard(int64_t index, int64_t of) const;
  /// An int64 scalar before the components: the element's number in its pass.
  Dataset Enumerate() const;
  /// Has up to so many elements ready; kAuto: as many as there is use for, up to 256.
  Dataset Prefetch(int64_t elements = kAuto) const;
  /// Keeps the first pass in memory, for the passes after it.
  Dataset Cache(DatasetCacheOptions options = {}) const;
  /// Keeps the first pass in a record file, also for later programs: once it is complete, the
  /// stages before it are not asked any more. Of programs that write it at the same time, the last
  /// one wins.
  Dataset CacheFile(std::string path) const;

  /// What is wrong with the stages, as far as it is known without running them: InvalidArgument.
  const absl::Status& status() const { return status_; }
  /// `status`, or what files and functions say.
  absl::StatusOr<std::unique_ptr<DatasetIterator>> MakeIterator(
      const DatasetIteratorOptions& options = {}) const;

  /// For stages.
  const std::shared_ptr<const data::Plan>& plan() const { return plan_; }

 private:
  explicit Dataset(std::shared_ptr<const data::Plan> plan) : plan_(std::move(plan)) {}
  explicit Dataset(absl::Status status) : status_(std::move(status)) {}
  /// The error of this dataset, or `wrong` unless it is OK, or the plan that `make` makes.
  Dataset Then(absl::Status wrong,
               const std::function<std::shared_ptr<const data::Plan>()>& make) const;

  std::shared_ptr<const data::Plan> plan_;
  absl::Status status_;
};

/// Makes a dataset known, under a name, to the ops of this process that make iterators
/// (DatasetIterator), until the result goes; iterators that there are go on. AlreadyExists.
using PublishedDataset = Publication;
absl::StatusOr<PublishedDataset> PublishDataset(const std::string& name, const Dataset& dataset,
                                                const DatasetIteratorOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_DATASET_H_
