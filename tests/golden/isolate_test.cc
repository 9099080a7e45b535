#include "tests/golden/isolate.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::golden {
namespace {

/// Does what the case's name says.
Outcome Misbehave(const Case& test) {
  Outcome outcome;
  if (test.name() == "abort") std::abort();
  if (test.name() == "exit") _exit(7);
  if (test.name() == "hang") {
    while (true) pause();
  }
  if (test.name() == "fail") {
    outcome.verdict = Verdict::kFailed;
    outcome.failures = {"one", "two"};
  }
  if (test.name() == "skip") {
    outcome.verdict = Verdict::kSkipped;
    outcome.missing_op = "SomeOp";
  }
  return outcome;
}

TEST(RunIsolated, SurvivesWhatDiesOrHangs) {
  const struct {
    const char *name, *result;
  } kCases[] = {
      {"abort", "the process was killed by signal 6"},
      {"pass", "passed"},
      {"fail", "one|two|"},
      {"hang", "no result within 1 s"},
      {"skip", "skipped SomeOp"},
      {"exit", "the process ended with exit status 7"},
      {"exit", "the process ended with exit status 7"},
      {"pass", "passed"},
  };
  std::vector<Case> cases(std::size(kCases));
  std::vector<const Case*> list;
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].set_name(kCases[i].name);
    list.push_back(&cases[i]);
  }
  size_t next = 0;
  RunIsolated(
      list, /*seconds=*/1,
      [&](const Case& test, const Outcome& outcome) {
        ASSERT_LT(next, std::size(kCases));
        EXPECT_EQ(&test, list[next]);
        std::string result;
        for (const std::string& failure : outcome.failures) result += failure + "|";
        if (outcome.verdict == Verdict::kPassed) result += "passed";
        if (outcome.verdict == Verdict::kSkipped) result += "skipped " + outcome.missing_op;
        EXPECT_TRUE(result.starts_with(kCases[next].result)) << result;
        ++next;
      },
      Misbehave);
  EXPECT_EQ(next, std::size(kCases));
}

TEST(RunIsolated, ManyCasesAndNone) {
  const std::vector<Case> cases(500);
  std::vector<const Case*> list;
  for (const Case& test : cases) list.push_back(&test);
  int reports = 0;
  RunIsolated(
      list, 10, [&](const Case&, const Outcome&) { ++reports; }, Misbehave);
  EXPECT_EQ(reports, 500);
  RunIsolated(
      {}, 10, [&](const Case&, const Outcome&) { ++reports; }, Misbehave);
  EXPECT_EQ(reports, 500);
}

}  // namespace
}  // namespace troupe::golden
