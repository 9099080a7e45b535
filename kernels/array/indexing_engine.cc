#include "kernels/array/indexing_engine.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/array/index_view.h"
#include "kernels/array/piecewise_copy.h"
#include "kernels/array/scatter.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/short_copy.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// `indices` count `step` elements.
template <typename T>
void CopySlices(KernelContext& ctx, const GatherSizes& n, const T* params, const int64_t* indices,
                int64_t step, T* out) {
  const double slice_ns =
      std::is_trivially_copyable_v<T> ? 2 + 0.1 * sizeof(T) * n.inner : 20.0 * n.inner;
  ctx.ParallelFor(n.batch * n.outer * n.indices, KernelContext::GrainFor(slice_ns),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t at = begin; at < end;) {
                      const int64_t row = at / n.indices, i = at % n.indices;
                      const int64_t count = std::min(n.indices - i, end - at);
                      const int64_t* index = indices + row / n.outer * n.indices + i;
                      const T* block = params + row * n.limit * n.inner;
                      T* to = out + at * n.inner;
                      if (n.inner == 1) {
                        for (int64_t k = 0; k < count; ++k) to[k] = block[index[k] * step];
                      } else {
                        for (int64_t k = 0; k < count; ++k) {
                          CopyRun(to + k * n.inner, block + index[k] * step, n.inner);
                        }
                      }
                      at += count;
                    }
                  });
}

/// True if every one of `size` rows is named.
bool Covers(KernelContext& ctx, int n, int64_t size, int64_t given) {
  if (given < size) return false;
  std::vector<uint8_t> named(size, 0);
  int64_t count = 0;
  for (int i = 0; i < n; ++i) {
    for (const int32_t index : ctx.input(i).unchecked_values<int32_t>()) {
      count += 1 - named[index];
      named[index] = 1;
    }
  }
  return count == size;
}

}  // namespace

absl::Status GatherInto(KernelContext& ctx, const GatherSizes& n, const Tensor& params,
                        const Tensor& indices, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const IndexView index, IndexView::Of(indices, "indices"));
  for (int64_t i = 0; i < n.batch * n.indices; ++i) {
    // One comparison for both ends.
    if (static_cast<uint64_t>(index[i]) >= static_cast<uint64_t>(n.limit)) {
      return IndexOutOfRange(indices, "indices", i, index[i], n.limit);
    }
  }
  return SwitchBySize(params.type(), [&]<typename T>() {
    CopySlices(ctx, n, static_cast<const T*>(params.raw_data()), index.data(), n.inner,
               static_cast<T*>(out->mutable_raw_data()));
    return absl::OkStatus();
  });
}

absl::Status GatherNdInto(KernelContext& ctx, const Tensor& params, const Tensor& indices,
                          bool ignore_bad, Tensor* out) {
  GatherSizes n;
  n.inner = SliceElements(params.shape(), indices.dim(indices.rank() - 1));
  n.indices = out->num_elements() / n.inner;
  TROUPE_ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                          NdOffsets(indices, params.shape(), ignore_bad));
  std::vector<int64_t> ignored;
  for (size_t i = 0; ignore_bad && i < offsets.size(); ++i) {
    if (offsets[i] >= 0) continue;
    ignored.push_back(static_cast<int64_t>(i));
    offsets[i] = 0;
  }
  TROUPE_RETURN_IF_ERROR(SwitchBySize(params.type(), [&]<typename T>() {
    CopySlices(ctx, n, static_cast<const T*>(params.raw_data()), offsets.data(), 1,
               static_cast<T*>(out->mutable_raw_data()));
    return absl::OkStatus();
  }));
  for (const int64_t i : ignored) {
    ZeroElements(ctx, out->type(), ElementAt(out->type(), out->mutable_raw_data(), i * n.inner),
                 n.inner);
  }
  return absl::OkStatus();
}

absl::Status ScatterNdInto(KernelContext& ctx, ScatterOp op, const Tensor& indices,
                           const Tensor& updates, bool ignore_bad, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                          NdOffsets(indices, out->shape(), ignore_bad));
  const int64_t inner = SliceElements(out->shape(), indices.dim(indices.rank() - 1));
  return ScatterSlices(ctx, op, updates, offsets, inner, out);
}

absl::Status ScatterRowsInto(KernelContext& ctx, ScatterOp op, bool zero_divides,
                             const Tensor& indices, const Tensor& updates, Tensor* out) {
  if (op == ScatterOp::kDivide && !zero_divides) TROUPE_RETURN_IF_ERROR(CheckDivisors(updates));
  const int64_t inner = SliceElements(out->shape(), 1);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                          RowOffsets(indices, out->dim(0), inner));
  return ScatterSlices(ctx, op, updates, offsets, inner, out);
}

