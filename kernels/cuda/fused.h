/// Several element-wise functions in one launch: a program that each thread carries out.
#ifndef TROUPE_KERNELS_CUDA_FUSED_H_
#define TROUPE_KERNELS_CUDA_FUSED_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// Steps of programs: functions of each kind from its number on; kRound, which only rounds; loads;
/// what is 1 if it holds and 0 if not; kSelect, which is its second operand where the first one is
/// not 0, else the third one.
enum class FusedOp : uint8_t {
  kUnary = 0,
  kBinary = 64,
  kGradient = 96,
  kRound = 128,
  kLoad,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kNot,
  kSelect,
};
constexpr FusedOp ToFused(UnaryOp op) { return FusedOp(static_cast<uint8_t>(op)); }
constexpr FusedOp ToFused(BinaryOp op) {
  return FusedOp(static_cast<uint8_t>(FusedOp::kBinary) + static_cast<uint8_t>(op));
}
constexpr FusedOp ToFused(GradientOp op) {
  return FusedOp(static_cast<uint8_t>(FusedOp::kGradient) + static_cast<uint8_t>(op));
}
/// Whether programs have it.
constexpr bool CanFuse(UnaryOp op) {
  switch (op) {
    case UnaryOp::kAbs:
    case UnaryOp::kCeil:
    case UnaryOp::kElu:
    case UnaryOp::kErf:
    case UnaryOp::kExp:
    case UnaryOp::kExpm1:
    case UnaryOp::kFloor:
    case UnaryOp::kInv:
    case UnaryOp::kLog:
    case UnaryOp::kLog1p:
    case UnaryOp::kNeg:
    case UnaryOp::kRelu:
    case UnaryOp::kRelu6:
    case UnaryOp::kRint:
    case UnaryOp::kRsqrt:
    case UnaryOp::kSelu:
    case UnaryOp::kSigmoid:
    case UnaryOp::kSign:
    case UnaryOp::kSoftplus:
    case UnaryOp::kSoftsign:
    case UnaryOp::kSqrt:
    case UnaryOp::kSquare:
    case UnaryOp::kTanh:
      return true;
    default:
      return false;
  }
}
constexpr bool CanFuse(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kDivNoNan:
    case BinaryOp::kMaximum:
    case BinaryOp::kMinimum:
    case BinaryOp::kPow:
    case BinaryOp::kSquaredDifference:
      return true;
    default:
      return false;
  }
}

/// A program computes in float, or in double; a bool is 0 or 1. Each step leaves its result,
/// rounded to its type, to the next one, and in a slot if a later one needs it.
struct alignas(8) FusedStep {
  static constexpr uint8_t kNone = 255, kLast = 254;
  FusedOp op;
  Number type;
  uint8_t a = kNone, b = kNone, c = kNone;  ///< Slots; kLast: what the step before has left.
  uint8_t to = kNone;                       ///< Slot.
  uint8_t memory = kNone;  ///< A load's operand, or the output that the result is stored in.
};
struct FusedProgram {
  static constexpr int kMostSteps = 96, kMostOperands = 16, kMostOutputs = 8, kSlots = 12;
  static constexpr int kMostDims = 16;
  int num_steps = 0;
  int num_early = 0;  ///< The first steps, which are loads to slots: under way at the same time.
  FusedStep steps[kMostSteps];
};

/// How operands are read to fill outputs that they are broadcast to, as in `Broadcast`.
struct FusedCall {
  FusedProgram program;
  const void* operands[FusedProgram::kMostOperands];
  void* outputs[FusedProgram::kMostOutputs];
  int num_operands = 0;
  int num_outputs = 0;
  int64_t n = 0;  ///< Elements of each output.
  int rank = 0;
  int64_t sizes[FusedProgram::kMostDims];
  int64_t strides[FusedProgram::kMostOperands][FusedProgram::kMostDims];
};

/// Enqueues a program that computes in double, or in float. An output may be an operand of its own
/// type that is not broadcast, if no load of that one comes after the step that gives the output.
cudaError_t LaunchFused(bool in_double, const FusedCall& call, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FUSED_H_
