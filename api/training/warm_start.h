/// Values from a checkpoint in place of initial values, by names.
#ifndef TROUPE_API_TRAINING_WARM_START_H_
#define TROUPE_API_TRAINING_WARM_START_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What a tensor, or a scope, of a checkpoint is for: a variable's name, a scope "a/b/", a
/// variable, or the parts of one. A value.
class AssignmentTarget {
 public:
  AssignmentTarget(std::string name) : name_(std::move(name)) {}                        // NOLINT
  AssignmentTarget(const char* name) : name_(name) {}                                   // NOLINT
  AssignmentTarget(const ModelVariable& variable) : variables_({variable}) {}           // NOLINT
  AssignmentTarget(std::vector<ModelVariable> parts) : variables_(std::move(parts)) {}  // NOLINT

  const std::string& name() const { return name_; }
  const std::vector<ModelVariable>& variables() const { return variables_; }

 private:
  std::string name_;
  std::vector<ModelVariable> variables_;
};

/// By names in the checkpoint, or full names of variables (`CheckpointVariable`). A name may be
/// there several times.
using AssignmentMap = std::vector<std::pair<std::string, AssignmentTarget>>;

/// From now on the initializers of variables take their values from a checkpoint: TensorFlow 1.x's
/// `tf.train.init_from_checkpoint`. A folder stands for its latest checkpoint. Nothing is read but
/// the names before an initializer runs.
///
///     InitFromCheckpoint(s, "/data/resnet", {{"resnet/", "features/"},          // A scope.
///                                            {"resnet/logits/w", classifier},   // A variable.
///                                            {"embedding", "words/embedding"}});
///
/// "/" is the outermost scope on either side. A partitioned variable is found by its whole name.
/// Sessions that have run the initializers before keep what they ran.
///
/// NotFound: no checkpoint, or it lacks a tensor. InvalidArgument: there is no such variable or
/// scope, or it has another type or shape. Then nothing has changed.
absl::Status InitFromCheckpoint(const Scope& scope, const std::string& checkpoint,
                                const AssignmentMap& assignments);

/// Sets every variable of the session's graph that a checkpoint has under the same name, or full
/// name, and gives the names in the checkpoint. For graphs without a saver: it adds nodes to the
/// graph. A partitioned variable is found by its whole name: its parts are known by their
/// SaveSliceInfo, or by names that end in
/// "/part_0", "/part_1" and so on. A folder stands for its latest checkpoint.
///
/// InvalidArgument: a variable has another type or shape; nothing has been set then.
absl::StatusOr<std::vector<std::string>> RestoreByName(Session& session,
                                                       const std::string& checkpoint,
                                                       const RunOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_WARM_START_H_
