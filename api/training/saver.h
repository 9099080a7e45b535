/// Saving and restoring the variables of a graph: TensorFlow 1.x's `tf.train.Saver`.
#ifndef TROUPE_API_TRAINING_SAVER_H_
#define TROUPE_API_TRAINING_SAVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/checkpoint_files.h"
#include "api/training/saveable.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class SaverDef;

namespace collections {
inline constexpr char kSavers[] = "savers";
}

/// A value. Names and defaults are TensorFlow's.
struct SaverOptions {
  /// Values are brought into the shapes that the variables have: only the number of elements
  /// counts.
  bool reshape = false;
  /// Variables are saved by the tasks and devices that hold them, each into a file of its own.
  /// Without it all values go to the one device that saves.
  bool sharded = false;
  /// Older checkpoints than so many are removed; 0: none is, and the state file has the latest one
  /// only.
  int max_to_keep = 5;
  /// Of those that would be removed one is kept for every so many hours of training.
  double keep_checkpoint_every_n_hours = 10000.0;
  /// Scope of the nodes; "": "save". With a SaverDef: the scope into which its graph was imported.
  std::string name;
  /// One variable is restored after another. (In any case a restore takes little memory beside the
  /// variables: about 64 MiB, or the largest of them.)
  bool restore_sequentially = false;
  /// Without variables there is nothing to save, which is no error then.
  bool allow_empty = false;
  enum class Format { kV1, kV2 };
  Format write_version = Format::kV2;
  /// Steps have eight digits in names, so that they are listed in order.
  bool pad_step_number = false;
  /// The state file names checkpoints as they are seen from its folder, so that it can be moved.
  bool save_relative_paths = false;
  /// Used by steps that do not feed a name.
  std::string filename = "model";
  /// For `AsyncCheckpointer`: adds a node that tells when a step holds all that it saves.
  bool asynchronous = false;
  /// Seconds since 1970 for the state file; a test has its own.
  std::function<absl::Time()> now = absl::Now;
};

/// Writes the MetaGraph of `graph`, with `saver`, to the file `path`.
using MetaGraphWriter =
    std::function<absl::Status(const Graph& graph, const SaverDef& saver, const std::string& path)>;
/// The one by default: all of the graph, in binary form.
absl::Status WriteMetaGraphOf(const Graph& graph, const SaverDef& saver, const std::string& path);

/// How a checkpoint is saved. A value.
struct SaveOptions {
  /// The state file, in the folder of the checkpoint: a name without a path.
  std::string latest_filename = std::string(kCheckpointStateFile);
  /// Write the state file, and remove old checkpoints.
  bool write_state = true;
  /// The MetaGraph beside the checkpoint has this at its end.
  std::string meta_graph_suffix = "meta";
  /// Writes it; empty: none is written.
  MetaGraphWriter write_meta_graph = WriteMetaGraphOf;
  /// Of the step that saves.
  RunOptions run;
};

/// Saves variables of a graph as checkpoints and restores them. The constructor adds the nodes, as
/// TensorFlow's saver has them; the graph can be run without this class.
///
///     Saver saver(s);                                    // All variables.
///     Saver some(s, {{"w", weights}, {"b", biases}});    // Some, under other names.
///     absl::StatusOr<std::string> path = saver.Save(*session, "/tmp/run/model", step);
///     absl::Status status = saver.Restore(*session, *path);
///
/// It remembers which checkpoints it has saved, removes old ones, and keeps the state file
/// "checkpoint" beside them, by which `LatestCheckpoint` finds the last one. A crash at any moment
/// leaves that one whole. Thread-safe; checkpoints that are saved at the same time need different
/// names.
class Saver {
 public:
  /// Adds nodes under the name `options.name` to the scope's graph. Errors go to the scope:
  /// InvalidArgument if there is nothing to save, if a name or a variable is there twice.
  explicit Saver(const Scope& scope, SaveableList variables = {}, SaverOptions options = {});
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// The saver that a graph has, by the names of its nodes. Of the options those count that are not
  /// in the message. NotFound: the graph lacks a node. InvalidArgument: the message names none.
  static absl::StatusOr<std::unique_ptr<Saver>> FromProto(const Graph& graph, const SaverDef& def,
                                                          SaverOptions options = {});
  /// The only one of the graph's collection "savers"; if there is none, a new one, sharded, of all
  /// variables, that is added to it. FailedPrecondition if there are several.
  static absl::StatusOr<std::unique_ptr<Saver>> OfGraph(const Scope& scope,
                                                        SaverOptions options = {
                                                            .sharded = true, .allow_empty = true});

