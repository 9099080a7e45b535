#include "api/internal/remote_session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "api/internal/master_link.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

// The master waits for its workers within this, and for what it has them do.
constexpr ClusterTime kControlTimeout = 60 * kSecond;
// What the master may take to stop a step whose time is up, before the client stops waiting.
constexpr ClusterTime kGrace = 3 * kSecond;
// What resources hold goes in messages of so many bytes, or of one tuple.
constexpr int64_t kPartBytes = int64_t{16} << 20;
// How long the end of a session waits for callbacks of the application.
constexpr std::chrono::milliseconds kCallbacksGrace{60000};

ClusterTime Microseconds(absl::Duration duration) { return absl::ToInt64Microseconds(duration); }

void SetNames(const StepSignature& signature, cluster::Signature* names) {
  for (const Output& feed : signature.feeds) names->add_feeds(feed.name());
  for (const Output& fetch : signature.fetches) names->add_fetches(fetch.name());
  for (const Node* target : signature.targets) names->add_targets(target->name());
}

absl::Status CheckFeeds(const StepSignature& signature, absl::Span<const Tensor> feeds) {
  if (feeds.size() != signature.feeds.size()) {
    return InvalidArgument("expected ", signature.feeds.size(), " fed tensors, got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Output& output = signature.feeds[i];
    const ElementType type = RemoveRef(output.type());
    TROUPE_RETURN_IF_ERROR(CheckFedValue(output.name(), type, output.shape(), feeds[i]));
    if (type == ElementType::kVariant || type == ElementType::kResource) {
      return absl::UnimplementedError(StrCat("feed ", output.name(), ": a tensor of type ",
                                             ElementTypeName(type),
                                             " cannot go to another process"));
    }
  }
  return absl::OkStatus();
}

cluster::Message Wanted(const std::string& session, const std::vector<ResourcePlace>& wanted,
                        bool where_only) {
  cluster::Message request;
  cluster::SaveResourcesRequest* body = request.mutable_save_resources();
  body->set_session(session);
  for (const ResourcePlace& place : wanted) PlaceToDef(place, body->add_wanted());
  body->set_where_only(where_only);
  body->set_max_bytes(kPartBytes);
  return request;
}

/// The values that a step was asked for; `target` sent them.
absl::Status TakeValues(const std::string& target,
                        google::protobuf::RepeatedPtrField<TensorProto>* fetches,
                        absl::Span<Tensor> values) {
  if (fetches->size() != static_cast<int>(values.size())) {
    return absl::InternalError(
        StrCat(target, " sent ", fetches->size(), " tensors, ", values.size(), " were fetched"));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(values[i], TakeTensorFromProto(fetches->Mutable(static_cast<int>(i))));
  }
  return absl::OkStatus();
}

/// What a step has answered, with its metadata.
absl::Status TakeResult(const std::string& target, cluster::RunStepReply* reply,
                        absl::Span<Tensor> values, RunMetadata* metadata) {
  if (metadata != nullptr && !metadata->MergeFromString(reply->metadata())) {
    return absl::InternalError(StrCat(target, " sent metadata that cannot be read"));
  }
  return TakeValues(target, reply->mutable_fetches(), values);
}

std::vector<Tensor> ValuesOf(const NamedTensors& feeds) {
  std::vector<Tensor> values;
  values.reserve(feeds.size());
  for (const auto& feed : feeds) values.push_back(feed.second);
  return values;
}

std::vector<std::string> NamesOf(const NamedTensors& feeds) {
  std::vector<std::string> names;
  for (const auto& feed : feeds) names.push_back(feed.first);
  return names;
}

/// The callbacks of asynchronous runs: whoever ends a session waits for those that are being
/// called. Thread-safe.
class Callbacks {
 public:
  /// A callback; held by whatever will call it, until it has returned.
  class Ticket {
   public:
    Ticket(std::shared_ptr<Callbacks> of, RunDone done)
        : of_(std::move(of)), done_(std::move(done)) {
      std::lock_guard<std::mutex> lock(of_->mutex_);
      ++of_->open_;
    }
    ~Ticket() {
      // What would have called it has thrown.
      if (done_ != nullptr) Answer(absl::Status(absl::StatusCode::kResourceExhausted, ""));
      std::lock_guard<std::mutex> lock(of_->mutex_);
      --of_->open_;
      of_->changed_.notify_all();
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    /// Once. An exception in a user's callback must not end an actor. What the callback holds,
    /// which may be the session, goes while it counts as being called.
    void Answer(absl::StatusOr<std::vector<Tensor>> result) noexcept {
      KeepGoing([&] {
        Calling().push_back(of_.get());
        const absl::Cleanup over = [] { Calling().pop_back(); };
        std::exchange(done_, nullptr)(std::move(result));
      });
    }

   private:
    const std::shared_ptr<Callbacks> of_;
    RunDone done_;
  };

  /// False if they have not ended in time. Those that have called this do not count.
  bool WaitForOthers(std::chrono::milliseconds patience) {
    const auto own = std::count(Calling().begin(), Calling().end(), this);
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return open_ <= own; });
  }

 private:
  /// Whose callbacks this thread is calling just now.
  static std::vector<const Callbacks*>& Calling() {
    thread_local std::vector<const Callbacks*> calling;
    return calling;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t open_ = 0;
};

}  // namespace

