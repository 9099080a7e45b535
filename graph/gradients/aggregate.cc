#include "graph/gradients/aggregate.h"

#include <algorithm>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output AddN(GradientBuilder& g, const std::vector<Output>& parts) {
  Output sum = parts[0];
  size_t next = 1;
  while (next < parts.size() && g.status().ok()) {
    const size_t end = std::min(parts.size(), next + kAddNWidth - 1);
    std::vector<Output> group = {sum};
    group.insert(group.end(), parts.begin() + static_cast<std::ptrdiff_t>(next),
                 parts.begin() + static_cast<std::ptrdiff_t>(end));
    sum = OfLists(g, "AddN", {group});
    next = end;
  }
  return sum;
}

Gradient JoinSlices(GradientBuilder& g, const std::vector<Gradient>& parts) {
  if (parts.size() == 1) return parts[0];
  bool wide = false;
  for (const Gradient& part : parts) wide |= part.indices.type() == ElementType::kInt64;
  std::vector<Output> values, indices;
  for (const Gradient& part : parts) {
    values.push_back(part.values);
    indices.push_back(Cast(g, part.indices, wide ? ElementType::kInt64 : part.indices.type()));
  }
  const Output axis = g.Scalar<int32_t>(0);
  return Gradient(Concat(g, values, axis), Concat(g, indices, axis), parts[0].dense_shape);
}

}  // namespace

Gradient SumGradients(GradientBuilder& g, const std::vector<Gradient>& parts) {
  if (parts.empty() || !g.status().ok()) return Gradient();
  std::vector<Gradient> sparse;
  std::vector<Output> dense;
  for (const Gradient& part : parts) {
    if (part.sparse()) {
      sparse.push_back(part);
    } else {
      dense.push_back(part.values);
    }
  }
  if (dense.empty()) return JoinSlices(g, sparse);
  if (!sparse.empty()) dense.push_back(g.Dense(JoinSlices(g, sparse)));
  return Gradient(AddN(g, dense));
}

}  // namespace troupe::gradients
