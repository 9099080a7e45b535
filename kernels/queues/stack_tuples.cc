#include "kernels/queues/stack_tuples.h"

#include <algorithm>

#include "kernels/common/strided_copy.h"
#include "kernels/data/join.h"

namespace troupe {
namespace {

/// The runs of a tensor's elements, row by row of the last dimension, between zeros that fill
/// `padded` up.
void AddPadded(const Tensor& tensor, const Shape& padded, std::vector<Piece>* pieces) {
  const int rank = padded.rank();
  const int64_t row = tensor.dim(rank - 1), padded_row = padded.dim(rank - 1);
  std::vector<int64_t> index(rank, 0);
  int64_t read = 0;
  const int64_t rows = padded_row == 0 ? 0 : padded.num_elements() / padded_row;
  for (int64_t i = 0; i < rows; ++i) {
    bool inside = row > 0;
    for (int d = 0; d + 1 < rank; ++d) inside = inside && index[d] < tensor.dim(d);
    if (inside) {
      pieces->push_back({ElementAt(tensor.type(), tensor.raw_data(), read), row});
      read += row;
    }
    const int64_t zeros = padded_row - (inside ? row : 0);
    if (zeros > 0) pieces->push_back({nullptr, zeros});
    for (int d = rank - 2; d >= 0; --d) {
      if (++index[d] < padded.dim(d)) break;
      index[d] = 0;
    }
  }
}

}  // namespace

absl::Status StackTuples(KernelContext& ctx, const QueueOptions& options,
                         const std::vector<Tuple>& tuples) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < options.types.size(); ++i) {
    std::vector<int64_t> largest(options.shapes[i].dims().begin(), options.shapes[i].dims().end());
    for (int64_t& size : largest) size = std::max<int64_t>(size, 0);
    for (const Tuple& tuple : tuples) {
      if (tuple[i].space() == MemorySpace::kDevice) {
        return absl::UnimplementedError(
            "elements in the memory of a device can only be taken one by one");
      }
      for (size_t d = 0; d < largest.size(); ++d) {
        largest[d] = std::max(largest[d], tuple[i].dim(static_cast<int>(d)));
      }
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape element, Shape::Create(largest));
    largest.insert(largest.begin(), static_cast<int64_t>(tuples.size()));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(largest));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(static_cast<int>(i), options.types[i], shape));
    pieces.clear();
    for (const Tuple& tuple : tuples) {
      if (tuple[i].shape() == element) {
        pieces.push_back({tuple[i].raw_data(), element.num_elements()});
      } else {
        AddPadded(tuple[i], element, &pieces);
      }
    }
    WritePieces(ctx, pieces, out);
  }
  return absl::OkStatus();
}

}  // namespace troupe
