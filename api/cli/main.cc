// The program `troupe`: runs, times and shows graphs.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "api/cli/cli.h"
#include "api/cli/cluster_command.h"
#include "api/extension.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

constexpr char kUsage[] =
    R"(usage: troupe run GRAPH [--init NODE]... [--feed NAME=VALUE]... [--fetch NAME[=FILE.npy]]...
                  [--target NODE]... [--steps N] [--threads N] [--no-optimize] [--timeout SECONDS]
                  [--library FILE]... [--master troupe://HOST:PORT [--tls-cert F --tls-key F --tls-ca F]]
       troupe bench GRAPH [the same] [--seconds S]
       troupe graph GRAPH [--dot FILE] [--svg FILE] [--library FILE]...
                  [--devices N|NAME,NAME... [--feed NAME]... [--fetch NAME]... [--target NODE]... [--no-optimize]]
       troupe worker --cluster FILE --job J --task N [--data-port P] [--heartbeat-timeout S]
                  [--tls-cert F --tls-key F --tls-ca F | --insecure] [--threads N] [--devices N]
       troupe cluster FILE [the same but for the task's]
GRAPH is a GraphDef, binary or text. VALUE is JSON, or the name of a .npy file. Libraries have ops
and kernels of their own.
)";

double ParseNumber(const std::string& option, const std::string& text, double minimum,
                   double maximum, bool whole) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(number >= minimum && number <= maximum) ||
      (whole && number != std::floor(number))) {
    throw UsageError{option + " takes a number" + (whole ? " without fraction" : "") + ", not \"" +
                     text + "\""};
  }
  return number;
}

std::pair<std::string, std::string> SplitAtEquals(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {text, ""};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

Options Options::Parse(int argc, char** argv) {
  Options options;
  if (argc < 2) throw UsageError{"a command is missing"};
  options.command = argv[1];
  const bool runs = options.command == "run" || options.command == "bench";
  const bool graph = options.command == "graph";
  if (!runs && !graph) throw UsageError{"unknown command \"" + options.command + "\""};
  for (int i = 2; i < argc; ++i) {
    std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      if (!options.graph.empty()) throw UsageError{"more than one GRAPH: \"" + name + "\""};
      options.graph = name;
      continue;
    }
    // The value stands behind an equals sign or in the next argument.
    std::optional<std::string> inline_value;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      inline_value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    auto value = [&]() -> std::string {
      if (inline_value) return *inline_value;
      if (i + 1 >= argc) throw UsageError{name + " needs a value"};
      return argv[++i];
    };
    if (name == "--library") {
      options.libraries.push_back(value());
    } else if (runs && name == "--init") {
      options.init.push_back(value());
    } else if (name == "--feed") {
      options.feeds.push_back(SplitAtEquals(value()));
      if (runs && options.feeds.back().second.empty()) {
        throw UsageError{"--feed takes NAME=VALUE"};
      }
    } else if (name == "--fetch") {
      options.fetches.push_back(SplitAtEquals(value()));
    } else if (name == "--target") {
      options.targets.push_back(value());
    } else if (runs && name == "--steps") {
      options.steps = static_cast<int64_t>(ParseNumber(name, value(), 0, 1e15, true));
    } else if (runs && name == "--threads") {
      options.threads = static_cast<int>(ParseNumber(name, value(), 1, 4096, true));
    } else if (name == "--no-optimize" && !inline_value) {
      options.optimize = false;
    } else if (runs && name == "--timeout") {
      options.timeout = ParseNumber(name, value(), 0, 1e9, false);
    } else if (runs && name == "--master") {
      options.master = value();
    } else if (runs && name == "--tls-cert") {
      options.tls_cert = value();
    } else if (runs && name == "--tls-key") {
      options.tls_key = value();
    } else if (runs && name == "--tls-ca") {
      options.tls_ca = value();
    } else if (options.command == "bench" && name == "--seconds") {
      options.seconds = ParseNumber(name, value(), 0, 1e6, false);
    } else if (graph && name == "--devices") {
      options.devices = value();
    } else if (graph && name == "--dot") {
      options.dot_file = value();
    } else if (graph && name == "--svg") {
      options.svg_file = value();
    } else {
      throw UsageError{"unknown option " + name + " for " + options.command};
    }
  }
  if (options.graph.empty()) throw UsageError{"GRAPH is missing"};
  const bool step = !options.feeds.empty() || !options.fetches.empty() ||
                    !options.targets.empty() || !options.optimize;
  if (graph && step && options.devices.empty()) {
    throw UsageError{"graph takes a step only for a plan: give --devices"};
  }
  if (runs && options.fetches.empty() && options.targets.empty()) {
    throw UsageError{"nothing to run: give a --fetch or a --target"};
  }
  return options;
}

namespace {

/// The exit status; an error is one line.
int Report(const absl::StatusOr<int>& result) {
  std::cout.flush();
  if (result.ok()) return *result;
  std::string message(result.status().message());
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << absl::StatusCodeToString(result.status().code()) << ": " << message << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "help")) {
    std::cout << kUsage;
    return 0;
  }
  absl::StatusOr<int> result = 0;
  try {
    const std::string command = argc < 2 ? "" : argv[1];
    if (command == "worker" || command == "cluster") {
      const ServeOptions serve = ServeOptions::Parse(argc, argv);
      result = command == "worker" ? WorkerCommand(serve) : ClusterCommand(serve);
      return Report(result);
    }
    const Options options = Options::Parse(argc, argv);
    absl::Status loaded;
    for (const std::string& library : options.libraries) loaded.Update(LoadLibrary(library));
    if (!loaded.ok()) {
      result = loaded;
    } else if (options.command == "graph") {
      result = GraphCommand(options);
    } else {
      const absl::Status status =
          options.command == "run" ? RunCommand(options) : BenchCommand(options);
      if (!status.ok()) result = status;
    }
  } catch (const UsageError& error) {
    std::cerr << "troupe: " << error.message << "\n" << kUsage;
    return 2;
  }
  return Report(result);
}

}  // namespace
}  // namespace troupe::cli

int main(int argc, char** argv) { return troupe::cli::Main(argc, argv); }
