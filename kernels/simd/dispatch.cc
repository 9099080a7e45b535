#include "kernels/simd/dispatch.h"

#include <utility>

#include "kernels/simd/add_scaled.h"
#include "kernels/simd/batch_norm.h"
#include "kernels/simd/bits.h"
#include "kernels/simd/bytes.h"
#include "kernels/simd/colors.h"
#include "kernels/simd/complex.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/depthwise.h"
#include "kernels/simd/fft.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/lrn.h"
#include "kernels/simd/lstm.h"
#include "kernels/simd/pool.h"
#include "kernels/simd/quantize.h"
#include "kernels/simd/random.h"
#include "kernels/simd/resize.h"
#include "kernels/simd/rotate.h"
#include "kernels/simd/select.h"
#include "kernels/simd/special.h"
#include "kernels/simd/updates.h"
#include "kernels/simd/volume_pool.h"

// The function NAME of each variant that was compiled.
#if defined(__x86_64__)
#define TROUPE_VARIANTS(NAME) v2::NAME, v3::NAME, v4::NAME
#else
#define TROUPE_VARIANTS(NAME) v2::NAME
#endif

namespace troupe {
namespace {

// F says which one is meant where NAME is overloaded.
template <typename F>
F Pick(InstructionSet set, F v2, F v3 = nullptr, F v4 = nullptr) {
  return set == InstructionSet::kV4 ? v4 : set == InstructionSet::kV3 ? v3 : v2;
}
template <typename F>
F Active(F v2, F v3 = nullptr, F v4 = nullptr) {
  return Pick<F>(ActiveInstructionSet(), v2, v3, v4);
}

template <typename T>
const GemmFunctions<T>& ActiveGemm() {
  static const GemmFunctions<T> functions = {
      Active<int (*)(T)>(TROUPE_VARIANTS(GemmPanelColumns))(T()),
      Active<decltype(GemmFunctions<T>::tile)>(TROUPE_VARIANTS(GemmTile))};
  return functions;
}

template <typename R>
const FftFunctions<R>& ActiveFft() {
  static const FftFunctions<R> functions = {
      Active<decltype(FftFunctions<R>::pass)>(TROUPE_VARIANTS(RunFftPass)),
      Active<decltype(FftFunctions<R>::multiply)>(TROUPE_VARIANTS(MultiplyFftLines))};
  return functions;
}

// Functions for float, half and bfloat16, from those of a type.
template <typename Functions>
class FloatTables {
 public:
  explicit FloatTables(Functions (*table)(simd::Type))
      : tables_{table(simd::kF32), table(simd::kF16), table(simd::kBF16)} {}
  const Functions& For(simd::Type type) const {
    return tables_[type == simd::kF16 ? 1 : type == simd::kBF16 ? 2 : 0];
  }

