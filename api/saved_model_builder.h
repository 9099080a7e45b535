/// Writing SavedModels.
///
///     absl::StatusOr<SavedModelBuilder> builder =
///     SavedModelBuilder::Create("folder"); SavedMetaGraph model;
///     model.signatures["serving_default"] = MakeSignature({{"x", x}}, {{"y",
///     y}}); status = builder->AddMetaGraphAndVariables(*session,
///     {saved_model::kServe}, model); status = builder->Save().status();
#ifndef TROUPE_API_SAVED_MODEL_BUILDER_H_
#define TROUPE_API_SAVED_MODEL_BUILDER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/session.h"
#include "devices/export.h"
#include "graph/graph.h"
#include "graph/protos/meta_graph.pb.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Saver;

/// The methods that signatures name; TensorFlow Serving asks for them.
namespace signature_methods {
inline constexpr char kPredict[] = "tensorflow/serving/predict";
inline constexpr char kClassify[] = "tensorflow/serving/classify";
inline constexpr char kRegress[] = "tensorflow/serving/regress";
}  // namespace signature_methods

/// Name, type and shape of a tensor.
TensorInfo MakeTensorInfo(const Output& tensor);
/// A signature with these inputs and outputs.
SignatureDef MakeSignature(const std::map<std::string, Output>& inputs,
                           const std::map<std::string, Output>& outputs,
                           const std::string& method = signature_methods::kPredict);

/// What is saved of a graph beside itself. A value.
struct SavedMetaGraph {
  std::map<std::string, SignatureDef> signatures = {};
  /// String scalars, constants that are names of files: the files are copied
  /// into the model, and who loads it feeds their new names.
  std::vector<Output> assets = {};
  /// Runs when the model has been restored: the initializer of tables and local
  /// variables.
  Node* initializer = nullptr;
  bool clear_devices = false;
  bool strip_default_attrs = false;
  /// How the graph saves and restores; absent: a saver of all its variables is
  /// added to the graph.
  std::optional<SaverDef> saver = std::nullopt;
};

/// Writes one model, of one or several MetaGraphs that share variables.
/// Movable; thread-compatible.
class SavedModelBuilder {
 public:
  /// AlreadyExists if there is such a folder and something in it.
  static absl::StatusOr<SavedModelBuilder> Create(const std::string& folder);

  /// Adds the session's graph, and writes the values of its variables: once,
  /// and first. FailedPrecondition if that has been done; InvalidArgument: tags
  /// that another MetaGraph has, an asset that is no constant string,
  /// signatures of tensors that are not there; NotFound: an asset's file; else
  /// what saving reports.
  absl::Status AddMetaGraphAndVariables(Session& session, const std::vector<std::string>& tags,
                                        const SavedMetaGraph& options = {});
  /// Adds a graph whose variables have the same names. FailedPrecondition if
  /// the variables have not been written.
  absl::Status AddMetaGraph(const std::shared_ptr<Graph>& graph,
                            const std::vector<std::string>& tags,
                            const SavedMetaGraph& options = {});

  /// Writes saved_model.pb, or saved_model.pbtxt: only now there is a model in
  /// the folder. Its path.
  absl::StatusOr<std::string> Save(bool as_text = false);

 private:
  explicit SavedModelBuilder(std::string folder) : folder_(std::move(folder)) {}
  absl::Status CheckTags(const std::vector<std::string>& tags) const;
  absl::StatusOr<std::unique_ptr<Saver>> SaverOf(const std::shared_ptr<Graph>& graph,
                                                 const SavedMetaGraph& options) const;
  absl::Status Add(const Graph& graph, const std::vector<std::string>& tags,
                   const SavedMetaGraph& options, const Saver& saver);
  absl::Status CopyAsset(const Graph& graph, const Output& tensor, AssetFileDef* asset);

  std::string folder_;
  SavedModel model_;
  bool variables_written_ = false;
  std::map<std::string, std::string> assets_;  ///< By the name in the model: where it is from.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SAVED_MODEL_BUILDER_H_
