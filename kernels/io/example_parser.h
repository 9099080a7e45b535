/// Batches of serialized `Example`s and `SequenceExample`s to tensors.
#ifndef TROUPE_KERNELS_IO_EXAMPLE_PARSER_H_
#define TROUPE_KERNELS_IO_EXAMPLE_PARSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/cpu/compute_pool.h"
#include "devices/tensor.h"

namespace troupe {

/// A feature, or a list of features, that is asked for.
struct FeatureSpec {
  enum class Kind : uint8_t {
    kFixed,     ///< As many values in every example: a dense tensor.
    kVariable,  ///< A dense tensor whose first dimension varies: padded to the longest.
    kSparse,    ///< Values with indices.
    kRagged,    ///< Values with row splits.
  };
  Kind kind = Kind::kFixed;
  std::string key;
  ElementType type = ElementType::kInvalid;  ///< float, int64, string.
  /// Of an example's values (of `kVariable` without the first dimension; in a list of features of
  /// one feature's values). For the dense kinds.
  Shape shape;
  /// Of `kFixed`: what an example has that lacks the feature; empty: that is an error. Of
  /// `kVariable`: one value, the padding.
  Tensor default_value;
  ElementType split_type = ElementType::kInt64;  ///< Of `kRagged`: int32 or int64.
  /// Of a list of features that is `kFixed`: where it is missing, it is empty.
  bool may_be_missing = false;
};

/// Serialized messages, and what they are called in errors.
struct ExampleBatch {
  absl::Span<const std::string> serialized;
  absl::Span<const std::string> names;  ///< As many, or none.
  /// One message, whose outputs have no dimension of examples.
  bool single = false;
};

/// What one `FeatureSpec` gives. Which tensors there are is up to its kind.
struct FeatureTensors {
  Tensor values;
  Tensor indices, shape;  ///< `kSparse`; int64.
  Tensor splits;          ///< `kRagged`; of a single message empty.
  Tensor inner_splits;    ///< `kRagged` of a list: where in `values` each of its features begins.
  Tensor lengths;         ///< `kFixed` of a list: how many features each example has; int64.
};

/// Where outputs are, and who helps.
struct ParserResources {
  Allocator* allocator = HostAllocator();
  ComputePool* pool = nullptr;  ///< nullptr: the calling thread alone.
};

/// InvalidArgument unless the types of values are those that there are, keys differ, and defaults
/// are of the type and the shape that they must have.
absl::Status CheckSpecs(absl::Span<const FeatureSpec> specs);

/// The features of `Example`s, or of the contexts of `SequenceExample`s; one result for each spec.
/// `specs` have been checked. Parallel over examples; the results and the error do not depend on
/// the number of threads. Memory is taken for what is there, never for what a length claims.
///
/// InvalidArgument, which names the example and the feature, for bytes that are no such message,
/// and for features that are missing or of another type or number of values. Of entries with one
/// key the last that has values counts.
absl::StatusOr<std::vector<FeatureTensors>> ParseFeatures(const ExampleBatch& batch,
                                                          absl::Span<const FeatureSpec> specs,
                                                          const ParserResources& resources = {});

/// The same for the lists of features of `SequenceExample`s. No spec is `kVariable`. In dense
/// results the examples with fewer features are filled up with zeros or empty strings.
absl::StatusOr<std::vector<FeatureTensors>> ParseFeatureLists(
    const ExampleBatch& batch, absl::Span<const FeatureSpec> specs,
    const ParserResources& resources = {});

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_EXAMPLE_PARSER_H_
