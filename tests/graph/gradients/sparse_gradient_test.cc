// Gradients of what is looked up: the rows that were used.
#include "graph/gradients/aggregate.h"
#include "tests/graph/gradients/flow_gradient_test_util.h"

namespace troupe {
namespace {

using testing::ElementsAre;

class SparseGradient : public FlowGradientTest {
 protected:
  Output Ids(std::initializer_list<int32_t> ids) { return Const(s_, Tensor::Vector<int32_t>(ids)); }
  Output Table() { return Placeholder(PartialShape({4, 2})); }

  Gradient Of(Output y, Output x, const GradientOptions& options = {}) {
    std::vector<Gradient> grads(1);
    EXPECT_TRUE(s_.ok()) << s_.status();
    if (!s_.ok()) return grads[0];
    const absl::Status status = AddSymbolicGradients({y}, {x}, {}, &grads, options);
    EXPECT_TRUE(status.ok()) << status;
    return grads[0];
  }
};

TEST_F(SparseGradient, HasTheRowsAndWhereTheyBelong) {
  Output table = Table();
  Output y = ops::Mul(s_, ops::Gather(s_, table, Ids({2, 0, 2})), 3.0);
  const Gradient grad = Of(y, table);
  ASSERT_TRUE(grad.sparse());
  const auto values =
      Run({grad.values, grad.indices, grad.dense_shape}, {{table, Values({4, 2}, 1)}});
  EXPECT_EQ(values[0].shape(), Shape({3, 2}));
  EXPECT_THAT(values[0].unchecked_values<double>(), ElementsAre(3, 3, 3, 3, 3, 3));
  EXPECT_THAT(values[1].unchecked_values<int32_t>(), ElementsAre(2, 0, 2));
  EXPECT_THAT(values[2].unchecked_values<int32_t>(), ElementsAre(4, 2));
}

TEST_F(SparseGradient, IndicesOfAnyRank) {
  for (const Shape& shape : {Shape(), Shape({2}), Shape({2, 1})}) {
    SCOPED_TRACE(shape.ToString());
    Output table = Table();
    Tensor ids = Tensor::Uninitialized(ElementType::kInt64, shape);
    for (int64_t i = 0; i < ids.num_elements(); ++i) ids.mutable_data<int64_t>()[i] = 1 + i;
    const Gradient grad = Of(ops::GatherV2(s_, table, Const(s_, ids), 0), table);
    ASSERT_TRUE(grad.sparse());
    const auto values = Run({grad.values, grad.indices}, {{table, Values({4, 2}, 1)}});
    EXPECT_EQ(values[0].shape(), Shape({ids.num_elements(), 2}));
    EXPECT_EQ(values[1].shape(), Shape({ids.num_elements()}));
  }
}

TEST_F(SparseGradient, SumsStaySparse) {
  Output table = Table();
  Output y = ops::Add(s_, ops::Gather(s_, table, Ids({1, 1})), ops::Gather(s_, table, Ids({3, 0})));
  const Gradient grad = Of(y, table);
  ASSERT_TRUE(grad.sparse());
  const auto values = Run({grad.values, grad.indices}, {{table, Values({4, 2}, 1)}});
  EXPECT_EQ(values[0].shape(), Shape({4, 2}));
  EXPECT_THAT(values[1].unchecked_values<int32_t>(), testing::UnorderedElementsAre(1, 1, 3, 0));
}

TEST_F(SparseGradient, BesideADenseOneIsDense) {
  Output table = Table();
  Output y =
      ops::Add(s_, ops::Sum(s_, ops::Gather(s_, table, Ids({1, 1})), 0), ops::Sum(s_, table, 0));
  const Gradient grad = Of(y, table);
  ASSERT_FALSE(grad.sparse());
  const auto values = Run({grad.values}, {{table, Values({4, 2}, 1)}});
  EXPECT_THAT(values[0].unchecked_values<double>(), ElementsAre(1, 1, 3, 3, 1, 1, 1, 1));
}

TEST_F(SparseGradient, BecomesDenseForWhatNeedsIt) {
  Output x = Table();
  Output y = ops::Gather(s_, ops::Square(s_, x), Ids({3, 3}));
  const Gradient grad = Of(y, x);
  ASSERT_FALSE(grad.sparse());
  const Tensor at = Values({4, 2}, 1);
  const auto values = Run({grad.values}, {{x, at}});
  for (int i = 0; i < 8; ++i) {
    EXPECT_DOUBLE_EQ(values[0].unchecked_data<double>()[i],
                     i < 6 ? 0 : 4 * at.unchecked_data<double>()[i]);
  }
}

TEST_F(SparseGradient, OfResourceVariables) {
  const Tensor initial = Values({4, 2}, 1);
  Output handle = ops::VarHandleOp(s_, ElementType::kDouble, PartialShape({4, 2}));
  Node* init = ops::AssignVariableOp(s_, handle, Const(s_, initial));
  Output rows = ops::ResourceGather(s_, handle, Ids({3, 1}), ElementType::kDouble);
  const Gradient sparse = Of(ops::Square(s_, rows), handle);
  ASSERT_TRUE(sparse.sparse());
  Output points = ops::ResourceGatherNd(
      s_, handle,
      Const(s_, Tensor::FromValues<int32_t>(std::vector<int32_t>{1, 0, 3, 1}, {2, 2}).value()),
      ElementType::kDouble);
  const Gradient dense = Of(points, handle);
  ASSERT_FALSE(dense.sparse());
  ASSERT_TRUE(session().Run({}, {}, {init}).ok());
  const auto values = Run({sparse.values, sparse.indices, sparse.dense_shape, dense.values});
  for (int i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(values[0].unchecked_data<double>()[i],
                     2 * initial.unchecked_data<double>()[6 + i]);
  }
  EXPECT_THAT(values[1].unchecked_values<int32_t>(), ElementsAre(3, 1));
  EXPECT_THAT(values[2].unchecked_values<int32_t>(), ElementsAre(4, 2));
  EXPECT_THAT(values[3].unchecked_values<double>(), ElementsAre(0, 0, 1, 0, 0, 0, 0, 1));
}

TEST_F(SparseGradient, ThroughBranches) {
  Output p = ops::Placeholder(s_, ElementType::kBool, {.shape = Shape()});
  Output table = Table();
  Output y = Cond(
      s_, p, [&](const Scope& s) { return ops::Gather(s, table, Ids({2})); },
      [&](const Scope& s) {
        return Const(s, Tensor::FromValues<double>(std::vector<double>{1, 2}, {1, 2}).value());
      });
  const Gradient grad = Of(y, table);
  ASSERT_TRUE(grad.sparse());
  for (const bool taken : {true, false}) {
    const auto values = Run({grad.values, grad.indices, grad.dense_shape},
                            {{table, Values({4, 2}, 1)}, {p, Tensor::Scalar(taken)}});
    EXPECT_EQ(values[0].shape(), Shape({taken ? 1 : 0, 2}));
    EXPECT_EQ(values[1].num_elements(), taken ? 1 : 0);
    EXPECT_THAT(values[2].unchecked_values<int32_t>(), ElementsAre(4, 2));
  }
}

TEST_F(SparseGradient, ManyContributionsAreAddedInTurns) {
  Output x = Placeholder(Shape());
  Output y = ops::Sin(s_, x);
  for (int i = 0; i < 20; ++i) y = ops::Add(s_, y, ops::Mul(s_, x, D(s_, i)));
  const Gradient grad = Of(y, x);
  EXPECT_EQ(Count("AddN"), 3);
  for (const Node* node : s_.graph()->nodes()) {
    if (node->op() == "AddN") {
      EXPECT_LE(node->num_inputs(), gradients::kAddNWidth);
    }
  }
  EXPECT_DOUBLE_EQ(Run({grad.values}, {{x, Tensor::Scalar(2.0)}})[0].unchecked_scalar<double>(),
                   std::cos(2.0) + 190);
}

}  // namespace
}  // namespace troupe
