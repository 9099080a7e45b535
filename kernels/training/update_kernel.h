/// Base of ApplyAdam and its kin for every type of device: updates of a variable and its slots by a
/// gradient, or of those of their rows that have one.
#ifndef TROUPE_KERNELS_TRAINING_UPDATE_KERNEL_H_
#define TROUPE_KERNELS_TRAINING_UPDATE_KERNEL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/kernel_registry.h"
#include "kernels/simd/update_rule.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {

/// What ops of one update rule have in common.
struct UpdateOp {
  using TypeList = std::vector<ElementType> (*)();

  std::string_view name;  ///< The ops' without what is before it.
  UpdateRule rule;
  const char* ops[4];  ///< Dense and sparse ones; nullptr behind the last one.
  TypeList types;
  TypeList sparse_types = nullptr;
  const char* flag = nullptr;  ///< The attribute that the rule depends on.
  bool empty_rows = false;     ///< Sparse updates accept rows of no elements.
};

/// Calls `use` with a specification of each op, for the CPU, with the types that it has there.
void ForEachUpdateOp(const std::function<void(KernelSpec spec)>& use);

/// Checks what does not depend on values in the device's memory, and leaves the rest to `Update`.
class UpdateKernel : public VariableKernel {
 protected:
  /// What a rule demands of a scalar.
  enum class Need : uint8_t { kNothing, kPositive, kNotNegative, kNotPositive };

  UpdateKernel(KernelConstruction& construction, absl::Status* status);

  /// Updates the first `num_variables()` inputs, whose values are there and have the gradient's
  /// type and one shape, which is the gradient's, or that of its rows.
  virtual absl::Status Update(KernelContext& ctx, Leases& leases) = 0;

  UpdateRule rule() const { return op_.rule; }
  std::string_view name() const { return op_.name; }
  ElementType type() const { return type_; }
  bool flag() const { return flag_; }
  int num_variables() const { return num_variables_; }
  int grad() const { return grad_; }
  /// -1: the update is dense.
  int indices() const { return indices_; }
  /// The scalars' inputs.
  const absl::InlinedVector<int, kMaxUpdateScalars>& scalars() const { return scalars_; }
  Need need(size_t scalar) const;
  static bool IsMet(Need need, double value);
  absl::Status BadScalar(size_t scalar, double value) const;
  /// The name of an input.
  const std::string& input_name(int i) const { return names_[i]; }
  /// If the rule for sparse updates is to be used. AdagradDA takes the dense one for rows of one
  /// element, as TensorFlow does.
  bool ByRow(const KernelContext& ctx) const;

 private:
  absl::Status Apply(KernelContext& ctx, Leases& leases) final;
  absl::Status CheckVariables(Leases& leases) const;
  absl::Status CheckDense(KernelContext& ctx, Leases& leases) const;
  absl::Status CheckSparse(KernelContext& ctx, Leases& leases) const;

  const UpdateOp& op_;
  int num_variables_;
  bool flag_;
  int grad_ = 0, indices_ = -1;
  ElementType type_;
  absl::InlinedVector<int, kMaxUpdateScalars> scalars_;
  std::vector<std::string> names_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_TRAINING_UPDATE_KERNEL_H_
