#include "kernels/simd/conv.h"

namespace troupe {
namespace {

ConvFunctions Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) return v4::ConvTable();
  if (__builtin_cpu_supports("x86-64-v3")) return v3::ConvTable();
#endif
  return v2::ConvTable();
}

}  // namespace

const ConvFunctions& NarrowConv() {
  static const ConvFunctions functions = Choose();
  return functions;
}

}  // namespace troupe
