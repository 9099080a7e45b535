#include "kernels/array/layout_engine.h"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// Writes the border of a row-major block: what lies before, between and after the rows of the
/// inside. What it writes of the inside is to be written afterwards.
class Border {
 public:
  Border(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims,
         absl::Span<const int64_t> before, absl::Span<const int64_t> inside, void* out,
         const void* value)
      : ctx_(ctx),
        type_(type),
        dims_(dims),
        before_(before),
        inside_(inside),
        out_(out),
        value_(value) {}

  /// The block of dimensions `d` and after that begins at element `offset` and has `count`
  /// elements.
  void Fill(size_t d, int64_t offset, int64_t count) {
    if (d == dims_.size() || count == 0) return;
    const int64_t run = count / dims_[d];
    if (run < kShortRow && Padded(d + 1)) {  // Its inside, too: that is faster than row by row.
      Write(offset, count);
      return;
    }
    const int64_t begin = offset + before_[d] * run, end = begin + inside_[d] * run;
    Write(offset, begin - offset);
    Write(end, offset + count - end);
    if (!Padded(d + 1)) return;
    for (int64_t at = begin; at < end; at += run) Fill(d + 1, at, run);
  }

 private:
  static constexpr int64_t kShortRow = 64;

  bool Padded(size_t from) const {
    return !std::equal(inside_.begin() + from, inside_.end(), dims_.begin() + from);
  }
  void Write(int64_t offset, int64_t count) {
    if (count == 0) return;
    void* const to = ElementAt(type_, out_, offset);
    if (value_ != nullptr) {
      FillElements(ctx_, type_, to, count, value_);
    } else {
      ZeroElements(ctx_, type_, to, count);
    }
  }

  KernelContext& ctx_;
  const ElementType type_;
  const absl::Span<const int64_t> dims_, before_, inside_;
  void* const out_;
  const void* const value_;
};

}  // namespace

void JoinColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width, void* matrix,
                 absl::Span<const Columns<const void>> parts) {
  for (const Columns<const void>& part : parts) {
    CopyRuns(ctx, type, rows, part.count, ElementAt(type, matrix, part.begin), width, part.data,
             part.count);
  }
}

void CutColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width,
                const void* matrix, absl::Span<const Columns<void>> parts) {
  for (const Columns<void>& part : parts) {
    CopyRuns(ctx, type, rows, part.count, part.data, part.count,
             ElementAt(type, matrix, part.begin), width);
  }
}

void PadBlock(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims,
              absl::Span<const int64_t> before, absl::Span<const int64_t> inside, void* out,
              const void* in, const void* value) {
  const DimVector strides = RowMajorStrides(dims);
  int64_t offset = 0, count = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    offset += before[d] * strides[d];
    count *= dims[d];
  }
  Border(ctx, type, dims, before, inside, out, value).Fill(0, 0, count);
  StridedCopy(ctx, type, inside, ElementAt(type, out, offset), strides, in,
              RowMajorStrides(inside));
}

void KeepBand(KernelContext& ctx, ElementType type, int64_t rows, int64_t height, int64_t width,
              int64_t lower, int64_t upper, void* to, const void* from) {
  const int64_t size = static_cast<int64_t>(ElementSize(type));
  const double row_ns = 1 + 0.1 * static_cast<double>(size * width);
  ctx.ParallelFor(rows, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t row = r % height;
      const int64_t first = std::clamp<int64_t>(row - lower, 0, width);
      const int64_t last = std::clamp<int64_t>(row + upper + 1, first, width);
      char* line = static_cast<char*>(to) + r * width * size;
      std::memset(line, 0, first * size);
      if (from != to) {
        std::memcpy(line + first * size,
                    static_cast<const char*>(from) + (r * width + first) * size,
                    (last - first) * size);
      }
      std::memset(line + last * size, 0, (width - last) * size);
    }
  });
}

}  // namespace troupe
