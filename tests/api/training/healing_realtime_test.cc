// A cluster under `troupe cluster --restart` trains with checkpoints, while its tasks and clients
// are killed in turn at random moments: all get on again, and the losses are those of a training
// that nobody has killed. TROUPE_KILLS: how many (6).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/program/task_processes.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

constexpr char kFolderVariable[] = "TROUPE_HEALING_FOLDER";
constexpr char kRoleVariable[] = "TROUPE_HEALING_ROLE";  // "chief", "asynchronous chief", "reader"
constexpr int kSize = 64;
constexpr absl::Duration kTimeout = absl::Seconds(3);
constexpr absl::Duration kPatience = absl::Seconds(60);

/// Two vectors on their way to a line, each with its momentum.
struct Model {
  /// Half of the loss is computed on `far`, if that is a device.
  Model(const Scope& s, const std::string& far) {
    step = GlobalStep(s);
    a = Vector(s, "a");
    b = Vector(s, "b");
    loss = ops::Add(s, Half(s, a), Half(far.empty() ? s : s.WithDevice(far), b));
    train = MomentumOptimizer(1e-6, 0.9).Minimize(s, loss, step);
    after = step.Read(s.WithControlDependencies({Output(train)}));
  }
  static ModelVariable Vector(const Scope& s, const std::string& name) {
    return {s,    {kSize}, ConstantInitializer(name == "a" ? 0.5 : -2),
            name, true,    ElementType::kDouble};
  }
  static Output Half(const Scope& s, const ModelVariable& v) {
    std::vector<double> line(kSize);
    for (int i = 0; i < kSize; ++i) line[static_cast<size_t>(i)] = i / 7.0 - 3;
    const Output target = Const(s, Tensor::Vector<double>(absl::MakeConstSpan(line)));
    return ops::Sum(s, ops::Square(s, ops::Sub(s, v.value(), target)), {0});
  }

  ModelVariable step, a, b;
  Output loss, after;
  Node* train = nullptr;
};