 private:
  Functions tables_[3];
};

template <typename T>
const UpdateFunctions<T>& ActiveUpdates() {
  static const UpdateFunctions<T> functions = [] {
    UpdateFunctions<T> filled;
    Active<void (*)(UpdateFunctions<T>*)>(TROUPE_VARIANTS(FillUpdates))(&filled);
    return filled;
  }();
  return functions;
}

}  // namespace

template <>
const FftFunctions<float>& Fft<float>() {
  return ActiveFft<float>();
}
template <>
const FftFunctions<double>& Fft<double>() {
  return ActiveFft<double>();
}

template <>
const GemmFunctions<float>& Gemm<float>() {
  return ActiveGemm<float>();
}
template <>
const GemmFunctions<double>& Gemm<double>() {
  return ActiveGemm<double>();
}
template <>
const GemmFunctions<uint16_t>& Gemm<uint16_t>() {
  return ActiveGemm<uint16_t>();
}
template <>
const GemmFunctions<uint32_t>& Gemm<uint32_t>() {
  return ActiveGemm<uint32_t>();
}
template <>
const GemmFunctions<uint64_t>& Gemm<uint64_t>() {
  return ActiveGemm<uint64_t>();
}

template <>
const UpdateFunctions<float>& Updates<float>() {
  return ActiveUpdates<float>();
}
template <>
const UpdateFunctions<double>& Updates<double>() {
  return ActiveUpdates<double>();
}
template <>
const UpdateFunctions<half>& Updates<half>() {
  return ActiveUpdates<half>();
}
template <>
const UpdateFunctions<bfloat16>& Updates<bfloat16>() {
  return ActiveUpdates<bfloat16>();
}

using FillComplex = void (*)(ComplexFunctions*);
const ComplexFunctions& FloatComplex() {
  static const ComplexFunctions functions = [] {
    ComplexFunctions filled;
    Active<FillComplex>(TROUPE_VARIANTS(FillFloatComplex))(&filled);
    return filled;
  }();
  return functions;
}
const ComplexFunctions& DoubleComplex() {
  static const ComplexFunctions functions = [] {
    ComplexFunctions filled;
    Active<FillComplex>(TROUPE_VARIANTS(FillDoubleComplex))(&filled);
    return filled;
  }();
  return functions;
}

const ConvFunctions& NarrowConv() {
  static const ConvFunctions functions = Active(TROUPE_VARIANTS(ConvTable))();
  return functions;
}

const DepthwiseFunctions& Depthwise() {
  static const DepthwiseFunctions functions = Active(TROUPE_VARIANTS(DepthwiseTable))();
  return functions;
}

AddScaledFn AddScaled(simd::Type type) {
  static const FloatTables<AddScaledFn> tables(Active(TROUPE_VARIANTS(AddScaledFor)));
  return tables.For(type);
}

const BatchNormFunctions& BatchNorm(simd::Type type) {
  static const FloatTables<BatchNormFunctions> tables(Active(TROUPE_VARIANTS(BatchNormTable)));
  return tables.For(type);
}

const BytesFunctions& Bytes() {
  static const BytesFunctions functions = Active(TROUPE_VARIANTS(BytesTable))();
  return functions;
}

const PoolFunctions& Pool() {
  static const PoolFunctions functions = Active(TROUPE_VARIANTS(PoolTable))();
  return functions;
}

const VolumePoolFunctions& VolumePool(simd::Type type) {
  static const FloatTables<VolumePoolFunctions> tables(Active(TROUPE_VARIANTS(VolumePoolTable)));
  return tables.For(type);
}

const LstmFunctions& Lstm() {
  static const LstmFunctions functions = Active(TROUPE_VARIANTS(LstmTable))();
  return functions;
}

const LrnFunctions& Lrn() {
  static const LrnFunctions functions = Active(TROUPE_VARIANTS(LrnTable))();
  return functions;
}

const ColorFunctions& Colors() {
  static const ColorFunctions functions = Active(TROUPE_VARIANTS(ColorTable))();
  return functions;
}

const ResizeFunctions& Resize() {
  static const ResizeFunctions functions = Active(TROUPE_VARIANTS(ResizeTable))();
  return functions;
}

const BitFunctions& Bits() {
  static const BitFunctions functions = Active(TROUPE_VARIANTS(BitTable))();
  return functions;
}

const QuantizeFunctions& Quantization() {
  static const QuantizeFunctions functions = Active(TROUPE_VARIANTS(QuantizeTable))();
  return functions;
}

const RandomFunctions& Random() {
  static const RandomFunctions functions = {Active(TROUPE_VARIANTS(RandomWords)),
                                            Active(TROUPE_VARIANTS(RandomUniform)),
                                            Active(TROUPE_VARIANTS(RandomNormal))};
  return functions;
}

const SpecialFunctions& Special() {
  static const SpecialFunctions functions = Active(TROUPE_VARIANTS(SpecialTable))();
  return functions;
}

template <>
RotateRowsFn<float> RotateRows<float>() {
  static const auto function = Active<RotateRowsFn<float>>(TROUPE_VARIANTS(RotateAll));
  return function;
}
template <>
RotateRowsFn<double> RotateRows<double>() {
  static const auto function = Active<RotateRowsFn<double>>(TROUPE_VARIANTS(RotateAll));
  return function;
}

template <typename T>
SelectFunction<T> SelectElements() {
  return Active<SelectFunction<T>>(TROUPE_VARIANTS(Select));
}
template SelectFunction<uint8_t> SelectElements();
template SelectFunction<uint16_t> SelectElements();
template SelectFunction<uint32_t> SelectElements();
template SelectFunction<uint64_t> SelectElements();

namespace simd {

#define TROUPE_DECLARE_VARIANT(ISA)    \
  namespace ISA {                      \
  void FillUnary(Table* table);        \
  void FillBinaryFloat(Table* table);  \
  void FillBinaryDouble(Table* table); \
  void FillBinaryInt(Table* table);    \
  void FillReduce(Table* table);       \
  void FillRows(Table* table);         \
  void FillCast(Table* table);         \
  static const Table* MakeTable() {    \
    static const Table table = [] {    \
      Table t;                         \
      FillUnary(&t);                   \
      FillBinaryFloat(&t);             \
      FillBinaryDouble(&t);            \
      FillBinaryInt(&t);               \
      FillReduce(&t);                  \
      FillRows(&t);                    \
      FillCast(&t);                    \
      return t;                        \
    }();                               \
    return &table;                     \
  }                                    \
  }

TROUPE_DECLARE_VARIANT(v2)
#if defined(__x86_64__)
TROUPE_DECLARE_VARIANT(v3)
TROUPE_DECLARE_VARIANT(v4)
#endif
#undef TROUPE_DECLARE_VARIANT

const Table* FunctionsFor(InstructionSet set) {
  return CanRun(set) ? Pick(set, TROUPE_VARIANTS(MakeTable))() : nullptr;
}

const Table& Functions() {
  static const Table& functions = *Active(TROUPE_VARIANTS(MakeTable))();
  return functions;
}

namespace {
template <typename To, size_t kSize>
To Find(const std::pair<ElementType, To> (&pairs)[kSize], ElementType type, To none) {
  for (const auto& [from, to] : pairs) {
    if (from == type) return to;
  }
  return none;
}
}  // namespace

Type TypeOf(ElementType type) {
  static constexpr std::pair<ElementType, Type> kTypes[] = {
      {ElementType::kFloat, kF32}, {ElementType::kDouble, kF64}, {ElementType::kInt32, kI32},
      {ElementType::kInt64, kI64}, {ElementType::kHalf, kF16},   {ElementType::kBfloat16, kBF16}};
  return Find(kTypes, type, kNumTypes);
}

CastType CastTypeOf(ElementType type) {
  static constexpr std::pair<ElementType, CastType> kTypes[] = {
      {ElementType::kFloat, kCastF32}, {ElementType::kDouble, kCastF64},
      {ElementType::kInt32, kCastI32}, {ElementType::kInt64, kCastI64},
      {ElementType::kHalf, kCastF16},  {ElementType::kBfloat16, kCastBF16},
      {ElementType::kUint8, kCastU8},  {ElementType::kBool, kCastBool}};
  return Find(kTypes, type, kNumCastTypes);
}

}  // namespace simd
}  // namespace troupe
