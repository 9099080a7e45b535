// A record file from outside, plain or compressed, as the first byte says: read, and what was read
// is written and read again. Records are also parsed as events.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "devices/storage/event_file.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"
#include "graph/protos/summary.pb.h"
#include "tests/devices/storage/simulated_disk.h"

namespace {

using troupe::FileCompression;

constexpr size_t kMaxTotal = 4 << 20;  // a small compressed file may hold much

std::vector<std::string> ReadAll(troupe::FileSystem* disk, const char* path,
                                 FileCompression compression) {
  std::vector<std::string> records;
  troupe::RecordReaderOptions options;
  options.compression = compression;
  options.max_record_bytes = kMaxTotal;
  const auto reader = troupe::RecordReader::Open(disk, path, options);
  if (!reader.ok()) std::abort();
  std::string record;
  size_t total = 0;
  while (total < kMaxTotal) {
    const absl::StatusOr<bool> next = (*reader)->Next(&record);
    if (!next.ok() || !*next) break;
    total += record.size() + 16;
    records.push_back(record);
  }
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto compression = static_cast<FileCompression>(data[0] % 3);
  troupe::SimulatedDisk disk;
  disk.Put("/d/r", std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const std::vector<std::string> records = ReadAll(&disk, "/d/r", compression);
  {
    const auto writer = troupe::RecordWriter::Create(&disk, "/d/copy", {compression});
    if (!writer.ok()) std::abort();
    for (const std::string& record : records) {
      if (!(*writer)->Write(record).ok()) std::abort();
    }
    if (!(*writer)->Close().ok()) std::abort();
  }
  if (ReadAll(&disk, "/d/copy", compression) != records) std::abort();
  if (compression != FileCompression::kNone) return 0;
  const auto events = troupe::EventFileReader::Open(&disk, "/d/r");
  troupe::Event event;
  for (size_t i = 0; i < records.size(); ++i) (*events)->Next(&event).status().IgnoreError();
  return 0;
}
