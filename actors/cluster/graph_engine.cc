#include "actors/cluster/graph_engine.h"

#include <unordered_map>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/extend_graph.h"
#include "graph/passes/partition.h"
#include "graph/passes/partition_def.h"
#include "graph/passes/place.h"
#include "graph/passes/step_graph.h"
#include "graph/protos/graph.pb.h"
#include "graph/step_signature.h"
#include "kernels/registered_kernels.h"

namespace troupe {

/// A session's graph, and where its state is.
struct GraphEngine::SessionGraph {
  std::mutex mutex;  ///< One signature at a time: what is stateful must be placed once.
  const std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  cluster::SessionConfig config;
  std::unordered_map<std::string, std::string> fixed;
  CostModel costs;
};

GraphEngine::~GraphEngine() = default;

std::shared_ptr<GraphEngine::SessionGraph> GraphEngine::Find(const std::string& session) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : it->second;
}

size_t GraphEngine::num_sessions() {
  std::lock_guard<std::mutex> lock(mutex_);
  return sessions_.size();
}

void GraphEngine::CreateGraph(const std::string& name, cluster::CreateSessionRequest request,
                              Done done) {
  auto session = std::make_shared<SessionGraph>();
  session->config = request.config();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sessions_[name] = session;
  }
  Extend(session, std::move(*request.mutable_graph()), std::move(done));
}

void GraphEngine::ExtendGraph(const std::string& name, cluster::ExtendSessionRequest request,
                              Done done) {
  Extend(Find(name), std::move(*request.mutable_graph()), std::move(done));
}

void GraphEngine::Extend(std::shared_ptr<SessionGraph> session, std::string graph, Done done) {
  host_->Post([this, session = std::move(session), graph = std::move(graph),
               done = std::move(done)] {
    const absl::Status status = CatchExceptions([&]() -> absl::Status {
      GraphDef def;
      if (session == nullptr) return absl::CancelledError("the session has been closed");
      if (!def.ParseFromString(graph)) {
        return InvalidArgument("what should be the session's graph, or be added, is no GraphDef");
      }
      std::lock_guard<std::mutex> lock(session->mutex);
      return ExtendGraphWith(def, session->graph.get());
    });
    host_->Enter([&] { done(status); });
  });
}

void GraphEngine::DeleteGraph(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto dropped = sessions_.extract(name);
  if (dropped.empty()) return;
  host_->Post([graph = std::move(dropped.mapped())] {});  // To be destroyed elsewhere.
}

void GraphEngine::Build(const std::string& name, cluster::Signature signature,
                        std::vector<cluster::DeviceInfo> devices, BuildDone done) {
  host_->Post([this, session = Find(name), signature = std::move(signature),
               devices = std::move(devices), done = std::move(done)] {
    absl::StatusOr<BuiltStep> built = absl::CancelledError("the session has been closed");
    if (session != nullptr) {
      std::lock_guard<std::mutex> lock(session->mutex);
      built = CatchExceptions([&] { return Cut(session.get(), signature, devices); });
    }
    host_->Enter([&] { done(std::move(built)); });
  });
}

void GraphEngine::Learn(const std::string& name, const cluster::RunGraphReply& reply) {
  const std::shared_ptr<SessionGraph> session = Find(name);
  if (session == nullptr) return;
  // What comes from outside is believed within reason.
  constexpr double kLongest = 1e12;
  constexpr int64_t kMostNodes = 1 << 22;
  for (const cluster::NodeCost& cost : reply.costs()) {
    if (session->costs.num_measured() >= kMostNodes) break;
    if (cost.time_us() > kLongest) continue;
    session->costs.Record(cost.node(), cost.time_us(),
                          absl::MakeConstSpan(cost.output_bytes().data(),
                                              static_cast<size_t>(cost.output_bytes_size())),
                          cost.device_type().empty() ? "CPU" : cost.device_type());
  }
}

