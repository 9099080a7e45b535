// The ops that move slices by index, on cards: what kernels/array/layout_ops.h is made of.
#include "kernels/array/indexing_engine.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "devices/device.h"
#include "kernels/common/strided_copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/rearrange.h"

namespace troupe {
namespace {

using cuda::CheckLate;
using cuda::StreamOf;

int64_t SizeOf(const Tensor& tensor) { return static_cast<int64_t>(ElementSize(tensor.type())); }

absl::Status Launched(cudaError_t error) {
  return cuda::CudaStatus(error, "a kernel that moves slices by index");
}

absl::StatusOr<cuda::Indices> IndicesOf(const Tensor& tensor) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::Number type, cuda::NumberOf(tensor.type()));
  return cuda::Indices{tensor.raw_data(), type};
}

/// Rows of `indices` into a tensor of shape `shape`.
absl::StatusOr<cuda::NdIndices> NdIndicesOf(const Tensor& indices, const Shape& shape,
                                            bool ignore_bad) {
  cuda::NdIndices nd{};
  nd.depth = indices.dim(indices.rank() - 1);
  if (nd.depth > cuda::NdIndices::kMost) {
    return absl::UnimplementedError(
        StrCat("an index has ", nd.depth, " components, GPUs take ", cuda::NdIndices::kMost));
  }
  TROUPE_ASSIGN_OR_RETURN(nd.indices, IndicesOf(indices));
  nd.rows = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) nd.rows *= indices.dim(d);
  for (int64_t d = 0; d < nd.depth; ++d) nd.sizes[d] = shape.dim(static_cast<int>(d));
  nd.inner = 1;
  for (int d = static_cast<int>(nd.depth); d < shape.rank(); ++d) nd.inner *= shape.dim(d);
  nd.ignores_bad = ignore_bad;
  return nd;
}

/// Numbers of the host, in the card's memory.
absl::StatusOr<Tensor> OnDevice(const KernelContext& ctx, absl::Span<const int64_t> numbers) {
  Device* const device = ctx.step().device;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor pinned,
      Tensor::Allocate(ElementType::kInt64, Shape({static_cast<int64_t>(numbers.size())}),
                       device->allocator(MemorySpace::kPinned)));
  std::copy(numbers.begin(), numbers.end(), pinned.mutable_data<int64_t>());
  return Upload(device, pinned);
}

absl::StatusOr<Tensor> Scratch(KernelContext& ctx, ElementType type, int64_t count) {
  return ctx.AllocateTemp(type, Shape({count}));
}

absl::StatusOr<Tensor> SlotsOf(KernelContext& ctx, const cuda::NdIndices& nd) {
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, cuda::BadIndex));
  TROUPE_ASSIGN_OR_RETURN(Tensor slots, Scratch(ctx, ElementType::kInt64, nd.rows));
  TROUPE_RETURN_IF_ERROR(
      Launched(cuda::LaunchSlots(nd, slots.mutable_data<int64_t>(), check, StreamOf(ctx))));
  return slots;
}

absl::Status DivisionByZero(const int64_t* values) {
  return InvalidArgument("updates: element ", values[0], " is zero, and is to divide");
}

cuda::CombineOp CombineOpOf(ScatterOp op) {
  switch (op) {
    case ScatterOp::kSubtract:
      return cuda::CombineOp::kSubtract;
    case ScatterOp::kMultiply:
      return cuda::CombineOp::kMultiply;
    case ScatterOp::kDivide:
      return cuda::CombineOp::kDivide;
    case ScatterOp::kMin:
      return cuda::CombineOp::kMin;
    case ScatterOp::kMax:
      return cuda::CombineOp::kMax;
    default:
      return cuda::CombineOp::kAdd;
  }
}

