#include "kernels/simd/random.h"

namespace troupe {
namespace {

RandomFunctions Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) {
    return {v4::RandomWords, v4::RandomUniform, v4::RandomNormal};
  }
  if (__builtin_cpu_supports("x86-64-v3")) {
    return {v3::RandomWords, v3::RandomUniform, v3::RandomNormal};
  }
#endif
  return {v2::RandomWords, v2::RandomUniform, v2::RandomNormal};
}

}  // namespace

const RandomFunctions& Random() {
  static const RandomFunctions functions = Choose();
  return functions;
}

}  // namespace troupe
