// Blocks of space moved to the batch or to the channels, and back.
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The sizes of blocks and what is added to the space, or cut off it, as far as they are known.
struct Blocks {
  int count = 0;                 ///< Dimensions of space.
  std::vector<int64_t> sizes;    ///< Empty: not known.
  std::vector<int64_t> amounts;  ///< Two for each dimension. Empty: not known.
};

/// `margins`: the input with the amounts.
absl::StatusOr<Blocks> BlocksOf(InferenceContext* c, int margins) {
  Blocks blocks;
  if (margins == 1) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t size, c->attrs().Get<int64_t>("block_size"));
    blocks.sizes = {size, size};
    blocks.count = 2;
  } else {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::WithRank(c->input(1), 1));
    if (shape.dim(0) < 0 || shape.dim(0) >= Shape::kMaxRank) {
      return InvalidArgument("The number of block sizes must be known and a number of dimensions; ",
                             "their shape is ", shape.ToString());
    }
    blocks.count = static_cast<int>(shape.dim(0));
    if (const Tensor& value = c->input_tensor(1); value.valid()) {
      blocks.sizes = IntegerValues(value);
    }
  }
  for (const int64_t size : blocks.sizes) {
    if (size < 1) return InvalidArgument("The sizes of a block must be positive, got ", size);
  }
  TROUPE_RETURN_IF_ERROR(C::Merge(c->input(margins), PartialShape({blocks.count, 2})).status());
  if (const Tensor& value = c->input_tensor(margins); value.valid()) {
    blocks.amounts = IntegerValues(value);
  }
  for (const int64_t amount : blocks.amounts) {
    if (amount < 0) {
      return InvalidArgument("Paddings and crops must not be negative, got ", amount);
    }
  }
  return blocks;
}

/// Both ways. The shape of what goes through: [batch, space..., rest...].
absl::Status MovedShape(InferenceContext* c, bool to_batch) {
  const int margins = c->num_inputs() - 1;
  PartialShape input = c->input(0);
  if (margins == 1) {
    TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, 4));
  }
  TROUPE_ASSIGN_OR_RETURN(const Blocks blocks, BlocksOf(c, margins));
  TROUPE_ASSIGN_OR_RETURN(input, C::WithRankAtLeast(input, blocks.count + 1));
  std::vector<int64_t> sizes(blocks.count + 1, -1);
  int64_t& batch = sizes[0];
  if (blocks.count == 0 || !blocks.sizes.empty()) batch = C::DimOf(input, 0);
  for (const int64_t block : blocks.sizes) {
    TROUPE_ASSIGN_OR_RETURN(
        batch, to_batch ? MultiplyDims(batch, block) : DivideDim(batch, block, /*exact=*/true));
  }
  for (int i = 0; i < blocks.count && !blocks.sizes.empty() && !blocks.amounts.empty(); ++i) {
    const int64_t before = blocks.amounts[2 * i], after = blocks.amounts[2 * i + 1];
    int64_t size = C::DimOf(input, i + 1);
    if (to_batch) {
      TROUPE_ASSIGN_OR_RETURN(size, AddDims(size, before));
      TROUPE_ASSIGN_OR_RETURN(size, AddDims(size, after));
      TROUPE_ASSIGN_OR_RETURN(size, DivideDim(size, blocks.sizes[i], /*exact=*/true));
    } else {
      TROUPE_ASSIGN_OR_RETURN(size, MultiplyDims(size, blocks.sizes[i]));
      TROUPE_ASSIGN_OR_RETURN(size, SubtractDims(size, before));
      TROUPE_ASSIGN_OR_RETURN(size, SubtractDims(size, after));
    }
    sizes[i + 1] = size;
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rest, C::Subshape(input, blocks.count + 1));
  return SetShape(c, PartialShape(sizes).Concatenate(rest));
}

absl::Status SpaceToBatchShape(InferenceContext* c) { return MovedShape(c, true); }
absl::Status BatchToSpaceShape(InferenceContext* c) { return MovedShape(c, false); }

