// A V1 checkpoint from outside: read whole, each slice by itself, and both agree. The input is a
// table; or, if its first byte is not 0, the values of the table's keys: two bytes of length, then
// a SavedTensorSlices message, the first of which is the list of tensors. So a fuzzer need not make
// checksums.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/tensor_slice.h"
#include "graph/protos/checkpoint.pb.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace {

std::string TableOfMessages(std::string_view bytes) {
  std::map<std::string, std::string> entries;
  while (bytes.size() >= 2) {
    const size_t size = static_cast<uint8_t>(bytes[0]) | static_cast<uint8_t>(bytes[1]) << 8;
    const std::string value(bytes.substr(2, size));
    bytes.remove_prefix(std::min(bytes.size(), size + 2));
    troupe::SavedTensorSlices message;
    std::string key;
    if (!entries.empty() && message.ParseFromString(value)) {
      const auto slice = troupe::TensorSlice::FromProto(message.data().slice());
      if (slice.ok()) key = troupe::SliceKey(message.data().name(), *slice);
    }
    entries.emplace(key, value);
  }
  return troupe::TableBytes(entries);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  troupe::SimulatedDisk disk;
  disk.Put("/d/v1", data[0] == 0 ? bytes : TableOfMessages(bytes));
  const auto reader = troupe::OpenCheckpoint(&disk, "/d/v1");
  if (!reader.ok()) return 0;
  for (const auto& [name, tensor] : (*reader)->tensors()) {
    const absl::StatusOr<troupe::Tensor> whole = (*reader)->Read(name);
    for (const troupe::TensorSlice& slice : tensor.slices) {
      const absl::StatusOr<troupe::Tensor> part = (*reader)->ReadSlice(name, slice);
      if (whole.ok() && !part.ok() && !absl::IsResourceExhausted(part.status())) std::abort();
    }
  }
  (*reader)->Verify().IgnoreError();
  return 0;
}
