#include "actors/cluster/partition_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "actors/cluster/registered_graph.h"
#include "actors/session/compile.h"
#include "actors/session/functions.h"
#include "actors/session/kept_resources.h"
#include "actors/session/step_stats.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"
#include "graph/step_signature.h"
#include "kernels/cancellation.h"

namespace troupe {

namespace {

/// "/job:a/replica:0/task:1" of a device of that task.
std::string TaskOf(const std::string& device) { return device.substr(0, device.find("/device:")); }

absl::Status ToProtos(const std::vector<Tensor>& values, std::vector<TensorProto>* protos) {
  for (const Tensor& value : values) {
    if (value.type() == ElementType::kVariant || value.type() == ElementType::kResource) {
      return absl::UnimplementedError(
          StrCat("a tensor of type ", ElementTypeName(value.type()),
                 " cannot be fetched from another process; fetch what it stands for"));
    }
    TensorToProto(value, &protos->emplace_back());
  }
  return absl::OkStatus();
}

}  // namespace

/// A step of this task's partitions.
struct PartitionEngine::RunningStep {
  /// Sends what leaves the process.
  class Exit final : public Rendezvous {
   public:
    Exit(EngineHost* host, PartitionEngine* engine, RunningStep* step)
        : host_(host), engine_(engine), step_(step) {}

   protected:
    void SendRemote(const RendezvousEdge& edge, uint64_t tag, Tensor value, bool dead) override {
      if (step_->partial != nullptr && edge.recv_device == kClientDevice) {
        Fetched(edge, std::move(value), dead);
        return;
      }
      host_->SendTensor(TaskOf(edge.recv_device), step_->id, edge.key, tag, dead, std::move(value));
    }

   private:
    void Fetched(const RendezvousEdge& edge, Tensor value, bool dead) {
      auto fetch = step_->graph->fetch_keys.find(edge.key);
      if (fetch == step_->graph->fetch_keys.end()) return;
      engine_->Give(step_->partial->Made(fetch->second, std::move(value), dead));
    }

    EngineHost* const host_;
    PartitionEngine* const engine_;
    RunningStep* const step_;  ///< Lives while its executors run.
  };

  uint64_t id = 0;
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<Exit> rendezvous;
  Executable::Step* executors = nullptr;
  CancellationToken cancellation;
  Containers resources;
  std::vector<Tensor> feeds, fetches;
  bool traced = false, described = false;  ///< Times of nodes are wanted; partitions, too.
  std::vector<std::vector<NodeTrace>> traces;
  std::unique_ptr<PartialFetches> partial;
  StepDone done;
};

PartitionEngine::PartitionEngine(std::shared_ptr<Runtime> runtime, EngineHost* host)
    : runtime_(std::move(runtime)), host_(host) {
  outlet_->host = host;
}

PartitionEngine::~PartitionEngine() {
  {
    std::lock_guard<std::mutex> lock(outlet_->mutex);
    outlet_->host = nullptr;
  }
  for (auto& [name, session] : sessions_) session->graphs.clear();  // They hold their session.
}

std::vector<cluster::DeviceInfo> PartitionEngine::Devices() {
  std::vector<cluster::DeviceInfo> devices;
  for (const auto& role : runtime_->devices()) {
    const DeviceAttributes& attributes = role->device->attributes();
    cluster::DeviceInfo& info = devices.emplace_back();
    info.set_name(attributes.name);
    info.set_type(attributes.type);
    info.set_memory_limit(attributes.memory_limit);
    info.set_incarnation(attributes.incarnation);
    info.set_description(attributes.description);
    const std::optional<DeviceFigures> figures = DeviceRegistry::Global()->Figures(*role->device);
    if (!figures.has_value()) continue;
    cluster::DeviceFigures& told = *info.mutable_figures();
    told.set_flops_per_us(figures->flops_per_us);
    told.set_bytes_per_us(figures->bytes_per_us);
    told.set_node_us(figures->node_us);
    told.set_transfer_us(figures->transfer_us);
    told.set_transfer_bytes_per_us(figures->transfer_bytes_per_us);
  }
  return devices;
}

void PartitionEngine::Start(cluster::RunGraphRequest request, StepDone done) {
  auto step = std::make_shared<RunningStep>();
  step->id = request.step();
  step->described = request.trace();
  step->traced = request.trace() || request.times();
  step->done = std::move(done);
  step->rendezvous = std::make_shared<RunningStep::Exit>(host_, this, step.get());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto session = sessions_.find(request.session());
    if (session != sessions_.end()) {
      auto graph = session->second->graphs.find(request.handle());
      if (graph != session->second->graphs.end()) step->graph = graph->second;
    }
    if (step->graph != nullptr && step->graph->partial) {
      step->partial = std::make_unique<PartialFetches>(step->graph->compiled().num_fetches);
    }
    steps_[step->id] = step;
    if (auto it = early_.find(step->id); it != early_.end()) {
      for (EarlyValue& value : it->second.values) {
        step->rendezvous->Deliver(value.key, value.tag, std::move(value.value), value.dead,
                                  Player::kPlays);
      }
      early_.erase(it);
    }
  }
  try {
    Run(step, host_->event_player(), true,
        [this, step, request = std::move(request)]() mutable { Play(step, &request); });
  } catch (...) {
    std::lock_guard<std::mutex> lock(mutex_);
    steps_.erase(step->id);
    throw;
  }
}

