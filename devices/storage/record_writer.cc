#include "devices/storage/record_writer.h"

#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/compressed_file.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/file_system_registry.h"

namespace troupe {

absl::StatusOr<FileCompression> ParseFileCompression(std::string_view name) {
  if (name.empty() || name == "NONE") return FileCompression::kNone;
  if (name == "ZLIB") return FileCompression::kZlib;
  if (name == "GZIP") return FileCompression::kGzip;
  return InvalidArgument("'", name,
                         "' is no compression of record files; expected '', 'NONE', "
                         "'ZLIB' or 'GZIP'");
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(
    const std::string& path, const RecordWriterOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const file_system, FileSystems().Find(path));
  return Create(file_system, path, options);
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(
    FileSystem* file_system, const std::string& path, const RecordWriterOptions& options) {
  if (options.compression == FileCompression::kAny) {
    return InvalidArgument(path, ": a file is written with one compression, not with any");
  }
  TROUPE_ASSIGN_OR_RETURN(auto file, file_system->Create(path));
  if (options.compression != FileCompression::kNone) {
    const ZlibFormat format =
        options.compression == FileCompression::kGzip ? ZlibFormat::kGzip : ZlibFormat::kZlib;
    TROUPE_ASSIGN_OR_RETURN(file, NewDeflatingFile(std::move(file), format, options.level));
  }
  return std::unique_ptr<RecordWriter>(new RecordWriter(std::move(file)));
}

absl::Status RecordWriter::Write(std::string_view record) {
  std::string header;
  AppendFixed(static_cast<uint64_t>(record.size()), &header);
  AppendFixed(MaskCrc32c(Crc32c(header)), &header);
  TROUPE_RETURN_IF_ERROR(file_->Append(header));
  TROUPE_RETURN_IF_ERROR(file_->Append(record));
  std::string trailer;
  AppendFixed(MaskCrc32c(Crc32c(record)), &trailer);
  return file_->Append(trailer);
}

absl::Status RecordWriter::Flush() { return file_->Flush(); }
absl::Status RecordWriter::Sync() { return file_->Sync(); }
absl::Status RecordWriter::Close() { return file_->Close(); }

}  // namespace troupe
