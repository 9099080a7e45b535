/// Decides, once for all kernels, which instruction set they run.
#ifndef TROUPE_DEVICES_CPU_INSTRUCTION_SET_H_
#define TROUPE_DEVICES_CPU_INSTRUCTION_SET_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "devices/export.h"

namespace troupe {

/// The micro-architecture levels of x86-64 that kernels are compiled for (psABI for x86-64, section
/// 3.1.1): SSE4.2, AVX2, AVX-512. Other machines have kV2 alone, compiled for their baseline.
enum class InstructionSet { kV2, kV3, kV4 };
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::kV2, InstructionSet::kV3,
                                                      InstructionSet::kV4};

/// "v2", "v3", "v4".
std::string_view InstructionSetName(InstructionSet set);

/// What a processor can do and its operating system lets it, as bits. The compiler may use all that
/// a level has, therefore all of it is asked for.
struct CpuFeature {
  enum Bit : uint32_t {
    kCmpxchg16b = 1 << 0,
    kLahf = 1 << 1,
    kPopcnt = 1 << 2,
    kSse3 = 1 << 3,
    kSsse3 = 1 << 4,
    kSse41 = 1 << 5,
    kSse42 = 1 << 6,
    kAvx = 1 << 7,
    kAvx2 = 1 << 8,
    kBmi = 1 << 9,
    kBmi2 = 1 << 10,
    kF16c = 1 << 11,
    kFma = 1 << 12,
    kLzcnt = 1 << 13,
    kMovbe = 1 << 14,
    kSystemSavesYmm = 1 << 15,
    kAvx512f = 1 << 16,
    kAvx512bw = 1 << 17,
    kAvx512cd = 1 << 18,
    kAvx512dq = 1 << 19,
    kAvx512vl = 1 << 20,
    kSystemSavesZmm = 1 << 21,
  };
};

/// The features that code of `set` may use, those of lower levels included.
uint32_t RequiredFeatures(InstructionSet set);

/// This machine's features, by cpuid and xgetbv.
uint32_t MachineFeatures();

/// The set for a machine with `features`: the one that `wanted` names ("v2", "v3", "v4"), or the
/// best one if `wanted` is empty. InvalidArgument for another name; FailedPrecondition if the
/// machine cannot run the set, with the features that it lacks.
absl::StatusOr<InstructionSet> ChooseInstructionSet(uint32_t features, std::string_view wanted);

/// The choice for this machine and the environment variable TROUPE_ISA, made once. A runtime is
/// not created if it is an error. Thread-safe.
const absl::StatusOr<InstructionSet>& ChosenInstructionSet();

/// The set that kernels run: the chosen one, or the best one if the choice is an error.
TROUPE_EXPORT InstructionSet ActiveInstructionSet();

/// TROUPE_ISA names the set: libraries with an instruction set of their own follow it.
bool InstructionSetIsGiven();

/// Whether this machine can run `set`.
bool CanRun(InstructionSet set);

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_INSTRUCTION_SET_H_
