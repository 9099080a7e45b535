/// The equations of Einsum: "ij,jk->ik".
///
/// Every character but '.' is a label and stands for a dimension; "..." stands for any number of
/// dimensions, which are broadcast between the operands.
#ifndef TROUPE_GRAPH_OPS_EINSUM_EQUATION_H_
#define TROUPE_GRAPH_OPS_EINSUM_EQUATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe {

/// The labels of one operand, or of the result.
struct EinsumTerm {
  /// Whether a label occurs, of the dimensions that "..." does not stand for.
  bool Has(int label) const;
  /// `rank` labels, for as many dimensions: those of the ellipsis are -1 for the last one, -2 for
  /// the one before and so on. InvalidArgument if the rank does not fit.
  absl::StatusOr<std::vector<int>> LabelsOf(int rank) const;

  std::string text;
  std::vector<int> before, after;  ///< The labels before and after the ellipsis.
  bool ellipsis = false;
};

struct EinsumEquation {
  /// One or two operands. InvalidArgument for what is no equation, or has labels in the result that
  /// no operand has.
  static absl::StatusOr<EinsumEquation> Parse(std::string_view text);

  std::vector<EinsumTerm> inputs;
  EinsumTerm output;
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_EINSUM_EQUATION_H_
