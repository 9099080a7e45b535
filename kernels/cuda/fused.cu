// Programs of element-wise functions.
#include "kernels/cuda/fused.h"

#include "kernels/cuda/functions.cuh"

namespace troupe::cuda {
namespace {

constexpr int kFusedThreads = 128;
/// Of a multiprocessor: what its registers and slots allow.
template <typename W>
constexpr int kFusedBlocks = std::is_same_v<W, double> ? 7 : 8;
constexpr int kAtOnce = 4;  ///< Loads that are under way.

/// What threads are told.
struct Arguments {
  FusedProgram program;
  const void* operands[FusedProgram::kMostOperands];
  void* outputs[FusedProgram::kMostOutputs];
  int64_t n;
  int rank;
  bool packed, small;
  Divisor sizes[FusedProgram::kMostDims];
  int64_t strides[FusedProgram::kMostOperands][FusedProgram::kMostDims];

  /// Where the output's element `i` is in an operand.
  __device__ int64_t At(int operand, int64_t i) const {
    if (rank == 1) return i * strides[operand][0];
    return small ? Sum<true>(strides[operand], i) : Sum<false>(strides[operand], i);
  }

 private:
  template <bool kSmall>
  __device__ int64_t Sum(const int64_t* stride, int64_t i) const {
    int64_t at = 0, index;
#pragma unroll 1  // Registers are few.
    for (int d = rank - 1; d > 0; --d) {
      i = sizes[d].template Divide<kSmall>(i, &index);
      at += index * stride[d];
    }
    return at + i * stride[0];
  }
};

template <typename W>
inline constexpr int kSize = 16 / static_cast<int>(sizeof(W));
template <typename W>
using Values = Packed<W, kSize<W>>;

/// Calls fn with the type, one that is computed in W.
template <typename W, typename Fn>
__device__ void Visit(Number type, Fn fn) {
  if (type == Number::kBool) return fn(bool());
  if constexpr (std::is_same_v<W, double>) {
    fn(double());
  } else {
    if (type == Number::kHalf) return fn(__half());
    if (type == Number::kBfloat16) return fn(__nv_bfloat16());
    fn(float());
  }
}

/// Bytes of elements as they are in memory: nothing waits for them until they are converted.
struct Raw {
  uint32_t words[4];
};

template <typename T, int kCount>
__device__ Raw ToRaw(const Packed<T, kCount>& elements) {
  Raw raw{};
  memcpy(&raw, &elements, sizeof(elements));
  return raw;
}

/// Elements of unsigned integers of their size.
template <typename W, typename U>
__device__ Raw LoadAs(const Arguments& arguments, int operand, int64_t i, int count) {
  using Elements = Packed<U, kSize<W>>;
  const U* const from = static_cast<const U*>(arguments.operands[operand]);
  Elements elements;
  if (!arguments.packed || count < kSize<W>) {
    for (int k = 0; k < kSize<W>; ++k) {
      elements.values[k] = from[arguments.At(operand, i + (k < count ? k : count - 1))];
    }
    return ToRaw(elements);
  }
  const U* const at = from + arguments.At(operand, i);
  if (arguments.strides[operand][arguments.rank - 1] != 0) {
    elements = LoadPacked<kSize<W>>(at, 0);
  } else {
    for (int k = 0; k < kSize<W>; ++k) elements.values[k] = *at;
  }
  return ToRaw(elements);
}
template <typename W>
__device__ Raw Load(const Arguments& arguments, FusedStep step, int64_t i, int count) {
  if (step.type == Number::kBool) return LoadAs<W, uint8_t>(arguments, step.memory, i, count);
  if constexpr (std::is_same_v<W, double>) {
    return LoadAs<W, uint64_t>(arguments, step.memory, i, count);
  } else {
    if (step.type == Number::kFloat) {
      return LoadAs<W, uint32_t>(arguments, step.memory, i, count);
    }
    return LoadAs<W, uint16_t>(arguments, step.memory, i, count);
  }
}
template <typename W>
__device__ Values<W> Convert(Number type, const Raw& raw) {
  Values<W> values;
  Visit<W>(type, [&](auto zero) {
    Packed<decltype(zero), kSize<W>> elements;
    memcpy(&elements, &raw, sizeof(elements));
    for (int k = 0; k < kSize<W>; ++k) values.values[k] = static_cast<W>(elements.values[k]);
  });
  return values;
}

template <typename W, typename T>
__device__ void StoreTo(const Arguments& arguments, int output, const Values<W>& values, int64_t i,
                        int count) {
  T* const to = static_cast<T*>(arguments.outputs[output]) + i;
  if (!arguments.packed || count < kSize<W>) {
    for (int k = 0; k < kSize<W>; ++k) {
      if (k < count) to[k] = static_cast<T>(values.values[k]);
    }
    return;
  }
  Packed<T, kSize<W>> elements;
  for (int k = 0; k < kSize<W>; ++k) elements.values[k] = static_cast<T>(values.values[k]);
  StorePacked(elements, to, 0);
}

template <typename Fn, typename W>
__device__ void Unary(const Values<W>& a, Values<W>* to) {
#pragma unroll
  for (int k = 0; k < kSize<W>; ++k) to->values[k] = Fn()(a.values[k]);
}
template <typename Fn, typename W>
__device__ void Binary(const Values<W>& a, const Values<W>& b, Values<W>* to) {
#pragma unroll
  for (int k = 0; k < kSize<W>; ++k) to->values[k] = Fn()(a.values[k], b.values[k]);
}

/// 1 where fn holds, else 0.
template <typename Fn, typename W>
__device__ void Compare(const Values<W>& a, const Values<W>& b, Values<W>* to, Fn fn) {
#pragma unroll
  for (int k = 0; k < kSize<W>; ++k) to->values[k] = static_cast<W>(fn(a.values[k], b.values[k]));
}

template <auto kOp>
constexpr int kCode = static_cast<int>(ToFused(kOp));

template <typename W>
__device__ Values<W> Compute(FusedOp op, const Values<W>& a, const Values<W>& b) {
  Values<W> result = a;
  switch (static_cast<int>(op)) {
#define TROUPE_UNARY(NAME)                           \
  case kCode<UnaryOp::NAME>:                         \
    Unary<UnaryFunction<UnaryOp::NAME>>(a, &result); \
    break
#define TROUPE_BINARY(NAME)                                \
  case kCode<BinaryOp::NAME>:                              \
    Binary<BinaryFunction<BinaryOp::NAME>>(a, b, &result); \
    break
#define TROUPE_GRADIENT(NAME)                                  \
  case kCode<GradientOp::NAME>:                                \
    Binary<GradientFunction<GradientOp::NAME>>(a, b, &result); \
    break
    TROUPE_UNARY(kAbs);
    TROUPE_UNARY(kCeil);
    TROUPE_UNARY(kElu);
    TROUPE_UNARY(kErf);
    TROUPE_UNARY(kExp);
    TROUPE_UNARY(kExpm1);
    TROUPE_UNARY(kFloor);
    TROUPE_UNARY(kInv);
    TROUPE_UNARY(kLog);
    TROUPE_UNARY(kLog1p);
    TROUPE_UNARY(kNeg);
    TROUPE_UNARY(kRelu);
    TROUPE_UNARY(kRelu6);
    TROUPE_UNARY(kRint);
    TROUPE_UNARY(kRsqrt);
    TROUPE_UNARY(kSelu);
    TROUPE_UNARY(kSigmoid);
    TROUPE_UNARY(kSign);
    TROUPE_UNARY(kSoftplus);
    TROUPE_UNARY(kSoftsign);
    TROUPE_UNARY(kSqrt);
    TROUPE_UNARY(kSquare);
    TROUPE_UNARY(kTanh);
    TROUPE_BINARY(kAdd);
    TROUPE_BINARY(kSub);
    TROUPE_BINARY(kMul);
    TROUPE_BINARY(kDiv);
    TROUPE_BINARY(kDivNoNan);
    TROUPE_BINARY(kMaximum);
    TROUPE_BINARY(kMinimum);
    TROUPE_BINARY(kPow);
    TROUPE_BINARY(kSquaredDifference);
    TROUPE_GRADIENT(kInv);
    TROUPE_GRADIENT(kRsqrt);
    TROUPE_GRADIENT(kSigmoid);
    TROUPE_GRADIENT(kSqrt);
    TROUPE_GRADIENT(kTanh);
    TROUPE_GRADIENT(kElu);
    TROUPE_GRADIENT(kRelu);
    TROUPE_GRADIENT(kRelu6);
    TROUPE_GRADIENT(kSelu);
    TROUPE_GRADIENT(kSoftplus);
    TROUPE_GRADIENT(kSoftsign);
    case static_cast<int>(FusedOp::kLess):
      Compare(a, b, &result, [](W x, W y) { return x < y; });
      break;
    case static_cast<int>(FusedOp::kLessEqual):
      Compare(a, b, &result, [](W x, W y) { return x <= y; });
      break;
    case static_cast<int>(FusedOp::kEqual):
      Compare(a, b, &result, [](W x, W y) { return x == y; });
      break;
    case static_cast<int>(FusedOp::kNotEqual):
      Compare(a, b, &result, [](W x, W y) { return x != y; });
      break;
    case static_cast<int>(FusedOp::kNot):
      Compare(a, a, &result, [](W x, W) { return x == 0; });
      break;
#undef TROUPE_UNARY
#undef TROUPE_BINARY
#undef TROUPE_GRADIENT
    default:
      break;  // kRound
  }
  return result;
}

/// All threads take the same steps, so that no branch divides a warp. A slot is a thread's own.
template <typename W>
__global__ void __launch_bounds__(kFusedThreads, kFusedBlocks<W>)
    FusedKernel(const Arguments arguments) {
  __shared__ Values<W> slots[FusedProgram::kSlots][kFusedThreads];
  const unsigned mine = threadIdx.x;
  const int64_t packs = (arguments.n + kSize<W> - 1) / kSize<W>;
  const int64_t stride = int64_t{gridDim.x} * kFusedThreads;
  for (int64_t p = int64_t{blockIdx.x} * kFusedThreads + mine; p < packs; p += stride) {
    const int64_t i = p * kSize<W>;
    const int count = arguments.n - i < kSize<W> ? static_cast<int>(arguments.n - i) : kSize<W>;
    const FusedProgram& program = arguments.program;
    Values<W>* const own = &slots[0][mine];
    const auto slot = [&](int s) -> Values<W>& { return own[s * kFusedThreads]; };
    const auto step_at = [&](int s) {  // By one read.
      uint64_t bits;
      memcpy(&bits, &program.steps[s], sizeof(bits));
      return __builtin_bit_cast(FusedStep, bits);
    };
    for (int s = 0; s < program.num_early; s += kAtOnce) {
      Raw raw[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (s + k < program.num_early) raw[k] = Load<W>(arguments, step_at(s + k), i, count);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (s + k >= program.num_early) break;
        const FusedStep step = step_at(s + k);
        slot(step.to) = Convert<W>(step.type, raw[k]);
      }
    }
    Values<W> last{};
    for (int s = program.num_early; s < program.num_steps; ++s) {
      const FusedStep step = step_at(s);
      if (step.op == FusedOp::kLoad) {
        last = Convert<W>(step.type, Load<W>(arguments, step, i, count));
      } else {
        const Values<W> a = step.a == FusedStep::kLast ? last : slot(step.a);
        Values<W> b = last;
        if (step.b < FusedProgram::kSlots) b = slot(step.b);
        if (step.op == FusedOp::kSelect) {
          const Values<W> c = step.c == FusedStep::kLast ? last : slot(step.c);
          for (int k = 0; k < kSize<W>; ++k) {
            last.values[k] = a.values[k] != 0 ? b.values[k] : c.values[k];
          }
        } else {
          last = Compute(step.op, a, b);
        }
        Visit<W>(step.type, [&](auto type) {
          using T = decltype(type);
          for (W& value : last.values) value = static_cast<W>(static_cast<T>(value));
          if (step.memory != FusedStep::kNone) {
            StoreTo<W, T>(arguments, step.memory, last, i, count);
          }
        });
      }
      if (step.to != FusedStep::kNone) slot(step.to) = last;
    }
  }
}

template <typename W>
cudaError_t Run(const FusedCall& call, cudaStream_t stream) {
  Arguments arguments;
  arguments.program = call.program;
  arguments.n = call.n;
  arguments.rank = call.rank;
  arguments.small = IsSmall(call.n);
  const int last = call.rank - 1;
  for (int d = 0; d < call.rank; ++d) arguments.sizes[d] = Divisor(call.sizes[d]);
  // A pack must be aligned, in the largest of the types, and not reach over the end of a row.
  arguments.packed = call.rank == 1 || call.sizes[last] % kSize<W> == 0;
  const auto aligned = [](const void* data) {
    return reinterpret_cast<uintptr_t>(data) % sizeof(Values<W>) == 0;
  };
  for (int o = 0; o < call.num_outputs; ++o) {
    arguments.outputs[o] = call.outputs[o];
    arguments.packed = arguments.packed && aligned(call.outputs[o]);
  }
  for (int k = 0; k < call.num_operands; ++k) {
    arguments.operands[k] = call.operands[k];
    for (int d = 0; d < call.rank; ++d) arguments.strides[k][d] = call.strides[k][d];
    if (call.strides[k][last] == 0) continue;
    arguments.packed = arguments.packed && aligned(call.operands[k]);
    for (int d = 0; d < last; ++d) {
      arguments.packed = arguments.packed && call.strides[k][d] % kSize<W> == 0;
    }
  }
  const int64_t packs = (call.n + kSize<W> - 1) / kSize<W>;
  const auto blocks = static_cast<unsigned>(
      std::clamp<int64_t>((packs + kFusedThreads - 1) / kFusedThreads, 1, 8192));
  return Launch(&FusedKernel<W>, blocks, kFusedThreads, stream, arguments);
}

}  // namespace

cudaError_t LaunchFused(bool in_double, const FusedCall& call, cudaStream_t stream) {
  if (call.n == 0) return cudaSuccess;
  return in_double ? Run<double>(call, stream) : Run<float>(call, stream);
}

}  // namespace troupe::cuda
