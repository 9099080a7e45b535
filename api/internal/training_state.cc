#include "api/internal/training_state.h"

#include <utility>

#include "absl/strings/match.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"
#include "devices/storage/whole_file.h"
#include "graph/protos/training_state.pb.h"

namespace troupe {
namespace {

constexpr char kSuffix[] = ".troupe-state";

absl::Status WriteRecord(FileSystem* files, const std::string& path, const std::string& record) {
  TROUPE_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(files, path));
  TROUPE_RETURN_IF_ERROR(writer->Write(record));
  TROUPE_RETURN_IF_ERROR(writer->Sync());
  return writer->Close();
}

absl::Status Damaged(const std::string& path, std::string_view what) {
  return absl::DataLossError(StrCat(path, ": ", what));
}

}  // namespace

std::string TrainingStatePath(const std::string& prefix) { return prefix + kSuffix; }

absl::Status WriteTrainingState(const std::string& prefix, const TrainingState& state) {
  TrainingStateDef def;
  def.set_global_step(state.global_step);
  for (const auto& [node, bytes] : state.kernels) {
    KernelStateDef* kernel = def.add_kernel();
    kernel->set_node(node);
    kernel->set_state(bytes);
  }
  const std::string path = TrainingStatePath(prefix);
  const std::string aside = TemporaryName(path, "");
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  const absl::Status written = WriteRecord(files, aside, def.SerializeAsString());
  if (!written.ok()) {
    files->Remove(aside).IgnoreError();
    return written;
  }
  TROUPE_RETURN_IF_ERROR(files->Rename(aside, path));
  return files->SyncDirectory(PathDirectory(path));
}

absl::StatusOr<TrainingState> ReadTrainingState(const std::string& prefix) {
  const std::string path = TrainingStatePath(prefix);
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  TROUPE_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(files, path));
  std::string record;
  TROUPE_ASSIGN_OR_RETURN(const bool found, reader->Next(&record));
  TrainingStateDef def;
  if (!found) return Damaged(path, "it is empty");
  if (record.size() > INT32_MAX || !def.ParseFromString(record)) {
    return Damaged(path, "its record is no TrainingStateDef");
  }
  TROUPE_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
  if (more) return Damaged(path, "it has more than one record");
  TrainingState state{.global_step = def.global_step()};
  for (const KernelStateDef& kernel : def.kernel()) state.kernels[kernel.node()] = kernel.state();
  return state;
}

absl::Status RemoveOrphanedStates(const std::string& directory, const std::set<std::string>& kept) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(directory));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (!absl::EndsWith(name, kSuffix) || kept.count(path) > 0) continue;
    const std::string checkpoint = path.substr(0, path.size() - sizeof(kSuffix) + 1);
    // That of a V2 checkpoint, or of one that is in a single file.
    bool there = false;
    for (const char* suffix : {".index", ""}) {
      const absl::Status exists = files->Exists(checkpoint + suffix);
      if (!exists.ok() && !absl::IsNotFound(exists)) return exists;
      there |= exists.ok();
    }
    if (!there) TROUPE_RETURN_IF_ERROR(files->Remove(path));
  }
  return absl::OkStatus();
}

}  // namespace troupe
