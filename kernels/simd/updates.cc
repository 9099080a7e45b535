#include "kernels/simd/updates.h"

#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

template <typename T>
UpdateFunctions<T> Choose() {
  UpdateFunctions<T> functions;
#if defined(__x86_64__)
  if (simd::InstructionSet() == "v4") {
    v4::FillUpdates(&functions);
    return functions;
  }
  if (simd::InstructionSet() == "v3") {
    v3::FillUpdates(&functions);
    return functions;
  }
#endif
  v2::FillUpdates(&functions);
  return functions;
}

}  // namespace

template <>
const UpdateFunctions<float>& Updates<float>() {
  static const UpdateFunctions<float> functions = Choose<float>();
  return functions;
}

template <>
const UpdateFunctions<double>& Updates<double>() {
  static const UpdateFunctions<double> functions = Choose<double>();
  return functions;
}

}  // namespace troupe
