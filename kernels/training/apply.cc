// ApplyAdam and its kin: updates of a variable and its slots by a gradient, or of those of their
// rows that have one. The formulas are in kernels/simd/update_rules.h.
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/op_registry.h"
#include "graph/ops/update_forms.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel_registry.h"
#include "kernels/simd/updates.h"
#include "kernels/state/variable_kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

using namespace update_forms;  // NOLINT: the table's words

using TypeList = std::vector<ElementType> (*)();

std::vector<ElementType> DoublesAndHalf() {
  return {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble};
}
std::vector<ElementType> Doubles() { return {ElementType::kFloat, ElementType::kDouble}; }
std::vector<ElementType> AllButBfloat16() {
  return {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble, ElementType::kComplex64,
          ElementType::kComplex128};
}

struct Entry {
  std::string_view name;
  const char* slots;
  UpdateRule rule;
  int forms;
  TypeList types;
  TypeList sparse_types = nullptr;
  const char* flag = nullptr;
  bool empty_rows = false;  ///< Sparse updates accept rows of no elements.
};

constexpr Entry kEntries[] = {
    {"AdaMax", " m v", kAdaMax, kBothDense, DoublesAndHalf},
    {"Adadelta", " accum accum_update", kAdadelta, kAll, FloatAndComplexTypes, FloatAndComplexTypes,
     nullptr, true},
    {"Adagrad", " accum", kAdagrad, kAll, FloatAndComplexTypes, FloatAndComplexTypes,
     "update_slots"},
    {"AdagradDA", " gradient_accumulator gradient_squared_accumulator", kAdagradDA, kAll, Doubles,
     Doubles},
    {"AdagradV2", " accum", kAdagradV2, kAll, FloatAndComplexTypes, FloatAndComplexTypes,
     "update_slots"},
    {"Adam", " m v", kAdam, kBothDense, FloatAndComplexTypes, nullptr, "use_nesterov"},
    {"AdamWithAmsgrad", " m v vhat", kAdamWithAmsgrad, kResource, FloatTypes},
    {"AddSign", " m", kAddSign, kBothDense, FloatTypes},
    {"CenteredRMSProp", " mg ms mom", kCenteredRMSProp, kAll, FloatAndComplexTypes, AllButBfloat16,
     nullptr, true},
    {"Ftrl", " accum linear", kFtrl, kAll, FloatTypes, FloatTypes, "multiply_linear_by_lr"},
    {"FtrlV2", " accum linear", kFtrlV2, kAll, FloatTypes, FloatTypes, "multiply_linear_by_lr"},
    {"GradientDescent", "", kGradientDescent, kBothDense, FloatAndComplexTypes},
    {"KerasMomentum", " accum", kKerasMomentum, kResource | kResourceSparse, FloatAndComplexTypes,
     FloatAndComplexTypes, "use_nesterov", true},
    {"Momentum", " accum", kMomentum, kAll, FloatAndComplexTypes, FloatAndComplexTypes,
     "use_nesterov", true},
    {"PowerSign", " m", kPowerSign, kBothDense, FloatTypes},
    {"ProximalAdagrad", " accum", kProximalAdagrad, kAll, Doubles, Doubles},
    {"ProximalGradientDescent", "", kProximalGradientDescent, kAll, Doubles, Doubles},
    {"RMSProp", " ms mom", kRMSProp, kAll, FloatAndComplexTypes, AllButBfloat16, nullptr, true},
};

const Entry& EntryOf(std::string_view op) {
  const std::string_view name = op.substr(op.find("Apply") + 5);
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry;
  }
  return kEntries[0];  // Never: the kernel is registered for these names.
}

// The variable and its slots come first.
int CountVariables(const KernelConstruction& construction) {
  int count = 0;
  while (count < construction.num_inputs() &&
         (IsRefType(construction.input_type(count)) ||
          construction.input_type(count) == ElementType::kResource)) {
    ++count;
  }
  return count;
}

template <typename T>
inline constexpr bool kVectorized = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <typename T>
const UpdateTable<T>& Table() {
  if constexpr (kVectorized<T>) {
    return Updates<T>();
  } else {
    return PlainUpdates<T>();
  }
}

