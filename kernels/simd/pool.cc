#include "kernels/simd/pool.h"

namespace troupe {
namespace {

PoolFunctions Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) return v4::PoolTable();
  if (__builtin_cpu_supports("x86-64-v3")) return v3::PoolTable();
#endif
  return v2::PoolTable();
}

}  // namespace

const PoolFunctions& Pool() {
  static const PoolFunctions functions = Choose();
  return functions;
}

}  // namespace troupe
