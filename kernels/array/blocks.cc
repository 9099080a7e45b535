// SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace: blocks of space that move to another
// dimension.
#include <algorithm>
#include <string>

#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {
namespace {

absl::StatusOr<SpaceBlocks> ReadBlocks(const Tensor& input, const DimVector& sizes,
                                       const Tensor& margins) {
  SpaceBlocks blocks;
  blocks.sizes = sizes;
  const int rank = blocks.rank();
  if (input.rank() < rank + 1) {
    return InvalidArgument("the input must have at least ", rank + 1, " dimensions, got shape ",
                           input.shape().ToString());
  }
  if (margins.rank() != 2 || margins.dim(0) != rank || margins.dim(1) != 2) {
    return InvalidArgument("paddings or crops must have the shape [", rank, ",2], got ",
                           margins.shape().ToString());
  }
  for (const int64_t size : sizes) {
    if (size < 1) return InvalidArgument("the sizes of a block must be positive, got ", size);
    blocks.count = MultiplyWithoutOverflow(blocks.count, size);
    if (blocks.count < 0) return InvalidArgument("the blocks are too large");
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector amounts, ReadIntegers(margins, "paddings or crops"));
  constexpr int64_t kMost = int64_t{1} << 60;
  for (int d = 0; d < rank; ++d) {
    for (const int64_t amount : {amounts[2 * d], amounts[2 * d + 1]}) {
      if (amount < 0 || amount > kMost) {
        return InvalidArgument("paddings and crops must not be negative (or huge), got ", amount,
                               " in dimension ", d);
      }
    }
    blocks.before.push_back(amounts[2 * d]);
    blocks.after.push_back(amounts[2 * d + 1]);
  }
  return blocks;
}

absl::Status ToBatch(KernelContext& ctx, const DimVector& sizes, const Tensor& paddings) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const SpaceBlocks blocks, ReadBlocks(input, sizes, paddings));
  DimVector dims(input.shape().dims().begin(), input.shape().dims().end());
  dims[0] = MultiplyWithoutOverflow(dims[0], blocks.count);
  for (int d = 0; d < blocks.rank(); ++d) {
    int64_t size;
    if (__builtin_add_overflow(dims[d + 1], blocks.before[d] + blocks.after[d], &size) ||
        size % sizes[d] != 0) {
      return InvalidArgument("dimension ", d + 1, " of the input of shape ",
                             input.shape().ToString(), " with paddings ", blocks.before[d], " and ",
                             blocks.after[d], " is no multiple of the block size ", sizes[d]);
    }
    dims[d + 1] = size / sizes[d];
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  return MoveBlocks(ctx, blocks, true, input, out);
}

absl::Status ToSpace(KernelContext& ctx, const DimVector& sizes, const Tensor& crops) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const SpaceBlocks blocks, ReadBlocks(input, sizes, crops));
  DimVector dims(input.shape().dims().begin(), input.shape().dims().end());
  if (dims[0] % blocks.count != 0) {
    return InvalidArgument("the first dimension of the input of shape ", input.shape().ToString(),
                           " must be a multiple of the elements of a block, ", blocks.count);
  }
  dims[0] /= blocks.count;
  for (int d = 0; d < blocks.rank(); ++d) {
    int64_t& size = dims[d + 1];
    size = MultiplyWithoutOverflow(size, sizes[d]);
    if (size < 0 || size < blocks.before[d] + blocks.after[d]) {
      return InvalidArgument("crops ", blocks.before[d], " and ", blocks.after[d], " of dimension ",
                             d + 1, " do not fit the input of shape ", input.shape().ToString(),
                             " with the block size ", sizes[d]);
    }
    size -= blocks.before[d] + blocks.after[d];
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  return MoveBlocks(ctx, blocks, false, input, out);
}

absl::Status CheckImages(const Tensor& input) {
  if (input.rank() == 4) return absl::OkStatus();
  return InvalidArgument("the input must have 4 dimensions, got shape ", input.shape().ToString());
}

/// The sizes of a block and of what it holds: [batch, height, width] blocks of [block, block,
/// depth] elements.
struct DepthBlocks {
  int64_t batch, height, width, block, depth;
};

/// Copies between [batch, height, block, width, block, depth] and
/// [batch, height, width, block, block, depth].
void SwapChannelsLast(KernelContext& ctx, const DepthBlocks& b, const Tensor& in, Tensor* out,
                      bool to_depth) {
  const int64_t row = b.width * b.block * b.depth;
  const DimVector dims = {b.batch * b.height, b.block, b.width, b.block * b.depth};
  const DimVector space = {b.block * row, row, b.block * b.depth, 1};
  const DimVector depth = {b.block * row, b.block * b.depth, b.block * b.block * b.depth, 1};
  StridedCopy(ctx, in.type(), dims, out->mutable_raw_data(), to_depth ? depth : space,
              in.raw_data(), to_depth ? space : depth);
}

