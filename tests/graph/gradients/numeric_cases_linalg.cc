#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

namespace {

void AddProductCases(std::vector<Case>* cases) {
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      const Shape x = a ? Shape({3, 2}) : Shape({2, 3}), y = b ? Shape({4, 3}) : Shape({3, 4});
      cases->push_back({"MatMul", {X(x), X(y)}, Bools({{"transpose_a", a}, {"transpose_b", b}})});
      Shape bx = x, by = y;
      bx.InsertDim(0, 2);
      by.InsertDim(0, 2);
      const Attrs attrs = Bools({{"adj_x", a}, {"adj_y", b}});
      cases->push_back({"BatchMatMul", {X(bx), X(by)}, attrs});
      cases->push_back({"BatchMatMulV2", {X(bx), X(by)}, attrs});
      cases->push_back({"BatchMatMulV2", {X(bx), X(y)}, attrs});
      bx.InsertDim(1, 1);
      cases->push_back({"BatchMatMulV2", {X(bx), X(by)}, attrs});
    }
  }
}

void AddMatrixCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  add({"MatrixBandPart", {X({2, 3, 4}), I(1), I(0)}});
  add({"MatrixBandPart", {X({3, 3}), I(-1), I(1)}});
  add({"MatrixDiag", {X({2, 3})}});
  add({"MatrixDiagPart", {X({2, 3, 3})}});
  add({"MatrixDiagPart", {X({2, 4, 3})}});
  add({"MatrixSetDiag", {X({2, 3, 4}), X({2, 3})}});
  for (bool adjoint : {false, true}) {
    add({"MatrixInverse", {Distinct({2, 3, 3})}, Bools({{"adjoint", adjoint}})});
    add({"MatrixSolve", {Distinct({2, 3, 3}), X({2, 3, 2})}, Bools({{"adjoint", adjoint}})});
    for (bool lower : {false, true}) {
      const Attrs attrs = Bools({{"lower", lower}, {"adjoint", adjoint}});
      add({"MatrixTriangularSolve", {X({3, 3}, 1, 2), X({3, 2})}, attrs});
      add({"MatrixTriangularSolve", {X({2, 3, 3}, 1, 2), X({3, 2})}, attrs});
      add({"MatrixTriangularSolve", {X({1, 2, 2}, 1, 2), X({2, 3, 2, 1})}, attrs});
    }
  }
}

void AddBandCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  const In zero = C(Tensor::Scalar<double>(0));
  for (const char* align : {"LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"}) {
    const Attrs attrs = Text("align", align);
    add({"MatrixDiagV3", {X({2, 3, 3}), I({-1, 1}), I(3), I(4), zero}, attrs});
    add({"MatrixDiagPartV3", {X({2, 3, 4}), I({-2, 1}), zero}, attrs});
    add({"MatrixSetDiagV3", {X({2, 4, 3}), X({2, 3, 3}), I({-1, 1})}, attrs});
  }
  add({"MatrixDiagV2", {X({2, 3}), I(1), I(-1), I(-1), zero}});
  add({"MatrixDiagPartV2", {X({3, 4}), I({0, 1}), zero}});
  add({"MatrixSetDiagV2", {X({3, 4}), X({2}), I(-1)}});
  for (bool adjoint : {false, true}) {
    for (bool lower : {false, true}) {
      const Attrs attrs = Bools({{"lower", lower}, {"adjoint", adjoint}});
      add({"BandedTriangularSolve", {X({2, 4}, 1, 2), X({4, 3})}, attrs});
      add({"BandedTriangularSolve", {X({1, 3}, 1, 2), X({2, 3, 1})}, attrs});
    }
  }
}

void AddFactorCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  add({"BatchMatMulV3", {X({2, 3, 4}), X({4, 2})}, Type("Tout", ElementType::kDouble)});
  add({"Cross", {X({2, 3}), X({2, 3})}});
  add({"LogMatrixDeterminant", {Distinct({2, 3, 3})}, nullptr, {}, {1}});
  add({"MatrixDeterminant", {Distinct({2, 3, 3})}});
  const In l2 = C(Tensor::Scalar<double>(0.25));
  add({"MatrixSolveLs", {X({2, 4, 3}), X({2, 4, 2}), l2}});
  add({"MatrixSolveLs", {X({3, 4}), X({3, 2}), l2}});
  add({"Qr", {Distinct({2, 4, 3})}});
  add({"Qr", {Distinct({3, 3})}, Bools({{"full_matrices", true}})});
  add({"Qr", {Distinct({2, 3})}});
  Case sparse = {"SparseMatMul", {X({2, 3}), X({4, 3})}, Bools({{"transpose_b", true}})};
  sparse.type = kFloat;
  add(sparse);
  add({"SelfAdjointEigV2", {Distinct({3, 3})}});
  add({"SelfAdjointEigV2", {Distinct({3, 3})}, Bools({{"compute_v", false}}), {}, {0}});
  add({"Svd", {Distinct({3, 3})}});
  add({"Svd", {Distinct({4, 3})}});
  add({"Svd", {Distinct({3, 4})}, Bools({{"full_matrices", true}})});
  add({"Svd", {Distinct({2, 2, 3})}, Bools({{"compute_uv", false}}), {}, {0}});
}

void AddEinsumCases(std::vector<Case>* cases) {
  const auto unary = [&](const char* equation, const Shape& x) {
    cases->push_back({"Einsum", {X(x)}, Text("equation", equation), {1}});
  };
  const auto binary = [&](const char* equation, const Shape& x, const Shape& y) {
    cases->push_back({"Einsum", {X(x), X(y)}, Text("equation", equation), {2}});
  };
  unary("iij->j", {3, 3, 2});
  unary("i...j->...i", {2, 3, 2});
  unary("ii->", {3, 3});
  unary("i->ii", {3});
  binary("ij,jk->ki", {2, 3}, {3, 4});
  binary("a...b,bc->...c", {2, 3, 2}, {2, 2});
  binary("...ij,...jk->...ik", {2, 1, 2, 3}, {3, 3, 2});
  binary("iij,jkk->ik", {2, 2, 3}, {3, 2, 2});
  binary("ia,jb->ij", {2, 3}, {2, 2});
}

}  // namespace

void AddLinalgCases(std::vector<Case>* cases) {
  AddProductCases(cases);
  AddMatrixCases(cases);
  AddBandCases(cases);
  AddFactorCases(cases);
  AddEinsumCases(cases);
}

}  // namespace troupe::numeric
