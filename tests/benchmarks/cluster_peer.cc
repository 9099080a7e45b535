// A process of a cluster of Troupe's, for scripts/bench-peers. cluster_player.h says how it is told
// what to do.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/cluster.h"
#include "api/session.h"
#include "devices/npy.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/benchmarks/cluster_player.h"

namespace {

using namespace troupe;  // NOLINT: a short program
using cluster_player::Fail;

void Check(const absl::Status& status) {
  if (!status.ok()) Fail("cluster_peer: " + status.ToString());
}
template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

class TroupePlayer : public cluster_player::Player {
 public:
  explicit TroupePlayer(const cluster_player::Options& options) : options_(options) {}

  void Serve() override {
    ServerOptions server;
    std::map<std::string, std::vector<std::string>> jobs(options_.cluster.begin(),
                                                         options_.cluster.end());
    server.cluster = Check(ClusterSpec::Create(jobs));
    server.job = options_.job;
    server.task = options_.task;
    server.threads = options_.threads;
    server_ = Check(Server::Start(server));
  }

  void Open() override {
    GraphDef def;
    Check(ReadGraphDef(options_.graph, &def));
    graph_ = std::make_shared<Graph>();
    Check(ImportGraphDef(def, ImportOptions(), graph_.get()));
    SessionOptions session;
    if (server_ != nullptr) {
      session.target = server_->target();
    } else if (!options_.master.empty()) {
      session.target = "troupe://" + options_.master;
    } else {
      session.threads = options_.threads;
      session.num_cpu_devices = options_.devices;
    }
    session.optimize = options_.optimize;
    session_ = Check(Session::Create(graph_, session));
    for (const std::string& node : options_.init) {
      Check(session_->Run({}, {}, {node}, nullptr));
    }
    std::vector<std::string> names;
    for (const auto& [name, file] : options_.feeds) {
      names.push_back(name);
      feeds_.push_back(Check(ReadNpy(file)));
    }
    step_ = Check(session_->MakeCallable(names, {}, options_.targets));
    if (!options_.chief.empty()) {
      chief_ = Check(session_->MakeCallable(std::vector<std::string>(), {}, {options_.chief}));
    }
    if (!options_.other.empty()) {
      SessionOptions other;
      other.target = "troupe://" + options_.other;
      other_ = Check(Session::Create(std::make_shared<Graph>(), other));
    }
  }

  void Step() override { CheckStep(step_(feeds_, {})); }
  void ChiefStep() override { CheckStep(chief_({}, {})); }
  void SmallCall() override {
    if (Check(other_->ListDevices()).empty()) Fail("cluster_peer: no devices are listed");
  }

  void Stop() override {
    stopping_ = true;
    if (other_ != nullptr) (void)other_->Close();
    if (session_ != nullptr) (void)session_->Close();
    if (server_ != nullptr) (void)server_->Stop(absl::Milliseconds(100));
  }

 private:
  void CheckStep(const absl::Status& status) {
    if (!stopping_) Check(status);
  }

  const cluster_player::Options options_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Session> session_, other_;
  Session::Callable step_, chief_;
  std::vector<Tensor> feeds_;
  std::atomic<bool> stopping_{false};
};

}  // namespace

int main(int argc, char** argv) {
  const cluster_player::Options options = cluster_player::Parse(argc, argv, 1);
  TroupePlayer player(options);
  cluster_player::Play(&player, options);
}
