#include "kernels/io/json_example.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include "devices/status_macros.h"
#include "graph/protos/example.pb.h"

namespace troupe {

absl::StatusOr<std::string> ExampleFromJson(std::string_view json) {
  static constexpr char kPrefix[] = "type.googleapis.com";
  static google::protobuf::util::TypeResolver* const types =
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kPrefix, Example::descriptor()->file()->pool());
  // Not by way of a message, for the same bytes as TensorFlow's: lists are not packed.
  std::string bytes;
  const auto parsed = google::protobuf::util::JsonToBinaryString(
      types, StrCat(kPrefix, "/", Example::descriptor()->full_name()), {json.data(), json.size()},
      &bytes);
  if (!parsed.ok()) return InvalidArgument("no Example in JSON: ", parsed.ToString());
  return bytes;
}

}  // namespace troupe
