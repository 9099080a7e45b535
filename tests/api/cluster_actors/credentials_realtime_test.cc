// Nodes of clusters that have a secret, or certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using Tensors = std::vector<Tensor>;
using testing::HasSubstr;

class NodeCredentialsTest : public testing::Test {
 protected:
  NodeCredentialsTest() : folder_(testing::TempDir() + "nodes_" + std::to_string(getpid()) + "/") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    address_ = "127.0.0.1:" + std::to_string(FreePort());
    std::ofstream(folder_ + "cluster.json") << "{\"worker\": [\"" << address_ << "\"]}";
    one_ = Write("one", "0123456789abcdef");
    two_ = Write("two", "0123456789abcdeg");
    server_.cluster = *ClusterSpec::ReadFile(folder_ + "cluster.json");
    server_.job = "worker";
    node_.target = "troupe://" + address_;
  }
  ~NodeCredentialsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::string file = folder_ + name;
    std::ofstream(file) << text;
    chmod(file.c_str(), 0600);
    return file;
  }
  template <typename Options>
  void SetTls(const std::string& folder, const std::string& file, Options* options) {
    const std::string stem = folder_ + folder + "/";
    options->tls_certificate = stem + file + ".pem";
    options->tls_key = stem + file + ".key";
    options->tls_authority = stem + "ca.pem";
  }
  /// Two nodes join, and one of them asks for what the other one has published.
  absl::Status Meet() {
    auto first = ClusterNode::Join(node_), second = ClusterNode::Join(node_);
    if (!first.ok()) return first.status();
    if (!second.ok()) return second.status();
    const caf::actor actor = (*first)->system().spawn([] {
      return caf::behavior{[](ask_atom, const Tensors& in) { return in; },
                           [](tell_atom, const Tensors&) {}};
    });
    auto published = (*first)->Publish("actor", actor);
    if (!published.ok()) return published.status();
    const auto found = (*second)->Find<caf::actor>("", "actor");
    if (!found.ok()) return found.status();
    absl::Status status = absl::UnknownError("no answer");
    caf::scoped_actor self((*second)->system());
    self->request(*found, std::chrono::seconds(5), ask_atom_v, Tensors{Tensor::Scalar(1.0f)})
        .receive([&](const Tensors&) { status = absl::OkStatus(); },
                 [&](const caf::error& error) { status = ToStatus(error); });
    return status;
  }

  const std::string folder_;
  std::string address_, one_, two_;
  ServerOptions server_;
  NodeOptions node_;
};

TEST_F(NodeCredentialsTest, Secrets) {
  server_.secret_file = one_;
  const auto server = Server::Start(server_);
  ASSERT_TRUE(server.ok()) << server.status();
  for (const std::string& secret : {std::string(), two_}) {
    node_.secret_file = secret;
    const absl::Status status = ClusterNode::Join(node_).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--secret-file"));
  }
  node_.secret_file = one_;
  const absl::Status met = Meet();
  EXPECT_TRUE(met.ok()) << met;
}

TEST_F(NodeCredentialsTest, ThatOfAClusterIsFound) {
  auto cluster = ChildProcess::Start(
      {.arguments = {ProgramFolder() + "/troupe", "cluster", folder_ + "cluster.json"},
       .output = true});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_EQ(cluster->Line(), "ready");
  const absl::Status met = Meet();
  EXPECT_TRUE(met.ok()) << met;
}

TEST_F(NodeCredentialsTest, Certificates) {
  for (const char* folder : {"ours", "theirs"}) {
    const auto made =
        RunProgram({.arguments = {ProgramFolder() + "/troupe", "certificates",
                                  folder_ + "cluster.json", "--out", folder_ + folder}});
    ASSERT_TRUE(made.ok() && made->status.ok()) << made.status();
  }
  SetTls("ours", "job-worker-task-0", &server_);
  const auto server = Server::Start(server_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(ClusterNode::Join(node_).status()));
  SetTls("theirs", "client", &node_);
  EXPECT_TRUE(absl::IsPermissionDenied(ClusterNode::Join(node_).status()));
  SetTls("ours", "client", &node_);
  const absl::Status met = Meet();
  EXPECT_TRUE(met.ok()) << met;
}

}  // namespace
}  // namespace troupe
