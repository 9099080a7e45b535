// Scattered updates of variables, by reference and by handle: ScatterAdd, ScatterNdAdd,
// ResourceScatterAdd, ResourceScatterNdAdd and the like.
#include "absl/strings/str_cat.h"
#include "kernels/array/scatter.h"
#include "kernels/kernel_registry.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

class ScatterVariable : public VariableKernel {
 protected:
  ScatterVariable(KernelConstruction& construction, ScatterOp op)
      : VariableKernel(construction, 1), op_(op), type_(construction.input_type(2)) {}

  /// Checks what does not depend on the indices.
  absl::Status CheckVariable(const Variable::Lease& lease) const {
    const Tensor& value = lease.value();
    if (!value.valid()) {
      // As TensorFlow has it: what a handle stands for comes into being by its first assignment.
      const std::string message =
          StrCat("the variable '", lease.variable()->name(),
                 "' is updated before it has a value: run its initializer first");
      return by_reference() ? absl::FailedPreconditionError(message) : absl::NotFoundError(message);
    }
    if (value.type() != type_) {
      return InvalidArgument("the variable '", lease.variable()->name(), "' is of type ",
                             ElementTypeName(value.type()), ", the updates of type ",
                             ElementTypeName(type_));
    }
    if (value.rank() < 1) {
      return InvalidArgument("the variable '", lease.variable()->name(),
                             "' must have at least one dimension for scattered updates, it is a "
                             "scalar");
    }
    return absl::OkStatus();
  }

  ScatterOp op_;
  ElementType type_;
};

/// Rows of the variable: indices of any shape into its first dimension.
template <ScatterOp kOp>
class ScatterRows : public ScatterVariable {
 public:
  ScatterRows(KernelConstruction& construction, absl::Status*)
      : ScatterVariable(construction, kOp) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    TROUPE_RETURN_IF_ERROR(CheckVariable(leases[0]));
    const Tensor &indices = ctx.input(1), &updates = ctx.input(2);
    const Shape shape = leases[0].value().shape();
    // As in TensorFlow, numbers that are not integers, too, must not be divided by zero behind a
    // handle.
    if (kOp == ScatterOp::kDivide && !by_reference()) {
      TROUPE_RETURN_IF_ERROR(CheckDivisors(updates));
    }
    // As in TensorFlow, which updates go with no index does not matter behind a handle.
    if (!by_reference() && indices.num_elements() == 0) return absl::OkStatus();
    // A scalar update is for all.
    bool fits = updates.rank() == 0 || updates.rank() == indices.rank() + shape.rank() - 1;
    for (int d = 0; fits && d < updates.rank(); ++d) {
      fits = updates.dim(d) ==
             (d < indices.rank() ? indices.dim(d) : shape.dim(d - indices.rank() + 1));
    }
    if (!fits) {
      return InvalidArgument("updates must be a scalar or have the shape of indices, ",
                             indices.shape().ToString(), ", then that of a row of the variable '",
                             leases[0].variable()->name(), "' of shape ", shape.ToString(),
                             "; got ", updates.shape().ToString());
    }
    const int64_t inner = SliceElements(shape, 1);
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                            RowOffsets(indices, shape.dim(0), inner));
    if (offsets.empty() || inner == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(Tensor * value, leases[0].mutable_value());
    return ScatterSlices(ctx, op_, updates, offsets, inner, value);
  }
};

/// Slices of the variable: each index has components in the last dimension of indices.
template <ScatterOp kOp>
class ScatterNdSlices : public ScatterVariable {
 public:
  ScatterNdSlices(KernelConstruction& construction, absl::Status* status)
      : ScatterVariable(construction, kOp) {
    *status = ReadBadIndicesPolicy(construction, &ignore_bad_);
  }

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    TROUPE_RETURN_IF_ERROR(CheckVariable(leases[0]));
    const Tensor& updates = ctx.input(2);
    // A vector of indices is one of rows, as in TensorFlow.
    const Tensor indices = ctx.input(1).rank() == 1
                               ? ctx.input(1).Reshaped(Shape({ctx.input(1).dim(0), 1}))
                               : ctx.input(1);
    const Shape shape = leases[0].value().shape();
    TROUPE_RETURN_IF_ERROR(CheckScatterNd(indices, updates, shape));
    if (updates.num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                            NdOffsets(indices, shape, ignore_bad_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * value, leases[0].mutable_value());
    return ScatterSlices(ctx, op_, updates, offsets,
                         SliceElements(shape, indices.dim(indices.rank() - 1)), value);
  }

 private:
  bool ignore_bad_ = false;
};

void Register(const std::string& op, const char* attr, std::vector<ElementType> types,
              KernelFactory factory) {
  KernelSpec spec(op);
  spec.Types(attr, std::move(types)).Types("Tindices", IndexTypes());
  KernelRegistry::Global()->Register(std::move(spec), factory);
}

template <ScatterOp kOp>
void RegisterRows(const std::string& name, const std::vector<ElementType>& references,
                  const std::vector<ElementType>& resources) {
  Register(StrCat("Scatter", name), "T", references, MakeKernel<ScatterRows<kOp>>);
  Register(StrCat("ResourceScatter", name), "dtype", resources, MakeKernel<ScatterRows<kOp>>);
}

template <ScatterOp kOp>
void RegisterNd(const std::string& name, const std::vector<ElementType>& types) {
  Register(StrCat("ScatterNd", name), "T", types, MakeKernel<ScatterNdSlices<kOp>>);
  Register(StrCat("ResourceScatterNd", name), "T", types, MakeKernel<ScatterNdSlices<kOp>>);
}

[[maybe_unused]] const bool registered = [] {
  const std::vector<ElementType> numbers = NumberTypes(), real = RealNumberTypes();
  RegisterRows<ScatterOp::kAdd>("Add", numbers, numbers);
  RegisterRows<ScatterOp::kSubtract>("Sub", numbers, numbers);
  RegisterRows<ScatterOp::kMultiply>("Mul", numbers, numbers);
  RegisterRows<ScatterOp::kDivide>("Div", numbers, numbers);
  RegisterRows<ScatterOp::kMin>("Min", real, real);
  RegisterRows<ScatterOp::kMax>("Max", real, real);
  std::vector<ElementType> movable = WithString(PlainTypes());
  RegisterNd<ScatterOp::kUpdate>("Update", movable);
  movable.push_back(ElementType::kVariant);
  RegisterRows<ScatterOp::kUpdate>("Update", AllTypes(), movable);
  RegisterNd<ScatterOp::kAdd>("Add", PlainTypes());
  RegisterNd<ScatterOp::kSubtract>("Sub", PlainTypes());
  return true;
}();

}  // namespace
}  // namespace troupe
