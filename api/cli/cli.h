// What the commands of the program `troupe` share.

#ifndef TROUPE_API_CLI_CLI_H_
#define TROUPE_API_CLI_CLI_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/session.h"
#include "devices/tensor.h"

namespace troupe::cli {

/// Wrong usage: the program ends with status 2.
struct UsageError {
  std::string message;
};

/// The options of `run`, `bench` and `graph`; each command refuses those that are not its own.
struct Options {
  std::string command;
  std::string graph;
  /// Shared libraries with ops and kernels, loaded before anything else.
  std::vector<std::string> libraries;
  std::vector<std::string> init;
  std::vector<std::pair<std::string, std::string>> feeds;
  /// Name, and file or "".
  std::vector<std::pair<std::string, std::string>> fetches;
  std::vector<std::string> targets;
  int64_t steps = 1;
  double seconds = 2;
  int threads = 0;
  bool optimize = true;
  std::optional<double> timeout;
  /// "troupe://host:port"; empty: the graph is run in this process.
  std::string master;
  std::string tls_cert, tls_key, tls_ca;
  /// Of a plan: how many CPU devices, or the names of devices. Empty: no plan.
  std::string devices;
  std::string dot_file;
  std::string svg_file;

  /// Throws UsageError.
  static Options Parse(int argc, char** argv);
};

/// A graph that is ready to be run as the options say: imported, initialised, feeds read.
struct Prepared {
  std::unique_ptr<Session> session;
  Session::Callable step;
  std::vector<Tensor> feeds;
  RunOptions run_options;
};
absl::StatusOr<Prepared> Prepare(const Options& options);

/// A tensor of the given type from JSON text (numbers, strings, nested lists) or from a .npy file.
/// `fits` is what is known of the shape. InvalidArgument / NotFound quote the value.
absl::StatusOr<Tensor> ParseValue(std::string_view text, ElementType type);
/// The elements as JSON, nested by dimension.
std::string ToJson(const Tensor& tensor);

absl::Status RunCommand(const Options& options);
absl::Status BenchCommand(const Options& options);
/// The exit status is 1 if something is missing.
absl::StatusOr<int> GraphCommand(const Options& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_CLI_H_
