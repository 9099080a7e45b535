// The program `troupe`: runs, times, shows and serves graphs.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "api/cli/cli.h"
#include "api/cli/cluster_command.h"
#include "api/extension.h"
#include "api/program/command_line.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

std::vector<std::pair<std::string, std::string>> SplitAtEquals(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    pairs.emplace_back(text.substr(0, equals),
                       equals == std::string::npos ? "" : text.substr(equals + 1));
  }
  return pairs;
}

void AddTls(CLI::App* command, Tls* tls) {
  AddValue(command, "--tls-cert", &tls->certificate, "PEM file: the certificate of this side")
      ->type_name("F");
  AddValue(command, "--tls-key", &tls->key, "PEM file: its key")->type_name("F");
  AddValue(command, "--tls-ca", &tls->authority, "PEM file: the authority's certificate")
      ->type_name("F");
}

void AddGraph(CLI::App* command, Options* options) {
  command->add_option("GRAPH", options->graph, "A GraphDef, binary or text")
      ->required()
      ->type_name("");
  AddList(command, "--library", &options->libraries,
          "A shared library with ops and kernels, loaded first; may be repeated")
      ->type_name("FILE");
  command->add_flag("--no-optimize", options->no_optimize, "Leaves the graph as it is");
}

/// The options of `run` and `bench`.
void AddRun(CLI::App* command, Options* options) {
  AddGraph(command, options);
  AddList(command, "--init", &options->init,
          "A node that runs once, before the steps; may be repeated")
      ->type_name("NODE");
  AddList(command, "--feed", &options->feed_texts,
          "Feeds a tensor; VALUE is JSON (NaN, Infinity and -Infinity are numbers) or the name of "
          "a .npy file; may be repeated")
      ->type_name("NAME=VALUE")
      ->check([](const std::string& text) {
        const size_t equals = text.find('=');
        return equals < text.size() - 1 ? "" : "takes NAME=VALUE, not \"" + text + "\"";
      });
  AddList(command, "--fetch", &options->fetch_texts,
          "Fetches a tensor, which is printed after the last step, or saved; may be repeated")
      ->type_name("NAME[=FILE.npy]");
  AddList(command, "--target", &options->targets, "A node that steps run; may be repeated")
      ->type_name("NODE");
  AddValue(command, "--threads", &options->threads, "Threads that compute; one per core if absent")
      ->check(WholeNumber(1, 4096))
      ->default_str("")
      ->type_name("N");
  AddValue(command, "--timeout", &options->timeout, "Ends a step that takes longer")
      ->check(Number(0, 1e9))
      ->default_str("")
      ->type_name("SECONDS");
  AddValue(command, "--master", &options->master, "Runs in a cluster, by way of this task")
      ->type_name("troupe://HOST:PORT");
  AddTls(command, &options->tls);
}

void AddPlan(CLI::App* command, Options* options) {
  AddGraph(command, options);
  AddValue(command, "--dot", &options->dot_file, "Writes the graph in Graphviz's language")
      ->type_name("FILE");
  AddValue(command, "--svg", &options->svg_file, "Draws the graph with Graphviz's dot")
      ->type_name("FILE");
  AddValue(command, "--devices", &options->devices,
           "Shows the plan of a step over so many CPU devices, or over devices with these names")
      ->type_name("N|NAME,NAME...");
  AddList(command, "--feed", &options->feed_texts, "What the step is fed; may be repeated")
      ->type_name("NAME");
  AddList(command, "--fetch", &options->fetch_texts, "What it fetches; may be repeated")
      ->type_name("NAME");
  AddList(command, "--target", &options->targets, "What it runs; may be repeated")
      ->type_name("NODE");
}

/// The options of `worker` and `cluster`.
void AddServe(CLI::App* command, ServeOptions* options) {
  AddValue(command, "--heartbeat-timeout", &options->heartbeat_timeout,
           "Seconds of silence after which a task is lost")
      ->check(Number(0.1, 1e6))
      ->type_name("S");
  AddValue(command, "--threads", &options->threads,
           "Threads of a task that compute; one per core if absent")
      ->check(WholeNumber(1, 4096))
      ->default_str("")
      ->type_name("N");
  AddValue(command, "--devices", &options->devices, "CPU devices that a task shows")
      ->check(WholeNumber(1, 1024))
      ->type_name("N");
  AddTls(command, &options->tls);
  command->add_flag("--insecure", options->insecure,
                    "Serves addresses that other machines reach without TLS");
}