/// Copies between [batch, depth, height, block, width, block] and
/// [batch, block, block, depth, height, width].
void SwapChannelsFirst(KernelContext& ctx, const DepthBlocks& b, const Tensor& in, Tensor* out,
                       bool to_depth) {
  const int64_t plane = b.height * b.width, row = b.width * b.block;
  const int64_t image = plane * b.block * b.block, part = b.depth * plane;
  const DimVector dims = {b.batch, b.depth, b.height, b.block, b.width, b.block};
  const DimVector space = {b.depth * image, image, b.block * row, row, b.block, 1};
  const DimVector depth = {b.depth * image, plane, b.width, b.block * part, 1, part};
  StridedCopy(ctx, in.type(), dims, out->mutable_raw_data(), to_depth ? depth : space,
              in.raw_data(), to_depth ? space : depth);
}

void SwapBlocks(KernelContext& ctx, const DepthBlocks& b, const Tensor& in, Tensor* out,
                bool to_depth, bool channels_first) {
  if (out->num_elements() == 0) return;
  (channels_first ? SwapChannelsFirst : SwapChannelsLast)(ctx, b, in, out, to_depth);
}

/// Where images have their height, width and channels.
struct ImageDims {
  int height, width, channels;
};
absl::StatusOr<ImageDims> CheckLayout(const Tensor& input, int64_t block,
                                      const std::string& format) {
  // A block's elements are counted in 64 bits.
  if (block < 2 || block > INT32_MAX)
    return InvalidArgument("block_size must be from 2 on to 2^31");
  if (format != "NHWC" && format != "NCHW") {
    return InvalidArgument("the data_format must be NHWC or NCHW, not ", format);
  }
  TROUPE_RETURN_IF_ERROR(CheckImages(input));
  return format == "NHWC" ? ImageDims{1, 2, 3} : ImageDims{2, 3, 1};
}

absl::StatusOr<Shape> ImageShape(const ImageDims& d, int64_t batch, int64_t height, int64_t width,
                                 int64_t depth) {
  DimVector dims(4, batch);
  dims[d.height] = height;
  dims[d.width] = width;
  dims[d.channels] = depth;
  return Shape::Create(dims);
}

}  // namespace

absl::Status SpaceToBatch(KernelContext& ctx, int64_t block_size) {
  TROUPE_RETURN_IF_ERROR(CheckImages(ctx.input(0)));
  return ToBatch(ctx, {block_size, block_size}, ctx.input(1));
}
absl::Status BatchToSpace(KernelContext& ctx, int64_t block_size) {
  TROUPE_RETURN_IF_ERROR(CheckImages(ctx.input(0)));
  return ToSpace(ctx, {block_size, block_size}, ctx.input(1));
}
absl::Status SpaceToBatchND(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadIntegerVector(ctx.input(1), "block_shape"));
  return ToBatch(ctx, sizes, ctx.input(2));
}
absl::Status BatchToSpaceND(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadIntegerVector(ctx.input(1), "block_shape"));
  return ToSpace(ctx, sizes, ctx.input(2));
}

absl::Status SpaceToDepth(KernelContext& ctx, int64_t block, const std::string& format) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ImageDims d, CheckLayout(input, block, format));
  const int64_t height = input.dim(d.height), width = input.dim(d.width);
  const int64_t channels = input.dim(d.channels);
  if (height % block != 0 || width % block != 0) {
    return InvalidArgument("height and width of the input of shape ", input.shape().ToString(),
                           " must be multiples of the block size ", block);
  }
  const DepthBlocks blocks = {input.dim(0), height / block, width / block, block, channels};
  const int64_t depth = MultiplyWithoutOverflow(channels, block * block);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                          ImageShape(d, blocks.batch, blocks.height, blocks.width, depth));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  SwapBlocks(ctx, blocks, input, out, true, d.channels == 1);
  return absl::OkStatus();
}

absl::Status DepthToSpace(KernelContext& ctx, int64_t block, const std::string& format) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ImageDims d, CheckLayout(input, block, format));
  const int64_t channels = input.dim(d.channels);
  if (channels % (block * block) != 0) {
    return InvalidArgument("the depth of the input of shape ", input.shape().ToString(),
                           " must be a multiple of the elements of a block, ", block * block);
  }
  const DepthBlocks blocks = {input.dim(0), input.dim(d.height), input.dim(d.width), block,
                              channels / (block * block)};
  TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                          ImageShape(d, blocks.batch, MultiplyWithoutOverflow(blocks.height, block),
                                     MultiplyWithoutOverflow(blocks.width, block), blocks.depth));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  SwapBlocks(ctx, blocks, input, out, false, d.channels == 1);
  return absl::OkStatus();
}

}  // namespace troupe::layout
