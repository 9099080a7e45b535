// Ops that make tensors of equal elements: Fill, ZerosLike, OnesLike, OneHot.
#include <complex>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

absl::Status Fill(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  if (value.rank() > 1 || value.num_elements() != 1) {
    return InvalidArgument("value must be a scalar, got shape ", value.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "dims"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, value.type(), shape));
  FillElements(ctx, value.type(), out->mutable_raw_data(), out->num_elements(), value.raw_data());
  return absl::OkStatus();
}

absl::Status ZerosLike(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  return absl::OkStatus();
}

class OnesLike : public Kernel {
 public:
  OnesLike(KernelConstruction& construction, absl::Status* status) {
    const ElementType type = construction.input_type(0);
    one_ = Tensor::Uninitialized(type, Shape());
    *status = SwitchNumber<bool>(type, [&]<typename T>() {
      *one_.mutable_data<T>() = T(1.0f);
      return absl::OkStatus();
    });
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
    FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(), one_.raw_data());
    return absl::OkStatus();
  }

 private:
  Tensor one_;
};

absl::Status OneHot(KernelContext& ctx, int64_t dim) {
  const Tensor &indices = ctx.input(0), &on = ctx.input(2), &off = ctx.input(3);
  if (on.rank() != 0 || off.rank() != 0 || ctx.input(1).rank() != 0) {
    return InvalidArgument("depth, on_value and off_value must be scalars, got shapes ",
                           ctx.input(1).shape().ToString(), ", ", on.shape().ToString(), " and ",
                           off.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t depth, ReadIntegerScalar(ctx.input(1), "depth"));
  if (depth < 0) return InvalidArgument("depth must be at least 0, got ", depth);
  const int rank = indices.rank();
  if (dim < -1 || dim > rank) {
    return InvalidArgument("axis must be -1 or in [0, ", rank, "], got ", dim);
  }
  const int axis = dim == -1 ? rank : static_cast<int>(dim);
  DimVector dims(indices.shape().dims().begin(), indices.shape().dims().end());
  dims.insert(dims.begin() + axis, depth);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, on.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  FillElements(ctx, on.type(), out->mutable_raw_data(), out->num_elements(), off.raw_data());

  int64_t inner = 1;
  for (int d = axis; d < rank; ++d) inner *= indices.dim(d);
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

REGISTER_KERNEL(KernelSpec("Fill").Types("T", AllTypes()).Types("index_type", IndexTypes()),
                MakeKernel<Fill>);
REGISTER_KERNEL(KernelSpec("ZerosLike").Types("T", WithString(PlainTypes())),
                MakeKernel<ZerosLike>);
REGISTER_KERNEL(KernelSpec("OnesLike").Types("T", PlainTypes()), MakeKernel<OnesLike>);
REGISTER_KERNEL(KernelSpec("OneHot")
                    .Types("T", AllTypes())
                    .Types("TI", {ElementType::kInt8, ElementType::kUint8, ElementType::kInt32,
                                  ElementType::kInt64}),
                (MakeAttrKernel<OneHot, "axis">));

}  // namespace
}  // namespace troupe
