// troupe_golden: replays cases recorded with TensorFlow and compares.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/golden/case_file.h"
#include "tests/golden/compare.h"
#include "tests/golden/replay.h"
#include "tests/golden/spread.h"
#include "tests/golden/workers.h"

namespace troupe::golden {
namespace {

constexpr char kUsage[] =
    "usage: troupe_golden [--op NAME] [--case NAME] [--stage N] [--list-skipped] [--in-process]\n"
    "                     [--devices N | --workers N] [--seed S] PATH...\n"
    "PATH is a case file (.pb, .pb.gz) or a folder of them.\n"
    "  --op NAME        only cases about this op, or about any of several\n"
    "  --case NAME      only the case of this name\n"
    "  --stage N        only cases whose ops are of stage N or before; all these ops must be "
    "there\n"
    "  --devices N      spread each graph over N CPU devices of one process\n"
    "  --workers N      spread each graph over N worker processes, which are started here\n"
    "  --seed S         of the spread; printed if it is drawn\n"
    "  --list-skipped   print each skipped case with the op that is missing\n"
    "  --no-optimize    sessions that leave the graphs as they are\n"
    "  --in-process     run in this process, for debuggers (else a child process runs the cases)\n";

struct Options : Selection {
  int devices = 0;
  int workers = 0;
  uint64_t seed = 0;
  bool seeded = false;
  std::vector<std::string> paths;
};

bool ParseNumber(const char* text, uint64_t* number) {
  char* end;
  *number = std::strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0';
}

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    uint64_t number = 0;
    if (arg == "--list-skipped") {
      options->list_skipped = true;
    } else if (arg == "--no-optimize") {
      CurrentSpread().optimize = false;
    } else if (arg == "--in-process") {
      options->in_process = true;
    } else if (!arg.starts_with("--")) {
      options->paths.push_back(arg);
    } else if (++i == argc) {
      return false;
    } else if (arg == "--op") {
      options->ops.push_back(argv[i]);
    } else if (arg == "--case") {
      options->name = argv[i];
    } else if (!ParseNumber(argv[i], &number)) {
      return false;
    } else if (arg == "--devices" && number >= 1 && number <= 64) {
      options->devices = static_cast<int>(number);
    } else if (arg == "--workers" && number >= 1 && number <= 64) {
      options->workers = static_cast<int>(number);
    } else if (arg == "--stage" && number <= 9) {
      options->stage = static_cast<int>(number);
    } else if (arg == "--seed") {
      options->seed = number;
      options->seeded = true;
    } else {
      return false;
    }
  }
  return !options->paths.empty() && (options->devices == 0 || options->workers == 0);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", StatusLine(status).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  Spread& spread = CurrentSpread();
  spread.seed = options.seeded ? options.seed : std::random_device()();
  const auto print_seed = [&](const char* option, int count) {
    std::printf("%s %d --seed %llu\n", option, count, static_cast<unsigned long long>(spread.seed));
    std::fflush(stdout);
  };
  if (options.devices > 1) {
    for (int i = 0; i < options.devices; ++i) {
      spread.devices.push_back("/device:CPU:" + std::to_string(i));
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
  std::printf("%s\n", total.ToString().c_str());
  return total.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe::golden

int main(int argc, char** argv) {
  int status = 0;
  if (troupe::golden::ServeTask(argc, argv, &status)) return status;
  return troupe::golden::Main(argc, argv);
}
