#include "devices/storage/compressed_file.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

/// zlib's argument for the format: the largest window, and 16 for gzip's header.
int WindowBits(ZlibFormat format) {
  return format == ZlibFormat::kGzip ? MAX_WBITS + 16 : MAX_WBITS;
}

Bytef* ToBytes(const char* data) { return reinterpret_cast<Bytef*>(const_cast<char*>(data)); }

class DeflatingFile : public WritableFile {
 public:
  explicit DeflatingFile(std::unique_ptr<WritableFile> file)
      : file_(std::move(file)), buffer_(kBufferBytes, '\0') {}
  ~DeflatingFile() override {
    if (ready_) deflateEnd(&stream_);
  }

  absl::Status Init(ZlibFormat format, int level) {
    if (level < -1 || level > 9) {
      return InvalidArgument("The level of compression is ", level, "; expected -1 to 9");
    }
    constexpr int kMemoryLevel = 8;  // zlib's default
    ready_ = deflateInit2(&stream_, level, Z_DEFLATED, WindowBits(format), kMemoryLevel,
                          Z_DEFAULT_STRATEGY) == Z_OK;
    return ready_ ? absl::OkStatus() : absl::ResourceExhaustedError("No memory to compress");
  }

  absl::Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {  // zlib takes 32 bits
      const std::string_view block = bytes.substr(0, UINT_MAX);
      TROUPE_RETURN_IF_ERROR(Deflate(block, Z_NO_FLUSH));
      bytes.remove_prefix(block.size());
    }
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    TROUPE_RETURN_IF_ERROR(Deflate({}, Z_SYNC_FLUSH));
    return file_->Flush();
  }
  absl::Status Sync() override {
    TROUPE_RETURN_IF_ERROR(Deflate({}, Z_SYNC_FLUSH));
    return file_->Sync();
  }
  absl::Status Close() override {
    TROUPE_RETURN_IF_ERROR(Deflate({}, Z_FINISH));
    return file_->Close();
  }

 private:
  absl::Status Deflate(std::string_view bytes, int flush) {
    stream_.next_in = ToBytes(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = ToBytes(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);  // that there is nothing to do is no error
      TROUPE_RETURN_IF_ERROR(
          file_->Append(std::string_view(buffer_).substr(0, buffer_.size() - stream_.avail_out)));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  z_stream stream_ = {};
  bool ready_ = false;
};

class FileSource : public ByteSource {
 public:
  FileSource(std::shared_ptr<const RandomAccessFile> file, uint64_t offset)
      : file_(std::move(file)), next_(offset) {}

  absl::StatusOr<size_t> Read(absl::Span<char> to) override {
    size_t done = 0;
    while (done < to.size()) {
      if (used_ == buffer_.size()) {
        // Large pieces need no buffer.
        if (to.size() - done >= kBufferBytes) {
          TROUPE_ASSIGN_OR_RETURN(const size_t n, file_->Read(next_, to.subspan(done)));
          next_ += n;
          return done + n;
        }
        buffer_.resize(kBufferBytes);
        used_ = 0;
        const absl::StatusOr<size_t> n = file_->Read(next_, absl::MakeSpan(buffer_));
        buffer_.resize(n.value_or(0));
        if (!n.ok()) return n.status();
        if (*n == 0) break;
        next_ += *n;
      }
      const size_t n = std::min(to.size() - done, buffer_.size() - used_);
      std::copy_n(buffer_.data() + used_, n, to.data() + done);
      used_ += n;
      done += n;
    }
    return done;
  }

 private:
  const std::shared_ptr<const RandomAccessFile> file_;
  uint64_t next_;
  std::string buffer_;
  size_t used_ = 0;
};

class InflatingSource : public ByteSource {
 public:
  InflatingSource(std::shared_ptr<const RandomAccessFile> file, std::string path, ZlibFormat format)
      : file_(std::move(file)), path_(std::move(path)), format_(format) {}
  ~InflatingSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  absl::Status Init() {
    ready_ = inflateInit2(&stream_, WindowBits(format_)) == Z_OK;
    return ready_ ? absl::OkStatus() : absl::ResourceExhaustedError("No memory to decompress");
  }

  absl::StatusOr<size_t> Read(absl::Span<char> to) override {
    size_t done = 0;
    while (done < to.size() && !finished_) {
      if (stream_.avail_in == 0) TROUPE_RETURN_IF_ERROR(Fill());
      if (finished_) break;
      const size_t room = std::min<size_t>(to.size() - done, UINT_MAX);
      stream_.next_out = ToBytes(to.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      between_ = result == Z_STREAM_END;
      if (result == Z_STREAM_END) {
        TROUPE_RETURN_IF_ERROR(EndStream());
      } else if (result != Z_OK) {
        return Damaged(stream_.msg != nullptr ? stream_.msg : zError(result));
      }
    }
    return done;
  }

 private:
  absl::Status Damaged(std::string_view what) const {
    return absl::DataLossError(StrCat(path_, ", near byte ", next_ - stream_.avail_in,
                                      ": the compressed bytes are damaged: ", what));
  }

  /// Sets finished_ at the end of the file.
  absl::Status Fill() {
    buffer_.resize(kBufferBytes);
    TROUPE_ASSIGN_OR_RETURN(const size_t n, file_->Read(next_, absl::MakeSpan(buffer_)));
    stream_.next_in = ToBytes(buffer_.data());
    stream_.avail_in = static_cast<uInt>(n);
    next_ += n;
    if (n > 0) return absl::OkStatus();
    if (!between_ && next_ > 0) return Damaged("they are cut off");
    finished_ = true;
    return absl::OkStatus();
  }

  absl::Status EndStream() {
    if (stream_.avail_in == 0) TROUPE_RETURN_IF_ERROR(Fill());
    if (finished_) return absl::OkStatus();
    if (format_ == ZlibFormat::kZlib) return Damaged("something follows their end");
    inflateReset(&stream_);
    return absl::OkStatus();
  }

  const std::shared_ptr<const RandomAccessFile> file_;
  const std::string path_;
  const ZlibFormat format_;
  uint64_t next_ = 0;  // what is to be read from the file next
  std::string buffer_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool between_ = false;  // a stream has ended, none has begun
  bool finished_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> NewDeflatingFile(std::unique_ptr<WritableFile> file,
                                                               ZlibFormat format, int level) {
  auto result = std::make_unique<DeflatingFile>(std::move(file));
  TROUPE_RETURN_IF_ERROR(result->Init(format, level));
  return result;
}

std::unique_ptr<ByteSource> NewFileSource(std::shared_ptr<const RandomAccessFile> file,
                                          uint64_t offset) {
  return std::make_unique<FileSource>(std::move(file), offset);
}

absl::StatusOr<std::unique_ptr<ByteSource>> NewInflatingSource(
    std::shared_ptr<const RandomAccessFile> file, const std::string& path, ZlibFormat format) {
  auto result = std::make_unique<InflatingSource>(std::move(file), path, format);
  TROUPE_RETURN_IF_ERROR(result->Init());
  return result;
}

}  // namespace troupe
