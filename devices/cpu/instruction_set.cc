#include "devices/cpu/instruction_set.h"

#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "devices/status_macros.h"

namespace troupe {
namespace {

using enum CpuFeature::Bit;

/// Where the processor tells its features: ecx of CPUID's leaf 1, ebx of leaf 7, ecx of the leaf
/// 0x80000001; and what the operating system saves.
enum Word { kLeaf1, kLeaf7, kExtended, kSystem, kNumWords };

struct Feature {
  uint32_t bit;
  InstructionSet level;  // the first that has it
  Word word;
  int at;            // its bit of the word
  const char* name;  // as in /proc/cpuinfo
};
constexpr auto kV2 = InstructionSet::kV2, kV3 = InstructionSet::kV3, kV4 = InstructionSet::kV4;
constexpr Feature kFeatures[] = {
    {kCmpxchg16b, kV2, kLeaf1, 13, "cx16"},
    {kLahf, kV2, kExtended, 0, "lahf_lm"},
    {kPopcnt, kV2, kLeaf1, 23, "popcnt"},
    {kSse3, kV2, kLeaf1, 0, "pni (SSE3)"},
    {kSsse3, kV2, kLeaf1, 9, "ssse3"},
    {kSse41, kV2, kLeaf1, 19, "sse4_1"},
    {kSse42, kV2, kLeaf1, 20, "sse4_2"},
    {kAvx, kV3, kLeaf1, 28, "avx"},
    {kAvx2, kV3, kLeaf7, 5, "avx2"},
    {kBmi, kV3, kLeaf7, 3, "bmi1"},
    {kBmi2, kV3, kLeaf7, 8, "bmi2"},
    {kF16c, kV3, kLeaf1, 29, "f16c"},
    {kFma, kV3, kLeaf1, 12, "fma"},
    {kLzcnt, kV3, kExtended, 5, "abm (LZCNT)"},
    {kMovbe, kV3, kLeaf1, 22, "movbe"},
    {kSystemSavesYmm, kV3, kSystem, 0, "AVX by the operating system"},
    {kAvx512f, kV4, kLeaf7, 16, "avx512f"},
    {kAvx512bw, kV4, kLeaf7, 30, "avx512bw"},
    {kAvx512cd, kV4, kLeaf7, 28, "avx512cd"},
    {kAvx512dq, kV4, kLeaf7, 17, "avx512dq"},
    {kAvx512vl, kV4, kLeaf7, 31, "avx512vl"},
    {kSystemSavesZmm, kV4, kSystem, 1, "AVX-512 by the operating system"},
};

std::string Missing(uint32_t features, InstructionSet set) {
  std::string names;
  for (const Feature& f : kFeatures) {
    if (f.level > set || (features & f.bit) != 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(f.name);
  }
  return names;
}

std::string_view Wanted() {
  const char* wanted = std::getenv("TROUPE_ISA");
  return wanted == nullptr ? "" : wanted;
}

}  // namespace

std::string_view InstructionSetName(InstructionSet set) {
  return set == kV2 ? "v2" : set == kV3 ? "v3" : "v4";
}

uint32_t RequiredFeatures(InstructionSet set) {
  uint32_t bits = 0;
  for (const Feature& f : kFeatures) {
    if (f.level <= set) bits |= f.bit;
  }
  return bits;
}

uint32_t MachineFeatures() {
#if defined(__x86_64__)
  uint32_t words[kNumWords] = {}, eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) words[kLeaf1] = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) words[kLeaf7] = ebx;
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0) words[kExtended] = ecx;
  const bool has_xgetbv = (words[kLeaf1] >> 27 & 1) != 0;
  if (has_xgetbv) {
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr uint32_t kYmm = 0x6, kZmm = 0xe6;  // the state of SSE, AVX, and AVX-512's three parts
    words[kSystem] = ((low & kYmm) == kYmm ? 1 : 0) | ((low & kZmm) == kZmm ? 2 : 0);
  }
  uint32_t features = 0;
  for (const Feature& f : kFeatures) {
    if ((words[f.word] >> f.at & 1) != 0) features |= f.bit;
  }
  return features;
#else
  return RequiredFeatures(kV2);
#endif
}

absl::StatusOr<InstructionSet> ChooseInstructionSet(uint32_t features, std::string_view wanted) {
  const auto runs = [features](InstructionSet set) {
    return (RequiredFeatures(set) & ~features) == 0;
  };
  if (!runs(kV2)) {
    return absl::FailedPreconditionError(
        StrCat("Troupe needs an x86-64-v2 processor (SSE4.2), but this one lacks ",
               Missing(features, kV2)));
  }
  if (wanted.empty()) return runs(kV4) ? kV4 : runs(kV3) ? kV3 : kV2;
  for (InstructionSet set : kInstructionSets) {
    if (wanted != InstructionSetName(set)) continue;
    if (runs(set)) return set;
    return absl::FailedPreconditionError(StrCat("the instruction set ", wanted,
                                                " (TROUPE_ISA) does not run on this machine, which "
                                                "lacks ",
                                                Missing(features, set),
                                                "; unset TROUPE_ISA to use the best one"));
  }
  return InvalidArgument("TROUPE_ISA must be v2, v3 or v4, or not be set, but is '", wanted, "'");
}

const absl::StatusOr<InstructionSet>& ChosenInstructionSet() {
  static const absl::StatusOr<InstructionSet> chosen =
      ChooseInstructionSet(MachineFeatures(), Wanted());
  return chosen;
}

InstructionSet ActiveInstructionSet() {
  static const InstructionSet active =
      ChosenInstructionSet().ok() ? *ChosenInstructionSet()
                                  : ChooseInstructionSet(MachineFeatures(), "").value_or(kV2);
  return active;
}

bool InstructionSetIsGiven() { return ChosenInstructionSet().ok() && !Wanted().empty(); }

bool CanRun(InstructionSet set) { return (RequiredFeatures(set) & ~MachineFeatures()) == 0; }

}  // namespace troupe
