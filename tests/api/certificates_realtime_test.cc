// Clusters under TLS, with the certificates that the program makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kWorker[] = "/job:worker/replica:0/task:0";

class CertificatesTest : public testing::Test {
 protected:
  CertificatesTest()
      : folder_(testing::TempDir() + "certificates_" + std::to_string(getpid()) + "/"),
        ps_port_(FreePort()),
        worker_port_(FreePort()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    cluster_ = folder_ + "cluster.json";
    std::ofstream(cluster_) << "{\"ps\": [\"127.0.0.1:" << ps_port_
                            << "\"], \"worker\": [\"127.0.0.1:" << worker_port_ << "\"]}";
    Make("ours", cluster_);
    Scope s = Scope::NewRoot();
    Scope ps = s.WithDevice("/job:ps/task:0"), worker = s.WithDevice("/job:worker/task:0");
    y_ = ops::Add(worker, ops::Const(ps, Tensor::Scalar(1.0f)),
                  ops::Const(ps, Tensor::Scalar(2.0f)));
    graph_ = s.graph();
  }
  ~CertificatesTest() override { std::filesystem::remove_all(folder_); }

  void Make(const std::string& name, const std::string& cluster,
            const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {ProgramFolder() + "/troupe",
                                          "certificates",
                                          cluster,
                                          "--out",
                                          folder_ + name,
                                          "--days",
                                          "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto made = RunProgram({.arguments = arguments, .output = true, .errors = true});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_THAT(made->output, HasSubstr("valid for 2 days"));
    EXPECT_TRUE(made->status.ok());
  }
  template <typename Options>
  void SetTls(const std::string& name, const std::string& file, Options* options) {
    if (name.empty()) return;
    options->tls_certificate = folder_ + name + "/" + file + ".pem";
    options->tls_key = folder_ + name + "/" + file + ".key";
    options->tls_authority = folder_ + name + "/ca.pem";
  }
  absl::StatusOr<std::unique_ptr<Server>> Start(const std::string& job, const std::string& name,
                                                const std::string& file) {
    ServerOptions options;
    options.cluster = *ClusterSpec::ReadFile(cluster_);
    options.job = job;
    options.heartbeat_interval = absl::Milliseconds(200);
    options.heartbeat_timeout = absl::Seconds(1);
    options.wait_for_workers = absl::Seconds(2);
    SetTls(name, file, &options);
    return Server::Start(options);
  }
  absl::StatusOr<float> Run(const std::string& name, const std::string& file) {
    SessionOptions options;
    // Over the network, as the name is another than the server's.
    options.target = "troupe://localhost:" + std::to_string(ps_port_);
    SetTls(name, file, &options);
    const auto session = Session::Create(graph_, options);
    if (!session.ok()) return session.status();
    const auto values = (*session)->Run({y_});
    if (!values.ok()) return values.status();
    return *(*values)[0].scalar<float>();
  }

  const std::string folder_;
  const int ps_port_, worker_port_;
  std::string cluster_;
  std::shared_ptr<Graph> graph_;
  Output y_;
};

TEST_F(CertificatesTest, AClusterUsesThoseOfAFolder) {
  TroupeProcess all({"cluster", cluster_, "--certificates", folder_ + "ours"});
  ASSERT_EQ(all.Line(), "ready");
  const auto value = Run("ours", "client");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 3);
  const std::string graph = folder_ + "graph.pbtxt";
  std::ofstream(graph) << R"(
      node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
             attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
  )";
  TroupeProcess run({"run", graph, "--fetch", "one", "--master",
                     "troupe://127.0.0.1:" + std::to_string(ps_port_), "--certificates",
                     folder_ + "ours"});
  EXPECT_THAT(run.Line(), StartsWith("one int64"));
  all.Signal(SIGTERM);
  EXPECT_EQ(all.Rest(), "");
  EXPECT_TRUE(all.Wait()->ok());
}