class ApplyKernel : public VariableKernel {
 public:
  ApplyKernel(KernelConstruction& construction, absl::Status* status)
      : VariableKernel(construction, CountVariables(construction)),
        entry_(EntryOf(construction.op())),
        num_variables_(CountVariables(construction)),
        flag_(entry_.flag != nullptr && construction.Attr<bool>(entry_.flag)) {
    absl::StatusOr<const OpRegistration*> op = OpRegistry::Global()->LookUp(construction.op());
    if (!op.ok()) {
      *status = op.status();
      return;
    }
    for (int i = 0; i < (*op)->def->input_arg_size(); ++i) {
      const std::string& name = (*op)->def->input_arg(i).name();
      names_.push_back(name);
      if (name == "grad" || name == "delta") {
        grad_ = i;
      } else if (name == "indices") {
        indices_ = i;
      } else if (i >= num_variables_) {
        scalars_.push_back(i);
      }
    }
    type_ = construction.input_type(grad_);
  }

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    TROUPE_RETURN_IF_ERROR(CheckVariables(leases));
    TROUPE_RETURN_IF_ERROR(indices_ < 0 ? CheckDense(ctx, leases) : CheckSparse(ctx, leases));
    for (const int i : scalars_) {
      if (ctx.input(i).rank() != 0) {
        return InvalidArgument(names_[i], " must be a scalar, got shape ",
                               ctx.input(i).shape().ToString());
      }
    }
    return SwitchType<float, double, half, bfloat16, complex64, complex128>(
        type_, [&]<typename T>() { return Update<T>(ctx, leases); });
  }

 private:
  absl::Status CheckVariables(Leases& leases) const {
    for (int i = 0; i < num_variables_; ++i) {
      const Tensor& value = leases[i].value();
      if (!value.valid()) {
        return absl::FailedPreconditionError(
            absl::StrCat("the variable '", leases[i].variable()->name(), "' (", names_[i],
                         ") is updated before it has a value: run its initializer first"));
      }
      if (value.type() != type_) {
        return InvalidArgument("the variable '", leases[i].variable()->name(), "' is of type ",
                               ElementTypeName(value.type()), ", the gradient of type ",
                               ElementTypeName(type_));
      }
      if (!(value.shape() == leases[0].value().shape())) {
        return InvalidArgument(names_[0], " and ", names_[i], " (the variable '",
                               leases[i].variable()->name(), "') must have the same shape, got ",
                               leases[0].value().shape().ToString(), " and ",
                               value.shape().ToString());
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckDense(KernelContext& ctx, Leases& leases) const {
    const Shape& var = leases[0].value().shape();
    const Shape& grad = ctx.input(grad_).shape();
    if (var == grad) return absl::OkStatus();
    return InvalidArgument(names_[0], " (the variable '", leases[0].variable()->name(), "') and ",
                           names_[grad_], " must have the same shape, got ", var.ToString(),
                           " and ", grad.ToString());
  }

  absl::Status CheckSparse(KernelContext& ctx, Leases& leases) const {
    const Shape& var = leases[0].value().shape();
    const Shape& grad = ctx.input(grad_).shape();
    const Shape& indices = ctx.input(indices_).shape();
    if (indices.rank() != 1) {
      return InvalidArgument("indices must be a vector, got shape ", indices.ToString());
    }
    bool fits = var.rank() >= 1 && grad.rank() == var.rank() && grad.dim(0) == indices.dim(0);
    for (int i = 1; fits && i < var.rank(); ++i) {
      fits = grad.dim(i) == var.dim(i) && (entry_.empty_rows || var.dim(i) > 0);
    }
    if (fits) return absl::OkStatus();
    return InvalidArgument("grad must have a row of ", names_[0], " (the variable '",
                           leases[0].variable()->name(), "')",
                           entry_.empty_rows ? "" : ", not an empty one,", " for each index, got ",
                           names_[0], " of shape ", var.ToString(), ", grad of shape ",
                           grad.ToString(), ", indices of shape ", indices.ToString());
  }

  /// What the rule demands of its scalars.
  absl::Status CheckScalars(absl::Span<const double> scalars) const {
    const bool ftrl = entry_.rule == kFtrl || entry_.rule == kFtrlV2;
    if (!(ftrl && indices_ >= 0) && entry_.rule != kProximalAdagrad) return absl::OkStatus();
    for (size_t i = 0; i < scalars.size(); ++i) {
      const std::string& name = names_[scalars_[i]];
      const bool zero_too = name != "lr" || (ftrl && flag_);
      const bool negative = name == "lr_power";
      const double value = negative ? -scalars[i] : scalars[i];
      if (value > 0 || (zero_too && value == 0)) continue;
      return InvalidArgument(name, " must be ",
                             negative   ? "zero or negative"
                             : zero_too ? "zero or positive"
                                        : "positive",
                             ", got ", scalars[i]);
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Update(KernelContext& ctx, Leases& leases) {
    T scalars[kMaxUpdateScalars] = {};
    for (size_t i = 0; i < scalars_.size(); ++i) {
      const Tensor& input = ctx.input(scalars_[i]);
      if constexpr (kVectorized<T>) {
        if (input.type() == ElementType::kInt64) {
          scalars[i] = static_cast<T>(input.unchecked_scalar<int64_t>());
          continue;
        }
      }
      scalars[i] = input.unchecked_scalar<T>();
    }
    if constexpr (std::is_convertible_v<T, double>) {
      double values[kMaxUpdateScalars];
      for (size_t i = 0; i < scalars_.size(); ++i) values[i] = scalars[i];
      TROUPE_RETURN_IF_ERROR(CheckScalars(absl::MakeConstSpan(values, scalars_.size())));
    }
    const UpdateFn<T> update = Table<T>().rules[entry_.rule][ByRow(ctx)][flag_];
    if (update == nullptr) {
      return absl::UnimplementedError(absl::StrCat(
          std::string(entry_.name), " is not implemented for ", ElementTypeName(type_)));
    }
    if (indices_ >= 0) {
      return SwitchType<int32_t, int64_t>(ctx.input(indices_).type(), [&]<typename I>() {
        return UpdateRows<T, I>(ctx, leases, update, scalars);
      });
    }
    TROUPE_ASSIGN_OR_RETURN(const Arrays<T> variables, Borrow<T>(leases));
    const T* grad = ctx.input(grad_).template unchecked_data<T>();
    ctx.ParallelFor(ctx.input(grad_).num_elements(), KernelContext::GrainFor(Cost<T>()),
                    [&](int64_t begin, int64_t end) {
                      update(variables.From(begin).data, grad + begin, scalars, end - begin);
                    });
    return absl::OkStatus();
  }

  /// If the rule for sparse updates is to be used. AdagradDA takes the dense one for rows of one
  /// element, as TensorFlow does.
  bool ByRow(KernelContext& ctx) const {
    return indices_ >= 0 && (entry_.rule != kAdagradDA ||
                             ctx.input(grad_).num_elements() != ctx.input(indices_).num_elements());
  }

  /// The elements of the variables.
  template <typename T>
  struct Arrays {
    T* data[4] = {};
    Arrays From(int64_t i) const {
      Arrays result;
      for (int k = 0; k < 4 && data[k] != nullptr; ++k) result.data[k] = data[k] + i;
      return result;
    }
  };

  template <typename T>
  absl::StatusOr<Arrays<T>> Borrow(Leases& leases) const {
    Arrays<T> arrays;
    for (int i = 0; i < num_variables_; ++i) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * value, leases[i].mutable_value());
      arrays.data[i] = value->mutable_data<T>();
    }
    return arrays;
  }

  /// Rows are updated in the order of the indices. Each of the shards, which may run at the same
  /// time, has rows of its own and skips the others.
  template <typename T, typename I>
  absl::Status UpdateRows(KernelContext& ctx, Leases& leases, UpdateFn<T> update,
                          const T* scalars) {
    const Tensor &grad = ctx.input(grad_), &indices = ctx.input(indices_);
    const int64_t rows = leases[0].value().shape().dim(0), count = indices.num_elements();
    const I* index = indices.unchecked_data<I>();
    for (int64_t i = 0; i < count; ++i) {
      if (index[i] < 0 || index[i] >= rows) {
        return InvalidArgument("indices[", i, "] is ", index[i], ", but ", names_[0],
                               " (the variable '", leases[0].variable()->name(), "') has ", rows,
                               " rows");
      }
    }
    if (grad.num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const Arrays<T> variables, Borrow<T>(leases));
    const T* gradient = grad.unchecked_data<T>();
    const int64_t size = grad.num_elements() / count;
    const double row_cost = 2 + Cost<T>() * static_cast<double>(size);
    // Finding its rows should be little of a shard's work.
    const int64_t shards = row_cost > 8 && row_cost * static_cast<double>(count) > 50000 ? 8 : 1;
    ctx.ParallelFor(shards, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t shard = index[i] & (shards - 1);
        if (shard < begin || shard >= end) continue;
        update(variables.From(index[i] * size).data, gradient + i * size, scalars, size);
      }
    });
    return absl::OkStatus();
  }

  /// Nanoseconds that an element takes.
  template <typename T>
  double Cost() const {
    return num_variables_ * (kVectorized<T> ? 0.1 * sizeof(T) : 15);
  }

  const Entry& entry_;
  int num_variables_;
  bool flag_;
  int grad_ = 0, indices_ = -1;
  ElementType type_;
  absl::InlinedVector<int, kMaxUpdateScalars> scalars_;
  std::vector<std::string> names_;
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const Entry& entry : kEntries) {
    for (const Form form : kForms) {
      if ((entry.forms & form) == 0) continue;
      const bool sparse = IsSparse(form);
      KernelSpec spec(OpName(form, entry.name));
      spec.Types("T", sparse ? entry.sparse_types() : entry.types());
      if (sparse) spec.Types("Tindices", IndexTypes());
      KernelRegistry::Global()->Register(std::move(spec), MakeKernel<ApplyKernel>);
    }
  }
  return true;
}();

}  // namespace
}  // namespace troupe
