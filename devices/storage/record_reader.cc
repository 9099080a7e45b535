#include "devices/storage/record_reader.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/compressed_file.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/file_system_registry.h"

namespace troupe {
namespace {

constexpr size_t kHeaderBytes = 12;     // length, its checksum
constexpr size_t kTrailerBytes = 4;     // checksum of the record
constexpr size_t kGrowBytes = 1 << 20;  // memory is taken in steps of this size

/// The checksum of `bytes` is the masked one that is stored.
bool ChecksumFits(std::string_view bytes, const char* stored) {
  return UnmaskCrc32c(DecodeFixed<uint32_t>(stored)) == Crc32c(bytes);
}

/// What the first bytes tell. The first length's checksum tells most, as a plain file may begin
/// like a zlib stream; a file that is neither is damaged, and taken for a plain one.
absl::StatusOr<FileCompression> FindCompression(const RandomAccessFile& file) {
  char header[kHeaderBytes] = {};
  TROUPE_ASSIGN_OR_RETURN(const size_t n, file.Read(0, absl::MakeSpan(header)));
  const auto byte = [&](int i) { return static_cast<unsigned char>(header[i]); };
  constexpr int kDeflate = 8;  // the method, in both headers
  if (n == kHeaderBytes && ChecksumFits({header, 8}, header + 8)) return FileCompression::kNone;
  if (byte(0) == 0x1f && byte(1) == 0x8b && byte(2) == kDeflate) return FileCompression::kGzip;
  const bool zlib =
      (byte(0) & 15) == kDeflate && byte(0) >> 4 <= 7 && (byte(0) << 8 | byte(1)) % 31 == 0;
  return zlib ? FileCompression::kZlib : FileCompression::kNone;
}

}  // namespace

RecordReader::RecordReader(std::shared_ptr<const RandomAccessFile> file, std::string path,
                           const RecordReaderOptions& options)
    : file_(std::move(file)), path_(std::move(path)), options_(options), offset_(options.offset) {}

RecordReader::~RecordReader() = default;

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    const std::string& path, const RecordReaderOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const file_system, FileSystems().Find(path));
  return Open(file_system, path, options);
}

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(FileSystem* file_system,
                                                                 const std::string& path,
                                                                 const RecordReaderOptions& given) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file,
                          file_system->OpenForReading(path));
  RecordReaderOptions options = given;
  if (options.compression == FileCompression::kAny) {
    TROUPE_ASSIGN_OR_RETURN(options.compression, FindCompression(*file));
  }
  if (options.offset > 0 && options.compression != FileCompression::kNone) {
    return InvalidArgument(path, ": a compressed file is read from its beginning, not from byte ",
                           options.offset);
  }
  std::unique_ptr<RecordReader> reader(new RecordReader(std::move(file), path, options));
  TROUPE_RETURN_IF_ERROR(reader->Rewind());
  return reader;
}

absl::Status RecordReader::Rewind() {
  if (options_.compression == FileCompression::kNone) {
    source_ = NewFileSource(file_, offset_);
    return absl::OkStatus();
  }
  const ZlibFormat format =
      options_.compression == FileCompression::kGzip ? ZlibFormat::kGzip : ZlibFormat::kZlib;
  TROUPE_ASSIGN_OR_RETURN(source_, NewInflatingSource(file_, path_, format));
  return absl::OkStatus();
}

absl::Status RecordReader::Damaged(std::string_view what) const {
  return absl::DataLossError(StrCat(path_, ", record at byte ", offset_, ": ", what));
}

absl::StatusOr<bool> RecordReader::Next(std::string* record) {
  TROUPE_RETURN_IF_ERROR(status_);
  absl::StatusOr<bool> result = CatchExceptions([&] { return ReadRecord(record); });
  if (result.ok() && *result) return true;
  record->clear();
  // A file may have grown when it is asked again.
  if (options_.compression == FileCompression::kNone) {
    TROUPE_RETURN_IF_ERROR(Rewind());
  } else if (!result.ok()) {
    status_ = result.status();
  }
  return result;
}

absl::StatusOr<size_t> RecordReader::Read(absl::Span<char> to) {
  absl::StatusOr<size_t> n = source_->Read(to);
  if (n.ok() || options_.compression == FileCompression::kNone) return n;
  // The place that the decompressor names is one of the compressed bytes.
  return WithContext(StrCat("record at byte ", offset_, ": "), n.status());
}

absl::StatusOr<bool> RecordReader::ReadRecord(std::string* record) {
  char header[kHeaderBytes];
  TROUPE_ASSIGN_OR_RETURN(const size_t n, Read(absl::MakeSpan(header)));
  if (n == 0) return false;
  if (n < kHeaderBytes) return Damaged(StrCat("its header is cut off after ", n, " bytes"));
  const auto length = DecodeFixed<uint64_t>(header);
  if (!ChecksumFits({header, sizeof(length)}, header + sizeof(length))) {
    return Damaged("the checksum of its length is wrong");
  }
  if (length > options_.max_record_bytes) {
    return absl::ResourceExhaustedError(StrCat(path_, ", record at byte ", offset_, ": it has ",
                                               length, " bytes; at most ",
                                               options_.max_record_bytes, " are allowed"));
  }
  TROUPE_RETURN_IF_ERROR(Fill(static_cast<size_t>(length), record));
  std::string trailer;
  TROUPE_RETURN_IF_ERROR(Fill(kTrailerBytes, &trailer));
  if (!ChecksumFits(*record, trailer.data())) return Damaged("its checksum is wrong");
  offset_ += kHeaderBytes + length + kTrailerBytes;
  return true;
}

absl::Status RecordReader::Fill(size_t size, std::string* bytes) {
  bytes->clear();
  while (bytes->size() < size) {
    const size_t begin = bytes->size();
    // In steps that grow, so that the copies cost no more than what is read.
    const size_t step = std::min(size - begin, std::max(begin, kGrowBytes));
    bytes->resize(begin + step);
    TROUPE_ASSIGN_OR_RETURN(const size_t n, Read(absl::MakeSpan(bytes->data() + begin, step)));
    if (n < step) return Damaged(StrCat("it is cut off: ", size - begin - n, " bytes are missing"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
