// troupe_random_ops: runs random cases of every op, in child processes, and reports what crashes,
// hangs, takes too much memory, or leaves a session of no use.

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "tests/golden/case_file.h"
#include "tests/golden/compare.h"
#include "tests/how_many.h"
#include "tests/random_ops/drawn_case.h"
#include "tests/random_ops/run_drawn_case.h"

namespace troupe::random_ops {
namespace {

/// A case that gives no outcome for so long hangs.
const absl::Duration kPatience = absl::Seconds(40) * kSlow;

struct Options {
  std::vector<std::string> recorded, ops;
  int64_t runs = HowMany("TROUPE_OP_RUNS", 2, 2);
  uint64_t seed = 1;
  int64_t draw = -1;
  int64_t first = 0;
  int part = 0, parts = 1;
  int most_failures = 10;
  double seconds = 0;
  std::string save, replay;
  bool here = false;
};

std::optional<int> ParseOptions(int argc, char** argv, Options* options) {
  CommandLine line("troupe_random_ops", "Runs random cases of every registered op.");
  line.add_option("PATH", options->recorded, "Files of recorded cases to change at random")
      ->type_name("");
  AddList(&line, "--op NAME", &options->ops, "Only this op; may be repeated");
  AddValue(&line, "--runs N", &options->runs, "Cases of each op (TROUPE_OP_RUNS)");
  AddValue(&line, "--first N", &options->first, "The number of the first case");
  AddValue(&line, "--seed S", &options->seed, "Of all draws");
  AddValue(&line, "--part I", &options->part, "Only each op whose number is I modulo --parts");
  AddValue(&line, "--parts N", &options->parts, "How many parts there are")
      ->check(WholeNumber(1, 1000));
  AddValue(&line, "--most-failures N", &options->most_failures,
           "Goes on to the next op after so many of one");
  AddValue(&line, "--seconds N", &options->seconds, "Begins no further op after so long; 0: all");
  AddValue(&line, "--draw N", &options->draw, "Only case N of the op, in this process; prints it");
  AddValue(&line, "--save FILE", &options->save, "Adds the case of --draw to a file of cases");
  AddValue(&line, "--replay FILE", &options->replay, "Runs the cases of a file instead");
  line.add_flag("--in-process", options->here, "Runs in this process, for debuggers");
  return line.Read(argc, argv);
}

/// Gives case i of those of one child.
using CaseAt = std::function<golden::Case(int64_t i)>;

/// Runs cases in child processes; each that ends its process, or does not end, costs one.
class Isolated {
 public:
  Isolated(std::string folder, int most_failures)
      : log_(folder + "/errors"), most_failures_(most_failures) {}

  /// Says what is wrong with each, under the name that the case has.
  void Run(int64_t first, int64_t end, const std::string& name, const CaseAt& case_at) {
    int failures = 0;
    for (int64_t next = first; next < end && failures < most_failures_;) {
      std::filesystem::remove(log_);
      absl::StatusOr<ChildProcess> child = ChildProcess::Fork(
          [&] { return RunChild(next, end, case_at); }, {.output = true, .log = log_});
      if (!child.ok()) {
        std::printf("%s\n", golden::StatusLine(child.status()).c_str());
        ++failed_;
        return;
      }
      while (const std::optional<std::string> line = child->Line(kPatience)) {
        const size_t space = line->find(' ');
        ++codes_[line->substr(0, space)];
        ++ran_;
        if (space != std::string::npos) {
          Fail(StrCat(name, " ", next), line->substr(space + 1));
          ++failures;
        }
        ++next;
      }
      const bool silent = !child->closed();
      const ExitStatus ended = silent ? child->End() : *child->Wait();
      if (next >= end && ended.ok()) break;
      Fail(StrCat(name, " ", std::min(next, end - 1)),
           silent ? StrCat("no outcome within ", absl::FormatDuration(kPatience))
                  : StrCat("the process ", ended.ToString(), Cause()));
      ++failures;
      ++ran_;
      ++next;
    }
  }

  void Print() const {
    for (const auto& [code, count] : codes_) {
      std::printf("%lld %s\n", static_cast<long long>(count), code.c_str());
    }
    std::printf("%lld cases, %lld failed\n", static_cast<long long>(ran_),
                static_cast<long long>(failed_));
  }
  int64_t failed() const { return failed_; }

 private:
  void Fail(const std::string& name, const std::string& why) {
    ++failed_;
    std::printf("FAIL %s: %s\n", name.c_str(), why.c_str());
    std::fflush(stdout);
  }

  static int RunChild(int64_t first, int64_t end, const CaseAt& case_at) {
    const int out = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);  // What kernels print is no outcome.
    std::FILE* outcomes = fdopen(out, "w");
    for (int64_t i = first; i < end; ++i) {
      DrawnOutcome outcome = RunDrawnCase(case_at(i));
      std::replace(outcome.wrong.begin(), outcome.wrong.end(), '\n', ' ');
      std::fprintf(outcomes, "%s%s%s\n", outcome.code.c_str(), outcome.wrong.empty() ? "" : " ",
                   outcome.wrong.c_str());
      std::fflush(outcomes);
    }
    return 0;
  }

