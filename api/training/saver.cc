#include "api/training/saver.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "absl/strings/str_format.h"
#include "api/internal/check_restore.h"
#include "api/internal/global_step.h"
#include "api/internal/saver_builder.h"
#include "api/lookup.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "graph/meta_graph.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

/// Removes a checkpoint from a list, however it is spelled there.
void Forget(const std::string& prefix, Saver::TimedCheckpoints* checkpoints) {
  const absl::StatusOr<FileSystem*> files = FileSystems().Find(prefix);
  std::erase_if(*checkpoints, [&](const auto& checkpoint) {
    return checkpoint.first == prefix ||
           (files.ok() && (*files)->IsSameFile(checkpoint.first, prefix));
  });
}

}  // namespace

struct Saver::Impl {
  SaverOptions options;
  bool built = false, empty = false;
  SaverDef def;
  std::string held_name;  ///< Empty: it cannot save asynchronously.

  std::mutex mutex;  ///< Guards what follows, and the state file.
  TimedCheckpoints last;
  TimedCheckpoints to_be_removed;
  absl::Time next_kept;  ///< A checkpoint of after that is kept in place of being removed.

  /// Adds the nodes.
  void Build(const Scope& scope, std::vector<Saveable> saveables);

  void Start() {
    built = true;
    next_kept = options.now() + absl::Hours(1) * double{def.keep_checkpoint_every_n_hours()};
  }

  absl::Status CheckBuilt() const {
    if (built) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the saver could not be made: the status of its scope says why");
  }

  void Record(const std::string& saved) {
    if (def.max_to_keep() <= 0) return;
    Forget(saved, &last);
    Forget(saved, &to_be_removed);  // An error may have left it there.
    last.emplace_back(saved, options.now());
    while (last.size() > static_cast<size_t>(def.max_to_keep())) {
      to_be_removed.push_back(last.front());
      last.erase(last.begin());
    }
  }

  absl::Status WriteState(const std::string& directory, const std::string& saved,
                          const std::string& latest_filename) const {
    CheckpointHistory history;
    history.latest = saved;
    const bool timed = std::all_of(last.begin(), last.end(), [](const auto& checkpoint) {
      return checkpoint.second < absl::InfiniteFuture();
    });
    for (const auto& [prefix, time] : last) {
      history.all.push_back(prefix);
      if (timed) history.timestamps.push_back(absl::ToDoubleSeconds(time - absl::UnixEpoch()));
    }
    return UpdateCheckpointState(directory, std::move(history),
                                 {.relative_paths = options.save_relative_paths,
                                  .file_name = latest_filename,
                                  .replace = {}});
  }

  void RemoveOld(const std::string& meta_graph_suffix) {
    for (const auto& [prefix, time] : std::exchange(to_be_removed, {})) {
      if (time > next_kept) {
        next_kept += absl::Hours(1) * double{def.keep_checkpoint_every_n_hours()};
        continue;
      }
      const absl::Status status = RemoveCheckpoint(prefix, meta_graph_suffix);
      if (status.ok()) continue;
      WriteLog(LogLevel::kWarning, "", {"checkpoint"}, "cannot remove ", prefix, ": ",
               std::string(status.message()));
    }
  }
};

namespace {

/// What a saver saves that was not told.
absl::StatusOr<std::vector<Saveable>> VariablesAndTables(const Graph& graph) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<Saveable> saveables, SaveablesOfGraph(graph));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Saveable> tables, MutableTableBase::SaveablesOf(graph));
  saveables.insert(saveables.end(), tables.begin(), tables.end());
  return saveables;
}

