// A checkpoint from outside: the first two bytes are the length of the index, then come the index
// and the data. What it has is listed, read and, if it can be, written and read again.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "devices/storage/bundle_writer.h"
#include "devices/storage/checkpoint_reader.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using troupe::Tensor;
  troupe::HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  if (size < 2) return 0;
  const size_t index_size = std::min<size_t>(data[0] | data[1] << 8, size - 2);
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  troupe::SimulatedDisk disk;
  disk.Put("/d/m.index", bytes.substr(0, index_size));
  disk.Put("/d/m.data-00000-of-00001", bytes.substr(index_size));
  const auto reader = troupe::OpenCheckpoint(&disk, "/d/m");
  if (!reader.ok()) return 0;
  troupe::TensorsByName tensors;
  for (const auto& [name, tensor] : (*reader)->tensors()) {
    const absl::StatusOr<Tensor> read = (*reader)->Read(name);
    if (read.ok() && !name.empty()) tensors[name] = *read;
    for (const troupe::TensorSlice& slice : tensor.slices) {
      (*reader)->ReadSlice(name, slice).status().IgnoreError();
    }
  }
  (*reader)->Verify().IgnoreError();
  if (!troupe::WriteBundle(&disk, "/d/copy", tensors).ok()) std::abort();
  const auto copy = troupe::OpenCheckpoint(&disk, "/d/copy");
  if (!copy.ok()) std::abort();
  for (const auto& [name, want] : tensors) {
    const absl::StatusOr<Tensor> got = (*copy)->Read(name);
    if (absl::IsResourceExhausted(got.status())) continue;
    if (!got.ok() || !troupe::Difference(*got, want).empty()) std::abort();
  }
  return 0;
}
