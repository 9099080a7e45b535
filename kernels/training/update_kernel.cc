#include "kernels/training/update_kernel.h"

#include "absl/strings/str_cat.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

std::vector<ElementType> DoublesAndHalf() {
  return {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble};
}
std::vector<ElementType> Doubles() { return {ElementType::kFloat, ElementType::kDouble}; }
std::vector<ElementType> AllButBfloat16() {
  return {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble, ElementType::kComplex64,
          ElementType::kComplex128};
}

constexpr UpdateOp kUpdateOps[] = {
    {"AdaMax", kAdaMax, {"ApplyAdaMax", "ResourceApplyAdaMax"}, DoublesAndHalf},
    {"Adadelta",
     kAdadelta,
     {"ApplyAdadelta", "ResourceApplyAdadelta", "SparseApplyAdadelta",
      "ResourceSparseApplyAdadelta"},
     FloatAndComplexTypes,
     FloatAndComplexTypes,
     nullptr,
     true},
    {"Adagrad",
     kAdagrad,
     {"ApplyAdagrad", "ResourceApplyAdagrad", "SparseApplyAdagrad", "ResourceSparseApplyAdagrad"},
     FloatAndComplexTypes,
     FloatAndComplexTypes,
     "update_slots"},
    {"AdagradDA",
     kAdagradDA,
     {"ApplyAdagradDA", "ResourceApplyAdagradDA", "SparseApplyAdagradDA",
      "ResourceSparseApplyAdagradDA"},
     Doubles,
     Doubles},
    {"AdagradV2",
     kAdagradV2,
     {"ApplyAdagradV2", "ResourceApplyAdagradV2", "SparseApplyAdagradV2",
      "ResourceSparseApplyAdagradV2"},
     FloatAndComplexTypes,
     FloatAndComplexTypes,
     "update_slots"},
    {"Adam",
     kAdam,
     {"ApplyAdam", "ResourceApplyAdam"},
     FloatAndComplexTypes,
     nullptr,
     "use_nesterov"},
    {"AdamWithAmsgrad", kAdamWithAmsgrad, {"ResourceApplyAdamWithAmsgrad"}, FloatTypes},
    {"AddSign", kAddSign, {"ApplyAddSign", "ResourceApplyAddSign"}, FloatTypes},
    {"CenteredRMSProp",
     kCenteredRMSProp,
     {"ApplyCenteredRMSProp", "ResourceApplyCenteredRMSProp", "SparseApplyCenteredRMSProp",
      "ResourceSparseApplyCenteredRMSProp"},
     FloatAndComplexTypes,
     AllButBfloat16,
     nullptr,
     true},
    {"Ftrl",
     kFtrl,
     {"ApplyFtrl", "ResourceApplyFtrl", "SparseApplyFtrl", "ResourceSparseApplyFtrl"},
     FloatTypes,
     FloatTypes,
     "multiply_linear_by_lr"},
    {"FtrlV2",
     kFtrlV2,
     {"ApplyFtrlV2", "ResourceApplyFtrlV2", "SparseApplyFtrlV2", "ResourceSparseApplyFtrlV2"},
     FloatTypes,
     FloatTypes,
     "multiply_linear_by_lr"},
    {"GradientDescent",
     kGradientDescent,
     {"ApplyGradientDescent", "ResourceApplyGradientDescent"},
     FloatAndComplexTypes},
    {"KerasMomentum",
     kKerasMomentum,
     {"ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum"},
     FloatAndComplexTypes,
     FloatAndComplexTypes,
     "use_nesterov",
     true},
    {"Momentum",
     kMomentum,
     {"ApplyMomentum", "ResourceApplyMomentum", "SparseApplyMomentum",
      "ResourceSparseApplyMomentum"},
     FloatAndComplexTypes,
     FloatAndComplexTypes,
     "use_nesterov",
     true},
    {"PowerSign", kPowerSign, {"ApplyPowerSign", "ResourceApplyPowerSign"}, FloatTypes},
    {"ProximalAdagrad",
     kProximalAdagrad,
     {"ApplyProximalAdagrad", "ResourceApplyProximalAdagrad", "SparseApplyProximalAdagrad",
      "ResourceSparseApplyProximalAdagrad"},
     Doubles,
     Doubles},
    {"ProximalGradientDescent",
     kProximalGradientDescent,
     {"ApplyProximalGradientDescent", "ResourceApplyProximalGradientDescent",
      "SparseApplyProximalGradientDescent", "ResourceSparseApplyProximalGradientDescent"},
     Doubles,
     Doubles},
    {"RMSProp",
     kRMSProp,
     {"ApplyRMSProp", "ResourceApplyRMSProp", "SparseApplyRMSProp", "ResourceSparseApplyRMSProp"},
     FloatAndComplexTypes,
     AllButBfloat16,
     nullptr,
     true},
};