absl::Status DepthShape(InferenceContext* c, bool to_depth) {
  TROUPE_ASSIGN_OR_RETURN(const std::string format, c->attrs().Get<std::string>("data_format"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t block, c->attrs().Get<int64_t>("block_size"));
  TROUPE_ASSIGN_OR_RETURN(PartialShape image,
                          C::WithRank(c->input(0), format == "NCHW_VECT_C" ? 5 : 4));
  const int channels = format == "NHWC" ? 3 : 1, height = format == "NHWC" ? 1 : 2;
  TROUPE_ASSIGN_OR_RETURN(const int64_t area, MultiplyDims(block, block));
  for (const int d : {height, height + 1, channels}) {
    const int64_t factor = d == channels ? area : block;
    const bool divides = (d == channels) != to_depth;
    TROUPE_ASSIGN_OR_RETURN(const int64_t size, divides ? DivideDim(image.dim(d), factor, true)
                                                        : MultiplyDims(image.dim(d), factor));
    image = C::ReplaceDim(image, d, size);
  }
  return SetShape(c, image);
}

absl::Status SpaceToDepthShape(InferenceContext* c) { return DepthShape(c, true); }
absl::Status DepthToSpaceShape(InferenceContext* c) { return DepthShape(c, false); }

}  // namespace

REGISTER_OP("BatchToSpace")
    .Signature("input: T, crops: Tidx -> output: T")
    .Attr("T: type")
    .Attr("block_size: int >= 2")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(BatchToSpaceShape)
    .Doc(
        "Undoes `SpaceToBatch`: puts block_size * block_size images of the batch of `input`, of "
        "shape [batch, height, width, depth], together to one, element by element, and cuts "
        "crops[d, 0] elements off before and crops[d, 1] after in height and width.");

REGISTER_OP("BatchToSpaceND")
    .Signature("input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T")
    .Attr("T: type")
    .Attr("Tblock_shape: {int32, int64} = DT_INT32")
    .Attr("Tcrops: {int32, int64} = DT_INT32")
    .SetShapeFn(BatchToSpaceShape)
    .Doc(
        "Undoes `SpaceToBatchND`: the dimensions of `input` after the first grow by the factors in "
        "the vector `block_shape`, as the first one shrinks; then crops[d, 0] elements are cut off "
        "before and crops[d, 1] after in each of them.");

REGISTER_OP("DepthToSpace")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .Attr("block_size: int >= 2")
    .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
    .SetShapeFn(DepthToSpaceShape)
    .Doc(
        "Makes blocks of `block_size` times `block_size` elements of the channels of each element "
        "of the images `input`, whose dimensions are in the order `data_format`.");

REGISTER_OP("SpaceToBatch")
    .Signature("input: T, paddings: Tpaddings -> output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Attr("block_size: int >= 2")
    .SetShapeFn(SpaceToBatchShape)
    .Doc(
        "Adds zeros around the images `input`, of shape [batch, height, width, depth], "
        "paddings[d, 0] before and paddings[d, 1] after in height and width, and takes them apart: "
        "the elements of one place in blocks of `block_size` times `block_size` become an image of "
        "the batch.");

REGISTER_OP("SpaceToBatchND")
    .Signature("input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T")
    .Attr("T: type")
    .Attr("Tblock_shape: {int32, int64} = DT_INT32")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .SetShapeFn(SpaceToBatchShape)
    .Doc(
        "Adds zeros to the dimensions of `input` after the first, paddings[d, 0] before and "
        "paddings[d, 1] after, and takes it apart: the elements of one place in blocks of the "
        "sizes in the vector `block_shape` become a slice of the first dimension, the batch.");

REGISTER_OP("SpaceToDepth")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .Attr("block_size: int >= 2")
    .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
    .SetShapeFn(SpaceToDepthShape)
    .Doc(
        "Makes channels of one element of the blocks of `block_size` times `block_size` elements "
        "of the images `input`, whose dimensions are in the order `data_format`.");

}  // namespace troupe
