// troupe_golden: replays cases recorded with TensorFlow and compares.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "api/program/command_line.h"
#include "devices/status_macros.h"
#include "tests/golden/case_file.h"
#include "tests/golden/compare.h"
#include "tests/golden/replay.h"
#include "tests/golden/spread.h"
#include "tests/golden/workers.h"

namespace troupe::golden {
namespace {

struct Options : Selection {
  int devices = 0;
  int workers = 0;
  std::string device;
  uint64_t seed = 0;
  bool seeded = false;
  double at_least = 0;
  bool unasked = false;
  std::vector<std::string> paths;
};

/// A value: the program ends with this status.
std::optional<int> ParseOptions(int argc, char** argv, Options* options) {
  CommandLine line("troupe_golden", "Replays cases recorded with TensorFlow and compares.");
  bool no_optimize = false;
  line.add_option("PATH", options->paths, "Case files (.pb, .pb.gz), or folders of them")
      ->required()
      ->type_name("");
  AddList(&line, "--op NAME", &options->ops, "Only cases about this op; may be repeated");
  AddValue(&line, "--case NAME", &options->name, "Only the case of this name");
  AddList(&line, "--except NAME", &options->except, "Not the case of this name; may be repeated");
  AddValue(&line, "--stage N", &options->stage,
           "Only cases whose ops are of stage N or before; all these ops must be there")
      ->check(WholeNumber(0, 9));
  CLI::Option* devices = AddValue(&line, "--devices N", &options->devices,
                                  "Spreads each graph over N devices of one process")
                             ->check(WholeNumber(1, 64));
  CLI::Option* device = AddValue(&line, "--device TYPE", &options->device,
                                 "Runs what it can on a device of this type: GPU, or SIM, the "
                                 "simulated accelerator")
                            ->check(CLI::IsMember({"GPU", "SIM"}));
  AddValue(&line, "--at-least PERCENT", &options->at_least,
           "Fails unless so many of the executed nodes ran on devices of that type")
      ->check(CLI::Range(0.0, 100.0))
      ->needs(device);
  line.add_flag("--unasked", options->unasked,
                "The graphs ask for no device: placement finds what is faster there")
      ->needs(device);
  AddValue(&line, "--workers N", &options->workers,
           "Spreads each graph over N worker processes, which are started here")
      ->check(WholeNumber(1, 64))
      ->excludes(devices);
  const CLI::Option* seed =
      AddValue(&line, "--seed S", &options->seed, "Of the spread; printed if it is drawn")
          ->check(WholeNumber(0, INT64_MAX));
  AddValue(&line, "--at-most SECONDS", &options->at_most,
           "A case that takes more processor time has failed")
      ->check(CLI::NonNegativeNumber);
  line.add_flag("--list-skipped", options->list_skipped,
                "Prints each skipped case with the op that is missing");
  line.add_flag("--no-optimize", no_optimize, "Sessions leave the graphs as they are");
  line.add_flag("--in-process", options->in_process,
                "Runs in this process, for debuggers (else a child process runs the cases)");
  const std::optional<int> status = line.Read(argc, argv);
  options->seeded = seed->count() > 0;
  if (no_optimize) CurrentSpread().optimize = false;
  return status;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", StatusLine(status).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  Options options;
  if (const std::optional<int> status = ParseOptions(argc, argv, &options)) return *status;
  Spread& spread = CurrentSpread();
  spread.seed = options.seeded ? options.seed : std::random_device()();
  const auto print_seed = [&](const char* option, int count) {
    std::printf("%s %d --seed %llu\n", option, count, static_cast<unsigned long long>(spread.seed));
    std::fflush(stdout);
  };
  if (!options.device.empty()) {
    if (options.device == "SIM") UseSimulatedDevices(spread.seed, options.unasked);
    spread.device_type = options.device;
    if (options.workers == 0) options.devices = std::max(options.devices, 1);
  }
  if (options.devices > 1 || (spread.device_type != "CPU" && options.workers == 0)) {
    for (int i = 0; i < options.devices && !options.unasked; ++i) {
      spread.devices.push_back(StrCat("/device:", spread.device_type, ":", i));
    }
    print_seed("--devices", options.devices);
  }
  std::optional<Workers> workers;
  if (options.workers > 0) {
    print_seed("--workers", options.workers);
    if (absl::Status status = workers.emplace().Start(options.workers); !status.ok()) {
      return Fail(status);
    }
    spread.devices = workers->devices();
    spread.target = workers->target();
  }
  Counts total;
  for (const std::string& path : options.paths) {
    const absl::StatusOr<std::vector<std::string>> files = ListCaseFiles(path);
    if (!files.ok()) return Fail(files.status());
    for (const std::string& file : *files) {
      const absl::StatusOr<CaseFile> cases = ReadCaseFile(file);
      if (!cases.ok()) return Fail(cases.status());
      total.Add(Replay(file, /*named=*/file == path, *cases, options, workers ? &*workers : nullptr,
                       stdout));
    }
  }
  if (!options.device.empty()) {
    std::printf("%s: %s\n", options.device.c_str(), total.PlacedToString().c_str());
  }
  const bool too_few = total.PercentThere() < options.at_least;
  if (too_few) {
    std::printf("FAIL: %.1f %% of the nodes ran on %s, at least %g %% must\n", total.PercentThere(),
                options.device.c_str(), options.at_least);
  }
  std::printf("%s\n", total.ToString().c_str());
  return total.failed == 0 && !too_few ? 0 : 1;
}

}  // namespace
}  // namespace troupe::golden

int main(int argc, char** argv) {
  int status = 0;
  if (troupe::golden::ServeTask(argc, argv, &status)) return status;
  return troupe::golden::Main(argc, argv);
}
