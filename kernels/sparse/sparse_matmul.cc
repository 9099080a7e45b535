// SparseTensorDenseMatMul.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/common/registration.h"
#include "kernels/simd/add_scaled.h"
#include "kernels/simd/dispatch.h"
#include "kernels/sparse/sparse_shapes.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// A matrix that is read transposed and conjugated, or as it is.
template <typename T>
struct DenseView {
  const T* data;
  int64_t row_stride, column_stride;
  bool conjugate;
  AddScaledFn add_scaled;  ///< of T, where its sums are float

  /// out += factor * row, columns [begin, end).
  template <typename Wide>
  void AddRow(int64_t row, Wide factor, int64_t begin, int64_t end, Wide* out) const {
    const T* in = data + row * row_stride;
    if constexpr (IsComplex(kElementType<T>)) {
      if (conjugate) {
        for (int64_t k = begin; k < end; ++k) out[k] += factor * std::conj(in[k * column_stride]);
        return;
      }
    }
    if constexpr (std::is_same_v<Wide, float>) {
      if (column_stride == 1) {
        return add_scaled(in + begin, factor, end - begin, out + begin);
      }
    }
    if (column_stride == 1) {
      for (int64_t k = begin; k < end; ++k) out[k] += factor * static_cast<Wide>(in[k]);
    } else {
      for (int64_t k = begin; k < end; ++k) {
        out[k] += factor * static_cast<Wide>(in[k * column_stride]);
      }
    }
  }
};

class SparseTensorDenseMatMul final : public Kernel {
 public:
  SparseTensorDenseMatMul(KernelConstruction& c, absl::Status*)
      : adjoint_a_(c.Attr<bool>("adjoint_a")), adjoint_b_(c.Attr<bool>("adjoint_b")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &b = ctx.input(3);
    TROUPE_ASSIGN_OR_RETURN(const SparseProductShape shape,
                            SparseProductShape::Read(ctx, adjoint_a_, adjoint_b_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, b.type(), shape.product));
    return SwitchType<float, double, half, bfloat16, int32_t, complex64, complex128>(
        b.type(), [&]<typename T>() {
          return SwitchType<int32_t, int64_t>(indices.type(), [&]<typename Index>() {
            return Multiply<T, Index>(ctx, shape.a, output);
          });
        });
  }

 private:
  template <typename T, typename Index>
  absl::Status Multiply(KernelContext& ctx, const Shape& shape, Tensor* output) const {
    // Integers wrap around.
    using Wide = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float,
                                    std::conditional_t<std::is_same_v<T, int32_t>, uint32_t, T>>;
    const Tensor& b = ctx.input(3);
    const Index* index = ctx.input(0).unchecked_data<Index>();
    const T* value = ctx.input(1).unchecked_data<T>();
    const int64_t count = ctx.input(1).num_elements(), columns = output->dim(1);
    for (int64_t i = 0; i < 2 * count; ++i) {
      if (index[i] < 0 || index[i] >= shape.dim(static_cast<int>(i % 2))) {
        return InvalidArgument("a_indices[", i / 2, ",", i % 2, "] = ", index[i],
                               " is out of bounds of the shape ", shape.ToString());
      }
    }
    Tensor sums = *output;
    if constexpr (sizeof(Wide) != sizeof(T)) {
      TROUPE_ASSIGN_OR_RETURN(sums, ctx.AllocateTemp(kElementType<Wide>, output->shape()));
    }
    Wide* out = static_cast<Wide*>(sums.mutable_raw_data());
    std::fill_n(out, output->num_elements(), Wide(0));
    const DenseView<T> dense = {b.unchecked_data<T>(), adjoint_b_ ? 1 : b.dim(1),
                                adjoint_b_ ? b.dim(1) : 1, adjoint_b_,
                                AddScaled(simd::TypeOf(b.type()))};
    // Elements may be in any order, so that pieces are made of columns. Each piece reads all
    // elements of the sparse matrix: fewer columns would not pay for that.
    constexpr int64_t kLeastColumns = 64;
    const int64_t grain = KernelContext::GrainFor(0.2 * static_cast<double>(count) + 1);
    ctx.ParallelFor(columns, std::max(grain, kLeastColumns), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = index[2 * i + (adjoint_a_ ? 1 : 0)];
        auto factor = static_cast<Wide>(value[i]);
        if constexpr (IsComplex(kElementType<T>)) {
          if (adjoint_a_) factor = std::conj(factor);
        }
        dense.AddRow(index[2 * i + (adjoint_a_ ? 0 : 1)], factor, begin, end, out + row * columns);
      }
    });
    if constexpr (sizeof(Wide) != sizeof(T)) {
      std::transform(out, out + output->num_elements(), output->mutable_data<T>(),
                     [](Wide sum) { return static_cast<T>(sum); });
    }
    return absl::OkStatus();
  }

  const bool adjoint_a_, adjoint_b_;
};

REGISTER_KERNEL(KernelSpec("SparseTensorDenseMatMul")
                    .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,
                                 ElementType::kBfloat16, ElementType::kInt32,
                                 ElementType::kComplex64, ElementType::kComplex128})
                    .Cost(KernelCost::kExpensive),
                MakeKernel<SparseTensorDenseMatMul>);

}  // namespace
}  // namespace troupe
