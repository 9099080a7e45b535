// What is expected here is what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";

TEST(Variables, References) {
  EXPECT_EQ(Inferred("Assign").Variable({2, -1}).In({-1, 3}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("Assign").Variable({2}).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Assign").Variable({2}).In({3}).Attr("validate_shape", false).Shapes(), "[3]");
  EXPECT_EQ(Inferred("AssignAdd").Variable({2}).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Variable")
                .Attr("dtype", ElementType::kFloat)
                .Attr("shape", InferenceContext::Scalar())
                .Shapes(),
            "<unknown>");
}

TEST(Variables, Handles) {
  constexpr ElementType kFloat = ElementType::kFloat;
  EXPECT_EQ(Inferred("ReadVariableOp").Handle({2, -1}).Attr("dtype", kFloat).Shapes(), "[2,?]");
  EXPECT_EQ(Inferred("ReadVariableOp").Handle({2}).Attr("dtype", ElementType::kInt32).Shapes(),
            kRefused);
  EXPECT_EQ(
      Inferred("ReadVariableOp").InScalar(ElementType::kResource).Attr("dtype", kFloat).Shapes(),
      "<unknown>");
  EXPECT_EQ(Inferred("AssignVariableOp").Handle({2}).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("AssignVariableOp").Handle({2}).In({-1}).Shapes(), "");
  EXPECT_EQ(Inferred("VariableShape").Handle({2, -1}).Shapes(), "[2]");
}

TEST(Optimisers, VariablesAndGradients) {
  EXPECT_EQ(Inferred("ApplyGradientDescent").Variable({2, -1}).InScalar().In({-1, 3}).Shapes(),
            "[2,3]");
  EXPECT_EQ(Inferred("ApplyGradientDescent").Variable({2}).InScalar().In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ApplyGradientDescent").Variable({2}).In({1}).In({2}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ResourceApplyGradientDescent").Handle({2}).InScalar().In({3}).Shapes(),
            kRefused);
  EXPECT_EQ(Inferred("ResourceApplyMomentum")
                .Handle({2})
                .Handle({3})
                .InScalar()
                .In({2})
                .InScalar()
                .Shapes(),
            kRefused);
}

}  // namespace
}  // namespace troupe
