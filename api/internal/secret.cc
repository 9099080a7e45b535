#include "api/internal/secret.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "devices/status_macros.h"
#include "net/address.h"

namespace troupe {

namespace {

constexpr size_t kMinBytes = 16, kMaxBytes = 4096, kRandomBytes = 32;

/// A file descriptor that is closed at the end. `get` is negative if there is none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status Errno(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

/// The secret in an open file, of which `name` is for messages.
absl::StatusOr<std::string> ReadOpen(int fd, const std::string& name) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Errno(name);
  if (!S_ISREG(about.st_mode)) return InvalidArgument(name, " is no regular file");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(
        StrCat(name, " can be read or written by others than its owner: chmod 600 it"));
  }
  char bytes[kMaxBytes + 2];
  size_t size = 0;
  while (size < sizeof(bytes)) {
    const ssize_t n = read(fd, bytes + size, sizeof(bytes) - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno(name);
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > 0 && bytes[size - 1] == '\n') --size;
  if (size < kMinBytes || size > kMaxBytes) {
    return InvalidArgument(name, " holds ", size > kMaxBytes ? "more than " : "",
                           std::min(size, kMaxBytes), " bytes; a secret has ", kMinBytes, " to ",
                           kMaxBytes);
  }
  return std::string(bytes, size);
}

/// True if the file is locked: who has published it lives.
absl::StatusOr<bool> Lives(int fd, const std::string& name) {
  // Shared, so that two who look at once do not take each other for the owner.
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return Errno(StrCat("the lock of ", name));
}

/// "secret-127.0.0.1:7000": what the secret of a task is called.
std::string NameFor(HostPort address) {
  if (address.host == "localhost") address.host = "127.0.0.1";
  return StrCat("secret-", address.ToString());
}

bool IsOwn(const struct stat& about) { return about.st_uid == geteuid(); }

/// Where secrets may be published, the best place first. The folder "troupe" in them is ours.
std::vector<std::string> Parents() {
  std::vector<std::string> parents;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  struct stat about {};
  // After a change of users it may be another's.
  if (runtime != nullptr && runtime[0] == '/' && stat(runtime, &about) == 0 && IsOwn(about)) {
    parents.emplace_back(runtime);
  }
  std::string home;
  if (const char* set = std::getenv("HOME")) home = set;
  if (home.empty()) {
    passwd entry{};
    passwd* found = nullptr;
    std::string buffer(16384, '\0');
    getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
    if (found != nullptr) home = entry.pw_dir;
  }
  if (!home.empty() && home[0] == '/') parents.push_back(home + "/.cache");
  return parents;
}

Descriptor OpenFolder(const std::string& folder) {
  return Descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Nobody else may put anything there, or take it away.
absl::Status CheckFolder(int fd, const std::string& folder) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Errno(folder);
  if (IsOwn(about) && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("the folder of secrets, ", folder,
             ", is not this user's, or others can look into it; chmod 700 or remove it"));
}

/// The secret that a living process has published in `folder` under `name`; empty: none.
absl::StatusOr<std::string> ReadPublished(const std::string& folder, const std::string& name) {
  const Descriptor dir = OpenFolder(folder);
  if (dir.get() < 0) return std::string();
  const std::string path = StrCat(folder, "/", name);
  const Descriptor file(
      openat(dir.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::string();
    return Errno(StrCat("the published secret ", path));
  }
  TROUPE_RETURN_IF_ERROR(CheckFolder(dir.get(), folder));
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || !IsOwn(about)) {
    return absl::FailedPreconditionError(
        StrCat("the published secret ", path, " is not this user's; remove it"));
  }
  TROUPE_ASSIGN_OR_RETURN(const bool lives, Lives(file.get(), path));
  if (!lives) return std::string();
  return ReadOpen(file.get(), StrCat("the published secret ", path));
}

/// Makes the folder of a parent if it is not there. An error: it cannot be used.
absl::StatusOr<Descriptor> MakeFolder(const std::string& parent, const std::string& folder) {
  // A home has no cache at first.
  for (const std::string* path : {&parent, &folder}) {
    if (mkdir(path->c_str(), S_IRWXU) != 0 && errno != EEXIST) return Errno(*path);
  }
  Descriptor fd = OpenFolder(folder);
  if (fd.get() < 0) return Errno(folder);
  TROUPE_RETURN_IF_ERROR(CheckFolder(fd.get(), folder));
  return fd;
}

/// Writes a file of a name that there is not, and locks it.
absl::StatusOr<Descriptor> WriteLocked(int folder, const std::string& name,
                                       const std::string& secret) {
  unlinkat(folder, name.c_str(), 0);  // Of one that was killed while it wrote.
  Descriptor file(openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
  const std::string text = StrCat(secret, "\n");
  if (file.get() < 0 || write(file.get(), text.data(), text.size()) != std::ssize(text) ||
      flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return Errno(StrCat("cannot write ", name));
  }
  return file;
}

/// While it lives, nobody else publishes or removes anything in the folder.
class FolderLock {
 public:
  explicit FolderLock(int folder) : folder_(folder) {
    while (flock(folder_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() { flock(folder_, LOCK_UN); }

 private:
  const int folder_;
};

}  // namespace

absl::StatusOr<std::string> ReadSecret(const std::string& file) {
  // A pipe is not to be waited for.
  const Descriptor fd(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string name = StrCat("secret file ", file);
  if (fd.get() < 0) return Errno(name);
  return ReadOpen(fd.get(), name);
}

absl::StatusOr<std::string> SecretFor(const std::string& file, const std::string& address) {
  if (!file.empty()) return ReadSecret(file);
  TROUPE_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  if (!IsLoopback(parsed.host)) return std::string();
  for (const std::string& parent : Parents()) {
    TROUPE_ASSIGN_OR_RETURN(std::string secret, ReadPublished(parent + "/troupe", NameFor(parsed)));
    if (!secret.empty()) return secret;
  }
  return std::string();
}

absl::StatusOr<std::unique_ptr<PublishedSecret>> PublishedSecret::Create(
    const std::vector<std::string>& addresses) {
  std::vector<std::string> names;
  for (const std::string& address : addresses) {
    TROUPE_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
    if (!IsLoopback(parsed.host)) return nullptr;
    names.push_back(NameFor(parsed));
  }
  std::unique_ptr<PublishedSecret> published(new PublishedSecret);
  absl::Status why = absl::NotFoundError("this user has no home");
  for (const std::string& parent : Parents()) {
    published->folder_ = parent + "/troupe";
    absl::StatusOr<Descriptor> folder = MakeFolder(parent, published->folder_);
    why = folder.status();
    if (why.ok()) published->folder_fd_ = folder->Release();
    // One that is there and not safe is not passed over.
    if (why.ok() || absl::IsFailedPrecondition(why)) break;
  }
  if (!why.ok()) {
    return absl::FailedPreconditionError(
        StrCat("there is no place for the cluster's secret: ", std::string(why.message()),
               "; give --secret-file, or set XDG_RUNTIME_DIR"));
  }
  const int folder = published->folder_fd_;
  unsigned char random[kRandomBytes];
  if (RAND_bytes(random, sizeof(random)) != 1) return absl::InternalError("no random numbers");
  const std::string secret =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(random), sizeof(random)));
  const FolderLock lock(folder);
  for (const std::string& name : names) {
    const std::string path = StrCat(published->folder_, "/", name);
    const Descriptor earlier(
        openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (earlier.get() >= 0) {
      TROUPE_ASSIGN_OR_RETURN(const bool lives, Lives(earlier.get(), path));
      if (lives) {
        return absl::AlreadyExistsError(
            StrCat("a cluster of this user serves there already; its secret is ", path));
      }
    }
    const std::string unfinished = name + ".new";
    TROUPE_ASSIGN_OR_RETURN(Descriptor file, WriteLocked(folder, unfinished, secret));
    if (renameat(folder, unfinished.c_str(), folder, name.c_str()) != 0) {
      return Errno(StrCat("cannot write ", path));
    }
    published->files_[name] = file.Release();
  }
  return published;
}

PublishedSecret::~PublishedSecret() {
  if (folder_fd_ < 0) return;
  {
    const FolderLock lock(folder_fd_);
    for (const auto& [name, fd] : files_) {
      unlinkat(folder_fd_, name.c_str(), 0);
      close(fd);
    }
  }
  close(folder_fd_);
}

std::string PublishedSecret::file(const std::string& address) const {
  return StrCat(folder_, "/", NameFor(ParseHostPort(address).value()));
}

}  // namespace troupe
