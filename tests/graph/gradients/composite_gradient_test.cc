// Gradients of ops that need inputs of a certain kind or have outputs of unknown shape, as parts of
// larger functions, against central differences.
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "api/session.h"
#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

/// Compares the gradient of (the real part of) the scalar `loss` with differences. Complex inputs
/// vary in both parts.
void CheckGradient(TestGraph& g, Output loss, Output x, const Tensor& at) {
  ASSERT_TRUE(g.status().ok()) << g.status();
  const Output grad = g.Gradients({loss}, {x}, {g.ScalarOfType(loss.type(), 1)})[0];
  ASSERT_TRUE(grad.valid());
  auto session = Session::Create(g.shared_graph());
  ASSERT_TRUE(session.ok()) << session.status();
  const auto run = [&](Output fetch, const Tensor& value) {
    const Output fetches[] = {fetch};
    auto values = (*session)->Run(FeedMap{{x, value}}, fetches);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : Tensor();
  };
  const Tensor got = run(grad, at);
  ASSERT_TRUE(got.valid());
  ASSERT_EQ(got.shape(), at.shape());
  // A complex number is two doubles.
  const int64_t count = static_cast<int64_t>(at.bytes() / sizeof(double));
  for (int64_t i = 0; i < count; ++i) {
    double losses[2];
    constexpr double kStep = 1e-6;
    for (int side : {0, 1}) {
      Tensor moved = *at.Clone();
      static_cast<double*>(moved.mutable_raw_data())[i] += side == 0 ? -kStep : kStep;
      const Tensor result = run(loss, moved);
      ASSERT_TRUE(result.valid());
      losses[side] = *static_cast<const double*>(result.raw_data());
    }
    const double numeric = (losses[1] - losses[0]) / (2 * kStep);
    EXPECT_NEAR(static_cast<const double*>(got.raw_data())[i], numeric,
                1e-6 * std::max(1.0, std::abs(numeric)))
        << "element " << i;
  }
}

/// Numbers of one sign and another, none alike.
Tensor Numbers(ElementType type, const Shape& shape) {
  Tensor tensor = Tensor::Uninitialized(type, shape);
  double* values = static_cast<double*>(tensor.mutable_raw_data());
  for (size_t i = 0; i < tensor.bytes() / sizeof(double); ++i) {
    values[i] = std::sin(1.7 * static_cast<double>(i * i) + 0.3);
  }
  return tensor;
}

/// A weighted sum of all elements.
Output Loss(TestGraph& g, Output y, const Tensor& weights) {
  const Output products = g.Op("Mul", {y, g.Const(weights)});
  return g.Op("Sum", {g.Op("Reshape", {products, g.IntVector({-1})}), g.Scalar<int32_t>(0)});
}

Output Product(TestGraph& g, Output a, Output b, bool adjoint_b) {
  return g.Op("BatchMatMulV2", {a, b}, [=](NodeSpec& spec) { spec.Attr("adj_y", adjoint_b); });
}

Tensor Longs(std::initializer_list<int64_t> values, const Shape& shape) {
  return Tensor::FromValues<int64_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
      .value();
}

/// The gradient of what output 1 of `op`, the values of a sparse tensor, is of input `input`, which
/// has the double `at`; the others are constants.
void CheckSparseValues(std::string_view op, const std::vector<Tensor>& inputs, int input,
                       const Shape& values) {
  SCOPED_TRACE(std::string(op));
  TestGraph g;
  std::vector<Output> all;
  for (const Tensor& tensor : inputs) all.push_back(g.Const(tensor));
  const Tensor& at = inputs[input];
  all[input] = g.Placeholder(ElementType::kDouble, at.shape());
  Node* node = g.Add(op, all);
  ASSERT_TRUE(node != nullptr) << g.status();
  const Tensor weights = Numbers(ElementType::kDouble, values);
  CheckGradient(g, Loss(g, Output(node, 1), weights), all[input], at);
}

