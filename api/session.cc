#include "api/session.h"

#include <mutex>
#include <set>

#include "actors/runtime.h"
#include "actors/session/session_role.h"
#include "actors/system.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

struct Session::Impl {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Runtime> runtime;
  std::unique_ptr<SessionRole> role;
  std::mutex mutex;
  std::unique_ptr<SessionShell> shell;  ///< Made by the first RunAsync.

  absl::StatusOr<std::vector<Tensor>> Run(absl::StatusOr<std::shared_ptr<Executable>> executable,
                                          absl::Span<const Tensor> feeds, size_t num_fetches,
                                          const RunOptions& options, RunMetadata* metadata) {
    if (!executable.ok()) return executable.status();
    std::vector<Tensor> values(num_fetches);
    TROUPE_RETURN_IF_ERROR(role->Run(executable->get(), feeds, absl::MakeSpan(values),
                                     {options.timeout, options.trace}, metadata));
    return values;
  }
};

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<Graph> graph,
                                                         const SessionOptions& options) {
  if (graph == nullptr) return InvalidArgument("a session needs a graph");
  if (!options.target.empty()) {
    return absl::UnimplementedError(StrCat(
        "target ", options.target, ": only sessions in this process (an empty target) exist"));
  }
  auto impl = std::make_shared<Impl>();
  impl->graph = std::move(graph);
  impl->runtime = options.runtime;
  if (impl->runtime == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(impl->runtime,
                            Runtime::Create({options.threads, options.num_cpu_devices}));
  }
  SessionRole::Options role_options;
  role_options.compile.simplify = options.optimize;
  role_options.compile.soft_placement = options.allow_soft_placement;
  impl->role = std::make_unique<SessionRole>(impl->graph, impl->runtime, role_options);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Session::~Session() {
  Close().IgnoreError();
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->shell.reset();
}

absl::Status Session::Run(const NamedTensors& feeds, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets, std::vector<Tensor>* values) {
  return Run(RunOptions(), feeds, fetches, targets, values);
}

absl::Status Session::Run(const RunOptions& options, const NamedTensors& feeds,
                          const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets, std::vector<Tensor>* values,
                          RunMetadata* metadata) {
  std::vector<Tensor> feed_values;
  feed_values.reserve(feeds.size());
  for (const auto& feed : feeds) feed_values.push_back(feed.second);
  TROUPE_ASSIGN_OR_RETURN(std::vector<Tensor> result,
                          impl_->Run(impl_->role->Prepare(feeds, fetches, targets), feed_values,
                                     fetches.size(), options, metadata));
  if (values != nullptr) *values = std::move(result);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Session::Run(const FeedMap& feeds,
                                                 absl::Span<const Output> fetches,
                                                 absl::Span<Node* const> targets,
                                                 const RunOptions& options, RunMetadata* metadata) {
  StepSignature signature;
  std::vector<Tensor> feed_values;
  for (const auto& [output, value] : feeds) {
    signature.feeds.push_back(output);
    feed_values.push_back(value);
  }
  signature.fetches.assign(fetches.begin(), fetches.end());
  signature.targets.assign(targets.begin(), targets.end());
  return impl_->Run(impl_->role->Prepare(signature), feed_values, fetches.size(), options,
                    metadata);
}

absl::Status Session::RunTargets(absl::Span<Node* const> targets, const FeedMap& feeds) {
  return Run(feeds, {}, targets).status();
}

void Session::RunAsync(NamedTensors feeds, std::vector<std::string> fetches,
                       std::vector<std::string> targets,
                       std::function<void(absl::StatusOr<std::vector<Tensor>>)> done) {
  SessionShell* shell;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->shell == nullptr) {
      impl_->shell =
          std::make_unique<SessionShell>(impl_->runtime->actor_system(), impl_->role.get());
    }
    shell = impl_->shell.get();
  }
  shell->Run({std::move(feeds), std::move(fetches), std::move(targets)},
             [done = std::move(done)](RunReply reply) {
               if (!reply.status.ok()) {
                 done(std::move(reply.status));
               } else {
                 done(std::move(reply.values));
               }
             });
}

