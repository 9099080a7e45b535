#include "tests/devices/storage/simulated_disk.h"

#include <algorithm>
#include <random>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/path.h"

namespace troupe {
namespace {

constexpr size_t kSectorBytes = 512;

absl::Status NotFound(const std::string& path) {
  return absl::NotFoundError(StrCat(path, ": No such file or directory"));
}

}  // namespace

struct SimulatedDisk::File {
  std::string now;      // what readers see
  std::string durable;  // what survives for certain
  int64_t modified = 0;
};

struct SimulatedDisk::Names {
  std::map<std::string, std::shared_ptr<File>> files;
  std::set<std::string> directories = {".", "/"};
};

/// A name that appears, disappears or changes.
struct SimulatedDisk::Change {
  std::string removed;  // empty if none is
  std::string added;    // a file if there is one, else a folder; empty if none is
  std::shared_ptr<File> file;
};

class SimulatedDisk::Reader : public RandomAccessFile {
 public:
  Reader(const SimulatedDisk* disk, std::shared_ptr<File> file)
      : disk_(disk), file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, absl::Span<char> to) const override {
    const std::lock_guard<std::mutex> lock(disk_->mutex_);
    TROUPE_RETURN_IF_ERROR(disk_->CheckPower());
    if (offset >= file_->now.size()) return size_t{0};
    return file_->now.copy(to.data(), to.size(), offset);
  }
  absl::StatusOr<uint64_t> Size() const override {
    const std::lock_guard<std::mutex> lock(disk_->mutex_);
    TROUPE_RETURN_IF_ERROR(disk_->CheckPower());
    return file_->now.size();
  }

 private:
  const SimulatedDisk* const disk_;
  const std::shared_ptr<File> file_;
};

class SimulatedDisk::Writer : public WritableFile {
 public:
  Writer(SimulatedDisk* disk, std::shared_ptr<File> file) : disk_(disk), file_(std::move(file)) {}

  absl::Status Append(std::string_view bytes) override {
    const std::lock_guard<std::mutex> lock(disk_->mutex_);
    absl::Status status;
    const Turn turn = disk_->Begin(/*needs_space=*/true, &status);
    if (turn == Turn::kDoHalf) bytes = bytes.substr(0, bytes.size() / 2);
    if (turn != Turn::kRefuse) file_->now.append(bytes);
    file_->modified = ++disk_->clock_;
    return status;
  }
  absl::Status Flush() override {
    const std::lock_guard<std::mutex> lock(disk_->mutex_);
    return disk_->CheckPower();
  }
  absl::Status Sync() override {
    const std::lock_guard<std::mutex> lock(disk_->mutex_);
    absl::Status status;
    const Turn turn = disk_->Begin(/*needs_space=*/false, &status);
    const size_t synced = file_->durable.size();
    if (turn == Turn::kDo) file_->durable = file_->now;
    if (turn == Turn::kDoHalf) {
      file_->durable = file_->now.substr(0, synced + (file_->now.size() - synced) / 2);
    }
    return status;
  }
  absl::Status Close() override { return Flush(); }

 private:
  SimulatedDisk* const disk_;
  const std::shared_ptr<File> file_;
};

SimulatedDisk::SimulatedDisk()
    : now_(std::make_unique<Names>()), durable_(std::make_unique<Names>()) {}
SimulatedDisk::~SimulatedDisk() = default;

void SimulatedDisk::SetFault(Fault fault, int64_t at) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fault_ = fault;
  fault_at_ = at;
  events_ = 0;
  failed_ = false;
}

int64_t SimulatedDisk::events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_;
}

bool SimulatedDisk::failed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failed_;
}

absl::Status SimulatedDisk::CheckPower() const {
  return off_ ? absl::InternalError("the power is off") : absl::OkStatus();
}

