/// Tensors in NumPy's `.npy` files.
///
/// The format (NEP 1; numpy.lib.format, versions 1.0 to 3.0): "\x93NUMPY", two version bytes, the
/// header's length (2 bytes, from version 2 on 4), a Python dictionary literal with the keys
/// `descr`, `fortran_order` and `shape`, then the elements. All functions are thread-safe.
#ifndef TROUPE_DEVICES_NPY_H_
#define TROUPE_DEVICES_NPY_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Reads plain types: b1, i1 to i8, u1 to u8, f2, f4, f8, c8, c16, of either byte order, and V2 as
/// bfloat16 (as ml_dtypes writes it); Fortran order is transposed. InvalidArgument says what is
/// wrong with the header, the type, the shape or the length; ResourceExhausted if memory does not
/// suffice.
absl::StatusOr<Tensor> ParseNpy(std::string_view bytes);

/// Version 1.0, C order, little-endian. InvalidArgument for strings, resources and variants.
absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor);

/// NotFound if there is no such file; errors name the file.
absl::StatusOr<Tensor> ReadNpy(const std::string& file);
absl::Status WriteNpy(const Tensor& tensor, const std::string& file);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_NPY_H_
