#include "kernels/simd/gemm.h"

namespace troupe {
namespace {

template <typename T>
GemmFunctions<T> Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) return {v4::GemmPanelColumns(T()), v4::GemmTile};
  if (__builtin_cpu_supports("x86-64-v3")) return {v3::GemmPanelColumns(T()), v3::GemmTile};
#endif
  return {v2::GemmPanelColumns(T()), v2::GemmTile};
}

}  // namespace

template <>
const GemmFunctions<float>& Gemm<float>() {
  static const GemmFunctions<float> functions = Choose<float>();
  return functions;
}

template <>
const GemmFunctions<double>& Gemm<double>() {
  static const GemmFunctions<double> functions = Choose<double>();
  return functions;
}

}  // namespace troupe
