#include "kernels/io/file_records.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/compressed_file.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

using Kind = FileRecordsOptions::Kind;

constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

absl::Status EndsBefore(std::string_view file, RecordPlace place) {
  return absl::DataLossError(StrCat(file, " ends before record ", place.records, " at byte ",
                                    place.offset, ", where it was to be read on"));
}

/// DataLoss: `path`, which is not compressed, ends before byte `end` of `place`.
absl::Status CheckSize(FileSystem* files, const std::string& path, RecordPlace place,
                       uint64_t end) {
  if (place.offset == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                          files->OpenForReading(path));
  TROUPE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size >= end) return absl::OkStatus();
  return EndsBefore(StrCat(path, ", which has ", size, " bytes,"), place);
}

/// Bytes that are looked at before they are taken. Memory grows with what is there.
class Window {
 public:
  Window(std::string path, std::unique_ptr<ByteSource> source)
      : path_(std::move(path)), source_(std::move(source)) {}

  std::string_view bytes() const { return std::string_view(buffer_).substr(begin_); }
  void Take(size_t size) { begin_ += size; }

  /// Reads on. False at the end of the file.
  absl::StatusOr<bool> Grow() {
    constexpr size_t kPiece = size_t{64} << 10;
    if (buffer_.size() - begin_ > kMaxRecordBytes) {
      return absl::ResourceExhaustedError(
          StrCat(path_, ": a record has more than ", kMaxRecordBytes, " bytes"));
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t before = buffer_.size();
    buffer_.resize(before + std::max(kPiece, before));
    const absl::StatusOr<size_t> n =
        source_->Read(absl::MakeSpan(buffer_.data() + before, buffer_.size() - before));
    buffer_.resize(before + n.value_or(0));
    if (!n.ok()) return n.status();
    return *n > 0;
  }
  /// So many bytes are there; false: the file ends before.
  absl::StatusOr<bool> Need(uint64_t size) {
    while (bytes().size() < size) {
      TROUPE_ASSIGN_OR_RETURN(const bool more, Grow());
      if (!more) return false;
    }
    return true;
  }
  /// Takes so many bytes, however many there are.
  absl::StatusOr<bool> Skip(uint64_t size) {
    while (size > bytes().size()) {
      size -= bytes().size();
      begin_ = buffer_.size();
      TROUPE_ASSIGN_OR_RETURN(const bool more, Grow());
      if (!more) return false;
    }
    Take(static_cast<size_t>(size));
    return true;
  }

 private:
  const std::string path_;
  const std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;
};

absl::StatusOr<std::unique_ptr<Window>> OpenWindow(FileSystem* files, const std::string& path,
                                                   FileCompression compression, uint64_t offset) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file,
                          files->OpenForReading(path));
  if (compression == FileCompression::kNone) {
    return std::make_unique<Window>(path, NewFileSource(std::move(file), offset));
  }
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteSource> source,
      NewInflatingSource(
          std::move(file), path,
          compression == FileCompression::kGzip ? ZlibFormat::kGzip : ZlibFormat::kZlib));
  auto window = std::make_unique<Window>(path, std::move(source));
  TROUPE_RETURN_IF_ERROR(window->Skip(offset).status());
  return window;
}

class TensorFlowRecords final : public FileRecords {
 public:
  static absl::StatusOr<std::unique_ptr<FileRecords>> Make(FileSystem* files,
                                                           const FileRecordsOptions& options,
                                                           const std::string& path,
                                                           RecordPlace place) {
    RecordReaderOptions of{.compression = options.compression, .max_record_bytes = kMaxRecordBytes};
    const bool plain = options.compression == FileCompression::kNone;
    if (plain) {
      TROUPE_RETURN_IF_ERROR(CheckSize(files, path, place, place.offset));
      of.offset = place.offset;
    }
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> reader,
                            RecordReader::Open(files, path, of));
    std::string record;
    for (int64_t i = 0; !plain && i < place.records; ++i) {
      TROUPE_ASSIGN_OR_RETURN(const bool there, reader->Next(&record));
      if (!there) return EndsBefore(path, place);
    }
    return std::unique_ptr<FileRecords>(new TensorFlowRecords(path, place, std::move(reader)));
  }

  absl::StatusOr<bool> Next(std::string* key, std::string* value) override {
    TROUPE_ASSIGN_OR_RETURN(const bool there, reader_->Next(value));
    if (!there) return false;
    *key = StrCat(path_, ":", place_.offset);
    ++place_.records;
    place_.offset = reader_->offset();
    return true;
  }

 private:
  TensorFlowRecords(const std::string& path, RecordPlace place,
                    std::unique_ptr<RecordReader> reader)
      : FileRecords(path, place), reader_(std::move(reader)) {}

  const std::unique_ptr<RecordReader> reader_;
};