void PartitionEngine::Run(const std::shared_ptr<RunningStep>& step, Player player,
                          bool within_event, std::function<void()> play) {
  const std::shared_ptr<RegisteredGraph> graph = step->graph;
  const bool quick = graph != nullptr && graph->hold_times.quick();
  auto timed = [this, graph, quick, play = std::move(play)] {
    const auto measured = [&] {
      const uint64_t start = runtime_->clock()->NowNs();
      play();
      if (graph != nullptr) graph->hold_times.Record(runtime_->clock()->NowNs() - start);
    };
    // What is quick has nothing to send before it is over. To write is not counted: whoever is
    // woken by it may take the core.
    if (quick) {
      host_->Together(measured);
    } else {
      measured();
    }
  };
  if (player != Player::kPlays && !quick) {
    host_->Post(std::move(timed));
  } else if (within_event) {
    host_->Defer(std::move(timed));
  } else {
    timed();
  }
}

void PartitionEngine::Play(std::shared_ptr<RunningStep> step,
                           cluster::RunGraphRequest* request) noexcept {
  const absl::Status begun = CatchExceptions([&] { return Begin(step, request); });
  if (begun.ok()) return;
  if (step->executors != nullptr) step->graph->executable->Release(step->executors);
  Over(step, begun);
}

absl::Status PartitionEngine::Begin(const std::shared_ptr<RunningStep>& step,
                                    cluster::RunGraphRequest* request) {
  RegisteredGraph* graph = step->graph.get();
  if (graph == nullptr) {
    return absl::NotFoundError(StrCat("there is no graph ", request->handle(), " here"));
  }
  for (TensorProto& feed : *request->mutable_feeds()) {
    TROUPE_ASSIGN_OR_RETURN(step->feeds.emplace_back(), TakeTensorFromProto(&feed));
  }
  if (!graph->partial) {
    TROUPE_RETURN_IF_ERROR(graph->executable->CheckFeeds(step->feeds));
    step->fetches.resize(graph->compiled().num_fetches);
  } else if (!step->feeds.empty()) {
    return InvalidArgument("expected 0 feeds, got ", step->feeds.size());
  }
  TROUPE_ASSIGN_OR_RETURN(step->executors, graph->executable->Acquire());
  StepContext context;
  context.step_id = static_cast<int64_t>(step->id);
  context.allocator = HostAllocator();
  context.pool = host_->has_threads() ? runtime_->pool() : nullptr;
  context.cancellation = &step->cancellation;
  context.step_resources = &step->resources;
  context.functions = &graph->session->functions;
  step->executors->executors.RunAsync(
      context, absl::MakeSpan(step->feeds), absl::MakeSpan(step->fetches),
      [this, step](const absl::Status& status) {
        step->graph->executable->Release(step->executors);
        Over(step, status);
      },
      step->traced ? &step->traces : nullptr, step->rendezvous);
  return absl::OkStatus();
}

void PartitionEngine::Over(const std::shared_ptr<RunningStep>& step, const absl::Status& status) {
  if (step->partial == nullptr) {
    End(step, status);
    return;
  }
  KeepGoing([&] { Give(step->partial->Ran(status)); });
  KeepGoing([&] { EndPartial(step); });
}

void PartitionEngine::EndPartial(const std::shared_ptr<RunningStep>& step) {
  if (std::optional<absl::Status> status = step->partial->TakeEnd()) End(step, *status);
}

