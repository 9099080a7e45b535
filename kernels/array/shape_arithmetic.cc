// Ops that compute with shapes held in small integer vectors.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

std::string Show(const DimVector& dims) { return absl::StrCat("[", absl::StrJoin(dims, ","), "]"); }

/// Both shapes with ones put in front of the shorter one.
absl::Status Align(DimVector* a, DimVector* b) {
  const DimVector a0 = *a, b0 = *b;
  const size_t rank = std::max(a->size(), b->size());
  a->insert(a->begin(), rank - a->size(), 1);
  b->insert(b->begin(), rank - b->size(), 1);
  for (size_t i = 0; i < rank; ++i) {
    if ((*a)[i] != (*b)[i] && (*a)[i] != 1 && (*b)[i] != 1) {
      return InvalidArgument("incompatible shapes for broadcasting: ", Show(a0), " and ", Show(b0));
    }
  }
  return absl::OkStatus();
}

absl::Status BroadcastArgs(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(DimVector a, ReadIntegerVector(ctx.input(0), "s0"));
  TROUPE_ASSIGN_OR_RETURN(DimVector b, ReadIntegerVector(ctx.input(1), "s1"));
  TROUPE_RETURN_IF_ERROR(Align(&a, &b));
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 1) a[i] = b[i];
  }
  return PutIntegers(ctx, 0, ctx.input(0).type(), a);
}

absl::Status BroadcastGradientArgs(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(DimVector a, ReadIntegerVector(ctx.input(0), "s0"));
  TROUPE_ASSIGN_OR_RETURN(DimVector b, ReadIntegerVector(ctx.input(1), "s1"));
  DimVector a_axes, b_axes;
  if (a != b) {
    TROUPE_RETURN_IF_ERROR(Align(&a, &b));
    for (size_t i = 0; i < a.size(); ++i) {
      // A size of one on both sides is reduced on both sides.
      if (a[i] == 1) a_axes.push_back(static_cast<int64_t>(i));
      if (b[i] == 1) b_axes.push_back(static_cast<int64_t>(i));
    }
  }
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 0, ctx.input(0).type(), a_axes));
  return PutIntegers(ctx, 1, ctx.input(0).type(), b_axes);
}

absl::Status ConcatOffset(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(ctx.input(0), "concat_dim"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector first, ReadIntegerVector(ctx.input(1), "shape 0"));
  const int rank = static_cast<int>(first.size());
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, rank, "concat_dim"));
  int64_t offset = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const DimVector shape,
                            ReadIntegerVector(ctx.input(i + 1), absl::StrCat("shape ", i)));
    if (static_cast<int>(shape.size()) != rank) {
      return InvalidArgument("shape ", i, " has ", shape.size(), " sizes, shape 0 has ", rank);
    }
    for (int d = 0; d < rank; ++d) {
      if (d != axis && shape[d] != first[d]) {
        return InvalidArgument("all sizes but that of dimension ", axis, " must agree: shape 0 is ",
                               Show(first), ", shape ", i, " is ", Show(shape));
      }
    }
    DimVector offsets(rank, 0);
    offsets[axis] = offset;
    TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, i, ctx.input(1).type(), offsets));
    offset += shape[axis];
  }
  return absl::OkStatus();
}

absl::Status InvertPermutation(KernelContext& ctx) {
  const Tensor& permutation = ctx.input(0);
  if (permutation.rank() != 1) {
    return InvalidArgument("x must be a vector, got shape ", permutation.shape().ToString());
  }
  return SwitchType<int32_t, int64_t>(permutation.type(), [&]<typename T>() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, permutation.type(), permutation.shape()));
    const absl::Span<const T> x = permutation.unchecked_values<T>();
    T* y = output->mutable_data<T>();
    const auto n = static_cast<T>(x.size());
    std::fill(y, y + n, T(-1));
    for (T i = 0; i < n; ++i) {
      if (x[i] < 0 || x[i] >= n) {
        return InvalidArgument("x[", i, "] = ", x[i], " is not in [0, ", n, ")");
      }
      if (y[x[i]] != -1) return InvalidArgument(x[i], " is duplicated in the input");
      y[x[i]] = i;
    }
    return absl::OkStatus();
  });
}

KernelSpec Spec(const char* op, const char* attr) {
  return KernelSpec(op)
      .Device("DEFAULT")
      .HostMemory("*")
      .Cost(KernelCost::kCheap)
      .Types(attr, IndexTypes());
}

REGISTER_KERNEL(Spec("BroadcastArgs", "T"), MakeKernel<BroadcastArgs>);
REGISTER_KERNEL(Spec("BroadcastGradientArgs", "T"), MakeKernel<BroadcastGradientArgs>);
REGISTER_KERNEL(Spec("ConcatOffset", "shape_type"), MakeKernel<ConcatOffset>);
REGISTER_KERNEL(Spec("InvertPermutation", "T"), MakeKernel<InvertPermutation>);

}  // namespace
}  // namespace troupe
