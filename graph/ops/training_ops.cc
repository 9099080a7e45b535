// Optimisers: one update of a variable and its slots by a gradient. Slots and gradients have the
// variable's shape, the other inputs are scalars. The sparse forms change rows only.
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::StatusOr<int> InputNamed(InferenceContext* c, std::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const auto range, c->InputRange(name));
  return range.first;
}

/// Merges the shapes of the variables, which come first, and of the gradient; checks the scalars.
/// Handles: the shapes of what they refer to. kGradient: else the gradient's shape is left to the
/// kernel. Output 0, if there is one: the merged shape.
template <int kVariables, bool kGradient>
absl::Status UpdateShape(InferenceContext* c) {
  const bool handles = c->num_outputs() == 0;
  absl::StatusOr<int> grad = InputNamed(c, "grad");
  if (!grad.ok()) grad = InputNamed(c, "delta");
  TROUPE_RETURN_IF_ERROR(grad.status());
  const int indices = InputNamed(c, "indices").value_or(-1);
  PartialShape merged;
  for (int i = 0; i < kVariables; ++i) {
    TROUPE_ASSIGN_OR_RETURN(merged, C::Merge(handles ? HandleShape(c, i) : c->input(i), merged));
  }
  // FtrlV2's lr_power is checked by the kernel only, as in TensorFlow.
  const int unchecked =
      InputNamed(c, "l2_shrinkage").ok() ? InputNamed(c, "lr_power").value_or(-1) : -1;
  for (int i = kVariables; i < c->num_inputs(); ++i) {
    if (i == unchecked) continue;
    if (i != *grad && i != indices) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  }
  PartialShape gradient = kGradient ? c->input(*grad) : PartialShape();
  if (indices >= 0) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape rows, C::WithRank(c->input(indices), 1));
    TROUPE_ASSIGN_OR_RETURN(gradient, C::WithRankAtLeast(gradient, 1));
    if (!gradient.unknown_rank()) {
      TROUPE_RETURN_IF_ERROR(C::MergeDim(C::DimOf(rows, 0), C::DimOf(gradient, 0)).status());
      gradient = C::ReplaceDim(gradient, 0, PartialShape::kUnknown);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(merged, C::Merge(merged, gradient));
  if (!handles) c->set_output(0, merged);
  return absl::OkStatus();
}

template <bool kGradient>
constexpr ShapeFn kShapeFns[] = {UpdateShape<1, kGradient>, UpdateShape<2, kGradient>,
                                 UpdateShape<3, kGradient>, UpdateShape<4, kGradient>};

/// TensorFlow looks at the gradients for resources in these two dense ops only.
bool ChecksGradient(std::string_view op) {
  return !op.starts_with("Resource") || op == "ResourceApplyGradientDescent" ||
         op == "ResourceApplyProximalAdagrad";
}

/// An update rule and its ops: of variables that are references or resources, by a gradient that is
/// dense or has rows only. The sparse ones take `indices` after the gradient.
struct Update {
  const char* ops[4];     ///< nullptr behind the last one.
  const char* variables;  ///< Separated by spaces, as are the `inputs` after them.
  const char* inputs;
  const char* attr;  ///< Empty: none of its own.
  const char* doc;
};

