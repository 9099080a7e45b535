#include "api/session.h"

#include <mutex>

#include "actors/cluster/graph_engine.h"
#include "actors/runtime.h"
#include "actors/session/session_role.h"
#include "actors/system.h"
#include "api/internal/remote_session.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

struct Session::Impl {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Runtime> runtime;
  std::unique_ptr<SessionRole> role;
  std::unique_ptr<RemoteSession> remote;  ///< Instead of runtime and role, with a target.
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

  absl::StatusOr<std::vector<Tensor>> RunRemotely(const StepSignature& signature,
                                                  absl::Span<const Tensor> feeds,
                                                  const RunOptions& options,
                                                  RunMetadata* metadata) {
    std::vector<Tensor> values(signature.fetches.size());
    TROUPE_RETURN_IF_ERROR(
        remote->Run(signature, "", feeds, absl::MakeSpan(values), options, metadata));
    return values;
  }
  absl::StatusOr<StepSignature> Names(const NamedTensors& feeds,
                                      const std::vector<std::string>& fetches,
                                      const std::vector<std::string>& targets) {
    std::vector<std::string> names;
    for (const auto& feed : feeds) names.push_back(feed.first);
    return StepSignature::FromNames(*graph, names, fetches, targets);
  }
};

namespace {

std::vector<Tensor> ValuesOf(const NamedTensors& feeds) {
  std::vector<Tensor> values;
  values.reserve(feeds.size());
  for (const auto& feed : feeds) values.push_back(feed.second);
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<Graph> graph,
                                                         const SessionOptions& options) {
  if (graph == nullptr) return InvalidArgument("a session needs a graph");
  auto impl = std::make_shared<Impl>();
  impl->graph = std::move(graph);
  if (!options.target.empty()) {
    TROUPE_ASSIGN_OR_RETURN(impl->remote, RemoteSession::Create(impl->graph, options));
    return std::unique_ptr<Session>(new Session(std::move(impl)));
  }
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
  return CatchExceptions([&]() -> absl::Status {
    const std::vector<Tensor> feed_values = ValuesOf(feeds);
    if (impl_->remote != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(const StepSignature signature, impl_->Names(feeds, fetches, targets));
      TROUPE_ASSIGN_OR_RETURN(std::vector<Tensor> result,
                              impl_->RunRemotely(signature, feed_values, options, metadata));
      if (values != nullptr) *values = std::move(result);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(std::vector<Tensor> result,
                            impl_->Run(impl_->role->Prepare(feeds, fetches, targets), feed_values,
                                       fetches.size(), options, metadata));
    if (values != nullptr) *values = std::move(result);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<Tensor>> Session::Run(const FeedMap& feeds,
                                                 absl::Span<const Output> fetches,
                                                 absl::Span<Node* const> targets,
                                                 const RunOptions& options, RunMetadata* metadata) {
  return CatchExceptions([&]() -> absl::StatusOr<std::vector<Tensor>> {
    StepSignature signature;
    std::vector<Tensor> feed_values;
    for (const auto& [output, value] : feeds) {
      signature.feeds.push_back(output);
      feed_values.push_back(value);
    }
    signature.fetches.assign(fetches.begin(), fetches.end());
    signature.targets.assign(targets.begin(), targets.end());
    if (impl_->remote != nullptr) {
      TROUPE_RETURN_IF_ERROR(signature.Check(*impl_->graph));
      return impl_->RunRemotely(signature, feed_values, options, metadata);
    }
    return impl_->Run(impl_->role->Prepare(signature), feed_values, fetches.size(), options,
                      metadata);
  });
}

absl::Status Session::RunTargets(absl::Span<Node* const> targets, const FeedMap& feeds) {
  return Run(feeds, {}, targets).status();
}

void Session::RunAsync(NamedTensors feeds, std::vector<std::string> fetches,
                       std::vector<std::string> targets,
                       std::function<void(absl::StatusOr<std::vector<Tensor>>)> done) {
  if (impl_->remote != nullptr) {
    absl::StatusOr<StepSignature> signature = impl_->Names(feeds, fetches, targets);
    if (!signature.ok()) {
      done(signature.status());
      return;
    }
    impl_->remote->RunAsync(*signature, ValuesOf(feeds), std::move(done));
    return;
  }
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
  ~State() {
    if (!handle.empty()) session->remote->ReleaseCallable(handle);
  }
  std::shared_ptr<Session::Impl> session;
  std::shared_ptr<Executable> executable;
  // With a remote session, instead of the executable:
  StepSignature signature;
  std::string handle;
  int num_nodes = 0;
};

absl::Status Session::Callable::operator()(absl::Span<const Tensor> feeds,
                                           absl::Span<Tensor> fetches, const RunOptions& options,
                                           RunMetadata* metadata) const {
  if (state_ == nullptr) return absl::FailedPreconditionError("an empty callable was called");
  return CatchExceptions([&] {
    if (state_->session->remote != nullptr) {
      return state_->session->remote->Run(state_->signature, state_->handle, feeds, fetches,
                                          options, metadata);
    }
    return state_->session->role->Run(state_->executable.get(), feeds, fetches,
                                      {options.timeout, options.trace}, metadata);
  });
}

int Session::Callable::num_nodes() const {
  if (state_ == nullptr) return 0;
  if (state_->executable == nullptr) return state_->num_nodes;
  return state_->executable->compiled().num_nodes;
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
  if (impl_->remote != nullptr) {
    TROUPE_RETURN_IF_ERROR(signature.Check(*impl_->graph));
    Callable callable;
    callable.state_ = std::make_shared<Callable::State>();
    callable.state_->session = impl_;
    TROUPE_RETURN_IF_ERROR(impl_->remote->MakeCallable(signature, &callable.state_->handle,
                                                       &callable.state_->num_nodes));
    callable.state_->signature = std::move(signature);
    return callable;
  }
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
  return CatchExceptions([&] {
    return impl_->remote != nullptr ? impl_->remote->PartialRunSetup(feeds, fetches, targets)
                                    : impl_->role->PartialRunSetup(feeds, fetches, targets);
  });
}

absl::Status Session::PartialRun(const std::string& handle, const NamedTensors& feeds,
                                 const std::vector<std::string>& fetches,
                                 std::vector<Tensor>* values) {
  return CatchExceptions([&] {
    return impl_->remote != nullptr ? impl_->remote->PartialRun(handle, feeds, fetches, values)
                                    : impl_->role->PartialRun(handle, feeds, fetches, values);
  });
}

absl::Status Session::Extend(const GraphDef& def) {
  TROUPE_RETURN_IF_ERROR(ExtendGraphWith(def, impl_->graph.get()));
  return impl_->remote != nullptr ? impl_->remote->Extend() : absl::OkStatus();
}

std::vector<DeviceAttributes> Session::ListDevices() const {
  if (impl_->remote != nullptr) {
    return impl_->remote->ListDevices().value_or(std::vector<DeviceAttributes>());
  }
  std::vector<DeviceAttributes> devices;
  for (const auto& role : impl_->runtime->devices()) devices.push_back(role->device->attributes());
  return devices;
}

absl::Status Session::Reset(const std::vector<std::string>& containers) {
  if (impl_->remote != nullptr) return impl_->remote->Reset(containers);
  return impl_->role->Reset(containers);
}

void Session::PlaceAgain() {
  if (impl_->remote != nullptr) return impl_->remote->PlaceAgain();
  impl_->role->PlaceAgain();
}

absl::Status Session::Close() {
  return impl_->remote != nullptr ? impl_->remote->Close() : impl_->role->Close();
}

const std::shared_ptr<Graph>& Session::graph() const { return impl_->graph; }
const std::shared_ptr<Runtime>& Session::runtime() const { return impl_->runtime; }

}  // namespace troupe