/// Names twice are an error, unless they are of parts of one tensor; so are variables.
absl::Status CheckSaveables(const std::vector<Saveable>& saveables) {
  std::set<std::string> names;
  std::map<std::string, std::string> wholes;  // Full shapes of what is saved in parts.
  std::set<const Node*> nodes;
  for (const Saveable& saveable : saveables) {
    TROUPE_RETURN_IF_ERROR(saveable.status());
    if (!nodes.insert(saveable.node()).second) {
      return InvalidArgument("'", saveable.node()->name(), "' would be restored twice, here as '",
                             saveable.name(), "'");
    }
    for (const SavedTensor& tensor : saveable.tensors()) {
      const std::string& part = tensor.shape_and_slice;
      const bool taken =
          names.count(tensor.name) > 0 || (part.empty() && wholes.count(tensor.name) > 0);
      if (taken) return InvalidArgument("two variables would be saved as '", tensor.name, "'");
      if (part.empty()) {
        names.insert(tensor.name);
        continue;
      }
      const std::string whole = part.substr(0, part.rfind(' '));
      const auto [it, added] = wholes.emplace(tensor.name, whole);
      if (!added && it->second != whole) {
        return InvalidArgument("parts of '", tensor.name, "' are of different wholes: of [",
                               it->second, "] and [", whole, "]");
      }
    }
  }
  return absl::OkStatus();
}

std::string WithScope(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : StrCat(scope, "/", name);
}

}  // namespace

Saver::Saver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Saver::~Saver() = default;

Saver::Saver(const Scope& scope, SaveableList variables, SaverOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  if (!scope.ok()) return;
  absl::StatusOr<std::vector<Saveable>> saveables = std::vector<Saveable>();
  if (variables.list().has_value()) {
    saveables = *variables.list();
  } else {
    saveables = VariablesAndTables(*scope.graph());
  }
  absl::Status status = saveables.status();
  if (status.ok()) status = CheckSaveables(*saveables);
  if (status.ok() && saveables->empty() && !impl_->options.allow_empty) {
    status = InvalidArgument(
        "there are no variables to save: make the saver after them, or with allow_empty");
  }
  if (status.ok()) {
    impl_->Build(scope, *std::move(saveables));
  } else {
    scope.UpdateStatus(status);
  }
}

void Saver::Impl::Build(const Scope& scope, std::vector<Saveable> saveables) {
  const bool v1 = options.write_version == SaverOptions::Format::kV1;
  def.set_max_to_keep(options.max_to_keep);
  def.set_keep_checkpoint_every_n_hours(static_cast<float>(options.keep_checkpoint_every_n_hours));
  def.set_sharded(options.sharded);
  def.set_version(v1 ? SaverDef::V1 : SaverDef::V2);
  empty = saveables.empty();
  if (empty) return Start();
  // By name, as TensorFlow has them.
  std::stable_sort(saveables.begin(), saveables.end(),
                   [](const Saveable& a, const Saveable& b) { return a.name() < b.name(); });
  const Scope inner = scope.WithNoControlDependencies().ClearColocation().NewSubScope(
      options.name.empty() ? "save" : options.name);
  const SaverGraph nodes = BuildSaver(inner, saveables,
                                      {.reshape = options.reshape,
                                       .sharded = options.sharded,
                                       .restore_sequentially = options.restore_sequentially,
                                       .v1 = v1,
                                       .asynchronous = options.asynchronous,
                                       .filename = options.filename});
  if (!scope.ok()) return;
  def.set_filename_tensor_name(nodes.filename.name());
  def.set_save_tensor_name(nodes.save.name());
  def.set_restore_op_name(nodes.restore->name());
  if (nodes.held.valid()) held_name = nodes.held.name();
  Start();
}

