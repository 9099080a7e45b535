#include "kernels/simd/select.h"

#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

template <typename T>
SelectFunction<T> Choose() {
#if defined(__x86_64__)
  if (simd::InstructionSet() == "v4") return v4::Select;
  if (simd::InstructionSet() == "v3") return v3::Select;
#endif
  return v2::Select;
}

}  // namespace

SelectFunction<uint32_t> SelectWords() {
  static const SelectFunction<uint32_t> function = Choose<uint32_t>();
  return function;
}
SelectFunction<uint64_t> SelectDoubleWords() {
  static const SelectFunction<uint64_t> function = Choose<uint64_t>();
  return function;
}

}  // namespace troupe
