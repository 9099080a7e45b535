// SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace: blocks of space that move to another
// dimension.
#include <algorithm>
#include <string>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

/// Blocks of the dimensions of space, which come after the batch, and how far those are padded.
struct Blocks {
  DimVector sizes, before, after;
  int64_t count = 1;  ///< Elements of a block.
  int rank() const { return static_cast<int>(sizes.size()); }
};

absl::StatusOr<Blocks> ReadBlocks(const Tensor& input, const DimVector& sizes,
                                  const Tensor& margins) {
  Blocks blocks;
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

/// Copies between a tensor with space and one with blocks in the batch. Both have elements. Place k
/// of the blocks is slice k of the batch, and element i of it is element i * block + k - before of
/// the space, if there is one.
void MoveBlocks(KernelContext& ctx, const Blocks& blocks, bool to_batch, const Tensor& in,
                Tensor* out) {
  const int rank = blocks.rank();
  const Tensor& space = to_batch ? in : *out;
  const Tensor& batched = to_batch ? *out : in;
  const int64_t batch = space.dim(0);
  const DimVector space_strides = RowMajorStrides(space.shape().dims());
  const DimVector batched_strides = RowMajorStrides(batched.shape().dims());
  DimVector sizes(space.shape().dims().begin(), space.shape().dims().end());
  DimVector strides = space_strides;
  for (int d = 0; d < rank; ++d) strides[d + 1] = space_strides[d + 1] * blocks.sizes[d];
  for (int64_t k = 0; k < blocks.count; ++k) {
    int64_t in_space = 0, in_batched = k * batch * batched_strides[0], rest = k;
    bool empty = false;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t block = blocks.sizes[d], place = rest % block;
      rest /= block;
      // The first and last element for which there is something in the space.
      const int64_t from = std::max<int64_t>(0, (blocks.before[d] - place + block - 1) / block);
      const int64_t end = std::min(
          batched.dim(d + 1), (space.dim(d + 1) + blocks.before[d] - place + block - 1) / block);
      empty = empty || end <= from;
      sizes[d + 1] = end - from;
      in_batched += from * batched_strides[d + 1];
      in_space += (from * block + place - blocks.before[d]) * space_strides[d + 1];
    }
    if (empty) continue;
    const ElementType type = in.type();
    if (to_batch) {
      StridedCopy(ctx, type, sizes, ElementAt(type, out->mutable_raw_data(), in_batched),
                  batched_strides, ElementAt(type, in.raw_data(), in_space), strides);
    } else {
      StridedCopy(ctx, type, sizes, ElementAt(type, out->mutable_raw_data(), in_space), strides,
                  ElementAt(type, in.raw_data(), in_batched), batched_strides);
    }
  }
}

absl::Status ToBatch(KernelContext& ctx, const DimVector& sizes, const Tensor& paddings) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(input, sizes, paddings));
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
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  if (out->num_elements() > 0 && input.num_elements() > 0) {
    MoveBlocks(ctx, blocks, true, input, out);
  }
  return absl::OkStatus();
}

absl::Status ToSpace(KernelContext& ctx, const DimVector& sizes, const Tensor& crops) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(input, sizes, crops));
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
  if (out->num_elements() > 0) MoveBlocks(ctx, blocks, false, input, out);
  return absl::OkStatus();
}

absl::Status CheckImages(const Tensor& input) {
  if (input.rank() == 4) return absl::OkStatus();
  return InvalidArgument("the input must have 4 dimensions, got shape ", input.shape().ToString());
}

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

/// The sizes of a block and of what it holds: [batch, height / block, width / block] blocks of
/// [block, block, depth] elements.
struct DepthBlocks {
  int64_t batch, height, width, block, depth;
};

