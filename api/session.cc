#include "api/session.h"

#include "actors/runtime.h"
#include "api/internal/default_timeout.h"
#include "api/internal/local_session.h"
#include "api/internal/remote_session.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/extend_graph.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

StepSignature SignatureOf(const FeedMap& feeds, absl::Span<const Output> fetches,
                          absl::Span<Node* const> targets) {
  StepSignature signature;
  for (const auto& [output, value] : feeds) signature.feeds.push_back(output);
  signature.fetches.assign(fetches.begin(), fetches.end());
  signature.targets.assign(targets.begin(), targets.end());
  return signature;
}

/// The tensors of a NamedTensors or FeedMap.
template <typename Feeds>
std::vector<Tensor> ValuesOf(const Feeds& feeds) {
  std::vector<Tensor> values;
  for (const auto& [key, value] : feeds) values.push_back(value);
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<Graph> graph,
                                                         const SessionOptions& options) {
  if (graph == nullptr) return InvalidArgument("a session needs a graph");
  return CatchExceptions([&]() -> absl::StatusOr<std::unique_ptr<Session>> {
    std::unique_ptr<Session> session(new Session);
    session->graph_ = std::move(graph);
    if (!options.target.empty()) {
      TROUPE_ASSIGN_OR_RETURN(session->impl_, RemoteSession::Create(session->graph_, options));
      session->impl_ = WithDefaultTimeout(std::move(session->impl_), options.operation_timeout);
      return session;
    }
    session->runtime_ = options.runtime;
    if (session->runtime_ == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(session->runtime_,
                              Runtime::Create({.threads = options.threads,
                                               .num_cpu_devices = options.num_cpu_devices,
                                               .devices = options.devices}));
    }
    session->impl_ = WithDefaultTimeout(
        MakeLocalSession(session->graph_, session->runtime_, options), options.operation_timeout);
    return session;
  });
}

Session::~Session() {
  if (impl_ != nullptr) Close().IgnoreError();
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
    TROUPE_ASSIGN_OR_RETURN(std::vector<Tensor> result,
                            impl_->Run(feeds, fetches, targets, options, metadata));
    if (values != nullptr) *values = std::move(result);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<Tensor>> Session::Run(const FeedMap& feeds,
                                                 absl::Span<const Output> fetches,
                                                 absl::Span<Node* const> targets,
                                                 const RunOptions& options, RunMetadata* metadata) {
  return CatchExceptions([&] {
    return impl_->Run(SignatureOf(feeds, fetches, targets), ValuesOf(feeds), options, metadata);
  });
}

absl::Status Session::RunTargets(absl::Span<Node* const> targets, const FeedMap& feeds) {
  return Run(feeds, {}, targets).status();
}

void Session::RunAsync(NamedTensors feeds, std::vector<std::string> fetches,
                       std::vector<std::string> targets, RunDone done) {
  RunAsync(RunOptions(), std::move(feeds), std::move(fetches), std::move(targets), std::move(done));
}

void Session::RunAsync(const RunOptions& options, NamedTensors feeds,
                       std::vector<std::string> fetches, std::vector<std::string> targets,
                       RunDone done, RunMetadata* metadata) {
  std::vector<Tensor> values;
  absl::StatusOr<StepSignature> signature = CatchExceptions([&] {
    std::vector<std::string> names;
    for (const auto& [name, value] : feeds) names.push_back(name);
    values = ValuesOf(feeds);
    return StepSignature::FromNames(*graph_, names, fetches, targets);
  });
  impl_->RunAsync(options, std::move(signature), std::move(values), std::move(done), metadata);
}

void Session::RunAsync(const FeedMap& feeds, absl::Span<const Output> fetches,
                       absl::Span<Node* const> targets, RunDone done, const RunOptions& options,
                       RunMetadata* metadata) {
  std::vector<Tensor> values;
  absl::StatusOr<StepSignature> signature = CatchExceptions([&]() -> absl::StatusOr<StepSignature> {
    StepSignature found = SignatureOf(feeds, fetches, targets);
    TROUPE_RETURN_IF_ERROR(found.Check(*graph_));
    values = ValuesOf(feeds);
    return found;
  });
  impl_->RunAsync(options, std::move(signature), std::move(values), std::move(done), metadata);
}

absl::Status Session::Callable::operator()(absl::Span<const Tensor> feeds,
                                           absl::Span<Tensor> fetches, const RunOptions& options,
                                           RunMetadata* metadata) const {
  if (call_ == nullptr) return absl::FailedPreconditionError("an empty callable was called");
  return CatchExceptions([&] { return call_->Run(feeds, fetches, options, metadata); });
}

int Session::Callable::num_nodes() const { return call_ == nullptr ? 0 : call_->num_nodes(); }

absl::StatusOr<Session::Callable> Session::MakeCallable(const std::vector<std::string>& feeds,
                                                        const std::vector<std::string>& fetches,
                                                        const std::vector<std::string>& targets) {
  return CatchExceptions([&]() -> absl::StatusOr<Callable> {
    TROUPE_ASSIGN_OR_RETURN(const StepSignature signature,
                            StepSignature::FromNames(*graph_, feeds, fetches, targets));
    return MakeCallable(signature.feeds, signature.fetches, signature.targets);
  });
}

absl::StatusOr<Session::Callable> Session::MakeCallable(absl::Span<const Output> feeds,
                                                        absl::Span<const Output> fetches,
                                                        absl::Span<Node* const> targets) {
  return CatchExceptions([&]() -> absl::StatusOr<Callable> {
    StepSignature signature;
    signature.feeds.assign(feeds.begin(), feeds.end());
    signature.fetches.assign(fetches.begin(), fetches.end());
    signature.targets.assign(targets.begin(), targets.end());
    Callable callable;
    TROUPE_ASSIGN_OR_RETURN(callable.call_, impl_->Prepare(signature));
    return callable;
  });
}

absl::StatusOr<std::string> Session::PartialRunSetup(const std::vector<std::string>& feeds,
                                                     const std::vector<std::string>& fetches,
                                                     const std::vector<std::string>& targets,
                                                     const RunOptions& options) {
  return CatchExceptions([&] { return impl_->PartialRunSetup(feeds, fetches, targets, options); });
}

absl::Status Session::PartialRun(const std::string& handle, const NamedTensors& feeds,
                                 const std::vector<std::string>& fetches,
                                 std::vector<Tensor>* values, const RunOptions& options) {
  return CatchExceptions(
      [&] { return impl_->PartialRun(handle, feeds, fetches, values, options); });
}

absl::Status Session::Extend(const GraphDef& def) {
  return CatchExceptions([&] {
    const absl::Status extended = ExtendGraphWith(def, graph_.get());
    return extended.ok() ? impl_->Extend() : extended;
  });
}

absl::StatusOr<std::vector<DeviceAttributes>> Session::ListDevices() const {
  return CatchExceptions([&] { return impl_->ListDevices(); });
}

absl::Status Session::Reset(const std::vector<std::string>& containers) {
  return CatchExceptions([&] { return impl_->Reset(containers); });
}

void Session::PlaceAgain() { impl_->PlaceAgain(); }

absl::StatusOr<Session::KernelStates> Session::SaveKernelStates() const {
  return CatchExceptions([&] { return impl_->SaveKernelStates(); });
}

absl::Status Session::RestoreKernelStates(const KernelStates& states) {
  return CatchExceptions([&] { return impl_->RestoreKernelStates(states); });
}

absl::Status Session::Close() {
  return CatchExceptions([this] { return impl_->Close(); });
}

}  // namespace troupe
