// MatMul, BatchMatMul, BatchMatMulV2 and V3, SparseMatMul.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "devices/half.h"
#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/linalg/batch.h"
#include "kernels/linalg/complex_product.h"
#include "kernels/linalg/narrow_product.h"
#include "kernels/linalg/product.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// The form of one product of row-major matrices: m x k (or its transpose) times k x n (or its
// transpose).
struct ProductForm {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool conjugate_a = false, conjugate_b = false;
};

template <typename T>
GemmProblem<T> ToProblem(const ProductForm& f) {
  GemmProblem<T> p;
  p.m = f.m;
  p.n = f.n;
  p.k = f.k;
  p.a_row = f.transpose_a ? 1 : f.k;
  p.a_col = f.transpose_a ? f.m : 1;
  p.b_row = f.transpose_b ? 1 : f.n;
  p.b_col = f.transpose_b ? f.k : 1;
  p.ldc = f.n;
  return p;
}

using Offsets = decltype(MatrixBatch::pairs);

// c[i] = a[offsets[i].first] * b[offsets[i].second]: which matrices are multiplied for each of the
// results.
template <typename T>
absl::Status Multiply(KernelContext& ctx, const ProductForm& form, const Tensor& a, const Tensor& b,
                      const Offsets& offsets, Tensor* c) {
  const int64_t count = static_cast<int64_t>(offsets.size());
  const int64_t a_size = form.m * form.k, b_size = form.k * form.n, c_size = form.m * form.n;
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return RunNarrowProducts(
        ctx,
        {.m = form.m,
         .n = form.n,
         .k = form.k,
         .transpose_a = form.transpose_a,
         .transpose_b = form.transpose_b,
         .a_step = form.transpose_a ? form.m : form.k,
         .b_step = form.transpose_b ? form.k : form.n,
         .c_step = form.n},
        a, b, count,
        [&](int64_t i) -> NarrowProductPlace {
          return {offsets[i].first * a_size, offsets[i].second * b_size, i * c_size};
        },
        c);
  } else {
    const T* a_data = a.unchecked_data<T>();
    const T* b_data = b.unchecked_data<T>();
    T* c_data = c->mutable_data<T>();
    const auto pointers = [&](int64_t i, GemmProblem<T>* p) {
      p->a = a_data + offsets[i].first * a_size;
      p->b = b_data + offsets[i].second * b_size;
      p->c = c_data + i * c_size;
    };
    if constexpr (std::is_arithmetic_v<T>) {
      return RunProducts<T>(ctx, ToProblem<T>(form), count, pointers);
    } else {
      return RunComplexProducts<typename T::value_type>(ctx, ToProblem<T>(form), form.conjugate_a,
                                                        form.conjugate_b, count, pointers);
    }
  }
}

// Operands that are not of the result's type are converted to it first.
absl::StatusOr<Tensor> ConvertedTo(KernelContext& ctx, ElementType type, const Tensor& operand) {
  if (operand.type() == type) return operand;
  TROUPE_ASSIGN_OR_RETURN(Tensor converted, ctx.AllocateTemp(type, operand.shape()));
  TROUPE_RETURN_IF_ERROR((SwitchType<float, bfloat16, int32_t>(type, [&]<typename To>() {
    return SwitchType<bfloat16, int8_t, uint8_t>(
        operand.type(), [&]<typename From>() -> absl::Status {
          const From* from = operand.unchecked_data<From>();
          To* to = converted.mutable_data<To>();
          for (int64_t i = 0; i < operand.num_elements(); ++i) {
            to[i] = static_cast<To>(static_cast<float>(from[i]));
          }
          return absl::OkStatus();
        });
  })));
  return converted;
}

absl::Status MultiplyAnyType(KernelContext& ctx, const ProductForm& form, const Offsets& offsets,
                             const Shape& shape, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * c, ctx.AllocateOutput(0, type, shape));
  TROUPE_ASSIGN_OR_RETURN(const Tensor a, ConvertedTo(ctx, type, ctx.input(0)));
  TROUPE_ASSIGN_OR_RETURN(const Tensor b, ConvertedTo(ctx, type, ctx.input(1)));
  if (c->num_elements() == 0) return absl::OkStatus();
  if (form.k == 0) {
    std::memset(c->mutable_raw_data(), 0, c->bytes());
    return absl::OkStatus();
  }
  if (a.type() == ElementType::kFloat) return Multiply<float>(ctx, form, a, b, offsets, c);
  return SwitchType<double, half, bfloat16, int16_t, int32_t, int64_t, complex64, complex128>(
      a.type(), [&]<typename T>() { return Multiply<T>(ctx, form, a, b, offsets, c); });
}

absl::Status MatrixProduct(KernelContext& ctx, bool transpose_a, bool transpose_b,
                           ElementType type) {
  const Shape& a = ctx.input(0).shape();
  const Shape& b = ctx.input(1).shape();
  if (a.rank() != 2 || b.rank() != 2) {
    return InvalidArgument("MatMul multiplies matrices, got shapes ", a.ToString(), " and ",
                           b.ToString());
  }
  ProductForm form;
  form.transpose_a = transpose_a;
  form.transpose_b = transpose_b;
  form.m = a.dim(transpose_a ? 1 : 0);
  form.k = a.dim(transpose_a ? 0 : 1);
  form.n = b.dim(transpose_b ? 0 : 1);
  if (b.dim(transpose_b ? 1 : 0) != form.k) {
    return InvalidArgument("MatMul: the matrices' sizes do not fit: ", a.ToString(),
                           transpose_a ? " (transposed)" : "", " times ", b.ToString(),
                           transpose_b ? " (transposed)" : "");
  }
  if (MultiplyWithoutOverflow(form.m, form.n) < 0) {
    return InvalidArgument("MatMul: the result [", form.m, ",", form.n, "] is too large");
  }
  return MultiplyAnyType(ctx, form, Offsets(1), Shape({form.m, form.n}), type);
}

