/// From functions of values to a program of steps.
#ifndef TROUPE_KERNELS_CUDA_FUSED_PROGRAM_H_
#define TROUPE_KERNELS_CUDA_FUSED_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cuda/fused.h"

namespace troupe::cuda {

/// A function of up to three values, which are numbered: operands first, then results.
struct FusedFunction {
  FusedOp op;
  Number type;  ///< To which the result is rounded.
  int a;
  int b = -1, c = -1;  ///< -1: there is none.
};

/// A program that stores output o, the value `outputs[o]` (a result; no two are the same), and
/// computes only what is needed for that. `types`: of the operands. Which operand may be
/// overwritten by which output: see `LastLoad` and `StoreOf`. nullopt: it does not fit.
std::optional<FusedProgram> MakeFusedProgram(const std::vector<Number>& types,
                                             const std::vector<FusedFunction>& functions,
                                             const std::vector<int>& outputs);

/// The step that loads an operand last, -1 if none does, and that which stores an output.
int LastLoad(const FusedProgram& program, int operand);
int StoreOf(const FusedProgram& program, int output);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FUSED_PROGRAM_H_
