/// What SavedModels call their files and collections.
#ifndef TROUPE_API_INTERNAL_SAVED_MODEL_FILES_H_
#define TROUPE_API_INTERNAL_SAVED_MODEL_FILES_H_

namespace troupe::saved_model_files {

inline constexpr char kBinaryFile[] = "saved_model.pb";
inline constexpr char kTextFile[] = "saved_model.pbtxt";
inline constexpr char kVariables[] = "variables/variables";  ///< Prefix of a checkpoint.
inline constexpr char kAssets[] = "assets";                  ///< Folder.

/// AssetFileDefs wrapped up in Anys: TensorFlow's first version. The second one has a field.
inline constexpr char kAssetsCollection[] = "saved_model_assets";
/// Where the name of the initializer is: as the only output of a signature of that name, else in a
/// collection; the last one is the oldest.
inline constexpr char kInitOpSignature[] = "__saved_model_init_op";
inline constexpr char kMainOpCollection[] = "saved_model_main_op";
inline constexpr char kLegacyInitOpCollection[] = "legacy_init_op";

}  // namespace troupe::saved_model_files

#endif  // TROUPE_API_INTERNAL_SAVED_MODEL_FILES_H_
