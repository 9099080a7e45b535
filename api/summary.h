/// Summaries: what TensorBoard shows of a training. Nodes that make them, and writers of the files.
///
///     summary::Scalar(s, "loss", loss);
///     summary::Histogram(s, "weights", weights.value());
///     const Output merged = summary::MergeAll(s);
///     auto writer = SummaryWriter::Create("/tmp/logs");
///     (*writer)->AddGraph(*s.graph());
///     ...
///     auto values = session->Run({merged});
///     (*writer)->AddSummary((*values)[0], step);
#ifndef TROUPE_API_SUMMARY_H_
#define TROUPE_API_SUMMARY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "api/scope.h"
#include "devices/export.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Event;
class GraphDef;
class MetaGraphDef;
class RunMetadata;
class SessionLog;
class Summary;

namespace collections {
inline constexpr char kSummaries[] = "summaries";
}

namespace summary {

/// Where summaries are kept and shown. A value.
struct Options {
  /// Names of the collections that the node is added to.
  std::vector<std::string> collections = {collections::kSummaries};
  /// The tab that TensorBoard shows it in, in place of the first part of its name.
  std::string family;
};

// Nodes whose result is a serialized message `Summary`. The tag is the name, with the scope's
// prefix and made unique; characters that tags cannot have become underscores.

/// One number: `value` is a scalar of a real type.
Output Scalar(const Scope& scope, std::string_view name, const Input& value,
              const Options& options = {});
/// How many elements of `values`, of a real type and any shape, lie where.
Output Histogram(const Scope& scope, std::string_view name, const Input& values,
                 const Options& options = {});
/// The first `most` images of [images, height, width, channels] with 1, 3 or 4 channels, of type
/// uint8, half, float or double.
Output Image(const Scope& scope, std::string_view name, const Input& images, int64_t most = 3,
             const Options& options = {});
/// The first `most` sounds of [sounds, frames] or [sounds, frames, channels], of type float in
/// [-1, 1]. `rate`: a scalar, in hertz.
Output Audio(const Scope& scope, std::string_view name, const Input& sounds, const Input& rate,
             int64_t most = 3, const Options& options = {});
/// Strings of any shape, which TensorBoard takes for Markdown.
Output Text(const Scope& scope, std::string_view name, const Input& text,
            const Options& options = {});
/// Any tensor. `metadata`: a serialized message `SummaryMetadata`, which says what shows it.
Output TensorValue(const Scope& scope, std::string_view name, const Input& tensor,
                   const std::string& metadata = "", const Options& options = {});

/// One summary of several. InvalidArgument, when it is run, if two have the same tag.
Output Merge(const Scope& scope, absl::Span<const Output> summaries);
/// Of all summaries of a collection so far; an invalid output if there are none.
Output MergeAll(const Scope& scope, std::string_view collection = collections::kSummaries);

}  // namespace summary

/// A value.
struct SummaryWriterOptions {
  /// Events that may wait for the disk; who adds another one waits with it.
  int64_t max_queue = 10;
  /// What has been added for so long can be read.
  absl::Duration flush_interval = absl::Minutes(2);
  /// How long a call waits for a slow disk before it fails with DeadlineExceeded.
  absl::Duration patience = absl::Minutes(1);
  /// Of the names of the files.
  std::string suffix;
};

/// Writes event files, which TensorBoard reads, into a folder. Files are written by an actor with a
/// thread of its own: a call costs a training no more than to hand over a message, as long as the
/// disk keeps up.
///
/// An error of the file (ResourceExhausted: the disk is full) is given by the first call after it,
/// and by all later ones until `Reopen`. Thread-safe.
class SummaryWriter {
 public:
  /// Makes the folder if need be, and a file in it that no other writer has.
  static absl::StatusOr<std::shared_ptr<SummaryWriter>> Create(
      const std::string& directory, const SummaryWriterOptions& options = {});
  /// The writer of this process for a folder: all who hold it at the same time share one file.
  static absl::StatusOr<std::shared_ptr<SummaryWriter>> ForDirectory(const std::string& directory);
  /// Closes it; an error that nobody has been told is logged.
  ~SummaryWriter();

  /// `summary`: what a summary node gives, a serialized message. Metadata that came with a tag
  /// before is left out. InvalidArgument if it is no message `Summary`.
  absl::Status AddSummary(std::string_view summary, std::optional<int64_t> step = std::nullopt);
  absl::Status AddSummary(const Tensor& summary, std::optional<int64_t> step = std::nullopt);
  absl::Status AddSummary(const Summary& summary, std::optional<int64_t> step = std::nullopt);
  /// A number that was computed elsewhere.
  absl::Status AddScalar(std::string_view tag, double value, int64_t step);
  absl::Status AddGraph(const Graph& graph, std::optional<int64_t> step = std::nullopt);
  absl::Status AddGraph(const GraphDef& graph, std::optional<int64_t> step = std::nullopt);
  absl::Status AddMetaGraph(const MetaGraphDef& graph, std::optional<int64_t> step = std::nullopt);
  absl::Status AddSessionLog(const SessionLog& log, std::optional<int64_t> step = std::nullopt);
  /// What a step recorded of itself. AlreadyExists if the tag has been used.
  absl::Status AddRunMetadata(const RunMetadata& metadata, std::string_view tag,
                              std::optional<int64_t> step = std::nullopt);
  /// As it is, but for a wall time if it has none.
  absl::Status AddEvent(Event event);

  /// What was added before can be read when this returns.
  absl::Status Flush();
  /// Completes the file. Further calls give the same; what is added then is FailedPrecondition.
  absl::Status Close();
  /// Begins another file, if this one has been closed or has failed.
  absl::Status Reopen();

  const std::string& directory() const;
  /// The file that is written, or was written last.
  std::string path() const;

 private:
  struct State;
  explicit SummaryWriter(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

/// As TensorFlow calls it.
using FileWriter = SummaryWriter;

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SUMMARY_H_
