// Who knows a cluster's secret and who does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/cluster.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kPs[] = "/job:ps/replica:0/task:0", kWorker[] = "/job:worker/replica:0/task:0";

class SecretsTest : public testing::Test {
 protected:
  SecretsTest()
      : folder_(testing::TempDir() + "secrets_" + std::to_string(getpid()) + "/"),
        ps_port_(FreePort()),
        worker_port_(FreePort()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    one_ = Write("one", "0123456789abcdef\n");
    two_ = Write("two", "0123456789abcdeg\n");
    cluster_ = Write("cluster.json",
                     "{\"ps\": [\"127.0.0.1:" + std::to_string(ps_port_) +
                         "\"], \"worker\": [\"127.0.0.1:" + std::to_string(worker_port_) + "\"]}");
    Scope s = Scope::NewRoot();
    Scope ps = s.WithDevice("/job:ps/task:0"), worker = s.WithDevice("/job:worker/task:0");
    y_ = ops::Add(worker, ops::Const(ps, Tensor::Scalar(1.0f)),
                  ops::Const(ps, Tensor::Scalar(2.0f)));
    graph_ = s.graph();
  }
  ~SecretsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::string file = folder_ + name;
    std::ofstream(file) << text;
    chmod(file.c_str(), 0600);
    return file;
  }
  ServerOptions ForServer(const std::string& job, const std::string& secret_file) {
    ServerOptions options;
    options.cluster = *ClusterSpec::ReadFile(cluster_);
    options.job = job;
    options.heartbeat_interval = absl::Milliseconds(200);
    options.heartbeat_timeout = absl::Seconds(1);
    options.wait_for_workers = absl::Seconds(2);
    options.secret_file = secret_file;
    return options;
  }
  /// Over the network, as the name is another than the server's.
  absl::StatusOr<float> Run(const std::string& secret_file, int port,
                            const std::string& host = "localhost") {
    SessionOptions options;
    options.target = "troupe://" + host + ":" + std::to_string(port);
    options.secret_file = secret_file;
    const auto session = Session::Create(graph_, options);
    if (!session.ok()) return session.status();
    const auto values = (*session)->Run({y_});
    if (!values.ok()) return values.status();
    return *(*values)[0].scalar<float>();
  }

  const std::string folder_;
  const int ps_port_, worker_port_;
  std::string one_, two_, cluster_;
  std::shared_ptr<Graph> graph_;
  Output y_;
};

TEST_F(SecretsTest, ClientsThatDoNotKnowItAreRefusedAndToldWhy) {
  for (const std::string& of_server : {std::string(), one_}) {
    auto ps = Server::Start(ForServer("ps", of_server));
    auto worker = Server::Start(ForServer("worker", of_server));
    ASSERT_TRUE(ps.ok() && worker.ok()) << ps.status() << worker.status();
    for (const std::string& of_client : {std::string(), one_, two_}) {
      for (const char* host : {"localhost", "127.0.0.1"}) {
        SCOPED_TRACE(StrCat(of_server, " and ", of_client, " at ", host));
        const absl::Status log =
            ReadLog({.target = StrCat("troupe://", host, ":", ps_port_), .secret_file = of_client},
                    std::nullopt, LogLevel::kInfo, 1)
                .status();
        EXPECT_EQ(log.code(), of_server == of_client ? absl::StatusCode::kOk
                                                     : absl::StatusCode::kPermissionDenied)
            << log;
        const absl::Time before = absl::Now();
        const auto value = Run(of_client, ps_port_, host);
        if (of_server == of_client) {
          ASSERT_TRUE(value.ok()) << value.status();
          EXPECT_EQ(*value, 3);
          continue;
        }
        EXPECT_LT(absl::Now() - before, absl::Seconds(2));
        EXPECT_TRUE(absl::IsPermissionDenied(value.status())) << value.status();
        const std::string message(value.status().message());
        EXPECT_THAT(message, HasSubstr(std::to_string(ps_port_)));
        EXPECT_THAT(message,
                    HasSubstr(std::string(kPs) + (of_client.empty()   ? " wants a secret"
                                                  : of_server.empty() ? " has no secret"
                                                                      : " has another secret")));
      }
    }
  }
}