void PartitionEngine::Give(PartialFetches::Answers answers) {
  // An executor may be in the middle of its loop.
  if (answers.empty()) return;
  host_->Post([answers = std::move(answers)]() mutable {
    for (auto& answer : answers) answer();
  });
}

absl::Status PartitionEngine::TakeFeeds(RunningStep* step, const cluster::FeedGraphRequest& request,
                                        std::vector<std::pair<uint64_t, Tensor>>* values) {
  const RegisteredGraph& graph = *step->graph;
  const CompiledStep& compiled = graph.compiled();
  for (const cluster::NumberedTensor& fed : request.feeds()) {
    const uint32_t feed = fed.index();
    if (feed >= compiled.feed_types.size()) return InvalidArgument("there is no feed ", feed);
    TROUPE_ASSIGN_OR_RETURN(const Tensor value, TensorFromProto(fed.tensor()));
    const auto& [type, shape] = compiled.feed_types[feed];
    TROUPE_RETURN_IF_ERROR(CheckFedValue(compiled.feed_names[feed], type, shape, value));
    for (uint64_t key : graph.feed_keys[feed]) values->emplace_back(key, value);
  }
  return absl::OkStatus();
}

bool PartitionEngine::Feed(cluster::FeedGraphRequest request, StepDone done) {
  std::shared_ptr<RunningStep> step = FindStep(request.step());
  if (step == nullptr || step->partial == nullptr) return false;
  host_->Post([this, step, request = std::move(request), done = std::move(done)] {
    auto answer = [this, done](absl::Status status, std::vector<Tensor> values) {
      std::vector<TensorProto> fetches;
      if (status.ok()) status = CatchExceptions([&] { return ToProtos(values, &fetches); });
      host_->Enter([&] { done(status, std::move(fetches)); });
    };
    std::vector<std::pair<uint64_t, Tensor>> feeds;
    absl::Status status = CatchExceptions([&] { return TakeFeeds(step.get(), request, &feeds); });
    if (!status.ok()) {
      answer(std::move(status), {});
      return;
    }
    for (auto& [key, value] : feeds) Deliver(step.get(), key, 0, false, std::move(value));
    Give(step->partial->Want({request.fetches().begin(), request.fetches().end()}, answer));
    EndPartial(step);
  });
  return true;
}

std::string PartitionEngine::Describe(RunningStep* step) {
  RunMetadata metadata;
  const RegisteredGraph& graph = *step->graph;
  for (size_t i = 0; i < step->traces.size(); ++i) {
    AddStepStats(*graph.compiled().partitions[i].plan, step->traces[i], &metadata);
    if (step->described) graph.received[i].graph->ToGraphDef(metadata.add_partition_graphs());
  }
  return metadata.SerializeAsString();
}

std::string PartitionEngine::TakeTrace(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = traces_.find(id);
  if (it == traces_.end()) return "";
  std::string trace = std::move(it->second);
  traces_.erase(it);
  return trace;
}

void PartitionEngine::End(const std::shared_ptr<RunningStep>& step, const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    steps_.erase(step->id);
    KeepGoing([&] { MarkForgotten(step->id); });
  }
  struct Ended {
    StepDone done;
    absl::Status status;
    std::vector<TensorProto> fetches;
  } ended{std::move(step->done), status, {}};
  if (status.ok()) {
    ended.status = CatchExceptions([&]() -> absl::Status {
      TROUPE_RETURN_IF_ERROR(ToProtos(step->fetches, &ended.fetches));
      if (!step->traced) return absl::OkStatus();
      std::string trace = Describe(step.get());
      std::lock_guard<std::mutex> lock(mutex_);
      traces_[step->id] = std::move(trace);
      return absl::OkStatus();
    });
  }
  if (!ended.status.ok()) ended.fetches.clear();
  for (Tensor& value : step->fetches) value.Reset();
  // One pointer: the function needs no memory.
  host_->Enter([&ended] { ended.done(ended.status, std::move(ended.fetches)); });
}

std::shared_ptr<PartitionEngine::RunningStep> PartitionEngine::FindStep(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = steps_.find(id);
  return it == steps_.end() ? nullptr : it->second;
}

void PartitionEngine::Deliver(RunningStep* step, uint64_t key, uint64_t tag, bool dead,
                              Tensor value) noexcept {
  const absl::Status delivered = CatchExceptions([&] {
    step->rendezvous->Deliver(key, tag, std::move(value), dead, Player::kPlays);
    return absl::OkStatus();
  });
  if (!delivered.ok()) step->cancellation.Cancel(delivered);
}

