#include "net/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {

using nlohmann::json;

absl::StatusOr<json> ParseJson(std::string_view text, size_t max_bytes, int max_depth) {
  if (text.size() > max_bytes) {
    return InvalidArgument("JSON of ", text.size(), " bytes, more than the ", max_bytes,
                           " that are read");
  }
  std::string error;
  std::vector<std::set<std::string>> open;  // The members so far of each object.
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (!error.empty()) return false;
    if ((event == Event::object_start || event == Event::array_start) && depth >= max_depth) {
      error = StrCat("nested more than ", max_depth, " levels deep");
    }
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(parsed.get<std::string>()).second) {
      error = StrCat("member \"", parsed.get<std::string>().substr(0, 80), "\" is given twice");
    }
    return error.empty();
  };
  try {
    json value = json::parse(text, check);
    if (error.empty()) return value;
  } catch (const json::parse_error& wrong) {
    if (error.empty()) error = StrCat("syntax error at byte ", wrong.byte);
  } catch (const json::exception& wrong) {
    if (error.empty()) error = wrong.what();
  }
  return InvalidArgument("JSON: ", error);
}

}  // namespace troupe