struct RemoteSession::Impl {
  std::shared_ptr<Graph> graph;
  std::string target;
  std::string session;
  ClusterTime heartbeat_timeout = 0;
  std::unique_ptr<MasterLink> link;

  std::mutex graph_mutex;
  int sent_nodes = 0;
  int sent_defs = 0;
  int sent_functions = 0;
  std::atomic<int64_t> placement_round{0};
  const std::shared_ptr<Callbacks> callbacks = std::make_shared<Callbacks>();

  absl::Status Call(cluster::Message request, ClusterTime timeout, cluster::Message* reply) {
    return link->CallAndWait(std::move(request), timeout, reply);
  }

  /// DeadlineExceeded: what is there has changed since the first part.
  absl::Status SaveNextPart(const ResourcePlace& place, JoinedResource* joined) {
    cluster::Message request = Wanted(session, {place}, false), reply;
    request.mutable_save_resources()->set_first(joined->size());
    TROUPE_RETURN_IF_ERROR(Call(std::move(request), kControlTimeout, &reply));
    for (ResourceStateDef& part : *reply.mutable_save_resources_reply()->mutable_resources()) {
      const int64_t before = joined->size();
      if (PlaceFromDef(part) != place || !joined->IsNext(part)) continue;
      TROUPE_RETURN_IF_ERROR(joined->Add(&part));
      if (joined->size() > before) return absl::OkStatus();
    }
    return absl::DeadlineExceededError(
        StrCat("'", place.node, "' does not come to rest: others use what it names"));
  }

  /// What is in the graph and has not been sent; false if nothing. With `graph_mutex` held.
  bool New(std::string* def) {
    const int nodes = graph->num_nodes();
    const int functions = graph->library().function_size();
    if (nodes == sent_nodes && functions == sent_functions) return false;
    GraphDef all;
    graph->ToGraphDef(&all);
    const int defs = all.node_size();  // Source and sink are nodes, but not defined.
    all.mutable_node()->DeleteSubrange(0, std::min(sent_defs, defs));
    if (functions == sent_functions) all.clear_library();
    all.SerializeToString(def);
    sent_defs = defs;
    sent_nodes = nodes;
    sent_functions = functions;
    return true;
  }

  absl::Status Extend() {
    std::lock_guard<std::mutex> lock(graph_mutex);
    const int nodes_before = sent_nodes, defs_before = sent_defs;
    const int functions_before = sent_functions;
    cluster::Message request;
    request.mutable_extend_session()->set_session(session);
    if (!New(request.mutable_extend_session()->mutable_graph())) return absl::OkStatus();
    absl::Status status =
        CatchExceptions([&] { return Call(std::move(request), kControlTimeout, nullptr); });
    if (!status.ok()) {
      sent_nodes = nodes_before;
      sent_defs = defs_before;
      sent_functions = functions_before;
    }
    return status;
  }

