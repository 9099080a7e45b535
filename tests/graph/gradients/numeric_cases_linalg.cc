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

}  // namespace

void AddLinalgCases(std::vector<Case>* cases) {
  AddProductCases(cases);
  AddMatrixCases(cases);
}

}  // namespace troupe::numeric
