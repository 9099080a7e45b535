// A process of a cluster of TensorFlow's, through its C API, for scripts/bench-peers:
//
//   tensorflow_cluster LIBRARY [options of tests/benchmarks/cluster_player.h]

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "scripts/bench/tensorflow_api.h"
#include "tests/benchmarks/cluster_player.h"

namespace {

class TensorFlowPlayer : public cluster_player::Player {
 public:
  TensorFlowPlayer(const std::string& library, const cluster_player::Options& options)
      : options_(options), api_(Load(library.c_str())) {}

  void Serve() override {
    std::string cluster;
    for (const auto& [name, addresses] : options_.cluster) {
      std::string job;
      AppendMessage(&job, 1, name);
      for (size_t i = 0; i < addresses.size(); ++i) {
        std::string task;
        AppendInt(&task, 1, static_cast<int64_t>(i));
        AppendMessage(&task, 2, addresses[i]);
        AppendMessage(&job, 2, task);
      }
      AppendMessage(&cluster, 1, job);
    }
    std::string server;  // A ServerDef.
    AppendMessage(&server, 1, cluster);
    AppendMessage(&server, 2, options_.job);
    AppendInt(&server, 3, options_.task);
    AppendMessage(&server, 4, Config(options_.threads, false, true));
    AppendMessage(&server, 5, "grpc");
    TF_Status* status = api_.NewStatus();
    server_ = api_.NewServer(server.data(), server.size(), status);
    Check(status, "server");
    api_.ServerStart(server_, status);
    Check(status, "start");
  }

  void Open() override {
    TF_Status* status = api_.NewStatus();
    TF_Graph* graph = api_.NewGraph();
    const std::string file = ReadFile(options_.graph);
    const TF_Buffer buffer = {file.data(), file.size(), nullptr};
    api_.GraphImportGraphDef(graph, &buffer, api_.NewImportGraphDefOptions(), status);
    Check(status, "import");
    std::string target;
    if (server_ != nullptr) {
      target = api_.ServerTarget(server_);
    } else if (!options_.master.empty()) {
      target = "grpc://" + options_.master;
    }
    session_ = Connect(graph, target);
    for (const std::string& name : options_.init) {
      const TF_Operation* operation = Operation(graph, name);
      RunNode(operation, status, "init");
    }
    for (const auto& [name, npy] : options_.feeds) {
      feeds_.push_back({Operation(graph, name), 0});
      values_.push_back(ReadNpy(api_, npy));
    }
    for (const std::string& name : options_.targets) targets_.push_back(Operation(graph, name));
    if (!options_.chief.empty()) chief_ = Operation(graph, options_.chief);
    if (!options_.other.empty()) other_ = Connect(graph, "grpc://" + options_.other);
    step_status_ = api_.NewStatus();
    chief_status_ = api_.NewStatus();
    call_status_ = api_.NewStatus();
  }

  void Step() override {
    api_.SessionRun(session_, nullptr, feeds_.data(), values_.data(),
                    static_cast<int>(feeds_.size()), nullptr, nullptr, 0, targets_.data(),
                    static_cast<int>(targets_.size()), nullptr, step_status_);
    Check(step_status_, "step");
  }
  void ChiefStep() override { RunNode(chief_, chief_status_, "chief"); }
  void SmallCall() override {
    TF_DeviceList* devices = api_.SessionListDevices(other_, call_status_);
    Check(call_status_, "call");
    if (api_.DeviceListCount(devices) == 0) Die("no devices are listed");
    api_.DeleteDeviceList(devices);
  }

  // A server cannot be stopped: TF_ServerStop is not implemented, TF_DeleteServer aborts.
  void Stop() override { _exit(0); }

 private:
  void Check(TF_Status* status, const char* what) const {
    if (api_.GetCode(status) != 0) Die(std::string(what) + ": " + api_.Message(status));
  }
  TF_Operation* Operation(TF_Graph* graph, const std::string& name) const {
    TF_Operation* found = api_.GraphOperationByName(graph, name.c_str());
    if (found == nullptr) Die("no node " + name);
    return found;
  }
  TF_Session* Connect(TF_Graph* graph, const std::string& target) const {
    TF_Status* status = api_.NewStatus();
    TF_SessionOptions* options = api_.NewSessionOptions();
    const std::string config = Config(options_.threads, false, options_.optimize, options_.devices);
    api_.SetConfig(options, config.data(), config.size(), status);
    Check(status, "config");
    if (!target.empty()) api_.SetTarget(options, target.c_str());
    TF_Session* session = api_.NewSession(graph, options, status);
    Check(status, "session");
    return session;
  }
  void RunNode(const TF_Operation* node, TF_Status* status, const char* what) const {
    api_.SessionRun(session_, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &node, 1, nullptr,
                    status);
    Check(status, what);
  }

  const cluster_player::Options options_;
  const Api api_;
  TF_Server* server_ = nullptr;
  TF_Session *session_ = nullptr, *other_ = nullptr;
  std::vector<TF_Output> feeds_;
  std::vector<TF_Tensor*> values_;
  std::vector<const TF_Operation*> targets_;
  const TF_Operation* chief_ = nullptr;
  TF_Status *step_status_ = nullptr, *chief_status_ = nullptr, *call_status_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("usage: tensorflow_cluster LIBRARY [options]");
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
  const cluster_player::Options options = cluster_player::Parse(argc, argv, 2);
  TensorFlowPlayer player(argv[1], options);
  cluster_player::Play(&player, options);
}
