// Slices added to others by index, and the like. Rows of one slice come in their order: the result
// has the same bits every time.
#include "kernels/cuda/division.cuh"
#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/row_order.cuh"

namespace troupe::cuda {
namespace {

template <CombineOp kOp, typename N>
__device__ N Combined(N a, N b) {
  if constexpr (kOp == CombineOp::kMin) return b < a ? b : a;
  if constexpr (kOp == CombineOp::kMax) return a < b ? b : a;
  if constexpr (kOp == CombineOp::kAdd) return static_cast<N>(a + b);
  if constexpr (kOp == CombineOp::kSubtract) return static_cast<N>(a - b);
  if constexpr (kOp == CombineOp::kMultiply) {
    // 16-bit factors would be multiplied as signed integers.
    if constexpr (std::is_same_v<N, uint16_t>) return static_cast<N>(uint32_t{a} * b);
    return static_cast<N>(a * b);
  }
  if constexpr (kOp == CombineOp::kDivide) {
    // The least number of its type has no counterpart: it wraps around.
    if constexpr (std::is_integral_v<N> && std::is_signed_v<N>) {
      using U = std::make_unsigned_t<N>;
      if (b == -1) return static_cast<N>(U(0) - static_cast<U>(a));
    }
    return static_cast<N>(a / b);
  }
}

/// What goes with the updates of a launch.
struct CombineCheck {
  bool skips_zero;
  LateCheck zero;
};

/// Updates: a row for each slot, or one number for all, of so many parts (a complex one has two).
struct CombineUpdates {
  const void* at;
  int parts_for_all;  ///< 0: rows.
};

template <CombineOp kOp, typename T>
__global__ void __launch_bounds__(kThreads)
    Combine(RowOrder order, Divisor inner, int64_t width, CombineUpdates from, T* out,
            CombineCheck check) {
  using N = WideType<T>;
  const T* const updates = static_cast<const T*>(from.at);
  const int64_t n = order.rows * width, step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t k = inner.template Divide<false>(i, &column), slot = FirstSlotAt(order, k);
    if (slot < 0) continue;
    T* const to = &out[slot * width + column];
    N value = static_cast<N>(*to);
    for (int64_t next = k; next < order.rows; next = NextOf(order, slot, next)) {
      const int64_t at = from.parts_for_all > 0 ? column % from.parts_for_all
                                                : RowAt(order, next) * width + column;
      const N update = static_cast<N>(updates[at]);
      if constexpr (kOp == CombineOp::kDivide) {
        if (check.skips_zero && update == N(0)) {
          ReportLate(check.zero, at);
          continue;
        }
      }
      value = Combined<kOp, N>(value, update);
    }
    *to = static_cast<T>(value);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    FindZero(const T* divisors, int64_t n, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    if (static_cast<WideType<T>>(divisors[i]) == WideType<T>(0)) ReportLate(check, i);
  }
}

struct CombineRun {
  RowOrder order;
  int64_t width;
  CombineUpdates updates;
  void* out;
  CombineCheck check;
  cudaStream_t stream;
};

template <CombineOp kOp, typename T>
cudaError_t Run(const CombineRun& run) {
  return Launch(&Combine<kOp, T>, Blocks(run.order.rows * run.width), kThreads, run.stream,
                run.order, Divisor(run.width), run.width, run.updates, static_cast<T*>(run.out),
                run.check);
}

/// With a sign and without, results are the same: integers wrap around.
template <CombineOp kOp>
cudaError_t RunModular(Number type, const CombineRun& run) {
  switch (type) {
    case Number::kInt8:
    case Number::kUint8:
      return Run<kOp, uint8_t>(run);
    case Number::kInt16:
    case Number::kUint16:
      return Run<kOp, uint16_t>(run);
    case Number::kInt32:
    case Number::kUint32:
      return Run<kOp, uint32_t>(run);
    case Number::kInt64:
    case Number::kUint64:
      return Run<kOp, uint64_t>(run);
    default:
      return VisitFloating(type,
                           [&](auto tag) { return Run<kOp, typename decltype(tag)::Type>(run); });
  }
}

template <CombineOp kOp>
cudaError_t RunOrdered(Number type, const CombineRun& run) {
  const auto with = [&](auto tag) { return Run<kOp, typename decltype(tag)::Type>(run); };
  const cudaError_t error = VisitInteger(type, with);
  return error == cudaErrorNotSupported ? VisitFloating(type, with) : error;
}

}  // namespace

int64_t CombineScratch(int64_t rows) { return OrderScratch(rows); }

cudaError_t LaunchCombine(CombineOp op, Number type, int64_t* slots, int64_t rows, int64_t inner,
                          const void* updates, bool scalar, void* out, int64_t slices,
                          void* scratch, const LateCheck* zero, cudaStream_t stream) {
  const bool complex = type == Number::kComplex64 || type == Number::kComplex128;
  if (complex) {
    type = type == Number::kComplex64 ? Number::kFloat : Number::kDouble;
    inner *= 2;
  }
  const int parts_for_all = !scalar ? 0 : complex ? 2 : 1;
  CombineRun run{{}, inner, {updates, parts_for_all}, out, {zero != nullptr, {}}, stream};
  if (zero != nullptr) run.check.zero = *zero;
  const cudaError_t error = OrderSlots(slots, rows, slices, scratch, &run.order, stream);
  if (error != cudaSuccess) return error;
  switch (op) {
    case CombineOp::kAdd:
      return RunModular<CombineOp::kAdd>(type, run);
    case CombineOp::kSubtract:
      return RunModular<CombineOp::kSubtract>(type, run);
    case CombineOp::kMultiply:
      return RunModular<CombineOp::kMultiply>(type, run);
    case CombineOp::kDivide:
      return RunOrdered<CombineOp::kDivide>(type, run);
    case CombineOp::kMin:
      return RunOrdered<CombineOp::kMin>(type, run);
    default:
      return RunOrdered<CombineOp::kMax>(type, run);
  }
}

cudaError_t LaunchFindZero(Number type, const void* divisors, int64_t n, const LateCheck& check,
                           cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto with = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&FindZero<T>, Blocks(n), kThreads, stream, static_cast<const T*>(divisors), n,
                  check);
  };
  const cudaError_t error = VisitInteger(type, with);
  return error == cudaErrorNotSupported ? VisitFloating(type, with) : error;
}

}  // namespace troupe::cuda