TEST_F(CertificatesTest, ClientsThatAreRefusedLearnWhy) {
  Make("theirs", cluster_);
  const struct {
    std::string of_ps, of_client, file;
    absl::StatusCode code;
    std::string says;
  } cases[] = {
      {"ours", "theirs", "client", absl::StatusCode::kPermissionDenied, "of another authority"},
      {"ours", "", "", absl::StatusCode::kFailedPrecondition, "this task speaks TLS"},
      {"", "ours", "client", absl::StatusCode::kFailedPrecondition, "does not speak TLS"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    const auto ps = Start("ps", c.of_ps, "job-ps-task-0");
    ASSERT_TRUE(ps.ok()) << ps.status();
    const absl::Time before = absl::Now();
    const absl::Status status = Run(c.of_client, c.file).status();
    EXPECT_LT(absl::Now() - before, absl::Seconds(2));
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says));
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(ps_port_)));
  }
}

TEST_F(CertificatesTest, ATaskNeedsItsOwn) {
  for (const char* file : {"job-ps-task-0", "client", "ca"}) {
    const absl::Status status = Start("worker", "ours", file).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                StartsWith(std::string("the certificate of ") + kWorker + " names "));
  }
  const auto ps = Start("ps", "ours", "job-ps-task-0");
  const auto worker = Start("worker", "ours", "job-worker-task-0");
  ASSERT_TRUE(ps.ok() && worker.ok()) << ps.status() << worker.status();
  EXPECT_TRUE(Run("ours", "client").ok());
  // A task may come as a client, the authority's own certificate is nobody's.
  EXPECT_TRUE(Run("ours", "job-worker-task-0").ok());
  const absl::Status status = Run("ours", "ca").status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
}

TEST_F(CertificatesTest, ATaskThatIsOfAnotherAuthorityIsNamed) {
  Make("theirs", cluster_);
  const auto ps = Start("ps", "ours", "job-ps-task-0");
  const auto worker = Start("worker", "theirs", "job-worker-task-0");
  ASSERT_TRUE(ps.ok() && worker.ok()) << ps.status() << worker.status();
  const absl::Status status = Run("ours", "client").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kWorker));
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate"));
}

TEST_F(CertificatesTest, ATaskJoinsWithItsOwn) {
  TroupeProcess all(
      {"cluster", cluster_, "--certificates", folder_ + "ours", "--heartbeat-timeout", "2"});
  ASSERT_EQ(all.Line(), "ready");
  const int port = FreePort();
  const std::string larger = folder_ + "larger.json";
  std::ofstream(larger) << "{\"ps\": [\"127.0.0.1:1\", \"127.0.0.1:" << port << "\"]}";
  const std::vector<std::string> arguments = {"worker",
                                              "--cluster",
                                              larger,
                                              "--job",
                                              "ps",
                                              "--task",
                                              "1",
                                              "--heartbeat-timeout",
                                              "2",
                                              "--join",
                                              "127.0.0.1:" + std::to_string(worker_port_),
                                              "--certificates"};
  // The folder was made for two tasks.
  auto joins = [&](const std::string& folder) {
    std::vector<std::string> all_arguments = arguments;
    all_arguments.push_back(folder);
    return TroupeProcess(all_arguments);
  };
  EXPECT_THAT(joins(folder_ + "ours").Line(), StartsWith("NOT_FOUND: "));
  Make("theirs", larger);
  EXPECT_THAT(joins(folder_ + "theirs").Line(), HasSubstr("of another authority"));
  Make("more", larger, {"--authority", folder_ + "ours"});
  TroupeProcess joined = joins(folder_ + "more");
  EXPECT_EQ(joined.Line(), "ready troupe://127.0.0.1:" + std::to_string(port));
  Scope s(graph_);
  y_ = ops::Add(s.WithDevice("/job:ps/task:1"), y_, y_);
  const auto value = Run("more", "client");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 6);
}

}  // namespace
}  // namespace troupe