void PartitionEngine::Arrive(uint64_t id, uint64_t key, uint64_t tag, bool dead, Tensor value,
                             std::shared_ptr<void> credit) {
  std::shared_ptr<RunningStep> step;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = steps_.find(id);
    if (it == steps_.end()) {
      if (forgotten_.count(id) != 0) return;
      early_[id].values.push_back({key, tag, dead, std::move(value), std::move(credit)});
      return;
    }
    step = it->second;
  }
  // Whoever delivers may have to play the step.
  try {
    Run(step, Player::kQuick, false,
        [step, key, tag, dead, value = std::move(value), credit = std::move(credit)] {
          Deliver(step.get(), key, tag, dead, value);
        });
  } catch (...) {
    step->cancellation.Cancel(StatusOfException());
  }
}

void PartitionEngine::MarkForgotten(uint64_t id) {
  constexpr size_t kForgotten = 8192;
  early_.erase(id);
  if (!forgotten_.insert(id).second) return;
  forget_order_.push_back(id);
  if (forget_order_.size() > kForgotten) {
    forgotten_.erase(forget_order_.front());
    forget_order_.pop_front();
  }
}

void PartitionEngine::Forget(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (steps_.count(id) == 0) MarkForgotten(id);
}

std::vector<uint64_t> PartitionEngine::DropEarly(ClusterTime now, ClusterTime older_than) {
  std::vector<uint64_t> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  std::unordered_set<uint32_t> masters;
  for (const auto& [name, session] : sessions_) masters.insert(session->steps);
  for (auto it = early_.begin(); it != early_.end();) {
    if (!it->second.since) it->second.since = now;
    // No step begins before all its tasks know its graph.
    if (masters.count(static_cast<uint32_t>(it->first >> 32)) == 0 ||
        now - *it->second.since > older_than) {
      dropped.push_back(it->first);
      it = early_.erase(it);
    } else {
      ++it;
    }
  }
  std::sort(dropped.begin(), dropped.end());
  return dropped;
}

void PartitionEngine::Abort(uint64_t id, const absl::Status& status) {
  host_->Post([this, id, status] {
    std::shared_ptr<RunningStep> step = FindStep(id);
    if (step == nullptr) return;
    step->cancellation.Cancel(status);
    if (step->partial == nullptr) return;
    Give(step->partial->Abandon(status));
    EndPartial(step);
  });
}

std::shared_ptr<PartitionEngine::Session> PartitionEngine::FindSession(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = sessions_.find(name);
  return it == sessions_.end() ? nullptr : it->second;
}

void PartitionEngine::States(const std::string& name, StatesDone done) {
  const std::shared_ptr<Session> session = FindSession(name);
  if (session == nullptr) {  // No graph of it has been registered.
    return host_->Post(
        [this, done = std::move(done)] { host_->Enter([&] { done(absl::OkStatus(), {}); }); });
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    session->states_wanted.push_back(std::move(done));
    if (std::exchange(session->tells_states, true)) return;
  }
  try {
    host_->Post([this, session] { TellStates(session); });
  } catch (...) {  // Nobody else has asked: requests come one at a time.
    std::lock_guard<std::mutex> lock(mutex_);
    session->states_wanted.clear();
    session->tells_states = false;
    throw;
  }
}

void PartitionEngine::TellStates(const std::shared_ptr<Session>& session) {
  while (true) {
    std::vector<StatesDone> wanted;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      wanted.swap(session->states_wanted);
      session->tells_states = !wanted.empty();
    }
    if (wanted.empty()) return;
    KernelStates states;
    const absl::Status status = CatchExceptions([&] {
      session->kernels.SaveStates("", &states, /*of_others=*/false);
      session->functions.SaveStates(&states, /*of_others=*/false);
      return absl::OkStatus();
    });
    for (const StatesDone& done : wanted) {
      host_->Enter([&] { done(status, states); });
    }
  }
}

void PartitionEngine::SetStates(const std::string& name, const KernelStates& states) {
  if (const auto session = FindSession(name)) session->SetStates(states);
}

bool PartitionEngine::HasStates(const std::string& name) {
  const auto session = FindSession(name);
  return session != nullptr && session->kernels.HasStates();
}

