#include "tests/golden/isolate.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>

#include "api/program/child_process.h"
#include "devices/status_macros.h"

namespace troupe::golden {
namespace {

// The child writes lines: "F text" per failure, "N op there elsewhere has_kernel" per op, "T
// seconds", then "P", "X" (failed) or "S op" for the case. After a failed one another child goes
// on.

void WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);  // nobody listens any more
    done += static_cast<size_t>(n);
  }
}

int RunChild(const std::vector<const Case*>& cases, size_t begin, Runner runner) {
  const int fd = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // What kernels print is no outcome.
  for (size_t i = begin; i < cases.size(); ++i) {
    const Outcome outcome = runner(*cases[i]);
    std::string text;
    for (const std::string& failure : outcome.failures) text += StrCat("F ", failure, "\n");
    for (const auto& [op, placed] : outcome.ops) {
      text += StrCat("N ", op, " ", placed.there, " ", placed.elsewhere, " ",
                     placed.has_kernel ? 1 : 0, "\n");
    }
    text += StrCat("T ", outcome.processor_seconds, "\n");
    switch (outcome.verdict) {
      case Verdict::kPassed:
        text += "P\n";
        break;
      case Verdict::kFailed:
        text += "X\n";
        break;
      case Verdict::kSkipped:
        text += StrCat("S ", outcome.missing_op, "\n");
        break;
    }
    WriteAll(fd, text);
    // A kernel that fails on a card may have cost this process the card.
    if (outcome.verdict == Verdict::kFailed) return 0;
  }
  return 0;
}

/// Takes a line of the child's; true if it ends an outcome.
bool Take(const std::string& line, Outcome* outcome) {
  const std::string rest = line.size() > 2 ? line.substr(2) : "";
  switch (line.empty() ? '\0' : line[0]) {
    case 'F':
      outcome->failures.push_back(rest);
      return false;
    case 'N': {
      std::istringstream words(rest);
      std::string op;
      Placed placed;
      if (words >> op >> placed.there >> placed.elsewhere >> placed.has_kernel) {
        outcome->ops[op] = placed;
      }
      return false;
    }
    case 'T':
      outcome->processor_seconds = std::strtod(rest.c_str(), nullptr);
      return false;
    case 'P':
      return true;
    case 'X':
      outcome->verdict = Verdict::kFailed;
      return true;
    case 'S':
      outcome->verdict = Verdict::kSkipped;
      outcome->missing_op = rest;
      return true;
    default:
      return false;
  }
}

}  // namespace

void RunHere(const std::vector<const Case*>& cases, const Report& report) {
  for (const Case* test : cases) report(*test, RunCase(*test));
}

void RunIsolated(const std::vector<const Case*>& cases, int seconds, const Report& report,
                 Runner runner) {
  size_t next = 0;
  while (next < cases.size()) {
    absl::StatusOr<ChildProcess> child =
        ChildProcess::Fork([&] { return RunChild(cases, next, runner); }, {.output = true});
    Outcome outcome;
    const size_t first = next;
    if (child.ok()) {
      const absl::Duration patience = absl::Seconds(seconds);
      while (const std::optional<std::string> line = child->Line(patience)) {
        if (!Take(*line, &outcome)) continue;
        if (next < cases.size()) report(*cases[next++], outcome);
        outcome = Outcome();
      }
      const bool silent = !child->closed();
      const ExitStatus ended = silent ? child->End() : *child->Wait();
      if (next >= cases.size() || (next > first && !silent && ended.ok())) continue;
      outcome.failures.push_back(silent ? StrCat("no result within ", seconds, " s")
                                        : StrCat("the process ", ended.ToString()));
    } else {
      outcome.failures.push_back(std::string(child.status().message()));
    }
    outcome.verdict = Verdict::kFailed;
    report(*cases[next++], outcome);
  }
}

}  // namespace troupe::golden
