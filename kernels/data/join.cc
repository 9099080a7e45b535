#include "kernels/data/join.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/strided_copy.h"

namespace troupe {
namespace {

void WriteRun(ElementType type, const Piece& piece, int64_t begin, int64_t end, void* to) {
  if (piece.from != nullptr) {
    CopyElements(type, to, ElementAt(type, piece.from, begin), end - begin);
  } else if (IsPlain(type)) {
    std::memset(to, 0, static_cast<size_t>(end - begin) * ElementSize(type));
  }  // Others have been default constructed.
}

}  // namespace

void WritePieces(KernelContext& ctx, absl::Span<const Piece> pieces, Tensor* out) {
  const ElementType type = out->type();
  const int64_t total = out->num_elements();
  if (total == 0) return;
  void* const to = out->mutable_raw_data();
  constexpr int64_t kSmall = 16 << 10;  // bytes
  if (static_cast<int64_t>(out->bytes()) <= kSmall) {
    int64_t at = 0;
    for (const Piece& piece : pieces) {
      if (piece.count == 0) continue;
      WriteRun(type, piece, 0, piece.count, ElementAt(type, to, at));
      at += piece.count;
    }
    return;
  }
  std::vector<int64_t> begins;
  begins.reserve(pieces.size());
  int64_t sum = 0;
  for (const Piece& piece : pieces) {
    begins.push_back(sum);
    sum += piece.count;
  }
  const double nanoseconds = IsPlain(type) ? 0.1 * static_cast<double>(ElementSize(type)) : 20.0;
  ctx.ParallelFor(total, KernelContext::GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
    size_t i = std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1;
    while (begin < end) {
      const int64_t stop = std::min(end, begins[i] + pieces[i].count);
      if (stop > begin) {
        WriteRun(type, pieces[i], begin - begins[i], stop - begins[i], ElementAt(type, to, begin));
        begin = stop;
      }
      ++i;
    }
  });
}

Tensor RowOf(const Tensor& tensor, const Shape& row_shape, int64_t i) {
  const int64_t offset = i * row_shape.num_elements();
  return Tensor(tensor.type(), row_shape, tensor.buffer(),
                const_cast<void*>(ElementAt(tensor.type(), tensor.raw_data(), offset)));
}

absl::StatusOr<Shape> ShapeOfRows(int64_t rows, const Shape& row) {
  std::vector<int64_t> dims = {rows};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  return Shape::Create(dims);
}

Shape WithoutFirst(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

PartialShape WithoutFirst(const PartialShape& shape) {
  return shape.unknown_rank() ? shape : PartialShape(shape.dims().subspan(1));
}

}  // namespace troupe