/// There are rows.
absl::Status Scatter(KernelContext& ctx, ScatterOp op, bool check_divisors,
                     const cuda::NdIndices& nd, const Tensor& updates, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(Tensor slots, SlotsOf(ctx, nd));
  if (out->num_elements() == 0) return absl::OkStatus();  // The indices have been looked at.
  const int64_t slices = out->num_elements() / nd.inner;
  const bool scalar = updates.rank() == 0;
  if (op != ScatterOp::kUpdate) {
    TROUPE_ASSIGN_OR_RETURN(const cuda::Number type, cuda::NumberOf(updates.type()));
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                            Scratch(ctx, ElementType::kUint8, cuda::CombineScratch(nd.rows)));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck zero, CheckLate(ctx, DivisionByZero));
    return Launched(cuda::LaunchCombine(CombineOpOf(op), type, slots.mutable_data<int64_t>(),
                                        nd.rows, nd.inner, updates.raw_data(), scalar,
                                        out->mutable_raw_data(), slices, scratch.mutable_raw_data(),
                                        check_divisors ? &zero : nullptr, StreamOf(ctx)));
  }
  if (nd.rows > INT32_MAX) return absl::UnimplementedError("GPUs take 2^31 - 1 indices at most");
  TROUPE_ASSIGN_OR_RETURN(Tensor owners, Scratch(ctx, ElementType::kInt32, slices));
  return Launched(cuda::LaunchPut(SizeOf(updates), slots.unchecked_data<int64_t>(), nd.rows,
                                  nd.inner, updates.raw_data(), scalar, out->mutable_raw_data(),
                                  slices, owners.mutable_data<int32_t>(), StreamOf(ctx)));
}

absl::Status BadLength(const int64_t* values) {
  return InvalidArgument("seq_lengths[", values[0], "] = ", values[1], " is not in [0, ", values[2],
                         "]");
}

absl::Status WrongOrder(const int64_t* values) {
  return InvalidArgument("sparse_indices[", values[0], "] ",
                         values[1] != 0 ? "is repeated" : "is out of order",
                         ": indices must be in lexicographic order, each once");
}

}  // namespace

absl::Status GatherInto(KernelContext& ctx, const GatherSizes& sizes, const Tensor& params,
                        const Tensor& indices, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::Indices index, IndicesOf(indices));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, cuda::BadIndex));
  return Launched(cuda::LaunchGather(
      SizeOf(params), {sizes.batch, sizes.outer, sizes.limit, sizes.indices, sizes.inner},
      params.raw_data(), index, out->mutable_raw_data(), check, StreamOf(ctx)));
}

absl::Status GatherNdInto(KernelContext& ctx, const Tensor& params, const Tensor& indices,
                          bool ignore_bad, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::NdIndices nd,
                          NdIndicesOf(indices, params.shape(), ignore_bad));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, cuda::BadIndex));
  return Launched(cuda::LaunchGatherNd(SizeOf(params), nd, params.raw_data(),
                                       out->mutable_raw_data(), check, StreamOf(ctx)));
}

absl::Status ScatterNdInto(KernelContext& ctx, ScatterOp op, const Tensor& indices,
                           const Tensor& updates, bool ignore_bad, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::NdIndices nd, NdIndicesOf(indices, out->shape(), ignore_bad));
  return Scatter(ctx, op, IsInteger(updates.type()), nd, updates, out);
}

absl::Status ScatterRowsInto(KernelContext& ctx, ScatterOp op, bool zero_divides,
                             const Tensor& indices, const Tensor& updates, Tensor* out) {
  cuda::NdIndices nd{};
  nd.depth = nd.inner = 1;
  TROUPE_ASSIGN_OR_RETURN(nd.indices, IndicesOf(indices));
  nd.rows = indices.num_elements();
  nd.sizes[0] = out->dim(0);
  for (int d = 1; d < out->rank(); ++d) nd.inner *= out->dim(d);
  if (nd.rows == 0) {
    // As on the CPU, a divisor that no row takes must not be 0, either.
    if (op != ScatterOp::kDivide || zero_divides) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const cuda::Number type, cuda::NumberOf(updates.type()));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck zero, CheckLate(ctx, DivisionByZero));
    return Launched(cuda::LaunchFindZero(type, updates.raw_data(), updates.num_elements(), zero,
                                         StreamOf(ctx)));
  }
  return Scatter(ctx, op, !zero_divides || IsInteger(updates.type()), nd, updates, out);
}

