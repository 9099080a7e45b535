/// Base of the kernels that need variables for themselves while they compute.
#ifndef TROUPE_KERNELS_STATE_VARIABLE_KERNEL_H_
#define TROUPE_KERNELS_STATE_VARIABLE_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "devices/export.h"
#include "kernels/kernel.h"
#include "kernels/variable.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// `type_name` of the handles of variables.
inline constexpr std::string_view kVariableTypeName = "Variable";

/// The variable that a handle (input `i`) refers to: the one it carries, or, if that has been
/// destroyed or did not exist yet, the one that its container has under its name. NotFound,
/// InvalidArgument if the resource is no variable.
absl::StatusOr<RefPtr<Variable>> FindVariable(KernelContext& ctx, int i);
/// The same, made if there is none.
absl::StatusOr<RefPtr<Variable>> FindOrMakeVariable(KernelContext& ctx, int i, ElementType type);

/// Leases on the variables of a kernel, by input. A variable that is given twice has one lease.
class Leases {
 public:
  Variable::Lease& operator[](int input) { return held_[slots_[input]]; }

 private:
  friend class VariableKernel;
  friend class LeaseWait;
  absl::InlinedVector<Variable::Lease, 4> held_;  ///< In the order of the variables' addresses.
  absl::InlinedVector<uint8_t, 4> slots_;         ///< Input to lease.
};

/// A kernel whose first inputs are variables, as references or resource handles. It borrows them
/// all, in the order of their addresses, so that kernels that share variables cannot wait for one
/// another in a circle; then calls `Apply` and gives them back. While nobody else holds them this
/// is done at once, without allocating; else the call goes on in the thread of whoever gives the
/// last one back, or if its inputs are large in that of the step's player. A cancelled step ends
/// the wait.
class VariableKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone done) final;
  bool WaitsForNodes() const override { return false; }

 protected:
  VariableKernel(KernelConstruction& construction, int num_variables);

  /// Computes, with the variables to itself.
  virtual absl::Status Apply(KernelContext& ctx, Leases& leases) = 0;
  /// The variable of input `i`. By default the one that must exist.
  virtual absl::StatusOr<RefPtr<Variable>> Resolve(KernelContext& ctx, int i);
  /// Says what is to become of a node whose variable does not exist: by default it fails with
  /// NotFound.
  virtual absl::Status OnMissing(KernelContext& ctx, const absl::Status& not_found);

  /// True if the variables are references, which output 0, if there is one, passes on.
  bool by_reference() const { return by_reference_; }

 private:
  friend class LeaseWait;
  using Variables = absl::InlinedVector<RefPtr<Variable>, 4>;

  absl::Status Collect(KernelContext& ctx, Variables* variables, Leases* leases);
  absl::Status Finish(KernelContext& ctx, Leases& leases);

  int num_variables_;
  bool by_reference_;
  bool reference_output_;
};

/// InvalidArgument unless the attribute `container` of an op that makes a resource may be `name`.
absl::Status CheckContainer(const std::string& name);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_STATE_VARIABLE_KERNEL_H_
