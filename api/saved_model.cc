#include "api/saved_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "api/internal/saved_model_files.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "graph/message_file.h"
#include "graph/meta_graph.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using saved_model_files::kAssets;
using saved_model_files::kAssetsCollection;
using saved_model_files::kBinaryFile;
using saved_model_files::kInitOpSignature;
using saved_model_files::kTextFile;
using saved_model_files::kVariables;

std::string TagsOf(const MetaGraphDef& meta_graph) {
  return StrCat("{", absl::StrJoin(meta_graph.meta_info_def().tags(), ", "), "}");
}

/// TensorFlow's first version lists assets in a collection, wrapped up.
absl::Status UnwrapAssets(MetaGraphDef* meta_graph) {
  if (meta_graph->asset_file_def_size() > 0) return absl::OkStatus();
  const auto found = meta_graph->collection_def().find(kAssetsCollection);
  if (found == meta_graph->collection_def().end()) return absl::OkStatus();
  for (const google::protobuf::Any& any : found->second.any_list().value()) {
    if (ParseBinaryMessage(any.value(), meta_graph->add_asset_file_def())) continue;
    return absl::DataLossError(
        StrCat("collection '", kAssetsCollection, "' holds what is no AssetFileDef"));
  }
  return absl::OkStatus();
}

/// "" if there is none.
absl::StatusOr<std::string> Initializer(const MetaGraphDef& meta_graph) {
  const auto signature = meta_graph.signature_def().find(kInitOpSignature);
  if (signature != meta_graph.signature_def().end()) {
    const auto output = signature->second.outputs().find(kInitOpSignature);
    if (output == signature->second.outputs().end()) {
      return InvalidArgument("signature '", kInitOpSignature, "' has no output of that name");
    }
    const std::string& name = output->second.name();
    return name.substr(0, name.find(':'));
  }
  for (const char* key :
       {saved_model_files::kMainOpCollection, saved_model_files::kLegacyInitOpCollection}) {
    const auto found = meta_graph.collection_def().find(key);
    if (found == meta_graph.collection_def().end()) continue;
    const auto& names = found->second.node_list().value();
    if (names.size() != 1) {
      return InvalidArgument("collection '", key, "' has ", names.size(),
                             " nodes; expected one, the initializer");
    }
    return names[0];
  }
  return std::string();
}

/// The assets' names, for the tensors that take them.
absl::StatusOr<NamedTensors> AssetFeeds(const std::string& folder, const MetaGraphDef& meta_graph) {
  NamedTensors feeds;
  for (const AssetFileDef& asset : meta_graph.asset_file_def()) {
    const std::string& file = asset.filename();
    bool inside = !file.empty() && !IsAbsolutePath(file);
    for (size_t begin = 0; inside && begin <= file.size();) {
      const size_t end = std::min(file.find('/', begin), file.size());
      inside = file.compare(begin, end - begin, "..") != 0;
      begin = end + 1;
    }
    if (!inside) {
      return InvalidArgument("asset '", file, "' of tensor '", asset.tensor_info().name(),
                             "' is not in the model's folder");
    }
    feeds.emplace_back(asset.tensor_info().name(),
                       Tensor::Scalar(JoinPath(JoinPath(folder, kAssets), file)));
  }
  return feeds;
}

bool HasVariables(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    const std::string& op = node->op();
    return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
  });
}

/// Runs the model's own saver, if there are variables.
absl::Status Restore(const std::string& folder, const SavedModelBundle& model, NamedTensors feeds,
                     const RunOptions& options) {
  const SaverDef& saver = model.meta_graph.saver_def();
  if (saver.restore_op_name().empty()) return absl::OkStatus();
  const std::string prefix = JoinPath(folder, kVariables);
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(folder));
  const absl::Status index = files->Exists(prefix + ".index");
  const absl::Status v1 = files->Exists(prefix);
  if (absl::IsNotFound(index) && absl::IsNotFound(v1)) {
    // A model without variables is saved without them, or with a saver of none.
    if (!HasVariables(*model.session->graph())) return absl::OkStatus();
    return absl::NotFoundError(
        StrCat("the model has variables, and their values are missing: no ", prefix, ".index"));
  }
  feeds.emplace_back(saver.filename_tensor_name(), Tensor::Scalar(prefix));
  return WithContext("variables cannot be restored: ",
                     model.session->Run(options, feeds, {}, {saver.restore_op_name()}, nullptr));
}

