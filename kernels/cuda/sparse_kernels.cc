// SparseReorder, SparseReshape, SparseConcat, SparseSplit, SparseSlice, SparseSliceGrad,
// SparseFillEmptyRows, SparseFillEmptyRowsGrad and SparseTensorDenseMatMul of GPUs.
#include <any>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/scan.h"
#include "kernels/cuda/sorted_ids.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/transpose_planes.h"
#include "kernels/sparse/sparse_shapes.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a sparse tensor";

absl::StatusOr<SparseDims> DimsOf(absl::Span<const int64_t> sizes) {
  if (sizes.size() > SparseDims::kMost) {
    return absl::UnimplementedError(StrCat("sparse tensors of GPUs have at most ",
                                           SparseDims::kMost, " dimensions, got ", sizes.size()));
  }
  SparseDims dims;
  for (const int64_t size : sizes) dims.sizes[dims.rank++] = size;
  return dims;
}

absl::StatusOr<SparseIndicesIn> ElementsOf(const Tensor& indices, const Shape& shape) {
  SparseIndicesIn elements{indices.unchecked_data<int64_t>(), indices.dim(0)};
  TROUPE_ASSIGN_OR_RETURN(elements.shape, DimsOf(shape.dims()));
  return elements;
}

/// Numbers for LaunchScan over n of them.
absl::StatusOr<Tensor> ScanScratch(KernelContext& ctx, int64_t n) {
  return ctx.AllocateTemp(ElementType::kUint64, Shape({PlanScan(1, n, 1).totals()}));
}

/// Makes output `i` a vector of the elements of `values` at places that the card knows.
absl::Status TakeValues(KernelContext& ctx, int i, const Tensor& values, const uint32_t* places,
                        int64_t n) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(i, values.type(), Shape({n})));
  if (n == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
  // Places are below 2^31.
  return CudaStatus(
      LaunchGather(static_cast<int64_t>(ElementSize(values.type())),
                   {.limit = values.num_elements(), .indices = n}, values.raw_data(),
                   {places, Number::kInt32}, output->mutable_raw_data(), check, StreamOf(ctx)),
      kWhat);
}

/// Outputs 0 and 1: elements by their places, which have been sorted. `values` are in the old
/// order.
absl::Status PutSorted(KernelContext& ctx, const SortedRows& sorted, const Shape& shape,
                       const Tensor& values) {
  TROUPE_ASSIGN_OR_RETURN(const SparseDims dims, DimsOf(shape.dims()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, ElementType::kInt64,
                                                               Shape({sorted.rows, dims.rank})));
  // No place is in an empty shape: elements of such have been reported.
  const int64_t places = shape.num_elements() == 0 ? 0 : sorted.rows;
  TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchUnravel(sorted.keys, sorted.wide, places, dims,
                                                  indices->mutable_data<int64_t>(), StreamOf(ctx)),
                                    kWhat));
  return TakeValues(ctx, 1, values, sorted.places, sorted.rows);
}

absl::Status SparseReorder(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  TROUPE_ASSIGN_OR_RETURN(const SparseIndicesIn elements, ElementsOf(ctx.input(0), input.shape));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
  const int bits = SortedRows::BitsFor(input.shape.num_elements());
  TROUPE_ASSIGN_OR_RETURN(const SortedRows sorted,
                          SortedRows::Of(ctx, input.size(), bits, [&](void* keys) {
                            return LaunchPlaceKeys(elements, {}, elements.shape, {keys, bits > 32},
                                                   0, check, StreamOf(ctx));
                          }));
  return PutSorted(ctx, sorted, input.shape, input.values);
}

absl::Status SparseReshape(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const auto shapes, SparseReshapeShapes::Read(ctx));
  TROUPE_RETURN_IF_ERROR(PutShape(ctx, 1, shapes.to));
  if (shapes.from == shapes.to) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const SparseIndicesIn elements, ElementsOf(ctx.input(0), shapes.from));
  TROUPE_ASSIGN_OR_RETURN(const SparseDims to, DimsOf(shapes.to.dims()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({elements.n, to.rank})));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
  return CudaStatus(
      LaunchSparseReshape(elements, to, output->mutable_data<int64_t>(), check, StreamOf(ctx)),
      kWhat);
}