constexpr Update kUpdates[] = {
    {{"ApplyAdaMax", "ResourceApplyAdaMax"},
     "var m v",
     "beta1_power lr beta1 beta2 epsilon grad",
     "",
     "Updates `var` by the AdaMax rule: m += (grad - m) * (1 - beta1), v = max(beta2 * v, |grad|), "
     "var -= lr / (1 - beta1_power) * m / (v + epsilon)."},
    {{"ApplyAdadelta", "ResourceApplyAdadelta", "SparseApplyAdadelta",
      "ResourceSparseApplyAdadelta"},
     "var accum accum_update",
     "lr rho epsilon grad",
     "",
     "Updates `var` by the Adadelta rule: accum = rho * accum + (1 - rho) * grad^2, update = "
     "sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad, var -= lr * update, "
     "accum_update = rho * accum_update + (1 - rho) * update^2."},
    {{"ApplyAdagrad", "ResourceApplyAdagrad", "SparseApplyAdagrad", "ResourceSparseApplyAdagrad"},
     "var accum",
     "lr grad",
     "update_slots: bool = true",
     "Updates `var` by the Adagrad rule: accum += grad^2 (if `update_slots`), "
     "var -= lr * grad / sqrt(accum)."},
    {{"ApplyAdagradDA", "ResourceApplyAdagradDA", "SparseApplyAdagradDA",
      "ResourceSparseApplyAdagradDA"},
     "var gradient_accumulator gradient_squared_accumulator",
     "grad lr l1 l2 global_step",
     "",
     "Updates `var` by Adagrad with dual averaging: both accumulators, s of gradients and q of "
     "their squares, are added to, then var = -lr * sign(s) * max(|s| - l1 * global_step, 0) / (l2 "
     "* global_step * lr + sqrt(q))."},
    {{"ApplyAdagradV2", "ResourceApplyAdagradV2", "SparseApplyAdagradV2",
      "ResourceSparseApplyAdagradV2"},
     "var accum",
     "lr epsilon grad",
     "update_slots: bool = true",
     "Updates `var` by the Adagrad rule: accum += grad^2 (if `update_slots`), "
     "var -= lr * grad / (sqrt(accum) + epsilon)."},
    {{"ApplyAdam", "ResourceApplyAdam"},
     "var m v",
     "beta1_power beta2_power lr beta1 beta2 epsilon grad",
     "use_nesterov: bool = false",
     "Updates `var` by the Adam rule: `m` and `v` are running means of the gradient and its "
     "square, `beta1_power` and `beta2_power` correct their bias."},
    {{"ResourceApplyAdamWithAmsgrad"},
     "var m v vhat",
     "beta1_power beta2_power lr beta1 beta2 epsilon grad",
     "",
     "Updates `var` by the AMSGrad variant of Adam, which divides by the root of `vhat`, the "
     "largest `v` so far."},
    {{"ApplyAddSign", "ResourceApplyAddSign"},
     "var m",
     "lr alpha sign_decay beta grad",
     "",
     "Updates `var` by the AddSign rule: m = beta * m + (1 - beta) * grad, "
     "var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad."},
    {{"ApplyCenteredRMSProp", "ResourceApplyCenteredRMSProp", "SparseApplyCenteredRMSProp",
      "ResourceSparseApplyCenteredRMSProp"},
     "var mg ms mom",
     "lr rho momentum epsilon grad",
     "",
     "Updates `var` by the centered RMSProp rule: `mg` and `ms` are running means of the gradient "
     "and its square, mom = momentum * mom + lr * grad / sqrt(ms - mg^2 + epsilon), var -= mom."},
    {{"ApplyFtrl", "ResourceApplyFtrl", "SparseApplyFtrl", "ResourceSparseApplyFtrl"},
     "var accum linear",
     "grad lr l1 l2 lr_power",
     "multiply_linear_by_lr: bool = false",
     "Updates `var` by the FTRL-proximal rule: with p = -lr_power, linear += grad - ((accum + "
     "grad^2)^p - accum^p) / lr * var, accum += grad^2, var = (sign(linear) * l1 - linear) / "
     "(accum^p / lr + 2 * l2) if |linear| > l1, else 0. With `multiply_linear_by_lr`, `linear` is "
     "kept multiplied by lr."},
    {{"ApplyFtrlV2", "ResourceApplyFtrlV2", "SparseApplyFtrlV2", "ResourceSparseApplyFtrlV2"},
     "var accum linear",
     "grad lr l1 l2 l2_shrinkage lr_power",
     "multiply_linear_by_lr: bool = false",
     "Updates `var` by the FTRL-proximal rule with shrinkage: as Ftrl, but grad + 2 * l2_shrinkage "
     "* var is added to `linear`."},
    {{"ApplyGradientDescent", "ResourceApplyGradientDescent"},
     "var",
     "alpha delta",
     "",
     "Subtracts alpha * delta from `var`."},
    {{"ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum"},
     "var accum",
     "lr grad momentum",
     "use_nesterov: bool = false",
     "Sets accum = accum * momentum - lr * grad and adds accum (with `use_nesterov`: accum * "
     "momentum - lr * grad) to `var`."},
    {{"ApplyMomentum", "ResourceApplyMomentum", "SparseApplyMomentum",
      "ResourceSparseApplyMomentum"},
     "var accum",
     "lr grad momentum",
     "use_nesterov: bool = false",
     "Sets accum = accum * momentum + grad and subtracts lr * accum (with `use_nesterov`: "
     "grad * lr + accum * momentum * lr) from `var`."},
    {{"ApplyPowerSign", "ResourceApplyPowerSign"},
     "var m",
     "lr logbase sign_decay beta grad",
     "",
     "Updates `var` by the PowerSign rule: m = beta * m + (1 - beta) * grad, "
     "var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad."},
    {{"ApplyProximalAdagrad", "ResourceApplyProximalAdagrad", "SparseApplyProximalAdagrad",
      "ResourceSparseApplyProximalAdagrad"},
     "var accum",
     "lr l1 l2 grad",
     "",
     "Updates `var` by forward-backward splitting with Adagrad's rate: accum += grad^2, rate = lr "
     "/ sqrt(accum), p = var - rate * grad, var = sign(p) * max(|p| - rate * l1, 0) / (1 + rate * "
     "l2)."},
    {{"ApplyProximalGradientDescent", "ResourceApplyProximalGradientDescent"},
     "var",
     "alpha l1 l2 delta",
     "",
     "Updates `var` by forward-backward splitting: p = var - alpha * delta, "
     "var = sign(p) * max(|p| - alpha * l1, 0) / (1 + alpha * l2)."},
    {{"SparseApplyProximalGradientDescent", "ResourceSparseApplyProximalGradientDescent"},
     "var",
     "alpha l1 l2 grad",
     "",
     "Updates `var` by forward-backward splitting: p = var - alpha * grad, "
     "var = sign(p) * max(|p| - alpha * l1, 0) / (1 + alpha * l2)."},
    {{"ApplyRMSProp", "ResourceApplyRMSProp", "SparseApplyRMSProp", "ResourceSparseApplyRMSProp"},
     "var ms mom",
     "lr rho momentum epsilon grad",
     "",
     "Updates `var` by the RMSProp rule: `ms` is a running mean of the gradient's square, mom = "
     "momentum * mom + lr * grad / sqrt(ms + epsilon), var -= mom."},
};

