#include "api/internal/training_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "devices/exceptions.h"
#include "devices/log.h"
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
/// The states of kernels that the first record holds. Larger ones, such as that of a dataset's
/// iterator with a window full of images, have records of their own.
constexpr size_t kInlineBytes = size_t{16} << 20;
constexpr size_t kRecordBytes = size_t{16} << 20;

absl::Status WriteMessage(const google::protobuf::MessageLite& message, const std::string& what,
                          RecordWriter* writer) {
  std::string record;
  if (message.ByteSizeLong() > INT32_MAX || !message.SerializeToString(&record)) {
    return absl::ResourceExhaustedError(StrCat(what, " takes 2 GiB or more"));
  }
  return writer->Write(record);
}

absl::Status WriteTuple(const Tuple& tuple, const std::string& what, RecordWriter* writer) {
  TupleDef def;
  TROUPE_RETURN_IF_ERROR(TupleToDef(tuple, &def));
  return WriteMessage(def, what, writer);
}

absl::Status WriteInRecords(std::string_view bytes, RecordWriter* writer) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kRecordBytes))) {
    TROUPE_RETURN_IF_ERROR(writer->Write(bytes.substr(0, kRecordBytes)));
  }
  return absl::OkStatus();
}

absl::Status WriteRecords(const TrainingState& state, RecordWriter* writer) {
  TrainingStateDef def;
  def.set_global_step(state.global_step);
  std::vector<std::string_view> large;
  size_t room = kInlineBytes;
  for (const auto& [node, bytes] : state.kernels) {
    KernelStateDef* one = def.add_kernel();
    one->set_node(node);
    if (bytes.size() <= room) {
      one->set_state(bytes);
      room -= bytes.size();
    } else {
      one->set_records(static_cast<int64_t>((bytes.size() - 1) / kRecordBytes + 1));
      large.push_back(bytes);
    }
  }
  for (const auto& [node, bytes] : state.readers) {
    KernelStateDef* one = def.add_reader();
    one->set_node(node);
    one->set_state(bytes);
  }
  for (const auto& [node, queue] : state.queues) {
    QueueStateDef* to = def.add_queue();
    to->set_node(node);
    to->set_closed(queue.closed);
    to->set_closing(queue.closing);
    to->set_generator(queue.generator);
    to->set_elements(static_cast<int64_t>(queue.elements.size()));
    to->set_waiting(static_cast<int64_t>(queue.waiting.size()));
  }
  for (const auto& [node, value] : state.variables) def.add_variable(node);
  std::vector<std::pair<const std::string*, std::vector<Tuple>>> others;
  for (const KeptResource& resource : state.resources) {
    ResourceStateDef* to = def.add_resource();
    PlaceToDef(resource.place, to);
    others.emplace_back(&resource.place.node, StateToDef(resource.state, to));
    to->set_tuples(static_cast<int64_t>(others.back().second.size()));
  }
  TROUPE_RETURN_IF_ERROR(WriteMessage(def, "the state of a training", writer));
  for (const std::string_view bytes : large) TROUPE_RETURN_IF_ERROR(WriteInRecords(bytes, writer));
  for (const auto& [node, queue] : state.queues) {
    for (const auto* tuples : {&queue.elements, &queue.waiting}) {
      for (const Tuple& tuple : *tuples) {
        TROUPE_RETURN_IF_ERROR(
            WriteTuple(tuple, StrCat("an element of queue '", node, "'"), writer));
      }
    }
  }
  for (const auto& [node, value] : state.variables) {
    TROUPE_RETURN_IF_ERROR(WriteTuple({value}, StrCat("variable '", node, "'"), writer));
  }
  for (const auto& [node, tuples] : others) {
    for (const Tuple& tuple : tuples) {
      TROUPE_RETURN_IF_ERROR(WriteTuple(tuple, StrCat("a tuple of '", *node, "'"), writer));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteFile(FileSystem* files, const std::string& path, const TrainingState& state) {
  TROUPE_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(files, path));
  TROUPE_RETURN_IF_ERROR(WriteRecords(state, writer.get()));
  TROUPE_RETURN_IF_ERROR(writer->Sync());
  return writer->Close();
}

}  // namespace

std::string TrainingStatePath(const std::string& prefix) { return prefix + kSuffix; }

absl::Status WriteTrainingState(const std::string& prefix, const TrainingState& state) {
  const std::string path = TrainingStatePath(prefix);
  const std::string aside = TemporaryName(path, "");
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  const absl::Status written = WriteFile(files, aside, state);
  if (!written.ok()) {
    files->Remove(aside).IgnoreError();
    return written;
  }
  TROUPE_RETURN_IF_ERROR(files->Rename(aside, path));
  return files->SyncDirectory(PathDirectory(path));
}

namespace {

/// Reads records as messages; errors name the file.
class MessageReader {
 public:
  MessageReader(RecordReader* reader, const std::string& path) : reader_(reader), path_(path) {}

  absl::Status Next(const std::string& what, google::protobuf::MessageLite* message) {
    TROUPE_ASSIGN_OR_RETURN(const bool found, reader_->Next(&record_));
    if (!found) return Wrong(StrCat("it ends before ", what));
    if (record_.size() > INT32_MAX || !message->ParseFromString(record_)) {
      return Wrong(StrCat(what, " is no ", message->GetTypeName()));
    }
    return absl::OkStatus();
  }

  /// Adds the bytes of so many records.
  absl::Status AppendNext(const std::string& what, int64_t records, std::string* bytes) {
    for (int64_t i = 0; i < records; ++i) {
      TROUPE_ASSIGN_OR_RETURN(const bool found, reader_->Next(&record_));
      if (!found) return Wrong(StrCat("it ends before ", what));
      bytes->append(record_);
    }
    return absl::OkStatus();
  }

  /// Without `partial` all components are there.
  absl::StatusOr<Tuple> NextTuple(const std::string& what, bool partial = false) {
    TupleDef def;
    TROUPE_RETURN_IF_ERROR(Next(what, &def));
    absl::StatusOr<Tuple> tuple = TupleFromDef(&def);
    if (tuple.ok() && !partial) {
      for (const Tensor& component : *tuple) {
        if (!component.valid()) return Wrong(StrCat(what, " lacks a component"));
      }
    }
    if (tuple.ok() || absl::IsResourceExhausted(tuple.status())) return tuple;
    return Wrong(StrCat(what, " is no tuple of tensors: ", tuple.status().message()));
  }

  absl::Status End() {
    TROUPE_ASSIGN_OR_RETURN(const bool more, reader_->Next(&record_));
    return more ? Wrong("it has more records than it says") : absl::OkStatus();
  }

  absl::Status Wrong(std::string_view what) const {
    return absl::DataLossError(StrCat(path_, ": ", what));
  }

 private:
  RecordReader* const reader_;
  const std::string& path_;
  std::string record_;
};

absl::StatusOr<TrainingState> ReadState(MessageReader reader) {
  TrainingStateDef def;
  TROUPE_RETURN_IF_ERROR(reader.Next("its first record", &def));
  TrainingState state{.global_step = def.global_step()};
  for (const KernelStateDef& from : def.kernel()) {
    std::string& bytes = state.kernels[from.node()] = from.state();
    const std::string what = StrCat("the end of the state of '", from.node(), "'");
    TROUPE_RETURN_IF_ERROR(reader.AppendNext(what, from.records(), &bytes));
  }
  for (const KernelStateDef& from : def.reader()) state.readers[from.node()] = from.state();
  for (const QueueStateDef& from : def.queue()) {
    QueueState& queue = state.queues[from.node()];
    queue.closed = from.closed();
    queue.closing = from.closing();
    queue.generator = from.generator();
    const std::string what = StrCat("an element of queue '", from.node(), "'");
    for (int64_t i = 0; i < from.elements(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(queue.elements.emplace_back(), reader.NextTuple(what));
    }
    for (int64_t i = 0; i < from.waiting(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(queue.waiting.emplace_back(), reader.NextTuple(what));
    }
  }
  for (const std::string& name : def.variable()) {
    const std::string what = StrCat("the value of variable '", name, "'");
    TROUPE_ASSIGN_OR_RETURN(Tuple value, reader.NextTuple(what));
    if (value.size() != 1) return reader.Wrong(StrCat(what, " is not one tensor"));
    state.variables[name] = std::move(value[0]);
  }
  for (const ResourceStateDef& from : def.resource()) {
    const std::string what = StrCat("a tuple of '", from.node(), "'");
    std::vector<Tuple> tuples;
    for (int64_t i = 0; i < from.tuples(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(tuples.emplace_back(), reader.NextTuple(what, /*partial=*/true));
    }
    auto read = StateFromDef(from, std::move(tuples));
    if (!read.ok()) return reader.Wrong(StrCat("'", from.node(), "': ", read.status().message()));
    state.resources.push_back({PlaceFromDef(from), *std::move(read)});
  }
  TROUPE_RETURN_IF_ERROR(reader.End());
  return state;
}

}  // namespace

absl::StatusOr<TrainingState> ReadTrainingState(const std::string& prefix) {
  const std::string path = TrainingStatePath(prefix);
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  TROUPE_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(files, path));
  return ReadState(MessageReader(reader.get(), path));
}

absl::Status RemoveOrphanedStates(const std::string& directory, const std::set<std::string>& kept) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(directory));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (!absl::EndsWith(name, kSuffix) || kept.count(name) > 0) continue;
    const std::string checkpoint = path.substr(0, path.size() - sizeof(kSuffix) + 1);
    // That of a V2 checkpoint, or of one that is in a single file.
    bool there = false;
    for (const char* suffix : {".index", ""}) {
      const absl::Status exists = files->Exists(checkpoint + suffix);
      if (!exists.ok() && !absl::IsNotFound(exists)) return exists;
      there |= exists.ok();
    }
    if (there) continue;
    // The checkpoints are none the worse for it; another process may clean up, too.
    const absl::Status removed = files->Remove(path);
    if (removed.ok() || absl::IsNotFound(removed)) continue;
    WriteLog(LogLevel::kWarning, "", {"checkpoint"}, "cannot remove ", path, ": ",
             std::string(removed.message()));
  }
  return absl::OkStatus();
}

}  // namespace troupe
