/// Keys of graph collections that TensorFlow 1.x has (`tf.GraphKeys`), so that graphs of either
/// say the same by them. Others are declared beside what fills them: "variables" and its kin in
/// `api/training/variables.h`, "update_ops" and "regularization_losses" in `api/variable_scope.h`,
/// "init_op" and its kin in `api/training/scaffold.h`, "summaries" in `api/summary.h`, "savers" in
/// `api/training/saver.h`, "table_initializer" and "saveable_objects" in `api/lookup.h`,
/// "queue_runners" in `api/training/queue_runner.h`.
#ifndef TROUPE_API_COLLECTIONS_H_
#define TROUPE_API_COLLECTIONS_H_

namespace troupe::collections {

/// Handles of the local variables of `metrics`.
inline constexpr char kMetricVariables[] = "metric_variables";
/// Handles of the variables of which `ExponentialMovingAverage` keeps averages.
inline constexpr char kMovingAverageVariables[] = "moving_average_variables";

// Troupe saves and loads these with graphs, and fills none by itself.
inline constexpr char kModelVariables[] = "model_variables";
inline constexpr char kConcatenatedVariables[] = "concatenated_variables";
inline constexpr char kTrainableResourceVariables[] = "trainable_resource_variables";
inline constexpr char kWeights[] = "weights";
inline constexpr char kBiases[] = "biases";
inline constexpr char kActivations[] = "activations";
inline constexpr char kAssetFilepaths[] = "asset_filepaths";
inline constexpr char kResources[] = "resources";
inline constexpr char kLocalResources[] = "local_resources";
inline constexpr char kEvalStep[] = "eval_step";
inline constexpr char kCondContext[] = "cond_context";
inline constexpr char kWhileContext[] = "while_context";

}  // namespace troupe::collections

#endif  // TROUPE_API_COLLECTIONS_H_