  /// What is needed to make it again: wire-compatible with TensorFlow's.
  SaverDef ToProto() const;
  SaverDef as_saver_def() const;
  /// The same for a graph without the scope around: names lose "`export_scope`/". nullptr if a node
  /// is not in that scope.
  std::unique_ptr<SaverDef> ToProto(const std::string& export_scope) const;
  /// Adds it to the collection "savers" of the graph, where `OfGraph` and MetaGraphs find it.
  void AddToCollection(Graph* graph) const;

  /// There was nothing to save (`allow_empty`).
  bool is_empty() const;

  /// Saves the variables' values as `path`, or "`path`-STEP" with a step, and gives that prefix
  /// (for V1, sharded: a pattern). Nothing is seen under the name before all is on the disk; then
  /// the state file is replaced, and old checkpoints are removed. An empty saver writes
  /// the MetaGraph only, and gives "".
  ///
  /// Errors are those of the step (FailedPrecondition: a variable has no value; ResourceExhausted:
  /// the disk is full), and InvalidArgument for names that cannot be. Old checkpoints that cannot
  /// be removed are logged.
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   std::optional<int64_t> global_step = std::nullopt,
                                   const SaveOptions& options = {});
  /// With the step that the variable counts.
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   const ModelVariable& global_step,
                                   const SaveOptions& options = {});

  /// Sets the variables to what a checkpoint of either format has; they need no value before.
  /// NotFound: no such checkpoint, or it lacks a tensor; InvalidArgument: another type or shape
  /// than the variable's. Both are found before anything is set if this process can see the files,
  /// and name all such tensors. DataLoss: a torn or altered file, with the tensor's name.
  absl::Status Restore(Session& session, const std::string& path, const RunOptions& options = {});

  /// Checkpoints that have not been removed, the oldest first. None with `max_to_keep` 0.
  std::vector<std::string> last_checkpoints() const;
  using TimedCheckpoints = std::vector<std::pair<std::string, absl::Time>>;
  /// In place of those that it remembers: those of a run before, the oldest first.
  void set_last_checkpoints_with_time(TimedCheckpoints checkpoints);
  /// The same, with times by which none of them is removed.
  void set_last_checkpoints(const std::vector<std::string>& checkpoints);
  /// The same after a crash: checkpoints that are not there any more are left out, times are those
  /// of the files. `GetCheckpointState(folder)->all` has the prefixes.
  absl::Status recover_last_checkpoints(const std::vector<std::string>& checkpoints);

 private:
  friend class AsyncCheckpointer;
  struct TROUPE_LOCAL Impl;
  explicit Saver(std::unique_ptr<Impl> impl);

  /// The name of a checkpoint; errors for names that cannot be.
  absl::StatusOr<std::string> PrefixFor(const std::string& path, std::optional<int64_t> step,
                                        const SaveOptions& options) const;
  /// "": it cannot save asynchronously.
  const std::string& HeldName() const;
  /// After the step: state file, old checkpoints, MetaGraph.
  absl::Status Finish(const Graph& graph, const std::string& path, const std::string& prefix,
                      const std::string& saved, const SaveOptions& options);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SAVER_H_