absl::StatusOr<std::unique_ptr<Saver>> Saver::FromProto(const Graph& graph, const SaverDef& def,
                                                        SaverOptions options) {
  if (def.filename_tensor_name().empty() || def.save_tensor_name().empty() ||
      def.restore_op_name().empty()) {
    return InvalidArgument(
        "a SaverDef names the tensor of the file's name, the tensor that saves, "
        "and the node that restores; this one does not: ",
        def.ShortDebugString());
  }
  auto impl = std::make_unique<Impl>();
  impl->def = def;
  const std::string& scope = options.name;
  impl->def.set_filename_tensor_name(WithScope(scope, def.filename_tensor_name()));
  impl->def.set_save_tensor_name(WithScope(scope, def.save_tensor_name()));
  impl->def.set_restore_op_name(WithScope(scope, def.restore_op_name()));
  for (const std::string& name : {impl->def.filename_tensor_name(), impl->def.save_tensor_name()}) {
    TROUPE_RETURN_IF_ERROR(graph.FindOutput(name).status());
  }
  if (graph.FindNode(impl->def.restore_op_name()) == nullptr) {
    return absl::NotFoundError(StrCat("the graph has no node '", impl->def.restore_op_name(),
                                      "', which the SaverDef has for restoring"));
  }
  const std::string& filename = impl->def.filename_tensor_name();
  const std::string held = filename.substr(0, filename.rfind('/') + 1) + kHeldName;
  if (graph.FindNode(held) != nullptr) impl->held_name = held;
  impl->options = std::move(options);
  impl->Start();
  return std::unique_ptr<Saver>(new Saver(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Saver>> Saver::OfGraph(const Scope& scope, SaverOptions options) {
  const std::vector<std::string> savers = scope.graph()->Collection(collections::kSavers);
  if (savers.size() > 1) {
    return absl::FailedPreconditionError(StrCat("the collection '", collections::kSavers,
                                                "' of the graph holds ", savers.size(),
                                                " savers: say which one is meant"));
  }
  if (savers.size() == 1) {
    SaverDef def;
    if (!def.ParseFromString(savers[0])) {
      return InvalidArgument("collection '", collections::kSavers,
                             "' of the graph holds what is no SaverDef");
    }
    options.name.clear();
    return FromProto(*scope.graph(), def, std::move(options));
  }
  auto saver = std::make_unique<Saver>(scope, SaveableList(), std::move(options));
  TROUPE_RETURN_IF_ERROR(scope.status());
  if (!saver->is_empty()) saver->AddToCollection(scope.graph().get());
  return saver;
}

SaverDef Saver::ToProto() const { return impl_->def; }
SaverDef Saver::as_saver_def() const { return impl_->def; }

std::unique_ptr<SaverDef> Saver::ToProto(const std::string& export_scope) const {
  auto def = std::make_unique<SaverDef>(impl_->def);
  if (export_scope.empty()) return def;
  const std::string prefix = export_scope + "/";
  for (std::string* name : {def->mutable_filename_tensor_name(), def->mutable_save_tensor_name(),
                            def->mutable_restore_op_name()}) {
    if (!name->starts_with(prefix)) return nullptr;
    name->erase(0, prefix.size());
  }
  return def;
}

void Saver::AddToCollection(Graph* graph) const {
  graph->AddToCollection(collections::kSavers, impl_->def.SerializeAsString());
}

const std::string& Saver::HeldName() const { return impl_->held_name; }

bool Saver::is_empty() const { return impl_->empty; }

absl::StatusOr<std::string> Saver::PrefixFor(const std::string& path, std::optional<int64_t> step,
                                             const SaveOptions& options) const {
  TROUPE_RETURN_IF_ERROR(impl_->CheckBuilt());
  const std::string& latest = options.latest_filename;
  if (latest.empty() || latest.find('/') != std::string::npos) {
    return InvalidArgument("latest_filename is '", latest, "': it takes a name without a path");
  }
  if (step.has_value()) {
    if (!impl_->options.pad_step_number) return StrCat(path, "-", *step);
    return StrCat(path, absl::StrFormat("-%08d", *step));
  }
  const std::string_view base = PathBase(path);
  if (base.empty()) {
    return InvalidArgument("a checkpoint cannot be called '", path, "': that is a folder");
  }
  if (base == latest && !impl_->def.sharded()) {
    return InvalidArgument("the checkpoint ", path,
                           " would have the name of the state file: choose another one");
  }
  return path;
}

absl::StatusOr<std::string> Saver::Save(Session& session, const std::string& path,
                                        std::optional<int64_t> global_step,
                                        const SaveOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const std::string prefix, PrefixFor(path, global_step, options));
  std::string saved;
  if (!impl_->empty) {
    std::vector<Tensor> values;
    TROUPE_RETURN_IF_ERROR(session.Run(
        options.run, {{impl_->def.filename_tensor_name(), Tensor::Scalar<std::string>(prefix)}},
        {impl_->def.save_tensor_name()}, {}, &values));
    TROUPE_ASSIGN_OR_RETURN(saved, values[0].scalar<std::string>());
  }
  TROUPE_RETURN_IF_ERROR(Finish(*session.graph(), path, prefix, saved, options));
  return saved;
}

absl::StatusOr<std::string> Saver::Save(Session& session, const std::string& path,
                                        const ModelVariable& global_step,
                                        const SaveOptions& options) {
  if (!global_step.valid()) return InvalidArgument("the global step is no variable");
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, ReadStepNow(session, global_step.value()));
  return Save(session, path, step, options);
}

absl::Status WriteMetaGraphOf(const Graph& graph, const SaverDef& saver, const std::string& path) {
  ExportMetaGraphOptions options;
  // One of no variables has no nodes.
  if (!saver.save_tensor_name().empty()) options.saver_def = saver;
  return WriteMetaGraph(graph, options, path);
}

absl::Status Saver::Finish(const Graph& graph, const std::string& path, const std::string& prefix,
                           const std::string& saved, const SaveOptions& options) {
  const bool write_state = !impl_->empty && options.write_state;
  const std::string directory = PathDirectory(path);
  if (write_state || options.write_meta_graph) {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(directory));
    TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(files, directory, /*sync=*/true));
  }
  if (write_state) {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->Record(saved);
    TROUPE_RETURN_IF_ERROR(impl_->WriteState(directory, saved, options.latest_filename));
    impl_->RemoveOld(options.meta_graph_suffix);
  }
  if (!options.write_meta_graph) return absl::OkStatus();
  return options.write_meta_graph(graph, impl_->def,
                                  MetaGraphFile(prefix, options.meta_graph_suffix));
}