  /// Tells the master how long it has; `timeout` is how long its answer is waited for.
  template <typename Request>
  static absl::Status SetTimeout(const RunOptions& options, Request* request,
                                 ClusterTime* timeout) {
    constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);
    *timeout = 0;
    if (options.timeout == absl::InfiniteDuration()) return absl::OkStatus();
    if (options.timeout <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the run did not finish within 0");
    }
    request->set_timeout_us(
        std::max<ClusterTime>(1, Microseconds(std::min(options.timeout, kLongest))));
    *timeout = request->timeout_us() + kGrace;
    return absl::OkStatus();
  }

  /// OK: the request is ready.
  absl::Status MakeRun(const StepSignature& signature, const std::string& callable,
                       absl::Span<const Tensor> feeds, const RunOptions& options, bool trace,
                       cluster::RunStepRequest* request, ClusterTime* timeout) {
    TROUPE_RETURN_IF_ERROR(CheckFeeds(signature, feeds));
    TROUPE_RETURN_IF_ERROR(SetTimeout(options, request, timeout));
    request->set_session(session);
    request->set_trace(options.trace && trace);
    if (callable.empty()) {
      TROUPE_RETURN_IF_ERROR(Extend());
      SetNames(signature, request->mutable_signature());
      request->mutable_signature()->set_placement_round(placement_round);
    } else {
      request->set_callable(callable);
    }
    for (const Tensor& feed : feeds) TensorToProto(feed, request->add_feeds());
    return absl::OkStatus();
  }

  /// OK: the ticket is answered, by now or later.
  absl::Status Begin(const RunOptions& options, const absl::StatusOr<StepSignature>& signature,
                     absl::Span<const Tensor> feeds, RunMetadata* metadata,
                     const std::shared_ptr<Callbacks::Ticket>& ticket) {
    TROUPE_RETURN_IF_ERROR(signature.status());
    cluster::Message request;
    ClusterTime timeout = 0;
    TROUPE_RETURN_IF_ERROR(MakeRun(*signature, "", feeds, options, metadata != nullptr,
                                   request.mutable_run_step(), &timeout));
    link->Call(std::move(request), timeout,
               [link = link.get(), target = target, num_fetches = signature->fetches.size(),
                metadata, ticket](const absl::Status& result, cluster::Message reply) {
                 link->Post([=, reply = std::move(reply)]() mutable {
                   absl::Status status = result;
                   std::vector<Tensor> values(num_fetches);
                   if (status.ok()) {
                     status = TakeResult(target, reply.mutable_run_step_reply(),
                                         absl::MakeSpan(values), metadata);
                   }
                   if (status.ok()) {
                     ticket->Answer(std::move(values));
                   } else {
                     ticket->Answer(std::move(status));
                   }
                 });
               });
    return absl::OkStatus();
  }
};

absl::StatusOr<std::shared_ptr<RemoteSession>> RemoteSession::Create(
    std::shared_ptr<Graph> graph, const SessionOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->graph = std::move(graph);
  impl->target = options.target;
  impl->heartbeat_timeout = Microseconds(options.heartbeat_timeout);
  const absl::Time deadline = absl::Now() + options.creation_timeout;
  TROUPE_ASSIGN_OR_RETURN(impl->link, MasterLink::Create(options));
  std::shared_ptr<RemoteSession> session(new RemoteSession(std::move(impl)));
  Impl* raw = session->impl_.get();
  cluster::Message request, reply;
  cluster::CreateSessionRequest* create = request.mutable_create_session();
  create->mutable_config()->set_no_optimize(!options.optimize);
  create->mutable_config()->set_allow_soft_placement(options.allow_soft_placement);
  create->mutable_config()->set_lossy_transfers(options.lossy_transfers);
  create->mutable_config()->set_log_placement(options.log_device_placement);
  for (const std::string& filter : options.device_filters) {
    create->mutable_config()->add_device_filters(filter);
  }
  {
    std::lock_guard<std::mutex> lock(raw->graph_mutex);
    raw->New(create->mutable_graph());
  }
  const ClusterTime left = Microseconds(std::max(deadline - absl::Now(), absl::ZeroDuration()));
  TROUPE_RETURN_IF_ERROR(
      raw->Call(std::move(request), std::clamp<ClusterTime>(left, 1, kControlTimeout), &reply));
  raw->session = reply.create_session_reply().session();
  return session;
}

