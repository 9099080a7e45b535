// Records and lines of files.
#include <algorithm>
#include <cstring>
#include <utility>

#include "api/data/file_bytes.h"
#include "api/data/stages.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"

namespace troupe::data {
namespace {

/// docs/formats.md: length, its checksum, the record, its checksum.
class RecordsStage final : public FilesStage {
 public:
  RecordsStage(const Place& place, std::vector<std::string> files, DatasetRecordOptions options)
      : FilesStage(place, "Records", std::move(files), options.compression), options_(options) {}

 private:
  static constexpr size_t kHeaderBytes = 12, kTrailerBytes = 4;

  static bool ChecksumFits(const char* bytes, size_t size, const char* stored) {
    return UnmaskCrc32c(DecodeFixed<uint32_t>(stored)) == Crc32c({bytes, size});
  }

  absl::StatusOr<bool> Read(FileBytes* file, size_t limit, Block* out) override {
    for (size_t i = 0; i < limit; ++i) {
      TROUPE_ASSIGN_OR_RETURN(size_t n, file->Need(kHeaderBytes));
      if (n == 0) return false;
      if (n < kHeaderBytes)
        return Damaged(*file, StrCat("its header is cut off after ", n, " bytes"));
      const auto length = DecodeFixed<uint64_t>(file->data());
      if (!ChecksumFits(file->data(), sizeof(length), file->data() + sizeof(length))) {
        return Damaged(*file, "the checksum of its length is wrong");
      }
      if (length > static_cast<uint64_t>(options_.max_record_bytes)) {
        TROUPE_RETURN_IF_ERROR(
            Bad(absl::ResourceExhaustedError(StrCat(path(), ", record at byte ", file->offset(),
                                                    ": it has ", length, " bytes; at most ",
                                                    options_.max_record_bytes, " are allowed")))
                .status());
        TROUPE_ASSIGN_OR_RETURN(const bool whole, Skip(file, length));
        if (!whole) return false;
        continue;
      }
      const size_t whole = kHeaderBytes + static_cast<size_t>(length) + kTrailerBytes;
      TROUPE_ASSIGN_OR_RETURN(n, file->Need(whole));
      if (n < whole)
        return Damaged(*file, StrCat("it is cut off: ", whole - n, " bytes are missing"));
      const char* const record = file->data() + kHeaderBytes;
      if (ChecksumFits(record, static_cast<size_t>(length), record + length)) {
        out->push_back(BytesElement(file->buffer(), record, static_cast<size_t>(length)));
      } else {
        TROUPE_RETURN_IF_ERROR(Damaged(*file, "its checksum is wrong").status());
      }
      file->Consume(whole);
    }
    return true;
  }

  /// Takes a record of `length` bytes, which are not held. False: the file ends before its end.
  absl::StatusOr<bool> Skip(FileBytes* file, uint64_t length) {
    file->Consume(kHeaderBytes);
    uint64_t left = std::min<uint64_t>(length, UINT64_MAX - kTrailerBytes) + kTrailerBytes;
    while (left > 0) {
      TROUPE_RETURN_IF_ERROR(CheckWanted());
      TROUPE_ASSIGN_OR_RETURN(const size_t n, file->Need(1));
      if (n == 0) return false;
      const auto taken = static_cast<size_t>(std::min<uint64_t>(n, left));
      file->Consume(taken);
      left -= taken;
    }
    return true;
  }

  absl::StatusOr<bool> Damaged(const FileBytes& file, std::string_view what) {
    return Bad(absl::DataLossError(StrCat(path(), ", record at byte ", file.offset(), ": ", what)));
  }
  /// False: nothing more of the file can be read.
  absl::StatusOr<bool> Bad(const absl::Status& why) {
    TROUPE_RETURN_IF_ERROR(CountBad(why, options_.skip_bad, &bad_, meter()));
    return false;
  }

  absl::Status Save(PositionWriter* to) override {
    to->Number(static_cast<uint64_t>(bad_));
    return FilesStage::Save(to);
  }
  void Restore(PositionReader* from) override {
    bad_ = static_cast<int64_t>(from->Number(INT64_MAX));
    FilesStage::Restore(from);
  }

  const DatasetRecordOptions options_;
  int64_t bad_ = 0;
};

class LinesStage final : public FilesStage {
 public:
  LinesStage(const Place& place, std::vector<std::string> files, DatasetTextOptions options)
      : FilesStage(place, "TextLines", std::move(files), options.compression), options_(options) {}

 private:
  absl::StatusOr<bool> Read(FileBytes* file, size_t limit, Block* out) override {
    const auto most = static_cast<size_t>(options_.max_line_bytes);
    for (size_t i = 0; i < limit; ++i) {
      size_t searched = 0;
      TROUPE_ASSIGN_OR_RETURN(size_t n, file->Need(1));
      if (n == 0) return false;
      const char* end = nullptr;
      while (true) {
        end = static_cast<const char*>(std::memchr(file->data() + searched, '\n', n - searched));
        if (end != nullptr) break;
        searched = n;
        if (searched <= most) {
          TROUPE_ASSIGN_OR_RETURN(n, file->NeedMore(most));
        }
        if (n == searched) break;  // The file ends, or the line is too long.
      }
      size_t size = end != nullptr ? static_cast<size_t>(end - file->data()) : n;
      if (size > most) {
        return absl::ResourceExhaustedError(StrCat(path(), ", line at byte ", file->offset(),
                                                   ": it has more than ", most, " bytes"));
      }
      const size_t whole = end != nullptr ? size + 1 : size;
      if (size > 0 && file->data()[size - 1] == '\r') --size;
      out->push_back(BytesElement(file->buffer(), file->data(), size));
      file->Consume(whole);
    }
    return true;
  }

  const DatasetTextOptions options_;
};

template <typename S, typename Options>
PlanPtr PlanOfFiles(std::vector<std::string> files, Options options) {
  return MakePlan([files = std::move(files),
                   options](const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    return std::make_unique<S>(place, files, options);
  });
}

}  // namespace

PlanPtr RecordsPlan(std::vector<std::string> files, DatasetRecordOptions options) {
  return PlanOfFiles<RecordsStage>(std::move(files), options);
}

PlanPtr LinesPlan(std::vector<std::string> files, DatasetTextOptions options) {
  return PlanOfFiles<LinesStage>(std::move(files), options);
}

}  // namespace troupe::data
