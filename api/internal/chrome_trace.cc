#include "api/internal/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace troupe {

namespace {

void Add(const nlohmann::json& event, std::string* events) {
  if (!events->empty()) *events += ",\n";
  // Names are what users have written.
  *events += event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The first of the rows that is free from `start` on; from then on it is taken until `end`.
size_t TakeRow(int64_t start, int64_t end, std::vector<int64_t>* taken_until) {
  size_t row = 0;
  while (row < taken_until->size() && (*taken_until)[row] > start) ++row;
  if (row == taken_until->size()) taken_until->push_back(0);
  (*taken_until)[row] = end;
  return row;
}

}  // namespace

std::string ToChromeTrace(const StepStats& stats) {
  std::map<std::string, std::vector<const NodeExecStats*>> runs;  // Each step names its devices.
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const DeviceStepStats& device : stats.dev_stats()) {
    std::vector<const NodeExecStats*>& all = runs[device.device()];
    for (const NodeExecStats& run : device.node_stats()) {
      all.push_back(&run);
      begin = std::min(begin, run.all_start_nanos());
    }
  }
  std::string events;
  int process = 0;
  for (auto& [device, all] : runs) {
    Add({{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", device}}}},
        &events);
    std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
      return a->all_start_nanos() < b->all_start_nanos();
    });
    std::vector<int64_t> taken_until;
    for (const NodeExecStats* run : all) {
      const int64_t start = run->all_start_nanos() - begin;
      Add({{"ph", "X"},
           {"name", run->node_name()},
           {"pid", process},
           {"tid", TakeRow(start, start + run->all_end_rel_nanos(), &taken_until)},
           {"ts", static_cast<double>(start) / 1000},
           {"dur", static_cast<double>(run->all_end_rel_nanos()) / 1000},
           {"args", {{"label", run->timeline_label()}}}},
          &events);
    }
    ++process;
  }
  return "{\"traceEvents\":[\n" + events + "\n]}\n";
}

}  // namespace troupe