TEST_F(SecretsTest, TasksThatDoNotShareItAreNamed) {
  const std::pair<std::string, std::string> cases[] = {{"", one_}, {one_, ""}, {one_, two_}};
  for (const auto& [of_ps, of_worker] : cases) {
    SCOPED_TRACE(StrCat(of_ps, " and ", of_worker));
    auto ps = Server::Start(ForServer("ps", of_ps));
    auto worker = Server::Start(ForServer("worker", of_worker));
    ASSERT_TRUE(ps.ok() && worker.ok()) << ps.status() << worker.status();
    const absl::Status status = Run(of_ps, ps_port_).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kWorker));
    EXPECT_THAT(std::string(status.message()), HasSubstr("both need the same one"));
  }
}

TEST_F(SecretsTest, BadFilesAreToldToBothSides) {
  const std::string open = Write("open", "0123456789abcdef"), small = Write("small", "1234");
  chmod(open.c_str(), 0644);
  auto ps = Server::Start(ForServer("ps", one_));
  ASSERT_TRUE(ps.ok()) << ps.status();
  const std::pair<std::string, absl::StatusCode> cases[] = {
      {folder_ + "absent", absl::StatusCode::kNotFound},
      {small, absl::StatusCode::kInvalidArgument},
      {open, absl::StatusCode::kFailedPrecondition}};
  for (const auto& [file, code] : cases) {
    for (const absl::Status& status :
         {Server::Start(ForServer("worker", file)).status(), Run(file, ps_port_).status()}) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    }
  }
}

TEST_F(SecretsTest, AClusterMakesOneThatItsUserFinds) {
  TroupeProcess all({"cluster", cluster_});
  ASSERT_EQ(all.Line(), "ready");
  for (const char* host : {"localhost", "127.0.0.1"}) {
    for (const int port : {ps_port_, worker_port_}) {
      const auto value = Run("", port, host);
      EXPECT_TRUE(value.ok()) << value.status();
    }
  }
  EXPECT_TRUE(absl::IsPermissionDenied(Run(one_, ps_port_).status()));
  const std::string published = folder_ + "troupe/secret-127.0.0.1:" + std::to_string(ps_port_);
  EXPECT_TRUE(Run(published, ps_port_).ok());
  {
    // Another user would look elsewhere.
    setenv("XDG_RUNTIME_DIR", (folder_ + "elsewhere").c_str(), 1);
    EXPECT_THAT(std::string(Run("", ps_port_).status().message()), HasSubstr("wants a secret"));
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  TroupeProcess again({"cluster", cluster_});
  EXPECT_THAT(again.Line(), StartsWith("ALREADY_EXISTS: "));
  EXPECT_EQ(again.Wait()->code, 1);
  EXPECT_TRUE(Run("", ps_port_).ok()) << "the second cluster has taken nothing away";
  all.Signal(SIGTERM);
  EXPECT_EQ(all.Rest(), "");
  EXPECT_TRUE(all.Wait()->ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "troupe"));
}

TEST_F(SecretsTest, AfterAKilledClusterOthersServe) {
  {
    TroupeProcess killed({"cluster", cluster_});
    ASSERT_EQ(killed.Line(), "ready");
    killed.Signal(SIGKILL);
    killed.Rest();  // Until its tasks have ended, too.
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder_ + "troupe"));
  {
    auto ps = Server::Start(ForServer("ps", "")), worker = Server::Start(ForServer("worker", ""));
    ASSERT_TRUE(ps.ok() && worker.ok()) << ps.status() << worker.status();
    const auto value = Run("", ps_port_);
    EXPECT_TRUE(value.ok()) << value.status();
  }
  TroupeProcess next({"cluster", cluster_});
  ASSERT_EQ(next.Line(), "ready");
  const auto value = Run("", ps_port_);
  EXPECT_TRUE(value.ok()) << value.status();
}