absl::Status PutSparse(KernelContext& ctx, bool validate, const Tensor& indices,
                       const Tensor& values, const Tensor& default_value, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                          NdOffsets(indices, out->shape(), false));
  if (validate) {
    // Within the tensor, lexicographic order is that of the offsets.
    for (int64_t r = 1; r < indices.dim(0); ++r) {
      if (offsets[r] > offsets[r - 1]) continue;
      return InvalidArgument("sparse_indices[", r, "] ",
                             offsets[r] == offsets[r - 1] ? "is repeated" : "is out of order",
                             ": indices must be in lexicographic order, each once");
    }
  }
  if (out->num_elements() == 0) return absl::OkStatus();
  FillElements(ctx, values.type(), out->mutable_raw_data(), out->num_elements(),
               default_value.raw_data());
  return ScatterSlices(ctx, ScatterOp::kUpdate, values, offsets, 1, out);
}

absl::Status FillOneHot(KernelContext& ctx, const Tensor& indices, int64_t depth, int64_t inner,
                        const Tensor& on, const Tensor& off, Tensor* out) {
  FillElements(ctx, on.type(), out->mutable_raw_data(), out->num_elements(), off.raw_data());
  TROUPE_ASSIGN_OR_RETURN(const DimVector at, ReadIntegers(indices, "indices"));
  return SwitchBySize(on.type(), [&]<typename T>() {
    const T value = *static_cast<const T*>(on.raw_data());
    T* to = static_cast<T*>(out->mutable_raw_data());
    for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i) {
      if (at[i] < 0 || at[i] >= depth) continue;
      to[(i / inner * depth + at[i]) * inner + i % inner] = value;
    }
    return absl::OkStatus();
  });
}

absl::Status StitchRows(KernelContext& ctx, int n, int64_t width, Tensor* out) {
  int64_t given = 0;
  for (int i = 0; i < n; ++i) given += ctx.input(i).num_elements();
  // Rows that no index names are zeros; with a full permutation there are none.
  if (!Covers(ctx, n, out->dim(0), given)) {
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  }
  return SwitchBySize(out->type(), [&]<typename T>() {
    T* const to = static_cast<T*>(out->mutable_raw_data());
    for (int i = 0; i < n; ++i) {
      const T* from = static_cast<const T*>(ctx.input(n + i).raw_data());
      for (const int32_t index : ctx.input(i).unchecked_values<int32_t>()) {
        CopyRun(to + index * width, from, width);
        from += width;
      }
    }
    return absl::OkStatus();
  });
}

absl::Status DealRows(KernelContext& ctx, const Tensor& data, absl::Span<const int32_t> ids,
                      int64_t width) {
  return SwitchBySize(data.type(), [&]<typename T>() {
    std::vector<T*> to(ctx.num_outputs());
    for (int p = 0; p < ctx.num_outputs(); ++p) {
      to[p] = static_cast<T*>(ctx.output(p).mutable_raw_data());
    }
    const T* from = static_cast<const T*>(data.raw_data());
    if (width == 1) {
      for (const int32_t id : ids) *to[id]++ = *from++;
      return absl::OkStatus();
    }
    // Neighbours that go to one place are copied together.
    for (size_t i = 0; i < ids.size();) {
      size_t next = i + 1;
      while (next < ids.size() && ids[next] == ids[i]) ++next;
      const int64_t elements = static_cast<int64_t>(next - i) * width;
      to[ids[i]] = std::copy_n(from, elements, to[ids[i]]);
      from += elements;
      i = next;
    }
    return absl::OkStatus();
  });
}

absl::Status PermuteRows(KernelContext& ctx, absl::Span<const int64_t> order, const Tensor& in,
                         Tensor* out) {
  const int64_t rows = static_cast<int64_t>(order.size());
  const int64_t row_size = in.num_elements() / rows;
  return SwitchBySize(in.type(), [&]<typename T>() -> absl::Status {
    const T* from = static_cast<const T*>(in.raw_data());
    T* to = static_cast<T*>(out->mutable_raw_data());
    ctx.ParallelFor(rows, std::max<int64_t>(1, 65536 / row_size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        CopyRun(to + i * row_size, from + order[i] * row_size, row_size);
      }
    });
    return absl::OkStatus();
  });
}

absl::Status ReverseStarts(KernelContext& ctx, const Tensor& in, const Tensor& lengths, int seq,
                           int batch, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const IndexView view, IndexView::Of(lengths, "seq_lengths"));
  const int64_t steps = in.dim(seq);
  for (int64_t b = 0; b < in.dim(batch); ++b) {
    if (view[b] < 0 || view[b] > steps) {
      return InvalidArgument("seq_lengths[", b, "] = ", view[b], " is not in [0, ", steps, "]");
    }
  }
  if (in.num_elements() == 0) return absl::OkStatus();
  absl::InlinedVector<DimPieces, 8> pieces;
  for (const int64_t size : in.shape().dims()) pieces.push_back({{0, 0, size, 1}});
  for (int64_t b = 0; b < in.dim(batch); ++b) {
    const int64_t length = view[b];
    pieces[batch][0] = {b, b, 1, 1};
    pieces[seq].clear();
    if (length > 0) pieces[seq].push_back({0, length - 1, length, -1});
    if (length < steps) pieces[seq].push_back({length, length, steps - length, 1});
    TROUPE_RETURN_IF_ERROR(CopyPieces(ctx, in, pieces, out));
  }
  return absl::OkStatus();
}

}  // namespace troupe
