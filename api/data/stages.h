/// The plans of all stages; what they do is said where `Dataset` makes them.
#ifndef TROUPE_API_DATA_STAGES_H_
#define TROUPE_API_DATA_STAGES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/data/stage.h"
#include "api/dataset.h"

namespace troupe::data {

// Sources.
PlanPtr TensorsPlan(Tensors components);
PlanPtr NumbersPlan(int64_t begin, int64_t end, int64_t step);
PlanPtr FilesPlan(std::string pattern);
PlanPtr RecordsPlan(std::vector<std::string> files, DatasetRecordOptions options);
PlanPtr LinesPlan(std::vector<std::string> files, DatasetTextOptions options);
PlanPtr CsvPlan(std::vector<std::string> files, DatasetCsvOptions options);
PlanPtr GeneratorPlan(std::function<ElementGenerator(uint64_t pass)> make);
PlanPtr ActorPlan(std::string name, DatasetActorSourceOptions options);

// Played by the one who pulls.
PlanPtr FilterPlan(PlanPtr input, ElementPredicate function);
/// What a function keeps between its calls; null if that is nothing.
struct FunctionState {
  using Values = std::map<std::string, std::string>;
  std::function<absl::StatusOr<Values>()> save;
  std::function<absl::Status(const Values&)> restore;
};
PlanPtr SerialMapPlan(PlanPtr input, ElementFunction function, DatasetMapOptions options,
                      FunctionState state);
PlanPtr TakePlan(PlanPtr input, uint64_t n);
PlanPtr SkipPlan(PlanPtr input, uint64_t n);
PlanPtr ShardPlan(PlanPtr input, uint64_t index, uint64_t of);
PlanPtr EnumeratePlan(PlanPtr input);
PlanPtr RepeatPlan(PlanPtr input, int64_t passes);
PlanPtr ZipPlan(std::vector<PlanPtr> inputs);
PlanPtr ShufflePlan(PlanPtr input, DatasetShuffleOptions options);
PlanPtr BatchPlan(PlanPtr input, int64_t size, bool drop_remainder);
PlanPtr PaddedBatchPlan(PlanPtr input, int64_t size, DatasetPaddedBatchOptions options);
PlanPtr BucketPlan(PlanPtr input, DatasetBucketOptions options);
PlanPtr InterleavePlan(PlanPtr input,
                       std::function<absl::StatusOr<Dataset>(const Tensors&)> function,
                       DatasetInterleaveOptions options);
PlanPtr CachePlan(PlanPtr input, DatasetCacheOptions options);
PlanPtr CacheFilePlan(PlanPtr input, std::string path);

// Actors.
PlanPtr PrefetchPlan(PlanPtr input, int64_t elements);
/// Two elements ahead in the memory of a device, which outlives the stages. Only the last stage of
/// an iterator can be this.
PlanPtr UploadPlan(PlanPtr input, Device* device);
PlanPtr ParallelMapPlan(PlanPtr input, ElementFunction function, DatasetMapOptions options);

/// Calls a function of the application.
absl::StatusOr<Element> CallMap(const ElementFunction& function, Element element);
/// One more bad element: `why`, if there are more than `most`; else it is logged.
absl::Status CountBad(const absl::Status& why, int64_t most, int64_t* bad, Meter* meter);

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_STAGES_H_
