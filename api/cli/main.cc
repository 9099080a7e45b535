// The program `troupe`: runs, times, shows and serves graphs.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "absl/strings/str_split.h"
#include "api/cli/admin_command.h"
#include "api/cli/certificates_command.h"
#include "api/cli/checkpoint_command.h"
#include "api/cli/cli.h"
#include "api/cli/cluster_command.h"
#include "api/cli/records_command.h"
#include "api/extension.h"
#include "api/program/command_line.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

std::vector<std::pair<std::string, std::string>> SplitAtEquals(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    pairs.push_back(absl::StrSplit(text, absl::MaxSplits('=', 1)));
  }
  return pairs;
}

void AddCredentials(CLI::App* command, Credentials* credentials, const std::string& no_secret) {
  CLI::Option* const folder =
      AddValue(command, "--certificates DIR", &credentials->folder,
               "The folder of troupe certificates, of which this side takes its own files");
  AddValue(command, "--tls-cert F", &credentials->certificate,
           "PEM file: the certificate of this side, which names it")
      ->excludes(folder);
  AddValue(command, "--tls-key F", &credentials->key, "PEM file: its key")->excludes(folder);
  AddValue(command, "--tls-ca F", &credentials->authority, "PEM file: the authority's certificate")
      ->excludes(folder);
  AddValue(command, "--secret-file F", &credentials->secret,
           "The secret that all tasks and clients of the cluster know: a file of 16 to 4096 bytes "
           "that only its owner can read; if absent, " +
               no_secret);
}

/// What is wrong with the name of a level; empty: nothing.
std::string IsLogLevel(const std::string& name) {
  return std::string(ParseLogLevel(name).status().message());
}

void AddLogLevel(CLI::App* command, std::string* level, const std::string& by_default) {
  AddValue(command, "--log-level LEVEL", level,
           "What is logged on standard error: trace, debug, info, warning, error or off")
      ->check(IsLogLevel)
      ->default_str(by_default);
}

void AddLibraries(CLI::App* command, std::vector<std::string>* libraries) {
  AddList(command, "--library FILE", libraries,
          "A shared library with ops, kernels and devices, loaded first; may be repeated");
}

void AddConfig(CLI::App* command, std::string* config) {
  AddValue(command, "--config FILE|TEXT", config,
           "TensorFlow's ConfigProto, in a file or as text: devices, threads, placement; other "
           "options count in place of what it says");
}

void AddGraph(CLI::App* command, Options* options) {
  command
      ->add_option("GRAPH", options->graph, "A GraphDef, binary or text, or a SavedModel's folder")
      ->required()
      ->type_name("");
  AddList(command, "--tag T", &options->tags,
          "A tag of the SavedModel's graph; may be repeated; serve if absent");
  AddLibraries(command, &options->libraries);
  command->add_flag("--no-optimize", options->no_optimize, "Leaves the graph as it is");
  AddLogLevel(command, &options->log_level, "error");
}

/// The options of `run` and `bench`.
void AddRun(CLI::App* command, Options* options) {
  AddGraph(command, options);
  AddList(command, "--init NODE", &options->init,
          "A node that runs once, before the steps, and is fed as they are; may be repeated");
  AddValue(command, "--checkpoint PREFIX", &options->checkpoint,
           "Variables have the values of this checkpoint, by their names; those that it lacks are "
           "left to --init, whose nodes run before");
  AddValue(command, "--signature NAME", &options->signature,
           "Feeds and fetches by the names of this signature of a SavedModel, all of its outputs "
           "without --fetch; serving_default if absent");
  AddList(command, "--feed NAME=VALUE", &options->feed_texts,
          "Feeds a tensor; VALUE is JSON (NaN, Infinity and -Infinity are numbers) or the name of "
          "a .npy file; may be repeated")
      ->check([](const std::string& text) {
        const size_t equals = text.find('=');
        return equals < text.size() - 1 ? "" : "takes NAME=VALUE, not \"" + text + "\"";
      });
  AddList(command, "--fetch NAME[=FILE.npy]", &options->fetch_texts,
          "Fetches a tensor, which is printed after the last step, or saved; may be repeated");
  AddList(command, "--target NODE", &options->targets, "A node that steps run; may be repeated");
  AddValue(command, "--threads N", &options->threads,
           "Threads that compute; one per core if absent")
      ->check(WholeNumber(1, 4096))
      ->default_str("");
  AddValue(command, "--timeout SECONDS", &options->timeout, "Ends a step that takes longer")
      ->check(Number(0, 1e9))
      ->default_str("");
  AddConfig(command, &options->config);
  AddValue(command, "--run-options FILE|TEXT", &options->run_options,
           "TensorFlow's RunOptions, in a file or as text");
  AddDevices(command, &options->device_texts);
  AddValue(command, "--master troupe://HOST:PORT", &options->master,
           "Runs in a cluster, by way of this task, on the devices that its tasks show")
      ->excludes("--device");
  AddCredentials(command, &options->credentials,
                 "that of a troupe cluster of this user on this machine is found");
}