RemoteSession::RemoteSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RemoteSession::~RemoteSession() {
  CatchExceptions([this] { return Close(); }).IgnoreError();
}

absl::StatusOr<std::vector<Tensor>> RemoteSession::Run(const NamedTensors& feeds,
                                                       const std::vector<std::string>& fetches,
                                                       const std::vector<std::string>& targets,
                                                       const RunOptions& options,
                                                       RunMetadata* metadata) {
  TROUPE_ASSIGN_OR_RETURN(
      const StepSignature signature,
      StepSignature::FromNames(*impl_->graph, NamesOf(feeds), fetches, targets));
  std::vector<Tensor> values(fetches.size());
  TROUPE_RETURN_IF_ERROR(
      Run(signature, "", ValuesOf(feeds), absl::MakeSpan(values), options, metadata));
  return values;
}

absl::StatusOr<std::vector<Tensor>> RemoteSession::Run(const StepSignature& signature,
                                                       absl::Span<const Tensor> feeds,
                                                       const RunOptions& options,
                                                       RunMetadata* metadata) {
  TROUPE_RETURN_IF_ERROR(signature.Check(*impl_->graph));
  std::vector<Tensor> values(signature.fetches.size());
  TROUPE_RETURN_IF_ERROR(Run(signature, "", feeds, absl::MakeSpan(values), options, metadata));
  return values;
}

absl::Status RemoteSession::Run(const StepSignature& signature, const std::string& callable,
                                absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                                const RunOptions& options, RunMetadata* metadata) {
  if (fetches.size() != signature.fetches.size()) {
    return InvalidArgument("expected room for ", signature.fetches.size(), " fetched tensors, got ",
                           fetches.size());
  }
  cluster::Message request, reply;
  ClusterTime timeout = 0;
  TROUPE_RETURN_IF_ERROR(impl_->MakeRun(signature, callable, feeds, options, metadata != nullptr,
                                        request.mutable_run_step(), &timeout));
  TROUPE_RETURN_IF_ERROR(impl_->Call(std::move(request), timeout, &reply));
  return TakeResult(impl_->target, reply.mutable_run_step_reply(), fetches, metadata);
}

void RemoteSession::RunAsync(const RunOptions& options, absl::StatusOr<StepSignature> signature,
                             std::vector<Tensor> feeds, RunDone done, RunMetadata* metadata) {
  // The answer may come before this returns, and `done` hold the session last.
  const auto self = shared_from_this();
  std::shared_ptr<Callbacks::Ticket> ticket;
  const absl::Status begun = CatchExceptions([&] {
    ticket = std::make_shared<Callbacks::Ticket>(impl_->callbacks, std::move(done));
    return impl_->Begin(options, signature, feeds, metadata, ticket);
  });
  if (begun.ok()) return;
  // NOLINTNEXTLINE(bugprone-use-after-move): without memory for a ticket nothing has been moved.
  if (ticket == nullptr) return KeepGoing([&] { done(begun); });
  KeepGoing([&] { impl_->link->Post([begun, ticket] { ticket->Answer(begun); }); });
}

/// A callable of the master's.
class RemoteSession::Call final : public PreparedCall {
 public:
  Call(std::shared_ptr<RemoteSession> session, StepSignature signature)
      : session_(std::move(session)), signature_(std::move(signature)) {}
  ~Call() override {
    if (handle_.empty()) return;
    cluster::Message request;
    request.mutable_release_callable()->set_session(session_->impl_->session);
    request.mutable_release_callable()->set_callable(handle_);
    session_->impl_->link->Call(std::move(request), kControlTimeout,
                                [](const absl::Status&, const cluster::Message&) {});
  }

