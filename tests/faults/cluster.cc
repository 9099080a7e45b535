#include "tests/faults/cluster.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

namespace troupe::faults {

namespace {

constexpr std::array kJobs = {"ps", "worker", "chief"};  // As `Victim` counts them.
constexpr int kClientMachine = 3, kActorMachine = 4, kBystanderMachine = 5, kMachines = 6;
constexpr int kSlowMegabits = 100;
constexpr int kPort = 7000;
// For what takes a moment on a machine that has other things to do.
constexpr Seconds kPatience{30};

class Play1 {
 public:
  /// Strikes a creation after `delay`.
  Play1(const Row& row, const Settings& settings, Seconds delay)
      : row_(row), settings_(settings), delay_(delay) {}

  Outcome Run() {
    if (SetUp()) {
      Strike();
      Observe();
      Heal();
      Afterwards();
    }
    TearDown();
    return std::move(outcome_);
  }

 private:
  void Problem(const std::string& what) { outcome_.problems.push_back(what); }
  int victim() const { return static_cast<int>(row_.victim); }
  bool client_is_victim() const { return row_.victim == Victim::kClient; }
  bool actor_is_victim() const { return row_.victim == Victim::kActor; }
  std::string Log(const std::string& who) const {
    std::string name = RowName(row_) + "." + who + ".log";
    std::replace(name.begin(), name.end(), '/', '_');
    return settings_.folder + "/" + name;
  }
  int Machine(int index) const { return network_ == nullptr ? -1 : network_->machine(index); }

  bool SetUp() {
    if (NeedsNetwork(row_.fault)) {
      network_ = std::make_unique<Network>(kMachines);
      if (!network_->ok()) {
        Problem("the network could not be made");
        return false;
      }
    }
    // Rows at the same time have loopback addresses of their own, so that they never want one port.
    static std::atomic<int> number{0};
    const std::string own = "127.77." + std::to_string(++number % 256) + ".1:";
    for (int i = 0; i < 3; ++i) {
      addresses_[i] = network_ == nullptr ? own + std::to_string(7000 + i)
                                          : Network::Address(i) + ":" + std::to_string(kPort);
    }
    file_ = Log("json");
    std::ofstream file(file_);
    file << "{";
    for (int i = 0; i < 3; ++i) {
      file << (i > 0 ? ", " : "") << "\"" << kJobs[i] << "\": [\"" << addresses_[i] << "\"]";
    }
    file << "}\n";
    file.close();
    for (int i = 0; i < 3; ++i) StartTask(i);
    for (int i = 0; i < 3; ++i) {
      if (!Ready(i)) return false;
    }
    if (actor_is_victim()) {
      StartTask(kActorMachine);
      if (!Ready(kActorMachine)) return false;
    }
    return StartBystander() && StartClient(MomentName(row_.moment));
  }

  void StartTask(int index) {
    if (index == kActorMachine) {
      tasks_[index] =
          NewClient({"--target", "troupe://" + addresses_[2], "--address",
                     network_ == nullptr ? "127.0.0.1:0" : Network::Address(index) + ":0",
                     "--moment", "actor"},
                    kActorMachine);
      return;
    }
    std::vector<std::string> arguments = {ProgramFolder() + "/troupe",
                                          "worker",
                                          "--cluster",
                                          file_,
                                          "--job",
                                          kJobs[index],
                                          "--task",
                                          "0",
                                          "--threads",
                                          "1",
                                          "--heartbeat-timeout",
                                          std::to_string(settings_.timeout)};
    if (network_ != nullptr) {
      arguments.insert(arguments.end(), {"--certificates", settings_.certificates});
    }
    if (!settings_.accelerator.empty()) {
      arguments.insert(arguments.end(), {"--library", settings_.accelerator, "--device", "SIM=1"});
    }
    tasks_[index] = std::make_unique<Process>(Process::Options{
        .arguments = arguments, .network = Machine(index), .log = Log(kJobs[index])});
  }