SimulatedDisk::Turn SimulatedDisk::Begin(bool needs_space, absl::Status* status) {
  *status = CheckPower();
  if (off_) return Turn::kRefuse;
  const int64_t event = events_++;
  if (fault_ == Fault::kNone || event < fault_at_) return Turn::kDo;
  if (fault_ == Fault::kDiskFull && !needs_space) return Turn::kDo;
  failed_ = true;
  switch (fault_) {
    case Fault::kDiskFull:
      *status = absl::ResourceExhaustedError("No space left on device");
      return Turn::kDoHalf;
    case Fault::kReadOnly:
      *status = absl::FailedPreconditionError("Read-only file system");
      return Turn::kRefuse;
    default:
      off_ = true;
      *status = CheckPower();
      if (fault_ == Fault::kPowerBefore) return Turn::kRefuse;
      return fault_ == Fault::kPowerMiddle ? Turn::kDoHalf : Turn::kDo;
  }
}

void SimulatedDisk::Apply(const Change& change, Names* names) const {
  if (!change.removed.empty()) {
    names->files.erase(change.removed);
    names->directories.erase(change.removed);
  }
  if (change.added.empty()) return;
  if (change.file != nullptr) {
    names->files[change.added] = change.file;
  } else {
    names->directories.insert(change.added);
  }
}

void SimulatedDisk::Record(Change change) {
  Apply(change, now_.get());
  unsynced_.push_back(std::move(change));
}

void SimulatedDisk::Restart(uint64_t seed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::mt19937_64 random(seed);
  for (const Change& change : unsynced_) {
    if (random() % 2 == 0) Apply(change, durable_.get());
  }
  unsynced_.clear();
  // A folder that was lost takes its files along.
  std::erase_if(durable_->files, [&](const auto& entry) {
    return !durable_->directories.contains(PathDirectory(entry.first));
  });
  for (auto& [path, file] : durable_->files) {
    auto left = std::make_shared<File>(*file);
    const size_t synced = file->durable.size();
    if (file->now.size() > synced) {
      left->now.resize(synced + random() % (file->now.size() - synced + 1));
      for (size_t at = synced; at < left->now.size(); at += kSectorBytes) {
        if (random() % 4 != 0) continue;
        const size_t n = std::min(kSectorBytes, left->now.size() - at);
        left->now.replace(at, n, n, '\0');
      }
    }
    left->durable = left->now;
    file = std::move(left);
  }
  *now_ = *durable_;
  off_ = false;
  fault_ = Fault::kNone;
}

void SimulatedDisk::Clear() {
  SetFault(Fault::kNone, 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  *now_ = *durable_ = Names();
  unsynced_.clear();
  off_ = false;
}

void SimulatedDisk::Put(const std::string& path, std::string contents) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto file = std::make_shared<File>();
  file->now = file->durable = std::move(contents);
  for (Names* names : {now_.get(), durable_.get()}) {
    names->files[path] = file;
    names->directories.insert(PathDirectory(path));
  }
}

std::string SimulatedDisk::Contents(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_->files.at(path)->now;
}

std::vector<std::string> SimulatedDisk::Files() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> files;
  for (const auto& [path, file] : now_->files) files.push_back(path);
  return files;
}

absl::Status SimulatedDisk::CheckDirectory(const std::string& path) const {
  return now_->directories.contains(PathDirectory(path)) ? absl::OkStatus() : NotFound(path);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> SimulatedDisk::OpenForReading(
    const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckPower());
  if (now_->directories.contains(path)) {
    return absl::FailedPreconditionError(StrCat(path, ": Is a directory"));
  }
  const auto found = now_->files.find(path);
  if (found == now_->files.end()) return NotFound(path);
  return std::make_unique<Reader>(this, found->second);
}

