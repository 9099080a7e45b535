#include "kernels/simd/dispatch.h"

#include <cstdlib>
#include <string>

namespace troupe::simd {

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

const Table* FunctionsFor(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (name == "v4" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return v4::MakeTable();
  }
  if (name == "v3" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) {
    return v3::MakeTable();
  }
#endif
  if (name == "v2") return v2::MakeTable();
  return nullptr;
}

namespace {

struct Choice {
  std::string_view name;
  const Table* table;
};

const Choice& Chosen() {
  static const Choice choice = [] {
    const char* wanted = std::getenv("TROUPE_ISA");
    if (wanted != nullptr) {
      for (std::string_view name : {"v4", "v3", "v2"}) {
        const Table* table = name == wanted ? FunctionsFor(name) : nullptr;
        if (table != nullptr) return Choice{name, table};
      }
    }
    for (std::string_view name : {"v4", "v3"}) {
      if (const Table* table = FunctionsFor(name)) return Choice{name, table};
    }
    return Choice{"v2", FunctionsFor("v2")};
  }();
  return choice;
}

}  // namespace

const Table& Functions() { return *Chosen().table; }

std::string_view InstructionSet() { return Chosen().name; }

Type TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return kF32;
    case ElementType::kDouble:
      return kF64;
    case ElementType::kInt32:
      return kI32;
    case ElementType::kInt64:
      return kI64;
    case ElementType::kHalf:
      return kF16;
    case ElementType::kBfloat16:
      return kBF16;
    default:
      return kNumTypes;
  }
}

CastType CastTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return kCastF32;
    case ElementType::kDouble:
      return kCastF64;
    case ElementType::kInt32:
      return kCastI32;
    case ElementType::kInt64:
      return kCastI64;
    case ElementType::kHalf:
      return kCastF16;
    case ElementType::kBfloat16:
      return kCastBF16;
    case ElementType::kUint8:
      return kCastU8;
    case ElementType::kBool:
      return kCastBool;
    default:
      return kNumCastTypes;
  }
}

}  // namespace troupe::simd
