/// Traces for chrome://tracing and ui.perfetto.dev.
#ifndef TROUPE_API_INTERNAL_CHROME_TRACE_H_
#define TROUPE_API_INTERNAL_CHROME_TRACE_H_

#include <string>

#include "devices/export.h"
#include "graph/protos/stats.pb.h"

namespace troupe {

/// JSON in Chrome's trace event format. Each device is a process, and each run of a node an event,
/// in microseconds since the first one began. What runs at the same time is on several rows.
TROUPE_EXPORT std::string ToChromeTrace(const StepStats& stats);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_CHROME_TRACE_H_