absl::Status Initialize(const SavedModelBundle& model, const NamedTensors& feeds,
                        const RunOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const std::string name, Initializer(model.meta_graph));
  if (name.empty()) return absl::OkStatus();
  return WithContext("the initializer fails: ",
                     model.session->Run(options, feeds, {}, {name}, nullptr));
}

absl::StatusOr<SavedModelBundle> Load(const std::string& folder,
                                      const std::vector<std::string>& tags,
                                      const LoadSavedModelOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(SavedModel saved, ReadSavedModel(folder));
  SavedModelBundle model;
  TROUPE_ASSIGN_OR_RETURN(model.meta_graph, TakeMetaGraph(std::move(saved), tags));
  auto graph = std::make_shared<Graph>();
  ImportMetaGraphOptions import;
  import.clear_devices = options.clear_devices;
  TROUPE_RETURN_IF_ERROR(ImportMetaGraph(model.meta_graph, import, graph.get()).status());
  model.meta_graph.clear_graph_def();
  TROUPE_ASSIGN_OR_RETURN(const NamedTensors feeds, AssetFeeds(folder, model.meta_graph));
  TROUPE_ASSIGN_OR_RETURN(model.session, Session::Create(graph, options.session));
  TROUPE_RETURN_IF_ERROR(Restore(folder, model, feeds, options.run));
  TROUPE_RETURN_IF_ERROR(Initialize(model, feeds, options.run));
  return model;
}

void AddTensors(const std::string& name, const TensorInfo& info,
                std::vector<SignatureTensor>* tensors) {
  switch (info.encoding_case()) {
    case TensorInfo::kCooSparse:
      tensors->push_back({name + "/indices", info.coo_sparse().indices_tensor_name()});
      tensors->push_back({name + "/values", info.coo_sparse().values_tensor_name()});
      tensors->push_back({name + "/dense_shape", info.coo_sparse().dense_shape_tensor_name()});
      break;
    case TensorInfo::kCompositeTensor:
      for (int i = 0; i < info.composite_tensor().components_size(); ++i) {
        AddTensors(StrCat(name, "/", i), info.composite_tensor().components(i), tensors);
      }
      break;
    case TensorInfo::kName:
    case TensorInfo::ENCODING_NOT_SET:
      tensors->push_back({name, info.name()});
      break;
  }
}

}  // namespace

std::vector<SignatureTensor> SignatureTensors(const std::string& name, const TensorInfo& info) {
  std::vector<SignatureTensor> tensors;
  AddTensors(name, info, &tensors);
  return tensors;
}

std::vector<SignatureTensor> SignatureTensors(
    const google::protobuf::Map<std::string, TensorInfo>& tensors) {
  std::vector<SignatureTensor> all;
  for (const auto& [name, info] :
       std::map<std::string, TensorInfo>(tensors.begin(), tensors.end())) {
    AddTensors(name, info, &all);
  }
  return all;
}