  absl::Status Make() {
    Impl* impl = session_->impl_.get();
    TROUPE_RETURN_IF_ERROR(signature_.Check(*impl->graph));
    TROUPE_RETURN_IF_ERROR(impl->Extend());
    cluster::Message request, reply;
    cluster::MakeCallableRequest* make = request.mutable_make_callable();
    make->set_session(impl->session);
    SetNames(signature_, make->mutable_signature());
    make->mutable_signature()->set_placement_round(impl->placement_round);
    TROUPE_RETURN_IF_ERROR(impl->Call(std::move(request), kControlTimeout, &reply));
    handle_ = reply.make_callable_reply().callable();
    num_nodes_ = static_cast<int>(reply.make_callable_reply().num_nodes());
    return absl::OkStatus();
  }
  absl::Status Run(absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    return session_->Run(signature_, handle_, feeds, fetches, options, metadata);
  }
  int num_nodes() const override { return num_nodes_; }

 private:
  const std::shared_ptr<RemoteSession> session_;
  const StepSignature signature_;
  std::string handle_;
  int num_nodes_ = 0;
};

absl::StatusOr<std::shared_ptr<PreparedCall>> RemoteSession::Prepare(
    const StepSignature& signature) {
  auto call = std::make_shared<Call>(shared_from_this(), signature);
  TROUPE_RETURN_IF_ERROR(call->Make());
  return call;
}

absl::StatusOr<std::vector<DeviceAttributes>> RemoteSession::ListDevices() {
  cluster::Message request, reply;
  request.mutable_list_devices();
  TROUPE_RETURN_IF_ERROR(impl_->Call(std::move(request), kControlTimeout, &reply));
  std::vector<DeviceAttributes> devices;
  for (const cluster::DeviceInfo& device : reply.list_devices_reply().devices()) {
    devices.push_back({device.name(), device.type(), device.memory_limit(), device.incarnation(),
                       device.description()});
  }
  return devices;
}

absl::Status RemoteSession::Reset(const std::vector<std::string>& containers) {
  cluster::Message request;
  cluster::ResetRequest* reset = request.mutable_reset();
  for (const std::string& container : containers) reset->add_containers(container);
  return impl_->Call(std::move(request), kControlTimeout, nullptr);
}

absl::StatusOr<KernelStates> RemoteSession::SaveKernelStates() {
  cluster::Message request, reply;
  request.mutable_save_states()->set_session(impl_->session);
  TROUPE_RETURN_IF_ERROR(impl_->Call(std::move(request), kControlTimeout, &reply));
  return StatesOf(reply.save_states_reply().states());
}

absl::Status RemoteSession::RestoreKernelStates(const KernelStates& states) {
  cluster::Message request;
  request.mutable_restore_states()->set_session(impl_->session);
  AddStates(states, request.mutable_restore_states()->mutable_states());
  return impl_->Call(std::move(request), kControlTimeout, nullptr);
}

absl::StatusOr<std::vector<KeptResource>> RemoteSession::SaveResources(
    const std::vector<ResourcePlace>& wanted) {
  cluster::Message reply;
  TROUPE_RETURN_IF_ERROR(
      impl_->Call(Wanted(impl_->session, wanted, false), kControlTimeout, &reply));
  std::vector<KeptResource> resources;
  for (ResourceStateDef& def : *reply.mutable_save_resources_reply()->mutable_resources()) {
    const ResourcePlace place = PlaceFromDef(def);
    JoinedResource joined;
    TROUPE_RETURN_IF_ERROR(joined.Add(&def));
    while (!joined.complete()) TROUPE_RETURN_IF_ERROR(impl_->SaveNextPart(place, &joined));
    TROUPE_ASSIGN_OR_RETURN(resources.emplace_back(), joined.Take());
  }
  return resources;
}

absl::StatusOr<std::vector<ResourcePlace>> RemoteSession::FindResources(
    const std::vector<ResourcePlace>& wanted) {
  cluster::Message reply;
  TROUPE_RETURN_IF_ERROR(
      impl_->Call(Wanted(impl_->session, wanted, true), kControlTimeout, &reply));
  std::vector<ResourcePlace> places;
  for (const ResourceStateDef& def : reply.save_resources_reply().resources()) {
    places.push_back(PlaceFromDef(def));
  }
  return places;
}