absl::Status SparseConcat(KernelContext& ctx, int64_t concat_dim) {
  const int n = ctx.num_inputs() / 3;
  std::vector<SparseTensor> inputs;
  int64_t count = 0;
  for (int i = 0; i < n; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        SparseTensor input,
        ReadSparse(ctx.input(i), ctx.input(n + i), ctx.input(2 * n + i), StrCat("input ", i)));
    count += input.size();
    inputs.push_back(std::move(input));
  }
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(concat_dim, inputs[0].rank(), "concat_dim"));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, SparseJoinedShape(inputs, axis));
  TROUPE_RETURN_IF_ERROR(PutShape(ctx, 2, shape));
  TROUPE_ASSIGN_OR_RETURN(const SparseDims dims, DimsOf(shape.dims()));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
  TROUPE_ASSIGN_OR_RETURN(Tensor values, ctx.AllocateTemp(ctx.input(n).type(), Shape({count})));
  const cudaStream_t stream = StreamOf(ctx);
  const int bits = SortedRows::BitsFor(shape.num_elements());
  const auto put_keys = [&](void* keys) {
    SparseDims offset{.rank = dims.rank, .sizes = {}};
    cudaError_t error = cudaSuccess;
    auto* value = static_cast<char*>(values.mutable_raw_data());
    int64_t begin = 0;
    for (const SparseTensor& input : inputs) {
      SparseIndicesIn elements{input.indices[0], input.size(), dims};
      elements.shape.sizes[axis] = input.shape.dim(axis);
      error = LaunchPlaceKeys(elements, offset, dims, {keys, bits > 32}, begin, check, stream);
      if (error == cudaSuccess && input.size() > 0) {
        error = cudaMemcpyAsync(value, input.values.raw_data(), input.values.bytes(),
                                cudaMemcpyDeviceToDevice, stream);
      }
      if (error != cudaSuccess) break;
      value += input.values.bytes();
      begin += input.size();
      offset.sizes[axis] += input.shape.dim(axis);
    }
    return error;
  };
  TROUPE_ASSIGN_OR_RETURN(const SortedRows sorted, SortedRows::Of(ctx, count, bits, put_keys));
  return PutSorted(ctx, sorted, shape, values);
}

class SparseSplitKernel final : public LateShapeKernel {
 public:
  SparseSplitKernel(KernelConstruction& construction, absl::Status*)
      : num_split_(construction.Attr<int64_t>("num_split")) {}

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 1, "input"));
    TROUPE_ASSIGN_OR_RETURN(const SparseParts parts,
                            SparseParts::Of(input.shape, ctx.input(0), num_split_));
    TROUPE_ASSIGN_OR_RETURN(const SparseIndicesIn elements, ElementsOf(ctx.input(1), input.shape));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
    TROUPE_ASSIGN_OR_RETURN(
        SortedRows sorted,
        SortedRows::Of(ctx, elements.n, SortedRows::BitsFor(num_split_ - 1), [&](void* keys) {
          return LaunchPartKeys(elements, parts.axis, parts.part, parts.larger,
                                static_cast<uint32_t*>(keys), check, StreamOf(ctx));
        }));
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, sorted.Starts(ctx, num_split_));
    search.keep = std::move(sorted);
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& keep) override {
    const auto& sorted = std::any_cast<const SortedRows&>(keep);
    TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 1, "input"));
    TROUPE_ASSIGN_OR_RETURN(const SparseParts parts,
                            SparseParts::Of(input.shape, ctx.input(0), num_split_));
    const int n = static_cast<int>(num_split_), rank = input.rank();
    SparseDims start{.rank = rank, .sizes = {}};
    for (int k = 0; k < n; ++k) {
      const int64_t count = found[k + 1] - found[k];
      TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                              ctx.AllocateOutput(k, ElementType::kInt64, Shape({count, rank})));
      const uint32_t* const places = sorted.places + found[k];
      start.sizes[parts.axis] = parts.begin(k);
      TROUPE_RETURN_IF_ERROR(
          CudaStatus(LaunchTakeIndices(ctx.input(1).unchecked_data<int64_t>(), places, count, start,
                                       indices->mutable_data<int64_t>(), StreamOf(ctx)),
                     kWhat));
      TROUPE_RETURN_IF_ERROR(TakeValues(ctx, n + k, input.values, places, count));
      Shape shape = input.shape;
      shape.set_dim(parts.axis, parts.begin(k + 1) - parts.begin(k));
      TROUPE_RETURN_IF_ERROR(PutShape(ctx, 2 * n + k, shape));
    }
    return absl::OkStatus();
  }

 private:
  const int64_t num_split_;
};

