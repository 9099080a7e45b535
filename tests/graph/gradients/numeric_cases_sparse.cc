#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

namespace {

In Longs(std::initializer_list<int64_t> values, const Shape& shape) {
  return C(Tensor::FromValues<int64_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
               .value());
}
In Longs(std::initializer_list<int64_t> values) {
  return Longs(values, Shape({static_cast<int64_t>(values.size())}));
}

}  // namespace

// A sparse tensor's values are in row-major order, but where said otherwise.
void AddSparseCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  const In indices = Longs({0, 1, 0, 3, 1, 0, 1, 3, 2, 2}, Shape({5, 2})), shape = Longs({3, 4});
  const In unordered = Longs({2, 2, 0, 3, 1, 0, 0, 1, 1, 3}, Shape({5, 2}));
  add({"SparseReorder", {unordered, X({5}), shape}});
  for (const In& dense : {X({3, 4}, 1, 2), X({4}, 1, 2), X({3, 1}, 1, 2)}) {
    add({"SparseDenseCwiseMul", {indices, X({5}), shape, dense}});
    add({"SparseDenseCwiseDiv", {indices, X({5}), shape, dense}});
  }
  for (const bool keep_dims : {false, true}) {
    for (const In& axes : {I({0}), I({-1}), I({0, 1}), I(std::initializer_list<int32_t>{})}) {
      add({"SparseReduceSum", {indices, X({5}), shape, axes}, Bools({{"keep_dims", keep_dims}})});
    }
  }
  add(Once({"SparseSoftmax", {indices, X({5}), shape}}));
  add({"SparseTensorDenseAdd", {unordered, X({5}), shape, X({3, 4})}});
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const int64_t inner = a ? 3 : 4;
      add({"SparseTensorDenseMatMul",
           {unordered, X({5}), shape, X(b ? Shape({2, inner}) : Shape({inner, 2}))},
           Bools({{"adjoint_a", a}, {"adjoint_b", b}})});
    }
  }
}

}  // namespace troupe::numeric