/// Copies between [batch, height, block, width, block, depth] and
/// [batch, height, width, block, block, depth].
void SwapBlocks(KernelContext& ctx, const DepthBlocks& b, const Tensor& in, Tensor* out,
                bool to_depth) {
  const int64_t row = b.width * b.block * b.depth;
  const DimVector dims = {b.batch * b.height, b.block, b.width, b.block * b.depth};
  const DimVector space = {b.block * row, row, b.block * b.depth, 1};
  const DimVector depth = {b.block * row, b.block * b.depth, b.block * b.block * b.depth, 1};
  StridedCopy(ctx, in.type(), dims, out->mutable_raw_data(), to_depth ? depth : space,
              in.raw_data(), to_depth ? space : depth);
}

absl::Status CheckLayout(const std::string& format, int64_t block) {
  // A block's elements are counted in 64 bits.
  if (block < 2 || block > INT32_MAX)
    return InvalidArgument("block_size must be from 2 on to 2^31");
  if (format == "NHWC") return absl::OkStatus();
  return InvalidArgument("the CPU has only the data_format NHWC, not ", format);
}

absl::Status SpaceToDepth(KernelContext& ctx, int64_t block, const std::string& format) {
  const Tensor& input = ctx.input(0);
  TROUPE_RETURN_IF_ERROR(CheckLayout(format, block));
  TROUPE_RETURN_IF_ERROR(CheckImages(input));
  if (input.dim(1) % block != 0 || input.dim(2) % block != 0) {
    return InvalidArgument("height and width of the input of shape ", input.shape().ToString(),
                           " must be multiples of the block size ", block);
  }
  const DepthBlocks blocks = {input.dim(0), input.dim(1) / block, input.dim(2) / block, block,
                              input.dim(3)};
  const int64_t depth = MultiplyWithoutOverflow(input.dim(3), block * block);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                          Shape::Create({blocks.batch, blocks.height, blocks.width, depth}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() > 0) SwapBlocks(ctx, blocks, input, out, true);
  return absl::OkStatus();
}

absl::Status DepthToSpace(KernelContext& ctx, int64_t block, const std::string& format) {
  const Tensor& input = ctx.input(0);
  TROUPE_RETURN_IF_ERROR(CheckLayout(format, block));
  TROUPE_RETURN_IF_ERROR(CheckImages(input));
  if (input.dim(3) % (block * block) != 0) {
    return InvalidArgument("the depth of the input of shape ", input.shape().ToString(),
                           " must be a multiple of the elements of a block, ", block * block);
  }
  const DepthBlocks blocks = {input.dim(0), input.dim(1), input.dim(2), block,
                              input.dim(3) / (block * block)};
  TROUPE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create({blocks.batch, MultiplyWithoutOverflow(blocks.height, block),
                     MultiplyWithoutOverflow(blocks.width, block), blocks.depth}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() > 0) SwapBlocks(ctx, blocks, input, out, false);
  return absl::OkStatus();
}

KernelSpec Batched(const char* op, std::initializer_list<const char*> index_attrs) {
  KernelSpec spec = KernelSpec(op).Types("T", PlainTypes());
  for (const char* attr : index_attrs) spec.Types(attr, IndexTypes());
  return spec;
}

REGISTER_KERNEL(Batched("SpaceToBatch", {"Tpaddings"}),
                (MakeAttrKernel<SpaceToBatch, "block_size">));
REGISTER_KERNEL(Batched("BatchToSpace", {"Tidx"}), (MakeAttrKernel<BatchToSpace, "block_size">));
REGISTER_KERNEL(Batched("SpaceToBatchND", {"Tblock_shape", "Tpaddings"}),
                MakeKernel<SpaceToBatchND>);
REGISTER_KERNEL(Batched("BatchToSpaceND", {"Tblock_shape", "Tcrops"}), MakeKernel<BatchToSpaceND>);
REGISTER_KERNEL(KernelSpec("SpaceToDepth").Types("T", AllTypes()),
                (MakeAttrKernel<SpaceToDepth, "block_size", "data_format">));
REGISTER_KERNEL(KernelSpec("DepthToSpace").Types("T", AllTypes()),
                (MakeAttrKernel<DepthToSpace, "block_size", "data_format">));

}  // namespace
}  // namespace troupe
