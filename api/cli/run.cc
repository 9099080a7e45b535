#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "api/cli/certificates_command.h"
#include "api/cli/cli.h"
#include "api/config.h"
#include "api/saved_model.h"
#include "api/training/warm_start.h"
#include "devices/npy.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe::cli {

absl::Status TryFile(const std::string& before, const std::string& file) {
  const bool exists = access(file.c_str(), F_OK) == 0;
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, StrCat(before, "cannot write ", file));
  close(fd);
  if (!exists) unlink(file.c_str());
  return absl::OkStatus();
}

namespace {

/// The names of a signature's tensors, and which they are in the graph. Other names are tensors'.
using Names = std::map<std::string, std::string>;

std::string TensorOf(const Names& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

Names NamesOf(const std::vector<SignatureTensor>& tensors) {
  Names names;
  for (const SignatureTensor& tensor : tensors) names[tensor.name] = tensor.tensor;
  return names;
}

/// The error of a name that is not known, and the names that a signature has.
absl::Status WithInputs(const absl::Status& error, const Names& inputs) {
  std::string known;
  for (const auto& [name, tensor] : inputs) known += StrCat(known.empty() ? "" : ", ", name);
  if (known.empty()) return error;
  return absl::Status(error.code(),
                      StrCat(std::string(error.message()), "; the signature's inputs are ", known));
}

/// A session with the graph, which is restored and initialised if it is a SavedModel's.
absl::StatusOr<SavedModelBundle> LoadGraph(const Options& options, bool is_model,
                                           const RunOptions& run_options) {
  LoadSavedModelOptions load;
  load.run = run_options;
  if (!options.config.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const config::ConfigProto config, ReadConfigProto(options.config));
    TROUPE_ASSIGN_OR_RETURN(load.session, SessionOptionsFrom(config));
  }
  if (options.threads > 0) load.session.threads = options.threads;
  if (options.no_optimize) load.session.optimize = false;
  load.session.target = options.master;
  for (auto& [type, devices] : options.device_texts.Parse()) {
    load.session.devices[type] = std::move(devices);
  }
  options.credentials.CopyTo(kClientFiles, &load.session);
  if (is_model) return LoadSavedModel(options.graph, TagsOf(options), load);
  SavedModelBundle model;
  GraphDef def;
  TROUPE_RETURN_IF_ERROR(ReadGraphDef(options.graph, &def));
  auto graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), graph.get()));
  TROUPE_ASSIGN_OR_RETURN(model.session, Session::Create(graph, load.session));
  return model;
}

/// The signature that the options ask for; null if there is none by default.
absl::StatusOr<const SignatureDef*> SignatureOf(const Options& options,
                                                const SavedModelBundle& model) {
  if (!options.signature.empty()) return model.Signature(options.signature);
  const auto& signatures = model.meta_graph.signature_def();
  const auto found = signatures.find(saved_model::kDefaultSignature);
  return found == signatures.end() ? nullptr : &found->second;
}

void RequireStep(const Options& options) {
  if (options.fetches.empty() && options.targets.empty()) {
    throw UsageError{"nothing to run: give a --fetch or a --target"};
  }
}

}  // namespace

absl::StatusOr<Prepared> Prepare(const Options& options) {
  const bool is_model = IsSavedModel(options.graph);
  CheckModelOptions(options, is_model);
  if (!is_model) RequireStep(options);
  Prepared prepared;
  if (!options.run_options.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const config::RunOptions given, ReadRunOptions(options.run_options));
    TROUPE_ASSIGN_OR_RETURN(prepared.run_options, RunOptionsFrom(given));
  }
  if (options.timeout >= 0) prepared.run_options.timeout = absl::Seconds(options.timeout);
  TROUPE_ASSIGN_OR_RETURN(SavedModelBundle model,
                          LoadGraph(options, is_model, prepared.run_options));
  TROUPE_ASSIGN_OR_RETURN(const SignatureDef* const signature, SignatureOf(options, model));
  prepared.session = std::move(model.session);
  prepared.fetches = options.fetches;
  Names inputs, outputs;
  if (signature != nullptr) {
    inputs = NamesOf(SignatureTensors(signature->inputs()));
    outputs = NamesOf(SignatureTensors(signature->outputs()));
    if (options.fetches.empty() && options.targets.empty()) {
      for (const auto& [name, tensor] : outputs) prepared.fetches.emplace_back(name, "");
    }
  } else {
    RequireStep(options);
  }

  const std::shared_ptr<Graph>& graph = prepared.session->graph();
  std::vector<std::string> feeds, fetches;
  for (const auto& [name, text] : options.feeds) {
    const std::string tensor = TensorOf(inputs, name);
    const absl::StatusOr<Output> output = graph->FindOutput(tensor);
    if (!output.ok()) return WithInputs(output.status(), inputs);
    absl::StatusOr<Tensor> value = ParseValue(text, output->type());
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          StrCat("feed ", name, ": ", std::string(value.status().message())));
    }
    feeds.push_back(tensor);
    prepared.feeds.push_back(*std::move(value));
  }
  for (const auto& fetch : prepared.fetches) fetches.push_back(TensorOf(outputs, fetch.first));
  NamedTensors fed;
  for (size_t i = 0; i < feeds.size(); ++i) fed.emplace_back(feeds[i], prepared.feeds[i]);
  for (const std::string& init : options.init) {
    TROUPE_RETURN_IF_ERROR(prepared.session->Run(prepared.run_options, fed, {}, {init}, nullptr));
  }
  if (!options.checkpoint.empty()) {
    TROUPE_RETURN_IF_ERROR(
        RestoreByName(*prepared.session, options.checkpoint, prepared.run_options).status());
  }
  TROUPE_ASSIGN_OR_RETURN(prepared.step,
                          prepared.session->MakeCallable(feeds, fetches, options.targets));
  return prepared;
}

