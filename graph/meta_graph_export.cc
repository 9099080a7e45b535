#include <google/protobuf/any.pb.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/strings/numbers.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/whole_file.h"
#include "graph/attr_check.h"
#include "graph/collection_records.h"
#include "graph/message_file.h"
#include "graph/meta_graph.h"
#include "graph/name_scope.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using google::protobuf::Message;

/// What TensorFlow's importer knows inputs by that are to come from elsewhere.
constexpr std::string_view kUnboundPrefix = "$unbound_inputs_";
constexpr char kUnboundInputs[] = "unbound_inputs";
/// Tables that savers save. TensorFlow holds objects there, which it cannot write down, and takes
/// nothing else for one; the graph's saver has their nodes.
constexpr char kSaveableObjects[] = "saveable_objects";
constexpr char kSavers[] = "savers";

std::string_view NodeOf(std::string_view tensor) {
  if (tensor.starts_with('^')) tensor.remove_prefix(1);
  return tensor.substr(0, tensor.find(':'));
}

/// "a/b/" for "a/b/c"; "" for "c".
std::string_view ScopeOf(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? "" : name.substr(0, slash + 1);
}

bool SavesOrRestores(const std::string& op) {
  for (const std::string_view known : {"SaveV2", "Save", "SaveSlices", "RestoreV2", "Restore",
                                       "RestoreSlice", "MergeV2Checkpoints"}) {
    if (op == known) return true;
  }
  return false;
}

/// One export.
class MetaGraphExporter {
 public:
  MetaGraphExporter(const Graph& graph, const ExportMetaGraphOptions& options, MetaGraphDef* def)
      : graph_(graph), options_(options), scope_(options.export_scope), def_(def) {}

  absl::Status Run() {
    graph_.ToGraphDef(def_->mutable_graph_def());
    for (std::string& name : graph_.Collection("trainable_variables")) {
      trainable_.insert(std::move(name));
    }
    FindExcluded();
    TROUPE_RETURN_IF_ERROR(ChooseNodes());
    ListOps();
    if (options_.strip_default_attrs) StripDefaults();
    for (const std::string& tag : options_.tags) def_->mutable_meta_info_def()->add_tags(tag);
    if (options_.saver_def.has_value()) {
      *def_->mutable_saver_def() = *options_.saver_def;
      TakeOut(def_->mutable_saver_def());
    }
    for (const auto& [name, signature] : options_.signatures) {
      RenameTensors(&((*def_->mutable_signature_def())[name] = signature),
                    [this](const std::string& tensor) { return OutOfScope(scope_, tensor); });
    }
    for (const std::string& key :
         options_.collections.has_value() ? *options_.collections : graph_.CollectionKeys()) {
      if (key == kSaveableObjects) continue;
      TROUPE_RETURN_IF_ERROR(
          WithContext(StrCat("collection '", key, "': "), ExportCollection(key)));
    }
    if (!unbound_.empty()) {
      CollectionDef& list = (*def_->mutable_collection_def())[kUnboundInputs];
      for (const std::string& name : unbound_) list.mutable_bytes_list()->add_value(name);
    }
    return absl::OkStatus();
  }

 private:
  /// The nodes of savers that are to be left out.
  void FindExcluded() {
    if (!options_.clear_extraneous_savers) return;
    std::set<std::string_view> kept, scopes;
    if (options_.saver_def.has_value()) {
      kept = {ScopeOf(NodeOf(options_.saver_def->save_tensor_name())),
              ScopeOf(NodeOf(options_.saver_def->restore_op_name()))};
    }
    for (const NodeDef& node : def_->graph_def().node()) {
      const std::string_view scope = ScopeOf(node.name());
      if (SavesOrRestores(node.op()) && !scope.empty() && kept.count(scope) == 0) {
        scopes.insert(scope);
      }
    }
    for (const NodeDef& node : def_->graph_def().node()) {
      for (const std::string_view scope : scopes) {
        if (std::string_view(node.name()).starts_with(scope)) excluded_.insert(node.name());
      }
    }
  }

  bool Excluded(std::string_view name) const {
    return !excluded_.empty() && excluded_.count(std::string(NodeOf(name))) > 0;
  }
  bool Included(std::string_view name) const { return IsInScope(scope_, name) && !Excluded(name); }