struct Session::Callable::State {
  std::shared_ptr<Session::Impl> session;
  std::shared_ptr<Executable> executable;
};

absl::Status Session::Callable::operator()(absl::Span<const Tensor> feeds,
                                           absl::Span<Tensor> fetches, const RunOptions& options,
                                           RunMetadata* metadata) const {
  if (state_ == nullptr) return absl::FailedPreconditionError("an empty callable was called");
  return state_->session->role->Run(state_->executable.get(), feeds, fetches,
                                    {options.timeout, options.trace}, metadata);
}

int Session::Callable::num_nodes() const {
  return state_ == nullptr ? 0 : state_->executable->compiled().num_nodes;
}

absl::StatusOr<Session::Callable> Session::MakeCallable(const std::vector<std::string>& feeds,
                                                        const std::vector<std::string>& fetches,
                                                        const std::vector<std::string>& targets) {
  TROUPE_ASSIGN_OR_RETURN(StepSignature signature,
                          StepSignature::FromNames(*impl_->graph, feeds, fetches, targets));
  return MakeCallable(signature.feeds, signature.fetches, signature.targets);
}

absl::StatusOr<Session::Callable> Session::MakeCallable(absl::Span<const Output> feeds,
                                                        absl::Span<const Output> fetches,
                                                        absl::Span<Node* const> targets) {
  StepSignature signature;
  signature.feeds.assign(feeds.begin(), feeds.end());
  signature.fetches.assign(fetches.begin(), fetches.end());
  signature.targets.assign(targets.begin(), targets.end());
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Executable> executable, impl_->role->Prepare(signature));
  Callable callable;
  callable.state_ = std::make_shared<Callable::State>();
  callable.state_->session = impl_;
  callable.state_->executable = std::move(executable);
  return callable;
}

absl::StatusOr<std::string> Session::PartialRunSetup(const std::vector<std::string>& feeds,
                                                     const std::vector<std::string>& fetches,
                                                     const std::vector<std::string>& targets) {
  return impl_->role->PartialRunSetup(feeds, fetches, targets);
}

absl::Status Session::PartialRun(const std::string& handle, const NamedTensors& feeds,
                                 const std::vector<std::string>& fetches,
                                 std::vector<Tensor>* values) {
  return impl_->role->PartialRun(handle, feeds, fetches, values);
}

absl::Status Session::Extend(const GraphDef& def) {
  Graph* graph = impl_->graph.get();
  std::set<std::string_view> added;
  for (const NodeDef& node : def.node()) added.insert(node.name());
  // What the new nodes do not bring along, they take from the graph.
  ImportOptions options;
  for (const NodeDef& node : def.node()) {
    for (const std::string& input : node.input()) {
      std::string_view name = input;
      const bool control = !name.empty() && name[0] == '^';
      if (control) name.remove_prefix(1);
      const std::string node_name(name.substr(0, name.find(':')));
      if (added.count(node_name) != 0) continue;
      if (control) {
        if (Node* known = graph->FindNode(node_name)) options.input_map[input] = Output(known);
      } else if (absl::StatusOr<Output> known = graph->FindOutput(input); known.ok()) {
        options.input_map[input] = *known;
      }
    }
  }
  return ImportGraphDef(def, options, graph);
}

std::vector<DeviceAttributes> Session::ListDevices() const {
  std::vector<DeviceAttributes> devices;
  for (const auto& role : impl_->runtime->devices()) devices.push_back(role->device->attributes());
  return devices;
}

absl::Status Session::Reset(const std::vector<std::string>& containers) {
  return impl_->role->Reset(containers);
}

absl::Status Session::Close() { return impl_->role->Close(); }

const std::shared_ptr<Graph>& Session::graph() const { return impl_->graph; }
const std::shared_ptr<Runtime>& Session::runtime() const { return impl_->runtime; }

}  // namespace troupe