class SparseSliceKernel final : public LateShapeKernel {
 public:
  SparseSliceKernel(KernelConstruction&, absl::Status*) {}

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
    TROUPE_ASSIGN_OR_RETURN(const auto bounds,
                            SparseSliceBounds::Of(input.shape, ctx.input(3), ctx.input(4)));
    TROUPE_ASSIGN_OR_RETURN(const SparseIndicesIn elements, ElementsOf(ctx.input(0), input.shape));
    TROUPE_ASSIGN_OR_RETURN(const SparseDims start, DimsOf(bounds.start));
    TROUPE_ASSIGN_OR_RETURN(const SparseDims size, DimsOf(bounds.shape.dims()));
    const int64_t n = elements.n;
    if (n > kMaxSorted) {  // Places are numbers of 32 bits, as in sorts.
      return absl::UnimplementedError(
          StrCat("GPUs slice sparse tensors of at most ", kMaxSorted, " elements, got ", n));
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor at, ctx.AllocateTemp(ElementType::kInt64, Shape({n + 1})));
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch, ScanScratch(ctx, n + 1));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
    auto* const counts = static_cast<uint64_t*>(at.mutable_raw_data());
    const cudaStream_t stream = StreamOf(ctx);
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    cudaError_t error =
        LaunchCountSlice(elements, start, size, counts, scratch.mutable_raw_data(), check, stream);
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(search.found.mutable_raw_data(), counts + n, sizeof(*counts),
                              cudaMemcpyDeviceToDevice, stream);
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, kWhat));
    search.keep = Kept{std::move(at), start, bounds.shape};
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& keep) override {
    const Kept& kept = std::any_cast<const Kept&>(keep);
    const Tensor &indices = ctx.input(0), &values = ctx.input(1);
    const int64_t count = *found;
    TROUPE_RETURN_IF_ERROR(PutShape(ctx, 2, kept.shape));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out, ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, kept.start.rank})));
    TROUPE_ASSIGN_OR_RETURN(Tensor list, ctx.AllocateTemp(ElementType::kUint32, Shape({count})));
    auto* const places = list.mutable_data<uint32_t>();
    const cudaStream_t stream = StreamOf(ctx);
    cudaError_t error = LaunchListKept(static_cast<const uint64_t*>(kept.at.raw_data()),
                                       indices.dim(0), places, stream);
    if (error == cudaSuccess) {
      error = LaunchTakeIndices(indices.unchecked_data<int64_t>(), places, count, kept.start,
                                out->mutable_data<int64_t>(), stream);
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, kWhat));
    return TakeValues(ctx, 1, values, places, count);
  }

 private:
  struct Kept {
    Tensor at;  ///< Where each element goes.
    SparseDims start;
    Shape shape;
  };
};

absl::Status NotMet(const int64_t* values) { return SparseSliceGradNotMet(values[1], values[0]); }

absl::Status SparseSliceGrad(KernelContext& ctx) {
  const Tensor &grad = ctx.input(0), &to = ctx.input(1), &from = ctx.input(3);
  TROUPE_ASSIGN_OR_RETURN(const DimVector start, ReadSparseSliceGrad(ctx));
  SparseMatch match{from.unchecked_data<int64_t>(), from.dim(0), grad.raw_data(),
                    to.unchecked_data<int64_t>(), to.dim(0)};
  TROUPE_ASSIGN_OR_RETURN(match.start, DimsOf(start));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, grad.type(), Shape({match.n})));
  TROUPE_ASSIGN_OR_RETURN(Tensor met, ctx.AllocateTemp(ElementType::kUint32, Shape({1})));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, NotMet));
  match.out = out->mutable_raw_data();
  match.met = met.mutable_data<uint32_t>();
  return CudaStatus(
      LaunchMatch(static_cast<int64_t>(ElementSize(grad.type())), match, check, StreamOf(ctx)),
      kWhat);
}

