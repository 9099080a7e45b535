// SparseDenseCwiseAdd, -Mul, -Div, SparseTensorDenseAdd: a sparse operand and a dense one.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/sparse/sparse_tensor.h"

namespace troupe {
namespace {

enum class Operation { kAdd, kMul, kDiv };

/// Integers wrap around.
template <Operation kOperation, typename T>
T Combine(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (kOperation == Operation::kAdd) return static_cast<T>(x + y);
    if (kOperation == Operation::kMul) return static_cast<T>(x * y);
    // The quotient of the lowest number and -1 does not fit.
    if (b == static_cast<T>(-1) && std::is_signed_v<T>) return static_cast<T>(0 - x);
    return static_cast<T>(a / b);
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T(Combine<kOperation>(static_cast<float>(a), static_cast<float>(b)));
  } else {
    if (kOperation == Operation::kAdd) return a + b;
    return kOperation == Operation::kMul ? a * b : a / b;
  }
}

/// What the index of a sparse tensor is multiplied by for its place in a dense one that is
/// broadcast to the shape.
absl::StatusOr<DimVector> BroadcastStrides(const Shape& dense, const Shape& sparse) {
  DimVector strides(sparse.rank());
  bool fits = dense.rank() <= sparse.rank();
  int64_t stride = 1;
  for (int d = 1; fits && d <= dense.rank(); ++d) {
    const int64_t size = dense.dim(dense.rank() - d);
    fits = size == 1 || size == sparse.dim(sparse.rank() - d);
    strides[sparse.rank() - d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (fits) return strides;
  return InvalidArgument("a dense tensor of the shape ", dense.ToString(),
                         " cannot be broadcast to the shape ", sparse.ToString(),
                         " of the sparse one");
}

template <Operation kOperation>
absl::Status SparseDenseCwise(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor sparse, ReadSparse(ctx, 0, "sp"));
  const Tensor& dense = ctx.input(3);
  TROUPE_ASSIGN_OR_RETURN(const DimVector strides, BroadcastStrides(dense.shape(), sparse.shape));
  TROUPE_RETURN_IF_ERROR(sparse.CheckBounds("sp"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, dense.type(), Shape({sparse.size()})));
  return SwitchReal(dense.type(), [&]<typename T>() -> absl::Status {
    const T *a = sparse.values.unchecked_data<T>(), *b = dense.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    for (int64_t i = 0; i < sparse.size(); ++i) {
      int64_t place = 0;
      for (int d = 0; d < sparse.rank(); ++d) place += sparse.indices[i][d] * strides[d];
      if constexpr (kOperation == Operation::kDiv && std::is_integral_v<T>) {
        if (b[place] == 0) {
          return InvalidArgument("element ", i, " of the sparse tensor is divided by 0, element ",
                                 place, " of the dense one");
        }
      }
      out[i] = Combine<kOperation>(a[i], b[place]);
    }
    return absl::OkStatus();
  });
}

absl::Status SparseTensorDenseAdd(KernelContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &dense = ctx.input(3);
  TROUPE_RETURN_IF_ERROR(CheckIndicesAndValues(indices, values, "a"));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(2), "a_shape"));
  if (shape != dense.shape() || indices.dim(1) != shape.rank()) {
    return InvalidArgument("a sparse tensor with indices of shape ", indices.shape().ToString(),
                           " and the shape ", shape.ToString(),
                           " cannot be added to a dense one of the shape ",
                           dense.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, dense.type(), shape));
  return SwitchNumber(dense.type(), [&]<typename T>() {
    return SwitchType<int32_t, int64_t>(indices.type(), [&]<typename Index>() -> absl::Status {
      const Index* index = indices.unchecked_data<Index>();
      const T* in = values.unchecked_data<T>();
      T* out = output->mutable_data<T>();
      std::copy_n(dense.unchecked_data<T>(), dense.num_elements(), out);
      for (int64_t i = 0; i < indices.dim(0); ++i) {
        int64_t place = 0;
        for (int d = 0; d < shape.rank(); ++d, ++index) {
          if (*index < 0 || *index >= shape.dim(d)) {
            return InvalidArgument("a_indices[", i, ",", d, "] = ", *index, " is not in [0, ",
                                   shape.dim(d), ")");
          }
          place = place * shape.dim(d) + *index;
        }
        if constexpr (IsComplex(kElementType<T>)) {
          out[place] += in[i];
        } else {
          out[place] = Combine<Operation::kAdd>(out[place], in[i]);
        }
      }
      return absl::OkStatus();
    });
  });
}

REGISTER_KERNEL(KernelSpec("SparseDenseCwiseAdd").Types("T", RealNumberTypes()),
                MakeKernel<SparseDenseCwise<Operation::kAdd>>);
REGISTER_KERNEL(KernelSpec("SparseDenseCwiseMul").Types("T", RealNumberTypes()),
                MakeKernel<SparseDenseCwise<Operation::kMul>>);
REGISTER_KERNEL(KernelSpec("SparseDenseCwiseDiv").Types("T", RealNumberTypes()),
                MakeKernel<SparseDenseCwise<Operation::kDiv>>);
REGISTER_KERNEL(KernelSpec("SparseTensorDenseAdd").Types("T", NumberTypes()),
                MakeKernel<SparseTensorDenseAdd>);

}  // namespace
}  // namespace troupe
