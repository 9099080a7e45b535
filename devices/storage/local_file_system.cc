#include "devices/storage/local_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/path.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
/// What a file gains before the disk is told to begin.
constexpr off_t kHandOnBytes = 8 << 20;

/// To be called before anything that may change errno.
absl::Status SystemError(std::string_view what, const std::string& path) {
  const int error = errno;
  const std::string message = StrCat("Cannot ", what, " ", path);
  return absl::ErrnoToStatus(error, message);
}

/// Calls `f` again while signals interrupt it.
template <typename F>
auto Retry(F&& f) {
  decltype(f()) result;
  do {
    result = f();
  } while (result < 0 && errno == EINTR);
  return result;
}

std::string SystemPath(const std::string& path) { return std::string(PathWithoutScheme(path)); }

bool IsLocal(std::string_view path) {
  const std::string_view scheme = PathScheme(path);
  return scheme.empty() || scheme == "file";
}

class LocalReader : public RandomAccessFile {
 public:
  LocalReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~LocalReader() override { ::close(fd_); }

  absl::StatusOr<size_t> Read(uint64_t offset, absl::Span<char> to) const override {
    size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = Retry([&] {
        return ::pread(fd_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
      });
      if (n < 0) return SystemError(StrCat("read at byte ", offset + done, " of"), path_);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  absl::StatusOr<uint64_t> Size() const override {
    struct stat stat;
    if (::fstat(fd_, &stat) != 0) return SystemError("find the size of", path_);
    return static_cast<uint64_t>(stat.st_size);
  }

 private:
  const std::string path_;
  const int fd_;
};

class LocalWriter : public WritableFile {
 public:
  LocalWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
    buffer_.reserve(kBufferBytes);
  }
  ~LocalWriter() override {
    if (fd_ < 0) return;
    Flush().IgnoreError();
    ::close(fd_);
  }

  absl::Status Append(std::string_view bytes) override {
    if (buffer_.size() + bytes.size() > kBufferBytes) TROUPE_RETURN_IF_ERROR(Flush());
    if (bytes.size() >= kBufferBytes) return Write(bytes);
    buffer_.append(bytes);
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    const absl::Status status = Write(buffer_);
    buffer_.clear();
    return status;
  }

  absl::Status Sync() override {
    TROUPE_RETURN_IF_ERROR(Flush());
    if (Retry([&] { return ::fdatasync(fd_); }) != 0) return SystemError("sync", path_);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    const absl::Status status = Flush();
    // Linux has closed the file even if the call was interrupted.
    const int closed = ::close(std::exchange(fd_, -1));
    if (status.ok() && closed != 0 && errno != EINTR) return SystemError("close", path_);
    return status;
  }

 private:
  absl::Status Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = Retry([&] { return ::write(fd_, bytes.data(), bytes.size()); });
      if (n < 0) return SystemError("write", path_);
      bytes.remove_prefix(static_cast<size_t>(n));
      written_ += n;
    }
    if (written_ - handed_on_ >= kHandOnBytes) HandOn();
    return absl::OkStatus();
  }

  // The disk begins to write, so that less is left for `Sync`. A hint, which may fail.
  void HandOn() {
#ifdef SYNC_FILE_RANGE_WRITE
    ::sync_file_range(fd_, handed_on_, written_ - handed_on_, SYNC_FILE_RANGE_WRITE);
#endif
    handed_on_ = written_;
  }

  const std::string path_;
  int fd_;
  std::string buffer_;
  off_t written_ = 0, handed_on_ = 0;
};

class LocalFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForReading(
      const std::string& path) override {
    const int fd = Open(path, O_RDONLY);
    if (fd < 0) return SystemError("open", path);
    auto file = std::make_unique<LocalReader>(path, fd);
    struct stat stat;
    if (::fstat(fd, &stat) != 0) return SystemError("open", path);
    if (S_ISDIR(stat.st_mode)) {
      errno = EISDIR;
      return SystemError("open", path);
    }
    return file;
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    const int fd = Open(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0) return SystemError("create", path);
    return std::make_unique<LocalWriter>(path, fd);
  }

  absl::StatusOr<FileStat> Stat(const std::string& path) override {
    struct stat stat;
    if (::stat(SystemPath(path).c_str(), &stat) != 0) return SystemError("find", path);
    FileStat result;
    result.is_directory = S_ISDIR(stat.st_mode);
    result.size = result.is_directory ? 0 : static_cast<uint64_t>(stat.st_size);
    result.modified_ns = stat.st_mtim.tv_sec * int64_t{1'000'000'000} + stat.st_mtim.tv_nsec;
    return result;
  }

  bool IsSameFile(const std::string& a, const std::string& b) override {
    if (a == b) return true;
    if (!IsLocal(a) || !IsLocal(b) || PathBase(a) != PathBase(b)) return false;
    // The file may not be there yet: its folder tells.
    struct stat one, other;
    return ::stat(SystemPath(PathDirectory(a)).c_str(), &one) == 0 &&
           ::stat(SystemPath(PathDirectory(b)).c_str(), &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(SystemPath(directory).c_str()),
                                                  ::closedir);
    if (dir == nullptr) return SystemError("list", directory);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT: this `dir` is our own
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return SystemError("list", directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status CreateDirectories(const std::string& directory) override {
    const std::string path = SystemPath(directory);
    for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      const std::string parent = path.substr(0, slash);
      if (::mkdir(parent.c_str(), 0777) != 0 && errno != EEXIST) {
        return SystemError("create the folder", parent);
      }
      if (slash == std::string::npos) break;
    }
    TROUPE_ASSIGN_OR_RETURN(const FileStat stat, Stat(directory));
    if (stat.is_directory) return absl::OkStatus();
    errno = ENOTDIR;
    return SystemError("create the folder", directory);
  }

  absl::Status Remove(const std::string& path) override {
    if (::unlink(SystemPath(path).c_str()) == 0) return absl::OkStatus();
    return SystemError("remove", path);
  }

  absl::Status RemoveDirectory(const std::string& directory) override {
    if (::rmdir(SystemPath(directory).c_str()) == 0) return absl::OkStatus();
    return SystemError("remove the folder", directory);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (std::rename(SystemPath(from).c_str(), SystemPath(to).c_str()) == 0) {
      return absl::OkStatus();
    }
    return SystemError(StrCat("rename ", from, " to"), to);
  }

  absl::Status RenameNew(const std::string& from, const std::string& to) override {
    const std::string source = SystemPath(from), target = SystemPath(to);
    const auto failed = [&] { return SystemError(StrCat("rename ", from, " to"), to); };
#ifdef RENAME_NOREPLACE
    if (::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
      return absl::OkStatus();
    }
    if (errno != EINVAL && errno != ENOSYS) return failed();
#endif
    // The disk (EINVAL) or the kernel has no such call. A second name is never made of one that is
    // there; disks without second names give one of these errors.
    if (::link(source.c_str(), target.c_str()) == 0) return Remove(from);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return failed();
    return FileSystem::RenameNew(from, to);
  }

  absl::Status SyncDirectory(const std::string& directory) override {
    const int fd = Open(directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return SystemError("open the folder", directory);
    const int result = Retry([&] { return ::fsync(fd); });
    absl::Status status;
    // Some network file systems sync no folders, and say so by EINVAL.
    if (result != 0 && errno != EINVAL) status = SystemError("sync the folder", directory);
    ::close(fd);
    return status;
  }

 private:
  static int Open(const std::string& path, int flags) {
    const std::string system_path = SystemPath(path);
    return Retry([&] { return ::open(system_path.c_str(), flags | O_CLOEXEC, 0666); });
  }
};

}  // namespace

std::unique_ptr<FileSystem> NewLocalFileSystem() { return std::make_unique<LocalFileSystem>(); }

}  // namespace troupe
