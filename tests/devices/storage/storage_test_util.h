/// What tests of storage share.
#ifndef TROUPE_TESTS_DEVICES_STORAGE_STORAGE_TEST_UTIL_H_
#define TROUPE_TESTS_DEVICES_STORAGE_STORAGE_TEST_UTIL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system.h"
#include "devices/tensor.h"

namespace troupe {

using TensorsByName = std::map<std::string, Tensor>;

/// Same type, shape and bits. Says how they differ, or is empty.
std::string Difference(const Tensor& got, const Tensor& want);

/// A tensor of this type and shape with values that the seed chooses; NaNs among them.
Tensor RandomTensor(ElementType type, const Shape& shape, uint64_t seed);

/// A tensor of every type that a checkpoint holds, scalars, empty ones and strings of all kinds.
TensorsByName EveryType();

/// Writes all as a bundle, synced.
absl::Status WriteBundle(FileSystem* file_system, const std::string& prefix,
                         const TensorsByName& tensors);
/// That a checkpoint has these tensors and no others. Says how they differ, or is empty.
std::string Difference(const CheckpointReader& reader, const TensorsByName& want);

/// Calls `f` with `bytes` in which one byte was changed, for each byte and several changes, and
/// with each beginning of it. `what` says which one it is.
void ForEachDamage(
    const std::string& bytes,
    const std::function<void(const std::string& damaged, const std::string& what)>& f);

/// A table of these keys and values, as a V1 checkpoint's or one that is wrong on purpose.
std::string TableBytes(const std::map<std::string, std::string>& entries);

/// A file of tests/devices/storage/testdata, from the root of the sources.
std::string TestData(const std::string& name);

}  // namespace troupe

#endif  // TROUPE_TESTS_DEVICES_STORAGE_STORAGE_TEST_UTIL_H_
