#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "api/summary.h"
#include "devices/status_macros.h"
#include "devices/storage/background_event_log.h"
#include "devices/storage/event_log.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/meta_graph.pb.h"
#include "graph/protos/stats.pb.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

absl::StatusOr<std::unique_ptr<BackgroundEventLog>> NewLog(const std::string& directory,
                                                           const SummaryWriterOptions& options) {
  return BackgroundEventLog::Create(directory, {.max_queue = options.max_queue,
                                                .flush_interval = options.flush_interval,
                                                .patience = options.patience,
                                                .suffix = options.suffix});
}

Event EventAt(std::optional<int64_t> step) {
  Event event;
  if (step.has_value()) event.set_step(*step);
  return event;
}

}  // namespace

struct SummaryWriter::State {
  const std::string directory;
  const SummaryWriterOptions options;

  std::mutex mutex;
  std::shared_ptr<BackgroundEventLog> log;
  bool closed = false;
  std::set<std::string> tags;           ///< Whose metadata has been written.
  std::set<std::string> metadata_tags;  ///< Of run metadata.

  std::shared_ptr<BackgroundEventLog> Log() {
    std::lock_guard<std::mutex> lock(mutex);
    return log;
  }
};

SummaryWriter::SummaryWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SummaryWriter::~SummaryWriter() = default;

absl::StatusOr<std::shared_ptr<SummaryWriter>> SummaryWriter::Create(
    const std::string& directory, const SummaryWriterOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<BackgroundEventLog> log, NewLog(directory, options));
  std::unique_ptr<State> state(new State{directory, options});
  state->log = std::move(log);
  return std::shared_ptr<SummaryWriter>(new SummaryWriter(std::move(state)));
}

absl::StatusOr<std::shared_ptr<SummaryWriter>> SummaryWriter::ForDirectory(
    const std::string& directory) {
  static std::mutex mutex;
  static auto& writers = *new std::map<std::string, std::weak_ptr<SummaryWriter>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<SummaryWriter>& known = writers[directory];
  if (std::shared_ptr<SummaryWriter> writer = known.lock()) {
    TROUPE_RETURN_IF_ERROR(writer->Reopen());
    return writer;
  }
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<SummaryWriter> writer, Create(directory));
  known = writer;
  return writer;
}

absl::Status SummaryWriter::AddEvent(Event event) {
  if (event.wall_time() == 0) event.set_wall_time(WallTime(absl::Now()));
  return state_->Log()->Add(std::move(event));
}

absl::Status SummaryWriter::AddSummary(std::string_view bytes, std::optional<int64_t> step) {
  Summary summary;
  if (bytes.size() > INT32_MAX ||
      !summary.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("a string of ", bytes.size(), " bytes is no message Summary");
  }
  return AddSummary(summary, step);
}

absl::Status SummaryWriter::AddSummary(const Tensor& summary, std::optional<int64_t> step) {
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes, summary.scalar<std::string>());
  return AddSummary(std::string_view(bytes), step);
}

absl::Status SummaryWriter::AddSummary(const Summary& summary, std::optional<int64_t> step) {
  Event event = EventAt(step);
  *event.mutable_summary() = summary;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    for (Summary::Value& value : *event.mutable_summary()->mutable_value()) {
      if (value.has_metadata() && !state_->tags.insert(value.tag()).second) value.clear_metadata();
    }
  }
  return AddEvent(std::move(event));
}

absl::Status SummaryWriter::AddScalar(std::string_view tag, double value, int64_t step) {
  Event event = EventAt(step);
  Summary::Value* added = event.mutable_summary()->add_value();
  added->set_tag(std::string(tag));
  added->set_simple_value(static_cast<float>(value));
  return AddEvent(std::move(event));
}

absl::Status SummaryWriter::AddGraph(const Graph& graph, std::optional<int64_t> step) {
  GraphDef def;
  graph.ToGraphDef(&def);
  return AddGraph(def, step);
}

absl::Status SummaryWriter::AddGraph(const GraphDef& graph, std::optional<int64_t> step) {
  Event event = EventAt(step);
  if (!graph.SerializeToString(event.mutable_graph_def())) {
    return InvalidArgument("a graph of ", graph.ByteSizeLong(), " bytes is no event");
  }
  return AddEvent(std::move(event));
}

absl::Status SummaryWriter::AddMetaGraph(const MetaGraphDef& graph, std::optional<int64_t> step) {
  Event event = EventAt(step);
  if (!graph.SerializeToString(event.mutable_meta_graph_def())) {
    return InvalidArgument("a MetaGraph of ", graph.ByteSizeLong(), " bytes is no event");
  }
  return AddEvent(std::move(event));
}

absl::Status SummaryWriter::AddSessionLog(const SessionLog& log, std::optional<int64_t> step) {
  Event event = EventAt(step);
  *event.mutable_session_log() = log;
  return AddEvent(std::move(event));
}

absl::Status SummaryWriter::AddRunMetadata(const RunMetadata& metadata, std::string_view tag,
                                           std::optional<int64_t> step) {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->metadata_tags.insert(std::string(tag)).second) {
      return absl::AlreadyExistsError(
          StrCat("the tag '", tag, "' has been used for the metadata of another run"));
    }
  }
  Event event = EventAt(step);
  event.mutable_tagged_run_metadata()->set_tag(std::string(tag));
  if (!metadata.SerializeToString(event.mutable_tagged_run_metadata()->mutable_run_metadata())) {
    return InvalidArgument("run metadata of ", metadata.ByteSizeLong(), " bytes is no event");
  }
  return AddEvent(std::move(event));
}

absl::Status SummaryWriter::Flush() { return state_->Log()->Flush(); }

absl::Status SummaryWriter::Close() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
  }
  return state_->Log()->Close();
}

absl::Status SummaryWriter::Reopen() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->closed && state_->log->status().ok()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(state_->log, NewLog(state_->directory, state_->options));
  state_->closed = false;
  // Another file, which must explain itself.
  state_->tags.clear();
  return absl::OkStatus();
}

const std::string& SummaryWriter::directory() const { return state_->directory; }
std::string SummaryWriter::path() const { return state_->Log()->path(); }

}  // namespace troupe