absl::Status PutSparse(KernelContext& ctx, bool validate, const Tensor& indices,
                       const Tensor& values, const Tensor& default_value, Tensor* out) {
  FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(),
               default_value.raw_data());
  TROUPE_ASSIGN_OR_RETURN(const cuda::NdIndices nd, NdIndicesOf(indices, out->shape(), false));
  if (nd.rows == 0) return absl::OkStatus();
  if (nd.rows > INT32_MAX) return absl::UnimplementedError("GPUs take 2^31 - 1 indices at most");
  TROUPE_ASSIGN_OR_RETURN(const Tensor slots, SlotsOf(ctx, nd));
  const auto* const slot = slots.unchecked_data<int64_t>();
  Tensor owners;
  if (validate) {
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, WrongOrder));
    TROUPE_RETURN_IF_ERROR(Launched(cuda::LaunchCheckOrder(slot, nd.rows, check, StreamOf(ctx))));
  } else {
    TROUPE_ASSIGN_OR_RETURN(owners, Scratch(ctx, ElementType::kInt32, out->num_elements()));
  }
  if (out->num_elements() == 0) return absl::OkStatus();
  return Launched(cuda::LaunchPut(
      SizeOf(values), slot, nd.rows, 1, values.raw_data(),
      /*scalar=*/values.num_elements() == 1, out->mutable_raw_data(), out->num_elements(),
      validate ? nullptr : owners.mutable_data<int32_t>(), StreamOf(ctx)));
}

absl::Status FillOneHot(KernelContext& ctx, const Tensor& indices, int64_t depth, int64_t inner,
                        const Tensor& on, const Tensor& off, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::Indices index, IndicesOf(indices));
  return Launched(cuda::LaunchOneHot(SizeOf(on), index, indices.num_elements() / inner, depth,
                                     inner, on.raw_data(), off.raw_data(), out->mutable_raw_data(),
                                     StreamOf(ctx)));
}

absl::Status StitchRows(KernelContext& ctx, int n, int64_t width, Tensor* out) {
  std::vector<int64_t> sources(out->dim(0), -1);
  int64_t row = 0;
  for (int i = 0; i < n; ++i) {
    for (const int32_t index : ctx.input(i).unchecked_values<int32_t>()) sources[index] = row++;
  }
  TROUPE_ASSIGN_OR_RETURN(const Tensor there, OnDevice(ctx, sources));
  row = 0;
  for (int i = 0; i < n;) {
    cuda::RowTensors some;
    for (; i < n && some.count < cuda::RowTensors::kMost; ++i) {
      some.begin[some.count] = row;
      some.data[some.count++] = const_cast<void*>(ctx.input(n + i).raw_data());
      row += ctx.input(i).num_elements();
    }
    some.begin[some.count] = row;
    TROUPE_RETURN_IF_ERROR(
        Launched(cuda::LaunchStitch(SizeOf(*out), some, there.unchecked_data<int64_t>(),
                                    out->dim(0), width, out->mutable_raw_data(), StreamOf(ctx))));
  }
  return absl::OkStatus();
}

absl::Status DealRows(KernelContext& ctx, const Tensor& data, absl::Span<const int32_t> ids,
                      int64_t width) {
  std::vector<int64_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [ids](int64_t a, int64_t b) { return ids[a] < ids[b]; });
  TROUPE_ASSIGN_OR_RETURN(const Tensor there, OnDevice(ctx, order));
  int64_t row = 0;
  for (int i = 0; i < ctx.num_outputs();) {
    cuda::RowTensors some;
    for (; i < ctx.num_outputs() && some.count < cuda::RowTensors::kMost; ++i) {
      some.begin[some.count] = row;
      some.data[some.count++] = ctx.output(i).mutable_raw_data();
      row += ctx.output(i).dim(0);
    }
    some.begin[some.count] = row;
    TROUPE_RETURN_IF_ERROR(
        Launched(cuda::LaunchDeal(SizeOf(data), some, there.unchecked_data<int64_t>(), width,
                                  data.raw_data(), StreamOf(ctx))));
  }
  return absl::OkStatus();
}

absl::Status PermuteRows(KernelContext& ctx, absl::Span<const int64_t> order, const Tensor& in,
                         Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor there, OnDevice(ctx, order));
  const auto rows = static_cast<int64_t>(order.size());
  return GatherInto(ctx, {.limit = rows, .indices = rows, .inner = in.num_elements() / rows}, in,
                    there, out);
}

absl::Status ReverseStarts(KernelContext& ctx, const Tensor& in, const Tensor& lengths, int seq,
                           int batch, Tensor* out) {
  const DimVector strides = RowMajorStrides(in.shape().dims());
  TROUPE_ASSIGN_OR_RETURN(const cuda::Indices index, IndicesOf(lengths));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadLength));
  const cuda::Sequences sequences{in.num_elements(), in.dim(seq), strides[seq], in.dim(batch),
                                  strides[batch]};
  return Launched(cuda::LaunchReverseStarts(SizeOf(in), sequences, index, out->mutable_raw_data(),
                                            in.raw_data(), check, StreamOf(ctx)));
}

}  // namespace troupe
