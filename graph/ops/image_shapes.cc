#include "graph/ops/image_shapes.h"

#include "devices/status_macros.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {

using C = InferenceContext;

absl::StatusOr<ImageSize> ImageSizeInput(InferenceContext* c, int i) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(i), 1));
  TROUPE_RETURN_IF_ERROR(WithValue(vector.dim(0), 2).status());
  const Tensor& constant = c->input_tensor(i);
  if (!constant.valid()) return ImageSize{};
  const std::vector<int64_t> values = IntegerValues(constant);
  return ImageSize{values[0] < 0 ? -1 : values[0], values[1] < 0 ? -1 : values[1]};
}

absl::Status SizedImages(InferenceContext* c, int64_t batch, int size_input, int64_t channels) {
  TROUPE_ASSIGN_OR_RETURN(const ImageSize size, ImageSizeInput(c, size_input));
  c->set_output(0, PartialShape({batch, size.height, size.width, channels}));
  return absl::OkStatus();
}

}  // namespace troupe