TEST(CompositeGradient, SparseValues) {
  const Tensor indices = Longs({0, 1, 1, 0, 1, 2}, Shape({3, 2})),
               shape = Longs({4, 3}, Shape({2}));
  const Tensor values = Numbers(ElementType::kDouble, Shape({3}));
  const Tensor others = Longs({1, 0, 3, 1}, Shape({2, 2}));
  const Tensor other_values = Numbers(ElementType::kDouble, Shape({2}));
  for (const int input : {1, 4}) {
    CheckSparseValues("SparseAdd",
                      {indices, values, shape, others, other_values, shape, Tensor::Scalar(0.0)},
                      input, Shape({4}));
  }
  CheckSparseValues("SparseSlice",
                    {indices, values, shape, Longs({1, 0}, Shape({2})), Longs({2, 2}, Shape({2}))},
                    1, Shape({1}));
  for (const int input : {1, 3}) {
    CheckSparseValues("SparseFillEmptyRows", {indices, values, shape, Tensor::Scalar(0.5)}, input,
                      Shape({5}));
  }
}

// The op reads one triangle and stands for a function of Hermitian matrices: x x^H + 2 is one.
TEST(CompositeGradient, Cholesky) {
  for (const ElementType type : {ElementType::kDouble, ElementType::kComplex128}) {
    for (const bool rank_known : {true, false}) {
      SCOPED_TRACE(ElementTypeName(type));
      TestGraph g;
      const Shape shape({2, 3, 3});
      const Output x = g.Placeholder(type, rank_known ? PartialShape(shape) : PartialShape());
      Tensor twice = Tensor::Uninitialized(type, Shape({3}));
      double* numbers = static_cast<double*>(twice.mutable_raw_data());
      for (size_t i = 0; i < twice.bytes() / sizeof(double); ++i) {
        numbers[i] = IsComplex(type) && i % 2 == 1 ? 0 : 2;
      }
      const Output square =
          g.Op("AddV2", {Product(g, x, x, true), g.Op("MatrixDiag", {g.Const(twice)})});
      const Output l = g.Op("Cholesky", {square});
      CheckGradient(g, Loss(g, l, Numbers(type, Shape({3, 3}))), x, Numbers(type, shape));
    }
  }
}

// As `a` varies the distance of b from its image under a's inverse does.
TEST(CompositeGradient, SolutionsOfComplexSystems) {
  const ElementType type = ElementType::kComplex128;
  const Tensor matrix = Numbers(type, Shape({3, 3})), rhs = Numbers(type, Shape({3, 2}));
  for (const char* op : {"MatrixSolve", "MatrixTriangularSolve"}) {
    for (const bool adjoint : {false, true}) {
      SCOPED_TRACE(op);
      TestGraph g;
      const Output a = g.Placeholder(type, matrix.shape());
      const Output solution =
          g.Op(op, {a, g.Const(rhs)}, [=](NodeSpec& spec) { spec.Attr("adjoint", adjoint); });
      CheckGradient(g, Loss(g, solution, Numbers(type, rhs.shape())), a, matrix);
    }
  }
  for (const bool adjoint : {false, true}) {
    TestGraph g;
    const Output a = g.Placeholder(type, matrix.shape());
    const Output inverse =
        g.Op("MatrixInverse", {a}, [=](NodeSpec& spec) { spec.Attr("adjoint", adjoint); });
    CheckGradient(g, Loss(g, inverse, Numbers(type, matrix.shape())), a, matrix);
  }
}

