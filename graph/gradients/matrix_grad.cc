#include "graph/gradients/matrix_grad.h"

#include <utility>
#include <vector>

namespace troupe::gradients {

Output MatrixProduct(GradientContext& g, Output a, bool adjoint_a, Output b, bool adjoint_b) {
  return g.Op("BatchMatMulV2", {a, b},
              [&](NodeSpec& spec) { spec.Attr("adj_x", adjoint_a).Attr("adj_y", adjoint_b); });
}

Output Adjoint(GradientContext& g, Output x) {
  const int rank = x.shape().rank();
  if (rank >= 2) {
    std::vector<int64_t> permutation(rank);
    for (int i = 0; i < rank; ++i) permutation[i] = i;
    std::swap(permutation[rank - 1], permutation[rank - 2]);
    return g.Conj(Transpose(g, x, permutation));
  }
  const Sizes all = Sizes::OfTensor(g, Numbers(g, g.Op("Rank", {x})));
  const Sizes swapped =
      all.Slice(0, -2).Concat(all.Slice(-1, Sizes::kEnd)).Concat(all.Slice(-2, -1));
  return g.Conj(g.Op("Transpose", {x, swapped.Vector()}));
}

Output BandPart(GradientContext& g, Output x, int64_t lower, int64_t upper) {
  return g.Op("MatrixBandPart", {x, g.Scalar<int64_t>(lower), g.Scalar<int64_t>(upper)});
}

}  // namespace troupe::gradients