void AddPlan(CLI::App* command, Options* options) {
  AddGraph(command, options);
  AddValue(command, "--dot FILE", &options->dot_file, "Writes the graph in Graphviz's language");
  AddValue(command, "--svg FILE", &options->svg_file, "Draws the graph with Graphviz's dot");
  AddValue(command, "--devices N|NAME,NAME...", &options->devices,
           "Shows the plan of a step over so many CPU devices, or over devices with these names");
  AddList(command, "--feed NAME", &options->feed_texts, "What the step is fed; may be repeated");
  AddList(command, "--fetch NAME", &options->fetch_texts, "What it fetches; may be repeated");
  AddList(command, "--target NODE", &options->targets, "What it runs; may be repeated");
}

void AddFreeze(CLI::App* command, Options* options) {
  command->add_option("DIR", options->graph, "A SavedModel's folder")->required()->type_name("");
  AddLibraries(command, &options->libraries);
  AddList(command, "--tag T", &options->tags,
          "A tag of the SavedModel's graph; may be repeated; serve if absent");
  AddValue(command, "--out FILE", &options->out_file, "The graph, as text if the name ends in txt")
      ->required();
  AddValue(command, "--signature NAME", &options->signature,
           "What of the graph is kept is what this signature's outputs need; if absent, those of "
           "serving_default, or of all if there is none of that name");
  AddList(command, "--fetch NAME", &options->fetch_texts,
          "An output of the signature, or a tensor, that is kept instead; may be repeated");
  AddLogLevel(command, &options->log_level, "error");
}

/// The options of `worker` and `cluster`.
void AddServe(CLI::App* command, ServeOptions* options, const std::string& no_secret) {
  AddValue(command, "--heartbeat-timeout S", &options->heartbeat_timeout,
           "Seconds of silence after which a task is lost")
      ->check(Number(0.1, 1e6));
  AddValue(command, "--threads N", &options->threads,
           "Threads of a task that compute; one per core if absent")
      ->check(WholeNumber(1, 4096))
      ->default_str("");
  AddValue(command, "--devices N", &options->devices,
           "CPU devices that a task shows, unless --device CPU=N says so; 1 if absent")
      ->check(WholeNumber(1, 1024))
      ->default_str("");
  AddConfig(command, &options->config);
  AddDevices(command, &options->device_texts);
  AddLibraries(command, &options->libraries);
  AddCredentials(command, &options->credentials, no_secret);
  command->add_flag("--insecure", options->insecure,
                    "Serves addresses that other machines reach without TLS");
  AddLogLevel(command, &options->log_level, "info");
}

void AddWorker(CLI::App* command, ServeOptions* options) {
  CLI::Option* const file =
      AddValue(command, "--cluster FILE", &options->cluster_file,
               "JSON: addresses by job; TF_CONFIG is taken if absent, unless --resolve is given");
  CLI::Option* const resolver =
      AddValue(command, "--resolve slurm|kubernetes", &options->resolver,
               "Takes addresses, job and task from what started this process")
          ->check(CLI::IsMember({"slurm", "kubernetes"}))
          ->excludes(file);
  AddValue(command, "--jobs JOB=N,JOB=N...", &options->jobs,
           "How many tasks each job has, for --resolve")
      ->needs(resolver);
  resolver->needs("--jobs");
  AddValue(command, "--port N", &options->port, "The (first) port of a machine, for --resolve")
      ->check(WholeNumber(1, 65535))
      ->needs(resolver);
  AddValue(command, "--job J", &options->job, "The job of this task");
  AddValue(command, "--task N", &options->task, "Its number")
      ->check(WholeNumber(0, 1000000))
      ->default_str("");
  AddValue(command, "--join HOST:PORT", &options->join,
           "Becomes a member of a cluster that runs, by way of a task of it; only this task's own "
           "address is taken from FILE");
  AddValue(command, "--server-def FILE|TEXT", &options->server_def,
           "TensorFlow's ServerDef, in a file or as text, in place of --cluster, --job and --task")
      ->excludes("--cluster")
      ->excludes("--job")
      ->excludes("--task");
  AddServe(command, options, "whoever can connect is served");
}

