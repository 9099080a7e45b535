/// Bases of the ops whose position in a stream of random numbers is in a variable, so that it is
/// saved and restored with the others. For all types of devices.
#ifndef TROUPE_KERNELS_RANDOM_STATEFUL_H_
#define TROUPE_KERNELS_RANDOM_STATEFUL_H_

#include <cstdint>

#include "kernels/common/integer_input.h"
#include "kernels/random/stateless.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {

/// The variable holds int64s: the counter's two halves and the key, after the algorithm's number in
/// the first version of the ops.
class StatefulRandomKernel : public VariableKernel {
 protected:
  explicit StatefulRandomKernel(KernelConstruction& construction, bool algorithm_in_state = false)
      : VariableKernel(construction, 1),
        type_(construction.output_type(0)),
        algorithm_in_state_(algorithm_in_state) {}

  absl::StatusOr<Shape> ReadOutputShape(KernelContext& ctx) const {
    const Tensor& shape = ctx.input(algorithm_in_state_ ? 1 : 2);
    if (shape.type() != ElementType::kInt32 && shape.type() != ElementType::kInt64) {
      return InvalidArgument("the shape must be of type int32 or int64, got ",
                             ElementTypeName(shape.type()));
    }
    return ReadShapeVector(shape, "the shape");
  }

  /// Where the counter is in the state.
  int64_t counter_at() const { return algorithm_in_state_ ? 1 : 0; }

  /// The state must be one of Philox. If it has the algorithm's number it must be on the host.
  absl::Status CheckState(KernelContext& ctx, const Variable::Lease& lease) const {
    if (!lease.value().valid()) {
      return absl::NotFoundError(StrCat("the state '", lease.variable()->name(),
                                        "' of a random generator is not initialized"));
    }
    const Tensor& state = lease.value();
    if (state.type() != ElementType::kInt64 || state.rank() != 1 || state.dim(0) < counter_at()) {
      return InvalidArgument("the state of a random generator must be a vector of int64, got ",
                             ElementTypeName(state.type()), state.shape().ToString());
    }
    int64_t algorithm;
    if (algorithm_in_state_) {
      algorithm = state.unchecked_data<int64_t>()[0];
    } else {
      TROUPE_ASSIGN_OR_RETURN(algorithm, ReadIntegerScalar(ctx.input(1), "algorithm"));
    }
    TROUPE_RETURN_IF_ERROR(CheckAlgorithm(algorithm));
    if (state.dim(0) >= counter_at() + 3) return absl::OkStatus();
    return InvalidArgument("the state of Philox must have at least ", counter_at() + 3,
                           " elements, got shape ", state.shape().ToString());
  }

  const ElementType type_;

 private:
  static absl::Status CheckAlgorithm(int64_t number) {
    switch (number) {  // Not as an algorithm, which has 32 bits.
      case static_cast<int64_t>(RandomAlgorithm::kPhilox):
      case static_cast<int64_t>(RandomAlgorithm::kAuto):
        return absl::OkStatus();
      case static_cast<int64_t>(RandomAlgorithm::kThreeFry):
        return absl::UnimplementedError("ThreeFry is not implemented: ask for Philox, 1");
    }
    return InvalidArgument("algorithm must be 1 (Philox) or 3 (chosen for the device: Philox), ",
                           "got ", number);
  }

  const bool algorithm_in_state_;
};

/// Fills a tensor of the shape that an input is.
class StatefulFillKernel : public StatefulRandomKernel {
 protected:
  using StatefulRandomKernel::StatefulRandomKernel;

  absl::Status Apply(KernelContext& ctx, Leases& leases) final {
    TROUPE_RETURN_IF_ERROR(CheckInputs(ctx));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadOutputShape(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    TROUPE_RETURN_IF_ERROR(CheckState(ctx, leases[0]));
    return AdvanceAndFill(ctx, leases, out);
  }
  virtual absl::Status CheckInputs(KernelContext&) const { return absl::OkStatus(); }
  /// Moves the state, which has been checked, on by 256 blocks for each element of `out`.
  virtual absl::Status AdvanceAndFill(KernelContext& ctx, Leases& leases, Tensor* out) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_STATEFUL_H_
