// MatMul, BatchMatMul, BatchMatMulV2, BatchMatMulV3.
#include <algorithm>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/linalg/batch.h"

namespace troupe::cuda {
namespace {

class ProductKernel : public Kernel {
 protected:
  ProductKernel(KernelConstruction& construction, const char* turns_a, const char* turns_b,
                Transposition turned, absl::Status* status)
      : a_(construction.Attr<bool>(turns_a) ? turned : Transposition::kNone),
        b_(construction.Attr<bool>(turns_b) ? turned : Transposition::kNone) {
    *status = OpenCublas();
  }

  /// The form of the product of the matrices in the last two dimensions.
  absl::StatusOr<Product> FormOf(const Tensor& a, const Tensor& b) const {
    const auto size = [](const Tensor& t, Transposition turned, int dim) {
      return t.dim(t.rank() - (turned == Transposition::kNone ? 2 - dim : 1 + dim));
    };
    Product p;
    p.type = a.type();
    p.a.transposition = a_;
    p.b.transposition = b_;
    p.m = size(a, a_, 0);
    p.k = size(a, a_, 1);
    p.n = size(b, b_, 1);
    if (size(b, b_, 0) != p.k) {
      return InvalidArgument("Matrix size-incompatible: In[0]: ", a.shape().ToString(),
                             ", In[1]: ", b.shape().ToString());
    }
    return p;
  }

  /// True if nothing is left to do; a sum of nothing is 0.
  static absl::StatusOr<bool> IsTrivial(KernelContext& ctx, const Product& p, Tensor* c) {
    if (c->num_elements() == 0) return true;
    if (p.k != 0) return false;
    TROUPE_RETURN_IF_ERROR(CudaStatus(
        cudaMemsetAsync(c->mutable_raw_data(), 0, c->bytes(), StreamOf(ctx)), "filling zeros"));
    return true;
  }

 private:
  const Transposition a_, b_;
};

class MatMulKernel final : public ProductKernel {
 public:
  MatMulKernel(KernelConstruction& construction, absl::Status* status)
      : ProductKernel(construction, "transpose_a", "transpose_b", Transposition::kTransposed,
                      status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() != 2 || b.rank() != 2) {
      return InvalidArgument("In[0] and In[1] must be matrices, got ", a.shape().ToString(),
                             " and ", b.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(Product p, FormOf(a, b));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({p.m, p.n}));
    TROUPE_ASSIGN_OR_RETURN(Tensor * c, ctx.AllocateOutput(0, a.type(), shape));
    TROUPE_ASSIGN_OR_RETURN(const bool trivial, IsTrivial(ctx, p, c));
    if (trivial) return absl::OkStatus();
    p.a.data = a.raw_data();
    p.b.data = b.raw_data();
    p.c = c->mutable_raw_data();
    return Multiply(ctx, p);
  }
};

/// The dimensions of a batch, of those that behave alike one. None of the shapes is empty.
std::vector<ProductDim> BatchDims(const Shape& a, const Shape& b, const Shape& c) {
  const auto outer = [](const Shape& s) { return Shape(s.dims().subspan(0, s.rank() - 2)); };
  const auto matrix = [](const Shape& s) { return s.dim(s.rank() - 2) * s.dim(s.rank() - 1); };
  const Shape outer_a = outer(a), outer_b = outer(b), outer_c = outer(c);
  const BroadcastWalk walk(outer_c, {&outer_a, &outer_b});
  std::vector<ProductDim> dims;
  for (const BroadcastWalk::Dim& dim : walk.outer()) {
    dims.push_back({dim.size, dim.strides[0], dim.strides[1], 0});
  }
  dims.push_back({walk.run_length(), walk.run_step(0), walk.run_step(1), 0});
  int64_t inside = matrix(c);
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    dim->a *= matrix(a);
    dim->b *= matrix(b);
    dim->c = inside;
    inside *= dim->size;
  }
  return dims;
}

template <bool kBroadcasts>
class BatchMatMulKernel final : public ProductKernel {
 public:
  BatchMatMulKernel(KernelConstruction& construction, absl::Status* status)
      : ProductKernel(construction, "adj_x", "adj_y",
                      IsComplex(construction.input_type(0)) ? Transposition::kAdjoint
                                                            : Transposition::kTransposed,
                      status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() < 2 || b.rank() < 2) {
      return InvalidArgument("a batch product needs matrices, got shapes ", a.shape().ToString(),
                             " and ", b.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(Product p, FormOf(a, b));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                            PairedShape(a.shape(), b.shape(), kBroadcasts, p.m, p.n));
    TROUPE_ASSIGN_OR_RETURN(Tensor * c, ctx.AllocateOutput(0, a.type(), shape));
    TROUPE_ASSIGN_OR_RETURN(const bool trivial, IsTrivial(ctx, p, c));
    if (trivial) return absl::OkStatus();
    std::vector<ProductDim> dims = BatchDims(a.shape(), b.shape(), shape);
    const auto longest =
        std::max_element(dims.begin(), dims.end(),
                         [](const ProductDim& x, const ProductDim& y) { return x.size < y.size; });
    if (longest->b == 0 && p.a.transposition == Transposition::kNone && longest->a == p.m * p.k &&
        longest->c == p.m * p.n) {
      p.m *= longest->size;  // All rows have the same right factor: one product.
      longest->size = 1;
    }
    p.a.data = a.raw_data();
    p.b.data = b.raw_data();
    p.c = c->mutable_raw_data();
    return MultiplyAll(ctx, p, dims);
  }
};

}  // namespace

void RegisterMatMul(Extension& extension) {
  const auto add = [&extension](const char* op, KernelFactory factory) {
    extension.Kernel(KernelSpec(op)
                         .Device("GPU")
                         .Types("T", FloatAndComplexTypes())
                         .Cost(KernelCost::kExpensive),
                     factory);
  };
  add("MatMul", MakeKernel<MatMulKernel>);
  add("BatchMatMul", MakeKernel<BatchMatMulKernel<false>>);
  add("BatchMatMulV2", MakeKernel<BatchMatMulKernel<true>>);
  for (const ElementType type : FloatAndComplexTypes()) {
    extension.Kernel(KernelSpec("BatchMatMulV3")
                         .Device("GPU")
                         .Types("Ta", {type})
                         .Types("Tb", {type})
                         .Types("Tout", {type})
                         .Cost(KernelCost::kExpensive),
                     MakeKernel<BatchMatMulKernel<true>>);
  }
}

}  // namespace troupe::cuda
