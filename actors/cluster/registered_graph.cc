// The worker's graphs: registered, compiled, measured and dropped.
#include "actors/cluster/registered_graph.h"

#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

void PartitionEngine::Register(cluster::RegisterGraphRequest request, Done done) {
  std::shared_ptr<Session> session;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sessions_.find(request.session());
    if (found != sessions_.end()) {
      session = found->second;
    } else {
      session = std::make_shared<Session>(runtime_.get(), request.steps());
      session->SetStates(StatesOf(request.states()));
      sessions_.emplace(request.session(), session);
    }
  }
  host_->Post([this, session, request = std::move(request), done = std::move(done)]() {
    const absl::Status status = CatchExceptions([&]() -> absl::Status {
      TROUPE_ASSIGN_OR_RETURN(auto graph, Compile(session.get(), request));
      graph->session = session;
      std::lock_guard<std::mutex> lock(mutex_);
      // A session that was deleted meanwhile is not to be held by its own graphs.
      auto it = sessions_.find(request.session());
      if (it != sessions_.end() && it->second == session) {
        session->graphs[request.handle()] = std::move(graph);
      }
      return absl::OkStatus();
    });
    host_->Enter([&] { done(status); });
  });
}

absl::StatusOr<std::shared_ptr<PartitionEngine::RegisteredGraph>> PartitionEngine::Compile(
    Session* session, const cluster::RegisterGraphRequest& request) {
  auto graph = std::make_shared<RegisteredGraph>();
  CompiledStep compiled;
  auto number = [](int32_t index, auto* list) {
    if (index < 0 || index > (1 << 20)) return false;
    if (list->size() <= static_cast<size_t>(index)) list->resize(index + 1);
    return true;
  };
  std::vector<bool> fetched;
  for (const cluster::Partition& def : request.partitions()) {
    DeviceRole* device = runtime_->FindDevice(def.device());
    if (device == nullptr) {
      return absl::NotFoundError(StrCat("there is no device ", def.device(),
                                        " here; the first one is ",
                                        runtime_->devices().front()->device->name()));
    }
    TROUPE_ASSIGN_OR_RETURN(ReceivedPartition received, PartitionFromDef(def));
    LocalPartition& local = compiled.partitions.emplace_back();
    local.device = device;
    for (int i = 0; i < def.feeds_size(); ++i) {
      const int32_t index = def.feeds(i).index();
      if (!number(index, &compiled.feed_types)) return InvalidArgument("feed number ", index);
      compiled.feed_types[index] = received.feed_types[i];
      compiled.feed_names.resize(compiled.feed_types.size());
      compiled.feed_names[index] = def.feeds(i).tensor();
      if (def.partial()) {
        graph->feed_keys.resize(compiled.feed_types.size());
        graph->feed_keys[index].push_back(RendezvousKey(received.feed_edges[i]));
      } else {
        local.feeds.push_back(index);
      }
    }
    graph->partial |= def.partial();
    for (int i = 0; i < def.fetches_size(); ++i) {
      const int32_t index = def.fetches(i).index();
      if (!number(index, &fetched)) return InvalidArgument("fetch number ", index);
      fetched[index] = true;
      if (def.partial()) {
        graph->fetch_keys[RendezvousKey(received.fetch_edges[i])] = index;
      } else {
        local.fetches.push_back(index);
      }
    }
    TROUPE_ASSIGN_OR_RETURN(local.plan, BuildPlan(received.subgraph, device, &session->kernels,
                                                  runtime_.get(), def.fuse()));
    graph->received.push_back(std::move(received));
  }
  for (bool known : fetched) {
    if (!known) return InvalidArgument("a fetch that no partition has");
  }
  if (compiled.partitions.empty()) return InvalidArgument("a graph without partitions");
  compiled.num_fetches = static_cast<int>(fetched.size());
  graph->executable.emplace(std::move(compiled));
  for (const ReceivedPartition& received : graph->received) {
    TROUPE_RETURN_IF_ERROR(session->functions.AddLibrary(received.graph->library()));
  }
  return graph;
}

void PartitionEngine::Deregister(const std::string& session, const std::string& handle) {
  std::shared_ptr<RegisteredGraph> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  auto graph = it->second->graphs.find(handle);
  if (graph == it->second->graphs.end()) return;
  dropped = std::move(graph->second);
  it->second->graphs.erase(graph);
  host_->Post([dropped] {});  // To be destroyed elsewhere.
}

void PartitionEngine::DeleteSession(const std::string& session) {
  std::shared_ptr<Session> dropped;
  std::map<std::string, std::shared_ptr<RegisteredGraph>> graphs;  // They hold the session.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(coming_, [&](const auto& one) { return one.first.first == session; });
    auto it = sessions_.find(session);
    if (it == sessions_.end()) return;
    dropped = std::move(it->second);
    sessions_.erase(it);
    graphs.swap(dropped->graphs);
  }
  host_->Post([dropped, graphs = std::move(graphs)] {});  // To be destroyed elsewhere.
}

void PartitionEngine::AddCosts(const std::string& session, cluster::RunGraphReply* reply) {
  std::vector<std::shared_ptr<RegisteredGraph>> graphs;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = sessions_.find(session);
    if (it == sessions_.end()) return;
    for (const auto& [handle, graph] : it->second->graphs) graphs.push_back(graph);
  }
  for (const auto& graph : graphs) {
    for (const LocalPartition& partition : graph->compiled().partitions) {
      ForEachMeasured(*partition.plan, [reply](const std::string& node, double time_us,
                                               absl::Span<const int64_t> output_bytes,
                                               const std::string& device_type) {
        cluster::NodeCost* cost = reply->add_costs();
        cost->set_node(node);
        cost->set_time_us(time_us);
        cost->mutable_output_bytes()->Add(output_bytes.begin(), output_bytes.end());
        cost->set_device_type(device_type);
      });
    }
  }
}

}  // namespace troupe
