/// Looking into shared libraries without loading them.
#ifndef TROUPE_API_INTERNAL_ELF_SYMBOL_H_
#define TROUPE_API_INTERNAL_ELF_SYMBOL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace troupe {

/// The first bytes, `max_bytes` at most, of the data that the shared library `file` (ELF, 64 bits,
/// this machine's byte order) exports as `symbol`, as they are in the file. Reads only what it
/// needs, and checks all that it reads. NotFound: no such file; InvalidArgument: it is no such
/// library, is malformed, or does not have the symbol as data.
absl::StatusOr<std::string> ReadElfSymbol(const std::string& file, std::string_view symbol,
                                          size_t max_bytes);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_ELF_SYMBOL_H_
