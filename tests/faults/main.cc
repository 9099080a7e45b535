// Plays faults on clusters of real processes, checks what is promised, and writes docs/faults.md's
// table:
//
//     cluster_faults [--row TEXT]... [--jobs N] [--timeout S] [--table FILE]
//
// --row: only rows whose name, FAULT/VICTIM/MOMENT, contains one of the texts. Rows that need
// network namespaces are skipped where the kernel refuses them, and counted; a program that is
// missing is an error.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <string>
#include <thread>

#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "tests/faults/client.h"
#include "tests/faults/cluster.h"
#include "tests/faults/table.h"
#include "tests/faults/training.h"

namespace troupe::faults {
namespace {

constexpr Victim kVictims[] = {Victim::kPs, Victim::kWorker, Victim::kMaster, Victim::kClient};

std::vector<Row> AllRows() {
  std::vector<Row> rows;
  const auto moments = {Moment::kTransfer, Moment::kRest,     Moment::kStep,
                        Moment::kWaiting,  Moment::kCreation, Moment::kClose};
  for (Fault fault : {Fault::kKill, Fault::kRestart, Fault::kStop, Fault::kCut, Fault::kSlow}) {
    for (Victim victim : kVictims) {
      for (Moment moment : moments) rows.push_back({fault, victim, moment});
    }
  }
  for (Victim victim : kVictims) rows.push_back({Fault::kRestart, victim, Moment::kTraining});
  for (Fault fault : {Fault::kKill, Fault::kRestart, Fault::kStop, Fault::kCut, Fault::kSlow}) {
    for (Moment moment : {Moment::kTransfer, Moment::kRest, Moment::kStep, Moment::kWaiting}) {
      rows.push_back({fault, Victim::kActor, moment});
    }
  }
  for (Moment moment : moments) {
    rows.push_back({Fault::kCutBetween, Victim::kPs, moment});
  }
  for (Moment moment : {Moment::kTransfer, Moment::kRest, Moment::kStep}) {
    rows.push_back({Fault::kReset, Victim::kPs, moment});
  }
  return rows;
}

/// What the client may see, and that it is told who it was, in time.
void Judge(const Row& row, const Settings& settings, Outcome* outcome) {
  const bool is_gone =
      row.victim == Victim::kClient && (row.fault == Fault::kKill || row.fault == Fault::kRestart);
  const double limit = 2 * settings.timeout;
  if (is_gone || outcome->code.empty()) {
    if (outcome->ended > limit) {
      outcome->problems.push_back("a step of the lost client went on for " +
                                  std::to_string(outcome->ended) + " s");
    }
    return;
  }
  std::set<std::string> codes = {"UNAVAILABLE"};
  if (row.moment == Moment::kClose) codes.insert("OK");
  if (row.fault == Fault::kSlow) codes = {"OK"};
  // Between death and rebirth there may be nobody who notices.
  if (row.fault == Fault::kRestart) codes.insert({"OK", "ABORTED", "FAILED_PRECONDITION"});
  if (row.moment == Moment::kTraining) codes = {"OK"};
  // At rest, the connection is made again before anybody misses it.
  if (row.fault == Fault::kReset) codes.insert("OK");
  // Nobody is published under the name meanwhile.
  if (row.victim == Victim::kActor && row.fault != Fault::kSlow) codes.insert("NOT_FOUND");
  // It has been given up meanwhile.
  if (row.victim == Victim::kClient) codes.insert({"ABORTED", "CANCELLED", "OK"});
  if (codes.count(outcome->code) == 0) {
    outcome->problems.push_back("the code is " + outcome->code + ": " + outcome->message);
  }
  const bool slow = row.fault == Fault::kSlow;
  if (outcome->seconds > limit && !slow) {
    outcome->problems.push_back("the result took " + std::to_string(outcome->seconds) + " s");
  }
  if (outcome->code == "UNAVAILABLE" && row.victim != Victim::kClient) {
    const std::string job = row.victim == Victim::kMaster  ? "troupe://"
                            : row.victim == Victim::kActor ? "actor"
                                                           : "/job:" + VictimName(row.victim) + "/";
    // Of a link between two, either end may be the one that is missed.
    const bool is_link = row.fault >= Fault::kCutBetween;
    const bool named = outcome->message.find(is_link ? "/job:" : job) != std::string::npos;
    if (!named) outcome->problems.push_back("nobody is named: " + outcome->message);
  }
}

absl::Status MakeCertificates(const std::string& folder) {
  const std::string cluster = folder + ".json";
  std::ofstream(cluster) << R"({"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"],)"
                         << R"( "chief": ["127.0.0.1:3"]})";
  const auto made = RunProgram({.arguments = {ProgramFolder() + "/troupe", "certificates", cluster,
                                              "--out", folder, "--days", "2"},
                                .output = true,
                                .errors = true});
  if (!made.ok()) return made.status();
  return made->status.ok() ? absl::OkStatus() : absl::InternalError(made->output);
}

int Run(const std::vector<std::string>& wanted, int jobs, Settings settings,
        const std::string& table) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("troupe_faults_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  settings.folder = folder.string();
  settings.certificates = settings.folder + "/certificates";
  std::vector<Row> rows;
  for (const Row& row : AllRows()) {
    const bool is_wanted =
        wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& text) {
          return RowName(row).find(text) != std::string::npos;
        });
    if (is_wanted) rows.push_back(row);
  }
  if (rows.empty()) {
    std::cout << "no row has such a name" << std::endl;
    return 1;
  }
  std::string why;
  size_t skipped = 0;
  if (std::any_of(rows.begin(), rows.end(), [](const Row& r) { return NeedsNetwork(r.fault); })) {
    if (!Network::Available(&why)) {
      skipped = std::erase_if(rows, [](const Row& row) { return NeedsNetwork(row.fault); });
      std::cout << "SKIPPED: " << skipped << " rows with cut and slow links: " << why << std::endl;
      if (Network::Permitted()) {
        std::cout << "This user may have namespaces, so that they must not be skipped."
                  << std::endl;
        return 1;
      }
    } else if (const absl::Status made = MakeCertificates(settings.certificates); !made.ok()) {
      std::cout << "certificates could not be made: " << made << std::endl;
      return 1;
    }
  }
  std::vector<Outcome> outcomes(rows.size());
  std::atomic<size_t> next{0};
  std::atomic<int> failed{0};
  std::counting_semaphore<64> large(2);  // 64 MiB at a time keep cores and memory busy.
  std::mutex output;
  std::vector<std::thread> threads;
  const double began = Now();
  for (int i = 0; i < jobs; ++i) {
    threads.emplace_back([&] {
      for (size_t n = next++; n < rows.size(); n = next++) {
        const bool is_large = rows[n].moment == Moment::kTransfer;
        if (is_large) large.acquire();
        outcomes[n] = Play(rows[n], settings);
        if (is_large) large.release();
        Judge(rows[n], settings, &outcomes[n]);
        std::lock_guard<std::mutex> lock(output);
        const Outcome& o = outcomes[n];
        std::printf("%-22s %-18s %5.2f s  then %-4s %5.2f s  bystander %4.2f s%s\n",
                    RowName(rows[n]).c_str(), o.code.c_str(), o.seconds, o.session.c_str(),
                    o.recovery, o.longest, o.problems.empty() ? "" : "  FAILED");
        for (const std::string& problem : o.problems) std::printf("    %s\n", problem.c_str());
        std::fflush(stdout);
        if (!o.problems.empty()) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!table.empty())
    std::ofstream(table) << Table(rows, outcomes) << "\n" << TrainingTable(rows, outcomes);
  std::printf("%zu rows, %d failed, %zu skipped, %.0f s\n", rows.size(), failed.load(), skipped,
              Now() - began);
  if (failed == 0) std::filesystem::remove_all(folder);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe::faults

int main(int argc, char** argv) {
  using namespace troupe;          // NOLINT: a short program
  using namespace troupe::faults;  // NOLINT
  troupe::CommandLine line(
      "cluster_faults", "Plays faults on clusters of real processes and checks what is promised.");
  Settings settings;
  std::vector<std::string> rows;
  int jobs = 8;
  std::string table;
  const auto number = troupe::Number(0.1, 1e6);
  AddList(&line, "--row TEXT", &rows,
          "Only rows whose name, FAULT/VICTIM/MOMENT, contains it; may be "
          "repeated");
  AddValue(&line, "--jobs N", &jobs, "Rows that are played at once")
      ->check(troupe::WholeNumber(1, 64));
  AddValue(&line, "--timeout S", &settings.timeout, "For heartbeats, in seconds")->check(number);
  AddValue(&line, "--accelerator FILE", &settings.accelerator,
           "A library of simulated accelerators, of which each task has one that computes all");
  AddValue(&line, "--table FILE", &table, "Writes the table of docs/faults.md");

  CLI::App* client_command = line.Command("client", "A client of such a cluster.");
  ClientOptions client;
  std::string client_jobs;
  AddValue(client_command, "--target", &client.target, "The master");
  AddValue(client_command, "--moment", &client.moment, "What it is to be doing");
  AddValue(client_command, "--queue", &client.queue_job, "Where its queue lies");
  client_command->add_flag("--accelerators", client.accelerators, "All is computed by SIM:0");
  client_command->add_flag("--asks", client.asks, "Its steps ask actors of another process");
  AddValue(client_command, "--address", &client.address, "Of the actors' process");
  AddValue(client_command, "--jobs", &client_jobs, "Whose devices a bystander uses: JOB,JOB");
  AddValue(client_command, "--checkpoints", &client.checkpoints, "The folder of a training's");
  AddValue(client_command, "--certificates", &client.certificates, "A folder; TLS");
  AddValue(client_command, "--timeout", &client.timeout, "For heartbeats")->check(number);
  if (const std::optional<int> status = line.Read(argc, argv)) return *status;
  if (!client_command->parsed()) return Run(rows, jobs, settings, table);
  client.jobs[0] = client_jobs.substr(0, client_jobs.find(','));
  client.jobs[1] = client_jobs.substr(client_jobs.find(',') + 1);
  return client.moment == "training" ? RunTraining(client) : RunClient(client);
}