  absl::Status ChooseNodes() {
    GraphDef* const graph = def_->mutable_graph_def();
    auto* const nodes = graph->mutable_node();
    nodes->erase(std::remove_if(nodes->begin(), nodes->end(),
                                [this](const NodeDef& node) { return !Included(node.name()); }),
                 nodes->end());
    for (NodeDef& node : *nodes) {
      for (std::string& input : *node.mutable_input()) {
        if (Excluded(input)) {
          return absl::FailedPreconditionError(StrCat("node '", node.name(), "' takes '", input,
                                                      "', which belongs to a saver that is to be "
                                                      "left out"));
        }
        if (IsInScope(scope_, input)) {
          input = OutOfScope(scope_, input);
          continue;
        }
        const bool control = input.starts_with('^');
        input = StrCat(control ? "^" : "", kUnboundPrefix, input.substr(control ? 1 : 0));
        unbound_.insert(input);
      }
      node.set_name(OutOfScope(scope_, node.name()));
      if (!scope_.empty()) TakeOutAttrs(&node);
      if (options_.clear_devices) node.clear_device();
    }
    if (options_.clear_devices) {
      for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
        for (NodeDef& node : *function.mutable_node_def()) node.clear_device();
      }
    }
    return absl::OkStatus();
  }

  /// Names in attributes: of colocation groups, and of frames, which begin with their loop's scope.
  void TakeOutAttrs(NodeDef* node) const {
    auto& attrs = *node->mutable_attr();
    if (const auto found = attrs.find("_class"); found != attrs.end()) {
      auto* const groups = found->second.mutable_list()->mutable_s();
      groups->erase(std::remove_if(groups->begin(), groups->end(),
                                   [this](const std::string& group) { return !Included(group); }),
                    groups->end());
      for (std::string& group : *groups) group = OutOfScope(scope_, group);
    }
    if (const auto found = attrs.find("frame_name"); found != attrs.end()) {
      found->second.set_s(OutOfScope(scope_, found->second.s()));
    }
  }

  template <typename F>
  void ForEachNode(F f) {
    for (NodeDef& node : *def_->mutable_graph_def()->mutable_node()) f(&node);
    for (FunctionDef& function :
         *def_->mutable_graph_def()->mutable_library()->mutable_function()) {
      for (NodeDef& node : *function.mutable_node_def()) f(&node);
    }
  }

  /// The definitions of the ops that the graph has, without their documentation.
  void ListOps() {
    std::set<std::string> functions, names;
    for (const FunctionDef& function : def_->graph_def().library().function()) {
      functions.insert(function.signature().name());
    }
    ForEachNode([&](NodeDef* node) {
      if (functions.count(node->op()) == 0) names.insert(node->op());
    });
    OpList* const list = def_->mutable_meta_info_def()->mutable_stripped_op_list();
    for (const std::string& name : names) {
      const absl::StatusOr<const OpRegistration*> op = graph_.ops()->LookUp(name);
      if (!op.ok()) continue;  // Others' ops are taken along as they came.
      OpDef* const def = list->add_op();
      *def = *(*op)->def;
      def->clear_summary();
      def->clear_description();
      for (OpDef::ArgDef& arg : *def->mutable_input_arg()) arg.clear_description();
      for (OpDef::ArgDef& arg : *def->mutable_output_arg()) arg.clear_description();
      for (OpDef::AttrDef& attr : *def->mutable_attr()) attr.clear_description();
    }
  }

  void StripDefaults() {
    ForEachNode([this](NodeDef* node) {
      const absl::StatusOr<const OpRegistration*> op = graph_.ops()->LookUp(node->op());
      if (!op.ok()) return;
      for (const OpDef::AttrDef& attr : (*op)->def->attr()) {
        if (!attr.has_default_value()) continue;
        const auto found = node->attr().find(attr.name());
        if (found == node->attr().end()) continue;
        const auto same = [](const AttrValue& a, const AttrValue& b) {
          const auto a_bytes = SerializeMessage(a, /*as_text=*/false);
          const auto b_bytes = SerializeMessage(b, /*as_text=*/false);
          return a_bytes.ok() && b_bytes.ok() && *a_bytes == *b_bytes;
        };
        if (same(found->second, attr.default_value())) node->mutable_attr()->erase(attr.name());
      }
    });
    def_->mutable_meta_info_def()->set_stripped_default_attrs(true);
  }

  void TakeOut(Message* message) const {
    RenameAll(message, [this](const std::string& name) { return OutOfScope(scope_, name); });
  }

  absl::Status ExportCollection(const std::string& key) {
    std::vector<std::string> values = graph_.Collection(key);
    if (options_.clear_extraneous_savers && key == kSavers) values.clear();
    if (key == kSavers && values.empty() && options_.clear_extraneous_savers &&
        options_.saver_def.has_value()) {
      values.push_back(options_.saver_def->SerializeAsString());
    }
    CollectionDef list;
    const bool of_messages = NewCollectionMessage(key) != nullptr;
    const CollectionKind kind = of_messages ? CollectionKind::kBytes : KindOf(key, values);
    for (const std::string& value : values) {
      TROUPE_RETURN_IF_ERROR(of_messages ? AddMessage(key, value, list.mutable_bytes_list())
                                         : AddValue(kind, value, &list));
    }
    if (list.ByteSizeLong() > 0) (*def_->mutable_collection_def())[key].Swap(&list);
    return absl::OkStatus();
  }

  bool NamesNode(std::string_view value) const {
    if (value.find(':') == std::string_view::npos) return graph_.FindNode(value) != nullptr;
    return graph_.FindOutput(value).ok();
  }

  CollectionKind KindOf(const std::string& key, const std::vector<std::string>& values) const {
    if (const std::optional<CollectionKind> known = FindCollectionKind(graph_, key)) return *known;
    const bool nodes = std::all_of(values.begin(), values.end(),
                                   [this](const std::string& value) { return NamesNode(value); });
    return nodes ? CollectionKind::kNodes : CollectionKind::kBytes;
  }

  /// Of the variable's node; a collection may also hold the message itself.
  absl::StatusOr<VariableDef> Variable(const std::string& value) const {
    VariableDef def;
    if (graph_.FindNode(value) == nullptr && ParseBinaryMessage(value, &def) &&
        graph_.FindNode(NodeOf(def.variable_name())) != nullptr) {
      return def;
    }
    return DescribeVariable(graph_, value);
  }

  /// A variable, or a message of names.
  absl::Status AddMessage(const std::string& key, const std::string& value,
                          CollectionDef::BytesList* list) const {
    std::unique_ptr<Message> message = NewCollectionMessage(key);
    std::string_view name;  // says whether it is exported
    if (IsVariableCollection(key)) {
      absl::StatusOr<VariableDef> variable = Variable(value);
      if (!variable.ok()) {
        return absl::FailedPreconditionError(std::string(variable.status().message()));
      }
      for (const std::string& part : {variable->initializer_name(), variable->snapshot_name()}) {
        if (graph_.FindNode(NodeOf(part)) != nullptr) continue;
        return absl::FailedPreconditionError(
            StrCat("variable '", value,
                   "' has no initializer, or nothing reads it: no reader of "
                   "a MetaGraph could use it"));
      }
      if (trainable_.count(value) > 0) variable->set_trainable(true);
      static_cast<VariableDef*>(message.get())->Swap(&*variable);
      name = static_cast<VariableDef*>(message.get())->variable_name();
    } else if (!ParseBinaryMessage(value, message.get())) {
      return absl::FailedPreconditionError(
          StrCat("a value of ", value.size(), " bytes is no ", message->GetDescriptor()->name()));
    } else if (const auto* runner = dynamic_cast<QueueRunnerDef*>(message.get())) {
      name = runner->queue_name();
    } else if (const auto* saver = dynamic_cast<SaverDef*>(message.get())) {
      name = saver->save_tensor_name();
    } else if (const auto* cond = dynamic_cast<CondContextDef*>(message.get())) {
      name = cond->context_name();
    } else if (const auto* loop = dynamic_cast<WhileContextDef*>(message.get())) {
      name = loop->context_name();
    }
    if (!Included(name)) return absl::OkStatus();
    TakeOut(message.get());
    TROUPE_ASSIGN_OR_RETURN(*list->add_value(), SerializeMessage(*message, /*as_text=*/false));
    return absl::OkStatus();
  }

  absl::Status AddValue(CollectionKind kind, const std::string& value, CollectionDef* list) const {
    const auto not_a = [&](const char* what) {
      return absl::FailedPreconditionError(StrCat("'", value, "' is no ", what));
    };
    switch (kind) {
      case CollectionKind::kNodes:
        if (!NamesNode(value)) return not_a("node or tensor of the graph");
        if (Included(value)) list->mutable_node_list()->add_value(OutOfScope(scope_, value));
        return absl::OkStatus();
      case CollectionKind::kBytes:
        list->mutable_bytes_list()->add_value(value);
        return absl::OkStatus();
      case CollectionKind::kInt64: {
        int64_t number;
        if (!absl::SimpleAtoi(value, &number)) return not_a("64-bit integer");
        list->mutable_int64_list()->add_value(number);
        return absl::OkStatus();
      }
      case CollectionKind::kFloat: {
        float number;
        if (!absl::SimpleAtof(value, &number)) return not_a("number");
        list->mutable_float_list()->add_value(number);
        return absl::OkStatus();
      }
      case CollectionKind::kAny:
        if (!list->mutable_any_list()->add_value()->ParseFromString(value)) return not_a("Any");
        return absl::OkStatus();
    }
    return absl::InternalError("unknown kind of collection");
  }

  const Graph& graph_;
  const ExportMetaGraphOptions& options_;
  const std::string& scope_;
  MetaGraphDef* const def_;
  std::unordered_set<std::string> trainable_;
  std::unordered_set<std::string> excluded_;
  std::set<std::string> unbound_;
};

}  // namespace

absl::Status ExportMetaGraph(const Graph& graph, const ExportMetaGraphOptions& options,
                             MetaGraphDef* def) {
  return CatchExceptions([&]() -> absl::Status {
    def->Clear();
    return MetaGraphExporter(graph, options, def).Run();
  });
}

absl::Status WriteMetaGraph(const Graph& graph, const ExportMetaGraphOptions& options,
                            const std::string& file) {
  return CatchExceptions([&]() -> absl::Status {
    MetaGraphDef def;
    TROUPE_RETURN_IF_ERROR(ExportMetaGraph(graph, options, &def));
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes, SerializeMessage(def, file.ends_with("txt")));
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(file));
    return ReplaceFile(files, file, bytes);
  });
}

}  // namespace troupe
