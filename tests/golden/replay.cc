#include "tests/golden/replay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "devices/status_macros.h"
#include "tests/golden/isolate.h"
#include "tests/golden/run_case.h"

namespace troupe::golden {
namespace {

constexpr int kSecondsPerCase = 120;

bool OfStage(const Case& test, const Selection& selection) {
  return !selection.stage || Stage(test) <= *selection.stage;
}

bool Selected(const Case& test, const Selection& selection) {
  const std::vector<std::string>&ops = selection.ops, &except = selection.except;
  if (std::find(except.begin(), except.end(), test.name()) != except.end()) return false;
  return (ops.empty() || std::find(ops.begin(), ops.end(), test.op()) != ops.end()) &&
         (selection.name.empty() || test.name() == selection.name) && OfStage(test, selection);
}

}  // namespace

void Counts::Add(const Counts& other) {
  passed += other.passed;
  failed += other.failed;
  skipped += other.skipped;
  for (const auto& [op, placed] : other.ops) {
    ops[op].there += placed.there;
    ops[op].elsewhere += placed.elsewhere;
    ops[op].has_kernel |= placed.has_kernel;
  }
}

double Counts::PercentThere() const {
  Placed all;
  for (const auto& [op, placed] : ops) {
    all.there += placed.there;
    all.elsewhere += placed.elsewhere;
  }
  const int64_t nodes = all.there + all.elsewhere;
  return nodes == 0 ? 0 : 100.0 * static_cast<double>(all.there) / static_cast<double>(nodes);
}

std::string Counts::PlacedToString() const {
  Placed all;
  std::string without_kernel, kept;
  for (const auto& [op, placed] : ops) {
    all.there += placed.there;
    all.elsewhere += placed.elsewhere;
    if (placed.there == 0) (placed.has_kernel ? kept : without_kernel) += StrCat(" ", op);
  }
  std::string text = absl::StrFormat("%d of %d nodes (%.1f %%)", all.there,
                                     all.there + all.elsewhere, PercentThere());
  if (!without_kernel.empty()) {
    text += StrCat("; never there, as there is no kernel:", without_kernel);
  }
  if (!kept.empty()) {
    text += StrCat(
        without_kernel.empty() ? "; never there" : "; nor these",
        ", whose kernels are for other element types, or which must be with such an op:", kept);
  }
  return text;
}

std::string Counts::ToString() const {
  return StrCat(passed, " passed, ", failed, " failed, ", skipped, " skipped");
}

Counts Replay(const std::string& file, bool named, const CaseFile& cases,
              const Selection& selection, Workers* workers, std::FILE* out) {
  Counts counts;
  const auto fail = [&](const std::string& name, const std::string& why) {
    std::fprintf(out, "FAIL %s %s: %s\n", file.c_str(), name.c_str(), why.c_str());
    std::fflush(out);  // Whoever stops this has what is known.
  };
  const auto report = [&](const Case& test, Outcome outcome) {
    if (workers != nullptr) {
      for (std::string& death : workers->Revive()) {
        outcome.verdict = Verdict::kFailed;
        outcome.failures.push_back(std::move(death));
      }
    }
    if (outcome.verdict == Verdict::kSkipped && selection.stage) {
      outcome.verdict = Verdict::kFailed;
      outcome.failures.push_back(
          StrCat("missing op of stage ", *selection.stage, " or before: ", outcome.missing_op));
    }
    if (selection.at_most && outcome.processor_seconds > *selection.at_most) {
      outcome.verdict = Verdict::kFailed;
      outcome.failures.push_back(StrCat("took ", outcome.processor_seconds, " s"));
    }
    for (const std::string& failure : outcome.failures) fail(test.name(), failure);
    counts.Add({.ops = std::move(outcome.ops)});
    switch (outcome.verdict) {
      case Verdict::kPassed:
        ++counts.passed;
        break;
      case Verdict::kFailed:
        ++counts.failed;
        break;
      case Verdict::kSkipped:
        ++counts.skipped;
        if (selection.list_skipped) {
          std::fprintf(out, "SKIP %s %s: missing op: %s\n", file.c_str(), test.name().c_str(),
                       outcome.missing_op.c_str());
        }
        break;
    }
  };

  std::vector<const Case*> selected;
  bool any_of_stage = false;
  for (const Case& test : cases.case_()) {
    if (Selected(test, selection)) selected.push_back(&test);
    any_of_stage = any_of_stage || OfStage(test, selection);
  }
  if (named && !any_of_stage) {
    fail("*", StrCat("no case is of stage ", *selection.stage, " or before"));
    ++counts.failed;
  }
  if (selection.in_process) {
    RunHere(selected, report);
  } else {
    RunIsolated(selected, kSecondsPerCase, report);
  }
  std::fprintf(out, "%s: %s\n", file.c_str(), counts.ToString().c_str());
  std::fflush(out);
  return counts;
}

}  // namespace troupe::golden
