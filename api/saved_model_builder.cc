#include "api/saved_model_builder.h"

#include <google/protobuf/any.pb.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "api/internal/saved_model_files.h"
#include "api/saved_model.h"
#include "api/training/saver.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/copy_file.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"
#include "graph/message_file.h"
#include "graph/meta_graph.h"

namespace troupe {
namespace {

namespace names = saved_model_files;

absl::Status CheckTensor(const Graph& graph, const std::string& signature, const std::string& name,
                         const TensorInfo& info) {
  for (const SignatureTensor& tensor : SignatureTensors(name, info)) {
    const absl::Status status = graph.FindOutput(tensor.tensor).status();
    if (status.ok()) continue;
    return InvalidArgument("signature '", signature, "': ", std::string(status.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckSignatures(const Graph& graph,
                             const std::map<std::string, SignatureDef>& signatures) {
  for (const auto& [name, signature] : signatures) {
    if (saved_model::IsInternal(name)) {
      return InvalidArgument("'", name, "' is no name for a signature: loaders use it");
    }
    for (const auto* tensors : {&signature.inputs(), &signature.outputs()}) {
      for (const auto& [key, info] : *tensors) {
        TROUPE_RETURN_IF_ERROR(CheckTensor(graph, name, key, info));
      }
    }
  }
  return absl::OkStatus();
}

CollectionDef* CollectionOf(MetaGraphDef* def, const std::string& key) {
  return &(*def->mutable_collection_def())[key];
}

/// In both of the places where loaders look.
void SetInitializer(const Node& node, MetaGraphDef* def) {
  const std::string key = names::kInitOpSignature;
  SignatureDef& signature = (*def->mutable_signature_def())[key];
  TensorInfo& info = (*signature.mutable_outputs())[key];
  info.set_name(node.name());
  info.mutable_tensor_shape()->set_unknown_rank(true);
  CollectionOf(def, names::kMainOpCollection)->mutable_node_list()->add_value(node.name());
}

/// In the field, and as TensorFlow's first version has it.
void AddAsset(const AssetFileDef& asset, MetaGraphDef* def) {
  *def->add_asset_file_def() = asset;
  google::protobuf::Any* const any =
      CollectionOf(def, names::kAssetsCollection)->mutable_any_list()->add_value();
  any->set_type_url("type.googleapis.com/tensorflow.AssetFileDef");
  any->set_value(asset.SerializeAsString());
}

}  // namespace

TensorInfo MakeTensorInfo(const Output& tensor) {
  TensorInfo info;
  info.set_name(tensor.name());
  info.set_dtype(static_cast<DataType>(tensor.type()));
  tensor.shape().ToProto(info.mutable_tensor_shape());
  return info;
}

SignatureDef MakeSignature(const std::map<std::string, Output>& inputs,
                           const std::map<std::string, Output>& outputs,
                           const std::string& method) {
  SignatureDef signature;
  for (const auto& [name, tensor] : inputs) {
    (*signature.mutable_inputs())[name] = MakeTensorInfo(tensor);
  }
  for (const auto& [name, tensor] : outputs) {
    (*signature.mutable_outputs())[name] = MakeTensorInfo(tensor);
  }
  signature.set_method_name(method);
  return signature;
}

absl::StatusOr<SavedModelBuilder> SavedModelBuilder::Create(const std::string& folder) {
  return CatchExceptions([&]() -> absl::StatusOr<SavedModelBuilder> {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(folder));
    const absl::StatusOr<std::vector<std::string>> contents = files->List(folder);
    if (!contents.ok() && !absl::IsNotFound(contents.status())) return contents.status();
    if (contents.ok() && !contents->empty()) {
      return absl::AlreadyExistsError(
          StrCat("'", folder,
                 "' is there and not empty: a model is written into a folder of its "
                 "own"));
    }
    TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(files, folder, /*sync=*/true));
    SavedModelBuilder builder(folder);
    builder.model_.set_saved_model_schema_version(1);
    return builder;
  });
}

absl::Status SavedModelBuilder::CheckTags(const std::vector<std::string>& tags) const {
  const std::set<std::string> wanted(tags.begin(), tags.end());
  for (const MetaGraphDef& other : model_.meta_graphs()) {
    const auto& own = other.meta_info_def().tags();
    if (std::set<std::string>(own.begin(), own.end()) != wanted) continue;
    return InvalidArgument("the model has a graph with the tags {", absl::StrJoin(wanted, ", "),
                           "} already");
  }
  return absl::OkStatus();
}

absl::Status SavedModelBuilder::AddMetaGraphAndVariables(Session& session,
                                                         const std::vector<std::string>& tags,
                                                         const SavedMetaGraph& options) {
  return CatchExceptions([&]() -> absl::Status {
    if (variables_written_) {
      return absl::FailedPreconditionError(
          "the model has variables already: add further graphs by "
          "AddMetaGraph");
    }
    TROUPE_RETURN_IF_ERROR(CheckTags(tags));
    const std::shared_ptr<Graph>& graph = session.graph();
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Saver> saver, SaverOf(graph, options));
    if (!saver->is_empty()) {
      SaveOptions save;
      save.write_state = false;
      save.write_meta_graph = nullptr;
      const std::string prefix = JoinPath(folder_, names::kVariables);
      TROUPE_RETURN_IF_ERROR(saver->Save(session, prefix, std::nullopt, save).status());
    }
    TROUPE_RETURN_IF_ERROR(Add(*graph, tags, options, *saver));
    variables_written_ = true;
    return absl::OkStatus();
  });
}

absl::Status SavedModelBuilder::AddMetaGraph(const std::shared_ptr<Graph>& graph,
                                             const std::vector<std::string>& tags,
                                             const SavedMetaGraph& options) {
  return CatchExceptions([&]() -> absl::Status {
    if (!variables_written_) {
      return absl::FailedPreconditionError(
          "the model has no variables yet: its first graph is added by "
          "AddMetaGraphAndVariables");
    }
    TROUPE_RETURN_IF_ERROR(CheckTags(tags));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Saver> saver, SaverOf(graph, options));
    return Add(*graph, tags, options, *saver);
  });
}

absl::StatusOr<std::unique_ptr<Saver>> SavedModelBuilder::SaverOf(
    const std::shared_ptr<Graph>& graph, const SavedMetaGraph& options) const {
  if (options.saver.has_value()) return Saver::FromProto(*graph, *options.saver);
  SaverOptions saver_options;
  saver_options.sharded = true;
  saver_options.allow_empty = true;
  const Scope scope(graph);
  auto saver = std::make_unique<Saver>(scope, SaveableList(), saver_options);
  TROUPE_RETURN_IF_ERROR(scope.status());
  return saver;
}

absl::Status SavedModelBuilder::Add(const Graph& graph, const std::vector<std::string>& tags,
                                    const SavedMetaGraph& options, const Saver& saver) {
  TROUPE_RETURN_IF_ERROR(CheckSignatures(graph, options.signatures));
  std::vector<AssetFileDef> assets(options.assets.size());
  for (size_t i = 0; i < assets.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(WithContext(StrCat("asset ", options.assets[i].name(), ": "),
                                       CopyAsset(graph, options.assets[i], &assets[i])));
  }
  ExportMetaGraphOptions export_options;
  export_options.tags = tags;
  export_options.clear_devices = options.clear_devices;
  export_options.strip_default_attrs = options.strip_default_attrs;
  if (!saver.is_empty()) export_options.saver_def = saver.ToProto();
  MetaGraphDef def;
  TROUPE_RETURN_IF_ERROR(ExportMetaGraph(graph, export_options, &def));
  for (const char* of_loaders : {names::kMainOpCollection, names::kAssetsCollection}) {
    def.mutable_collection_def()->erase(of_loaders);  // of the model that the graph came with
  }
  for (const auto& [name, signature] : options.signatures) {
    (*def.mutable_signature_def())[name] = signature;
  }
  for (const AssetFileDef& asset : assets) AddAsset(asset, &def);
  if (options.initializer != nullptr) SetInitializer(*options.initializer, &def);
  model_.add_meta_graphs()->Swap(&def);
  return absl::OkStatus();
}

absl::Status SavedModelBuilder::CopyAsset(const Graph& graph, const Output& tensor,
                                          AssetFileDef* asset) {
  const Tensor value = graph.ConstantValue(tensor);
  if (!value.valid() || value.type() != ElementType::kString || value.num_elements() != 1) {
    return InvalidArgument("expected a constant string, the name of a file");
  }
  const std::string& source = value.unchecked_data<std::string>()[0];
  std::string name(PathBase(source));
  // Files of one name from different folders.
  for (int i = 1; assets_.count(name) > 0 && assets_[name] != source; ++i) {
    name = StrCat(PathBase(source), "_", i);
  }
  if (assets_.emplace(name, source).second) {
    const std::string folder = JoinPath(folder_, names::kAssets);
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(folder));
    TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(files, folder, /*sync=*/true));
    const absl::Status copied = CopyFile(source, JoinPath(folder, name));
    if (!copied.ok()) {
      assets_.erase(name);
      return copied;
    }
  }
  *asset->mutable_tensor_info() = MakeTensorInfo(tensor);
  asset->set_filename(name);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SavedModelBuilder::Save(bool as_text) {
  return CatchExceptions([&]() -> absl::StatusOr<std::string> {
    if (model_.meta_graphs_size() == 0) {
      return absl::FailedPreconditionError("nothing has been added to the model");
    }
    const std::string file = JoinPath(folder_, as_text ? names::kTextFile : names::kBinaryFile);
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes, SerializeMessage(model_, as_text));
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(file));
    TROUPE_RETURN_IF_ERROR(ReplaceFile(files, file, bytes));
    return file;
  });
}

}  // namespace troupe
