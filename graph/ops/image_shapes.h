/// Shapes of images, for the shape functions of several files.
#ifndef TROUPE_GRAPH_OPS_IMAGE_SHAPES_H_
#define TROUPE_GRAPH_OPS_IMAGE_SHAPES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/shape_inference.h"

namespace troupe {

/// A height and a width; -1 if unknown.
struct ImageSize {
  int64_t height = -1, width = -1;
};

/// Input `i`, a vector of a height and a width. Sizes that kernels refuse count as unknown.
absl::StatusOr<ImageSize> ImageSizeInput(InferenceContext* c, int i);

/// Output 0: [batch, height, width, channels], height and width given by input `size_input`.
absl::Status SizedImages(InferenceContext* c, int64_t batch, int size_input, int64_t channels);

/// Output 0 like input 0, which has at least `kRank` dimensions.
template <int kRank>
absl::Status UnchangedOfRankAtLeast(InferenceContext* c) {
  absl::StatusOr<PartialShape> shape = InferenceContext::WithRankAtLeast(c->input(0), kRank);
  if (!shape.ok()) return shape.status();
  c->set_output(0, *std::move(shape));
  return absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_IMAGE_SHAPES_H_