void Tell(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

/// Says where each session begins; the chief's is to be at a checkpoint that is there.
class TellSession final : public SessionRunHook {
 public:
  TellSession(ModelVariable step, std::string folder)
      : step_(std::move(step)), folder_(std::move(folder)) {}
  absl::Status AfterCreateSession(Session& session, Coordinator&) override {
    TROUPE_ASSIGN_OR_RETURN(const auto values, session.Run({step_.value()}));
    const int64_t step = values[0].unchecked_scalar<int64_t>();
    if (!folder_.empty() && LatestCheckpoint(folder_).ok()) {
      TROUPE_ASSIGN_OR_RETURN(const bool there,
                              CheckpointExists(StrCat(folder_, "/model.ckpt-", step)));
      if (!there) return absl::InternalError(StrCat("step ", step, " is no checkpoint's"));
    }
    Tell(StrCat("session ", step));
    return absl::OkStatus();
  }

 private:
  const ModelVariable step_;
  const std::string folder_;
};

/// What the clients do, until they are killed: the chief trains, with both workers; the other one
/// reads, as an evaluation would.
absl::Status Work(const std::string& folder, const std::string& role) {
  TROUPE_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterSpec::ReadFile(folder + "/cluster"));
  const bool chief = role != "reader";
  const int task = chief ? 0 : 1;
  const Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(cluster, task));
  const Model model(s, "/job:worker/task:1");
  const Output sum = ops::Sum(s, ops::Add(s, model.a.value(), model.b.value()), {0});
  TROUPE_RETURN_IF_ERROR(s.status());
  TROUPE_ASSIGN_OR_RETURN(const std::string address, cluster.Address({"worker", task}));
  MonitoredTrainingOptions options;
  options.session.target = "troupe://" + address;
  options.session.secret_file = folder + "/secret";
  options.session.heartbeat_timeout = kTimeout;
  if (!chief) options.session.device_filters = {"/job:ps", "/job:worker/task:1"};
  options.is_chief = chief;
  options.checkpoint_dir = folder + "/run";
  options.save_checkpoints = {.steps = 25};
  options.asynchronous_checkpoints = role == "asynchronous chief";
  options.hooks = {
      std::make_shared<TellSession>(model.step, chief ? options.checkpoint_dir : std::string())};
  TROUPE_ASSIGN_OR_RETURN(const auto session, MonitoredTrainingSession(s.graph(), options));
  while (!session->should_stop()) {
    if (chief) {
      TROUPE_ASSIGN_OR_RETURN(const auto values,
                              session->Run({}, {model.after, model.loss}, {model.train}));
      char line[80];
      std::snprintf(line, sizeof(line), "step %lld %.17g",
                    static_cast<long long>(values[0].unchecked_scalar<int64_t>()),
                    values[1].unchecked_scalar<double>());
      Tell(line);
    } else {
      TROUPE_RETURN_IF_ERROR(session->Run({}, {sum}).status());
      Tell("read");
      // At rest, it misses nobody: what is lost and back meanwhile is a surprise.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return session->Close();
}

// Only in the processes that are to be killed.
TEST(HealingClient, DISABLED_Works) {
  const char* const folder = std::getenv(kFolderVariable);
  const char* const role = std::getenv(kRoleVariable);
  ASSERT_TRUE(folder != nullptr && role != nullptr);
  const absl::Status status = Work(folder, role);
  Tell("error " + status.ToString());
  FAIL() << status;
}

class Healing : public testing::TestWithParam<bool> {
 protected:
  /// A client's process, and what it has said.
  struct Client {
    std::string role;
    std::optional<ChildProcess> process;
    int sessions = 0, steps = 0;
    int of_session = 0;  ///< Steps since the last session began.
    absl::Time seen;     ///< When it said the last thing.
  };

  void SetUp() override {
    folder_ = testing::TempDir() + "troupe_healing_" + std::to_string(getpid()) +
              (GetParam() ? "_asynchronous" : "");
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const auto address = [] { return "127.0.0.1:" + std::to_string(FreePort()); };
    file_ = folder_ + "/cluster";
    std::ofstream(file_) << ClusterSpec::Create({{"ps", {address(), address()}},
                                                 {"worker", {address(), address()}}})
                                ->ToJson();
    const std::string secret = folder_ + "/secret";
    std::ofstream(secret) << "a secret of the healing cluster";
    ASSERT_EQ(chmod(secret.c_str(), 0600), 0);
    supervisor_.emplace(std::vector<std::string>{
        "cluster", file_, "--restart", "--log-level", "info", "--threads", "1", "--secret-file",
        secret, "--heartbeat-timeout", std::to_string(absl::ToInt64Seconds(kTimeout))});
    std::string line;  // Among what tasks log.
    do {
      line = supervisor_->ChildProcess::Line(kPatience).value_or("");
    } while (!line.empty() && line != "ready");
    ASSERT_EQ(line, "ready");
    chief_.role = GetParam() ? "asynchronous chief" : "chief";
    reader_.role = "reader";
    Start(&chief_);
    Start(&reader_);
    Wait("the training begins", [&] { return chief_.steps >= 50 && reader_.steps >= 2; });
  }
  void TearDown() override {
    chief_.process.reset();
    reader_.process.reset();
    if (supervisor_) {
      EXPECT_TRUE(supervisor_->End(SIGTERM, kPatience).ok());
    }
    if (!HasFailure()) std::filesystem::remove_all(folder_);
  }

  void Start(Client* client) {
    auto process = ChildProcess::Start(
        {.arguments = {ThisProgram(), "--gtest_filter=HealingClient.DISABLED_Works",
                       "--gtest_also_run_disabled_tests", "--gtest_brief=1"},
         .environment = {{kFolderVariable, folder_}, {kRoleVariable, client->role}},
         .output = true,
         .log = folder_ + "/" + (client == &chief_ ? "chief" : "reader") + ".log"});
    ASSERT_TRUE(process.ok()) << process.status();
    client->process = *std::move(process);
  }

  void Hear(Client* client, absl::Duration patience) {
    while (const auto line = client->process->Line(patience)) {
      patience = absl::ZeroDuration();
      const std::vector<std::string> words = absl::StrSplit(*line, ' ');
      client->seen = absl::Now();
      if (words[0] == "error") ADD_FAILURE() << client->role << ": " << *line;
      if (words[0] == "session") {
        ++client->sessions;
        client->of_session = 0;
        int64_t step = 0;
        ASSERT_TRUE(absl::SimpleAtoi(words[1], &step)) << *line;
        if (client == &chief_) {
          EXPECT_GE(step, saved_) << "a checkpoint was lost";
        }
      } else if (words[0] == "step" || words[0] == "read") {
        ++client->steps;
        ++client->of_session;
      }
      if (words[0] != "step") continue;
      int64_t step = 0;
      double loss = 0;
      ASSERT_TRUE(absl::SimpleAtoi(words[1], &step) && absl::SimpleAtod(words[2], &loss)) << *line;
      const auto [it, is_new] = losses_.emplace(step, loss);
      ASSERT_EQ(it->second, loss) << "at step " << step;
      replayed_ += is_new ? 0 : 1;
    }
  }
  /// What the supervisor and the tasks say is for who looks at a failure.
  void HearTasks() {
    std::ofstream log(folder_ + "/tasks.log", std::ios::app);
    while (const auto line = supervisor_->ChildProcess::Line(absl::ZeroDuration())) {
      log << *line << "\n";
    }
  }
  void Wait(const std::string& what, const std::function<bool()>& done) {
    const absl::Time end = absl::Now() + kPatience;
    while (!done() && absl::Now() < end && !HasFailure()) {
      Hear(&chief_, absl::Milliseconds(2));
      Hear(&reader_, absl::ZeroDuration());
      HearTasks();
      if (chief_.process->closed() || reader_.process->closed()) ADD_FAILURE() << "a client ended";
    }
    EXPECT_TRUE(done()) << what << ": that did not come; the logs are in " << folder_;
  }

  /// The process of a task; -1: there is none at the moment.
  pid_t FindTask(const std::string& job, int task) const {
    const std::vector<std::string> wanted = {"--cluster", file_,    "--job",
                                             job,         "--task", std::to_string(task)};
    std::error_code gone;  // Processes may end meanwhile.
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
      std::ifstream in(entry.path() / "cmdline");
      const std::string line{std::istreambuf_iterator<char>(in), {}};
      const std::vector<std::string> words = absl::StrSplit(line, '\0');
      if (std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end()) {
        return pid;
      }
    }
    return -1;
  }

  void WaitUntil(absl::Time moment) {
    Wait("a moment", [&] { return absl::Now() >= moment; });
  }
  /// False: it is not there.
  bool KillTask(const std::string& task) {
    const pid_t pid = FindTask(task.substr(0, task.size() - 1), task.back() - '0');
    if (pid > 0) kill(pid, SIGKILL);
    killed_[task] = absl::Now();
    return pid > 0;
  }

  /// Kills it at a random moment, waits until all get on, and gives the time until then. If there
  /// is a `second` task, it is killed soon after, most likely while the others recover.
  absl::Duration Kill(const std::string& victim, const std::string& second) {
    // The supervisor makes a pause before it starts one that has not lived for long.
    WaitUntil(std::max(absl::Now() + absl::Milliseconds(random_() % 300),
                       killed_[victim] + TaskProcesses::kSettled + absl::Seconds(1)));
    const auto latest = LatestCheckpoint(folder_ + "/run");
    EXPECT_TRUE(latest.ok()) << latest.status();
    if (!latest.ok()) return absl::InfiniteDuration();
    EXPECT_TRUE(absl::SimpleAtoi(latest->substr(latest->rfind('-') + 1), &saved_)) << *latest;
    const int chiefs = chief_.sessions, readers = reader_.sessions;
    Client* const client = victim == "chief" ? &chief_ : victim == "reader" ? &reader_ : nullptr;
    const absl::Time killed = absl::Now();
    if (client != nullptr) {
      client->process->End(SIGKILL);
      Hear(client, absl::ZeroDuration());  // What it said before.
      Start(client);
    } else {
      EXPECT_TRUE(KillTask(victim)) << victim << " is not there";
    }
    if (!second.empty()) {
      WaitUntil(killed + absl::Milliseconds(random_() % 600));
      KillTask(second);  // Unless it is on its way.
    }
    if (victim == "worker1") {
      // It may be back before the chief, which was saving, needs it again: it has no state.
      const int before = chief_.steps;
      Wait("the chief trains on after " + victim, [&] {
        return reader_.sessions > readers && reader_.of_session > 0 && chief_.steps >= before + 10;
      });
    } else if (victim != "reader") {
      Wait("the chief trains again after " + victim,
           [&] { return chief_.sessions > chiefs && chief_.of_session > 0; });
    } else {
      Wait("the reader reads again",
           [&] { return reader_.sessions > readers && reader_.of_session > 0; });
    }
    const absl::Duration took = absl::Now() - killed;
    const int steps = chief_.steps, reads = reader_.steps;
    Wait("all go on after " + victim,
         [&] { return chief_.steps >= steps + 30 && reader_.steps >= reads + 2; });
    if (!second.empty()) return took;
    // Who does not need what is lost is not disturbed.
    if (victim == "worker0" || victim == "chief") {
      EXPECT_EQ(reader_.sessions, readers) << victim;
    }
    if (victim == "reader") {
      EXPECT_EQ(chief_.sessions, chiefs);
    }
    return took;
  }

  std::string folder_, file_;
  std::optional<TroupeProcess> supervisor_;
  Client chief_, reader_;
  std::map<std::string, absl::Time> killed_;  ///< When tasks were, the last time.
  int64_t saved_ = 0;  ///< The step of a checkpoint that was there at the last kill.
  std::map<int64_t, double> losses_;
  int replayed_ = 0;
  std::mt19937 random_{std::random_device{}()};
};