namespace {

/// Set by Ctrl-C, which ends the process when it comes again: a step may wait for ever.
volatile std::sig_atomic_t interrupted = 0;

void Interrupt(int number) {
  interrupted = 1;
  std::signal(number, SIG_DFL);
}

/// Results larger than this are summarized on a terminal, with so many elements at each end.
constexpr int64_t kManyElements = 1000, kEdge = 3;

/// Finds out before the steps whether the files of the fetches can be written.
absl::Status TryFiles(const Options& options) {
  for (const auto& [name, file] : options.fetches) {
    if (file.empty()) continue;
    TROUPE_RETURN_IF_ERROR(TryFile(StrCat("fetch ", name, ": "), file));
  }
  return absl::OkStatus();
}

/// A line on the terminal of standard error that says how far long runs are; it is written over.
class Progress {
 public:
  explicit Progress(int64_t steps) : steps_(steps) {}
  void Update(int64_t done) {
    if (!terminal_) return;
    const absl::Time now = absl::Now();
    if (now < next_) return;
    next_ = now + absl::Milliseconds(200);
    shown_ = true;
    std::fprintf(stderr, "\rstep %" PRId64 " of %" PRId64 ", %.0f steps/s\033[K", done, steps_,
                 static_cast<double>(done) / absl::ToDoubleSeconds(now - start_));
  }
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  const int64_t steps_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const absl::Time start_ = absl::Now();
  absl::Time next_ = start_ + absl::Seconds(1);
  bool shown_ = false;
};

/// Prints what was fetched, or saves it.
absl::Status Deliver(const Prepared& prepared, const std::vector<Tensor>& values) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, file] = prepared.fetches[i];
    if (!file.empty()) {
      TROUPE_RETURN_IF_ERROR(WriteNpy(values[i], file));
      continue;
    }
    std::string dims;
    for (int64_t size : values[i].shape().dims()) dims += StrCat(dims.empty() ? "" : ",", size);
    const bool large = terminal && values[i].num_elements() > kManyElements;
    std::cout << name << " " << ElementTypeName(values[i].type()) << " [" << dims << "] "
              << ToJson(values[i], large ? kEdge : 0) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunCommand(const Options& options) {
  TROUPE_RETURN_IF_ERROR(TryFiles(options));
  TROUPE_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options));
  std::vector<Tensor> values(prepared.fetches.size());
  std::signal(SIGINT, Interrupt);
  int64_t done = 0;
  {
    Progress progress(options.steps);
    for (; done < options.steps && interrupted == 0; ++done) {
      TROUPE_RETURN_IF_ERROR(
          prepared.step(prepared.feeds, absl::MakeSpan(values), prepared.run_options));
      progress.Update(done + 1);
    }
  }
  if (done > 0) TROUPE_RETURN_IF_ERROR(Deliver(prepared, values));
  if (done == options.steps) return 0;
  std::cerr << "stopped after " << done << " of " << options.steps << " steps\n";
  return 128 + SIGINT;
}

namespace {

/// Milliseconds since the kernel started this process.
double MillisecondsSinceStart() {
  std::ifstream stat("/proc/self/stat");
  std::stringstream content;
  content << stat.rdbuf();
  const std::string text = content.str();
  // The program's name, in parentheses, may hold anything; the start time is field 22.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started =
      std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return 1e3 *
         (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started);
}

/// The largest resident size of this process, in KiB. (getrusage would count what the parent held
/// before exec.)
int64_t PeakResidentKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoll(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

}  // namespace

absl::StatusOr<int> BenchCommand(const Options& options) {
  using Clock = std::chrono::steady_clock;
  TROUPE_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options));
  std::vector<Tensor> values(prepared.fetches.size());
  auto run = [&] {
    // The last step's results are given back first, as a program does that has used them: the next
    // ones may lie in the same memory.
    for (Tensor& value : values) value = Tensor();
    return prepared.step(prepared.feeds, absl::MakeSpan(values), prepared.run_options);
  };
  TROUPE_RETURN_IF_ERROR(run());
  const double startup_ms = MillisecondsSinceStart();

  // Warm-up: a tenth of the time, at least until costs have been measured.
  const auto seconds = [](double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const Clock::time_point warm = Clock::now() + seconds(0.1 * options.seconds);
  for (int i = 0; i < 5 || Clock::now() < warm; ++i) TROUPE_RETURN_IF_ERROR(run());

  std::vector<double> micros;
  const Clock::time_point end = Clock::now() + seconds(options.seconds);
  Clock::time_point before = Clock::now();
  do {
    TROUPE_RETURN_IF_ERROR(run());
    const Clock::time_point after = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  } while (before < end);
  std::sort(micros.begin(), micros.end());
  const size_t n = micros.size();
  std::string name = options.graph.substr(options.graph.rfind('/') + 1);
  name = name.substr(0, name.find('.'));
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::printf(
      "{\"name\": \"%s\", \"threads\": %d, \"runs\": %zu, \"nodes\": %d, \"min_us\": %.3f, "
      "\"median_us\": %.3f, \"p99_us\": %.3f, \"startup_ms\": %.1f, \"resident_kb\": %" PRId64
      "}\n",
      name.c_str(), threads, n, prepared.step.num_nodes(), micros[0], micros[n / 2],
      micros[std::min(n - 1, n * 99 / 100)], startup_ms, PeakResidentKb());
  return 0;
}

}  // namespace troupe::cli
