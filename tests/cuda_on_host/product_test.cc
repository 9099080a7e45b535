// Products of several kinds of cards against the CPU's.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Products : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

constexpr ElementType kTypes[] = {kHalf, kBfloat16, kFloat, kDouble, kComplex64, kComplex128};

/// Sums of up to 100 products of numbers up to 16.
Within WithinFor(ElementType type) {
  switch (type) {
    case kHalf:
      return {2, 0.1};
    case kBfloat16:
      return {2, 0.5};
    case kFloat:
    case kComplex64:
      return {64, 1e-3};
    default:
      return {64, 1e-11};
  }
}

Tensor Some(ElementType type, std::vector<int64_t> dims, uint64_t seed) {
  return Numbers(type, Shape(dims), seed, Values::kModerate);
}

TEST_F(Products, BatchMatMulV3) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    const auto add = [&](std::vector<int64_t> x, std::vector<int64_t> y, bool adj_x, bool adj_y) {
      both.Add("BatchMatMulV3", {{Some(type, x, 1)}, {Some(type, y, 2)}}, WithinFor(type),
               [=](NodeSpec& node) {
                 node.Attr("adj_x", adj_x).Attr("adj_y", adj_y).Attr("Tout", type);
               });
    };
    add({3, 5}, {5, 4}, false, false);
    add({2, 5, 3}, {2, 5, 4}, true, false);
    add({2, 1, 3, 5}, {3, 4, 5}, false, true);  // Broadcast.
    add({4, 3, 5}, {5, 2}, false, false);       // One right factor for all.
    add({3, 1, 2, 2, 3}, {2, 1, 3, 2}, false, false);
    add({2, 3, 0}, {2, 0, 4}, false, false);
    add({0, 3, 5}, {5, 4}, false, false);
  }
  both.Compare();
}

struct EinsumCase {
  const char* equation;
  std::vector<std::vector<int64_t>> shapes;
};

TEST_F(Products, Einsum) {
  const EinsumCase cases[] = {
      {"ij,jk->ik", {{3, 5}, {5, 4}}},
      {"ij,kj->ki", {{3, 5}, {4, 5}}},
      {"ji,jk->ki", {{5, 3}, {5, 4}}},
      {"bij,bjk->bik", {{2, 3, 5}, {2, 5, 4}}},
      {"bij,jk->bik", {{2, 3, 5}, {5, 4}}},
      // Attention: matrices lie between those of other heads.
      {"bqhd,bkhd->bhqk", {{2, 3, 4, 5}, {2, 6, 4, 5}}},
      {"bhqk,bkhd->bqhd", {{2, 4, 3, 6}, {2, 6, 4, 5}}},
      {"abc,cde->abde", {{2, 3, 4}, {4, 3, 2}}},
      {"abc,cbd->ad", {{2, 3, 4}, {4, 3, 5}}},
      {"abcd,bd->ac", {{2, 3, 2, 5}, {3, 5}}},
      {"i,i->", {{70}, {70}}},
      {"i,j->ij", {{7}, {5}}},
      {"i,j->ji", {{7}, {5}}},
      {"ij,ij->ij", {{3, 5}, {3, 5}}},
      {"ij,ij->ji", {{3, 5}, {3, 5}}},
      {"ij,ij->", {{3, 5}, {3, 5}}},
      {"ij->ji", {{3, 5}}},
      {"ij->i", {{3, 70}}},
      {"ij->j", {{70, 3}}},
      {"ij->", {{6, 7}}},
      {"ii->i", {{5, 5}}},
      {"ii->", {{5, 5}}},
      {"i->ii", {{5}}},
      {"iij,jk->ik", {{3, 3, 5}, {5, 4}}},
      {"ij,jk->ijk", {{3, 5}, {5, 4}}},
      {"ia,jb->ij", {{3, 2}, {4, 5}}},
      {"ij,jk->", {{3, 5}, {5, 4}}},
      {"...ij,...jk->...ik", {{2, 1, 3, 5}, {4, 5, 2}}},
      {"...ij->...ji", {{2, 3, 5}}},
      {"i...,j->j...", {{3, 2, 5}, {4}}},
      {"ij,jk->ik", {{3, 0}, {0, 4}}},
      {"ij,jk->ik", {{0, 3}, {3, 4}}},
      {"ij,jk->ik", {{1, 5}, {5, 1}}},
      {"ij,jk->ik", {{4, 1}, {1, 3}}},
  };
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const EinsumCase& one : cases) {
      std::vector<Operand> operands;
      uint64_t seed = 1;
      for (const auto& dims : one.shapes) operands.push_back({Some(type, dims, seed++)});
      both.AddList("Einsum", operands, WithinFor(type),
                   [&](NodeSpec& node) { node.Attr("equation", std::string(one.equation)); });
      for (Operand& operand : operands) operand.as = Operand::kView;
      both.AddList("Einsum", operands, WithinFor(type),
                   [&](NodeSpec& node) { node.Attr("equation", std::string(one.equation)); });
    }
  }
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing
