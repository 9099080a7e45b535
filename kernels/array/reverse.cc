// Reverse, ReverseSequence, Roll: elements that change places along dimensions.
#include <algorithm>

#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/array/piecewise_copy.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status Reverse(KernelContext& ctx) {
  const Tensor &input = ctx.input(0), &dims = ctx.input(1);
  if (dims.rank() != 1 || dims.dim(0) != input.rank() || input.rank() > 8) {
    return InvalidArgument("dims must be a vector with one element for each of at most 8 ",
                           "dimensions of the input of shape ", input.shape().ToString(),
                           ", got shape ", dims.shape().ToString());
  }
  // As in TensorFlow, unlike in ReverseV2.
  if (input.rank() > 0 && input.dim(0) == 0) {
    return InvalidArgument("the input's first dimension must not be 0, got shape ",
                           input.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  if (input.num_elements() == 0) return absl::OkStatus();
  absl::InlinedVector<DimPieces, 8> pieces;
  for (int d = 0; d < input.rank(); ++d) {
    const bool reversed = dims.unchecked_data<bool>()[d];
    const int64_t size = input.dim(d);
    pieces.push_back({{0, reversed ? size - 1 : 0, size, reversed ? -1 : 1}});
  }
  return CopyPieces(ctx, input, pieces, out);
}

absl::Status ReverseSequence(KernelContext& ctx, int64_t seq_dim, int64_t batch_dim) {
  const Tensor &input = ctx.input(0), &lengths = ctx.input(1);
  // As in TensorFlow, axes are not counted from the back.
  if (std::min(batch_dim, seq_dim) < 0 || std::max(batch_dim, seq_dim) >= input.rank()) {
    return InvalidArgument("batch_dim and seq_dim must be in [0, ", input.rank(), "), got ",
                           batch_dim, " and ", seq_dim);
  }
  const int batch = static_cast<int>(batch_dim), seq = static_cast<int>(seq_dim);
  if (batch == seq) {
    return InvalidArgument("batch_dim and seq_dim must differ, both are ", batch);
  }
  if (lengths.rank() != 1 || lengths.dim(0) != input.dim(batch)) {
    return InvalidArgument("seq_lengths must be a vector of ", input.dim(batch),
                           " elements for an input of shape ", input.shape().ToString(),
                           ", got shape ", lengths.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  return ReverseStarts(ctx, input, lengths, seq, batch, out);
}

absl::Status Roll(KernelContext& ctx) {
  const Tensor &input = ctx.input(0), &shift_input = ctx.input(1), &axis_input = ctx.input(2);
  if (input.rank() < 1) return InvalidArgument("the input must have at least one dimension");
  if (shift_input.rank() > 1 || axis_input.rank() > 1 ||
      !(shift_input.shape() == axis_input.shape())) {
    return InvalidArgument("shift and axis must be scalars or vectors of one size, got shapes ",
                           shift_input.shape().ToString(), " and ", axis_input.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector shifts, ReadIntegers(shift_input, "shift"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegers(axis_input, "axis"));
  DimVector by(input.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const int d, ResolveAxis(axes[i], input.rank(), "axis"));
    // Both terms are less than the size, so that the sum does not overflow.
    const int64_t size = std::max<int64_t>(input.dim(d), 1);
    const uint64_t sum =
        static_cast<uint64_t>(by[d]) + static_cast<uint64_t>((shifts[i] % size + size) % size);
    by[d] = static_cast<int64_t>(sum % static_cast<uint64_t>(size));
  }
  if (input.num_elements() == 0 || std::count(by.begin(), by.end(), 0) == input.rank()) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  absl::InlinedVector<DimPieces, 8> pieces;
  for (int d = 0; d < input.rank(); ++d) {
    const int64_t moved = by[d], stayed = input.dim(d) - moved;
    pieces.push_back({{moved, 0, stayed, 1}});
    if (moved > 0) pieces.back().push_back({0, stayed, moved, 1});
  }
  return CopyPieces(ctx, input, pieces, out);
}

}  // namespace troupe::layout