// ---- Empty rows.

absl::Status BadRow(const int64_t* values) {
  return SparseRowOutOfRange(values[0], values[1], values[2]);
}
absl::Status BadPlace(const int64_t* values) {
  return SparsePlaceOutOfRange(values[0], values[1], values[2]);
}

class SparseFillEmptyRowsKernel final : public LateShapeKernel {
 public:
  SparseFillEmptyRowsKernel(KernelConstruction&, absl::Status*) {}

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparseRows(ctx));
    const int64_t rows = input.shape.dim(0), n = input.size();
    // A shape may say any number of rows: from here on memory has room for them.
    TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(2, ElementType::kBool, Shape({rows})).status());
    const SparseColumn column{IndicesOf(ctx.input(0)), n, input.rank(), 0, rows};
    const int bits = SortedRows::BitsFor(rows);
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadRow));
    Rows found;
    TROUPE_ASSIGN_OR_RETURN(
        found.sorted, SortedRows::Of(ctx, n, bits, [&](void* keys) {
          return LaunchColumnKeys(column, {keys, bits > 32}, check, StreamOf(ctx));
        }));
    TROUPE_ASSIGN_OR_RETURN(found.starts, found.sorted.Starts(ctx, rows));
    TROUPE_ASSIGN_OR_RETURN(found.at, ctx.AllocateTemp(ElementType::kInt64, Shape({rows + 1})));
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch, ScanScratch(ctx, rows + 1));
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    auto* const at = static_cast<uint64_t*>(found.at.mutable_raw_data());
    const cudaStream_t stream = StreamOf(ctx);
    cudaError_t error = LaunchFilledStarts(found.starts.unchecked_data<int64_t>(), rows, at,
                                           scratch.mutable_raw_data(), stream);
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(search.found.mutable_raw_data(), at + rows, sizeof(*at),
                              cudaMemcpyDeviceToDevice, stream);
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, kWhat));
    search.keep = std::move(found);
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& keep) override {
    const Rows& of = std::any_cast<const Rows&>(keep);
    const Tensor &indices = ctx.input(0), &values = ctx.input(1);
    const int64_t n = indices.dim(0), rank = indices.dim(1), rows = of.at.dim(0) - 1;
    TROUPE_ASSIGN_OR_RETURN(Tensor * out_indices,
                            ctx.AllocateOutput(0, ElementType::kInt64, Shape({*found, rank})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out_values,
                            ctx.AllocateOutput(1, values.type(), Shape({*found})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * map, ctx.AllocateOutput(3, ElementType::kInt64, Shape({n})));
    const FillRows fill{.indices = indices.unchecked_data<int64_t>(),
                        .values = values.raw_data(),
                        .filling = ctx.input(3).raw_data(),
                        .n = n,
                        .rows = rows,
                        .rank = rank,
                        .keys = of.sorted.keys,
                        .wide = of.sorted.wide,
                        .places = of.sorted.places,
                        .starts = of.starts.unchecked_data<int64_t>(),
                        .at = static_cast<const uint64_t*>(of.at.raw_data()),
                        .out_indices = out_indices->mutable_data<int64_t>(),
                        .out_values = out_values->mutable_raw_data(),
                        .empty = ctx.output(2).mutable_data<bool>(),
                        .map = map->mutable_data<int64_t>()};
    return CudaStatus(
        LaunchFillRows(static_cast<int64_t>(ElementSize(values.type())), fill, StreamOf(ctx)),
        kWhat);
  }

 private:
  struct Rows {
    SortedRows sorted;
    Tensor starts;  ///< Where each row begins,
    Tensor at;      ///< and where when empty rows have been filled.
  };
};

class SparseFillEmptyRowsGradKernel final : public Kernel {
 public:
  SparseFillEmptyRowsGradKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(1));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &map = ctx.input(0), &grad = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSparseFillEmptyRowsGrad(ctx));
    const int64_t n = map.dim(0), size = grad.dim(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * of_values, ctx.AllocateOutput(0, grad.type(), Shape({n})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * of_filling, ctx.AllocateOutput(1, grad.type(), Shape()));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadPlace));
    TROUPE_ASSIGN_OR_RETURN(Tensor taken, ctx.AllocateTemp(ElementType::kUint8, Shape({size})));
    const cudaStream_t stream = StreamOf(ctx);
    const auto* const places = map.unchecked_data<int64_t>();
    auto* const marks = taken.mutable_data<uint8_t>();
    cudaError_t error = LaunchMarkTaken(places, n, size, marks, check, stream);
    if (error == cudaSuccess && n > 0) {
      error = LaunchGather(static_cast<int64_t>(ElementSize(grad.type())),
                           {.limit = size, .indices = n}, grad.raw_data(), {places, Number::kInt64},
                           of_values->mutable_raw_data(), check, stream);
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, kWhat));
    return SumRest(ctx, marks, of_filling);
  }

 private:
  /// The sum of what has not been taken. Integers are added as int64, of which the lowest bytes are
  /// their own.
  absl::Status SumRest(KernelContext& ctx, const uint8_t* taken, Tensor* sum) const {
    const Tensor& grad = ctx.input(1);
    const int64_t size = grad.dim(0);
    const bool integer = !IsFloating(grad.type());
    const ElementType type = integer ? ElementType::kInt64 : grad.type();
    const int64_t bytes = static_cast<int64_t>(ElementSize(type));
    const Number number = integer ? Number::kInt64 : type_;
    TROUPE_ASSIGN_OR_RETURN(Tensor rest, ctx.AllocateTemp(type, Shape({size})));
    TROUPE_ASSIGN_OR_RETURN(Tensor total, ctx.AllocateTemp(type, Shape()));
    const int64_t acc_size = AccSize(number, bytes);
    const ReducePlan plan = PlanReduce({{size, true}}, ReducePack(bytes, acc_size));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch, ctx.AllocateTemp(ElementType::kUint8, Shape({plan.scratch * acc_size})));
    const cudaStream_t stream = StreamOf(ctx);
    cudaError_t error =
        LaunchRest(type_, grad.raw_data(), taken, size, rest.mutable_raw_data(), stream);
    if (error == cudaSuccess) {
      const ReduceCall call{number, rest.raw_data(), total.mutable_raw_data(),
                            scratch.mutable_raw_data()};
      error = LaunchReduce(ReduceOp::kSum, call, plan, stream);
    }
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(sum->mutable_raw_data(), total.raw_data(), sum->bytes(),
                              cudaMemcpyDeviceToDevice, stream);
    }
    return CudaStatus(error, kWhat);
  }

  Number type_ = Number::kFloat;
};

