/// SavedModels: folders that hold a model as TensorFlow saves it, of its first and second version.
///
///     absl::StatusOr<SavedModelBundle> model = LoadSavedModel("folder", {saved_model::kServe});
///     auto results = model->Run("serving_default", {{"x", Tensor::Vector<float>({1, 2})}});
#ifndef TROUPE_API_SAVED_MODEL_H_
#define TROUPE_API_SAVED_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/session.h"
#include "devices/export.h"
#include "graph/protos/meta_graph.pb.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Names that SavedModels use.
namespace saved_model {
inline constexpr char kServe[] = "serve";  ///< A tag.
inline constexpr char kTrain[] = "train";  ///< A tag.
inline constexpr char kDefaultSignature[] = "serving_default";
/// True for signatures that only name a node for who loads the model: its initializer.
inline bool IsInternal(std::string_view signature) {
  return signature.starts_with("__saved_model");
}
}  // namespace saved_model

/// How a SavedModel is loaded. A value.
struct LoadSavedModelOptions {
  SessionOptions session = {};
  /// Of the steps that restore and initialize.
  RunOptions run = {};
  /// Devices that the model asks for are forgotten: it may come from another machine.
  bool clear_devices = false;
};

/// A tensor of a signature: by which name it is known, and which it is in the graph. A sparse one
/// is three: NAME/indices, NAME/values, NAME/dense_shape; of a composite one the components are
/// NAME/0, NAME/1 and so on.
struct SignatureTensor {
  std::string name;
  std::string tensor;
};
std::vector<SignatureTensor> SignatureTensors(const std::string& name, const TensorInfo& info);
/// Of `signature.inputs()` or `signature.outputs()`, in the order of their names.
std::vector<SignatureTensor> SignatureTensors(
    const google::protobuf::Map<std::string, TensorInfo>& tensors);

/// A model that is ready to be run. Movable.
struct SavedModelBundle {
  std::unique_ptr<Session> session;
  /// Without its graph, which is the session's.
  MetaGraphDef meta_graph;

  /// NotFound lists the signatures that there are.
  absl::StatusOr<const SignatureDef*> Signature(const std::string& name) const;
  /// Feeds a signature's inputs by their names and gives all of its outputs, by theirs, in their
  /// order. InvalidArgument: an input that it does not have; else as `Session::Run`. Thread-safe.
  absl::StatusOr<NamedTensors> Run(const std::string& signature, const NamedTensors& inputs,
                                   const RunOptions& options = {}) const;
};

/// Loads the MetaGraph that has just these tags: imports it, restores its variables by its own
/// saver, runs its initializer with the assets fed. Codes: NotFound: no such folder, nothing saved
/// in it, no such tags (the message lists those there are), variables whose files are missing;
/// DataLoss: damaged files; InvalidArgument: a graph that cannot be imported, assets that are not
/// in the model's folder; or what restoring and initializing report.
absl::StatusOr<SavedModelBundle> LoadSavedModel(const std::string& folder,
                                                const std::vector<std::string>& tags,
                                                const LoadSavedModelOptions& options = {});

/// What a folder holds, without loading it: `saved_model.pb`, else `saved_model.pbtxt`. NotFound,
/// DataLoss.
absl::StatusOr<SavedModel> ReadSavedModel(const std::string& folder);
/// True if there is one of these files in it.
bool IsSavedModel(const std::string& folder);

/// Takes the MetaGraph that has just these tags out of a SavedModel. NotFound lists the tags.
absl::StatusOr<MetaGraphDef> TakeMetaGraph(SavedModel model, const std::vector<std::string>& tags);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SAVED_MODEL_H_