  /// What a sanitizer or the C library has said last.
  std::string Cause() const {
    std::ifstream in(log_);
    std::string cause, frame, line;
    while (std::getline(in, line)) {
      for (const char* sign : {"SUMMARY:", "runtime error:", "terminate called", "Assertion",
                               "ERROR:", "what():", "LIBCXX", "Check failed", "_GLIBCXX"}) {
        if (line.find(sign) != std::string::npos) cause += StrCat("; ", line.substr(0, 200));
      }
      // The first of our own that is on the stack.
      if (frame.empty() && line.find("    #") != std::string::npos &&
          line.find("/kernels/") != std::string::npos) {
        frame = StrCat("; ", line);
      }
    }
    return cause + frame;
  }

  const std::string log_;
  const int most_failures_;
  std::map<std::string, int64_t> codes_;
  int64_t ran_ = 0, failed_ = 0;
};

int RunHere(const golden::Case& drawn) {
  const DrawnOutcome outcome = RunDrawnCase(drawn);
  std::printf("%s %s\n", outcome.code.c_str(), outcome.wrong.c_str());
  return outcome.wrong.empty() ? 0 : 1;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", golden::StatusLine(status).c_str());
  return 1;
}

/// Prints the case, and adds it to a file if there is to be one.
int Show(const golden::Case& drawn, const std::string& file) {
  GraphDef def;
  if (def.ParseFromString(drawn.graph())) std::printf("%s\n", def.DebugString().c_str());
  golden::Case rest = drawn;
  rest.clear_graph();
  std::printf("%s\n", rest.DebugString().c_str());
  std::fflush(stdout);
  if (file.empty()) return RunHere(drawn);
  golden::CaseFile cases;
  if (std::filesystem::exists(file)) {
    absl::StatusOr<golden::CaseFile> before = golden::ReadCaseFile(file);
    if (!before.ok()) return Fail(before.status());
    cases = *std::move(before);
  }
  *cases.add_case_() = drawn;
  std::ofstream out(file, std::ios::binary);
  return cases.SerializeToOstream(&out) ? 0 : 1;
}

int Replay(const Options& options, Isolated* isolated) {
  const absl::StatusOr<golden::CaseFile> file = golden::ReadCaseFile(options.replay);
  if (!file.ok()) return Fail(file.status());
  const auto case_at = [&](int64_t i) { return file->case_(static_cast<int>(i)); };
  const int64_t end = file->case__size();
  if (options.here) {
    int status = 0;
    for (int64_t i = 0; i < end; ++i) status |= RunHere(case_at(i));
    return status;
  }
  isolated->Run(0, end, options.replay, case_at);
  isolated->Print();
  return isolated->failed() == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  if (const std::optional<int> status = ParseOptions(argc, argv, &options)) return *status;
  for (std::string* path : {&options.save, &options.replay}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path);
  }
  for (const std::string& op : options.ops) {
    if (const auto found = OpRegistry::Global()->LookUp(op); !found.ok())
      return Fail(found.status());
  }
  std::vector<golden::CaseFile> files;
  for (const std::string& path : options.recorded) {
    const absl::StatusOr<std::vector<std::string>> names = golden::ListCaseFiles(path);
    if (!names.ok()) return Fail(names.status());
    for (const std::string& name : *names) {
      absl::StatusOr<golden::CaseFile> file = golden::ReadCaseFile(name);
      if (!file.ok()) return Fail(file.status());
      files.push_back(*std::move(file));
    }
  }
  CasesByOp cases;
  for (const golden::CaseFile& file : files) AddCases(file, &cases);

  // Ops write files.
  std::string folder = (std::filesystem::temp_directory_path() / "random_ops_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Fail(absl::UnknownError("no temporary folder"));
  std::filesystem::create_directory(folder + "/run");
  std::filesystem::current_path(folder + "/run");
  Isolated isolated(folder, options.most_failures);
  const int status = [&] {
    if (!options.replay.empty()) return Replay(options, &isolated);
    if (options.draw >= 0 && options.ops.size() == 1) {
      return Show(DrawCase(options.ops[0], options.seed, options.draw, cases), options.save);
    }
    std::vector<std::string> ops = options.ops;
    if (ops.empty()) ops = OpRegistry::Global()->Names();
    const absl::Time begin = absl::Now();
    int64_t number = 0, done = 0;
    for (const std::string& op : ops) {
      if (op == kEndsTheProcess || number++ % options.parts != options.part) continue;
      if (options.seconds > 0 && absl::Now() - begin > absl::Seconds(options.seconds)) break;
      isolated.Run(options.first, options.first + options.runs, op,
                   [&](int64_t i) { return DrawCase(op, options.seed, i, cases); });
      ++done;
    }
    std::printf("%lld ops\n", static_cast<long long>(done));
    isolated.Print();
    return isolated.failed() == 0 ? 0 : 1;
  }();
  std::filesystem::current_path("/");
  std::filesystem::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace troupe::random_ops

int main(int argc, char** argv) { return troupe::random_ops::Main(argc, argv); }
