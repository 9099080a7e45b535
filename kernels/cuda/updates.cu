// Optimisers' updates: which file has the rule; AssignAdd and AssignSub.
#include "kernels/cuda/updates.cuh"

namespace troupe::cuda {
namespace {

template <bool kSubtract, typename T>
__global__ void __launch_bounds__(kThreads)
    AssignUpdate(const T* a, const T* b, T* out, int64_t n, int64_t packs) {
  using N = WideType<T>;
  using Pack = UpdatePack<T>;
  const auto combine = [](T x, T y) {
    const N left = static_cast<N>(x), right = static_cast<N>(y);
    return static_cast<T>(kSubtract ? left - right : left + right);
  };
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += step) {
    Pack x = reinterpret_cast<const Pack*>(a)[i];
    const Pack y = reinterpret_cast<const Pack*>(b)[i];
    for (int k = 0; k < Pack::kSize; ++k) x.values[k] = combine(x.values[k], y.values[k]);
    reinterpret_cast<Pack*>(out)[i] = x;
  }
  for (int64_t i = packs * Pack::kSize + first; i < n; i += step) out[i] = combine(a[i], b[i]);
}

template <typename T>
cudaError_t RunAssignUpdate(bool subtract, const void* a, const void* b, void* out, int64_t n,
                            cudaStream_t stream) {
  const bool aligned = Unit().Add(a).Add(b).Add(out).bytes() == 16;
  const int64_t packs = aligned ? n / UpdatePack<T>::kSize : 0;
  return Launch(subtract ? &AssignUpdate<true, T> : &AssignUpdate<false, T>,
                Blocks(packs > 0 ? packs : n), kThreads, stream, static_cast<const T*>(a),
                static_cast<const T*>(b), static_cast<T*>(out), n, packs);
}

cudaError_t RunRule(const UpdateRun& run) {
  switch (run.call.rule) {
    case kFtrl:
    case kFtrlV2:
      return LaunchFtrl(run);
    case kAdaMax:
    case kAdagradDA:
    case kAdamWithAmsgrad:
    case kAddSign:
    case kPowerSign:
    case kProximalAdagrad:
    case kProximalGradientDescent:
      return LaunchRealUpdate(run);
    default:
      return LaunchFieldUpdate(run);
  }
}

}  // namespace

cudaError_t LaunchUpdate(const UpdateCall& call, int64_t n, cudaStream_t stream) {
  // Scalars are looked at even if there are no elements.
  return RunRule({call, n, nullptr, stream});
}

int64_t UpdateRowsScratch(int64_t rows) { return OrderScratch(rows); }

cudaError_t LaunchUpdateRows(const UpdateCall& call, const RowUpdates& rows, void* scratch,
                             cudaStream_t stream) {
  RowOrder order;
  const cudaError_t error =
      OrderIndices(rows.indices, rows.rows, rows.limit, rows.check, scratch, &order, stream);
  return error != cudaSuccess ? error : RunRule({call, rows.width, &order, stream});
}

cudaError_t LaunchAssignUpdate(bool subtract, Number type, const void* a, const void* b, void* out,
                               int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto run = [=](auto tag, int64_t count) {
    return RunAssignUpdate<typename decltype(tag)::Type>(subtract, a, b, out, count, stream);
  };
  // Integers wrap around, with a sign and without; complex numbers are pairs of real ones.
  switch (type) {
    case Number::kInt8:
    case Number::kUint8:
      return run(TypeTag<uint8_t>(), n);
    case Number::kInt16:
    case Number::kUint16:
      return run(TypeTag<uint16_t>(), n);
    case Number::kUint32:
      return run(TypeTag<uint32_t>(), n);
    case Number::kInt64:
    case Number::kUint64:
      return run(TypeTag<uint64_t>(), n);
    case Number::kComplex64:
      return run(TypeTag<float>(), 2 * n);
    case Number::kComplex128:
      return run(TypeTag<double>(), 2 * n);
    default:
      return VisitFloating(type, [&](auto tag) { return run(tag, n); });
  }
}

}  // namespace troupe::cuda
