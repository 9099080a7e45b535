// Einsum against the sum over all labels.
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

/// For equations without an ellipsis: the labels' sizes are those of the operands.
Tensor NaiveEinsum(const std::string& equation, const std::vector<Tensor>& operands,
                   ElementType type) {
  std::vector<std::string> terms(1);
  for (const char c : equation) {
    if (c == ',' || c == '-') {
      terms.emplace_back();
    } else if (c != '>') {
      terms.back().push_back(c);
    }
  }
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t d = 0; d < terms[i].size(); ++d) {
      sizes[terms[i][d]] = operands[i].dim(static_cast<int>(d));
    }
  }
  Shape shape;
  for (const char c : terms.back()) shape.AddDim(sizes[c]);
  std::vector<double> sums(shape.num_elements());
  int64_t total = 1;
  for (const auto& [label, size] : sizes) total *= size;
  for (int64_t i = 0; i < total; ++i) {
    std::map<char, int64_t> at;
    int64_t rest = i;
    for (const auto& [label, size] : sizes) {
      at[label] = rest % size;
      rest /= size;
    }
    const auto index = [&](const std::string& term) {
      int64_t position = 0;
      for (const char c : term) position = position * sizes[c] + at[c];
      return position;
    };
    double product = 1;
    for (size_t o = 0; o < operands.size(); ++o) product *= At(operands[o], index(terms[o]));
    sums[index(terms.back())] += product;
  }
  return MakeTensor(type, shape, sums);
}

TEST(Einsum, AgreesWithTheSumOverAllLabels) {
  const struct {
    const char* equation;
    std::vector<Shape> shapes;
  } cases[] = {
      {"ij->ji", {Shape({3, 40})}},
      {"ijk->j", {Shape({3, 4, 5})}},
      {"iij->ji", {Shape({3, 3, 4})}},
      {"ii->", {Shape({6, 6})}},
      {"ij->jjii", {Shape({2, 3})}},
      {"->", {Shape()}},
      {"ij,jk->ik", {Shape({7, 30}), Shape({30, 9})}},
      {"ij,jk->ki", {Shape({7, 3}), Shape({3, 9})}},
      {"ji,kj->ik", {Shape({7, 3}), Shape({4, 7})}},
      {"bhqd,bhkd->bhqk", {Shape({2, 3, 4, 5}), Shape({2, 3, 6, 5})}},
      {"bqhd,bkhd->bhqk", {Shape({2, 3, 4, 5}), Shape({2, 6, 4, 5})}},
      {"bhqk,bkhd->bqhd", {Shape({2, 3, 4, 5}), Shape({2, 5, 3, 6})}},
      // Large enough for the products of 16 bits.
      {"bqhd,bkhd->bhqk", {Shape({1, 33, 2, 32}), Shape({1, 36, 2, 32})}},
      {"bhqk,bkhd->bqhd", {Shape({1, 2, 33, 36}), Shape({1, 36, 2, 32})}},
      {"hdq,hkd->hqk", {Shape({1, 32, 33}), Shape({1, 36, 32})}},
      {"abc,cad->bd", {Shape({2, 3, 4}), Shape({4, 2, 5})}},
      {"ab,cd->acbd", {Shape({2, 3}), Shape({4, 5})}},
      {"ab,ab->ba", {Shape({4, 7}), Shape({4, 7})}},
      {"ab,ab->b", {Shape({4, 7}), Shape({4, 7})}},
      {"ab,a->ab", {Shape({4, 7}), Shape({4})}},
      {"iij,jkk->ik", {Shape({3, 3, 4}), Shape({4, 5, 5})}},
      {"ia,jb->ij", {Shape({3, 4}), Shape({2, 5})}},
      {"i,j->ijj", {Shape({3}), Shape({2})}},
      {"i,->i", {Shape({3}), Shape()}},
      {"ij,jk->ik", {Shape({3, 0}), Shape({0, 2})}},
      {"ij,jk->ik", {Shape({1, 1}), Shape({1, 1})}},
  };
  for (const ElementType type :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16,
        ElementType::kInt32, ElementType::kInt64}) {
    const bool is_narrow = type == ElementType::kHalf || type == ElementType::kBfloat16;
    for (const auto& c : cases) {
      if (!is_narrow && c.shapes[0].num_elements() > 1000) continue;
      SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", c.equation));
      std::vector<Tensor> operands;
      OpTest op("Einsum", 2);
      op.Attr("equation", c.equation);
      for (const Shape& shape : c.shapes) {
        const double bound = IsFloating(type) ? 1 : 9;
        operands.push_back(
            RandomTensor(type, shape, -bound, bound, static_cast<uint32_t>(operands.size() + 1)));
        op.Input(operands.back());
      }
      ASSERT_EQ(op.Run(), absl::OkStatus());
      const double tolerance = type == ElementType::kHalf       ? 1e-2
                               : type == ElementType::kBfloat16 ? 5e-2
                                                                : 1e-5;
      ExpectNear(op.output(0), NaiveEinsum(c.equation, operands, type), tolerance, tolerance);
    }
  }
}

TEST(Einsum, BroadcastsEllipses) {
  OpTest op("Einsum"), product("BatchMatMulV2");
  const Tensor x = RandomTensor(ElementType::kDouble, Shape({2, 1, 3, 4}), -1, 1, 1);
  const Tensor y = RandomTensor(ElementType::kDouble, Shape({5, 4, 6}), -1, 1, 2);
  op.Attr("equation", "...ij,...jk->...ik").Input(x).Input(y);
  product.Input(x).Input(y);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ASSERT_EQ(product.Run(), absl::OkStatus());
  ExpectNear(op.output(0), product.output(0), 1e-13, 1e-13);
}

TEST(Einsum, RefusesWhatDoesNotFit) {
  const auto run = [](const char* equation, const std::vector<Shape>& shapes) {
    OpTest op("Einsum");
    op.Attr("equation", equation);
    for (const Shape& shape : shapes) op.Input(RandomTensor(ElementType::kFloat, shape, 0, 1));
    return op.Run().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run("ij,jk", {Shape({2, 3}), Shape({3, 2})}), invalid);
  EXPECT_EQ(run("ij->->ij", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("ij->iz", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("ij,jk->ik", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("ij,jk->ik", {Shape({2, 3}), Shape({2, 3})}), invalid);
  EXPECT_EQ(run("ij,ij->ij", {Shape({1, 3}), Shape({2, 3})}), invalid);
  EXPECT_EQ(run("ijk->i", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("...ijk->...i", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("ii->i", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("...i->i", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("......->...", {Shape({2, 3})}), invalid);
  EXPECT_EQ(run("i.->i", {Shape({2})}), invalid);
}

}  // namespace
}  // namespace troupe::testing