// ---- Products.

absl::Status BadElement(const int64_t* values) {
  return InvalidArgument("a_indices: an index of element ", values[0], " is ", values[1],
                         ", which is not in [0, ", values[2], ")");
}

class SparseTensorDenseMatMulKernel final : public Kernel {
 public:
  SparseTensorDenseMatMulKernel(KernelConstruction& construction, absl::Status* status)
      : adjoint_a_(construction.Attr<bool>("adjoint_a")),
        adjoint_b_(construction.Attr<bool>("adjoint_b")) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(1));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &values = ctx.input(1), &b = ctx.input(3);
    TROUPE_ASSIGN_OR_RETURN(const SparseProductShape shape,
                            SparseProductShape::Read(ctx, adjoint_a_, adjoint_b_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, b.type(), shape.product));
    SparseProduct product{type_, IndicesOf(indices), values.raw_data(), indices.dim(0), adjoint_a_};
    product.rows = output->dim(0);
    product.columns = output->dim(1);
    product.inner = shape.inner;
    product.conjugate = adjoint_b_;
    product.out = output->mutable_raw_data();
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadElement));
    const SparseColumn column{product.indices, product.count, 2, adjoint_a_ ? 1 : 0, product.rows};
    const int bits = SortedRows::BitsFor(product.rows);
    TROUPE_ASSIGN_OR_RETURN(
        const SortedRows sorted, SortedRows::Of(ctx, product.count, bits, [&](void* keys) {
          return LaunchColumnKeys(column, {keys, bits > 32}, check, StreamOf(ctx));
        }));
    if (output->num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const Tensor starts, sorted.Starts(ctx, product.rows));
    TROUPE_ASSIGN_OR_RETURN(const Tensor dense, RowsOfB(ctx));
    product.b = dense.raw_data();
    product.places = sorted.places;
    product.starts = starts.unchecked_data<int64_t>();
    return CudaStatus(LaunchSparseProduct(product, check, StreamOf(ctx)), kWhat);
  }

 private:
  /// Rows of b as threads read them: neighbours next to each other.
  absl::StatusOr<Tensor> RowsOfB(KernelContext& ctx) const {
    const Tensor& b = ctx.input(3);
    if (!adjoint_b_ || b.num_elements() == 0) return b;
    const int64_t rows = b.dim(0), columns = b.dim(1);
    TROUPE_ASSIGN_OR_RETURN(Tensor turned, ctx.AllocateTemp(b.type(), Shape({columns, rows})));
    const Planes planes{1, rows, columns, columns, rows * columns, rows, rows * columns};
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchTransposePlanes(static_cast<int64_t>(ElementSize(b.type())), planes,
                                         b.raw_data(), turned.mutable_raw_data(), StreamOf(ctx)),
                   kWhat));
    return turned;
  }

  const bool adjoint_a_, adjoint_b_;
  Number type_ = Number::kFloat;
};

}  // namespace