  bool Ready(int index) {
    if (index == kActorMachine) return In(tasks_[index].get(), "the actor's process");
    const auto line = tasks_[index]->Line(kPatience);
    if (line == "ready troupe://" + addresses_[index]) return true;
    Problem(std::string(kJobs[index]) + " did not start: " + line.value_or("no word"));
    return false;
  }

  std::unique_ptr<Process> NewClient(const std::vector<std::string>& arguments, int machine) {
    std::vector<std::string> all = {"/proc/self/exe", "client", "--timeout",
                                    std::to_string(settings_.timeout)};
    if (network_ != nullptr) {
      all.insert(all.end(), {"--certificates", settings_.certificates});
    }
    if (!settings_.accelerator.empty()) all.push_back("--accelerators");
    all.insert(all.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(Process::Options{
        .arguments = all, .network = Machine(machine), .log = Log(arguments.back())});
  }

  bool In(Process* process, const char* who) {
    const auto line = process->Line(kPatience);
    if (line == "in") return true;
    Problem(std::string(who) + " did not get there: " + line.value_or("no word"));
    return false;
  }

  bool StartBystander() {
    // On two tasks that nothing happens to, one of them its master.
    const int first = row_.victim == Victim::kPs ? 1 : 0;
    const int second = row_.victim == Victim::kPs || row_.victim == Victim::kWorker ? 2 : 1;
    bystander_ =
        NewClient({"--target", "troupe://" + addresses_[first], "--jobs",
                   std::string(kJobs[first]) + "," + kJobs[second], "--moment", "bystander"},
                  kBystanderMachine);
    return In(bystander_.get(), "the bystander");
  }

  bool StartClient(const std::string& moment) {
    std::vector<std::string> arguments = {"--target", "troupe://" + addresses_[2], "--queue",
                                          row_.victim == Victim::kWorker ? "worker" : "ps"};
    if (actor_is_victim()) arguments.push_back("--asks");
    if (row_.moment == Moment::kTraining) {
      arguments.insert(arguments.end(), {"--checkpoints", Log("run")});
    }
    arguments.insert(arguments.end(), {"--moment", moment});
    client_ = NewClient(arguments, kClientMachine);
    return In(client_.get(), "the client");
  }

  Process* victim_process() { return client_is_victim() ? client_.get() : tasks_[victim()].get(); }

  void Strike() {
    if (row_.moment == Moment::kCreation) {
      client_->Say("go");
      // Into the midst of it.
      std::this_thread::sleep_for(delay_);
    } else if (row_.moment == Moment::kClose) {
      client_->Say("go");
    }
    struck_ = Now();
    switch (row_.fault) {
      case Fault::kKill:
      case Fault::kRestart:
        victim_process()->Signal(SIGKILL);
        break;
      case Fault::kStop:
        victim_process()->Signal(SIGSTOP);
        break;
      case Fault::kCut:
        if (!network_->Cut(victim())) Problem("the link could not be cut");
        break;
      case Fault::kCutBetween:
        if (!network_->CutBetween(victim(), Other())) Problem("the link could not be cut");
        break;
      case Fault::kSlow:
        if (!network_->Slow(victim(), kSlowMegabits)) Problem("the link could not be slowed down");
        break;
      case Fault::kReset:
        if (!network_->ResetPort(victim(), kPort)) Problem("no connection could be reset");
        break;
    }
    struck_by_ = Now();
    if (row_.moment != Moment::kCreation && row_.moment != Moment::kClose) client_->Say("go");
    if (row_.fault == Fault::kRestart && !client_is_victim()) {
      tasks_[victim()]->Wait(kPatience);
      tasks_[victim()] = nullptr;
      StartTask(victim());
      healed_ = Now();
    }
  }

  int Other() const { return row_.victim == Victim::kPs ? 1 : 0; }

  bool ClientIsGone() const {
    return client_is_victim() && (row_.fault == Fault::kKill || row_.fault == Fault::kRestart);
  }

  void Observe() {
    const double T = settings_.timeout;
    if (ClientIsGone()) {
      client_->Wait(kPatience);
      if (row_.fault == Fault::kRestart) {
        healed_ = Now();
        return;  // The new client does not wait for the old one's end.
      }
    }
    // A client that stands still says nothing; its step is to end all the same. A slow link is
    // looked at for longer than anybody would take it for a cut one. An actor may be back before it
    // is asked again.
    const bool may_go_on =
        row_.fault == Fault::kSlow || (actor_is_victim() && row_.fault == Fault::kRestart);
    std::optional<std::string> line;
    if (client_is_victim()) {
      std::this_thread::sleep_for(Seconds(2.5 * T));
    } else if (may_go_on) {
      line = client_->Line(Seconds(2.5 * T));
    }
    if (client_is_victim() && row_.fault != Fault::kSlow &&
        (row_.moment == Moment::kStep || row_.moment == Moment::kTransfer)) {
      outcome_.ended = std::max(0.0, AskBystander() - struck_);
    }
    if (client_is_victim() && row_.fault == Fault::kStop) {
      client_->Signal(SIGCONT);
      healed_ = Now();
    }
    if (!ClientIsGone()) {
      if (!line && (may_go_on || client_is_victim())) {
        const bool feed = row_.fault == Fault::kSlow && row_.moment == Moment::kTransfer;
        client_->Say(feed ? "feed" : "stop");
      }
      if (!line) line = client_->Line(Seconds(4 * T) + kPatience);
      if (!line || line->rfind("result ", 0) != 0) {
        Problem("the client hangs, or fell: " + line.value_or("no word"));
      } else {
        ReadResult(*line);
      }
    }
  }

  void ReadResult(const std::string& line) {
    std::istringstream words(line.substr(7));
    double began = 0, ended = 0;
    words >> outcome_.code >> began >> ended;
    std::getline(words, outcome_.message);
    const double from = std::max({struck_, began, client_is_victim() ? healed_ : 0});
    outcome_.seconds = std::max(0.0, ended - from);
    // The answer may have been on its way, or the client have waited for a processor.
    constexpr double kOnItsWay = 0.25;
    outcome_.missed = row_.moment == Moment::kCreation && row_.fault != Fault::kSlow &&
                      outcome_.code == "OK" && ended < struck_by_ + kOnItsWay;
  }

  void Heal() {
    switch (row_.fault) {
      case Fault::kKill:
        healed_ = Now();
        if (client_is_victim()) return;
        tasks_[victim()]->Wait(kPatience);
        tasks_[victim()] = nullptr;
        StartTask(victim());
        break;
      case Fault::kRestart:
        break;
      case Fault::kStop:
        if (client_is_victim()) return;
        tasks_[victim()]->Signal(SIGCONT);
        healed_ = Now();
        return;
      case Fault::kCut:
        network_->Join(victim());
        healed_ = Now();
        return;
      case Fault::kCutBetween:
        network_->JoinBetween(victim(), Other());
        healed_ = Now();
        return;
      case Fault::kSlow:
        network_->Restore(victim());
        healed_ = Now();
        return;
      case Fault::kReset:
        healed_ = Now();
        return;
    }
    if (!client_is_victim()) Ready(victim());
  }

  void Afterwards() {
    if (ClientIsGone()) {
      if (row_.moment == Moment::kTraining) {
        // It is in when it has gone on from the last checkpoint.
        if (!StartClient("training")) return;
      } else {
        if (!StartClient("rest")) return;
        client_->Say("go");
        const auto line = client_->Line(kPatience);
        if (!line || line->rfind("result OK", 0) != 0) {
          Problem("a new client does not get on: " + line.value_or("no word"));
        }
      }
      outcome_.session = "new";
      outcome_.recovery = Now() - healed_;
    } else {
      client_->Say("recover");
      const auto line = client_->Line(kPatience + Seconds(15));
      std::istringstream words(line.value_or("nothing"));
      std::string what;
      double when = 0;
      if (words >> what >> outcome_.session >> when && what == "recovered") {
        outcome_.recovery = when - healed_;
      } else {
        Problem("no step succeeded afterwards: " + line.value_or("no word"));
      }
    }
    AskBystander();
    if (outcome_.longest > settings_.timeout) {
      Problem("a step that is not concerned took " + std::to_string(outcome_.longest) + " s");
    }
  }

  /// When the loop of the main client was last seen to count on.
  double AskBystander() {
    bystander_->Say("stop");
    const auto line = bystander_->Line(kPatience);
    std::istringstream words(line.value_or("nothing"));
    std::string what, error;
    double last_change = 0;
    int64_t steps = 0;
    if (!(words >> what >> steps >> outcome_.longest >> last_change) || what != "bystander") {
      Problem("the client that is not concerned hangs, or fell: " + line.value_or("no word"));
      return 0;
    }
    std::getline(words, error);
    if (error != " -") Problem("a step that is not concerned failed:" + error);
    return last_change;
  }

  void TearDown() {
    for (auto* process : {&client_, &bystander_, &tasks_[kActorMachine]}) {
      if (*process == nullptr) continue;
      (*process)->Say("quit");
    }
    for (auto* process : {&client_, &bystander_}) {
      if (*process == nullptr ||
          (process == &client_ && ClientIsGone() && outcome_.session.empty())) {
        continue;
      }
      Ended(process->get(), process == &client_ ? "the client" : "the bystander");
    }
    if (tasks_[kActorMachine] != nullptr) Ended(tasks_[kActorMachine].get(), "the actor's process");
    for (int i = 0; i < 3; ++i) {
      if (tasks_[i] != nullptr) tasks_[i]->Signal(SIGTERM);
    }
    for (int i = 0; i < 3; ++i) {
      if (tasks_[i] != nullptr) Ended(tasks_[i].get(), kJobs[i]);
    }
  }

  void Ended(Process* process, const std::string& who) {
    const std::optional<ExitStatus> status = process->Wait(Seconds(15));
    if (!status) {
      Problem(who + " does not end");
    } else if (!status->ok()) {
      Problem(who + " " + status->ToString());
    }
  }

  const Row row_;
  const Settings settings_;
  const Seconds delay_;
  Outcome outcome_;
  std::unique_ptr<Network> network_;
  std::string addresses_[3];
  std::string file_;
  std::unique_ptr<Process> tasks_[kActorMachine + 1];  ///< By victim.
  std::unique_ptr<Process> client_, bystander_;
  double struck_ = 0, struck_by_ = 0, healed_ = 0;
};

}  // namespace

std::string FaultName(Fault fault) {
  constexpr std::array names = {"kill", "restart", "stop", "cut", "cut-between", "slow", "reset"};
  return names[static_cast<size_t>(fault)];
}

std::string VictimName(Victim victim) {
  constexpr std::array names = {"ps", "worker", "master", "client", "actor"};
  return names[static_cast<size_t>(victim)];
}

std::string MomentName(Moment moment) {
  constexpr std::array names = {"rest",     "step",  "waiting", "transfer",
                                "creation", "close", "training"};
  return names[static_cast<size_t>(moment)];
}

std::string RowName(const Row& row) {
  return FaultName(row.fault) + "/" + VictimName(row.victim) + "/" + MomentName(row.moment);
}

Outcome Play(const Row& row, const Settings& settings) {
  // It takes about this long to connect and to be known, on a slow machine.
  Seconds delay{0.01};
  Outcome outcome = Play1(row, settings, delay).Run();
  for (int i = 0; i < 5 && outcome.missed && outcome.problems.empty(); ++i) {
    delay /= 2;
    outcome = Play1(row, settings, delay).Run();
  }
  return outcome;
}

}  // namespace troupe::faults