absl::Status MatMul(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  return MatrixProduct(ctx, transpose_a, transpose_b, ctx.input(0).type());
}

// The dense product is fast enough for matrices of mostly zeros, too.
absl::Status SparseMatMul(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  return MatrixProduct(ctx, transpose_a, transpose_b, ElementType::kFloat);
}

absl::Status BatchProduct(KernelContext& ctx, bool broadcasts, bool adj_x, bool adj_y,
                          ElementType type) {
  const Shape& x = ctx.input(0).shape();
  const Shape& y = ctx.input(1).shape();
  if (x.rank() < 2 || y.rank() < 2) {
    return InvalidArgument("a batch product needs matrices, got shapes ", x.ToString(), " and ",
                           y.ToString());
  }
  const bool is_complex = IsComplex(ctx.input(0).type());
  ProductForm form;
  form.transpose_a = adj_x;
  form.transpose_b = adj_y;
  form.conjugate_a = adj_x && is_complex;
  form.conjugate_b = adj_y && is_complex;
  form.m = x.dim(x.rank() - (adj_x ? 1 : 2));
  form.k = x.dim(x.rank() - (adj_x ? 2 : 1));
  form.n = y.dim(y.rank() - (adj_y ? 2 : 1));
  if (y.dim(y.rank() - (adj_y ? 1 : 2)) != form.k) {
    return InvalidArgument("the matrices' sizes do not fit: ", x.ToString(),
                           adj_x ? " (adjoint)" : "", " times ", y.ToString(),
                           adj_y ? " (adjoint)" : "");
  }
  TROUPE_ASSIGN_OR_RETURN(const MatrixBatch batch, PairMatrices(x, y, broadcasts, form.m, form.n));
  return MultiplyAnyType(ctx, form, batch.pairs, batch.shape, type);
}

template <bool kBroadcasts>
absl::Status BatchMatMul(KernelContext& ctx, bool adj_x, bool adj_y) {
  return BatchProduct(ctx, kBroadcasts, adj_x, adj_y, ctx.input(0).type());
}
absl::Status BatchMatMulV3(KernelContext& ctx, bool adj_x, bool adj_y, ElementType type) {
  return BatchProduct(ctx, true, adj_x, adj_y, type);
}

std::vector<ElementType> ProductTypes() {
  return {ElementType::kBfloat16, ElementType::kHalf,      ElementType::kFloat,
          ElementType::kDouble,   ElementType::kInt16,     ElementType::kInt32,
          ElementType::kInt64,    ElementType::kComplex64, ElementType::kComplex128};
}

KernelSpec ProductSpec(const char* op) {
  return KernelSpec(op).Types("T", ProductTypes()).Cost(KernelCost::kExpensive);
}

REGISTER_KERNEL(ProductSpec("MatMul"), (MakeAttrKernel<MatMul, "transpose_a", "transpose_b">));
REGISTER_KERNEL(ProductSpec("BatchMatMul"), (MakeAttrKernel<BatchMatMul<false>, "adj_x", "adj_y">));
REGISTER_KERNEL(ProductSpec("BatchMatMulV2"),
                (MakeAttrKernel<BatchMatMul<true>, "adj_x", "adj_y">));

// The types of x, y and the product.
struct MixedTypes {
  ElementType x, y, product;
};
std::vector<MixedTypes> ProductsOfV3() {
  std::vector<MixedTypes> products;
  for (const ElementType type : ProductTypes()) products.push_back({type, type, type});
  constexpr auto kBfloat16 = ElementType::kBfloat16;
  for (const ElementType x : {ElementType::kInt8, ElementType::kUint8}) {
    for (const ElementType y : {ElementType::kInt8, ElementType::kUint8}) {
      products.push_back({x, y, ElementType::kInt32});
    }
    products.push_back({x, kBfloat16, kBfloat16});
    products.push_back({kBfloat16, x, kBfloat16});
  }
  return products;
}

[[maybe_unused]] const bool kRegisteredV3 = [] {
  for (const MixedTypes& types : ProductsOfV3()) {
    KernelRegistry::Global()->Register(KernelSpec("BatchMatMulV3")
                                           .Types("Ta", {types.x})
                                           .Types("Tb", {types.y})
                                           .Types("Tout", {types.product})
                                           .Cost(KernelCost::kExpensive),
                                       MakeAttrKernel<BatchMatMulV3, "adj_x", "adj_y", "Tout">);
  }
  return true;
}();

REGISTER_KERNEL(KernelSpec("SparseMatMul")
                    .Types("Ta", {ElementType::kFloat, ElementType::kBfloat16})
                    .Types("Tb", {ElementType::kFloat, ElementType::kBfloat16})
                    .Cost(KernelCost::kExpensive),
                (MakeAttrKernel<SparseMatMul, "transpose_a", "transpose_b">));

}  // namespace
}  // namespace troupe