TEST_F(SecretsTest, ATaskJoinsWithTheSecretThatItFinds) {
  TroupeProcess all({"cluster", cluster_, "--heartbeat-timeout", "2"});
  ASSERT_EQ(all.Line(), "ready");
  const int port = FreePort();
  const std::string larger =
      Write("larger.json", "{\"third\": [\"127.0.0.1:" + std::to_string(port) + "\"]}");
  TroupeProcess third({"worker", "--cluster", larger, "--job", "third", "--task", "0", "--join",
                       "127.0.0.1:" + std::to_string(ps_port_), "--heartbeat-timeout", "2"});
  EXPECT_EQ(third.Line(), "ready troupe://127.0.0.1:" + std::to_string(port));
  Scope s(graph_);
  y_ = ops::Add(s.WithDevice("/job:third/task:0"), y_, y_);
  const auto value = Run("", ps_port_);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 6);
  TroupeProcess stranger({"worker", "--cluster", larger, "--job", "third", "--task", "0", "--join",
                          "127.0.0.1:" + std::to_string(ps_port_), "--secret-file", two_});
  EXPECT_THAT(stranger.Line(), StartsWith("PERMISSION_DENIED: "));
  EXPECT_EQ(stranger.Wait()->code, 1);
}

TEST_F(SecretsTest, TheProgramTakesAFile) {
  TroupeProcess all({"cluster", cluster_, "--secret-file", one_});
  ASSERT_EQ(all.Line(), "ready");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "troupe"));
  const std::string graph = Write("graph.pbtxt", R"(
      node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
             attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
  )");
  const std::string master = "troupe://127.0.0.1:" + std::to_string(ps_port_);
  for (const std::string command : {"run", "bench"}) {
    std::vector<std::string> arguments = {command, graph, "--fetch", "one", "--master", master};
    if (command == "bench") arguments.insert(arguments.end(), {"--seconds", "0.1"});
    TroupeProcess without(arguments);
    EXPECT_THAT(without.Line(), StartsWith("PERMISSION_DENIED: cannot connect to 127.0.0.1:"));
    EXPECT_EQ(without.Wait()->code, 1);
    arguments.insert(arguments.end(), {"--secret-file", two_});
    TroupeProcess wrong(arguments);
    EXPECT_THAT(wrong.Line(), HasSubstr("has another secret"));
    arguments.back() = one_;
    TroupeProcess with(arguments);
    EXPECT_THAT(with.Line(), StartsWith(command == "run" ? "one int64 [] 1" : "{\"name\""));
    EXPECT_TRUE(with.Wait()->ok());
  }
}

TEST_F(SecretsTest, ATaskWithoutOneSaysThatItServesAnyone) {
  std::vector<std::string> arguments = {"worker", "--log-level", "info",   "--cluster", cluster_,
                                        "--job",  "ps",          "--task", "0"};
  for (const bool secret : {false, true}) {
    if (secret) arguments.insert(arguments.end(), {"--secret-file", one_});
    TroupeProcess task(arguments);
    std::string line = task.Line();  // It may have missed its peer before.
    while (line.find("cannot connect to task") != std::string::npos) line = task.Line();
    EXPECT_THAT(line, HasSubstr(" serves at 127.0.0.1:"));
    EXPECT_EQ(line.find("whoever connects: it has no secret") == std::string::npos, secret) << line;
    task.Signal(SIGTERM);
    EXPECT_EQ(task.Rest().find("whoever"), std::string::npos) << "it is said once";
    EXPECT_TRUE(task.Wait()->ok());
  }
}

}  // namespace
}  // namespace troupe
