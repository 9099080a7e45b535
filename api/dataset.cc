#include "api/dataset.h"

#include <algorithm>
#include <utility>

#include "api/data/root.h"
#include "api/data/stages.h"
#include "api/ops.h"
#include "api/session.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/dataset/published_datasets.h"

namespace troupe {

using data::PlanPtr;

namespace {

absl::Status AtLeast(const char* what, int64_t least, int64_t value) {
  if (value >= least) return absl::OkStatus();
  return InvalidArgument(what, " is ", value, "; it must be at least ", least);
}

absl::Status CheckTensors(const Tensors& components) {
  if (components.empty()) return InvalidArgument("FromTensors: there are no tensors");
  for (const Tensor& component : components) {
    if (!component.valid() || component.rank() == 0 || component.dim(0) != components[0].dim(0)) {
      return InvalidArgument(
          "FromTensors: ", component.valid() ? component.ToString(4) : std::string("no tensor"),
          " has not as many rows as ", components[0].ToString(4));
    }
    if (component.space() == MemorySpace::kDevice) {
      return InvalidArgument("FromTensors: a tensor is in the memory of a device");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCsv(const DatasetCsvOptions& options) {
  const int n = static_cast<int>(options.columns.size());
  if (n == 0) return InvalidArgument("Csv: there are no columns");
  for (const Tensor& column : options.columns) {
    switch (column.type()) {
      case ElementType::kInt32:
      case ElementType::kInt64:
      case ElementType::kFloat:
      case ElementType::kDouble:
      case ElementType::kString:
        if (column.num_elements() == 1) continue;
        [[fallthrough]];
      default:
        return InvalidArgument(
            "Csv: a column must be a scalar of type int32, int64, float, double or string, got ",
            column.valid() ? column.ToString(4) : std::string("no tensor"));
    }
  }
  for (const std::vector<int>* list : {&options.required, &options.select}) {
    for (const int column : *list) {
      if (column < 0 || column >= n) {
        return InvalidArgument("Csv: there is no column ", column, " of ", n);
      }
    }
  }
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r') {
    return InvalidArgument("Csv: the delimiter must not be a quote or a line's end");
  }
  TROUPE_RETURN_IF_ERROR(AtLeast("Csv: skip_bad", 0, options.skip_bad));
  return AtLeast("Csv: max_row_bytes", 1, options.max_row_bytes);
}

absl::Status CheckBucket(const DatasetBucketOptions& options) {
  if (options.length == nullptr) return InvalidArgument("Bucket: there is no function of lengths");
  if (!std::is_sorted(options.boundaries.begin(), options.boundaries.end())) {
    return InvalidArgument("Bucket: the boundaries must be ascending");
  }
  const size_t n = options.batch_sizes.size();
  if (n != 1 && n != options.boundaries.size() + 1) {
    return InvalidArgument("Bucket: there are ", options.boundaries.size(), " boundaries and ", n,
                           " batch sizes; expected one size, or one more than boundaries");
  }
  for (const int64_t size : options.batch_sizes) {
    TROUPE_RETURN_IF_ERROR(AtLeast("Bucket: a batch size", 1, size));
  }
  return absl::OkStatus();
}

struct FunctionOfGraph {
  ElementFunction call;
  data::FunctionState state;
};

/// Calls a function of a graph's library, on so many threads at once.
absl::StatusOr<FunctionOfGraph> GraphFunction(const Graph& graph, const Function& function,
                                              int threads) {
  const Scope s = Scope::NewRoot();
  TROUPE_RETURN_IF_ERROR(s.graph()->AddLibrary(graph.library()));
  std::vector<Output> args;
  for (const FunctionArg& arg : function.args) {
    args.push_back(ops::Placeholder(s, arg.type, {.shape = arg.shape}));
  }
  const OutputList results = Call(s, function, InputList(args));
  TROUPE_RETURN_IF_ERROR(s.status());
  SessionOptions options;
  // What goes on when a file has been read is played by the session's workers: one for each call,
  // as far as a session may have so many.
  constexpr int kMostThreads = 4096;
  options.threads = threads == 1 ? 1 : std::min(threads + 1, kMostThreads);
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::Create(s.graph(), options));
  TROUPE_ASSIGN_OR_RETURN(
      const Session::Callable callable,
      session->MakeCallable(absl::MakeConstSpan(args), absl::MakeConstSpan(results)));
  FunctionOfGraph made;
  made.call = [session, callable, num_args = args.size(),
               num_results = results.size()](Tensors element) -> absl::StatusOr<Tensors> {
    if (element.size() != num_args) {
      return InvalidArgument("the function takes ", num_args, " arguments; the element has ",
                             element.size(), " components");
    }
    Tensors values(num_results);
    TROUPE_RETURN_IF_ERROR(callable(element, absl::MakeSpan(values)));
    return values;
  };
  made.state.save = [session] { return session->SaveKernelStates(); };
  made.state.restore = [session](const Session::KernelStates& states) {
    return session->RestoreKernelStates(states);
  };
  return made;
}

PlanPtr MapPlan(PlanPtr input, ElementFunction function, const DatasetMapOptions& options,
                data::FunctionState state = {}) {
  return options.parallel == 1
             ? SerialMapPlan(std::move(input), std::move(function), options, std::move(state))
             : ParallelMapPlan(std::move(input), std::move(function), options);
}

absl::Status CheckMap(const DatasetMapOptions& options) {
  TROUPE_RETURN_IF_ERROR(AtLeast("Map: parallel", 0, options.parallel));
  return AtLeast("Map: skip_bad", 0, options.skip_bad);
}

/// A root for the iterators of graphs.
class GraphIterator final : public ElementIterator {
 public:
  explicit GraphIterator(std::shared_ptr<data::Root> root) : root_(std::move(root)) {}
  ~GraphIterator() override { data::Root::End(std::move(root_)); }
  uint64_t NextAsync(Done done) override { return root_->NextAsync(std::move(done)); }
  bool Forget(uint64_t request) override { return root_->Forget(request); }
  void Cancel() override { root_->Cancel(); }
  void Finish() override { root_->Finish(); }
  absl::StatusOr<std::string> Save() override { return root_->Save(); }
  absl::Status Restore(std::string_view position) override { return root_->Restore(position); }
  void AddStatsTo(RunMetadata* metadata) override { root_->AddStatsTo(metadata); }

 private:
  std::shared_ptr<data::Root> root_;
};

}  // namespace

Dataset::Dataset() : plan_(data::NumbersPlan(0, 0, 1)) {}

Dataset Dataset::Then(absl::Status wrong, const std::function<PlanPtr()>& make) const {
  if (!status_.ok()) return Dataset(status_);
  if (!wrong.ok()) return Dataset(std::move(wrong));
  return Dataset(make());
}

Dataset Dataset::FromTensors(Tensors components) {
  return Dataset().Then(CheckTensors(components), [&] { return data::TensorsPlan(components); });
}

Dataset Dataset::Range(int64_t begin, int64_t end, int64_t step) {
  return Dataset().Then(step != 0 ? absl::OkStatus() : InvalidArgument("Range: the step is 0"),
                        [&] { return data::NumbersPlan(begin, end, step); });
}

Dataset Dataset::Files(std::string pattern) { return Dataset(data::FilesPlan(std::move(pattern))); }

Dataset Dataset::Records(std::vector<std::string> files, DatasetRecordOptions options) {
  absl::Status wrong = AtLeast("Records: max_record_bytes", 0, options.max_record_bytes);
  if (wrong.ok()) wrong = AtLeast("Records: skip_bad", 0, options.skip_bad);
  return Dataset().Then(wrong, [&] { return data::RecordsPlan(std::move(files), options); });
}

Dataset Dataset::TextLines(std::vector<std::string> files, DatasetTextOptions options) {
  return Dataset().Then(AtLeast("TextLines: max_line_bytes", 1, options.max_line_bytes),
                        [&] { return data::LinesPlan(std::move(files), options); });
}

Dataset Dataset::Csv(std::vector<std::string> files, DatasetCsvOptions options) {
  return Dataset().Then(CheckCsv(options),
                        [&] { return data::CsvPlan(std::move(files), std::move(options)); });
}

Dataset Dataset::Generate(std::function<ElementGenerator(uint64_t pass)> make) {
  return Dataset().Then(
      make != nullptr ? absl::OkStatus() : InvalidArgument("Generate: there is no function"),
      [&] { return data::GeneratorPlan(std::move(make)); });
}

Dataset Dataset::FromActor(std::string name, DatasetActorSourceOptions options) {
  return Dataset().Then(AtLeast("FromActor: in_flight", 1, options.in_flight),
                        [&] { return data::ActorPlan(std::move(name), options); });
}

Dataset Dataset::Zip(std::vector<Dataset> datasets) {
  if (datasets.empty()) return Dataset(InvalidArgument("Zip: there are no datasets"));
  std::vector<PlanPtr> plans;
  for (const Dataset& dataset : datasets) {
    if (!dataset.status().ok()) return dataset;
    plans.push_back(dataset.plan());
  }
  return Dataset(data::ZipPlan(std::move(plans)));
}

Dataset Dataset::Map(ElementFunction function, DatasetMapOptions options) const {
  absl::Status wrong = CheckMap(options);
  if (function == nullptr) wrong = InvalidArgument("Map: there is no function");
  return Then(wrong, [&] { return MapPlan(plan_, std::move(function), options); });
}

Dataset Dataset::Map(std::shared_ptr<Graph> graph, Function function,
                     DatasetMapOptions options) const {
  absl::Status wrong = CheckMap(options);
  if (graph == nullptr) wrong = InvalidArgument("Map: there is no graph");
  return Then(wrong, [&] {
    // Iterators have sessions of their own, so that each begins with the same stateful kernels.
    return data::MakePlan(
        [input = plan_, graph, function,
         options](const data::Place& place) -> absl::StatusOr<std::unique_ptr<data::Stage>> {
          const int most = place.flow()->threads();
          const int calls = options.parallel == kAuto ? most : std::min(options.parallel, most);
          TROUPE_ASSIGN_OR_RETURN(FunctionOfGraph map, GraphFunction(*graph, function, calls));
          return MapPlan(input, std::move(map.call), options, std::move(map.state))->Make(place);
        });
  });
}

Dataset Dataset::Filter(ElementPredicate function) const {
  return Then(
      function != nullptr ? absl::OkStatus() : InvalidArgument("Filter: there is no function"),
      [&] { return data::FilterPlan(plan_, std::move(function)); });
}

Dataset Dataset::Shuffle(DatasetShuffleOptions options) const {
  return Then(AtLeast("Shuffle: the window", 1, options.window),
              [&] { return data::ShufflePlan(plan_, options); });
}

Dataset Dataset::Batch(int64_t size, DatasetBatchOptions options) const {
  return Then(AtLeast("Batch: the size", 1, size),
              [&] { return data::BatchPlan(plan_, size, options.drop_remainder); });
}

Dataset Dataset::PaddedBatch(int64_t size, DatasetPaddedBatchOptions options) const {
  return Then(AtLeast("PaddedBatch: the size", 1, size),
              [&] { return data::PaddedBatchPlan(plan_, size, std::move(options)); });
}

Dataset Dataset::Bucket(DatasetBucketOptions options) const {
  return Then(CheckBucket(options), [&] { return data::BucketPlan(plan_, std::move(options)); });
}

Dataset Dataset::Interleave(std::function<absl::StatusOr<Dataset>(const Tensors&)> function,
                            DatasetInterleaveOptions options) const {
  absl::Status wrong = AtLeast("Interleave: the cycle", 1, options.cycle);
  if (wrong.ok()) wrong = AtLeast("Interleave: the block", 1, options.block);
  if (wrong.ok()) wrong = AtLeast("Interleave: ahead", 1, options.ahead);
  if (function == nullptr) wrong = InvalidArgument("Interleave: there is no function");
  return Then(wrong, [&] { return data::InterleavePlan(plan_, std::move(function), options); });
}

Dataset Dataset::Repeat(int64_t passes) const {
  return Then(AtLeast("Repeat: passes", -1, passes),
              [&] { return data::RepeatPlan(plan_, passes); });
}

Dataset Dataset::Take(int64_t n) const {
  return Then(AtLeast("Take: the number", 0, n),
              [&] { return data::TakePlan(plan_, static_cast<uint64_t>(n)); });
}

Dataset Dataset::Skip(int64_t n) const {
  return Then(AtLeast("Skip: the number", 0, n),
              [&] { return data::SkipPlan(plan_, static_cast<uint64_t>(n)); });
}

Dataset Dataset::Shard(int64_t index, int64_t of) const {
  const bool fits = 0 <= index && index < of && of <= INT32_MAX;
  return Then(
      fits ? absl::OkStatus() : InvalidArgument("Shard: there is no shard ", index, " of ", of),
      [&] {
        return data::ShardPlan(plan_, static_cast<uint64_t>(index), static_cast<uint64_t>(of));
      });
}

Dataset Dataset::Enumerate() const {
  return Then(absl::OkStatus(), [&] { return data::EnumeratePlan(plan_); });
}

Dataset Dataset::Prefetch(int64_t elements) const {
  return Then(AtLeast("Prefetch: the number", 0, elements),
              [&] { return data::PrefetchPlan(plan_, elements); });
}

Dataset Dataset::Cache(DatasetCacheOptions options) const {
  return Then(AtLeast("Cache: position_bytes", 0, options.position_bytes),
              [&] { return data::CachePlan(plan_, options); });
}

Dataset Dataset::CacheFile(std::string path) const {
  return Then(absl::OkStatus(), [&] { return data::CacheFilePlan(plan_, std::move(path)); });
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> Dataset::MakeIterator(
    const DatasetIteratorOptions& options) const {
  TROUPE_RETURN_IF_ERROR(status_);
  return CatchExceptions([&]() -> absl::StatusOr<std::unique_ptr<DatasetIterator>> {
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<data::Root> root, data::Root::Make(*plan_, options));
    return std::unique_ptr<DatasetIterator>(new DatasetIterator(std::move(root)));
  });
}

DatasetIterator::DatasetIterator(std::shared_ptr<data::Root> root) : root_(std::move(root)) {}
DatasetIterator::~DatasetIterator() { data::Root::End(std::move(root_)); }
absl::StatusOr<bool> DatasetIterator::Next(Tensors* element) { return root_->Next(element); }
void DatasetIterator::NextAsync(Done done) { root_->NextAsync(std::move(done)); }
void DatasetIterator::Cancel() { root_->Cancel(); }
absl::StatusOr<std::string> DatasetIterator::Save() { return root_->Save(); }
absl::Status DatasetIterator::Restore(std::string_view position) {
  return root_->Restore(position);
}
std::vector<StageStats> DatasetIterator::Stats() const { return root_->Stats(); }
std::string DatasetIterator::StatsText() const { return root_->StatsText(); }
void DatasetIterator::AddStatsTo(RunMetadata* metadata) const { root_->AddStatsTo(metadata); }

absl::StatusOr<PublishedDataset> PublishDataset(const std::string& name, const Dataset& dataset,
                                                const DatasetIteratorOptions& options) {
  // No step waits for a file.
  const Dataset ahead = dataset.Prefetch();
  TROUPE_RETURN_IF_ERROR(ahead.status());
  TROUPE_RETURN_IF_ERROR(PublishedDatasets::Global()->Add(
      name,
      [ahead = ahead.plan(),
       options](Device* device) -> absl::StatusOr<std::shared_ptr<ElementIterator>> {
        const bool upload = device != nullptr && device->memory_space() == MemorySpace::kDevice;
        const PlanPtr plan = upload ? data::UploadPlan(ahead, device) : ahead;
        TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<data::Root> root, data::Root::Make(*plan, options));
        return std::make_shared<GraphIterator>(std::move(root));
      }));
  return PublishedDataset([name] { PublishedDatasets::Global()->Remove(name); });
}

}  // namespace troupe
