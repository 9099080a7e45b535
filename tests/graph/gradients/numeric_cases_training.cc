#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

void AddUpdateCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  const In pairs = I({0, 1, 1, 2, 0, 1}, {3, 2}), rows = I({2, 0}, {2, 1});
  add({"GatherNd", {X({2, 3}), pairs}});
  add({"GatherNd", {X({3, 2, 2}), rows}});
  add({"GatherNd", {X({3, 2, 2}), I({1, 0})}});
  add({"TensorScatterAdd", {X({2, 3}), pairs, X({3})}});
  add({"TensorScatterUpdate", {X({3, 2}), rows, X({2, 2})}});
  const In begin = I({1, 0}), end = I({3, 3}), strides = I({1, 2});
  add({"TensorStridedSliceUpdate", {X({3, 4}), begin, end, strides, X({2, 2})}});
  add({"TensorStridedSliceUpdate", {X({3, 4}), begin, end, strides, X({2, 1})}});
  add({"TensorStridedSliceUpdate",
       {X({3, 4}), begin, end, strides, X({2})},
       Number("shrink_axis_mask", 1)});
  add({"SparseToDense", {I({0, 1, 1, 2}, {2, 2}), I({2, 3}), X({2}), X({})}});
  add({"SparseToDense", {I({1, 3}), I({4}), X({}), X({})}});
}

}  // namespace troupe::numeric
