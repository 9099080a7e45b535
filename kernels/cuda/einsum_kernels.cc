// Einsum of GPUs: products of matrices by cuBLASLt.
#include <algorithm>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce_tensor.h"
#include "kernels/linalg/einsum.h"

namespace troupe::einsum {

absl::Status SumRows(KernelContext& ctx, int64_t rows, int64_t terms, const Tensor& from,
                     Tensor* sums) {
  return cuda::EnqueueReduce(ctx, cuda::ReduceOp::kSum, from, {{rows, false}, {terms, true}}, 1,
                             sums);
}

absl::Status MultiplyElements(KernelContext& ctx, int64_t n, const Tensor& x, const Tensor& y,
                              Tensor* z) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::Number type, cuda::NumberOf(x.type()));
  const auto launch = IsComplex(x.type()) ? cuda::LaunchBinaryComplex : cuda::LaunchBinaryFloating;
  cuda::BinaryCall call{x.raw_data(), y.raw_data(), z->mutable_raw_data(), n, {}};
  call.broadcast.rank = 1;
  call.broadcast.sizes[0] = n;
  call.broadcast.strides[0][0] = call.broadcast.strides[1][0] = 1;
  return cuda::CudaStatus(launch(cuda::BinaryOp::kMul, type, call, cuda::StreamOf(ctx)),
                          "products of elements");
}

namespace {

/// Matrices of rows x columns, whose strides these are; one of them is 1.
cuda::Factor FactorOf(const Tensor& tensor, int64_t rows, int64_t columns, int64_t row,
                      int64_t column) {
  cuda::Factor factor{tensor.raw_data()};
  if (column != 1) factor.transposition = cuda::Transposition::kTransposed;
  // A matrix of one row may have any stride.
  factor.row = column == 1 ? std::max(row, columns) : std::max(column, rows);
  return factor;
}

}  // namespace

absl::Status Multiply(KernelContext& ctx, const Products& products, const Tensor& a,
                      const Tensor& b, Tensor* c) {
  cuda::Product form;
  form.type = a.type();
  form.m = products.m;
  form.n = products.n;
  form.k = products.k;
  form.a = FactorOf(a, form.m, form.k, products.a_row, products.a_column);
  form.b = FactorOf(b, form.k, form.n, products.b_row, products.b_column);
  form.c = c->mutable_raw_data();
  form.c_row = std::max(products.c_row, form.n);
  std::vector<cuda::ProductDim> dims;
  for (const BatchDim& dim : products.batch) dims.push_back({dim.size, dim.a, dim.b, dim.c});
  return cuda::MultiplyAll(ctx, form, dims);
}

}  // namespace troupe::einsum

namespace troupe::cuda {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeEinsum(KernelConstruction& construction) {
  TROUPE_RETURN_IF_ERROR(OpenCublas());
  return einsum::Make(construction);
}

}  // namespace

void RegisterEinsum(Extension& extension) {
  extension.Kernel(KernelSpec("Einsum")
                       .Device("GPU")
                       .Types("T", FloatAndComplexTypes())
                       .Cost(KernelCost::kExpensive),
                   MakeEinsum);
}

}  // namespace troupe::cuda