absl::StatusOr<BuiltStep> GraphEngine::Cut(SessionGraph* session, const cluster::Signature& names,
                                           const std::vector<cluster::DeviceInfo>& devices) {
  const Graph& graph = *session->graph;
  TROUPE_ASSIGN_OR_RETURN(
      const StepSignature signature,
      StepSignature::FromNames(graph, {names.feeds().begin(), names.feeds().end()},
                               {names.fetches().begin(), names.fetches().end()},
                               {names.targets().begin(), names.targets().end()}));
  PlacementInput placement;
  std::unordered_map<std::string, uint64_t> incarnations;
  std::map<std::string, int> processors;  // The CPU devices of a task share its cores.
  for (const cluster::DeviceInfo& device : devices) {
    TROUPE_ASSIGN_OR_RETURN(DeviceName parsed, DeviceName::Parse(device.name()));
    int processor = -1;
    if (parsed.type == "CPU") {
      const std::string task = device.name().substr(0, device.name().find("/device:"));
      processor = processors.try_emplace(task, static_cast<int>(processors.size())).first->second;
    }
    placement.devices.push_back({device.name(), std::move(parsed), 1, processor});
    if (device.has_figures()) {
      const cluster::DeviceFigures& told = device.figures();
      const DeviceFigures figures{told.flops_per_us(), told.bytes_per_us(), told.node_us(),
                                  told.transfer_us(), told.transfer_bytes_per_us()};
      if (MakeSense(figures)) placement.devices.back().figures = figures;
      placement.devices.back().memory = std::max<int64_t>(device.memory_limit(), 0);
    }
    incarnations[device.name()] = device.incarnation();
  }
  placement.allow_soft_placement = session->config.allow_soft_placement();
  placement.fixed = &session->fixed;
  placement.costs = &session->costs;
  placement.lacks_kernel = RegisteredKernels(graph);
  std::vector<std::vector<int>> needs;
  TROUPE_ASSIGN_OR_RETURN(StepGraph step,
                          PrepareStep(graph, signature, !session->config.no_optimize(),
                                      devices.size() > 1, [&](const Subgraph& whole) {
                                        if (names.partial()) needs = FeedsOfFetches(whole);
                                        return CheckPlacement(placement, whole);
                                      }));
  PartitionOptions options;
  options.incarnation = [&](const std::string& device) { return incarnations[device]; };
  options.lossy_between_tasks = session->config.lossy_transfers();
  TROUPE_ASSIGN_OR_RETURN(
      const PartitionedGraph parts,
      CutStep(placement, options, {}, std::move(step.subgraph), [&](const Subgraph& placed) {
        for (const SubNode& node : placed.nodes) {
          if (node.kind == SubNode::Kind::kOp && node.original->stateful()) {
            session->fixed.emplace(node.original->name(), node.device);
          }
        }
      }));

  BuiltStep built;
  built.needs = std::move(needs);
  built.num_fetches = static_cast<int>(signature.fetches.size());
  std::map<std::string, size_t> part_of;
  for (const DevicePartition& partition : parts.partitions) {
    if (session->config.log_placement()) LogPlacement(partition.subgraph, partition.device);
    const std::string task = partition.device.substr(0, partition.device.find("/device:"));
    auto [it, is_new] = part_of.try_emplace(task, built.parts.size());
    if (is_new) built.parts.emplace_back().task = task;
    BuiltStep::Part& part = built.parts[it->second];
    TROUPE_ASSIGN_OR_RETURN(cluster::Partition def,
                            PartitionToDef(step.lowered != nullptr ? *step.lowered : graph,
                                           partition, names.partial()));
    def.set_fuse(!session->config.no_optimize() && !names.partial());
    // Feeds and fetches are numbered by task; what two devices of it are fed is sent once.
    for (cluster::Binding& feed : *def.mutable_feeds()) {
      size_t k = 0;
      while (k < part.feeds.size() && part.feeds[k] != feed.index()) ++k;
      if (k == part.feeds.size()) part.feeds.push_back(feed.index());
      feed.set_index(static_cast<int>(k));
    }
    for (cluster::Binding& fetch : *def.mutable_fetches()) {
      part.fetches.push_back(fetch.index());
      fetch.set_index(static_cast<int>(part.fetches.size()) - 1);
    }
    part.num_nodes += def.targets_size();
    part.partitions.push_back(std::move(def));
  }
  return built;
}

}  // namespace troupe
