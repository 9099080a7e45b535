// Scattered updates of variables, by reference and by handle: ScatterAdd, ScatterNdAdd,
// ResourceScatterAdd, ResourceScatterNdAdd and the like.
#include "absl/strings/str_cat.h"
#include "kernels/array/indexing_engine.h"
#include "kernels/array/scatter.h"
#include "kernels/state/element_ops.h"
#include "kernels/state/own_value.h"
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
    // As in TensorFlow, which updates go with no index does not matter behind a handle, but for
    // their rank.
    const bool nothing = !by_reference() && indices.num_elements() == 0;
    // A scalar update is for all.
    bool fits = updates.rank() == 0 || updates.rank() == indices.rank() + shape.rank() - 1;
    for (int d = 0; fits && !nothing && d < updates.rank(); ++d) {
      fits = updates.dim(d) ==
             (d < indices.rank() ? indices.dim(d) : shape.dim(d - indices.rank() + 1));
    }
    if (!fits) {
      return InvalidArgument("updates must be a scalar or have the shape of indices, ",
                             indices.shape().ToString(), ", then that of a row of the variable '",
                             leases[0].variable()->name(), "' of shape ", shape.ToString(),
                             "; got ", updates.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * value, OwnValue(ctx, leases[0]));
    // As in TensorFlow, numbers that are not integers, too, must not be divided by zero behind a
    // handle.
    return ScatterRowsInto(ctx, op_, /*zero_divides=*/by_reference(), indices, updates, value);
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
    TROUPE_ASSIGN_OR_RETURN(Tensor * value, OwnValue(ctx, leases[0]));
    return ScatterNdInto(ctx, op_, indices, updates, ignore_bad_, value);
  }

 private:
  bool ignore_bad_ = false;
};

void ForBoth(const UseKernel& use, const std::string& op, const char* resource_attr,
             std::vector<ElementType> references, std::vector<ElementType> resources,
             KernelFactory factory) {
  use(KernelSpec(op).Types("T", std::move(references)).Types("Tindices", IndexTypes()), factory);
  use(KernelSpec("Resource" + op)
          .Types(resource_attr, std::move(resources))
          .Types("Tindices", IndexTypes()),
      factory);
}

template <ScatterOp kOp>
void ForRows(const UseKernel& use, const char* name, const std::vector<ElementType>& references,
             const std::vector<ElementType>& resources) {
  ForBoth(use, StrCat("Scatter", name), "dtype", references, resources,
          MakeKernel<ScatterRows<kOp>>);
}

template <ScatterOp kOp>
void ForNd(const UseKernel& use, const char* name, const std::vector<ElementType>& types) {
  ForBoth(use, StrCat("ScatterNd", name), "T", types, types, MakeKernel<ScatterNdSlices<kOp>>);
}

}  // namespace

void ForEachScatterOp(const UseKernel& use) {
  const std::vector<ElementType> numbers = NumberTypes(), real = RealNumberTypes();
  ForRows<ScatterOp::kAdd>(use, "Add", numbers, numbers);
  ForRows<ScatterOp::kSubtract>(use, "Sub", numbers, numbers);
  ForRows<ScatterOp::kMultiply>(use, "Mul", numbers, numbers);
  ForRows<ScatterOp::kDivide>(use, "Div", numbers, numbers);
  ForRows<ScatterOp::kMin>(use, "Min", real, real);
  ForRows<ScatterOp::kMax>(use, "Max", real, real);
  std::vector<ElementType> movable = WithString(PlainTypes());
  ForNd<ScatterOp::kUpdate>(use, "Update", movable);
  movable.push_back(ElementType::kVariant);
  ForRows<ScatterOp::kUpdate>(use, "Update", AllTypes(), movable);
  ForNd<ScatterOp::kAdd>(use, "Add", PlainTypes());
  ForNd<ScatterOp::kSubtract>(use, "Sub", PlainTypes());
  ForNd<ScatterOp::kMin>(use, "Min", real);
  ForNd<ScatterOp::kMax>(use, "Max", real);
}

}  // namespace troupe
