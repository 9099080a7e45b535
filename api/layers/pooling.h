/// Pooling. Part of `api/layers/layers.h`.
#ifndef TROUPE_API_LAYERS_POOLING_H_
#define TROUPE_API_LAYERS_POOLING_H_

#include <array>
#include <cstdint>
#include <string>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::layers {

/// The largest or mean element of windows of [batch, space..., channels], per channel. `padding`:
/// "VALID" or "SAME".
Output MaxPooling1D(const Scope& scope, const Output& x, int64_t size, int64_t stride,
                    const std::string& padding = "VALID");
Output AveragePooling1D(const Scope& scope, const Output& x, int64_t size, int64_t stride,
                        const std::string& padding = "VALID");
Output MaxPooling2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                    std::array<int64_t, 2> strides, const std::string& padding = "VALID");
Output AveragePooling2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                        std::array<int64_t, 2> strides, const std::string& padding = "VALID");
Output MaxPooling3D(const Scope& scope, const Output& x, std::array<int64_t, 3> size,
                    std::array<int64_t, 3> strides, const std::string& padding = "VALID");
Output AveragePooling3D(const Scope& scope, const Output& x, std::array<int64_t, 3> size,
                        std::array<int64_t, 3> strides, const std::string& padding = "VALID");

/// The mean or the largest element over the axes between batch and channels, one at least: [batch,
/// channels].
Output GlobalAveragePooling(const Scope& scope, const Output& x);
Output GlobalMaxPooling(const Scope& scope, const Output& x);

}  // namespace troupe::layers
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_POOLING_H_