void AddWorker(CLI::App* command, ServeOptions* options) {
  AddValue(command, "--cluster", &options->cluster_file,
           "JSON: addresses by job; TF_CONFIG is taken if absent")
      ->type_name("FILE");
  AddValue(command, "--job", &options->job, "The job of this task")->type_name("J");
  AddValue(command, "--task", &options->task, "Its number")
      ->check(WholeNumber(0, 1000000))
      ->default_str("")
      ->type_name("N");
  AddValue(command, "--join", &options->join,
           "Becomes a member of a cluster that runs, by way of a task of it; only this task's own "
           "address is taken from FILE")
      ->type_name("HOST:PORT");
  AddValue(command, "--data-port", &options->data_port, "Port of the data plane; 0: any free one")
      ->check(WholeNumber(0, 65535))
      ->type_name("P");
  AddServe(command, options);
}

/// The exit status; an error is one line.
int Report(absl::StatusOr<int> result) {
  std::cout.flush();
  if (result.ok() && (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    result = absl::ErrnoToStatus(errno, "standard output cannot be written");
  }
  if (result.ok()) return *result;
  std::string message(result.status().message());
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << absl::StatusCodeToString(result.status().code()) << ": " << message << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  CommandLine line("troupe", "Runs, times, shows and serves dataflow graphs.");
  line.require_subcommand(1);
  line.footer(
      "Exit status: 0; 1: an error, one line on standard error; 2: wrong usage; 130: "
      "stopped by Ctrl-C.");
  Options options;
  ServeOptions serve;
  CLI::App* run = line.Command("run", "Runs steps of a graph and prints what they give.");
  AddRun(run, &options);
  AddValue(run, "--steps", &options.steps, "How many steps run")
      ->check(WholeNumber(0, 1'000'000'000'000'000))
      ->type_name("N");
  CLI::App* bench = line.Command("bench", "Times steps of a graph; prints a line of JSON.");
  AddRun(bench, &options);
  AddValue(bench, "--seconds", &options.seconds, "How long steps are timed")
      ->check(Number(0, 1e6))
      ->type_name("S");
  CLI::App* graph = line.Command(
      "graph", "Shows what a graph has and what is missing here; draws it; plans a step.");
  AddPlan(graph, &options);
  CLI::App* worker =
      line.Command("worker", "Serves as a task of a cluster until SIGTERM or Ctrl-C.");
  AddWorker(worker, &serve);
  CLI::App* cluster = line.Command("cluster", "Serves as all tasks of a cluster, each a process.");
  cluster->add_option("FILE", serve.cluster_file, "JSON: addresses by job")
      ->required()
      ->type_name("");
  AddServe(cluster, &serve);
  char help[] = "--help";
  if (argc == 2 && std::strcmp(argv[1], "help") == 0) argv[1] = help;
  if (const std::optional<int> status = line.Read(argc, argv)) return *status;

  options.feeds = SplitAtEquals(options.feed_texts);
  options.fetches = SplitAtEquals(options.fetch_texts);
  try {
    if (worker->parsed()) return Report(WorkerCommand(serve));
    if (cluster->parsed()) return Report(ClusterCommand(serve));
    for (const std::string& library : options.libraries) {
      if (absl::Status loaded = LoadLibrary(library); !loaded.ok()) return Report(loaded);
    }
    if (graph->parsed()) return Report(GraphCommand(options));
    return Report(run->parsed() ? RunCommand(options) : BenchCommand(options));
  } catch (const UsageError& error) {
    return line.WrongUsage(error.message);
  }
}

}  // namespace
}  // namespace troupe::cli

int main(int argc, char** argv) { return troupe::cli::Main(argc, argv); }
