#include "api/internal/not_honored.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "absl/strings/str_join.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AddFields(const Message& message, const std::string& prefix,
               const std::vector<std::string_view>& honored, std::set<std::string>* names) {
  const Reflection* const reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    names->insert(StrCat(prefix, "field ", unknown.field(i).number()));
  }
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = prefix + field->name();
    if (std::find(honored.begin(), honored.end(), name) != honored.end()) continue;
    if (field->is_map() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      names->insert(name);
    } else if (!field->is_repeated()) {
      AddFields(reflection->GetMessage(message, field), name + ".", honored, names);
    } else {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        AddFields(reflection->GetRepeatedMessage(message, field, i), name + ".", honored, names);
      }
    }
  }
}

/// What has been said. Of the process, as is the log.
class Said {
 public:
  bool Insert(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    return names_.insert(name).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<std::string> FieldsNotHonored(const Message& message,
                                          const std::vector<std::string_view>& honored) {
  std::set<std::string> names;
  AddFields(message, "", honored, &names);
  return {names.begin(), names.end()};
}

void SayNotHonored(const Message& message, const std::vector<std::string_view>& honored,
                   std::string_view name) {
  static auto* const said = new Said;
  const std::string type = name.empty() ? message.GetDescriptor()->name() : std::string(name);
  std::vector<std::string> fresh;
  for (std::string& field : FieldsNotHonored(message, honored)) {
    if (said->Insert(StrCat(type, ".", field))) fresh.push_back(std::move(field));
  }
  if (fresh.empty()) return;
  WriteLog(LogLevel::kWarning, "", {"not honored", fresh[0]}, type,
           ": not honored here: ", absl::StrJoin(fresh, ", "));
}

}  // namespace troupe
