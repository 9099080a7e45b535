#include "kernels/array/piecewise_copy.h"

namespace troupe {

absl::Status CopyPieces(KernelContext& ctx, const Tensor& in, absl::Span<const DimPieces> pieces,
                        Tensor* out) {
  const int rank = static_cast<int>(pieces.size());
  for (const DimPieces& of_dim : pieces) {
    if (of_dim.empty()) return absl::OkStatus();
  }
  const DimVector in_strides = RowMajorStrides(in.shape().dims());
  const DimVector out_strides = RowMajorStrides(out->shape().dims());
  DimVector sizes(rank), from_strides(rank);
  absl::InlinedVector<size_t, 8> at(rank, 0);
  for (;;) {
    int64_t to = 0, from = 0;
    for (int d = 0; d < rank; ++d) {
      const DimPiece& piece = pieces[d][at[d]];
      to += piece.to * out_strides[d];
      from += piece.from * in_strides[d];
      sizes[d] = piece.size;
      from_strides[d] = piece.step * in_strides[d];
    }
    StridedCopy(ctx, in.type(), sizes, ElementAt(in.type(), out->mutable_raw_data(), to),
                out_strides, ElementAt(in.type(), in.raw_data(), from), from_strides);
    int d = rank - 1;
    for (; d >= 0 && ++at[d] == pieces[d].size(); --d) at[d] = 0;
    if (d < 0) return absl::OkStatus();
  }
}

}  // namespace troupe
