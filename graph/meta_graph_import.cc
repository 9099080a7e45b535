#include <google/protobuf/any.pb.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/collection_records.h"
#include "graph/graph_def.h"
#include "graph/graph_impl.h"
#include "graph/message_file.h"
#include "graph/meta_graph.h"
#include "graph/name_scope.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using google::protobuf::Message;

constexpr char kUnboundInputs[] = "unbound_inputs";

/// "node" and "^node" for "node:port".
std::string_view NodeOf(std::string_view name) {
  for (const std::string_view prefix : {"^", "loc:@"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name.substr(0, name.find(':'));
}

/// One import. Everything is checked before anything is added.
class MetaGraphImporter {
 public:
  MetaGraphImporter(const MetaGraphDef& def, const ImportMetaGraphOptions& options, Graph* graph)
      : def_(def), options_(options), graph_(graph) {}

  absl::StatusOr<ImportedMetaGraph> Run() {
    for (const NodeDef& node : def_.graph_def().node()) nodes_.insert(node.name());
    TROUPE_RETURN_IF_ERROR(CheckUnboundInputs());
    imported_.scope = ChooseScope();
    TROUPE_RETURN_IF_ERROR(ReadSaver());
    for (const auto& [key, list] : def_.collection_def()) {
      if (key == kUnboundInputs) continue;
      if (options_.restore_collection && !options_.restore_collection(key)) continue;
      TROUPE_RETURN_IF_ERROR(
          WithContext(StrCat("collection '", key, "': "), ReadCollection(key, list)));
    }
    for (const auto& [name, signature] : def_.signature_def()) {
      RenameTensors(&(imported_.signatures[name] = signature),
                    [this](const std::string& tensor) { return Renamed(tensor); });
    }
    TROUPE_RETURN_IF_ERROR(ImportNodes());
    for (VariableDef& variable : variables_) SetVariableDef(graph_, std::move(variable));
    for (Collection& collection : collections_) {
      for (std::string& value : collection.values) {
        graph_->AddToCollection(collection.key, std::move(value));
      }
      if (!collection.of_messages) SetCollectionKind(graph_, collection.key, collection.kind);
    }
    return std::move(imported_);
  }

 private:
  struct Collection {
    std::string key;
    bool of_messages = false;
    CollectionKind kind = CollectionKind::kBytes;
    std::vector<std::string> values;
  };

  absl::Status CheckUnboundInputs() const {
    const auto found = def_.collection_def().find(kUnboundInputs);
    if (found == def_.collection_def().end()) return absl::OkStatus();
    std::vector<std::string> missing;
    for (const std::string& name : found->second.bytes_list().value()) {
      if (options_.input_map.count(name) == 0 && options_.input_map.count(name + ":0") == 0) {
        missing.push_back(name);
      }
    }
    if (missing.empty()) return absl::OkStatus();
    return InvalidArgument(
        "the MetaGraph takes tensors from elsewhere that the input map must "
        "give: ",
        absl::StrJoin(missing, ", "));
  }

  /// The scope that is asked for, or with a number if the graph has it.
  std::string ChooseScope() const {
    std::string wanted = options_.import_scope;
    while (wanted.ends_with('/')) wanted.pop_back();
    if (wanted.empty()) return wanted;
    const std::vector<Node*> nodes = graph_->nodes();
    while (true) {
      std::string scope = graph_->UniqueName(wanted);
      bool taken = false;
      for (const Node* node : nodes) taken = taken || IsInScope(scope, node->name());
      if (!taken) return scope;
    }
  }

  /// That the MetaGraph has the node of a name, which may be empty.
  absl::Status Check(const std::string& name) const {
    if (name.empty() || nodes_.count(NodeOf(name)) > 0) return absl::OkStatus();
    return InvalidArgument("'", name, "' names no node of the MetaGraph");
  }

  std::string Renamed(const std::string& name) const { return InScope(imported_.scope, name); }
  void RenameStrings(Message* message) const {
    RenameAll(message, [this](const std::string& name) { return Renamed(name); });
  }

  absl::Status ReadSaver() {
    if (!def_.has_saver_def()) return absl::OkStatus();
    const SaverDef& saver = def_.saver_def();
    for (const std::string& name :
         {saver.filename_tensor_name(), saver.save_tensor_name(), saver.restore_op_name()}) {
      TROUPE_RETURN_IF_ERROR(WithContext("saver: ", Check(name)));
    }
    imported_.saver_def = saver;
    RenameStrings(&*imported_.saver_def);
    return absl::OkStatus();
  }

  absl::Status ReadCollection(const std::string& key, const CollectionDef& list) {
    Collection collection{.key = key};
    std::vector<std::string>& values = collection.values;
    switch (list.kind_case()) {
      case CollectionDef::kNodeList:
        collection.kind = CollectionKind::kNodes;
        for (const std::string& name : list.node_list().value()) {
          TROUPE_RETURN_IF_ERROR(Check(name));
          values.push_back(Renamed(name));
        }
        // Before there were VariableDefs, variables were listed by name.
        if (IsVariableCollection(key)) {
          collection.of_messages = true;
          for (std::string& name : values) name = std::string(NodeOf(name));
        }
        break;
      case CollectionDef::kBytesList:
        collection.of_messages = NewCollectionMessage(key) != nullptr;
        for (const std::string& bytes : list.bytes_list().value()) {
          if (collection.of_messages) {
            TROUPE_ASSIGN_OR_RETURN(values.emplace_back(), ReadNames(key, bytes));
          } else {
            values.push_back(bytes);
          }
        }
        break;
      case CollectionDef::kInt64List:
        collection.kind = CollectionKind::kInt64;
        for (const int64_t number : list.int64_list().value()) values.push_back(StrCat(number));
        break;
      case CollectionDef::kFloatList:
        collection.kind = CollectionKind::kFloat;
        for (const float number : list.float_list().value()) {
          values.push_back(absl::StrFormat("%.9g", number));
        }
        break;
      case CollectionDef::kAnyList:
        collection.kind = CollectionKind::kAny;
        for (const auto& any : list.any_list().value()) values.push_back(any.SerializeAsString());
        break;
      case CollectionDef::KIND_NOT_SET:
        return absl::OkStatus();
    }
    const std::optional<CollectionKind> there = FindCollectionKind(*graph_, key);
    if (!collection.of_messages && there.has_value() && *there != collection.kind) {
      return InvalidArgument("the graph has one of that name with values of another kind");
    }
    collections_.push_back(std::move(collection));
    return absl::OkStatus();
  }

  /// What a graph keeps of a message of names: itself, or the name of the variable's node.
  absl::StatusOr<std::string> ReadNames(const std::string& key, const std::string& bytes) {
    const std::unique_ptr<Message> message = NewCollectionMessage(key);
    if (!ParseBinaryMessage(bytes, message.get())) {
      return InvalidArgument("a value of ", bytes.size(), " bytes is no ",
                             message->GetDescriptor()->name());
    }
    auto* const variable = dynamic_cast<VariableDef*>(message.get());
    if (variable == nullptr) {
      RenameStrings(message.get());
      return message->SerializeAsString();
    }
    if (variable->variable_name().empty()) return InvalidArgument("a variable has no name");
    for (const std::string& name : {variable->variable_name(), variable->initializer_name(),
                                    variable->snapshot_name(), variable->initial_value_name()}) {
      TROUPE_RETURN_IF_ERROR(Check(name));
    }
    RenameStrings(variable);
    variables_.push_back(*variable);
    return std::string(NodeOf(variable->variable_name()));
  }

  absl::Status ImportNodes() {
    ImportOptions options;
    options.prefix = imported_.scope;
    options.input_map = options_.input_map;
    if (!options_.clear_devices) return ImportGraphDef(def_.graph_def(), options, graph_);
    GraphDef bare = def_.graph_def();
    for (NodeDef& node : *bare.mutable_node()) node.clear_device();
    for (FunctionDef& function : *bare.mutable_library()->mutable_function()) {
      for (NodeDef& node : *function.mutable_node_def()) node.clear_device();
    }
    return ImportGraphDef(bare, options, graph_);
  }

  const MetaGraphDef& def_;
  const ImportMetaGraphOptions& options_;
  Graph* const graph_;
  std::unordered_set<std::string_view> nodes_;
  ImportedMetaGraph imported_;
  std::vector<Collection> collections_;
  std::vector<VariableDef> variables_;
};

/// That the message is one with a graph: a parser that skips unknown fields finds an empty one in
/// any text.
absl::Status CheckHasGraph(std::string_view bytes, const MetaGraphDef& def) {
  if (def.has_graph_def()) return absl::OkStatus();
  if (LooksLikeText(bytes) && FirstTextField(bytes) == "node") {
    return InvalidArgument("this is a GraphDef, not a MetaGraphDef: read it with ReadGraph");
  }
  return InvalidArgument("the MetaGraphDef has no graph");
}

}  // namespace

absl::StatusOr<ImportedMetaGraph> ImportMetaGraph(const MetaGraphDef& def,
                                                  const ImportMetaGraphOptions& options,
                                                  Graph* graph) {
  return CatchExceptions([&] { return MetaGraphImporter(def, options, graph).Run(); });
}

absl::Status ParseMetaGraph(std::string_view bytes, MetaGraphDef* def) {
  TROUPE_RETURN_IF_ERROR(ParseMessage(bytes, UnknownFields::kSkip, def));
  absl::Status status = CheckHasGraph(bytes, *def);
  if (!status.ok()) def->Clear();
  return status;
}

absl::Status ReadMetaGraph(const std::string& file, MetaGraphDef* def) {
  return CatchExceptions([&]() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(file));
    return WithContext(StrCat("'", file, "': "), ParseMetaGraph(bytes, def));
  });
}

}  // namespace troupe
