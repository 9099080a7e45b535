#include "graph/name_scope.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/status_macros.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

using Rename = absl::FunctionRef<std::string(const std::string&)>;

void RenameTensor(TensorInfo* info, Rename rename) {
  if (info->has_name()) info->set_name(rename(info->name()));
  if (info->has_coo_sparse()) RenameAll(info->mutable_coo_sparse(), rename);
  if (!info->has_composite_tensor()) return;
  for (TensorInfo& part : *info->mutable_composite_tensor()->mutable_components()) {
    RenameTensor(&part, rename);
  }
}

/// Where the name begins in "^name" and "loc:@name".
size_t NameBegin(std::string_view name) {
  if (name.starts_with('^')) return 1;
  constexpr std::string_view kColocation = "loc:@";
  return name.starts_with(kColocation) ? kColocation.size() : 0;
}

}  // namespace

std::string InScope(std::string_view scope, std::string_view name) {
  if (scope.empty() || name.empty()) return std::string(name);
  const size_t begin = NameBegin(name);
  return StrCat(name.substr(0, begin), scope, "/", name.substr(begin));
}

bool IsInScope(std::string_view scope, std::string_view name) {
  if (scope.empty()) return true;
  name.remove_prefix(NameBegin(name));
  return name.size() > scope.size() && name.starts_with(scope) && name[scope.size()] == '/';
}

std::string OutOfScope(std::string_view scope, std::string_view name) {
  if (scope.empty() || !IsInScope(scope, name)) return std::string(name);
  const size_t begin = NameBegin(name);
  return StrCat(name.substr(0, begin), name.substr(begin + scope.size() + 1));
}

void RenameAll(Message* message, absl::FunctionRef<std::string(const std::string&)> rename) {
  const Reflection* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_string = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!is_string && !is_message) continue;
    if (!field->is_repeated()) {
      if (is_string) {
        reflection->SetString(message, field, rename(reflection->GetString(*message, field)));
      } else {
        RenameAll(reflection->MutableMessage(message, field), rename);
      }
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      if (is_string) {
        reflection->SetRepeatedString(message, field, i,
                                      rename(reflection->GetRepeatedString(*message, field, i)));
      } else {
        RenameAll(reflection->MutableRepeatedMessage(message, field, i), rename);
      }
    }
  }
}

void RenameTensors(SignatureDef* signature,
                   absl::FunctionRef<std::string(const std::string&)> rename) {
  for (auto& [input, info] : *signature->mutable_inputs()) RenameTensor(&info, rename);
  for (auto& [output, info] : *signature->mutable_outputs()) RenameTensor(&info, rename);
}

std::unique_ptr<Message> NewCollectionMessage(std::string_view key) {
  if (IsVariableCollection(key)) return std::make_unique<VariableDef>();
  if (key == "queue_runners") return std::make_unique<QueueRunnerDef>();
  if (key == "savers") return std::make_unique<SaverDef>();
  if (key == "cond_context") return std::make_unique<CondContextDef>();
  if (key == "while_context") return std::make_unique<WhileContextDef>();
  return nullptr;
}

bool IsVariableCollection(std::string_view key) {
  for (const std::string_view variables :
       {"variables", "trainable_variables", "local_variables", "model_variables",
        "moving_average_variables", "metric_variables", "global_step"}) {
    if (key == variables) return true;
  }
  return false;
}

}  // namespace troupe
