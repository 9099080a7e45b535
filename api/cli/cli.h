// What the commands of the program `troupe` share.

#ifndef TROUPE_API_CLI_CLI_H_
#define TROUPE_API_CLI_CLI_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/cli/device_options.h"
#include "api/session.h"
#include "devices/tensor.h"

namespace troupe {
class GraphDef;
class MetaGraphDef;
}  // namespace troupe

namespace troupe::cli {

/// Wrong usage: the program ends with status 2.
struct UsageError {
  std::string message;
};

/// What this side shows to the others of a cluster: files.
struct Credentials {
  std::string certificate, key, authority;  ///< PEM: this side's own, and the authority's.
  std::string folder;  ///< Of `troupe certificates`, instead of these; empty: none.
  std::string secret;

  /// To `SessionOptions` or `ServerOptions`. `name`: what the folder's files of this side are
  /// called.
  template <typename AnyOptions>
  void CopyTo(const std::string& name, AnyOptions* options) const {
    const std::string stem = folder + "/" + name;
    options->tls_certificate = folder.empty() ? certificate : stem + ".pem";
    options->tls_key = folder.empty() ? key : stem + ".key";
    options->tls_authority = folder.empty() ? authority : folder + "/ca.pem";
    options->secret_file = secret;
  }
};

/// The options of `run`, `bench` and `graph`.
struct Options {
  /// A file, or the folder of a SavedModel.
  std::string graph;
  /// Of a SavedModel: the signature, and the tags of the graph; empty: those by default.
  std::string signature;
  std::vector<std::string> tags;
  /// Shared libraries with ops and kernels, loaded before anything else.
  std::vector<std::string> libraries;
  std::vector<std::string> init;
  /// As they are given, and by name.
  std::vector<std::string> feed_texts, fetch_texts;
  std::vector<std::pair<std::string, std::string>> feeds;
  /// Name, and file or "".
  std::vector<std::pair<std::string, std::string>> fetches;
  std::vector<std::string> targets;
  std::string checkpoint;  ///< Variables have its values; empty: none.
  int64_t steps = 1;
  double seconds = 2;
  int threads = 0;
  bool no_optimize = false;
  /// In seconds; negative: none.
  double timeout = -1;
  /// "troupe://host:port"; empty: the graph is run in this process.
  std::string master;
  DeviceTexts device_texts;  ///< Of this process.
  Credentials credentials;
  /// ConfigProto and RunOptions, as text or files; empty: the defaults.
  std::string config, run_options;
  /// Of a plan: how many CPU devices, or the names of devices. Empty: no plan.
  std::string devices;
  std::string dot_file;
  std::string out_file;  ///< Of `freeze`.
  std::string svg_file;
  std::string log_level;  ///< Empty: the default.
};

/// A graph that is ready to be run as the options say: imported, initialised, feeds read.
struct Prepared {
  std::unique_ptr<Session> session;
  Session::Callable step;
  /// What the step fetches, by the names that the user knows, and the files for it or "".
  std::vector<std::pair<std::string, std::string>> fetches;
  std::vector<Tensor> feeds;
  RunOptions run_options;
};
absl::StatusOr<Prepared> Prepare(const Options& options);

/// A tensor of the given type from JSON text (numbers, strings, nested lists; NaN, Infinity and
/// -Infinity are numbers) or from a .npy file. Decimal fractions are rounded; any other value that
/// the type does not hold is refused. InvalidArgument / NotFound quote the value.
absl::StatusOr<Tensor> ParseValue(std::string_view text, ElementType type);
/// The elements as JSON, nested by dimension; bytes of strings that are not UTF-8 as `\xNN`. With
/// `edge` > 0 only so many elements of each dimension at its beginning and its end, and "...".
std::string ToJson(const Tensor& tensor, int64_t edge = 0);

/// A name on a line of its own: control characters, and bytes that are not UTF-8, as `\xNN`.
std::string EscapeLine(const std::string& text);

/// Finds out whether a file can be written, and leaves it, or its absence, as it is; the error
/// begins with `before`.
absl::Status TryFile(const std::string& before, const std::string& file);
absl::Status WriteFile(const std::string& file, const std::string& content);

/// The graph that the options name: a file's, or that of a SavedModel with the tags. `meta_graph`:
/// the rest of a SavedModel; empty for a file.
absl::Status ReadGraphOf(const Options& options, GraphDef* def, MetaGraphDef* meta_graph);
/// The tags of the options, or those by default.
std::vector<std::string> TagsOf(const Options& options);
/// Throws UsageError if an option that only SavedModels have is given with a file.
void CheckModelOptions(const Options& options, bool is_model);

/// The exit status; 130 if Ctrl-C has ended it before all steps had run. Both throw UsageError.
absl::StatusOr<int> RunCommand(const Options& options);
absl::StatusOr<int> BenchCommand(const Options& options);
/// The exit status is 1 if something is missing. Throws UsageError.
absl::StatusOr<int> GraphCommand(const Options& options);
/// Throws UsageError.
absl::StatusOr<int> FreezeCommand(const Options& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_CLI_H_
