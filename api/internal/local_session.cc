#include "api/internal/local_session.h"

#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "actors/session/kept_resources.h"
#include "actors/session/session_role.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

StepOptions OptionsOf(const RunOptions& options) { return {options.timeout, options.trace}; }

/// What `call` gives to the function that it is given.
template <typename Result>
Result Await(absl::FunctionRef<void(std::function<void(Result)>)> call) {
  // Shared: if `call` throws, the function may be called nevertheless, later.
  const auto promise = std::make_shared<std::promise<Result>>();
  call([promise](Result result) { promise->set_value(std::move(result)); });
  return promise->get_future().get();
}

class LocalCall final : public PreparedCall {
 public:
  LocalCall(std::shared_ptr<SessionRole> role, std::shared_ptr<Executable> executable)
      : role_(std::move(role)), executable_(std::move(executable)) {}

  absl::Status Run(absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    return role_->Run(executable_.get(), feeds, fetches, OptionsOf(options), metadata);
  }
  int num_nodes() const override { return executable_->compiled().num_nodes; }

 private:
  const std::shared_ptr<SessionRole> role_;
  const std::shared_ptr<Executable> executable_;
};

class LocalSession final : public SessionInterface {
 public:
  explicit LocalSession(std::shared_ptr<SessionRole> role) : role_(std::move(role)) {}

  absl::StatusOr<std::vector<Tensor>> Run(const NamedTensors& feeds,
                                          const std::vector<std::string>& fetches,
                                          const std::vector<std::string>& targets,
                                          const RunOptions& options,
                                          RunMetadata* metadata) override {
    std::vector<Tensor> values;
    values.reserve(feeds.size());
    for (const auto& feed : feeds) values.push_back(feed.second);
    return Run(role_->Prepare(feeds, fetches, targets), values, fetches.size(), options, metadata);
  }
  absl::StatusOr<std::vector<Tensor>> Run(const StepSignature& signature,
                                          absl::Span<const Tensor> feeds, const RunOptions& options,
                                          RunMetadata* metadata) override {
    return Run(role_->Prepare(signature), feeds, signature.fetches.size(), options, metadata);
  }
  void RunAsync(const RunOptions& options, absl::StatusOr<StepSignature> signature,
                std::vector<Tensor> feeds, RunDone done, RunMetadata* metadata) override {
    role_->RunAsync(
        {std::move(signature), std::move(feeds), OptionsOf(options), metadata, std::move(done)});
  }
  absl::StatusOr<std::shared_ptr<PreparedCall>> Prepare(const StepSignature& signature) override {
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Executable> executable, role_->Prepare(signature));
    return std::make_shared<LocalCall>(role_, std::move(executable));
  }
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets,
                                              const RunOptions& options) override {
    return role_->PartialRunSetup(feeds, fetches, targets, options.timeout);
  }
  absl::Status PartialRun(const std::string& handle, const NamedTensors& feeds,
                          const std::vector<std::string>& fetches, std::vector<Tensor>* values,
                          const RunOptions& options) override {
    return role_->PartialRun(handle, feeds, fetches, values, options.timeout);
  }
  absl::Status Extend() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<DeviceAttributes>> ListDevices() override {
    std::vector<DeviceAttributes> devices;
    for (const auto& device : role_->runtime()->devices()) {
      devices.push_back(device->device->attributes());
    }
    return devices;
  }
  absl::Status Reset(const std::vector<std::string>& containers) override {
    return role_->Reset(containers);
  }
  void PlaceAgain() override { role_->PlaceAgain(); }
  absl::StatusOr<KernelStates> SaveKernelStates() override { return role_->SaveKernelStates(); }
  absl::Status RestoreKernelStates(const KernelStates& states) override {
    role_->RestoreKernelStates(states);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<KeptResource>> SaveResources(
      const std::vector<ResourcePlace>& wanted) override {
    return Await<absl::StatusOr<std::vector<KeptResource>>>([&](auto done) {
      troupe::SaveResources(*role_->runtime(), role_->stateful_kernels(), wanted, std::move(done));
    });
  }
  absl::StatusOr<std::vector<ResourcePlace>> FindResources(
      const std::vector<ResourcePlace>& wanted) override {
    return troupe::FindResources(*role_->runtime(), role_->stateful_kernels(), wanted);
  }
  absl::Status RestoreResource(KeptResource resource) override {
    return Await<absl::Status>([&](auto done) {
      RestoreKeptResource(*role_->runtime(), std::move(resource), std::move(done));
    });
  }
  absl::Status Close() override { return role_->Close(); }

 private:
  absl::StatusOr<std::vector<Tensor>> Run(
      const absl::StatusOr<std::shared_ptr<Executable>>& executable, absl::Span<const Tensor> feeds,
      size_t num_fetches, const RunOptions& options, RunMetadata* metadata) {
    if (!executable.ok()) return executable.status();
    std::vector<Tensor> values(num_fetches);
    TROUPE_RETURN_IF_ERROR(
        role_->Run(executable->get(), feeds, absl::MakeSpan(values), OptionsOf(options), metadata));
    return values;
  }

  const std::shared_ptr<SessionRole> role_;
};

}  // namespace

std::shared_ptr<SessionInterface> MakeLocalSession(std::shared_ptr<Graph> graph,
                                                   std::shared_ptr<Runtime> runtime,
                                                   const SessionOptions& options) {
  SessionRole::Options role;
  role.compile.simplify = options.optimize;
  role.compile.soft_placement = options.allow_soft_placement;
  role.compile.log_placement = options.log_device_placement;
  return std::make_shared<LocalSession>(
      std::make_shared<SessionRole>(std::move(graph), std::move(runtime), role));
}

}  // namespace troupe