absl::StatusOr<std::unique_ptr<WritableFile>> SimulatedDisk::Create(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status;
  const Turn turn = Begin(/*needs_space=*/true, &status);
  if (status.ok()) status = CheckDirectory(path);
  if (turn == Turn::kRefuse) return status;
  // A file that was there is cut to nothing, whether or not the new one appears.
  const auto old = now_->files.find(path);
  if (old != now_->files.end()) old->second->now = old->second->durable = "";
  auto file = std::make_shared<File>();
  file->modified = ++clock_;
  if (status.ok() || off_) Record({"", path, file});
  if (!status.ok()) return status;
  return std::make_unique<Writer>(this, std::move(file));
}

absl::StatusOr<FileStat> SimulatedDisk::Stat(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckPower());
  FileStat stat;
  stat.is_directory = now_->directories.contains(path);
  if (stat.is_directory) return stat;
  const auto found = now_->files.find(path);
  if (found == now_->files.end()) return NotFound(path);
  stat.size = found->second->now.size();
  stat.modified_ns = found->second->modified;
  return stat;
}

absl::StatusOr<std::vector<std::string>> SimulatedDisk::List(const std::string& directory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckPower());
  if (!now_->directories.contains(directory)) return NotFound(directory);
  std::vector<std::string> names;
  for (const auto& [path, file] : now_->files) {
    if (PathDirectory(path) == directory) names.emplace_back(PathBase(path));
  }
  for (const std::string& path : now_->directories) {
    if (path != directory && PathDirectory(path) == directory && path != ".") {
      names.emplace_back(PathBase(path));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status SimulatedDisk::CreateDirectories(const std::string& directory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckPower());
  std::vector<std::string> missing;
  for (std::string at = directory; !now_->directories.contains(at); at = PathDirectory(at)) {
    if (PathDirectory(at) == at) break;  // A scheme's root.
    if (now_->files.contains(at)) {
      return absl::FailedPreconditionError(StrCat(at, ": Not a directory"));
    }
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    absl::Status status;
    if (Begin(/*needs_space=*/true, &status) == Turn::kDo) Record({"", missing.back(), nullptr});
    TROUPE_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Remove(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status;
  const Turn turn = Begin(/*needs_space=*/false, &status);
  if (status.ok() && !now_->files.contains(path)) status = NotFound(path);
  if (turn != Turn::kRefuse && now_->files.contains(path)) Record({path, "", nullptr});
  return status;
}

absl::Status SimulatedDisk::RemoveDirectory(const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = List(directory);
  TROUPE_RETURN_IF_ERROR(names.status());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!names->empty()) {
    return absl::FailedPreconditionError(StrCat(directory, ": Directory not empty"));
  }
  absl::Status status;
  if (Begin(/*needs_space=*/false, &status) != Turn::kRefuse) Record({directory, "", nullptr});
  return status;
}

absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return RenameLocked(from, to);
}

absl::Status SimulatedDisk::RenameNew(const std::string& from, const std::string& to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckPower());
  if (now_->files.contains(to)) return absl::AlreadyExistsError(StrCat(to, ": File exists"));
  return RenameLocked(from, to);
}

absl::Status SimulatedDisk::RenameLocked(const std::string& from, const std::string& to) {
  absl::Status status;
  const Turn turn = Begin(/*needs_space=*/false, &status);
  const auto found = now_->files.find(from);
  if (status.ok() && found == now_->files.end()) status = NotFound(from);
  if (status.ok()) status = CheckDirectory(to);
  if (status.ok() && now_->directories.contains(to)) {
    return absl::FailedPreconditionError(StrCat(to, ": Is a directory"));
  }
  if (turn != Turn::kRefuse && found != now_->files.end()) {
    const std::shared_ptr<File> file = found->second;
    Record({from, to, file});
  }
  return status;
}

absl::Status SimulatedDisk::SyncDirectory(const std::string& directory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status;
  if (Begin(/*needs_space=*/false, &status) != Turn::kDo) return status;
  std::erase_if(unsynced_, [&](const Change& change) {
    const std::string& name = change.added.empty() ? change.removed : change.added;
    if (PathDirectory(name) != directory) return false;
    Apply(change, durable_.get());
    return true;
  });
  return status;
}

}  // namespace troupe
