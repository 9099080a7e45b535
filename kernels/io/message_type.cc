#include "kernels/io/message_type.h"

#include <google/protobuf/descriptor.pb.h>

#include <string_view>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;

constexpr std::string_view kLocal = "local://", kBytes = "bytes://";

/// Keeps the first thing that is wrong with a file.
class FirstError final : public DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& filename, const std::string& element,
                const google::protobuf::Message*, ErrorLocation,
                const std::string& message) override {
    if (text_.empty()) text_ = StrCat(filename, ": ", element, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::StatusOr<std::string> ReadDescriptors(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(path));
  return ReadWholeFile(files, path);
}

absl::StatusOr<std::unique_ptr<DescriptorPool>> MakePool(const std::string& serialized_set) {
  FileDescriptorSet set;
  if (!set.ParseFromString(serialized_set)) {
    return InvalidArgument("the descriptor source holds no serialized FileDescriptorSet");
  }
  auto pool = std::make_unique<DescriptorPool>();
  for (const FileDescriptorProto& file : set.file()) {
    FirstError error;
    if (pool->BuildFileCollectingErrors(file, &error) == nullptr) {
      return InvalidArgument("the descriptor source is wrong: ", error.text());
    }
  }
  return pool;
}

}  // namespace

absl::StatusOr<MessageType> FindMessageType(const std::string& source, const std::string& name) {
  MessageType type;
  if (source == kLocal) {
    const DescriptorPool* local = DescriptorPool::generated_pool();
    type.descriptor = local->FindMessageTypeByName(name);
    constexpr std::string_view kTheirs = "tensorflow.";
    if (type.descriptor == nullptr && name.starts_with(kTheirs)) {
      type.descriptor = local->FindMessageTypeByName("troupe." + name.substr(kTheirs.size()));
    }
  } else {
    std::string bytes;
    if (source.starts_with(kBytes)) {
      bytes = source.substr(kBytes.size());
    } else {
      absl::StatusOr<std::string> read = ReadDescriptors(source);
      if (!read.ok()) {
        return InvalidArgument("descriptor_source must be ", kLocal, ", ", kBytes,
                               " and descriptors, or a file: ", read.status().message());
      }
      bytes = *std::move(read);
    }
    TROUPE_ASSIGN_OR_RETURN(type.pool, MakePool(bytes));
    type.descriptor = type.pool->FindMessageTypeByName(name);
  }
  if (type.descriptor == nullptr) {
    return InvalidArgument("the descriptor source has no message type '", name, "'");
  }
  return type;
}

}  // namespace troupe