void PartitionEngine::Outlet::Post(std::function<void()> job) {
  std::lock_guard<std::mutex> lock(mutex);
  if (host != nullptr) host->Post(std::move(job));
}

void PartitionEngine::GetResources(const cluster::GetResourcesRequest& request,
                                   ResourcesDone done) {
  std::vector<ResourcePlace> wanted;
  for (const ResourceStateDef& def : request.wanted()) wanted.push_back(PlaceFromDef(def));
  host_->Post([this, session = FindSession(request.session()), wanted = std::move(wanted),
               where_only = request.where_only(), first = request.first(),
               max_bytes = request.max_bytes(), done = std::move(done)] {
    // A session of which no graph has been registered has no kernels.
    const StatefulKernels none;
    const StatefulKernels& kernels = session == nullptr ? none : session->kernels;
    if (where_only) {
      cluster::GetResourcesReply reply;
      for (const ResourcePlace& place : FindResources(*runtime_, kernels, wanted)) {
        PlaceToDef(place, reply.add_resources());
      }
      return host_->Enter([&] { done(absl::OkStatus(), std::move(reply)); });
    }
    SaveResources(*runtime_, kernels, wanted,
                  [this, outlet = outlet_, first, max_bytes,
                   done](absl::StatusOr<std::vector<KeptResource>> kept) {
                    // What is much is made a message by a thread that does nothing else.
                    outlet->Post([this, first, max_bytes, done, kept = std::move(kept)]() mutable {
                      TellResources(std::move(kept), first, max_bytes, done);
                    });
                  });
  });
}

void PartitionEngine::TellResources(absl::StatusOr<std::vector<KeptResource>> kept, int64_t first,
                                    int64_t max_bytes, const ResourcesDone& done) {
  int64_t left = max_bytes > 0 ? max_bytes : INT64_MAX;
  cluster::GetResourcesReply reply;
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    TROUPE_RETURN_IF_ERROR(kept.status());
    for (KeptResource& one : *kept) {
      ResourceStateDef* const part = reply.add_resources();
      TROUPE_RETURN_IF_ERROR(ResourceParts(std::move(one)).Get(first, left, part));
      for (const TupleDef& tuple : part->tuple())
        left -= static_cast<int64_t>(tuple.ByteSizeLong());
    }
    return absl::OkStatus();
  });
  host_->Enter([&] { done(status, std::move(reply)); });
}

absl::Status PartitionEngine::TakePart(const std::string& session, ResourceStateDef* part,
                                       std::optional<KeptResource>* whole) {
  const std::pair key(session, StrCat(part->device(), "\n", part->container(), "\n", part->name()));
  JoinedResource joined;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto before = coming_.extract(key);
    if (part->first() > 0) {
      if (before.empty()) {
        return absl::AbortedError("the parts before this one of the state have been lost");
      }
      joined = std::move(before.mapped());
    }
  }
  TROUPE_RETURN_IF_ERROR(joined.Add(part));
  if (joined.complete()) {
    TROUPE_ASSIGN_OR_RETURN(*whole, joined.Take());
    return absl::OkStatus();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  coming_[key] = std::move(joined);
  return absl::OkStatus();
}

void PartitionEngine::SetResource(cluster::SetResourceRequest request, Done done) {
  host_->Post([this, request = std::move(request), done = std::move(done)]() mutable {
    const auto told = [this, outlet = outlet_, done](const absl::Status& status) {
      outlet->Post([this, done, status] { host_->Enter([&] { done(status); }); });
    };
    std::optional<KeptResource> resource;
    const absl::Status read = CatchExceptions(
        [&] { return TakePart(request.session(), request.mutable_resource(), &resource); });
    if (!read.ok() || !resource.has_value()) return told(read);
    RestoreKeptResource(*runtime_, *std::move(resource), told);
  });
}

void PartitionEngine::ResetContainers(const std::vector<std::string>& containers) {
  runtime_->ResetContainers(containers);
}

PartitionEngine::Counts PartitionEngine::counts() {
  std::lock_guard<std::mutex> lock(mutex_);
  Counts counts{.sessions = sessions_.size(), .steps = steps_.size(), .early = early_.size()};
  for (const auto& [name, session] : sessions_) {
    counts.graphs += session->graphs.size();
    for (const auto& [handle, graph] : session->graphs) {
      counts.resting += graph->executable->num_resting();
    }
  }
  return counts;
}

}  // namespace troupe