class Lines final : public FileRecords {
 public:
  static absl::StatusOr<std::unique_ptr<FileRecords>> Make(FileSystem* files,
                                                           const FileRecordsOptions& options,
                                                           const std::string& path,
                                                           RecordPlace place) {
    TROUPE_RETURN_IF_ERROR(CheckSize(files, path, place, place.offset));
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Window> window,
                            OpenWindow(files, path, FileCompression::kNone, place.offset));
    std::unique_ptr<Lines> lines(new Lines(path, place, std::move(window)));
    std::string key, value;
    while (lines->place_.records < options.skip_header_lines) {
      TROUPE_ASSIGN_OR_RETURN(const bool there, lines->Next(&key, &value));
      if (!there) break;
    }
    return lines;
  }

  absl::StatusOr<bool> Next(std::string* key, std::string* value) override {
    size_t searched = 0, end = 0, taken = 0;
    while (true) {
      const std::string_view bytes = window_->bytes();
      const void* const found = bytes.size() > searched ? std::memchr(bytes.data() + searched, '\n',
                                                                      bytes.size() - searched)
                                                        : nullptr;
      if (found != nullptr) {
        end = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
        taken = end + 1;
        break;
      }
      searched = bytes.size();
      TROUPE_ASSIGN_OR_RETURN(const bool more, window_->Grow());
      if (more) continue;
      if (searched == 0) return false;
      end = taken = searched;
      break;
    }
    const std::string_view bytes = window_->bytes();
    if (end > 0 && bytes[end - 1] == '\r') --end;
    value->assign(bytes.substr(0, end));
    window_->Take(taken);
    ++place_.records;
    place_.offset += taken;
    *key = StrCat(path_, ":", place_.records);
    return true;
  }

 private:
  Lines(const std::string& path, RecordPlace place, std::unique_ptr<Window> window)
      : FileRecords(path, place), window_(std::move(window)) {}

  const std::unique_ptr<Window> window_;
};

class FixedLength final : public FileRecords {
 public:
  static absl::StatusOr<std::unique_ptr<FileRecords>> Make(FileSystem* files,
                                                           const FileRecordsOptions& options,
                                                           const std::string& path,
                                                           RecordPlace place) {
    const auto header = static_cast<uint64_t>(options.header_bytes);
    if (place.records == 0) {
      place.offset = header;
    } else if (options.compression == FileCompression::kNone) {
      const auto record = static_cast<uint64_t>(options.record_bytes);
      const auto hop = options.hop_bytes > 0 ? static_cast<uint64_t>(options.hop_bytes) : record;
      // The next record may begin behind the file; the one before it does not.
      TROUPE_RETURN_IF_ERROR(CheckSize(files, path, place, place.offset - hop + record));
    }
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Window> window,
                            OpenWindow(files, path, options.compression, place.offset));
    return std::unique_ptr<FileRecords>(new FixedLength(path, place, options, std::move(window)));
  }

  absl::StatusOr<bool> Next(std::string* key, std::string* value) override {
    if (past_end_) return false;
    TROUPE_ASSIGN_OR_RETURN(const bool whole, window_->Need(record_ + footer_));
    if (!whole) return false;
    value->assign(window_->bytes().substr(0, record_));
    *key = StrCat(path_, ":", place_.records);
    ++place_.records;
    place_.offset += hop_;
    TROUPE_ASSIGN_OR_RETURN(const bool more, window_->Skip(hop_));
    past_end_ = !more;
    return true;
  }

 private:
  FixedLength(const std::string& path, RecordPlace place, const FileRecordsOptions& options,
              std::unique_ptr<Window> window)
      : FileRecords(path, place),
        record_(static_cast<size_t>(options.record_bytes)),
        footer_(static_cast<uint64_t>(options.footer_bytes)),
        hop_(options.hop_bytes > 0 ? static_cast<uint64_t>(options.hop_bytes) : record_),
        window_(std::move(window)) {}

  const size_t record_;
  const uint64_t footer_, hop_;
  const std::unique_ptr<Window> window_;
  bool past_end_ = false;  ///< The next record would begin behind it.
};

/// A file of which there is one record.
class OneRecord final : public FileRecords {
 public:
  OneRecord(const std::string& path, RecordPlace place, FileSystem* files)
      : FileRecords(path, place), files_(files) {}

  absl::StatusOr<bool> Next(std::string* key, std::string* value) override {
    if (place_.records > 0) return false;
    if (files_ == nullptr) {
      *value = path_;
    } else {
      TROUPE_ASSIGN_OR_RETURN(*value, ReadWholeFile(files_, path_, kMaxRecordBytes));
    }
    *key = path_;
    place_.records = 1;
    return true;
  }

 private:
  FileSystem* const files_;  ///< nullptr: the name is the record.
};

}  // namespace

const char* KindName(Kind kind) {
  constexpr const char* kNames[] = {"TFRecord", "TextLine", "FixedLengthRecord", "WholeFile",
                                    "Identity"};
  return kNames[static_cast<int>(kind)];
}

absl::StatusOr<std::unique_ptr<FileRecords>> FileRecords::Open(const FileRecordsOptions& options,
                                                               const std::string& path,
                                                               RecordPlace place) {
  if (options.kind == Kind::kIdentity) return std::make_unique<OneRecord>(path, place, nullptr);
  TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(path));
  switch (options.kind) {
    case Kind::kRecords:
      return TensorFlowRecords::Make(files, options, path, place);
    case Kind::kLines:
      return Lines::Make(files, options, path, place);
    case Kind::kFixedLength:
      return FixedLength::Make(files, options, path, place);
    default:
      return std::make_unique<OneRecord>(path, place, files);
  }
}

}  // namespace troupe