void AddCheckpoint(CLI::App* command, CheckpointOptions* options) {
  command
      ->add_option("PREFIX", options->checkpoint,
                   "A checkpoint, or a folder: its latest checkpoint")
      ->required()
      ->type_name("");
  AddList(command, "--tensor NAME[=FILE.npy]", &options->tensors,
          "Prints a tensor, or saves it, in place of the list; may be repeated");
  command->add_flag("--full-names", options->full_names,
                    "Lists beside each tensor the name of its variable, if it has another one");
  command->add_flag("--verify", options->verify, "Reads everything and checks the checksums");
  AddValue(command, "--diff OTHER", &options->other,
           "Prints what differs in another checkpoint; exit status 1 if anything does");
  AddLogLevel(command, &options->log_level, "error");
}

void AddRecords(CLI::App* command, RecordsOptions* options) {
  command
      ->add_option("FILE", options->files,
                   "Files of records, also as patterns with *, ? and [...]; without an option they "
                   "are counted")
      ->required()
      ->type_name("");
  command->add_flag("--count", options->count, "Prints how many records each file has");
  command->add_flag("--verify", options->verify, "Reads everything and checks the checksums");
  AddValue(command, "--head N", &options->head,
           "Prints the first records of each file, a line each")
      ->check(WholeNumber(0, 1'000'000'000'000'000))
      ->default_str("");
  command->add_flag("--examples", options->examples,
                    "Prints the features of records that are Examples or SequenceExamples");
  AddValue(command, "--compression NAME", &options->compression,
           "none, zlib or gzip; told by the content if absent")
      ->check(CLI::IsMember({"none", "zlib", "gzip"}));
  AddLogLevel(command, &options->log_level, "error");
}

void AddCertificates(CLI::App* command, CertificatesOptions* options) {
  command->add_option("FILE", options->cluster_file, "JSON: addresses by job")
      ->required()
      ->type_name("");
  AddValue(command, "--out DIR", &options->folder,
           "The folder for ca.pem, job-ps-task-0.pem, client.pem and so on, and their .key")
      ->required();
  AddValue(command, "--days N", &options->days, "How long they are valid")
      ->check(WholeNumber(1, 36500));
  AddValue(command, "--authority DIR", &options->authority,
           "Signs by the authority in a folder that this command has made, for tasks that join");
}

/// What all commands for who runs a cluster have in common.
void AddAdmin(CLI::App* command, AdminOptions* options) {
  AddValue(command, "--master troupe://HOST:PORT", &options->master, "A task of the cluster")
      ->required();
  AddCredentials(command, &options->credentials,
                 "that of a troupe cluster of this user on this machine is found");
  AddLogLevel(command, &options->log_level, "error");
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

absl::Status LoadLibraries(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    TROUPE_RETURN_IF_ERROR(LoadLibrary(library));
  }
  return absl::OkStatus();
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
  AddValue(run, "--steps N", &options.steps, "How many steps run")
      ->check(WholeNumber(0, 1'000'000'000'000'000));
  CLI::App* bench = line.Command("bench", "Times steps of a graph; prints a line of JSON.");
  AddRun(bench, &options);
  AddValue(bench, "--seconds S", &options.seconds, "How long steps are timed")
      ->check(Number(0, 1e6));
  CLI::App* graph = line.Command(
      "graph", "Shows what a graph has and what is missing here; draws it; plans a step.");
  AddPlan(graph, &options);
  CLI::App* freeze =
      line.Command("freeze", "Writes a SavedModel as one graph, its variables as constants.");
  AddFreeze(freeze, &options);
  CLI::App* worker =
      line.Command("worker", "Serves as a task of a cluster until SIGTERM or Ctrl-C.");
  AddWorker(worker, &serve);
  CLI::App* cluster = line.Command("cluster", "Serves as all tasks of a cluster, each a process.");
  cluster->add_option("FILE", serve.cluster_file, "JSON: addresses by job")
      ->required()
      ->type_name("");
  AddServe(cluster, &serve,
           "one is made if all addresses are loopback, and clients of this user find it");
  cluster->add_flag("--restart", serve.restart, "Starts tasks again that have failed");
  CheckpointOptions checkpoint_options;
  CLI::App* checkpoint =
      line.Command("checkpoint", "Lists the tensors of a checkpoint; prints and verifies them.");
  AddCheckpoint(checkpoint, &checkpoint_options);
  RecordsOptions records_options;
  CLI::App* records =
      line.Command("records", "Counts, verifies and prints the records of TFRecord files.");
  AddRecords(records, &records_options);
  CertificatesOptions certificates_options;
  CLI::App* certificates = line.Command(
      "certificates", "Makes an authority and certificates for a cluster's tasks and clients.");
  AddCertificates(certificates, &certificates_options);
  AdminOptions admin;
  CLI::App* leave = line.Command(
      "leave", "Has a task, dead or alive, leave its cluster; its name and address are free then.");
  AddAdmin(leave, &admin);
  AddValue(leave, "--task TASK", &admin.task, "Which one: /job:worker/task:2")->required();
  CLI::App* log = line.Command("log", "Prints the last lines that a task has logged.");
  AddAdmin(log, &admin);
  AddValue(log, "--task TASK", &admin.task, "Which one, if not the one at --master");
  AddValue(log, "--level LEVEL", &admin.level, "The least level")->check(IsLogLevel);
  AddValue(log, "--lines N", &admin.lines, "How many lines at most; a task keeps 1,000")
      ->check(WholeNumber(1, 1000));
  CLI::App* tracing =
      line.Command("tracing", "Traces all steps of a task for a while; for chrome://tracing.");
  AddAdmin(tracing, &admin);
  AddValue(tracing, "--task TASK", &admin.task, "Which one, if not the one at --master");
  AddValue(tracing, "--seconds S", &admin.seconds, "For how long")->check(Number(0, 600));
  AddValue(tracing, "--out FILE.json", &admin.file, "What is written")->required();
  char help[] = "--help";
  if (argc == 2 && std::strcmp(argv[1], "help") == 0) argv[1] = help;
  if (const std::optional<int> status = line.Read(argc, argv)) return *status;

  const bool serves = worker->parsed() || cluster->parsed();
  const bool admin_parsed = leave->parsed() || log->parsed() || tracing->parsed();
  const std::string& log_level = serves                 ? serve.log_level
                                 : admin_parsed         ? admin.log_level
                                 : checkpoint->parsed() ? checkpoint_options.log_level
                                 : records->parsed()    ? records_options.log_level
                                                        : options.log_level;
  // Commands that end say by themselves what went wrong; what a message of options asks for may be
  // a log.
  const bool configured = !options.config.empty() || !options.run_options.empty();
  SetDefaultLogLevel(serves ? LogLevel::kInfo : configured ? LogLevel::kWarning : LogLevel::kError);
  if (!log_level.empty()) SetLogLevel(*ParseLogLevel(log_level));

  options.feeds = SplitAtEquals(options.feed_texts);
  options.fetches = SplitAtEquals(options.fetch_texts);
  try {
    if (worker->parsed()) {
      if (absl::Status loaded = LoadLibraries(serve.libraries); !loaded.ok()) return Report(loaded);
      return Report(WorkerCommand(serve));
    }
    if (cluster->parsed()) return Report(ClusterCommand(serve));
    if (checkpoint->parsed()) return Report(CheckpointCommand(checkpoint_options));
    if (records->parsed()) return Report(RecordsCommand(records_options));
    if (certificates->parsed()) return Report(CertificatesCommand(certificates_options));
    if (leave->parsed()) return Report(LeaveCommand(admin));
    if (log->parsed()) return Report(LogCommand(admin));
    if (tracing->parsed()) return Report(TracingCommand(admin));
    if (absl::Status loaded = LoadLibraries(options.libraries); !loaded.ok()) return Report(loaded);
    if (graph->parsed()) return Report(GraphCommand(options));
    if (freeze->parsed()) return Report(FreezeCommand(options));
    return Report(run->parsed() ? RunCommand(options) : BenchCommand(options));
  } catch (const UsageError& error) {
    return line.WrongUsage(error.message);
  }
}

}  // namespace
}  // namespace troupe::cli

int main(int argc, char** argv) { return troupe::cli::Main(argc, argv); }
