#include "kernels/array/layout_engine.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/common/switch_number.h"
#include "kernels/simd/independent.h"

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
    // The ends of rows are mostly short.
    constexpr int64_t kFewBytes = 64;
    const int64_t size = type_ == ElementType::kString ? kFewBytes : ElementSize(type_);
    if (count * size < kFewBytes) {
      for (int64_t i = 0; i < count; ++i) {
        char* const element = static_cast<char*>(to) + i * size;
        if (value_ != nullptr) {
          std::memcpy(element, value_, size);
        } else {
          std::memset(element, 0, size);
        }
      }
    } else if (value_ != nullptr) {
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

constexpr int64_t kMostSingle = 16;

/// Whether each of few columns is a part: they are moved together, not one after the other through
/// all rows.
template <typename Data>
bool AreSingle(int64_t width, absl::Span<const Columns<Data>> parts) {
  return width > 1 && width <= kMostSingle && static_cast<int64_t>(parts.size()) == width &&
         std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.count == 1; });
}

/// Rows [begin, end) of a matrix of `kWidth` columns.
template <int kWidth, typename T>
void CutRows(const T* matrix, int64_t begin, int64_t end, T* const* parts) {
  T* columns[kWidth];
  std::copy_n(parts, kWidth, columns);
  TROUPE_INDEPENDENT
  for (int64_t r = begin; r < end; ++r) {
    for (int c = 0; c < kWidth; ++c) columns[c][r] = matrix[r * kWidth + c];
  }
}

template <int kWidth, typename T>
void JoinRows(T* matrix, int64_t begin, int64_t end, const T* const* parts) {
  const T* columns[kWidth];
  std::copy_n(parts, kWidth, columns);
  TROUPE_INDEPENDENT
  for (int64_t r = begin; r < end; ++r) {
    for (int c = 0; c < kWidth; ++c) matrix[r * kWidth + c] = columns[c][r];
  }
}

/// Calls `move(begin, end, pointers to the parts)` for blocks of rows that fit into the first-level
/// cache.
template <typename T, typename Data, typename F>
void ForRows(KernelContext& ctx, int64_t rows, int64_t width, absl::Span<const Columns<Data>> parts,
             F move) {
  using Element = std::conditional_t<std::is_const_v<Data>, const T, T>;
  Element* columns[kMostSingle];
  for (int64_t c = 0; c < width; ++c) columns[c] = static_cast<Element*>(parts[c].data);
  constexpr int64_t kBlock = 256;
  const double block_ns = 0.3 * static_cast<double>(kBlock * width);
  ctx.ParallelFor((rows + kBlock - 1) / kBlock, KernelContext::GrainFor(block_ns),
                  [&](int64_t first, int64_t last) {
                    for (int64_t i = first; i < last; ++i) {
                      move(i * kBlock, std::min(rows, (i + 1) * kBlock), columns);
                    }
                  });
}

}  // namespace

void JoinColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width, void* matrix,
                 absl::Span<const Columns<const void>> parts) {
  if (AreSingle(width, parts)) {
    (void)SwitchBySize(type, [&]<typename T>() {
      T* const to = static_cast<T*>(matrix);
      ForRows<T>(ctx, rows, width, parts, [&](int64_t begin, int64_t end, const T* const* columns) {
        if (width == 2) return JoinRows<2>(to, begin, end, columns);
        if (width == 3) return JoinRows<3>(to, begin, end, columns);
        if (width == 4) return JoinRows<4>(to, begin, end, columns);
        for (int64_t c = 0; c < width; ++c) {
          for (int64_t r = begin; r < end; ++r) to[r * width + c] = columns[c][r];
        }
      });
      return absl::OkStatus();
    });
    return;
  }
  for (const Columns<const void>& part : parts) {
    CopyRuns(ctx, type, rows, part.count, ElementAt(type, matrix, part.begin), width, part.data,
             part.count);
  }
}

void CutColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width,
                const void* matrix, absl::Span<const Columns<void>> parts) {
  if (AreSingle(width, parts)) {
    (void)SwitchBySize(type, [&]<typename T>() {
      const T* const from = static_cast<const T*>(matrix);
      ForRows<T>(ctx, rows, width, parts, [&](int64_t begin, int64_t end, T* const* columns) {
        if (width == 2) return CutRows<2>(from, begin, end, columns);
        if (width == 3) return CutRows<3>(from, begin, end, columns);
        if (width == 4) return CutRows<4>(from, begin, end, columns);
        for (int64_t c = 0; c < width; ++c) {
          for (int64_t r = begin; r < end; ++r) columns[c][r] = from[r * width + c];
        }
      });
      return absl::OkStatus();
    });
    return;
  }
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

void CopyBand(KernelContext& ctx, ElementType type, const MatrixBand& m, void* dst,
              bool dst_is_matrix, const void* src) {
  const int64_t width = m.Width();
  if (m.batch == 0 || width <= 0) return;
  for (int64_t d = m.lower; d <= m.upper; ++d) {
    const int64_t length = m.Length(d);
    const bool left = (d >= 0 && m.left_above) || (d <= 0 && m.left_below);
    const int64_t in_matrix = d >= 0 ? d : -d * m.columns;
    const int64_t in_row = (m.upper - d) * width + (left ? 0 : width - length);
    const int64_t matrix[] = {m.rows * m.columns, m.columns + 1};
    const int64_t row[] = {m.count() * width, 1};
    const int64_t dims[] = {m.batch, length};
    StridedCopy(ctx, type, dims, ElementAt(type, dst, dst_is_matrix ? in_matrix : in_row),
                dst_is_matrix ? matrix : row,
                ElementAt(type, src, dst_is_matrix ? in_row : in_matrix),
                dst_is_matrix ? row : matrix);
  }
}

absl::Status MoveBlocks(KernelContext& ctx, const SpaceBlocks& blocks, bool to_batch,
                        const Tensor& in, Tensor* out) {
  const int rank = blocks.rank();
  const ElementType type = in.type();
  if (to_batch) {
    ZeroElements(ctx, type, out->mutable_raw_data(), out->num_elements());
    if (in.num_elements() == 0) return absl::OkStatus();
  }
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
    if (to_batch) {
      StridedCopy(ctx, type, sizes, ElementAt(type, out->mutable_raw_data(), in_batched),
                  batched_strides, ElementAt(type, in.raw_data(), in_space), strides);
    } else {
      StridedCopy(ctx, type, sizes, ElementAt(type, out->mutable_raw_data(), in_space), strides,
                  ElementAt(type, in.raw_data(), in_batched), batched_strides);
    }
  }
  return absl::OkStatus();
}

absl::Status AddMirrored(KernelContext& ctx, absl::Span<const Mirror> mirrors, int64_t skipped,
                         const Tensor& in, Tensor* out) {
  if (in.num_elements() == 0) return absl::OkStatus();
  // The last dimensions that are not padded are runs of elements.
  size_t rank = mirrors.size();
  int64_t run = 1;
  for (; rank > 0 && mirrors[rank - 1].before == 0 && mirrors[rank - 1].after == 0; --rank) {
    run *= mirrors[rank - 1].inside;
  }
  // For each place of each dimension where its element is added.
  const DimVector strides = RowMajorStrides(out->shape().dims());
  absl::InlinedVector<std::vector<int64_t>, 8> offset_of(rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto& [before, inside, after] = mirrors[d];
    for (int64_t i = -before; i < inside + after; ++i) {
      const int64_t shown = i < 0        ? -i - 1 + skipped
                            : i < inside ? i
                                         : 2 * inside - i - 1 - skipped;
      offset_of[d].push_back(shown * strides[d]);
    }
  }
  if (rank == 0) {
    CopyElements(in.type(), out->mutable_raw_data(), in.raw_data(), run);
    return absl::OkStatus();
  }
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  return SwitchNumber(in.type(), [&]<typename T>() {
    // Integers wrap.
    using Term = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;
    const T* from = in.unchecked_data<T>();
    const T* const end = from + in.num_elements();
    T* const to = out->mutable_data<T>();
    DimVector at(rank, 0);
    while (from < end) {
      int64_t offset = 0;
      for (size_t d = 0; d + 1 < rank; ++d) offset += offset_of[d][at[d]];
      for (const int64_t inner : offset_of[rank - 1]) {
        T* const sum = to + offset + inner;
        TROUPE_INDEPENDENT
        for (int64_t i = 0; i < run; ++i) {
          sum[i] = static_cast<T>(static_cast<Term>(sum[i]) + static_cast<Term>(from[i]));
        }
        from += run;
      }
      for (size_t d = rank - 1; d-- > 0 && ++at[d] == in.dim(static_cast<int>(d));) at[d] = 0;
    }
    return absl::OkStatus();
  });
}

}  // namespace troupe