absl::StatusOr<const SignatureDef*> SavedModelBundle::Signature(const std::string& name) const {
  const auto& signatures = meta_graph.signature_def();
  if (const auto found = signatures.find(name); found != signatures.end()) return &found->second;
  std::set<std::string> names;
  for (const auto& [known, signature] : signatures) {
    if (!saved_model::IsInternal(known)) names.insert(known);
  }
  return absl::NotFoundError(StrCat("the model has no signature '", name, "'; it has ",
                                    names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::StatusOr<NamedTensors> SavedModelBundle::Run(const std::string& signature,
                                                   const NamedTensors& inputs,
                                                   const RunOptions& options) const {
  TROUPE_ASSIGN_OR_RETURN(const SignatureDef* const def, Signature(signature));
  std::map<std::string, std::string> tensors;
  std::vector<std::string> names;
  for (SignatureTensor& input : SignatureTensors(def->inputs())) {
    names.push_back(input.name);
    tensors[input.name] = std::move(input.tensor);
  }
  NamedTensors feeds;
  for (const auto& [name, value] : inputs) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      return InvalidArgument("signature '", signature, "' has no input '", name, "'; it has ",
                             names.empty() ? "none" : absl::StrJoin(names, ", "));
    }
    feeds.emplace_back(found->second, value);
  }
  NamedTensors outputs;
  std::vector<std::string> fetches;
  for (SignatureTensor& output : SignatureTensors(def->outputs())) {
    outputs.emplace_back(std::move(output.name), Tensor());
    fetches.push_back(std::move(output.tensor));
  }
  std::vector<Tensor> values;
  TROUPE_RETURN_IF_ERROR(session->Run(options, feeds, fetches, {}, &values));
  for (size_t i = 0; i < values.size(); ++i) outputs[i].second = std::move(values[i]);
  return outputs;
}

absl::StatusOr<SavedModelBundle> LoadSavedModel(const std::string& folder,
                                                const std::vector<std::string>& tags,
                                                const LoadSavedModelOptions& options) {
  absl::StatusOr<SavedModelBundle> model =
      CatchExceptions([&] { return Load(folder, tags, options); });
  if (!model.ok()) return WithContext(StrCat("SavedModel '", folder, "': "), model.status());
  return model;
}

bool IsSavedModel(const std::string& folder) {
  const absl::StatusOr<FileSystem*> files = FileSystems().Find(folder);
  if (!files.ok()) return false;
  return (*files)->Exists(JoinPath(folder, kBinaryFile)).ok() ||
         (*files)->Exists(JoinPath(folder, kTextFile)).ok();
}

absl::StatusOr<SavedModel> ReadSavedModel(const std::string& folder) {
  return CatchExceptions([&]() -> absl::StatusOr<SavedModel> {
    SavedModel model;
    for (const char* name : {kBinaryFile, kTextFile}) {
      const std::string file = JoinPath(folder, name);
      const absl::StatusOr<std::string> bytes = ReadFileBytes(file);
      if (absl::IsNotFound(bytes.status())) continue;
      TROUPE_RETURN_IF_ERROR(bytes.status());
      // Not by its content: a damaged binary file may look like an empty text.
      const absl::Status status =
          name == kTextFile ? ParseTextMessage(*bytes, UnknownFields::kSkip, &model)
          : ParseBinaryMessage(*bytes, &model)
              ? absl::OkStatus()
              : InvalidArgument("its ", bytes->size(),
                                " bytes are no SavedModel, cut off or damaged");
      if (!status.ok()) {
        return absl::DataLossError(StrCat(file, ": ", std::string(status.message())));
      }
      if (model.meta_graphs_size() == 0) {
        return absl::DataLossError(StrCat(file, ": holds no graph"));
      }
      return model;
    }
    return absl::NotFoundError(StrCat("there is neither ", kBinaryFile, " nor ", kTextFile));
  });
}

absl::StatusOr<MetaGraphDef> TakeMetaGraph(SavedModel model, const std::vector<std::string>& tags) {
  const std::set<std::string> wanted(tags.begin(), tags.end());
  std::vector<std::string> known;
  for (MetaGraphDef& meta_graph : *model.mutable_meta_graphs()) {
    const auto& own = meta_graph.meta_info_def().tags();
    if (std::set<std::string>(own.begin(), own.end()) == wanted) {
      TROUPE_RETURN_IF_ERROR(UnwrapAssets(&meta_graph));
      return std::move(meta_graph);
    }
    known.push_back(TagsOf(meta_graph));
  }
  return absl::NotFoundError(StrCat("no graph has just the tags {", absl::StrJoin(wanted, ", "),
                                    "}; those there are: ", absl::StrJoin(known, ", ")));
}

}  // namespace troupe
