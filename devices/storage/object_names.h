/// Names of variables in checkpoints of TensorFlow 2's objects.
#ifndef TROUPE_DEVICES_STORAGE_OBJECT_NAMES_H_
#define TROUPE_DEVICES_STORAGE_OBJECT_NAMES_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/storage/checkpoint_reader.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What `tf.train.Checkpoint` saves is called by its place among the program's objects,
/// "model/layer-1/kernel/.ATTRIBUTES/VARIABLE_VALUE". The checkpoint also has a tensor
/// "_CHECKPOINTABLE_OBJECT_GRAPH", a message that says which variable that is: its full name,
/// "dense/kernel". A value.
class ObjectNames {
 public:
  /// Of any checkpoint: without such a tensor nothing has another name. DataLoss: it is damaged.
  static absl::StatusOr<ObjectNames> Of(const CheckpointReader& reader);

  /// The full name of what the checkpoint has under `key`; "" if it has none.
  std::string FullName(std::string_view key) const;
  /// What the checkpoint calls a tensor: `name` itself, or the key of the variable of that full
  /// name. NotFound: there is neither. InvalidArgument: several variables have that name.
  absl::StatusOr<std::string> Key(const CheckpointReader& reader, std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> full_names_;  ///< By key.
  std::multimap<std::string, std::string, std::less<>> keys_;   ///< By full name.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_OBJECT_NAMES_H_