const UpdateOp& OpOf(std::string_view op) {
  const std::string_view name = op.substr(op.find("Apply") + 5);
  for (const UpdateOp& known : kUpdateOps) {
    if (known.name == name) return known;
  }
  return kUpdateOps[0];  // Never: the kernel is registered for these names.
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

}  // namespace

void ForEachUpdateOp(const std::function<void(KernelSpec spec)>& use) {
  for (const UpdateOp& op : kUpdateOps) {
    for (const char* name : op.ops) {
      if (name == nullptr) continue;
      const bool sparse = std::string_view(name).find("SparseApply") != std::string_view::npos;
      KernelSpec spec(name);
      spec.Types("T", sparse ? op.sparse_types() : op.types());
      if (sparse) spec.Types("Tindices", IndexTypes());
      use(std::move(spec));
    }
  }
}

UpdateKernel::UpdateKernel(KernelConstruction& construction, absl::Status* status)
    : VariableKernel(construction, CountVariables(construction)),
      op_(OpOf(construction.op())),
      num_variables_(CountVariables(construction)),
      flag_(op_.flag != nullptr && construction.Attr<bool>(op_.flag)) {
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

absl::Status UpdateKernel::Apply(KernelContext& ctx, Leases& leases) {
  TROUPE_RETURN_IF_ERROR(CheckVariables(leases));
  TROUPE_RETURN_IF_ERROR(indices_ < 0 ? CheckDense(ctx, leases) : CheckSparse(ctx, leases));
  for (const int i : scalars_) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(names_[i], " must be a scalar, got shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  return Update(ctx, leases);
}

absl::Status UpdateKernel::CheckVariables(Leases& leases) const {
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

absl::Status UpdateKernel::CheckDense(KernelContext& ctx, Leases& leases) const {
  const Shape& var = leases[0].value().shape();
  const Shape& grad = ctx.input(grad_).shape();
  if (var == grad) return absl::OkStatus();
  return InvalidArgument(names_[0], " (the variable '", leases[0].variable()->name(), "') and ",
                         names_[grad_], " must have the same shape, got ", var.ToString(), " and ",
                         grad.ToString());
}

absl::Status UpdateKernel::CheckSparse(KernelContext& ctx, Leases& leases) const {
  const Shape& var = leases[0].value().shape();
  const Shape& grad = ctx.input(grad_).shape();
  const Shape& indices = ctx.input(indices_).shape();
  if (indices.rank() != 1) {
    return InvalidArgument("indices must be a vector, got shape ", indices.ToString());
  }
  bool fits = var.rank() >= 1 && grad.rank() == var.rank() && grad.dim(0) == indices.dim(0);
  for (int i = 1; fits && i < var.rank(); ++i) {
    fits = grad.dim(i) == var.dim(i) && (op_.empty_rows || var.dim(i) > 0);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("grad must have a row of ", names_[0], " (the variable '",
                         leases[0].variable()->name(), "')",
                         op_.empty_rows ? "" : ", not an empty one,", " for each index, got ",
                         names_[0], " of shape ", var.ToString(), ", grad of shape ",
                         grad.ToString(), ", indices of shape ", indices.ToString());
}

UpdateKernel::Need UpdateKernel::need(size_t scalar) const {
  const bool ftrl = op_.rule == kFtrl || op_.rule == kFtrlV2;
  if (!(ftrl && indices_ >= 0) && op_.rule != kProximalAdagrad) return Need::kNothing;
  const std::string& name = names_[scalars_[scalar]];
  if (name == "lr_power") return Need::kNotPositive;
  return name == "lr" && !(ftrl && flag_) ? Need::kPositive : Need::kNotNegative;
}

bool UpdateKernel::IsMet(Need need, double value) {
  switch (need) {
    case Need::kPositive:
      return value > 0;
    case Need::kNotNegative:
      return value >= 0;
    case Need::kNotPositive:
      return value <= 0;
    default:
      return true;
  }
}

absl::Status UpdateKernel::BadScalar(size_t scalar, double value) const {
  const Need what = need(scalar);
  return InvalidArgument(names_[scalars_[scalar]], " must be ",
                         what == Need::kNotPositive   ? "zero or negative"
                         : what == Need::kNotNegative ? "zero or positive"
                                                      : "positive",
                         ", got ", value);
}

bool UpdateKernel::ByRow(const KernelContext& ctx) const {
  return indices_ >= 0 && (op_.rule != kAdagradDA ||
                           ctx.input(grad_).num_elements() != ctx.input(indices_).num_elements());
}

}  // namespace troupe
