#include "devices/storage/table_writer.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "absl/strings/escaping.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

leveldb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

/// leveldb's view of our file. It keeps the error, as leveldb's statuses have fewer codes.
class FileForLeveldb : public leveldb::WritableFile {
 public:
  explicit FileForLeveldb(troupe::WritableFile* file) : file_(file) {}

  leveldb::Status Append(const leveldb::Slice& data) override {
    return Keep(file_->Append({data.data(), data.size()}));
  }
  // The table's builder flushes after each block; there is nobody who would read it yet.
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return Keep(file_->Sync()); }
  leveldb::Status Close() override { return Keep(file_->Close()); }

  const absl::Status& status() const { return status_; }

 private:
  leveldb::Status Keep(const absl::Status& status) {
    if (status.ok()) return leveldb::Status::OK();
    if (status_.ok()) status_ = status;
    return leveldb::Status::IOError("see status()");
  }

  troupe::WritableFile* const file_;
  absl::Status status_;
};

leveldb::Options TableOptions() {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  return options;
}

}  // namespace

class TableWriter::Impl {
 public:
  explicit Impl(WritableFile* file) : file(file), builder(TableOptions(), &this->file) {}
  ~Impl() {
    if (!finished) builder.Abandon();
  }

  /// The file's own error rather than leveldb's.
  absl::Status status() const {
    if (!file.status().ok()) return file.status();
    if (builder.status().ok()) return absl::OkStatus();
    return absl::InternalError(builder.status().ToString());
  }

  FileForLeveldb file;
  leveldb::TableBuilder builder;
  bool finished = false;
};

TableWriter::TableWriter(WritableFile* file) : impl_(std::make_unique<Impl>(file)) {}

TableWriter::~TableWriter() = default;

absl::Status TableWriter::Add(std::string_view key, std::string_view value) {
  if (!empty_ && key <= last_key_) {
    return InvalidArgument("The key '", absl::CHexEscape({key.data(), key.size()}),
                           "' comes after '", absl::CHexEscape(last_key_),
                           "' in a table; keys must increase");
  }
  empty_ = false;
  last_key_ = key;
  impl_->builder.Add(ToSlice(key), ToSlice(value));
  return impl_->status();
}

absl::Status TableWriter::Finish() {
  TROUPE_RETURN_IF_ERROR(impl_->status());
  impl_->finished = true;
  impl_->builder.Finish();
  return impl_->status();
}

}  // namespace troupe
