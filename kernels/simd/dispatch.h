/// Picks the functions compiled for this machine's instruction set, which
/// `devices/cpu/instruction_set.h` decides on.
#ifndef TROUPE_KERNELS_SIMD_DISPATCH_H_
#define TROUPE_KERNELS_SIMD_DISPATCH_H_

#include "devices/cpu/instruction_set.h"
#include "devices/element_type.h"
#include "kernels/simd/table.h"

namespace troupe::simd {

/// The functions of ActiveInstructionSet(). Chosen once; thread-safe.
const Table& Functions();

/// The table of one variant, or nullptr if this machine cannot run it or it was not compiled. For
/// tests.
const Table* FunctionsFor(InstructionSet set);

/// The table's index of an element type, kNumTypes if it has none.
Type TypeOf(ElementType type);
/// The same for casts, kNumCastTypes if there is none.
CastType CastTypeOf(ElementType type);

}  // namespace troupe::simd

#endif  // TROUPE_KERNELS_SIMD_DISPATCH_H_
