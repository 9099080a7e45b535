/// The forms that ops of an update rule come in. An op's name is a prefix and the rule's name:
/// ApplyAdam, ResourceApplyAdam, SparseApplyAdagrad, ResourceSparseApplyAdagrad. The rules stand in
/// `graph/ops/training_ops.cc` (definitions) and `kernels/training/apply.cc` (kernels).
#ifndef TROUPE_GRAPH_OPS_UPDATE_FORMS_H_
#define TROUPE_GRAPH_OPS_UPDATE_FORMS_H_

#include <string>
#include <string_view>

#include "devices/status_macros.h"

namespace troupe::update_forms {

/// The variable is a reference or a resource; the gradient is dense or has rows only.
enum Form : int { kDense = 1, kResource = 2, kSparse = 4, kResourceSparse = 8 };
inline constexpr int kBothDense = kDense | kResource, kBothSparse = kSparse | kResourceSparse;
inline constexpr int kAll = kBothDense | kBothSparse;
inline constexpr Form kForms[] = {kDense, kResource, kSparse, kResourceSparse};

constexpr bool IsSparse(Form form) { return (form & kBothSparse) != 0; }
constexpr bool IsResource(Form form) { return (form & (kResource | kResourceSparse)) != 0; }

/// The name of a rule's op.
inline std::string OpName(Form form, std::string_view rule) {
  return StrCat(IsResource(form) ? "Resource" : "", IsSparse(form) ? "Sparse" : "", "Apply", rule);
}

}  // namespace troupe::update_forms

#endif  // TROUPE_GRAPH_OPS_UPDATE_FORMS_H_
