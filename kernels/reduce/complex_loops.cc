#include <complex>

#include "kernels/reduce/generic_loops.h"

namespace troupe::internal {
namespace {

template <typename T>
ReduceLoops ComplexLoops(Reduction op) {
  switch (op) {
    case Reduction::kSum:
      return Loops<SumOf, T>(false);
    case Reduction::kMean:
      return Loops<SumOf, T>(true);
    case Reduction::kProd:
      return Loops<ProdOf, T>(false);
    default:
      return {};
  }
}

}  // namespace

ReduceLoops ComplexReduce(Reduction op, ElementType type) {
  return type == ElementType::kComplex64 ? ComplexLoops<complex64>(op)
                                         : ComplexLoops<complex128>(op);
}

}  // namespace troupe::internal