// Transforms of one and of two dimensions, of even and odd sizes, some cropped.
TEST(CompositeGradient, FourierTransforms) {
  const ElementType complex = ElementType::kComplex128, real = ElementType::kDouble;
  for (const char* op : {"FFT", "IFFT", "FFT2D", "IFFT2D"}) {
    SCOPED_TRACE(op);
    TestGraph g;
    const Output x = g.Placeholder(complex, Shape({2, 3}));
    CheckGradient(g, Loss(g, g.Op(op, {x}), Numbers(complex, Shape({2, 3}))), x,
                  Numbers(complex, Shape({2, 3})));
  }
  for (const int32_t n : {4, 5, 6}) {
    TestGraph g;
    const Output x = g.Placeholder(real, Shape({2, 6}));
    const Output y = g.Op("RFFT", {x, g.Const(Tensor::Vector<int32_t>({n}))},
                          [&](NodeSpec& spec) { spec.Attr("Tcomplex", complex); });
    CheckGradient(g, Loss(g, y, Numbers(complex, Shape({2, n / 2 + 1}))), x,
                  Numbers(real, Shape({2, 6})));
  }
  for (const int32_t n : {4, 5, 6}) {
    TestGraph g;
    const Output x = g.Placeholder(complex, Shape({3, 4}));
    const Output y = g.Op("IRFFT2D", {x, g.Const(Tensor::Vector<int32_t>({3, n}))},
                          [&](NodeSpec& spec) { spec.Attr("Treal", real); });
    CheckGradient(g, Loss(g, y, Numbers(real, Shape({3, n}))), x, Numbers(complex, Shape({3, 4})));
  }
}

TEST(CompositeGradient, Eig) {
  const ElementType type = ElementType::kComplex128;
  TestGraph g;
  const Output x = g.Placeholder(type, Shape({3, 3}));
  Node* eig = g.Add("Eig", {x}, [&](NodeSpec& spec) { spec.Attr("Tout", type); });
  ASSERT_NE(eig, nullptr) << g.status();
  CheckGradient(g, Loss(g, Output(eig, 0), Numbers(type, Shape({3}))), x,
                Numbers(type, Shape({3, 3})));
}

// Of x x^H + 2, which has a root.
TEST(CompositeGradient, MatrixSquareRoot) {
  const ElementType type = ElementType::kDouble;
  TestGraph g;
  const Output x = g.Placeholder(type, Shape({2, 2, 2}));
  const Output square = Product(g, x, x, true);
  const Output shifted =
      g.Op("MatrixSetDiag",
           {square, g.Op("AddV2", {g.Op("MatrixDiagPart", {square}), g.ScalarOfType(type, 2)})});
  CheckGradient(g, Loss(g, g.Op("MatrixSquareRoot", {shifted}), Numbers(type, Shape({2, 2, 2}))), x,
                Numbers(type, Shape({2, 2, 2})));
}

TEST(CompositeGradient, Segments) {
  for (const char* op : {"SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum"}) {
    for (const bool shape_known : {true, false}) {
      SCOPED_TRACE(op);
      TestGraph g;
      const Output x =
          g.Placeholder(ElementType::kDouble, shape_known ? PartialShape({5, 2}) : PartialShape());
      const Output ids = g.Const(Tensor::Vector<int32_t>({0, 0, 1, 3, 3}));
      const Output reduced = g.Op("Square", {g.Op(op, {x, ids})});
      CheckGradient(g, Loss(g, reduced, Numbers(ElementType::kDouble, Shape({4, 2}))), x,
                    Numbers(ElementType::kDouble, Shape({5, 2})));
    }
  }
}

TEST(CompositeGradient, DynamicPartition) {
  for (const bool shape_known : {true, false}) {
    TestGraph g;
    const Shape shape({2, 2, 3});
    const Output x =
        g.Placeholder(ElementType::kDouble, shape_known ? PartialShape(shape) : PartialShape());
    const Output to = g.Const(Tensor::FromValues<int32_t>({2, 0, 0, 2}, Shape({2, 2})).value());
    Node* parts =
        g.Add("DynamicPartition", {x, to}, [](NodeSpec& spec) { spec.Attr("num_partitions", 3); });
    ASSERT_TRUE(g.status().ok()) << g.status();
    // Nothing depends on the last part; the middle one is empty.
    const Output loss =
        Loss(g, g.Op("Square", {Output(parts, 0)}), Numbers(ElementType::kDouble, Shape({2, 3})));
    CheckGradient(g, loss, x, Numbers(ElementType::kDouble, shape));
  }
}

}  // namespace
}  // namespace troupe
