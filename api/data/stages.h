/// The plans of all stages; what they do is said where `Dataset` makes them.
#ifndef TROUPE_API_DATA_STAGES_H_
#define TROUPE_API_DATA_STAGES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "api/data/stage.h"
#include "api/dataset.h"

namespace troupe::data {

// Sources.
PlanPtr TensorsPlan(Tensors components);
PlanPtr NumbersPlan(int64_t begin, int64_t end, int64_t step);
PlanPtr FilesPlan(std::string pattern);
PlanPtr RecordsPlan(std::vector<std::string> files, RecordOptions options);
PlanPtr LinesPlan(std::vector<std::string> files, TextOptions options);
PlanPtr CsvPlan(std::vector<std::string> files, CsvOptions options);
PlanPtr GeneratorPlan(std::function<Generator(uint64_t pass)> make);
PlanPtr ActorPlan(std::string name, ActorSourceOptions options);

// Played by the one who pulls.
PlanPtr FilterPlan(PlanPtr input, FilterFunction function);
PlanPtr SerialMapPlan(PlanPtr input, MapFunction function, MapOptions options);
PlanPtr TakePlan(PlanPtr input, uint64_t n);
PlanPtr SkipPlan(PlanPtr input, uint64_t n);
PlanPtr ShardPlan(PlanPtr input, uint64_t index, uint64_t of);
PlanPtr EnumeratePlan(PlanPtr input);
PlanPtr RepeatPlan(PlanPtr input, int64_t passes);
PlanPtr ZipPlan(std::vector<PlanPtr> inputs);
PlanPtr ShufflePlan(PlanPtr input, ShuffleOptions options);
PlanPtr BatchPlan(PlanPtr input, int64_t size, bool drop_remainder);
PlanPtr PaddedBatchPlan(PlanPtr input, int64_t size, PaddedBatchOptions options);
PlanPtr BucketPlan(PlanPtr input, BucketOptions options);
PlanPtr InterleavePlan(PlanPtr input,
                       std::function<absl::StatusOr<Dataset>(const Tensors&)> function,
                       InterleaveOptions options);
PlanPtr CachePlan(PlanPtr input);
PlanPtr CacheFilePlan(PlanPtr input, std::string path);

// Actors.
PlanPtr PrefetchPlan(PlanPtr input, int64_t elements);
PlanPtr ParallelMapPlan(PlanPtr input, MapFunction function, MapOptions options);

/// Calls a function of the application.
absl::StatusOr<Element> CallMap(const MapFunction& function, Element element);
/// One more bad element: `why`, if there are more than `most`; else it is logged.
absl::Status CountBad(const absl::Status& why, int64_t most, int64_t* bad, Meter* meter);

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_STAGES_H_
