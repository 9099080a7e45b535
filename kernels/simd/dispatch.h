/// Picks the functions compiled for this machine's instruction set.
#ifndef TROUPE_KERNELS_SIMD_DISPATCH_H_
#define TROUPE_KERNELS_SIMD_DISPATCH_H_

#include <string_view>

#include "devices/element_type.h"
#include "kernels/simd/table.h"

namespace troupe::simd {

/// The best variant that the machine can run, or the one named by the environment variable
/// TROUPE_ISA (v2, v3, v4) if the machine can run it. Chosen once; thread-safe.
const Table& Functions();

/// The variant's name ("v2", "v3", "v4") that `Functions` is.
std::string_view InstructionSet();

/// The table of one variant, or nullptr if this machine cannot run it or it was not compiled. For
/// tests.
const Table* FunctionsFor(std::string_view name);

/// The table's index of an element type, kNumTypes if it has none.
Type TypeOf(ElementType type);
/// The same for casts, kNumCastTypes if there is none.
CastType CastTypeOf(ElementType type);

}  // namespace troupe::simd

#endif  // TROUPE_KERNELS_SIMD_DISPATCH_H_