absl::Status RemoteSession::RestoreResource(KeptResource resource) {
  const ResourceParts parts(std::move(resource));
  int64_t sent = 0;
  do {
    cluster::Message request;
    cluster::RestoreResourceRequest* body = request.mutable_restore_resource();
    body->set_session(impl_->session);
    TROUPE_RETURN_IF_ERROR(parts.Get(sent, kPartBytes, body->mutable_resource()));
    sent += body->resource().tuple_size();
    TROUPE_RETURN_IF_ERROR(impl_->Call(std::move(request), kControlTimeout, nullptr));
  } while (sent < parts.size());
  return absl::OkStatus();
}

void RemoteSession::PlaceAgain() { ++impl_->placement_round; }

absl::StatusOr<std::string> RemoteSession::PartialRunSetup(const std::vector<std::string>& feeds,
                                                           const std::vector<std::string>& fetches,
                                                           const std::vector<std::string>& targets,
                                                           const RunOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const StepSignature signature,
                          StepSignature::FromNames(*impl_->graph, feeds, fetches, targets));
  TROUPE_RETURN_IF_ERROR(impl_->Extend());
  cluster::Message request, reply;
  cluster::PartialRunSetupRequest* setup = request.mutable_partial_run_setup();
  setup->set_session(impl_->session);
  ClusterTime timeout = 0;
  TROUPE_RETURN_IF_ERROR(Impl::SetTimeout(options, setup, &timeout));
  SetNames(signature, setup->mutable_signature());
  setup->mutable_signature()->set_placement_round(impl_->placement_round);
  TROUPE_RETURN_IF_ERROR(impl_->Call(std::move(request), kControlTimeout, &reply));
  return reply.partial_run_setup_reply().partial_run();
}

absl::Status RemoteSession::PartialRun(const std::string& handle, const NamedTensors& feeds,
                                       const std::vector<std::string>& fetches,
                                       std::vector<Tensor>* values, const RunOptions& options) {
  StepSignature signature;
  std::vector<Tensor> fed;
  for (const auto& [name, value] : feeds) {
    TROUPE_ASSIGN_OR_RETURN(const Output output, impl_->graph->FindOutput(name));
    signature.feeds.push_back(output);
    fed.push_back(value);
  }
  for (const std::string& name : fetches) {
    TROUPE_ASSIGN_OR_RETURN(const Output output, impl_->graph->FindOutput(name));
    signature.fetches.push_back(output);
  }
  TROUPE_RETURN_IF_ERROR(CheckFeeds(signature, fed));
  cluster::Message request, reply;
  cluster::PartialRunRequest* run = request.mutable_partial_run();
  run->set_session(impl_->session);
  run->set_partial_run(handle);
  for (size_t i = 0; i < fed.size(); ++i) {
    cluster::NamedTensor* feed = run->add_feeds();
    feed->set_name(signature.feeds[i].name());
    TensorToProto(fed[i], feed->mutable_tensor());
  }
  for (const Output& fetch : signature.fetches) run->add_fetches(fetch.name());
  ClusterTime timeout = 0;
  TROUPE_RETURN_IF_ERROR(Impl::SetTimeout(options, run, &timeout));
  TROUPE_RETURN_IF_ERROR(impl_->Call(std::move(request), timeout, &reply));
  std::vector<Tensor> result(fetches.size());
  TROUPE_RETURN_IF_ERROR(TakeValues(
      impl_->target, reply.mutable_partial_run_reply()->mutable_fetches(), absl::MakeSpan(result)));
  if (values != nullptr) *values = std::move(result);
  return absl::OkStatus();
}

absl::Status RemoteSession::Extend() { return impl_->Extend(); }

absl::Status RemoteSession::Close() {
  if (impl_->session.empty()) return absl::OkStatus();
  cluster::Message request;
  request.mutable_close_session()->set_session(impl_->session);
  absl::Status status = impl_->Call(std::move(request), impl_->heartbeat_timeout, nullptr);
  impl_->link->Shut();
  if (!impl_->callbacks->WaitForOthers(kCallbacksGrace)) {
    return absl::DeadlineExceededError("a callback of an asynchronous run does not return");
  }
  // A session that has ended otherwise, with its master, is closed too.
  if (absl::IsCancelled(status) || absl::IsUnavailable(status) || absl::IsAborted(status)) {
    return absl::OkStatus();
  }
  return status;
}

}  // namespace troupe