/// What a training that nobody kills has: the loss before each step, by the step that it becomes.
std::vector<double> Undisturbed(int64_t steps) {
  const Scope s = Scope::NewRoot();
  const Model model(s, "");
  Node* const init = GlobalVariablesInitializer(s);
  const auto session = Session::Create(s.graph(), {.threads = 1});
  if (!session.ok() || !(*session)->RunTargets({init}).ok()) return {};
  std::vector<double> losses = {0};
  while (static_cast<int64_t>(losses.size()) <= steps) {
    const auto values = (*session)->Run({}, {model.loss}, {model.train});
    if (!values.ok()) return {};
    losses.push_back((*values)[0].unchecked_scalar<double>());
  }
  return losses;
}

TEST_P(Healing, TheTrainingGoesOnFromTheLastCheckpoint) {
  if (HasFailure()) return;
  int kills = GetParam() ? 3 : 6;
  if (const char* const wanted = std::getenv("TROUPE_KILLS")) kills = std::atoi(wanted);
  std::vector<std::string> victims = {"ps1", "worker0", "chief", "ps0", "worker1", "reader"};
  std::map<std::string, std::vector<absl::Duration>> times;
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    const std::string& victim = victims[static_cast<size_t>(i) % victims.size()];
    // After the first round, now and then two at a time.
    std::string second;
    if (i >= 6 && i % 5 == 0) second = i % 2 == 0 ? "ps0" : "worker0";
    const absl::Duration took = Kill(victim, second == victim ? "" : second);
    if (second.empty()) times[victim].push_back(took);
  }
  for (auto& [victim, all] : times) {
    std::sort(all.begin(), all.end());
    std::printf("%s: killed %zu times; goes on after %s, at most %s\n", victim.c_str(), all.size(),
                absl::FormatDuration(all[all.size() / 2]).c_str(),
                absl::FormatDuration(all.back()).c_str());
  }
  if (HasFailure()) return;
  ASSERT_FALSE(losses_.empty());
  const std::vector<double> expected = Undisturbed(losses_.rbegin()->first);
  ASSERT_FALSE(expected.empty());
  for (const auto& [step, loss] : losses_) {
    ASSERT_EQ(loss, expected[static_cast<size_t>(step)]) << "step " << step;
  }
  EXPECT_GT(replayed_, 0) << "no kill has cost a step";
  std::printf("%lld steps, %d of them again\n", static_cast<long long>(losses_.rbegin()->first),
              replayed_);
}

INSTANTIATE_TEST_SUITE_P(Saves, Healing, testing::Bool(), [](const auto& info) {
  return info.param ? "Asynchronously" : "WhileItWaits";
});

}  // namespace
}  // namespace troupe
