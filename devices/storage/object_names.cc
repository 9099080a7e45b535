#include "devices/storage/object_names.h"

#include "devices/status_macros.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

constexpr char kObjectGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

}  // namespace

absl::StatusOr<ObjectNames> ObjectNames::Of(const CheckpointReader& reader) {
  ObjectNames names;
  if (!reader.tensors().contains(kObjectGraph)) return names;
  TROUPE_ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kObjectGraph));
  TrackableObjectGraph graph;
  if (tensor.type() != ElementType::kString || tensor.num_elements() != 1 ||
      !graph.ParseFromString(tensor.unchecked_data<std::string>()[0])) {
    return absl::DataLossError(StrCat("tensor '", kObjectGraph, "' is no TrackableObjectGraph"));
  }
  for (const auto& node : graph.nodes()) {
    for (const auto& attribute : node.attributes()) {
      const bool saved = reader.tensors().contains(attribute.checkpoint_key());
      if (!saved || attribute.full_name().empty()) continue;
      // A variable that several objects share is there several times.
      const bool is_new =
          names.full_names_.emplace(attribute.checkpoint_key(), attribute.full_name()).second;
      if (is_new) names.keys_.emplace(attribute.full_name(), attribute.checkpoint_key());
    }
  }
  return names;
}

std::string ObjectNames::FullName(std::string_view key) const {
  const auto found = full_names_.find(key);
  return found == full_names_.end() ? "" : found->second;
}

absl::StatusOr<std::string> ObjectNames::Key(const CheckpointReader& reader,
                                             std::string_view name) const {
  const absl::Status known = reader.Find(name).status();
  if (known.ok()) return std::string(name);
  const auto [first, end] = keys_.equal_range(name);
  if (first == end) return known;
  if (std::next(first) == end) return first->second;
  return InvalidArgument("the checkpoint has several variables of the name '", name, "': '",
                         first->second, "', '", std::next(first)->second, "'");
}

}  // namespace troupe
