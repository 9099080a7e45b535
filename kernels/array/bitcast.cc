// Bitcast, Empty: tensors whose elements nobody computes.
#include <cstdint>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

class Bitcast : public Kernel {
 public:
  Bitcast(KernelConstruction& construction, absl::Status*)
      : from_(construction.input_type(0)), to_(construction.output_type(0)) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const int64_t from = static_cast<int64_t>(ElementSize(from_));
    const int64_t to = static_cast<int64_t>(ElementSize(to_));
    Shape shape = input.shape();
    if (from > to) {
      // Elements become rows of smaller ones.
      DimVector dims(shape.dims().begin(), shape.dims().end());
      dims.push_back(from / to);
      TROUPE_ASSIGN_OR_RETURN(shape, Shape::Create(dims));
    } else if (from < to) {
      if (shape.rank() == 0 || shape.dim(shape.rank() - 1) != to / from) {
        return InvalidArgument("to become ", ElementTypeName(to_), ", elements of type ",
                               ElementTypeName(from_), " must come in rows of ", to / from,
                               " (the last dimension), got shape ", shape.ToString());
      }
      shape.RemoveDim(shape.rank() - 1);
    }
    // The bytes are shared, unless they begin where elements of the new type may not.
    if (reinterpret_cast<uintptr_t>(input.raw_data()) % static_cast<uintptr_t>(to) == 0) {
      const Tensor& shared = input;
      ctx.set_output(
          0, Tensor(to_, std::move(shape), shared.buffer(), const_cast<void*>(shared.raw_data())));
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, to_, shape));
    CopyElements(ElementType::kUint8, out->mutable_raw_data(), input.raw_data(),
                 static_cast<int64_t>(input.bytes()));
    return absl::OkStatus();
  }

 private:
  ElementType from_, to_;
};

class Empty : public Kernel {
 public:
  Empty(KernelConstruction& construction, absl::Status* status)
      : type_(construction.output_type(0)) {
    *status = construction.GetAttr("init", &init_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 1) {
      return InvalidArgument("shape must be a vector, got shape ", ctx.input(0).shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    if (init_) ZeroElements(ctx, type_, out->mutable_raw_data(), out->num_elements());
    return absl::OkStatus();
  }

 private:
  ElementType type_;
  bool init_ = false;
};

std::vector<ElementType> EmptyTypes() {
  std::vector<ElementType> types = PlainTypes();
  types.push_back(ElementType::kString);
  return types;
}

REGISTER_KERNEL(KernelSpec("Bitcast")
                    .Types("T", NumberTypes())
                    .Types("type", NumberTypes())
                    .Cost(KernelCost::kCheap),
                MakeKernel<Bitcast>);
REGISTER_KERNEL(KernelSpec("Empty").Types("dtype", EmptyTypes()).HostMemory("shape"),
                MakeKernel<Empty>);

}  // namespace
}  // namespace troupe