absl::Status Saver::Restore(Session& session, const std::string& path, const RunOptions& options) {
  TROUPE_RETURN_IF_ERROR(impl_->CheckBuilt());
  if (impl_->empty) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  const auto reader = OpenCheckpoint(files, path);
  if (reader.ok()) {
    const Node* const restore = session.graph()->FindNode(impl_->def.restore_op_name());
    if (restore != nullptr) TROUPE_RETURN_IF_ERROR(CheckRestore(restore, path, **reader));
  } else if (session.runtime() != nullptr || !absl::IsNotFound(reader.status())) {
    return reader.status();  // Tasks of a cluster may see folders that this process does not.
  }
  return session.Run(options,
                     {{impl_->def.filename_tensor_name(), Tensor::Scalar<std::string>(path)}}, {},
                     {impl_->def.restore_op_name()}, nullptr);
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<std::string> checkpoints;
  for (const auto& [prefix, time] : impl_->last) checkpoints.push_back(prefix);
  return checkpoints;
}

void Saver::set_last_checkpoints_with_time(TimedCheckpoints checkpoints) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->last = std::move(checkpoints);
}

void Saver::set_last_checkpoints(const std::vector<std::string>& checkpoints) {
  TimedCheckpoints timed;
  for (const std::string& prefix : checkpoints) timed.emplace_back(prefix, absl::InfiniteFuture());
  set_last_checkpoints_with_time(std::move(timed));
}

absl::Status Saver::recover_last_checkpoints(const std::vector<std::string>& checkpoints) {
  TimedCheckpoints timed;
  for (const std::string& prefix : checkpoints) {
    const absl::StatusOr<absl::Time> time = CheckpointTime(prefix);
    if (absl::IsNotFound(time.status())) continue;
    TROUPE_RETURN_IF_ERROR(time.status());
    timed.emplace_back(prefix, *time);
  }
  set_last_checkpoints_with_time(std::move(timed));
  return absl::OkStatus();
}

}  // namespace troupe