void RegisterSparse(Extension& extension) {
  using enum ElementType;
  const auto spec = [](const char* op, std::vector<ElementType> types) {
    return KernelSpec(op).Device("GPU").Types("T", std::move(types));
  };
  std::vector<ElementType> real = RealNumberTypes(), numbers = NumberTypes();
  extension.Kernel(spec("SparseReorder", PlainTypes()).HostMemory("input_shape"),
                   MakeKernel<SparseReorder>);
  extension.Kernel(KernelSpec("SparseReshape")
                       .Device("GPU")
                       .HostMemory("input_shape")
                       .HostMemory("new_shape")
                       .HostMemory("output_shape"),
                   MakeKernel<SparseReshape>);
  extension.Kernel(
      spec("SparseConcat", PlainTypes()).HostMemory("shapes").HostMemory("output_shape"),
      MakeAttrKernel<SparseConcat, "concat_dim">);
  extension.Kernel(spec("SparseSplit", PlainTypes())
                       .HostMemory("split_dim")
                       .HostMemory("shape")
                       .HostMemory("output_shape"),
                   MakeKernel<SparseSplitKernel>);
  extension.Kernel(spec("SparseSlice", PlainTypes())
                       .HostMemory("shape")
                       .HostMemory("start")
                       .HostMemory("size")
                       .HostMemory("output_shape"),
                   MakeKernel<SparseSliceKernel>);
  extension.Kernel(spec("SparseSliceGrad", numbers).HostMemory("input_start"),
                   MakeKernel<SparseSliceGrad>);
  extension.Kernel(spec("SparseFillEmptyRows", PlainTypes()).HostMemory("dense_shape"),
                   MakeKernel<SparseFillEmptyRowsKernel>);
  extension.Kernel(spec("SparseFillEmptyRowsGrad", real),
                   MakeKernel<SparseFillEmptyRowsGradKernel>);
  extension.Kernel(
      spec("SparseTensorDenseMatMul", {kHalf, kFloat, kDouble, kComplex64, kComplex128})
          .Types("Tindices", IndexTypes())
          .HostMemory("a_shape"),
      MakeKernel<SparseTensorDenseMatMulKernel>);
}

}  // namespace troupe::cuda