OpDefBuilder Define(const Update& update, std::string_view op_name) {
  const bool sparse = op_name.find("SparseApply") != std::string_view::npos;
  const bool resource = op_name.starts_with("Resource");
  OpDefBuilder op{std::string(op_name)};
  int variables = 0;
  for (const absl::string_view name : absl::StrSplit(update.variables, ' ')) {
    op.Input(absl::StrCat(name, resource ? ": resource" : ": Ref(T)"));
    ++variables;
  }
  for (const absl::string_view name : absl::StrSplit(update.inputs, ' ')) {
    op.Input(absl::StrCat(name, name == "global_step" ? ": int64" : ": T"));
    if (sparse && name == "grad") op.Input("indices: Tindices");
  }
  op.Attr("T: numbertype");
  if (sparse) op.Attr("Tindices: {int32, int64}");
  op.Attr("use_locking: bool = false");
  if (*update.attr != '\0') op.Attr(update.attr);
  if (resource) {
    op.SetIsStateful();
  } else {
    op.Output("out: Ref(T)");
  }
  op.SetShapeFn(ChecksGradient(op_name) ? kShapeFns<true>[variables - 1]
                                        : kShapeFns<false>[variables - 1]);
  op.Doc(!sparse ? std::string(update.doc)
                 : absl::StrCat(update.doc,
                                " Row i of `grad` belongs to row indices[i]; other rows stay as "
                                "they are. Rows named several times are updated as often, in "
                                "order. Fails if an index is out of range."));
  return op;
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Update& update : kUpdates) {
    for (const char* op : update.ops) {
      if (op != nullptr) OpRegistry::Global()->Register(Define(update, op));
    }
  }
  return true;
}();

}  // namespace
}  // namespace troupe
