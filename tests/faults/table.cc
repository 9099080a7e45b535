#include "tests/faults/table.h"

#include <algorithm>
#include <cstdio>

namespace troupe::faults {

namespace {

constexpr Moment kMoments[] = {Moment::kRest,     Moment::kStep,     Moment::kWaiting,
                               Moment::kTransfer, Moment::kCreation, Moment::kClose};

std::string Time(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 0.995 ? "%.2f s" : "%.1f s", seconds);
  return text;
}

std::string CodeName(const std::string& code) {
  if (code == "UNAVAILABLE") return "Unavailable";
  if (code == "FAILED_PRECONDITION") return "FailedPrecondition";
  if (code == "ABORTED") return "Aborted";
  if (code == "NOT_FOUND") return "NotFound";
  if (code == "CANCELLED") return "Cancelled";
  if (code == "DEADLINE_EXCEEDED") return "DeadlineExceeded";
  return code;
}

std::string What(Fault fault, Victim victim) {
  const std::string whom = victim == Victim::kPs       ? "parameter server"
                           : victim == Victim::kWorker ? "worker"
                           : victim == Victim::kMaster ? "master"
                           : victim == Victim::kClient ? "client"
                                                       : "process of an actor";
  switch (fault) {
    case Fault::kKill:
      return "kill -9, " + whom;
    case Fault::kRestart:
      return "restart, " + whom;
    case Fault::kStop:
      return "SIGSTOP, " + whom;
    case Fault::kCut:
      return "cut link, " + whom;
    case Fault::kCutBetween:
      return "cut between parameter server and worker";
    case Fault::kSlow:
      return "slow link, " + whom;
    case Fault::kReset:
      return "connections reset, " + whom;
  }
  return whom;
}

std::string Cell(const Row& row, const Outcome& outcome) {
  std::string cell;
  if (outcome.code == "OK") {
    cell = row.moment == Moment::kClose ? "closed " + Time(outcome.seconds) : "goes on";
  } else if (!outcome.code.empty()) {
    cell = CodeName(outcome.code) + " " + Time(outcome.seconds);
  }
  if (outcome.ended >= 0) {
    cell += (cell.empty() ? "step ended " : "; step ended ") + Time(std::max(0.0, outcome.ended));
  }
  if (cell.empty()) cell = "others go on";
  if (!outcome.problems.empty()) cell += " **?**";
  return cell;
}

}  // namespace

std::string TensorFlow(Fault fault, Victim victim) {
  const bool killed = fault == Fault::kKill || fault == Fault::kRestart;
  if (killed && victim == Victim::kPs) {
    return "Unavailable in 0.05 s; back later, the old session fails for ever";
  }
  if (killed && victim == Victim::kWorker) {
    return "Unavailable in 0.02 to 0.05 s; whoever waits for it through a queue waits for ever; "
           "creating waits for ever";
  }
  if (killed && victim == Victim::kMaster) return "creating waits for ever";
  if (killed && victim == Victim::kClient) {
    return "an abandoned dequeue stays and swallows the next element";
  }
  if (fault == Fault::kStop && victim == Victim::kPs) return "a step of 20 s without a word";
  return "";
}

std::string TrainingTable(const std::vector<Row>& rows, const std::vector<Outcome>& outcomes) {
  std::string text =
      "| a training with checkpoints: killed and started again | trains again after |\n|---|---|\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].moment != Moment::kTraining) continue;
    const bool is_client = rows[i].victim == Victim::kClient;
    text += "| " + What(rows[i].fault, rows[i].victim).substr(sizeof("restart,")) + " | " +
            Time(is_client ? outcomes[i].recovery : outcomes[i].seconds) +
            (outcomes[i].problems.empty() ? "" : " **?**") + " |\n";
  }
  return text;
}

std::string Table(const std::vector<Row>& rows, const std::vector<Outcome>& outcomes) {
  std::string text =
      "| what, to whom | at rest | in a step | in a step that waits | in a transfer | creating | "
      "closing | afterwards | TensorFlow |\n|---|---|---|---|---|---|---|---|---|\n";
  std::vector<std::pair<Fault, Victim>> lines;
  for (const Row& row : rows) {
    const std::pair<Fault, Victim> line{row.fault, row.victim};
    if (row.moment == Moment::kTraining) continue;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  for (const auto& [fault, victim] : lines) {
    text += "| " + What(fault, victim) + " |";
    bool same = true, any = false;
    double slowest = 0;
    for (Moment moment : kMoments) {
      std::string cell = "-";
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].fault != fault || rows[i].victim != victim || rows[i].moment != moment) {
          continue;
        }
        cell = Cell(rows[i], outcomes[i]);
        // Where the session was closed, or perhaps not made, there is no old one.
        const bool had_session = moment != Moment::kClose && moment != Moment::kCreation;
        if (!had_session || outcomes[i].session.empty()) continue;
        any = true;
        same &= outcomes[i].session == "same";
        slowest = std::max(slowest, outcomes[i].recovery);
      }
      text += " " + cell + " |";
    }
    text += any ? (same ? " same session, " : " new session, ") + Time(slowest) : " ";
    const std::string other = TensorFlow(fault, victim);
    const char* none = victim == Victim::kActor ? "it has none" : "not measured";
    text += " | " + (other.empty() ? none : other) + " |\n";
  }
  return text;
}

}  // namespace troupe::faults
