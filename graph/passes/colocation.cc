#include "graph/passes/colocation.h"

#include <string_view>

#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr std::string_view kClassPrefix = "loc:@";

}  // namespace

bool TakesHandle(const Node& node, int i) {
  const ElementType type = node.input_type(i);
  // The old arrays' handles are strings.
  return type == ElementType::kResource ||
         (type == ElementType::kString && i == 0 && node.op().starts_with("TensorArray"));
}

std::string SharedNameOf(const Node& node) {
  if (!node.attrs().Has("shared_name")) return "";
  const std::string name = node.attrs().GetOr<std::string>("shared_name", "");
  if (name.empty()) return "";
  return StrCat(node.requested_device(), "\n", node.attrs().GetOr<std::string>("container", ""),
                "\n", name);
}

std::vector<std::string> ColocationNames(const Node& node) {
  std::vector<std::string> names;
  if (node.attrs().Has("_class")) {
    for (const std::string& text : node.attrs().GetOr<std::vector<std::string>>("_class", {})) {
      if (text.starts_with(kClassPrefix)) names.push_back(text.substr(kClassPrefix.size()));
    }
  }
  const std::string& device = node.requested_device();
  if (device.starts_with('@')) names.push_back(device.substr(1));
  return names;
}

}  // namespace troupe
